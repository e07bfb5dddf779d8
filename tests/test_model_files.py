"""Model files contain arrays and names but no code; damaged files are refused."""

import importlib
import json
import os
import zipfile

import joblib
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
    ParameterFreeRegressor,
)
from onlinebregman.losses import Loss
from onlinebregman.persistence import load_model, save_model
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


@pytest.mark.parametrize(
    "model",
    [
        *(SGDClassifier(loss=loss) for loss in ("hinge", "squared_hinge", "perceptron", "log_loss", "modified_huber")),
        *(SGDClassifier(loss=loss) for loss in ("squared_error", "huber", "squared_epsilon_insensitive")),
        Perceptron(),
        SGDOneClassSVM(),
        MLPClassifier((3,), max_iter=5),
        MLPRegressor(hidden_layer_sizes=3, solver="sgd", max_iter=5),
        Birch(n_clusters=2, threshold=0.1),
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


def test_a_model_whose_arrays_are_files_is_written(file, tmp_path):
    model = ForwardClassifier().partial_fit(X[:30], y[:30] > 0, classes=[0, 1])
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    assert type(mapped.classes_) is np.memmap
    save_model(mapped, file)
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


FOREIGN = [
    "os:system",
    "builtins:eval",
    "builtins:open",
    "builtins:type",
    "builtins:bytearray",
    "subprocess:Popen",
    "numpy:memmap",
    "numpy:ndarray",
    "numpy:load",
    "numpy:vectorize",
    "numpy:dtypes.StrDType",
    "scipy.sparse:csr_array",
    "sklearn.utils:Bunch",
    "sklearn.base:np.memmap",
    "sklearn.base:np.float64",
    "sklearn.tree._tree:Tree",
    "sklearn.neighbors._kd_tree:KDTree64",
    "sklearn.base:warnings.warn",
    "onlinebregman.persistence:os",
    "onlinebregman.persistence:Path",
]


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("how", ["new", "call", "class"])
def test_a_file_cannot_name_what_is_called(file, name, how):
    save_model(MirrorDescentRegressor(), file)
    rewritten(file, lambda tree: tree.update(model={"number": 0, how: name, "args": []}))
    with pytest.raises(ValueError, match="not trusted"):
        load_model(file)


@pytest.mark.parametrize("name", ["builtins:str", "builtins:int", "numpy:float64", "numpy:void", "numpy:generic"])
def test_types_of_numbers_and_text_are_values_and_not_called(file, name):
    save_model(MirrorDescentRegressor(), file)
    module, _, attribute = name.partition(":")
    rewritten(file, lambda tree: tree.update(model={"number": 0, "class": name}))
    assert load_model(file) is getattr(importlib.import_module(module), attribute)
    for how in ("new", "call"):
        rewritten(file, lambda tree, how=how: tree.update(model={"number": 0, how: name, "args": []}))
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
