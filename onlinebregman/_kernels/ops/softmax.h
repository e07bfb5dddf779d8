/* Vectors of one number for each class: the softmax of scores, and Newton steps of the implicit step on its log loss.
 *
 * They are filled up to whole registers, scores with OB_NO_CLASS, of probability 0.
 */
#ifndef ONLINEBREGMAN_SOFTMAX_H
#define ONLINEBREGMAN_SOFTMAX_H

#include "entropy.h"

#define OB_NO_CLASS -1e306

typedef struct {
    ptrdiff_t classes;
    ptrdiff_t n;    /* values of a vector: the next multiple of OB_LANES */
    double *e;      /* exp(z - the largest z) */
    double largest;
    double tail;    /* the sum of e but for the largest one, which is 1 */
    ptrdiff_t top;  /* whose it is */
} ob_softmax;

static void ob_softmax_of(ob_softmax *p, const double *z) {
    ptrdiff_t top = 0;
    for (ptrdiff_t c = 1; c < p->classes; ++c)
        top = z[c] > z[top] ? c : top;
    p->top = top;
    p->largest = z[top];
    ob_exp(p->e, z, -1.0, p->largest, p->n);
    p->e[top] = 0.0;
    p->tail = ob_sum(p->e, p->n);
    p->e[top] = 1.0;
}

/* the log loss where y is the class */
static double ob_softmax_loss(const ob_softmax *p, const double *z, ptrdiff_t y) {
    return log1p(p->tail) + (p->largest - z[y]);
}

/* s, the probabilities, which may take the place of e */
OB_CLONES static void ob_softmax_probabilities(const ob_softmax *p, double *s) {
    const double share = 1.0 / (1.0 + p->tail), *e = p->e;
    for (ptrdiff_t c = 0; c < p->n; ++c)
        s[c] = share * e[c];
}

/* g = s - e_y, the slopes of the log loss; 1 - s keeps its digits */
static void ob_softmax_slopes(const ob_softmax *p, ptrdiff_t y, double *g) {
    ob_softmax_probabilities(p, g);
    g[y] = y == p->top ? -p->tail / (1.0 + p->tail) : g[y] - 1.0;
}

/* (1 - sum s^2) / (k - 1) of k classes, the mean eigenvalue of the Hessian diag s - s s' on its k - 1 dimensions */
static double ob_softmax_curvature(const ob_softmax *p) {
    const double share = 1.0 / (1.0 + p->tail);
    const double others = p->tail * p->tail - (ob_dot(p->e, p->e, p->n) - 1.0);
    return share * share * (2.0 * p->tail + others) / (double)(p->classes - 1);
}

/* r = z - a + q g; returns the largest |r| */
OB_CLONES static double ob_softmax_residual(const ob_softmax *p, const double *restrict z, const double *restrict a,
                                            double q, ptrdiff_t y, double *restrict r) {
    const double share = q / (1.0 + p->tail), *restrict e = p->e;
    double lo = 0.0, hi = 0.0;
    for (ptrdiff_t c = 0; c < p->n; ++c)
        r[c] = (z[c] - a[c]) + share * e[c];
    r[y] = y == p->top ? (z[y] - a[y]) - share * p->tail : r[y] - q;
    ob_range(r, p->n, &lo, &hi);
    return hi > -lo ? hi : -lo;
}

/* r <- (I + q (diag s - s s'))^-1 r for an r that sums to 0, as z - a + q g does: (I + q diag s)^-1 r and so much of
 * (I + q diag s)^-1 q s that the sum is 0 again; `room` has n values */
OB_CLONES static void ob_softmax_newton(const ob_softmax *p, double q, double *restrict r, double *restrict room) {
    const double share = q / (1.0 + p->tail), *restrict e = p->e;
    for (ptrdiff_t c = 0; c < p->n; ++c) {
        const double s = share * e[c], w = 1.0 / (1.0 + s);
        room[c] = s * w;
        r[c] *= w;
    }
    const double surplus = ob_sum(r, p->n) / fmax(ob_sum(room, p->n), DBL_MIN);
    for (ptrdiff_t c = 0; c < p->n; ++c)
        r[c] -= surplus * room[c];
}

/* p of z - r for an r of which the third power is nothing beside 1 */
OB_CLONES static void ob_softmax_shift(ob_softmax *p, const double *restrict r) {
    const double of_top = r[p->top];
    double *restrict e = p->e;
    for (ptrdiff_t c = 0; c < p->n; ++c) {
        const double shift = r[c] - of_top;
        e[c] *= 1.0 + shift * (0.5 * shift - 1.0);
    }
    e[p->top] = 0.0;
    p->tail = ob_sum(e, p->n);
    e[p->top] = 1.0;
}

/* p of the scores z = a - q g with g = softmax(z) - e_y. The problem is strongly convex, so Newton steps get there that
 * are halved where the residual would grow; none is larger than its residual. `room` has 4 n values. */
static void ob_softmax_implicit(ob_softmax *p, const double *a, double q, ptrdiff_t y, double *room) {
    const ptrdiff_t n = p->n;
    double *z = room, *r = z + n, *trial = r + n, *next = trial + n, lo = 0.0, hi = 0.0;
    /* No score moves farther: where z_y > a_y + gap + m, all |g| < (k - 1) exp(-m). */
    const double gap = p->largest - a[y], reach = fmax(1.0, gap + log(1.0 + q * (double)(p->classes - 1)));
    const double rounding = fmin(1e-13 * fabs(p->largest), 1e-3);
    double norm = ob_softmax_residual(p, a, a, q, y, r), part = 1.0;
    memcpy(z, a, n * sizeof(double));
    for (int steps = 0; steps < 1000 && norm > 1e-8 + rounding && part > DBL_EPSILON; ++steps) {
        ob_softmax_newton(p, q, r, next);
        part = 1.0;
        if (norm > reach) {
            lo = hi = 0.0;
            ob_range(r, n, &lo, &hi);
            part = fmin(1.0, reach / fmax(hi, -lo));
        }
        for (;; part *= 0.5) {
            for (ptrdiff_t c = 0; c < n; ++c)
                trial[c] = z[c] - part * r[c];
            ob_softmax_of(p, trial);
            const double tried = ob_softmax_residual(p, trial, a, q, y, next);
            if (tried < norm || part <= DBL_EPSILON) {
                norm = tried;
                break;
            }
        }
        memcpy(z, trial, n * sizeof(double));
        memcpy(r, next, n * sizeof(double));
    }
    ob_softmax_newton(p, q, r, next); /* the step after this one would be its square */
    ob_softmax_shift(p, r);
}

#endif
