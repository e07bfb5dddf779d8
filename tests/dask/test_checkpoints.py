"""DistributedOnline resumes from its checkpoints, and refuses those of other runs."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("dask", reason="needs the extra dask: pip install onlinebregman[dask]")

from onlinebregman import (
    ForwardRegressor,
    ImplicitGDRegressor,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
)
from onlinebregman.dask import DistributedOnline
from onlinebregman.persistence import load_model

rng = np.random.default_rng(0)
X = rng.normal(size=(120, 4))
y = X @ [1.0, -2.0, 0.5, 0.0] + 0.1 * rng.normal(size=120)
labels = np.array(["a", "b", "c"])[(X[:, 0] > 0.3).astype(int) + (X[:, 1] > 0)]
in_four = partial(DistributedOnline, n_shards=4)


def test_a_fit_goes_on_from_its_checkpoint_bit_for_bit(tmp_path, learned):
    file, data = tmp_path / "model.zip", (X, labels)
    estimator = MirrorDescentClassifier(standardize=True, divergence="squared_euclidean")
    whole = in_four(estimator, n_rounds=4).fit(*data)
    in_four(estimator, n_rounds=2, checkpoint=file).fit(*data)
    assert load_model(file, return_extra=True)[1]["rounds"] == 2
    resumed = in_four(estimator, n_rounds=4, checkpoint=file).fit(*data)
    assert learned(resumed.estimator_) == learned(whole.estimator_) and resumed.n_rounds_ == 4
    for other, word in (
        (in_four(clone(estimator).set_params(eta0=0.3), checkpoint=file), "estimator"),
        (in_four(estimator, mixing="mean", checkpoint=file), "mixing"),
        (DistributedOnline(estimator, n_shards=2, checkpoint=file), "rows of shards"),
    ):
        with pytest.raises(ValueError, match=f"must be of the same {word}"):
            other.fit(*data)


def test_a_checkpoint_of_an_estimator_with_a_random_generator_is_resumed(tmp_path, learned):
    estimators = [ImplicitGDRegressor(random_state=np.random.RandomState(0)) for _ in range(3)]
    for estimator, n_rounds in zip(estimators, (2, 3), strict=False):
        model = in_four(estimator, n_rounds=n_rounds, checkpoint=tmp_path / "m.zip").fit(X, y)
    whole = in_four(estimators[2], n_rounds=3).fit(X, y)
    assert learned(model.estimator_) == learned(whole.estimator_)


def test_a_checkpoint_of_more_rounds_is_refused(tmp_path):
    for estimator, last in ((ImplicitGDRegressor(), 4), (ForwardRegressor(), 1)):
        file = tmp_path / f"{last}.zip"
        made = in_four(estimator, n_rounds=4, checkpoint=file).fit(X, y)
        again = in_four(estimator, n_rounds=last, checkpoint=file).fit(X, y)  # nothing left to learn
        assert made.n_rounds_ == again.n_rounds_ == last
    model = in_four(ImplicitGDRegressor(), n_rounds=3, checkpoint=tmp_path / "4.zip")
    with pytest.raises(ValueError, match=r"has 4 rounds already, more than n_rounds=3: set n_rounds to at least 4, or"):
        model.fit(X, y)
    assert not hasattr(model, "estimator_")


def test_a_checkpoint_of_other_parameters_that_an_abbreviated_repr_does_not_show_is_refused(tmp_path):
    starts = np.zeros((2, 2000))
    starts[1, 1000] = 5.0
    rows = np.ones((4, 2000)), np.ones(4)
    first, second = (
        in_four(MirrorDescentRegressor(init=start), n_rounds=1, checkpoint=tmp_path / "m.zip") for start in starts
    )
    first.fit(*rows)
    with pytest.raises(ValueError, match="must be of the same parameters"):
        second.fit(*rows)
