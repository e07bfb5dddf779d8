"""Model files of skops contain arrays and names but no code; damaged files are refused."""

import importlib
import json
import os
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import Birch
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import Perceptron, PoissonRegressor, SGDClassifier, SGDOneClassSVM, TweedieRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.utils import get_tags

from onlinebregman import (
    ForwardClassifier,
    LogDetMetricLearner,
    MirrorDescentClassifier,
    MirrorDescentRegressor,
    ParameterFreeClassifier,
    ParameterFreeRegressor,
)
from onlinebregman.losses import Loss
from onlinebregman.persistence import TRUSTED, load_model, save_model
from onlinebregman.pipeline import make_online_pipeline

rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 4)), rng.normal(size=60)


def dense(values):
    return values.toarray() if sparse.issparse(values) else values


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
        comment = archive.comment
    tree = json.loads(parts["schema.json"])
    change(tree)
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, json.dumps(tree) if name == "schema.json" else data)
        archive.comment = comment


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No such folder: .*missing'"):
        save_model(ForwardClassifier(), tmp_path / "missing" / "model.zip")


@pytest.mark.parametrize(
    "model",
    [
        *(SGDClassifier(loss=loss) for loss in ("hinge", "squared_hinge", "perceptron", "log_loss", "modified_huber")),
        *(SGDClassifier(loss=loss) for loss in ("squared_error", "huber", "squared_epsilon_insensitive")),
        Perceptron(),
        SGDOneClassSVM(),
        MLPClassifier((3,), max_iter=5),
        MLPRegressor(hidden_layer_sizes=3, solver="sgd", max_iter=5),
        PoissonRegressor(),
        TweedieRegressor(power=1.5, link="identity"),
        CalibratedClassifierCV(SGDClassifier(), cv=2),
        GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel()),
        OneHotEncoder(handle_unknown="ignore"),
        OrdinalEncoder(dtype=int, handle_unknown="use_encoded_value", unknown_value=-1),
        ColumnTransformer([("scaled", StandardScaler(), slice(0, 2))], remainder="passthrough"),
        MaxAbsScaler(),
    ],
    ids=repr,
)
def test_scikit_learns_estimators_are_read_and_go_on_with_the_same_numbers(model, file):
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    targets = np.abs(y) if is_regressor(model) else (y > 0).astype(int)
    model.fit(X, targets)
    for _ in range(2):
        save_model(model, file)
        again = load_model(file)
        for name in ("transform", "predict"):
            if hasattr(model, name):
                assert np.array_equal(*(dense(getattr(each, name)(X)) for each in (model, again)), equal_nan=True)
        if not hasattr(model, "partial_fit"):
            break
        for each in (model, again):
            each.partial_fit(X, targets)


@pytest.mark.parametrize("step", [HashingVectorizer(n_features=8), FeatureHasher(n_features=8, input_type="string")])
def test_pipelines_of_hashed_words_are_read(step, file):
    if get_tags(step).requires_fit and not hasattr(step, "partial_fit"):
        pytest.skip("scikit-learn 1.6 says that a FeatureHasher must be fitted, so that it is no step of a stream")
    words = np.array([["of", "a", "book"], ["b", "a", "c"]]).tolist()
    rows = [" ".join(each) for each in words] if isinstance(step, HashingVectorizer) else words
    model = make_online_pipeline(step, MirrorDescentClassifier()).partial_fit(rows, [0, 1], classes=[0, 1])
    save_model(model, file)
    assert np.array_equal(load_model(file).predict_proba(rows), model.predict_proba(rows))


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


def test_a_file_has_as_few_parts_with_many_classes(file):
    """A part for each of tens of thousands of compiled objects takes minutes."""

    def parts(n):
        model = ParameterFreeClassifier().partial_fit(X, np.arange(60) % n, classes=range(n))
        save_model(model, file)
        assert np.array_equal(load_model(file).predict_proba(X), model.predict_proba(X))
        return len(zipfile.ZipFile(file).namelist())

    assert parts(12) <= parts(3) < 40


def test_what_is_kept_beside_the_model_comes_back(file):
    extra = {"rows": 2**70, "where": ("a", [1.5, np.inf]), "at": np.arange(3), "when": np.float64(2.0), 3: {4, 5}}
    save_model(MirrorDescentRegressor(), file, extra=extra)
    model, back = load_model(file, return_extra=True)
    assert not hasattr(model, "coef_")
    assert np.array_equal(back.pop("at"), extra.pop("at")) and back == extra and type(back["when"]) is np.float64


def test_classes_of_ones_own_are_written_and_read_if_they_are_trusted(file):
    model = MirrorDescentRegressor(loss=OwnLoss(), update="explicit").partial_fit(X, y)
    save_model(model, file)
    with pytest.raises(ValueError, match=r"OwnLoss.*add them to `trusted`"):
        load_model(file)
    assert np.array_equal(load_model(file, trusted=[OwnLoss]).coef_, model.coef_)


LOSSES = ("sklearn._loss.loss", "sklearn.calibration")
FOREIGN = [
    "os:system",
    "builtins:eval",
    "builtins:type",
    "numpy:memmap",
    "numpy:ndarray",
    "numpy:dtypes.StrDType",
    "scipy.sparse:csr_array",
    "sklearn.utils:Bunch",
    "sklearn.base:warnings.warn",
    "onlinebregman.persistence:write_atomically",
    "onlinebregman.streams:fit_stream",
    "onlinebregman._kernels.learners.thread_pool:ThreadPool",
]


def node(loader, name):
    """A part of a file that says to look up a name, or also to call it."""
    module, _, attribute = name.partition(":")
    empty = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": []}
    return {"__class__": attribute, "__module__": module, "__loader__": loader, "content": empty}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("loader", ["ConstructorFromReduceNode", "ObjectNode", "TypeNode", "FunctionNode", "TupleNode"])
def test_a_file_cannot_name_what_is_called(file, name, loader):
    save_model(MirrorDescentRegressor(), file)
    content = {"content": []} if loader == "TupleNode" else {}
    rewritten(file, lambda tree: tree.update(node(loader, name) | content))
    with pytest.raises(ValueError, match=r"(?s)Untrusted types found in the file: .* If you trust them, add them to"):
        load_model(file)


def test_what_is_trusted_are_classes():
    """Of this package they only take values; no function and no module is trusted, and nothing that opens a file."""
    for name in TRUSTED:
        module, _, attribute = name.rpartition(".")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, type) and (name == f"{found.__module__}.{found.__qualname__}" or module in LOSSES)
    assert not any("streams" in name or "dask" in name or "datasets" in name for name in TRUSTED)


def test_a_file_of_the_last_release_is_said_to_be_one(file):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model.json", json.dumps({"format": 1, "onlinebregman": "0.2.0", "model": None}))
    with pytest.raises(ValueError, match=r"was written by onlinebregman 0\.2 or before, .* use that version, or learn"):
        load_model(file)


def test_what_only_another_version_has_is_said_to_be_of_that_version(file):
    save_model(MirrorDescentRegressor(), file)
    rewritten(file, lambda tree: tree["content"].update(content=5))
    with pytest.raises(ValueError, match=r"model\.zip is not a model, or damaged"):
        load_model(file)
    with zipfile.ZipFile(file, "a") as archive:
        archive.comment = b"99.0"
    with pytest.raises(ValueError, match=r"was written by onlinebregman 99\.0, and .* cannot read it"):
        load_model(file)


def test_keys_of_every_kind_come_back(file):
    model = MirrorDescentClassifier(class_weight={False: 1.0, True: 20.0}).partial_fit(X, y > 0, [False, True])
    extra = {"keys": {"1": 0, 1: 1, 2.5: 2, np.nan: 3, (1, "a"): 4, None: 5, b"\x00": 6, frozenset({1}): 7}}
    save_model(model, file, extra=extra)
    again, back = load_model(file, return_extra=True)
    assert repr(back) == repr(extra) and repr(again.class_weight) == repr(model.class_weight)


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
    for length in (0, 10, len(whole) // 2, len(whole) - 20):  # the last bytes tell the version
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


def test_what_has_no_name_is_refused(file):
    class Local:
        """Not at the top of a module."""

    for unnamed in (lambda: 0, Local(), sys.stderr):
        with pytest.raises(TypeError, match="MirrorDescentRegressor cannot be saved as numbers and names"):
            save_model(MirrorDescentRegressor(), file, extra={"f": unnamed})
    with pytest.raises(TypeError, match="Birch are not supported"):
        save_model(Birch(), file)
    assert not file.exists()


def test_without_skops_the_extra_is_named(file, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for call in (lambda: save_model(MirrorDescentRegressor(), file), lambda: load_model(file)):
        with pytest.raises(ImportError, match=r"requires skops.* 'onlinebregman\[files\]'"):
            call()
