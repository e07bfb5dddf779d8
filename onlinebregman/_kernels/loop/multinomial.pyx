"""The log loss of the softmax of k scores, the matching loss of a vector of them, by mirror descent in any geometry.

Each class has weights w_c, in a geometry of its own, and all of them move at once:

    f(w_c') = f(w_c) - c_c x,    c_c = eta (p_c - y_c),    p = softmax(z),

with z the scores before the step (explicit) or after it (implicit), y_c = 1 for the row's class and 0 for the others.
One number couples the k equations of the implicit step, m = ln sum exp z. Given m, each of them is that of a Poisson
loss whose score counts from m,

    c = eta (exp(z(c) - m) - y),

which `solver` solves in any geometry; p_c then falls with m at the rate p / (1 + eta p x'Sx), and Newton's method finds
the m at which ln sum p = ln (1 + sum c / eta) is 0. Where the scores of all classes fall alike, z = a - q g with one q,
as in the squared Euclidean geometry, the k equations are solved at once, as those of `softmax` are.
"""

cimport cython
from libc.math cimport INFINITY, NAN, exp, expm1, fabs, isfinite, isnan, log1p
from libc.stdlib cimport free, malloc

from onlinebregman._kernels.geometries.geometry cimport Geometry, Workspace, Workspaces, open_workspace
from onlinebregman._kernels.loop.learner cimport Learner
from onlinebregman._kernels.loop.mirror_step cimport averages, divergence_to, end_step, predict_row
from onlinebregman._kernels.loop.multi_learner cimport MultiLearner
from onlinebregman._kernels.loop.solver cimport Score, score_after, implicit_step
from onlinebregman._kernels.loop.state cimport BAD_TARGET, EXPLICIT, LEARNED, LEFT_DOMAIN, OVERFLOWED, add_slack, rate
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.rows.rows cimport Row, Rows

cdef extern from "ops/softmax.h":
    double OB_NO_CLASS
    ctypedef struct ob_softmax:  # of the scores of n classes
        Py_ssize_t classes, n, y
        double* e
    void ob_softmax_of(ob_softmax* p, const double* z) noexcept nogil
    double ob_softmax_loss(const ob_softmax* p, const double* z) noexcept nogil
    void ob_softmax_slopes(const ob_softmax* p, double* g) noexcept nogil
    void ob_softmax_implicit(ob_softmax* p, const double* a, double q, double* room) noexcept nogil

cdef enum:
    LANES = 8                 # vectors of a number for each class are multiples of this long
    VECTORS = 9               # of them: see `__cinit__`


# Farther up its exponential a loss goes on as a straight line: rates times slopes stay finite, and no root is there.
cdef double LARGEST = 600.0


cdef class ShareLoss(Loss):
    """exp(a - m) - y a of a class: its derivative is p - y where exp(m) is the sum of all classes' exp(a)."""

    cdef double m

    cdef double derivative(self, double a, double y) noexcept nogil:
        return expm1(a - self.m) if y == 1 and a < self.m else exp(min(a - self.m, LARGEST)) - y

    cdef double curvature(self, double a, double y) noexcept nogil:
        return exp(min(a - self.m, LARGEST))

    cdef double self_concordance(self, double a) noexcept nogil:
        return 1.0


@cython.final
cdef class MultinomialLearner(MultiLearner):
    """A learner for each class, which learn rows with the number of their class by one loss of all scores.

    Parameters
    ----------
    learners : list of Learner
        Alike in geometry and settings.
    summed : bool, default=True
        See `MultiLearner`: they are one model.
    """

    cdef Workspaces works     # one for each learner
    cdef Score* scores
    cdef Py_ssize_t n_lanes
    cdef double* said         # what `predict` goes by: the scores of averaged weights, if they are averaged
    cdef double* a            # the scores of the weights that learn,
    cdef double* after        # and those after the step
    cdef double* g            # p - y
    cdef double* c            # the step, and its rate
    cdef double* eta
    cdef double* room
    cdef ShareLoss share
    cdef bint averaged, tracked, explicit  # settings of all,
    cdef bint alike           # and do their scores fall alike?

    def __cinit__(self, learners, bint summed=True):
        cdef Py_ssize_t i
        self.n_targets, self.share, self.works = 1, ShareLoss(), Workspaces()
        self.n_lanes = (self.n + LANES - 1) // LANES * LANES
        self.scores = <Score*> malloc(self.n * sizeof(Score))
        self.said = <double*> malloc((VECTORS + 2) * self.n_lanes * sizeof(double))
        if self.scores == NULL or self.said == NULL:
            raise MemoryError()
        for i in range((VECTORS + 2) * self.n_lanes):
            self.said[i] = OB_NO_CLASS
        self.a, self.after = self.said + self.n_lanes, self.said + 2 * self.n_lanes
        self.g, self.c = self.said + 3 * self.n_lanes, self.said + 4 * self.n_lanes
        self.eta, self.room = self.said + 5 * self.n_lanes, self.said + 6 * self.n_lanes  # its last one is for exp(z)

    def __dealloc__(self):
        free(self.scores)
        free(self.said)

    cdef int begin(self, Rows rows, bint complete) except -1:
        MultiLearner.begin(self, rows, complete)
        return self.works.reserve(self.n, self.vector_length(rows.widest))

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        cdef Py_ssize_t k
        cdef int status
        cdef double loss
        cdef ob_softmax p
        if not 0 <= y[0] < self.n:
            return BAD_TARGET if weight != 0 else LEARNED
        for k in range(self.n):
            status = self.predict_class(<Learner> self.members[k], k, row, weight)
            if status != LEARNED:
                return status
            if scores != NULL:
                scores[k] = NAN if weight == 0 else self.said[k]
        if weight == 0:
            return LEARNED
        p.classes, p.n, p.y, p.e = self.n, self.n_lanes, <Py_ssize_t> y[0], self.room + 4 * self.n_lanes
        ob_softmax_of(&p, self.said)
        loss = weight * ob_softmax_loss(&p, self.said)
        if self.averaged:
            ob_softmax_of(&p, self.a)
        ob_softmax_slopes(&p, self.g)
        for k in range(self.n):
            self.take_in(<Learner> self.members[k], k, row, k == p.y, weight)
        status = self.find_steps(&p)
        if status != LEARNED:
            return status
        for k in range(self.n):
            status = self.move(<Learner> self.members[k], k, row, weight, loss if k == p.y else 0.0)
            if status != LEARNED:
                return status
        if self.tracked:
            self.certify(<Learner> self.members[p.y], &p, weight)
        return LEARNED

    cdef int predict_class(self, Learner learner, Py_ssize_t k, const Row* row, double weight) noexcept nogil:
        cdef int status
        if not learner.before.complete:
            learner.before.log(learner.geometry, row)
        if weight == 0:
            return LEARNED
        open_workspace(&self.works.each[k], row)
        status = predict_row(
            learner.geometry, &learner.settings, &learner.run, &self.works.each[k], &self.scores[k], &self.said[k]
        )
        self.a[k] = self.scores[k].a
        self.averaged, self.tracked = averages(learner.geometry, &learner.run), learner.settings.track_regret
        self.explicit = learner.settings.update == EXPLICIT
        self.alike = learner.geometry.linear and not learner.geometry.adaptive
        return status

    cdef void take_in(self, Learner learner, Py_ssize_t k, const Row* row, double y, double weight) noexcept nogil:
        """The class's rate, times the weight of the row, which a geometry that adapts takes in."""
        self.eta[k] = weight * rate(&learner.settings, learner.run.t + 1.0)
        if learner.geometry.averaging:
            learner.geometry.accumulate(row)
        if learner.geometry.adaptive:
            self.eta[k] *= learner.geometry.adapt(
                &self.works.each[k], self.g[k], y, weight, not self.explicit, &self.scores[k].slope,
                &self.scores[k].bias,
            )

    cdef int find_steps(self, ob_softmax* p) noexcept nogil:
        """The step c of every class."""
        cdef Py_ssize_t k
        cdef double lo, hi
        if self.alike and not self.explicit:
            ob_softmax_implicit(p, self.a, self.eta[0] * (self.scores[0].slope + self.scores[0].bias), self.room)
            ob_softmax_slopes(p, self.g)
        if self.alike or self.explicit:
            for k in range(self.n):
                self.c[k] = self.eta[k] * self.g[k]
        else:
            self.solve(p)
        for k in range(self.n):
            if not isfinite(self.c[k]):
                return OVERFLOWED
            if self.explicit:
                (<Learner> self.members[k]).geometry.domain(&self.works.each[k], &lo, &hi)
                if not lo < self.c[k] < hi:
                    return LEFT_DOMAIN
        return LEARNED

    cdef void solve(self, const ob_softmax* p) noexcept nogil:
        """The implicit steps: the m at which the classes' probabilities have the sum 1."""
        cdef double m, lo = self.a[p.y], hi = INFINITY, excess, fall, step, before = INFINITY
        cdef Py_ssize_t k
        cdef int iteration
        m = ob_softmax_loss(p, self.a) + self.a[p.y]
        for iteration in range(200):
            excess = fall = 0.0
            self.share.m = m
            for k in range(self.n):
                self.solve_class((<Learner> self.members[k]).geometry, k, k == p.y, &excess, &fall)
            if isnan(excess):
                return
            step = -INFINITY  # far beyond, where all p underflow
            if excess > -1.0 and fall > 0:
                step = log1p(excess) * (1.0 + excess) / fall
            if isnan(step) or fabs(step) <= 1e-9:
                break
            step = min(step, 100.0 + fabs(m))
            if step > 0:
                lo = m
            else:
                hi = m
            if hi < INFINITY and not (lo < m + step < hi and fabs(step) <= 0.5 * before):
                step = 0.5 * (lo + hi) - m
                if not lo < m + step < hi:
                    break
            before = fabs(step)
            m += step
        for k in range(self.n):  # to first order: what is left is of the second
            self.c[k] -= step * self.g[k]

    cdef void solve_class(self, Geometry geometry, Py_ssize_t k, double y, double* excess, double* fall) noexcept nogil:
        """The class's step c for this m, and in the place of g how fast it falls with m; its part of (sum p) - 1."""
        cdef Workspace* work = &self.works.each[k]
        cdef double p, slope
        work.origin = 0.0
        self.c[k] = implicit_step(geometry, self.share, work, &self.scores[k], self.eta[k], y)
        score_after(geometry, work, &self.scores[k], self.c[k], &p, &slope)
        p = exp(p - self.share.m)
        excess[0] += (work.origin + self.c[k]) / self.eta[k]
        p /= 1.0 + self.eta[k] * p * (slope + self.scores[k].bias)
        fall[0] += p
        self.g[k] = self.eta[k] * p

    cdef int move(self, Learner learner, Py_ssize_t k, const Row* row, double weight, double loss) noexcept nogil:
        """Step to w(c)."""
        cdef Workspace* work = &self.works.each[k]
        cdef Score* score = &self.scores[k]
        cdef double gap = 0.0, c
        cdef int status
        if self.tracked:
            gap = divergence_to(learner.geometry, work, score, self.c[k])
        learner.geometry.step(work, self.c[k])
        c = self.c[k] + work.origin
        if self.tracked:
            if learner.geometry.linear:
                self.after[k] = score.a - c * (score.slope + score.bias)
            else:
                self.after[k] = learner.geometry.dot(work) + score.intercept - score.bias * c
            if learner.geometry.adaptive:
                learner.geometry.note_step(work, c, c * score.a - gap)
            add_slack(&learner.run, gap if self.explicit else gap - c * (score.a - self.after[k]), self.eta[k] / weight)
        status = end_step(
            learner.geometry, &learner.settings, &learner.run, work, self.eta[k] / weight, c, score.bias, loss
        )
        if status == LEARNED and not learner.before.complete and not learner.before.finite(learner.geometry, row):
            return OVERFLOWED
        return status

    cdef void certify(self, Learner learner, ob_softmax* p, double weight) noexcept nogil:
        """What the joint loss adds to the certificate, with the row's class."""
        cdef double value
        ob_softmax_of(p, self.a)
        value = ob_softmax_loss(p, self.a)
        learner.run.weighted_loss += self.eta[p.y] * value
        if not self.explicit:
            ob_softmax_of(p, self.after)
            value -= ob_softmax_loss(p, self.after)
            add_slack(&learner.run, self.eta[p.y] * value, self.eta[p.y] / weight)
