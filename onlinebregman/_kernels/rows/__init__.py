"""Rows as the kernels read them: dense arrays and CSR, without a copy."""
