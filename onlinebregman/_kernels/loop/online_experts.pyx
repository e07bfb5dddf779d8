"""Experts that learn, and the weights of their forecasts, in one pass over the rows."""

import numpy as np

cimport cython
from libc.math cimport INFINITY, NAN
from libc.stdlib cimport free, malloc
from scipy.special.cython_special cimport expit

from onlinebregman._kernels.geometries.geometry cimport Workspace
from onlinebregman._kernels.loop.atomic cimport AtomicLearner
from onlinebregman._kernels.loop.density cimport DensityLearner
from onlinebregman._kernels.loop.experts cimport BrierLearner, ExpertLearner
from onlinebregman._kernels.loop.mixer cimport Mixer
from onlinebregman._kernels.loop.mixture cimport MixtureLearner, Outcome
from onlinebregman._kernels.loop.state cimport BAD_TARGET
from onlinebregman._kernels.rows.rows cimport Rows

cdef enum Link:
    IDENTITY                  # the score is the forecast,
    SIGMOID                   # or its sigmoid is the probability of the second of two classes,
    CLIPPED                   # or (score + 1) / 2 is, within 0 and 1

LINKS = {"identity": IDENTITY, "sigmoid": SIGMOID, "clipped": CLIPPED}


@cython.final
cdef class ForecastMixer(Mixer):
    """Maps experts' scores of a row, one for each expert, to forecasts, whose weights an ExpertLearner learns.

    Parameters
    ----------
    weigher : ExpertLearner
    links : sequence of {"identity", "sigmoid", "clipped"}
        How each expert's score is mapped to a forecast.
    """

    cdef readonly ExpertLearner weigher
    cdef readonly tuple links
    cdef bint* scored_before  # whether an expert is scored in a separate pass before it learns the row
    cdef double* scores_before  # the scores from that pass
    cdef bint brier           # whether forecasts are the probabilities of both classes, not only of the row's class
    cdef Link* kinds

    def __cinit__(self, ExpertLearner weigher not None, links):
        self.weigher, self.hedge, self.links = weigher, weigher.hedge, tuple(links)
        self.n_scores = self.n_outputs = weigher.hedge.n_experts
        self.brier = isinstance(weigher, BrierLearner)
        if len(self.links) != self.n_scores or weigher.n_features != (1 + self.brier) * self.n_scores:
            raise ValueError(
                f"links and forecasts must be those of {self.n_scores} experts; "
                f"got {len(self.links)} links and {weigher.n_features} forecasts"
            )
        if self.brier and "identity" in self.links:
            raise ValueError("links must be 'sigmoid' or 'clipped' for probabilities of two classes; got 'identity'")
        self.buffer = np.empty(weigher.n_features)
        self.kinds = <Link*> malloc(self.n_scores * sizeof(Link))
        self.scored_before = <bint*> malloc(self.n_scores * sizeof(bint))
        self.scores_before = <double*> malloc(self.n_scores * sizeof(double))
        if self.kinds == NULL or self.scored_before == NULL or self.scores_before == NULL:
            raise MemoryError()
        for k, link in enumerate(self.links):
            self.kinds[k], self.scored_before[k] = LINKS[link], False

    def __dealloc__(self):
        free(self.kinds)
        free(self.scored_before)
        free(self.scores_before)

    def __reduce__(self):
        return type(self), (self.weigher, self.links)

    cdef int learn(self, double* scores, double y, double weight) noexcept nogil:
        cdef Py_ssize_t k
        cdef double* forecasts = &self.buffer[0]
        for k in range(self.n_scores):
            if self.scored_before[k]:
                scores[k] = self.scores_before[k]
            if not scores[k] < INFINITY:  # other invalid values are refused by the loss
                return BAD_TARGET
            if self.brier:
                forecasts[2 * k] = probability(self.kinds[k], -scores[k])
                forecasts[2 * k + 1] = probability(self.kinds[k], scores[k])
            elif self.kinds[k] == IDENTITY:
                forecasts[k] = scores[k]
            else:
                forecasts[k] = probability(self.kinds[k], scores[k] if y else -scores[k])
        self.hedge.weigh(self.weigher.v)
        return self.weigher.count(forecasts, y, weight)

    cdef void mix(self, const double* scores, double* out, double* buffer) noexcept nogil:
        """Outputs NaN: estimators predict with the experts themselves, which may have changed in between."""
        cdef Py_ssize_t k
        for k in range(self.n_outputs):
            out[k] = NAN


cdef inline double probability(Link link, double score) noexcept nogil:
    """Probability of the class whose score this is."""
    if link == SIGMOID:
        return expit(score)
    return (min(max(score, -1.0), 1.0) + 1.0) / 2.0


@cython.final
cdef class OnlineExpertsLearner(MixtureLearner):
    """The learners of experts, and the experts' weights, for calls that need no validation.

    Experts may have learned elsewhere in between, or have got other learners: see `ready`.

    Parameters
    ----------
    learners : list of AtomicLearner
    mixer : ForecastMixer
    targets_by_class : list
    """

    def __cinit__(self, learners, ForecastMixer mixer not None, targets_by_class):
        if any([table is not None for table in self.targets_by_class]):
            return
        self.target_ndim = mixer.weigher.target_ndim

    cdef ExpertLearner weigher(self):
        return (<ForecastMixer> self.mixer).weigher

    cpdef bint ready(self, dict attributes):
        """Whether these are the learners of the estimator and of its experts, and all of them are ready."""
        cdef AtomicLearner learner
        cdef dict own
        cdef Py_ssize_t k
        experts = attributes["estimators_"]
        if attributes["_learner"] is not self.weigher() or len(experts) != self.n or \
                not MixtureLearner.ready(self, attributes):
            return False
        for k in range(self.n):
            learner, own = self.learners[k], vars(experts[k])
            if own.get("_learner") is not learner or own.get("class_weight") is not None or \
                    "feature_names_in_" in own or not learner.ready(own) or not learner.row_scores_predict():
                return False
        return True

    cdef Rows fitting_rows(self, dict attributes, X):
        cdef Rows rows = MixtureLearner.fitting_rows(self, attributes, X)
        if rows is not None and rows.indices != NULL and \
                any([isinstance(learner, DensityLearner) for learner in self.learners]):
            return None
        return rows

    # --- a call: that of the weigher, too -------------------------------------------------------------------------

    cdef int begin(self, Rows rows, bint complete) except -1:
        cdef AtomicLearner learner
        cdef Py_ssize_t k
        MixtureLearner.begin(self, rows, complete)
        for k in range(self.n):
            learner = self.learners[k]
            (<ForecastMixer> self.mixer).scored_before[k] = not learner.scores_predict()
        return 0

    cdef int learn_row_of_chunk(self, Py_ssize_t i, Workspace* work, Outcome* outcome) noexcept nogil:
        """The chunk has one row, as no learner here is chunkwise."""
        cdef Py_ssize_t k
        for k in range(self.n):
            if (<ForecastMixer> self.mixer).scored_before[k]:
                (<AtomicLearner> self.parts[k].learner).score_row(
                    &self.chunk.rows[i], work, &(<ForecastMixer> self.mixer).scores_before[k]
                )
        return MixtureLearner.learn_row_of_chunk(self, i, work, outcome)

    cdef int claim(self) except -1:
        self.weigher().claim()
        try:
            MixtureLearner.claim(self)
        except BaseException:
            self.weigher().release()
            raise
        return 0

    cdef void release(self) noexcept:
        MixtureLearner.release(self)
        self.weigher().release()

    cdef void keep(self, Rows rows) noexcept:
        self.weigher().keep(rows)
        MixtureLearner.keep(self, rows)
