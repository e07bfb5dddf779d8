"""Alternatives to scikit-learn for streams: Vowpal Wabbit and river, and the best learning rate of a grid.

All have `partial_fit`, `predict` and, if there are probabilities, `predict_log_proba` of one row. Rows are converted
to the format of each package, lines of text or dictionaries of the nonzeros; that is part of their times.
"""

from functools import partial
from itertools import product

import numpy as np
from scipy.sparse import issparse
from sklearn.linear_model import SGDClassifier, SGDRegressor

try:
    from vowpalwabbit import Workspace
except ImportError:
    Workspace = None
try:
    from river import forest, linear_model, multiclass, preprocessing, tree
except ImportError:
    forest = None


def nonzeros(row):
    """Columns and values of the one row that X has."""
    if issparse(row):
        return row.indices.tolist(), row.data.tolist()
    columns = np.flatnonzero(row[0])
    return columns.tolist(), row[0, columns].tolist()


class Line:
    """The next value of a series on the line through the last two."""

    values = (0.0, 0.0)

    def partial_fit(self, row, y, classes=None):
        self.values = self.values[1], y[0]

    def predict(self, row):
        return [2 * self.values[1] - self.values[0]]


class VowpalWabbit:
    """Linear, a line of text a row; several classes one against the rest."""

    def __init__(self, arguments="", loss="squared"):
        self.arguments, self.loss = arguments, loss

    def start(self, classes):
        self.n_classes = 0 if classes is None else len(classes)
        several = ""
        if self.n_classes > 2:
            several = f"--oaa {self.n_classes}" + (" --probabilities" if self.loss == "logistic" else "")
        self.workspace = Workspace(f"--quiet --loss_function {self.loss} {several} {self.arguments}")

    def example(self, row, label=""):
        features = " ".join(f"{column}:{value:.9g}" for column, value in zip(*nonzeros(row), strict=True))
        return self.workspace.parse(f"{label} | {features}")

    def partial_fit(self, row, y, classes=None):
        if not hasattr(self, "workspace"):
            self.start(classes)
        label = f"{y[0]:.9g}" if self.n_classes == 0 else y[0] + 1 if self.n_classes > 2 else 2 * y[0] - 1
        example = self.example(row, label)
        self.workspace.learn(example)
        self.workspace.finish_example(example)

    def answer(self, row):
        example = self.example(row)
        answer = self.workspace.predict(example)
        self.workspace.finish_example(example)
        return answer

    def predict(self, row):
        answer = self.answer(row)
        if self.n_classes == 0:
            return [answer]
        if self.n_classes == 2:
            return [int(answer > 0)]
        return [int(np.argmax(answer)) if self.loss == "logistic" else answer - 1]

    def log_probabilities(self, row):
        answer = self.answer(row)
        with np.errstate(divide="ignore"):
            return np.array([-np.logaddexp(0, [answer, -answer]) if self.n_classes == 2 else np.log(answer)])

    def __getattr__(self, name):
        if name == "predict_log_proba" and self.loss == "logistic":
            return self.log_probabilities
        raise AttributeError(name)


class River:
    """A dictionary a row."""

    def __init__(self, make, make_of_several=None):
        self.make, self.make_of_several = make, make_of_several or make

    def partial_fit(self, row, y, classes=None):
        if not hasattr(self, "model"):
            self.n_classes = 0 if classes is None else len(classes)
            self.model = (self.make_of_several if self.n_classes > 2 else self.make)()
        self.model.learn_one(self.example(row), float(y[0]) if self.n_classes == 0 else int(y[0]))

    def example(self, row):
        return dict(zip(*nonzeros(row), strict=True) if issparse(row) else enumerate(row[0].tolist()))

    def predict(self, row):
        return [self.model.predict_one(self.example(row)) or 0]  # None before the first row

    def predict_log_proba(self, row):
        said = self.model.predict_proba_one(self.example(row)) or dict.fromkeys(range(self.n_classes), 1.0)
        p = np.array([[said.get(label, 0.0) for label in range(self.n_classes)]], dtype=float)
        with np.errstate(divide="ignore"):
            return np.log(p / p.sum())


def logistic():
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def several_logistic():
    return preprocessing.StandardScaler() | multiclass.OneVsRestClassifier(linear_model.LogisticRegression())


def linear():
    return preprocessing.StandardScaler() | linear_model.LinearRegression()


CLASSIFIERS, REGRESSORS = {}, {}
TUNED_CLASSIFIERS = {"SGDClassifier, tuned": []}  # name -> [(setting, function that makes the learner)]
TUNED_REGRESSORS = {"SGDRegressor, tuned": []}
SGD_RATES, SGD_SCHEDULES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0), {"constant": 0.0, "invscaling": 0.5}
VW_RATES, VW_SCHEDULES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0), (0.0, 0.5)
for name, kind, tuned, losses in (
    ("SGDClassifier, tuned", SGDClassifier, TUNED_CLASSIFIERS, ("log_loss", "hinge")),
    ("SGDRegressor, tuned", SGDRegressor, TUNED_REGRESSORS, ("squared_error", "huber")),
):
    for loss, (schedule, power), rate in product(losses, SGD_SCHEDULES.items(), SGD_RATES):
        make = partial(kind, loss=loss, learning_rate=schedule, power_t=power, eta0=rate, random_state=0)
        tuned[name].append((f"{loss} {schedule} {rate:g}", make))
if Workspace is not None:
    for added, peers, kinds in (
        (CLASSIFIERS, TUNED_CLASSIFIERS, ("logistic", "hinge")),
        (REGRESSORS, TUNED_REGRESSORS, ("squared", "quantile")),
    ):
        added["Vowpal Wabbit"] = partial(VowpalWabbit, loss=kinds[0])
        added["Vowpal Wabbit, coin"] = partial(VowpalWabbit, "--coin", kinds[0])
        peers["Vowpal Wabbit, tuned"] = [
            (f"{loss} power_t={power} {rate:g}", partial(VowpalWabbit, f"-l {rate} --power_t {power}", loss))
            for loss, power, rate in product(kinds, VW_SCHEDULES, VW_RATES)
        ]
if forest is not None:
    CLASSIFIERS |= {
        "river, logistic": partial(River, logistic, several_logistic),
        "river, Hoeffding tree": partial(River, tree.HoeffdingTreeClassifier),
        "river, random forest": partial(River, partial(forest.ARFClassifier, seed=0)),
    }
    REGRESSORS |= {
        "river, linear": partial(River, linear),
        "river, Hoeffding tree": partial(River, tree.HoeffdingTreeRegressor),
        "river, random forest": partial(River, partial(forest.ARFRegressor, seed=0)),
    }
MISSING = [name for name, there in (("vowpalwabbit", Workspace), ("river", forest)) if there is None]
