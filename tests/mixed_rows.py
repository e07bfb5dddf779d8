"""Rows with missing values and categories, and labels that depend on them."""

import numpy as np
import pandas as pd


def mixed(n=300, seed=0):
    """Two columns of numbers and three of categories, all with missing values, and targets that depend on them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "colour": pd.Series(rng.choice(["red", "green", "blue"], size=n), dtype=object),
            "weight": rng.exponential(size=n),
            "shape": pd.Categorical(rng.choice(["round", "square"], size=n)),
            "sold": rng.choice([True, False], size=n),
        }
    )
    score = X["size"] + 3.0 * (X["colour"] == "red") - 2.0 * (X["shape"] == "round").astype(float)
    gone = rng.uniform(size=(n, 4)) < 0.1
    X.loc[gone[:, 0], "size"], X.loc[gone[:, 1], "weight"] = np.nan, np.nan
    X.loc[gone[:, 2], "colour"], X.loc[gone[:, 3], "shape"] = None, None
    return X, (score > 0).astype(float).to_numpy()


def with_gaps(n=400, share=0.2, seed=0):
    """Four columns of numbers in different units; values are missing at random, and all in the first row."""
    rng = np.random.default_rng(seed)
    X = rng.normal([0.0, 3.0, 0.0, 100.0], [1.0, 2.0, 0.1, 30.0], size=(n, 4))
    y = (X[:, 0] + (X[:, 1] - 3.0) / 2.0 > 0).astype(float)
    X[rng.uniform(size=X.shape) < share] = np.nan
    X[0] = np.nan
    return X, y
