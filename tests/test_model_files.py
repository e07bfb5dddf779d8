"""Model files contain arrays and names but no code; damaged files are refused."""

import json
import os
import zipfile

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from onlinebregman import ForwardClassifier, LogDetMetricLearner, MirrorDescentRegressor, ParameterFreeRegressor
from onlinebregman.losses import Loss
from onlinebregman.persistence import load_model, save_model
from onlinebregman.pipeline import make_online_pipeline

rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 4)), rng.normal(size=60)


class OwnLoss(Loss):
    """(a - y)^2."""

    def value(self, a, y):
        return np.subtract(a, y) ** 2

    def derivative(self, a, y):
        return 2 * np.subtract(a, y)

    def link(self, a):
        return 2 * np.asarray(a)

    def link_derivative(self, a):
        return np.full_like(a, 2.0)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.zip"


def rewritten(file, change):
    """The file with another tree."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    tree = json.loads(parts["model.json"])
    change(tree)
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, json.dumps(tree) if name == "model.json" else data)


def test_a_pipeline_with_a_foreign_step_goes_on_with_the_same_numbers(file):
    model = make_online_pipeline(StandardScaler(), ForwardClassifier()).partial_fit(X[:30], y[:30] > 0, classes=[0, 1])
    save_model(model, file)
    again = load_model(file)
    for each in (model, again):
        each.partial_fit(X[30:], y[30:] > 0)
    assert np.array_equal(model.predict_proba(X), again.predict_proba(X))


def test_what_was_one_object_is_one_object_again(file):
    model = ParameterFreeRegressor().partial_fit(X, y)
    save_model(model, file)
    again = load_model(file)

    def shared(model):
        """For each member the first one with the same map, and the first one whose map has the same bins."""
        maps = [learner.row_map for learner in model._learner.learners]
        bins = [getattr(row_map, "bins", None) for row_map in maps]
        return [list(map(id, each)).index(id(one)) for each in (maps, bins) for one in each]

    assert shared(again) == shared(model) and len(set(shared(model))) < 10


def test_what_is_kept_beside_the_model_comes_back(file):
    extra = {"rows": 2**70, "where": ("a", [1.5, np.inf]), "at": np.arange(3), "when": np.float64(2.0), 3: {4, 5}}
    save_model(MirrorDescentRegressor(), file, extra=extra)
    model, back = load_model(file, return_extra=True)
    assert not hasattr(model, "coef_")
    assert np.array_equal(back.pop("at"), extra.pop("at")) and back == extra and type(back["when"]) is np.float64


def test_classes_of_ones_own_are_written_and_read_if_they_are_trusted(file):
    model = MirrorDescentRegressor(loss=OwnLoss(), update="explicit").partial_fit(X, y)
    save_model(model, file)
    with pytest.raises(ValueError, match="OwnLoss, which is not trusted"):
        load_model(file)
    assert np.array_equal(load_model(file, trusted=[OwnLoss]).coef_, model.coef_)


@pytest.mark.parametrize(
    "name", ["os:system", "builtins:eval", "sklearn.utils:Bunch", "subprocess:Popen", "onlinebregman.persistence:os"]
)
def test_a_file_cannot_name_what_is_called(file, name):
    save_model(MirrorDescentRegressor(), file)
    rewritten(file, lambda tree: tree["model"].update({"new": name}))
    with pytest.raises(ValueError, match="not trusted"):
        load_model(file)


def test_a_file_of_another_format_is_refused(file):
    save_model(MirrorDescentRegressor(), file)
    rewritten(file, lambda tree: tree.update(format=99))
    with pytest.raises(ValueError, match="is of format 99; this version reads format 1"):
        load_model(file)


def test_what_only_another_version_has_is_said_to_be_of_that_version(file):
    save_model(MirrorDescentRegressor(), file)
    for name in ("onlinebregman.linear_model:NoSuchRegressor", "onlinebregman.no_such_module:Regressor"):
        rewritten(file, lambda tree, name=name: tree["model"].update({"new": name}))
        with pytest.raises(ValueError, match=r"model\.zip is damaged: .*no_such_module|NoSuchRegressor"):
            load_model(file)
    rewritten(file, lambda tree: tree.update(onlinebregman="99.0"))
    with pytest.raises(ValueError, match=r"was written by onlinebregman 99\.0, and cannot be read by"):
        load_model(file)


def test_flipped_bits_are_noticed(file):
    """For every byte: the file is refused, or the model is unchanged (some bytes of an archive have no meaning)."""
    model = LogDetMetricLearner(random_state=0).partial_fit(X, y > 0)
    save_model(model, file)
    whole, refused = file.read_bytes(), 0
    for place in np.random.default_rng(1).integers(len(whole), size=300):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            assert np.array_equal(load_model(file).components_, model.components_)
        except ValueError as error:
            refused += "damaged" in str(error)
    assert refused > 200
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="damaged"):
            load_model(file)


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_crash_leaves_the_old_file(file, monkeypatch, step):
    save_model(MirrorDescentRegressor(eta0=1.0), file)

    def crash(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, step, crash)
    with pytest.raises(OSError, match="no space"):
        save_model(MirrorDescentRegressor(eta0=2.0), file)
    assert load_model(file).eta0 == 1.0 and list(file.parent.iterdir()) == [file]


def test_functions_are_refused(file):
    with pytest.raises(TypeError, match=r"extra\.f is .*cannot be saved as numbers and names"):
        save_model(MirrorDescentRegressor(), file, extra={"f": print})
    assert not file.exists()
