"""What columns and pairs of columns contribute to the predictions of a mixture of linear models.

A row gives each member k a score s_k, a sum of terms: weight times value. The mixture's score is a sum as well,

    score = bias + sum_k W_k s_k,

with weights W_k that depend on the row, so that the terms of the members, times W_k, add up to it. The steps from the
members' scores to that of the mixture (see `stacked_mixers.pyx` and `stack.pyx`) are sums, and functions f(a) of one
number, which are written as a times the slope f(a) / a of the line from 0 (`_slope`):

* clipping. Steps from a number within the range have slopes from 0 to 1.
* the odds of a mixture of probabilities of two classes. P = sum_i w_i sigmoid(a_i) and log odds L of P are the same as

      tanh(L / 2) = sum_i w_i tanh(a_i / 2),    hence    L = sum_i w_i h(a_i) / h(L) a_i,    h(a) = tanh(a / 2) / a.

  Of two classes c, d among more, an expert's odds are mixed in proportion to v_i (p_ic + p_id).

Corrections by a memory (see `memory.pyx`) are steps of the same kinds, from the mixture's score and from what the
memory says, which is one more term.

Terms are divided by the analysis of variance of functions of independent columns: their mean goes to the bias, what
remains on average over all other columns to each column, and the rest to pairs, "trees" and "random_features".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_expit, ndtri
from sklearn.base import is_classifier
from sklearn.utils import Bunch

from .._kernels.rows.one_hot import OneHotMap
from .._kernels.rows.standardizer import Standardizer
from .._kernels.rows.thresholds import BINS, BINS_OF_PAIRS, ThresholdMap
from .._online.mixing import VOTE_POWER, VOTES, Combination, MixedClasses, MixedNumbers, Stage, log
from .._online.scores import Scores, forward_divisor
from .._online.types import MatrixLike
from .._online.validation import dense, read_only
from .._online.weights import HedgedMixin, check_one_output
from .._sklearn_compat import check_feature_names_in

Array = NDArray[np.float64]

_ROWS, _VALUES = 256, 1 << 23  # that are explained together: at most as many rows, and numbers of all members
_PER_SCORE = 16  # numbers besides the terms


class ExplainedMixin(HedgedMixin):
    """Mixtures of linear models whose predictions can be explained.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features_in_,)
        The share of each column in the variance of the predictions (of a classifier: of its probabilities; of a
        regressor: before the link), if columns were independent: half of the mean squared change of the prediction
        when the value of the column is replaced by another one (total-effect Sobol index), over the sum for all
        columns. Computed when it is read, from 256 rows that are drawn from what the model keeps of each column; all
        kinds of members count. Zeros for a model that predicts a constant. AttributeError on streams that began with
        sparse rows, unless members have `thresholds`, or with neither `thresholds` nor `standardize`, since nothing is
        known of the columns then.
    """

    def explain(self, X: MatrixLike) -> Bunch:
        """What columns and pairs of columns contribute to the prediction of each row.

        The contributions of a row add up to its score, up to rounding: of a regressor the prediction, before the link
        of the loss; of a classifier the log odds of the second class or, with three or more classes, the logarithm of
        each probability minus their mean. The bias is about the mean score, a column contributes the difference that
        its value makes on average over the other columns, a pair what both do beyond that; see :ref:`explanation`.

        Parameters
        ----------
        {X}

        Returns
        -------
        explanation : :class:`~sklearn.utils.Bunch`
            contributions : ndarray of shape (n_samples, n_terms), or (n_samples, n_terms, n_classes) with three or more
                classes. Of sparse rows a CSR array of shape (n_samples, n_terms), or a list of one for each class.

            terms : ndarray of str of shape (n_terms,)
                The names of the columns, then of the pairs "x0 x1" whose indicators members learn, then "memory", if
                the row before is known, "trees", if any have grown, and "random_features", if there are members with
                these, for the interactions that they learn, and "bias".

            pairs : ndarray of int of shape (n_pairs, 2)
                The columns of the pairs.

            scores : ndarray of shape (n_samples,) or (n_samples, n_classes)
                What contributions add up to.

        Raises
        ------
        ValueError
            If a member has update="aioli", whose scores are no sums, or there are several outputs, or one in a column
            of y, of shape (n_samples, 1).
        """
        check_one_output(self, ValueError)
        if not sparse.issparse(X):
            return self._explain_rows(self._read_rows(X))
        self._fitted_models()
        rows, parts, scores = self._query(X), [], []
        n = max(min(_ROWS, _VALUES // rows.shape[1]), 1)
        for start in range(0, rows.shape[0], n):
            part = self._explain_rows(dense(rows[start : start + n], np.float64))
            parts.append([sparse.csr_array(each) for each in np.atleast_3d(part.contributions).transpose(2, 0, 1)])
            scores.append(part.scores)
        of_classes = [sparse.csr_array(sparse.vstack(each)) for each in zip(*parts, strict=True)]
        part.update(contributions=of_classes if len(of_classes) > 1 else of_classes[0], scores=np.concatenate(scores))
        return part

    def _read_rows(self, X: MatrixLike) -> Array:
        """Rows as dense numbers, also instead of categories."""
        self._fitted_models()
        return np.ascontiguousarray(dense(self._query(X), np.float64))

    @np.errstate(over="ignore")  # squares of numbers far beyond those that were learned
    def _explain_rows(self, rows: Array) -> Bunch:
        """`explain`, of rows that were read."""
        predicted, terms = self._predict_validated(rows), Terms(self)
        if is_classifier(self):
            logs = log(predicted)
            scores = logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs - logs.mean(axis=1, keepdims=True)
        else:
            scores = predicted[:, 0]
        return Bunch(
            contributions=contributions(self, terms, rows),
            terms=terms.names(check_feature_names_in(self, None)),
            pairs=np.array(terms.pairs, dtype=np.intp).reshape(-1, 2),
            scores=scores,
        )

    @read_only
    def feature_importances_(self) -> np.ndarray:
        """The share of each column in the variance of the predictions, shape (n_features_in_,)."""
        check_one_output(self, AttributeError)
        return importances(self)


class Terms:
    """The terms of scores: of columns, pairs of columns, the memory, random features, and the bias."""

    def __init__(self, model: Any) -> None:
        self.members, self.n_features = model.estimators_, model.n_features_in_
        maps = [member._learner.row_map for member in self.members]
        pairs = {tuple(sorted(pair)) for each in maps if isinstance(each, ThresholdMap) for pair in each.pairs.tolist()}
        self.pairs: list[tuple[int, int]] = sorted(pairs)
        self.has_features = any(getattr(member._learner, "features", None) is not None for member in self.members)
        memory = model._fitted_mixer().memory
        self.has_memory = memory is not None and memory.knows
        self.memory = self.n_features + len(self.pairs)  # the place of its term
        self.has_trees = any(getattr(each, "grown", False) and len(each.bins.trees.nodes[0]) for each in maps)
        self.trees = self.memory + self.has_memory
        self.n = self.trees + self.has_trees + self.has_features + 1
        draw = sampler(model)
        rows = None if draw is None else np.column_stack([draw(j, SAMPLE) for j in range(self.n_features)])
        self._sample: Array | None = rows  # each column in order
        self._shares = np.zeros(0)

    def names(self, columns: np.ndarray) -> np.ndarray:
        """The names of the terms; pairs as in :class:`~sklearn.preprocessing.PolynomialFeatures`."""
        of_pairs = [f"{columns[first]} {columns[second]}" for first, second in self.pairs]
        others = ["memory"] * self.has_memory + ["trees"] * self.has_trees + ["random_features"] * self.has_features
        return np.array([*columns, *of_pairs, *others, "bias"], dtype=object)

    def of_member(self, member: Any, X: Array) -> Array:
        """The terms of a member's scores of dense rows, shape (n_rows, n_scores, n_terms)."""
        learner = member._learner
        terms = np.zeros((len(X), learner.n_scores, self.n))
        if isinstance(learner.row_map, ThresholdMap):
            self._add_indicators(learner, X, terms)
            return terms
        image, columns = _image(learner.row_map, X)
        sample = np.zeros((1, image.shape[1])) if self._sample is None else _image(learner.row_map, self._sample)[0]
        several = getattr(learner, "learners", None)  # one for each class, each with limits of its own
        parts = [member._scores(Scores.of_images)] if several is None else map(Scores.of_images, several)
        n = 0
        for scores in parts:
            z = scores.image(image)
            divisor = np.ones((1, 1))
            if scores.root is not None:
                divisor = forward_divisor(z, z.shape[1], scores.root)
            part = terms[:, n : n + len(scores.coef)]
            n += len(scores.coef)
            part[:, :, -1] = scores.intercept / divisor + (0.0 if scores.base is None else scores.base)
            if scores.features is None:
                means = scores.image(sample).mean(axis=0)
                _add(part, columns, (z - means)[:, np.newaxis] * scores.coef / divisor[:, np.newaxis])
                part[:, :, -1] += means @ scores.coef.T / divisor
                continue
            part[:, :, -2] = z @ scores.coef.T / divisor
            if scores.center is not None:  # waves are split as they are
                shift = scores.center @ scores.coef.T / divisor
                part[:, :, -2] += shift
                part[:, :, -1] -= shift
            if self._sample is not None:
                self._split_waves(scores, image, sample, columns, part, divisor)
        return terms

    def _split_waves(
        self, scores: Scores, z: Array, sample: Array, columns: np.ndarray, terms: Array, divisor: Array
    ) -> None:
        """Move to the bias the mean of waves, and to each column what remains of them on average over the others.

        A wave is the real part of a product of factors exp(i frequency z), and its mean that of their means.
        """
        frequencies, phases = scores.features or (z, z)
        weights = np.sqrt(2 / len(phases)) * scores.coef
        outputs = [columns == j for j in range(self.n_features)]

        def factor(z: Array, output: np.ndarray) -> np.ndarray:
            return np.exp(1j * z[:, output] @ frequencies[:, output].T)

        means = np.array([factor(sample, output).mean(axis=0) for output in outputs])
        one = np.ones((1, len(phases)))
        before, after = np.cumprod([*one, *means], axis=0), np.cumprod([*one, *means[::-1]], axis=0)[::-1]
        start = np.exp(1j * phases)
        mean = (start * before[-1]).real @ weights.T / divisor
        for j, output in enumerate(outputs):
            alone = (start * before[j] * after[j + 1] * factor(z, output)).real @ weights.T / divisor - mean
            terms[:, :, j] += alone
            terms[:, :, -2] -= alone
        terms[:, :, -2] -= mean
        terms[:, :, -1] += mean

    def _add_indicators(self, learner: Any, X: Array, terms: Array) -> None:
        """Step functions of one column and of two, each minus its means over the values of either."""
        row_map, (shares, starts) = learner.row_map, self._shares_of_bins(learner.row_map)
        weights, d = np.atleast_2d(learner.coef), self.n_features
        bins = ThresholdMap(d, allow_nan=True, bins=row_map.bins).transform(X).reshape(len(X), d, len(BINS))
        n_singles = shares.size * row_map.singles
        if n_singles:
            means = (weights[:, :n_singles] * shares.ravel()).reshape(-1, d, shares.shape[1]).sum(axis=2)
            terms[:, :, :d] = np.moveaxis(weights[:, bins], 0, 1).sum(axis=3) - means
            terms[:, :, -1] = means.sum(axis=1)
        terms[:, :, -1] += learner.intercept
        if self.has_trees and row_map.grown:
            self._add_leaves(row_map, weights, n_singles, X, terms)
        if not len(row_map.pairs):
            return
        first, second = row_map.pairs.T
        places = d + np.array([self.pairs.index(tuple(sorted(pair))) for pair in row_map.pairs.tolist()], np.intp)
        tables = weights[:, n_singles:].reshape(len(weights), len(places), -1)
        bins = bins % shares.shape[1] - starts[:-1]
        for k, n in enumerate(np.diff(starts)[: len(BINS_OF_PAIRS)]):
            table, tables = np.split(tables, [n * n], axis=2)
            table = table.reshape(*table.shape[:2], n, n)
            of_bins = shares[:, starts[k] : starts[k] + n]
            rows = np.einsum("spab,pb->spa", table, of_bins[second])
            columns = np.einsum("spab,pa->spb", table, of_bins[first])
            mean = np.einsum("spa,pa->sp", rows, of_bins[first])
            numbers, i, j = np.arange(len(places)), bins[:, first, k], bins[:, second, k]
            of_first, of_second = (np.moveaxis(each, 0, 1) for each in (rows[:, numbers, i], columns[:, numbers, j]))
            _add(terms, first, of_first - mean)
            _add(terms, second, of_second - mean)
            _add(terms, places, np.moveaxis(table[:, numbers, i, j], 0, 1) - of_first - of_second + mean)
            terms[:, :, -1] += mean.sum(axis=1)

    def _add_leaves(self, row_map: ThresholdMap, weights: Array, n: int, X: Array, terms: Array) -> None:
        """Indicators of leaves, after n others: products of those of intervals of columns, split like waves."""
        columns, cuts = row_map.bins.trees.nodes
        n_trees, n_nodes = cuts.shape
        tree, leaf = np.ogrid[:n_trees, : n_nodes + 1]
        low, high = (np.full((n_trees, n_nodes + 1, self.n_features), value) for value in (-np.inf, np.nan))
        node = leaf + n_nodes
        while node.max() > 0:
            parent = (node - 1) // 2
            at, cut = (tree, leaf, columns[tree, parent]), cuts[tree, parent]
            low[at] = np.where(node % 2 == 0, np.maximum(low[at], cut), low[at])
            high[at] = np.where(node % 2 == 1, np.fmin(high[at], cut), high[at])
            node = parent
        low, high = low.reshape(-1, self.n_features), high.reshape(-1, self.n_features)
        weights, leaves = weights[:, n:][:, : len(low)], row_map.transform(X)[:, len(BINS) * self.n_features :] - n
        X, sample = (np.where(np.isnan(values), np.inf, values) for values in (X, np.asarray(self._sample)))
        ends = [[np.searchsorted(x, end) for x, end in zip(sample.T, of.T, strict=True)] for of in (low, high)]
        shares = np.subtract(ends[1], ends[0]) / len(sample)  # of the values in each interval
        one = np.ones((1, len(low)))
        before, after = np.cumprod([*one, *shares], axis=0), np.cumprod([*one, *shares[::-1]], axis=0)[::-1]
        mean = weights @ before[-1]
        terms[:, :, self.trees] += weights[:, leaves].sum(axis=2).T - mean
        terms[:, :, -1] += mean
        for j, share in enumerate(shares):
            cut = (low[:, j] > -np.inf) | (high[:, j] == high[:, j])  # leaves that depend on the column
            inside = (X[:, j, np.newaxis] >= low[cut, j]) & ~(X[:, j, np.newaxis] >= high[cut, j])
            alone = (inside - share[cut]) @ (weights * before[j] * after[j + 1])[:, cut].T
            terms[:, :, j] += alone
            terms[:, :, self.trees] -= alone

    def _shares_of_bins(self, row_map: ThresholdMap) -> tuple[Array, np.ndarray]:
        """The share of the values in each bin, shape (n_features, n_bins), and where the bins of a resolution start."""
        if not self._shares.size:
            every = ThresholdMap(self.n_features, allow_nan=True, bins=row_map.bins)
            counts = np.bincount(every.transform(self._sample).ravel(), minlength=every.n_outputs)
            self._shares = counts.reshape(self.n_features, -1) / SAMPLE
        return self._shares, np.cumsum([0, *(size + 1 for size in BINS)])


def _add(terms: Array, places: np.ndarray, values: Array) -> None:
    """Add values to these places along the last axis, of which some may be the same."""
    np.add.at(terms.T, places, values.T)


def _image(row_map: Any, X: Array) -> tuple[Array, np.ndarray]:
    """What a map makes of rows, and the column of each of its values."""
    if row_map is None:
        return X, np.arange(X.shape[1])
    return row_map.transform(X), (row_map.columns if isinstance(row_map, OneHotMap) else np.arange(X.shape[1]))


def contributions(model: Any, terms: Terms, X: Array) -> Array:
    """The terms of the score of each row, shape (n_rows, n_terms), and n_classes if these are three or more."""
    several = is_classifier(model) and not model._fitted_mixer().of_two  # whether each class has a score
    n_members, n_scores = len(terms.members), len(model.classes_) if several else 1
    out = np.zeros((len(X), n_scores, terms.n))
    n = max(min(_ROWS, _VALUES // (n_members * n_scores * (terms.n + _PER_SCORE))), 1)
    for start in range(0, len(X), n):
        rows, part = X[start : start + n], out[start : start + n]
        of_members = np.empty((len(rows), n_members, n_scores, terms.n))
        for number, member in enumerate(terms.members):
            of_members[:, number] = terms.of_member(member, rows)
        if is_classifier(model):
            _add_classes(model, terms, of_members, part)
        else:
            weights, bias, remembered = _weights_of_scores(model, of_members.sum(axis=(2, 3)))
            part[:, 0, -1] = bias
            if terms.has_memory:
                part[:, 0, terms.memory] = remembered
            part += _weighted(weights[..., np.newaxis], of_members)
    if several and len(model.classes_) == 2:
        out = np.diff(out, axis=1)
    return out[:, 0] if out.shape[1] == 1 else np.moveaxis(out, 1, 2)


def _weighted(weights: Array, of_members: Array) -> Array:
    """The sum of the members' terms of each score, times their weights of shape (n_rows, n_members, n_scores)."""
    return np.einsum("nkc,nkct->nct", weights, of_members)


def _slope(image: Array, a: Array, at_0: float | Array) -> Array:
    """image / a, or the limit where a = 0."""
    return np.divide(image, a, out=np.full(np.broadcast(image, a).shape, at_0), where=a != 0)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _weights_of_scores(model: Any, s: Array) -> tuple[Array, float, Array]:
    """W, of the shape of the members' scores, the bias, and what the memory adds to each row."""
    mixer, v = model._fitted_mixer(), model.weights_
    weights, added = np.broadcast_to(v, s.shape), np.zeros((len(s), 1))
    if not mixer.target_stats["weight"] > 0:
        return 0 * weights, 0.0, added[:, 0]
    mixed = MixedNumbers(mixer, v, s)
    for each, shrunk in _shrunk(mixed.combinations, mixed.m):
        weights = weights + shrunk * (each.coef - each.coef.sum() * v)
    weights = weights * _slope(mixed.p - mixed.shift, s, 1.0)
    for each, shrunk in _shrunk(mixed.corrections, mixed.remembered):
        weights = weights * (1 + shrunk * (mixed.of_forecast @ each.coef))
        added = shrunk * ((mixed.constant + mixed.shift * mixed.of_forecast) @ each.coef)
    return weights, mixed.origin + mixed.shift, added[:, 0]


def _shrunk(combinations: list[Combination], forecast: Array) -> Iterator[tuple[Combination, Array]]:
    """Combinations, and how much of each one's step from the forecast is in the mixture, of shape (n_rows, 1)."""
    for each in combinations:
        yield each, each.weight / each.divisor * _slope(each.forecast - forecast, each.step, 1.0)


# --- classes ----------------------------------------------------------------------------------------------------------


def _add_classes(model: Any, terms: Terms, of_members: Array, out: Array) -> None:
    """Add the terms of the classes to `out`, from those of the members, which are calibrated in place."""
    mixer, n_classes = model._fitted_mixer(), len(model.classes_)
    slopes, offsets = mixer.scaling
    of_members *= slopes[:, np.newaxis, np.newaxis]
    of_members[..., -1] += offsets[:, np.newaxis]
    a = of_members.sum(axis=3)
    mixed = MixedClasses(mixer, model.weights_, a)
    if mixer.of_two:
        out += _weighted(_pair_weights(mixed, model.weights_, 1, slice(1)), _with_memory(mixer, terms, of_members))
        return
    logistic = np.array([link != "softmax" for link in mixer.links])[:, np.newaxis]
    of_members *= np.where(logistic, _slope(log_expit(a) + np.log(2), a, 0.5), 1.0)[..., np.newaxis]
    of_members = _with_memory(mixer, terms, of_members)
    totals = np.zeros(of_members.shape[:3])
    for c in range(1, n_classes):
        weights = _pair_weights(mixed, model.weights_, c, slice(c)) / n_classes
        totals[:, :, c] += weights.sum(axis=2)
        totals[:, :, :c] += weights
        out[:, c] -= np.einsum("nkd,nkdt->nt", weights, of_members[:, :, :c])
        out[:, :c] -= np.einsum("nkd,nkt->ndt", weights, of_members[:, :, c])
    out += _weighted(totals, of_members)


def _with_memory(mixer: Any, terms: Terms, of_members: Array) -> Array:
    """The terms of the members, followed by those of the memory: what it says beyond the shares of all labels."""
    if not terms.has_memory:
        return of_members
    a, shares = mixer.memory.features()
    more = np.zeros((*a.shape, terms.n))
    more[..., terms.memory], more[..., -1] = a - shares, shares
    return np.concatenate([of_members, np.broadcast_to(more, (len(of_members), *more.shape))], axis=1)


def _pair_weights(mixed: MixedClasses, v: Array, c: int, others: slice) -> Array:
    """Weights of the members' log odds of class c to each of the others, whose sum is that of the mixture.

    The shape is (n_rows, n_members, n_others); if there is a memory, its forecasts follow the members.
    """
    p = mixed.p[..., c : c + 1] + mixed.p[..., others]
    a, forecast = (each[..., c : c + 1] - each[..., others] for each in (mixed.logits, log(mixed.forecast)))
    weights = _odds_weights(v[:, np.newaxis] * p, a, forecast)
    if mixed.stack is not None:
        kept, of_members = _stage_weights(mixed.stack, c, others)
        weights = kept * weights + of_members
    if mixed.memory is None:
        return weights
    kept, of_memory = _stage_weights(mixed.memory, c, others)
    return np.concatenate([kept * weights, of_memory], axis=1)


def _stage_weights(stage: Stage, c: int, others: slice) -> tuple[Array, Array]:
    """Weights of the log odds of the forecast, shape (n_rows, 1, n_others), and of those of what is combined."""

    def between(logits: Array) -> Array:
        return logits[..., c : c + 1] - logits[..., others]

    a, logits, x = between(stage.a), between(stage.logits), between(stage.x)
    both = stage.q[..., c : c + 1] + stage.q[..., others]
    in_combinations = _odds_weights(stage.u[:, np.newaxis] * both, logits, between(log(stage.prediction)))
    of_votes = stage.coef[VOTES:].T @ in_combinations[:, 1 + VOTES :]
    of_votes = of_votes * _slope(between(stage.votes), a, VOTE_POWER * stage.votes[..., c : c + 1])
    in_combinations = in_combinations[:, : 1 + VOTES]
    # x are the distances from the forecast, which clipping shrinks
    shrunk = np.clip(_slope(x, a - logits[:, :1], 1.0), 0.0, 1.0)
    coef = stage.coef[:VOTES].T @ in_combinations[:, 1:] * shrunk
    return (in_combinations.sum(axis=1) - coef.sum(axis=1))[:, np.newaxis], coef + of_votes


def _odds_weights(weights: Array, a: Array, mixed: Array) -> Array:
    """Weights of experts' log odds a that sum to `mixed`, those of the mean of probabilities with the given weights."""
    total = weights.sum(axis=1, keepdims=True)
    slopes = _slope(np.tanh(a / 2), a, 0.5) / _slope(np.tanh(mixed / 2), mixed, 0.5)
    return np.divide(weights, total, out=np.full(weights.shape, 1 / weights.shape[1]), where=total > 0) * slopes


SAMPLE = 256  # values that stand for the distribution of a column


def importances(model: Any) -> Array:
    """The share of each column in the variance of predictions (total-effect Sobol index, by Jansen's estimator).

    Columns are drawn independently, from the samples that members of bins hold, or as normal.
    """
    rng, d = np.random.default_rng(0), model.n_features_in_
    draw = sampler(model)
    if draw is None:
        raise AttributeError(
            "feature_importances_ requires members that know how columns are distributed: those of dense rows with "
            "thresholds=True, or with standardize=True and without categories."
        )
    X, others = (np.column_stack([rng.permutation(draw(j, SAMPLE)) for j in range(d)]) for _ in range(2))
    predicted = model._predict_validated(X)
    changes = np.empty(d)
    for j in range(d):
        rows = X.copy()
        rows[:, j] = others[:, j]
        changes[j] = np.linalg.norm(model._predict_validated(rows) - predicted)
    largest = changes.max()
    shares = (changes / largest) ** 2 if largest > 0 else changes
    return shares / max(shares.sum(), 1.0)


def sampler(model: Any) -> Callable[[int, int], Array] | None:
    """A function that gives n values of column j, as they are distributed in the rows so far; None if unknown."""
    maps = [member._learner.row_map for member in model.estimators_]
    binned = next((each for each in maps if isinstance(each, ThresholdMap)), None)
    standardizer = next((each for each in maps if isinstance(each, Standardizer) and each.centred), None)
    if binned is not None:
        state = binned.bins.get_state()
        kept, sample, counted = state["kept"], state["sample"], state["counted"]

        def draw(j: int, n: int) -> Array:
            if not model.t_:  # rows of weight 0
                return np.zeros(n)
            missing = max(round(n * (1 - counted[j] / model.t_)), 0)  # another thread may be learning more rows
            places = (np.arange(n - missing) + 0.5) * (kept[j] / max(n - missing, 1))
            return np.append(sample[j, places.astype(np.intp)], np.full(missing, np.nan))

        return draw
    if standardizer is None:
        return None
    inverse = standardizer.in_units_of_data(np.ones(standardizer.n_features), 0.0)[0]
    mean, deviation = standardizer.mean, standardizer.scale * (inverse > 0)  # 0 of constant columns
    return lambda j, n: mean[j] + deviation[j] * ndtri((np.arange(n) + 0.5) / n)
