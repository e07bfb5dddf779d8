"""Geometries of vectors: weights and their mirror map, row by row."""
