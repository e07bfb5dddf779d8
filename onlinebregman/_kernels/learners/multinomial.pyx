"""Mirror descent in any geometry on the log loss of the softmax, the matching loss of a vector of k scores.

Each class has weights w_c, in a separate geometry, and all of them are updated together:

    f(w_c') = f(w_c) - c_c x,    c_c = eta (p_c - y_c),    p = softmax(z),

with z the scores before the step (explicit) or after it (implicit), y_c = 1 for the row's class and 0 for the others.
The k equations of the implicit step are coupled by one number, m = ln sum exp z. Given m, each of them is that of a
Poisson loss of the score minus m,

    c = eta (exp(z(c) - m) - y),

which `solver` solves in any geometry; p_c then decreases with m at the rate p / (1 + eta p x'Sx), and Newton's method
finds the m at which ln sum p = ln (1 + sum c / eta) is 0. If z = a - q g with the same q for all classes, as in the
squared Euclidean geometry, the k equations are solved together, as in `softmax`.
"""

cimport cython
from libc.math cimport INFINITY, exp, expm1, fabs, isfinite, isnan, log1p
from libc.stdlib cimport free

from onlinebregman._kernels.geometries.adaptive import DiagonalNewtonGeometry
from onlinebregman._kernels.geometries.geometry cimport ADAPTIVE, LINEAR, Geometry, Workspace, open_workspace
from onlinebregman._kernels.learners.atomic cimport widest
from onlinebregman._kernels.learners.learner cimport Learner
from onlinebregman._kernels.learners.mirror_step cimport averages, divergence_to, end_step, predict_row, rate_status
from onlinebregman._kernels.learners.multi_learner cimport MultiLearner
from onlinebregman._kernels.learners.rule cimport scheduled_rate
from onlinebregman._kernels.learners.solver cimport Score, evaluate_score, implicit_step
from onlinebregman._kernels.learners.run cimport BAD_TARGET, EXPLICIT, LEARNED, LEFT_DOMAIN, OVERFLOWED, add_slack
from onlinebregman._kernels.losses.loss cimport Loss
from onlinebregman._kernels.ops.pointers cimport resized
from onlinebregman._kernels.ops.softmax cimport (
    OB_NO_CLASS, ob_softmax, ob_softmax_implicit, ob_softmax_loss, ob_softmax_of, ob_softmax_slopes
)
from onlinebregman._kernels.rows.rows cimport Row, Rows

cdef enum:
    LANES = 8                 # vectors with a number for each class are padded to a multiple of this length
    VECTORS = 9               # number of these vectors: see `__cinit__`


# Above this score the loss continues as a straight line: rates times slopes stay finite, and no root is there.
cdef double LARGEST = 600.0


cdef class ShareLoss(Loss):
    """exp(a - m) - y a of one class; the derivative is p - y if exp(m) is the sum of exp(a) over all classes."""

    cdef double m

    cdef double derivative(self, double a, double y) noexcept nogil:
        return expm1(a - self.m) if y == 1 and a < self.m else exp(min(a - self.m, LARGEST)) - y

    cdef double curvature(self, double a, double y) noexcept nogil:
        return exp(min(a - self.m, LARGEST))

    cdef double self_concordance(self, double a) noexcept nogil:
        return 1.0


@cython.final
cdef class MultinomialLearner(MultiLearner):
    """A learner for each class, with one joint loss of all scores; a target is the number of a class.

    Parameters
    ----------
    learners : list of Learner
        With the same kind of geometry and the same settings.
    """

    cdef Score* scores
    cdef Py_ssize_t n_lanes
    cdef double* predicted    # the scores that `predict` uses: by averaged weights, if they are averaged
    cdef double* a            # the scores by the learning weights
    cdef double* after        # the same after the step
    cdef double* g            # p - y
    cdef double* c            # the step and its rate
    cdef double* eta
    cdef double* buffer
    cdef ShareLoss share
    cdef bint averaged, tracked, explicit  # settings of all learners
    cdef bint alike           # whether z = a - q g with the same q for all classes
    cdef bint same_metric     # whether the metrics of all classes are the same: they are computed once a sparse row

    def __cinit__(self, learners, dict state=None):
        cdef Py_ssize_t i
        cdef Learner first = self.learners[0]
        [<Learner?> learner for learner in self.learners]
        self.n_targets, self.share = 1, ShareLoss()
        if type(first.geometry) is DiagonalNewtonGeometry:  # classes have one metric
            for learner in self.learners:
                learner.geometry.of_classes = False
        self.same_metric = type(first.geometry) is DiagonalNewtonGeometry and all([
            type((<Learner> each).geometry) is DiagonalNewtonGeometry
            and first.geometry.same_metric((<Learner> each).geometry)
            for each in self.learners
        ])
        self.n_lanes = (self.n + LANES - 1) // LANES * LANES
        self.scores = <Score*> resized(NULL, self.n * sizeof(Score))
        self.predicted = <double*> resized(NULL, (VECTORS + 2) * self.n_lanes * sizeof(double))
        for i in range((VECTORS + 2) * self.n_lanes):
            self.predicted[i] = OB_NO_CLASS
        self.a, self.after = self.predicted + self.n_lanes, self.predicted + 2 * self.n_lanes
        self.g, self.c = self.predicted + 3 * self.n_lanes, self.predicted + 4 * self.n_lanes
        self.eta = self.predicted + 5 * self.n_lanes
        self.buffer = self.predicted + 6 * self.n_lanes  # four vectors, and one for exp(z)

    def __dealloc__(self):
        free(self.scores)
        free(self.predicted)

    cdef Learner newcomer(self, Learner prior):
        cdef Learner learner = MultiLearner.newcomer(self, prior)
        learner.run.t = self.t  # all classes make one step, at one rate
        return learner

    cdef int begin(self, Rows rows, bint complete) except -1:
        MultiLearner.begin(self, rows, complete)
        return self.works.reserve(self.n, self.vector_length(widest(self, rows), True))

    cdef int learn_row(self, const Row* row, Workspace* work, const double* y, double weight,
                       double* scores) noexcept nogil:
        cdef Py_ssize_t k
        cdef int status
        cdef double loss
        cdef ob_softmax p
        if not 0 <= y[0] < self.n:
            return BAD_TARGET
        for k in range(self.n):
            status = self.predict_class(<Learner> self.parts[k].learner, k, row, weight)
            if status != LEARNED:
                return status
            if scores != NULL:
                scores[k] = self.predicted[k]
        p.classes, p.n, p.y, p.e = self.n, self.n_lanes, <Py_ssize_t> y[0], self.buffer + 4 * self.n_lanes
        ob_softmax_of(&p, self.predicted)
        loss = weight * ob_softmax_loss(&p, self.predicted)
        if self.averaged:
            ob_softmax_of(&p, self.a)
        ob_softmax_slopes(&p, self.g)
        for k in range(self.n):
            status = self.find_rate(<Learner> self.parts[k].learner, k, row, k == p.y, weight, &p)
            if status != LEARNED:
                return status
        status = self.find_steps(&p)
        if status != LEARNED:
            return status
        for k in range(self.n):
            status = self.move(<Learner> self.parts[k].learner, k, row, weight, loss if k == p.y else 0.0)
            if status != LEARNED:
                return status
        if self.tracked:
            self.certify(<Learner> self.parts[p.y].learner, &p, weight)
        return LEARNED

    cdef int predict_class(self, Learner learner, Py_ssize_t k, const Row* row, double weight) noexcept nogil:
        cdef int status
        if not learner.before.complete:
            learner.before.log(learner.geometry, row)
        open_workspace(&self.works.each[k], row)
        if k > 0 and self.same_metric and not learner.geometry.lazy.active:
            self.works.each[k].twin = &self.works.each[0]
        status = predict_row(
            learner.geometry, &learner.settings, &learner.run, &self.works.each[k], &self.scores[k], &self.predicted[k]
        )
        self.a[k] = self.scores[k].a
        self.averaged, self.tracked = averages(learner.geometry, &learner.run), learner.settings.track_regret
        self.explicit = learner.settings.update == EXPLICIT
        self.alike = learner.geometry.traits & LINEAR
        return status

    cdef int find_rate(self, Learner learner, Py_ssize_t k, const Row* row, double y, double weight,
                       ob_softmax* p) noexcept nogil:
        """Set the rate of a class, times the weight of the row; an adaptive geometry is updated with the row."""
        cdef double t = learner.run.t + 1.0, eta
        if learner.rule.sees_rows:
            eta = learner.rule.rate(
                learner.geometry, &self.works.each[k], &self.scores[k], t, y, weight, ob_softmax_loss(p, self.a)
            )
            if not eta > 0:
                return rate_status(learner.rule, eta)
        else:
            eta = scheduled_rate(learner.rule, t)
        self.eta[k] = weight * eta
        if learner.geometry.average.active:
            learner.geometry.average.add(learner.geometry, row)
        if learner.geometry.traits & ADAPTIVE:
            self.eta[k] *= learner.geometry.adapt(
                &self.works.each[k], self.g[k], self.a[k], y, weight, not self.explicit, &self.scores[k].xSx,
                &self.scores[k].intercept_xSx,
            )
        return LEARNED

    cdef int find_steps(self, ob_softmax* p) noexcept nogil:
        """Compute the step c of every class."""
        cdef Py_ssize_t k
        cdef double lo, hi, q = self.eta[0] * (self.scores[0].xSx + self.scores[0].intercept_xSx)
        for k in range(1, self.n):
            self.alike = self.alike and self.eta[k] * (self.scores[k].xSx + self.scores[k].intercept_xSx) == q
        if self.alike and not self.explicit:
            ob_softmax_implicit(p, self.a, q, self.buffer)
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
                (<Learner> self.parts[k].learner).geometry.domain(&self.works.each[k], &lo, &hi)
                if not lo < self.c[k] < hi:
                    return LEFT_DOMAIN
        return LEARNED

    cdef void solve(self, const ob_softmax* p) noexcept nogil:
        """Compute the implicit steps: find the m at which the probabilities sum to 1."""
        cdef double m, lo = self.a[p.y], hi = INFINITY, excess, decrease, step, before = INFINITY
        cdef Py_ssize_t k
        cdef int iteration
        m = ob_softmax_loss(p, self.a) + self.a[p.y]
        for iteration in range(200):
            excess = decrease = 0.0
            self.share.m = m
            for k in range(self.n):
                self.solve_class((<Learner> self.parts[k].learner).geometry, k, k == p.y, &excess, &decrease)
            if isnan(excess):
                return
            step = -INFINITY  # m is so large that all p underflow
            if excess > -1.0 and decrease > 0:
                step = log1p(excess) * (1.0 + excess) / decrease
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
        for k in range(self.n):  # the rest of the step in m, to first order
            self.c[k] -= step * self.g[k]

    cdef void solve_class(self, Geometry geometry, Py_ssize_t k, double y, double* excess,
                          double* decrease) noexcept nogil:
        """Compute the step c of a class for this m, and store its derivative -dc/dm in g; add to (sum p) - 1."""
        cdef Workspace* work = &self.works.each[k]
        cdef double p, slope
        work.origin = 0.0
        self.c[k] = implicit_step(geometry, self.share, work, &self.scores[k], self.eta[k], y)
        evaluate_score(geometry, work, &self.scores[k], self.c[k], &p, &slope)
        p = exp(p - self.share.m)
        excess[0] += (work.origin + self.c[k]) / self.eta[k]
        p /= 1.0 + self.eta[k] * p * (slope + self.scores[k].intercept_xSx)
        decrease[0] += p
        self.g[k] = self.eta[k] * p

    cdef int move(self, Learner learner, Py_ssize_t k, const Row* row, double weight, double loss) noexcept nogil:
        """Move a class's weights to w(c)."""
        cdef Workspace* work = &self.works.each[k]
        cdef Score* score = &self.scores[k]
        cdef double divergence = 0.0, c
        cdef int status
        if self.tracked:
            divergence = divergence_to(learner.geometry, work, score, self.c[k])
        learner.geometry.step(work, self.c[k])
        c = self.c[k] + work.origin
        if self.tracked:
            if learner.geometry.traits & LINEAR:
                self.after[k] = score.a - c * (score.xSx + score.intercept_xSx)
            else:
                self.after[k] = learner.geometry.dot(work) + score.intercept - score.intercept_xSx * c
            if learner.geometry.traits & ADAPTIVE:
                learner.geometry.note_step(work, c, c * score.a - divergence)
            if not self.explicit:
                divergence -= c * (score.a - self.after[k])
            add_slack(&learner.run, divergence, self.eta[k] / weight)
        status = end_step(
            learner.geometry, &learner.settings, &learner.run, work, weight, self.eta[k] / weight, c,
            score.intercept_xSx, loss, 0.0,
        )
        if status == LEARNED and not learner.before.complete and not learner.before.finite(learner.geometry, row):
            return OVERFLOWED
        return status

    cdef void certify(self, Learner learner, ob_softmax* p, double weight) noexcept nogil:
        """Add the joint loss to the certificate, in the learner of the row's class."""
        cdef double value
        ob_softmax_of(p, self.a)
        value = ob_softmax_loss(p, self.a)
        learner.run.weighted_loss += self.eta[p.y] * value
        if not self.explicit:
            ob_softmax_of(p, self.after)
            value -= ob_softmax_loss(p, self.after)
            add_slack(&learner.run, self.eta[p.y] * value, self.eta[p.y] / weight)
