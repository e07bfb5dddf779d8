"""Loops over contiguous numbers, in C: each header has its declarations for Cython beside it."""
