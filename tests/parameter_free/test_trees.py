"""Trees that are grown as a stream gets longer, whose leaves are indicators of members of mixtures."""

import copy
import pickle
from itertools import repeat

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from onlinebregman._kernels.rows.trees import Trees

from onlinebregman import ParameterFreeClassifier, ParameterFreeRegressor
from onlinebregman.parameter_free._explanation import Terms

FIRST, PERIOD, WINDOW, AHEAD = 6144, 1024, 2048, 256
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(9000, 4))
X[:, 3] = np.where(RNG.uniform(size=9000) < 0.1, np.nan, np.floor(5 * X[:, 3]))
INSIDE = (X[:, 0] > 0.4) & (X[:, 1] < 0.7) & (X[:, 2] > 0.3)
LABELS = np.where(INSIDE, 2, X[:, 0] > 0.8)
NUMBERS = 2.0 * INSIDE + X[:, 1] + 0.1 * RNG.normal(size=9000)
WEIGHTS = RNG.uniform(0.5, 2.0, size=9000)
SMALL = {"random_features": 0, "memory": False}

STREAMS = {  # model, targets and weights
    "labels": (ParameterFreeClassifier(**SMALL), LABELS, None),
    "weights": (ParameterFreeClassifier(random_features=0), LABELS > 1, WEIGHTS),
    "numbers": (ParameterFreeRegressor(random_features=0), NUMBERS, None),
    "outputs": (ParameterFreeRegressor(**SMALL), np.c_[NUMBERS, -X[:, 0]], None),
    "several labels": (ParameterFreeClassifier(**SMALL), np.c_[INSIDE, X[:, 0] > 0.5].astype(int), None),
    "counts": (ParameterFreeRegressor(loss="poisson", **SMALL), np.floor(NUMBERS.clip(0)), None),
    "slopes": (ParameterFreeRegressor(loss="absolute_error", stacking=False, **SMALL), NUMBERS, None),
}


def trees_of(model):
    return next(each._learner.row_map.bins.trees for each in model.estimators_ if each._n_trees)


def learned(name, n, sizes, change=lambda model: model):
    model, y, weights = STREAMS[name]
    model, start = copy.deepcopy(model), 0
    while start < n:
        end = min(start + next(sizes), n)
        given = {} if start or y.dtype.kind == "f" or y.ndim == 2 else {"classes": np.unique(y)}
        given |= {} if weights is None else {"sample_weight": weights[start:end]}
        model = change(model.partial_fit(X[start:end], y[start:end], **given))
        start = end
    return model


def in_pieces():
    rng = np.random.default_rng(1)
    while True:
        yield int(rng.choice([1, 40, 300, 1500]))


def predictions(model, X):
    return getattr(model, "predict_proba", model.predict)(X)


@pytest.mark.parametrize("name", STREAMS)
def test_it_makes_no_difference_how_a_stream_is_cut(name):
    whole, pieces = learned(name, 8500, repeat(len(X))), learned(name, 8500, in_pieces())
    assert len(trees_of(whole).nodes[0]) == 1 + (8500 - FIRST) // PERIOD
    assert_array_equal(predictions(whole, X), predictions(pieces, X))


def test_trees_become_rarer_but_grow_on():
    """Every 1024th row, from row 32,768 on every 2048th one, from row 65,536 on every 4096th one."""
    model = ParameterFreeRegressor(stacking=False, **SMALL).partial_fit(np.zeros((70_000, 1)), np.zeros(70_000))
    assert len(trees_of(model).nodes[0]) == 26 + 16 + 2


def test_copies_and_calls_that_are_undone_leave_what_was_learned():
    def change(model):
        wrong = X[-int(RNG.choice([1, 1500])) :].copy()
        wrong[-1, 0] = np.inf
        with pytest.raises(ValueError, match="infinity"):
            model.partial_fit(wrong, LABELS[-len(wrong) :])
        return pickle.loads(pickle.dumps(model))

    whole, changed = learned("labels", 8500, repeat(len(X))), learned("labels", 8500, in_pieces(), change)
    assert_array_equal(predictions(whole, X), predictions(changed, X))


@pytest.mark.parametrize("name", ["labels", "numbers"])
def test_boxes_are_found_and_shorter_streams_are_learned_as_without(name):
    errors = {}
    for n_trees in (0, 128):
        model, y, _ = STREAMS[name]
        model = copy.deepcopy(model).set_params(trees=n_trees)
        model.partial_fit(X[: FIRST - 1], y[: FIRST - 1], **({"classes": range(3)} if name == "labels" else {}))
        early = predictions(model, X)
        said = [model.partial_fit(X[i - 50 : i], y[i - 50 : i]).predict(X[i : i + 50]) for i in range(7000, 9000, 50)]
        right = y[7000:9000].reshape(-1, 50)
        errors[n_trees] = early, np.mean((np.array(said) != right) if name == "labels" else (said - right) ** 2)
    assert_array_equal(errors[0][0], errors[128][0])
    assert errors[128][1] < (0.95 if name == "labels" else 0.8) * errors[0][1]


def replica(rows, residuals, weights, n_levels):
    """The first levels of a tree, and the values of its nodes."""
    weights = weights / weights.mean()
    residuals = residuals / np.abs(residuals).max()
    cuts = [np.unique(column[:: len(rows) // 64]) for column in rows.T]
    cuts = [[*of[of == of], np.inf] for of in cuts]  # the last one is between numbers and missing values

    def score(here):
        return (residuals[here].sum(axis=0) ** 2).sum() / (weights[here].sum() + 10.0)

    nodes, parts = [], [np.ones(len(rows), bool)]
    while len(nodes) < 2**n_levels - 1:
        here = parts[len(nodes)]
        gains = [
            (score(here & (rows[:, j] < cut)) + score(here & ~(rows[:, j] < cut)), j, cut)
            for j in range(rows.shape[1])
            for cut in cuts[j]
            if min(weights[here & (rows[:, j] < cut)].sum(), weights[here & ~(rows[:, j] < cut)].sum()) >= 3
        ]
        gain, j, cut = max(gains, key=lambda each: each[0], default=(0.0, 0, np.inf))
        nodes.append((j, cut) if gain > score(here) else (0, np.inf))
        parts += [here & (rows[:, nodes[-1][0]] < nodes[-1][1]), here & ~(rows[:, nodes[-1][0]] < nodes[-1][1])]
    return np.array(nodes)


@pytest.mark.parametrize("name", ["labels", "weights", "outputs"])
@pytest.mark.parametrize("number", [0, 1])
def test_trees_are_those_of_a_replica(name, number):
    """Just after it has grown, in turn from targets and from the residuals of predictions."""
    end = FIRST - AHEAD + number * PERIOD
    state = trees_of(learned(name, end, repeat(len(X)))).get_state()
    assert_array_equal(state["rows"], X[end - WINDOW : end])
    residuals = state["residuals"][:, 1 - number]
    expected = replica(state["rows"], residuals, state["weights"], 3)
    nodes = np.column_stack([state["column"], state["cut"]]).reshape(number + 1, 63, 2)[number]
    assert_array_equal(nodes[: len(expected)], expected)


def test_residuals_are_targets_and_those_of_predictions():
    model = learned("labels", 100, repeat(100))
    p = model.predict_proba(X[100:101])
    model.partial_fit(X[100:101], LABELS[100:101])
    last = trees_of(model).get_state()["residuals"][-1]
    assert_allclose(last, [np.eye(3)[LABELS[100]] - p[0], np.eye(3)[LABELS[100]]], atol=1e-12)


def test_labels_that_come_late_have_the_residuals_of_the_predictions_that_were_made():
    model = ParameterFreeRegressor(delayed=True, random_features=0).partial_fit(X[:100], NUMBERS[:100])
    said = model.predict(X[100:150])
    state = trees_of(model.partial_fit(X[100:150], NUMBERS[100:150])).get_state()
    assert_allclose(state["residuals"][-50:, 0, 0], NUMBERS[100:150] - said, atol=1e-9)


@pytest.mark.parametrize("name", ["labels", "numbers"])
def test_explanations_add_up_and_columns_contribute_by_their_own_values(name):
    model = learned(name, 8500, repeat(len(X)))
    explanation = model.explain(X[:50])
    assert_allclose(explanation.contributions.sum(axis=1), explanation.scores, atol=1e-9)
    terms, member = Terms(model), next(each for each in model.estimators_ if each._n_trees)
    assert explanation.terms[terms.trees] == "trees"
    of_rows, others = X[:50], X[50:100].copy()
    others[:, 0] = of_rows[:, 0]
    first, second = (terms.of_member(member, rows)[:, :, [0, -1]] for rows in (of_rows, others))
    assert_allclose(first, second, atol=1e-9)
    scores = member._learner.predict(of_rows, False).reshape(50, -1)
    assert_allclose(terms.of_member(member, of_rows).sum(axis=2), scores, atol=1e-9)
    assert np.abs(terms.of_member(member, of_rows)[:, :, terms.trees]).max() > 0.01


def test_trees_are_exported():
    pytest.importorskip("onnx", reason="which is an extra")
    onnxruntime = pytest.importorskip("onnxruntime", reason="which is needed to run what is exported")
    model = learned("labels", 8500, repeat(len(X)))
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    assert_allclose(session.run(["probabilities"], {"X": X})[0], model.predict_proba(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("column", 4), ("column", -1), ("cut", np.nan), ("cut", np.zeros(64)), ("rows", np.zeros((3, 4))), ("seen", -1)],
)
def test_damaged_states_are_refused(name, wrong):
    state = trees_of(learned("labels", 6000, repeat(len(X)))).get_state()
    assert Trees(4, 64, state).get_state().keys() == state.keys()
    if np.ndim(wrong) == 0 and name != "seen":
        state[name][5] = wrong
    else:
        state[name] = wrong
    with pytest.raises(ValueError, match="must"):
        Trees(4, 64, state)
