"""Loops over contiguous numbers in C, declared for Cython beside each header; and the routines of LAPACK."""
