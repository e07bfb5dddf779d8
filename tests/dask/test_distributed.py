"""DistributedOnline without a cluster: results and errors."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDRegressor
from sklearn.utils.estimator_checks import check_estimator

dask = pytest.importorskip("dask", reason="needs the extra dask: pip install onlinebregman[dask]")
pytest.importorskip("distributed", reason="needs the extra dask: pip install onlinebregman[dask]")

import dask.array as da  # noqa: E402

from onlinebregman import (  # noqa: E402
    EGRegressor,
    ForwardClassifier,
    ForwardRegressor,
    ImplicitGDRegressor,
    LogDetMetricLearner,
    MaxEntDensity,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    OnlineGaussian,
    ScaleInvariantRegressor,
)
from onlinebregman.dask import DistributedOnline  # noqa: E402
from onlinebregman.losses import QuantileLoss  # noqa: E402
from onlinebregman.persistence import load_model  # noqa: E402
from onlinebregman.schedules import Constant, Schedule  # noqa: E402

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=120)
labels = np.array(["a", "b", "c"])[(X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0)]
LENGTHS = (40, 10, 30, 40)  # of the chunks
SUMS = ForwardRegressor(standardize=False, shuffle=False)  # exactly sums over rows


def lazy(*arrays, chunks=LENGTHS):
    made = [da.from_array(array, chunks=(chunks, *array.shape[1:])) for array in arrays]
    return made if len(made) > 1 else made[0]


def shards():
    return [slice(end - n, end) for n, end in zip(LENGTHS, np.cumsum(LENGTHS), strict=True)]


def by_hand(estimator, X, y, n_rounds, scaled):
    """theta = sum n_s theta_s / n, round by round, written from the formula."""
    given = {"classes": np.unique(y)} if is_classifier(estimator) else {}
    model = clone(estimator).partial_fit(X[:1], y[:1], sample_weight=[0.0], **given)
    schedule = model._schedule()
    for r in range(n_rounds):
        factor = 4 * ((r + 1 / 4) / (r + 1)) ** schedule.power if scaled else 1.0
        rate = {"learning_rate": Schedule(factor * schedule.scale, schedule.power)}
        parts = [copy.copy(model).set_params(**rate).partial_fit(X[s], y[s]) for s in shards()]
        model = model._merged(parts, [len(X[s]) / len(X) for s in shards()])
    return model


def test_the_package_does_not_import_dask():
    code = "import sys, onlinebregman; print('dask' in sys.modules, 'distributed' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("mixing", ["mean", "scaled"])
@pytest.mark.parametrize("learner", [EGRegressor(), ImplicitGDRegressor(eta0=0.2)])
def test_a_fit_is_what_its_formula_says(learner, mixing):
    model = DistributedOnline(learner, n_rounds=3, mixing=mixing).fit(*lazy(X, y))
    expected = by_hand(learner, X, y, 3, mixing == "scaled")
    assert_array_equal(model.estimator_.coef_, expected.coef_)
    assert model.estimator_.intercept_ == expected.intercept_
    assert model.estimator_.get_params() == learner.get_params()  # scaled rates only apply within shards
    assert (model.n_shards_, model.n_rounds_, model.estimator_.t_) == (4, 3, 360)


def test_a_schedule_and_a_rate_of_theory_are_scaled():
    for given in ({"learning_rate": Constant(0.1)}, {"learning_rate": "theory", "data_bounds": {"x": 5.0, "u": 2.0}}):
        estimator = MirrorDescentRegressor(divergence="squared_euclidean", **given)
        model = DistributedOnline(estimator, n_rounds=1).fit(*lazy(X, y)).estimator_
        mean = DistributedOnline(estimator, n_rounds=1, mixing="mean").fit(*lazy(X, y)).estimator_
        assert model.get_params()["learning_rate"] == given["learning_rate"]
        assert np.linalg.norm(model.coef_) > np.linalg.norm(mean.coef_)


@pytest.mark.parametrize("given", [X, sparse.csr_matrix(X)], ids=["dense", "sparse"])
def test_data_in_memory_are_cut(given):
    model = DistributedOnline(ImplicitGDRegressor(), n_shards=3).fit(given, y)
    even = DistributedOnline(ImplicitGDRegressor()).fit(*lazy(X, y, chunks=(40, 40, 40)))
    assert_allclose(model.estimator_.coef_, even.estimator_.coef_, rtol=1e-12)
    assert isinstance(model.predict(given), np.ndarray)
    assert DistributedOnline(ImplicitGDRegressor()).fit(given, y).n_shards_ == 1


def test_one_shard_in_one_round_is_one_pass():
    model = DistributedOnline(ImplicitGDRegressor(), n_rounds=1).fit(X, y)
    assert_allclose(model.estimator_.coef_, ImplicitGDRegressor().partial_fit(X, y).coef_, rtol=1e-14)


def test_only_where_shards_end_matters():
    model = DistributedOnline(ImplicitGDRegressor(), n_shards=2).fit(*lazy(X, y))  # of 50 and 70 rows
    other = DistributedOnline(ImplicitGDRegressor()).fit(*lazy(X, y, chunks=(50, 70)))
    assert_array_equal(model.estimator_.coef_, other.estimator_.coef_)


def test_statistics_are_added_up_in_one_round():
    model = DistributedOnline(SUMS, n_rounds=5).fit(*lazy(X, y))
    assert_allclose(model.estimator_.coef_, clone(SUMS).fit(X, y).coef_, rtol=1e-10)
    assert model.n_rounds_ == 1
    density = DistributedOnline(OnlineGaussian()).fit(lazy(X))
    assert_allclose(density.estimator_.covariance_, OnlineGaussian().fit(X).covariance_, rtol=1e-10)
    assert_allclose(density.score_samples(lazy(X)).compute(), density.estimator_.score_samples(X))
    assert density.score(lazy(X)) == pytest.approx(density.estimator_.score(X))


def test_limited_columns_in_any_units_are_added_up_nearly():
    units, origin = np.array([1.0, 1e-6, 1e6, 1.0]), np.array([0.0, 1.0, 1e9, -50.0])
    model = DistributedOnline(ForwardRegressor()).fit(*lazy(X * units + origin, y + 7.0)).estimator_
    once = ForwardRegressor(shuffle=False).fit(X * units + origin, y + 7.0)
    assert_allclose(model.coef_ * units, once.coef_ * units, atol=0.05)  # each shard limits its first rows by itself
    assert_allclose(model.mean_ / units, once.mean_ / units, atol=0.05)
    assert_allclose(model.scale_, once.scale_, rtol=0.05)
    assert model.t_ == once.t_ and model.score(X * units + origin, y + 7.0) > 0.99


@pytest.mark.parametrize("targets", [y, np.column_stack([y, X[:, 0] - 3.0])], ids=["one target", "two targets"])
def test_intercepts_without_a_penalty_are_added_up(targets):
    weights = np.r_[np.zeros(40), rng.uniform(0.5, 2.0, size=80)]  # the first shard does not determine the intercept
    free = clone(SUMS).set_params(penalize_intercept=False)
    for given in ([], [weights]):
        mixed = DistributedOnline(free).fit(*lazy(X, targets + 5.0, *given))
        once = clone(free).fit(X, targets + 5.0, *given)
        for name in ("coef_", "intercept_", "noise_variance_"):
            assert_allclose(getattr(mixed.estimator_, name), getattr(once, name), rtol=1e-10)
        assert mixed.estimator_.t_ == once.t_
        assert_allclose(mixed.predict(X), once.predict(X), rtol=1e-10)


def test_sequential_is_the_loop():
    model = DistributedOnline(SGDRegressor(shuffle=False), mode="sequential", n_rounds=2).fit(*lazy(X, y))
    loop = SGDRegressor(shuffle=False)
    for _ in range(2):
        for s in shards():
            loop.partial_fit(X[s], y[s])
    assert_array_equal(model.estimator_.coef_, loop.coef_)
    classifier = DistributedOnline(ForwardClassifier(), mode="sequential", n_rounds=1).fit(*lazy(X, labels))
    assert_array_equal(classifier.estimator_.coef_, ForwardClassifier(shuffle=False).fit(X, labels).coef_)


@pytest.mark.parametrize("persist", [True, False])
def test_chunks_are_made_once_or_in_each_round(persist):
    made = []

    def make(block):
        if block.size:
            made.append(len(block))
        return block

    blocks = lazy(X).map_blocks(make, dtype=float, meta=np.empty((0, 4)))
    DistributedOnline(ImplicitGDRegressor(), n_rounds=3, persist=persist).fit(blocks, lazy(y))
    assert len(made) == (4 if persist else 4 + 1 + 3 * 4)


def test_classes_that_a_shard_lacks_are_found():
    order = np.argsort(labels, kind="stable")
    model = DistributedOnline(MirrorDescentClassifier(eta0=0.1), n_rounds=3).fit(*lazy(X[order], labels[order]))
    assert model.classes_.tolist() == ["a", "b", "c"]
    given = DistributedOnline(MirrorDescentClassifier(eta0=0.1), n_rounds=3)
    given.fit(*lazy(X[order], labels[order]), classes=["a", "b", "c"])
    assert_array_equal(given.estimator_.coef_, model.estimator_.coef_)


def test_weights_of_rows_are_those_of_shards():
    weights = rng.integers(0, 3, size=120).astype(float)
    model = DistributedOnline(SUMS).fit(*lazy(X, y, weights))
    assert_allclose(model.estimator_.coef_, clone(SUMS).fit(X, y, weights).coef_, rtol=1e-10)
    with pytest.raises(ValueError, match="All sample_weight are zero"):
        DistributedOnline(ForwardRegressor()).fit(*lazy(X, y, 0 * weights))
    for wrong, match in ((-1.0, "sample_weight: -1 at row 0"), (np.nan, r"NaN \(row 0\)")):
        with pytest.raises(ValueError, match=match) as error:
            DistributedOnline(ForwardRegressor()).fit(*lazy(X, y, np.full(120, wrong)))
        assert error.value.__notes__ == ["This was shard 0 of 4, at the start."]


def test_what_the_model_says_of_dask_collections_is_lazy():
    model = DistributedOnline(MirrorDescentClassifier(), n_rounds=1).fit(*lazy(X, labels))
    for name, shape in (("predict", (120,)), ("predict_proba", (120, 3)), ("decision_function", (120, 3))):
        said = getattr(model, name)(lazy(X))
        assert dask.is_dask_collection(said) and said.shape == shape and said.chunks[0] == LENGTHS
        assert_array_equal(said.compute(), getattr(model.estimator_, name)(X))
    assert model.score(*lazy(X, labels)) == model.score(X, labels) == model.estimator_.score(X, labels)
    metric = DistributedOnline(LogDetMetricLearner(random_state=0), n_rounds=1)
    mapped = metric.fit_transform(*lazy(X, labels))
    assert_allclose(mapped.compute(), metric.estimator_.transform(X), rtol=1e-12)
    assert not hasattr(metric, "predict_proba") and not hasattr(model, "transform")


def test_data_frames_keep_their_names():
    dd = pytest.importorskip("dask.dataframe")

    frame = pd.DataFrame(X, columns=list("pqrs")).assign(y=y)
    lazy_frame = dd.from_pandas(frame, npartitions=4)
    rows = lazy_frame[list("pqrs")]
    model = DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(rows, lazy_frame["y"])
    assert model.feature_names_in_.tolist() == list("pqrs")
    ends = [len(part) for part in lazy_frame.partitions]
    same = DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(*lazy(X, y, chunks=tuple(ends)))
    assert_array_equal(model.estimator_.coef_, same.estimator_.coef_)
    assert_array_equal(model.predict(rows).compute(), model.predict(frame[list("pqrs")]))
    unknown = DistributedOnline(ImplicitGDRegressor(), n_rounds=2).fit(rows.values, lazy_frame["y"].values)
    assert_array_equal(unknown.estimator_.coef_, model.estimator_.coef_)
    in_memory = DistributedOnline(ImplicitGDRegressor(), n_shards=2).fit(frame[list("pqrs")], frame["y"])
    assert in_memory.feature_names_in_.tolist() == list("pqrs")


def test_columns_that_only_some_shards_have_are_refused():
    frame = pd.DataFrame(X, columns=list("pqrs"))
    model = DistributedOnline(ForwardRegressor(handle_new_features="add"), n_shards=2).partial_fit(frame[["p"]], y)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"must have the 1 features with which .* Shard 0 of 2 \(rows 0 to 59\) has 4"):
        model.partial_fit(frame, y)
    assert pickle.dumps(model) == before


def test_the_score_of_quantiles_is_that_of_rows_in_memory():
    several = MirrorDescentRegressor(loss=QuantileLoss([0.2, 0.8]), divergence="squared_euclidean")
    model = DistributedOnline(several, mixing="mean", n_rounds=1).fit(*lazy(X, y))
    assert model.score(*lazy(X, y)) == pytest.approx(model.score(X, y))


def test_sparse_chunks_and_columns_in_chunks():
    dense = DistributedOnline(ImplicitGDRegressor()).fit(*lazy(X, y))
    rows = lazy(X).map_blocks(sparse.csr_matrix, meta=sparse.csr_matrix((0, 4)))
    model = DistributedOnline(ImplicitGDRegressor()).fit(rows, lazy(y))
    assert_allclose(model.estimator_.coef_, dense.estimator_.coef_, rtol=1e-12)
    assert_allclose(model.predict(rows).compute(), dense.predict(X), rtol=1e-12)
    columns = DistributedOnline(ImplicitGDRegressor()).fit(da.from_array(X, chunks=(LENGTHS, (3, 1))), lazy(y))
    assert_array_equal(columns.estimator_.coef_, dense.estimator_.coef_)


def test_empty_chunks_are_passed_over_and_empty_shards_refused():
    chunks = (40, 0, 10, 30, 40)
    model = DistributedOnline(ImplicitGDRegressor(), n_shards=2).fit(*lazy(X, y, chunks=chunks))
    assert model.estimator_.t_ == 5 * 120
    assert model.predict(lazy(X, chunks=chunks)).compute().shape == (120,)
    with pytest.raises(ValueError, match=r"Shard 1 must have rows; got none, in chunks 1 to 1 of X"):
        DistributedOnline(ImplicitGDRegressor()).fit(*lazy(X, y, chunks=chunks))


@pytest.mark.parametrize(
    "given, message",
    [
        (lambda: (lazy(X), lazy(y, chunks=(60, 60))), "y must have as many row chunks as X, 4; got 2"),
        (lambda: (lazy(X), lazy(y, chunks=(30, 20, 30, 40))), "y must have the row chunks of X; chunk 0 has 30 rows"),
        (lambda: (lazy(X), y), "must be dask collections together"),
        (lambda: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda: (lazy(X)[:, :, None], lazy(y)), "X has 3 dimensions"),
        (lambda: (lazy(X)[lazy(X)[:, 0] > 0], lazy(y)), "y must have the row chunks of X; chunk 0 has 40 rows"),
    ],
)
def test_data_that_do_not_match_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        DistributedOnline(ImplicitGDRegressor()).fit(*given())


def test_wrong_parameters_are_refused():
    with pytest.raises(ValueError, match="n_shards must be at most the number of chunks of X, 4; got 5"):
        DistributedOnline(ImplicitGDRegressor(), n_shards=5).fit(*lazy(X, y))
    with pytest.raises(ValueError, match="n_shards must be at most the number of rows"):
        DistributedOnline(ImplicitGDRegressor(), n_shards=121).fit(X, y)
    with pytest.raises(ValueError, match="mode"):
        DistributedOnline(ImplicitGDRegressor(), mode="both").fit(X, y)
    with pytest.raises(TypeError, match="no run has the mean of several wealths"):
        DistributedOnline(ScaleInvariantRegressor()).fit(X, y)
    with pytest.raises(TypeError, match="Use mode='sequential'"):
        DistributedOnline(SGDRegressor()).fit(X, y)
    with pytest.raises(TypeError, match="track_regret=True and NormalizedAdaGrad"):
        DistributedOnline(MirrorDescentRegressor(track_regret=True)).fit(X, y)


def test_an_error_names_the_shard_and_leaves_the_model():
    model = DistributedOnline(ImplicitGDRegressor(), n_rounds=1).fit(*lazy(X, y))
    before = model.estimator_
    bad = y.copy()
    bad[45] = np.nan
    with pytest.raises(ValueError, match="NaN") as error:
        model.fit(*lazy(X, bad))
    assert error.value.__notes__ == ["This was shard 1 of 4 (rows 40 to 49), in round 0."]
    assert model.estimator_ is before
    with pytest.raises(ValueError, match="NaN") as error:
        clone(model).set_params(n_shards=2).fit(*lazy(X, bad))
    assert error.value.__notes__ == [
        "Its row 0 is row 40 of the shard.",
        "This was shard 0 of 2 (rows 0 to 49), in round 0.",
    ]


# --- rounds one by one ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["mixing", "sequential"])
@pytest.mark.parametrize("targets", [y, labels], ids=["regressor", "classifier"])
def test_rounds_one_by_one_are_a_fit(mode, targets, learned):
    kind = MirrorDescentRegressor if targets is y else MirrorDescentClassifier
    first = {} if targets is y else {"classes": ["a", "b", "c"]}
    learner = kind(divergence="squared_euclidean", learning_rate="sqrt", standardize=True, track_regret=True)
    whole = DistributedOnline(learner, n_rounds=3, mode=mode).fit(*lazy(X, targets))
    model = DistributedOnline(learner, mode=mode).partial_fit(*lazy(X, targets), **first)
    model.partial_fit(*lazy(X, targets), **first).partial_fit(*lazy(X, targets))
    assert learned(model.estimator_) == learned(whole.estimator_)
    assert (model.n_rounds_, model.n_shards_, model.estimator_.t_) == (3, 4, 360)
    u = X[0] if targets is y else X[:3]
    assert_array_equal(model.regret_certificate(u), whole.regret_certificate(u))


def test_statistics_of_more_rows_are_added_up():
    model = DistributedOnline(SUMS).partial_fit(*lazy(X[:60], y[:60], chunks=(30, 30)))
    model.partial_fit(X[60:], y[60:])
    assert_allclose(model.estimator_.coef_, clone(SUMS).fit(X, y).coef_, rtol=1e-10)
    assert (model.n_rounds_, model.n_shards_) == (2, 1)


def test_an_error_in_a_round_leaves_the_model():
    model = DistributedOnline(ImplicitGDRegressor(track_regret=True)).partial_fit(*lazy(X, y))
    before = pickle.dumps(model)
    for rows, targets, message in (
        (X, np.where(np.arange(120) == 45, np.nan, y), "NaN"),
        (X[:, :3], y, "3 features"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(*lazy(rows, targets))
    with pytest.raises(ValueError, match="All sample_weight are zero"):
        model.partial_fit(X, y, np.zeros(120))
    assert pickle.dumps(model) == before
    classifier = DistributedOnline(MirrorDescentClassifier())
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        classifier.partial_fit(*lazy(X, labels))
    classifier.partial_fit(*lazy(X, labels), classes=["a", "b", "c"])
    with pytest.raises(ValueError, match="is not the same as on the first call to partial_fit"):
        classifier.partial_fit(*lazy(X, labels), classes=["a", "b"])
    growing = DistributedOnline(MirrorDescentClassifier(handle_unknown="add"))
    with pytest.raises(ValueError, match=r"classes must be passed .* also with handle_unknown='add'"):
        growing.partial_fit(*lazy(X, labels))
    assert growing.set_params(mode="sequential").partial_fit(*lazy(X, labels)).classes_.tolist() == ["a", "b", "c"]


# --- regret -----------------------------------------------------------------------------------------------------------


def squared(w):
    return ((X @ w - y) ** 2).sum() / 2


@pytest.mark.parametrize("mixing", ["mean", "scaled"])
@pytest.mark.parametrize(
    "learner",
    [
        EGRegressor(total=4.0, learning_rate="constant", eta0=0.02),
        ImplicitGDRegressor(learning_rate="constant", eta0=0.05),
        MirrorDescentRegressor(divergence="p_norm", penalty="l1", alpha=0.01, learning_rate="constant", eta0=0.05),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_the_regret_of_every_round_is_below_its_bound(learner, mixing):
    """Rows sorted by the target: each shard wants another model."""
    order, u = np.argsort(y), np.array([1.0, -2.0, 0.5, 0.0])
    learner = clone(learner).set_params(track_regret=True)
    model, alone = DistributedOnline(learner, n_shards=4, mixing=mixing), clone(learner)
    rate, bounds = learner.eta0 * (4 if mixing == "scaled" else 1), []
    for r in range(1, 6):
        model.partial_fit(X[order], y[order])
        regret, bound = model.cumulative_loss_ - r * squared(u), model.regret_certificate(u) * 4 / rate
        assert regret <= bound
        assert_allclose(model.weighted_loss_, rate / 4 * model.cumulative_loss_, rtol=1e-10)
        bounds.append(bound)
    assert bounds[-1] != bounds[0]
    # one shard in one round is a run; so is a mode in which shards follow one another
    alone.partial_fit(X, y)
    for one in (
        DistributedOnline(learner, n_rounds=1).fit(X, y),
        DistributedOnline(learner, n_rounds=1, mode="sequential").fit(*lazy(X, y)),
    ):
        assert_allclose(one.regret_certificate(u, 0.3), alone.regret_certificate(u, 0.3), rtol=1e-9)


def test_shards_and_rows_count_by_their_weights():
    weights = np.r_[np.zeros(30), rng.uniform(0.0, 2.0, size=90)]
    learner = EGRegressor(weights="simplex", learning_rate="constant", eta0=0.02, track_regret=True)
    model = DistributedOnline(learner, n_rounds=3, mixing="mean").fit(*lazy(X, y, weights))
    u = np.full(4, 0.25)
    left, shares = 0.0, [weights[s].sum() / weights.sum() for s in shards()]
    for s, share in zip(shards(), shares, strict=True):
        left += 3 * share * 0.02 * (weights[s] @ (X[s] @ u - y[s]) ** 2) / 2
    assert model.weighted_loss_ - left <= model.regret_certificate(u)


def test_checkpoints_and_pickles_keep_the_certificate(tmp_path):
    learner, u = ImplicitGDRegressor(learning_rate="constant", track_regret=True), np.ones(4)
    settings = {"checkpoint": tmp_path / "model.zip", "mixing": "mean"}
    whole = DistributedOnline(learner, n_rounds=4, mixing="mean").fit(*lazy(X, y, chunks=(60, 60)))
    DistributedOnline(learner, n_rounds=2, **settings).fit(*lazy(X, y, chunks=(60, 60)))
    resumed = DistributedOnline(learner, n_rounds=4, **settings).fit(*lazy(X, y, chunks=(60, 60)))
    for model in (resumed, pickle.loads(pickle.dumps(whole)), load_model(tmp_path / "model.zip")):
        assert model.regret_certificate(u, 0.5) == whole.regret_certificate(u, 0.5)
        assert model.weighted_loss_ == whole.weighted_loss_


def test_what_has_no_certificate_says_why():
    model = DistributedOnline(ImplicitGDRegressor(), n_rounds=1)
    for ask in (lambda: model.regret_certificate(X[0]), lambda: model.cumulative_loss_, lambda: model.weighted_loss_):
        with pytest.raises(NotFittedError):
            ask()
    with pytest.raises(ValueError, match="no regret certificate of this run; set track_regret=True"):
        model.fit(*lazy(X, y)).regret_certificate(X[0])
    sums = DistributedOnline(ForwardRegressor()).fit(*lazy(X, y))
    assert not hasattr(sums, "regret_certificate")
    with pytest.raises(AttributeError) as error:
        sums.regret_certificate(X[0])
    assert "are sums, which are added up in one round instead of averaged" in str(error.value.__cause__)
    assert not hasattr(DistributedOnline(SGDRegressor(), mode="sequential"), "regret_certificate")
    matrices = DistributedOnline(LogDetMetricLearner(track_regret=True, random_state=0), n_shards=2, n_rounds=2)
    assert np.isfinite(matrices.fit(X, labels).regret_certificate(np.eye(4)))


def test_transformed_chunks_are_arrays_also_under_set_output():
    pytest.importorskip("pandas")
    learner = LogDetMetricLearner(random_state=0)
    rows, labels = da.from_array(X, chunks=(40, -1)), da.from_array((y > 0).astype(int), chunks=40)
    plain = DistributedOnline(learner, n_rounds=1).fit(rows, labels).transform(rows).compute()
    framed = DistributedOnline(clone(learner).set_output(transform="pandas"), n_rounds=1).fit(rows, labels)
    assert_array_equal(framed.transform(rows).compute(), plain)


def test_that_maximum_entropy_cannot_be_mixed_is_said():
    with pytest.raises(TypeError, match="MaxEntDensity cannot be mixed from parallel runs: it solves"):
        DistributedOnline(MaxEntDensity()).fit(X)


def test_copies_have_no_client():
    model = DistributedOnline(ImplicitGDRegressor(), n_rounds=1).fit(X, y)
    model.client = object()
    assert "client" not in model.get_params()
    for other in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.client is None
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [ImplicitGDRegressor, MirrorDescentClassifier, LogDetMetricLearner])
def test_scikit_learn_checks(kind):
    learner = kind(random_state=0)
    results = check_estimator(DistributedOnline(learner, n_rounds=2), on_fail=None, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    # compares shuffled rows: what a learner keeps of a stream depends on its order
    assert failed <= {f"check_sample_weight_equivalence_on_{rows}_data" for rows in ("dense", "sparse")}
