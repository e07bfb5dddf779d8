"""Losses of a score and a target, as scalar functions."""
