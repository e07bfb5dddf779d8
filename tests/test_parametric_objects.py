"""Losses, divergences, penalties, constraints and schedules: they cannot change, and are compared by parameters."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from onlinebregman import constraints, divergences, losses, penalties, schedules
from onlinebregman.constraints import Box, UpperBound
from onlinebregman.divergences import PNorm, SimplexEntropy, SquaredEuclidean, VonNeumann
from onlinebregman.losses import HuberLoss, QuantileLoss, SquaredLoss
from onlinebregman.penalties import L1, ElasticNet
from onlinebregman.schedules import Constant, InverseScaling, Optimal, Schedule


class Own(Schedule):
    def __init__(self, rates):
        self.rates = rates


OBJECTS = [
    lambda x: HuberLoss(x),
    lambda x: QuantileLoss([0.25, x / 4]),
    lambda x: PNorm(x + 2),
    lambda x: SimplexEntropy(x),
    lambda x: VonNeumann(x),
    lambda x: L1(x),
    lambda x: ElasticNet(x, 0.5),
    lambda x: Box([0.0, 0.0], [1.0, x]),
    lambda x: UpperBound(x),
    lambda x: Constant(x),
    lambda x: InverseScaling(x, 0.5),
    lambda x: Optimal(x),
    lambda x: Constant(x).scaled(3.0),
    lambda x: Own([x, x]),
    lambda x: Own(np.array([x, x])),
    lambda x: Own({"rate": x}),
]
NAMES = {"inf": np.inf, "array": np.array}
for module in (constraints, divergences, losses, penalties, schedules):
    NAMES |= vars(module)
COPIES = [copy.copy, copy.deepcopy, lambda made: clone(made, safe=False), lambda made: pickle.loads(pickle.dumps(made))]


@pytest.mark.parametrize("make", OBJECTS)
def test_objects_are_compared_by_their_parameters(make):
    assert make(2.0) == make(2) and hash(make(2.0)) == hash(make(2))
    assert make(2.0) != make(3.0)
    if not isinstance(getattr(make(2.0), "rates", None), dict):
        assert hash(make(2.0)) != hash(make(3.0))
    assert len({make(2.0), make(3.0), make(2.0)}) == 2


@pytest.mark.parametrize("make", OBJECTS[:12])
def test_objects_are_what_repr_says(make):
    assert eval(repr(make(2.0)), NAMES) == make(2.0)


@pytest.mark.parametrize("duplicate", [lambda made: made, *COPIES])
@pytest.mark.parametrize("make", [*OBJECTS, lambda x: SquaredLoss(), lambda x: SquaredEuclidean()])
def test_objects_cannot_change(make, duplicate):
    made = duplicate(make(2.0))
    assert made == make(2.0) and hash(made) == hash(make(2.0)) and repr(made) == repr(make(2.0))
    for name in (*vars(made), "more"):
        with pytest.raises(AttributeError, match=rf"{name} of .* cannot change; make a new {type(made).__name__}"):
            setattr(made, name, 3.0)
        with pytest.raises(AttributeError, match="cannot change"):
            delattr(made, name)
        if isinstance(value := vars(made).get(name), np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[0] = 3.0
    assert made == make(2.0)


def test_the_arrays_of_the_caller_stay_as_they_are():
    upper = np.ones(2)
    box = Box([0.0, 0.0], upper)
    upper[0] = 5.0
    assert box.upper.tolist() == [1.0, 1.0]


def test_constructors_show_their_parameters():
    assert list(inspect.signature(HuberLoss).parameters) == ["epsilon"]
    assert str(inspect.signature(SquaredLoss)) == "()"
