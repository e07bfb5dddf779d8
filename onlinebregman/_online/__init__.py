"""Shared by the estimators: the life cycle of `fit` and `partial_fit`, mirror maps, checks of input, labels, bounds."""
