"""Geometries of symmetric matrices, which predict quadratic forms of the rows."""
