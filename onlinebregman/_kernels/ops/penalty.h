/* Proximal steps of single weights: argmin over v of D(v, w) + l1 abs(v) + l2 v^2 / 2, that is f(v) + l2 v = f(w) - l1
 * for positive weights. The step of l1 comes first, then that of l2, under which a weight at 0 stays at 0.
 */
#ifndef ONLINEBREGMAN_PENALTY_H
#define ONLINEBREGMAN_PENALTY_H

#include "vector.h"

/* Soft threshold: exactly 0 for abs(w) <= l1 */
OB_INLINE double ob_soft_threshold(double w, double l1) {
    const double cut = w < -l1 ? -l1 : w;
    return w - (cut > l1 ? l1 : cut);
}

/* The same for the weights of a sparse row, with l1 minus their stamps if there are any; then the step of l2 */
static void ob_soft_threshold_row(double *restrict w, const double *restrict stamp, const ptrdiff_t *restrict index,
                                  double l1, double l2, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        w[i] = ob_soft_threshold(w[i], stamp ? l1 - stamp[index[i]] : l1);
    if (l2 != 0.0)
        for (ptrdiff_t i = 0; i < n; ++i)
            w[i] /= 1.0 + l2;
}

OB_CLONES static void ob_soft_thresholds(double *restrict w, double l1, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        w[i] = ob_soft_threshold(w[i], l1);
}

/* The same, then the step of l2; bit for bit as for single weights */
OB_CLONES static void ob_soft_thresholds_and_ridge(double *restrict w, double l1, double l2, ptrdiff_t n) {
    const double growth = 1.0 + l2;
    for (ptrdiff_t i = 0; i < n; ++i)
        w[i] = ob_soft_threshold(w[i], l1) / growth;
}

/* ln v + l2 v = ln w: t = l2 v solves t e^t = l2 w, by the iteration of Fritsch, Shafer and Crowley, of fourth order */
static double ob_entropy_ridge(double w, double l2) {
    const double x = l2 * w, large = log(l2) + log(w);
    double t = large < 0.5 ? x / (1.0 + x) : large - log(large + 0.5);
    if (x < 1e-8)
        return w / (1.0 + x); /* exact up to rounding */
    for (int k = 0; k < 8; ++k) {
        const double z = large - log(t) - t, s = 1.0 + t, q = 2.0 * s * (s + 2.0 / 3.0 * z);
        const double e = z / s * ((q - z) / (q - 2.0 * z));
        t += t * e;
        if (fabs(e) < 1e-5) /* the next error is of the order of its fourth power */
            break;
    }
    return t < 1.0 ? w * exp(-t) : t / l2; /* the better conditioned of two equal forms */
}

/* ln(v / (1 - v)) + l2 v = ln(w / (1 - w)) - l1: Newton's method in the logit of v, inside a bracket, which is halved
   where steps do not become shorter: Newton alone may go in circles */
static double ob_binary_ridge(double w, double l1, double l2) {
    const double goal = log(w) - log1p(-w) - l1, up = w * exp(-l1);
    double v = up / (1.0 - w + up), low = goal - l2, high = goal, before = INFINITY;
    double t = goal - l2 * v / (1.0 + l2 * v * (1.0 - v));
    for (int k = 0; k < 200; ++k) {
        if (!(low < t && t < high))
            t = 0.5 * (low + high);
        const double e = exp(-fabs(t));
        v = (t < 0.0 ? e : 1.0) / (1.0 + e);
        const double excess = (t - goal) + l2 * v, curvature = e / ((1.0 + e) * (1.0 + e));
        const double step = excess / (1.0 + l2 * curvature);
        if (excess > 0.0)
            high = t;
        else
            low = t;
        if (fabs(step) <= 2.0 * DBL_EPSILON * fabs(t) || fabs(excess) <= 2.0 * DBL_EPSILON * (fabs(goal) + l2 * v))
            break;
        t = fabs(step) <= 0.5 * before ? t - step : 0.5 * (low + high);
        before = fabs(step);
    }
    return v;
}

#endif
