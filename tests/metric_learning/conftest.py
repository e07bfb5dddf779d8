"""Standardised rows of three classes, for tests of several metric learners."""

import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler


@pytest.fixture
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y
