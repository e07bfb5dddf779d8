"""What estimators of all families share: the life cycle of `fit` and `partial_fit`."""
