"""river (online-ml/river): its data sets, and the tables of its docs/benchmarks."""

import numpy as np
import pandas as pd
from river import datasets

from onlinebregman import ParameterFreeClassifier, ParameterFreeRegressor
from onlinebregman.model_selection import progressive_val_predict, progressive_val_score

BEST = {"Bananas": "AMF .8894", "Phishing": "SRP .9135", "ImageSegments": "AMF .9017"}
ERRORS = {"ChickWeights": "bagging 23.1", "TrumpApproval": "AMF .2685"}


def load(name):
    X, y = zip(*getattr(datasets, name)(), strict=True)
    return pd.DataFrame(list(X)), np.array(y)


def rows():
    for name, best in BEST.items():
        score = progressive_val_score(ParameterFreeClassifier(), *load(name)).score
        yield f"{name}, accuracy", best, "docs/benchmarks", f"{score:.4f}".lstrip("0")
    for name, best in ERRORS.items():
        X, y = load(name)
        p = progressive_val_predict(ParameterFreeRegressor(), X, y)
        yield f"{name}, mean absolute error", best, "docs/benchmarks", f"{np.abs(p - y[1:]).mean():.3g}"
