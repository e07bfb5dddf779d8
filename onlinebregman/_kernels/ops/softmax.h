/* The softmax of scores, and Newton steps of the implicit step on its log loss.
 *
 * Vectors have one number for each class and are padded to whole registers, scores with OB_NO_CLASS, of probability 0.
 */
#ifndef ONLINEBREGMAN_SOFTMAX_H
#define ONLINEBREGMAN_SOFTMAX_H

#include "entropy.h"

#define OB_NO_CLASS -1e306

typedef struct {
    ptrdiff_t classes;
    ptrdiff_t n;    /* length of a vector: the next multiple of OB_LANES */
    ptrdiff_t y;    /* the class of the row */
    double *e;      /* exp(z - the largest z) */
    double largest;
    double rest;    /* the sum of e without the row's class, for 1 - s_y without cancellation */
    double total;   /* the sum of e */
} ob_softmax;

static void ob_softmax_sum(ob_softmax *p) {
    const double own = p->e[p->y];
    p->e[p->y] = 0.0;
    p->rest = ob_sum(p->e, p->n);
    p->e[p->y] = own;
    p->total = p->rest + own;
}

static void ob_softmax_of(ob_softmax *p, const double *z) {
    double lo = z[0];
    p->largest = lo;
    ob_range(z, p->n, &lo, &p->largest);
    ob_exp(p->e, z, -1.0, p->largest, p->n);
    ob_softmax_sum(p);
}

static double ob_softmax_loss(const ob_softmax *p, const double *z) {
    const double own = z[p->y];
    return own == p->largest ? log1p(p->rest) : (p->largest - own) + log(p->total);
}

/* s, the probabilities; s may be e */
OB_CLONES static void ob_softmax_probabilities(const ob_softmax *p, double *s) {
    const double share = 1.0 / p->total, *e = p->e;
    for (ptrdiff_t c = 0; c < p->n; ++c)
        s[c] = share * e[c];
}

/* g = s - e_y, the slopes of the log loss */
static void ob_softmax_slopes(const ob_softmax *p, double *g) {
    ob_softmax_probabilities(p, g);
    g[p->y] = -p->rest / p->total;
}

/* (1 - sum s^2) / (k - 1) of k classes, the mean eigenvalue of the Hessian diag s - s s' on its k - 1 dimensions */
static double ob_softmax_curvature(const ob_softmax *p) {
    const double own = p->e[p->y], squares = ob_dot(p->e, p->e, p->n) - own * own;
    return (2.0 * own * p->rest + (p->rest * p->rest - squares)) / (p->total * p->total * (double)(p->classes - 1));
}

/* r = z - a + q g; returns the largest |r| */
OB_CLONES static double ob_softmax_residual(const ob_softmax *p, const double *restrict z, const double *restrict a,
                                            double q, double *restrict r) {
    const double share = q / p->total, *restrict e = p->e;
    double lo = 0.0, hi = 0.0;
    for (ptrdiff_t c = 0; c < p->n; ++c)
        r[c] = (z[c] - a[c]) + share * e[c];
    r[p->y] = (z[p->y] - a[p->y]) - share * p->rest;
    ob_range(r, p->n, &lo, &hi);
    return hi > -lo ? hi : -lo;
}

/* r <- (I + q (diag s - s s'))^-1 r for an r that sums to 0, as z - a + q g does: (I + q diag s)^-1 r plus the multiple
 * of (I + q diag s)^-1 q s for which the sum is 0 again; `scratch` has n values */
OB_CLONES static void ob_softmax_newton(const ob_softmax *p, double q, double *restrict r, double *restrict scratch) {
    const double share = q / p->total, *restrict e = p->e;
    for (ptrdiff_t c = 0; c < p->n; ++c) {
        const double s = share * e[c], w = 1.0 / (1.0 + s);
        scratch[c] = s * w;
        r[c] *= w;
    }
    const double surplus = ob_sum(r, p->n) / fmax(ob_sum(scratch, p->n), DBL_MIN);
    for (ptrdiff_t c = 0; c < p->n; ++c)
        r[c] -= surplus * scratch[c];
}

/* p of z - r for an r whose third power is negligible */
OB_CLONES static void ob_softmax_shift(ob_softmax *p, const double *restrict r) {
    double *restrict e = p->e;
    for (ptrdiff_t c = 0; c < p->n; ++c)
        e[c] *= 1.0 + r[c] * (0.5 * r[c] - 1.0);
    ob_softmax_sum(p);
}

/* p of the scores z = a - q g with g = softmax(z) - e_y, from p of a. The problem is strongly convex, so that Newton's
 * method converges if steps are halved where the residual would grow; no step is larger than its residual. `scratch`
 * has 4 n values. */
static void ob_softmax_implicit(ob_softmax *p, const double *a, double q, double *scratch) {
    const ptrdiff_t n = p->n;
    double *z = scratch, *r = z + n, *trial = r + n, *next = trial + n;
    /* A bound on the change of each score: where z_y > a_y + gap + m, all |g| < (k - 1) exp(-m). */
    const double gap = p->largest - a[p->y], reach = fmax(1.0, gap + log(1.0 + q * (double)(p->classes - 1)));
    const double rounding = fmin(1e-13 * fabs(p->largest), 1e-3);
    double norm = ob_softmax_residual(p, a, a, q, r), part = 1.0;
    memcpy(z, a, n * sizeof(double));
    for (int steps = 0; steps < 1000 && norm > 1e-8 + rounding && part > DBL_EPSILON; ++steps) {
        ob_softmax_newton(p, q, r, next);
        part = 1.0;
        if (norm > reach) {
            double lo = 0.0, hi = 0.0;
            ob_range(r, n, &lo, &hi);
            part = fmin(1.0, reach / fmax(hi, -lo));
        }
        for (;; part *= 0.5) {
            for (ptrdiff_t c = 0; c < n; ++c)
                trial[c] = z[c] - part * r[c];
            ob_softmax_of(p, trial);
            const double tried = ob_softmax_residual(p, trial, a, q, next);
            if (tried < norm || part <= DBL_EPSILON) {
                norm = tried;
                break;
            }
        }
        memcpy(z, trial, n * sizeof(double));
        memcpy(r, next, n * sizeof(double));
    }
    ob_softmax_newton(p, q, r, next); /* the error is the square of this step */
    ob_softmax_shift(p, r);
}

#endif
