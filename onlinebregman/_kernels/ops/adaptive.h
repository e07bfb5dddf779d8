/* Helpers of the geometries that adapt. Of each coordinate they know r, the reciprocal of the largest |x| so far
 * (OB_UNSEEN where there was none), and z = x r, which lies between -1 and 1.
 */
#ifndef ONLINEBREGMAN_ADAPTIVE_H
#define ONLINEBREGMAN_ADAPTIVE_H

#include "vector.h"

#define OB_UNSEEN DBL_MAX

/* How many values of a row are larger than any before */
OB_CLONES static ptrdiff_t ob_count_larger(const double *restrict x, const double *restrict r, ptrdiff_t n) {
    int64_t larger = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        larger += fabs(x[i]) * r[i] > 1.0;
    return larger;
}

/* out = x, cut to the largest |x| so far where there was one; what is not finite stays so */
OB_CLONES static void ob_cut(double *restrict out, const double *restrict x, const double *restrict r, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double a = fabs(x[i]);
        out[i] = a * r[i] > 1.0 && r[i] < OB_UNSEEN && a <= DBL_MAX ? copysign(1.0 / r[i], x[i]) : x[i];
    }
}

/* The largest |x| grows from m to M: g, a sum of z^2, and, where they are rescaled, the weights follow */
OB_CLONES static void ob_grow(double *restrict w, double *restrict g, double *restrict r, const double *restrict x,
                              double rescaled, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double a = fabs(x[i]), larger = a * r[i];
        if (larger > 1.0) {
            const double ratio = r[i] < OB_UNSEEN ? 1.0 / larger : 1.0;
            w[i] *= rescaled != 0.0 ? ratio : 1.0;
            g[i] *= ratio * ratio;
            r[i] = 1.0 / a;
        }
    }
}

/* sum z^2 */
OB_CLONES static double ob_norm_square(const double *restrict x, const double *restrict r, ptrdiff_t n) {
    ob_lanes s = OB_ZERO;
#define OB_BODY(T, L, A) { const T z = L(x) * L(r); A(s) += z * z; }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    return OB_SUM8(s);
}

/* g += s x^2, q = x / h with h = sqrt(g) */
OB_CLONES static void ob_adapt(double *restrict q, double *restrict g, const double *restrict x, double s, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double v = x[i], sum = g[i] + s * (v * v);
        g[i] = sum;
        q[i] = sum < DBL_MIN ? 0.0 : v / sqrt(sum);
    }
}

/* g += s z^2, q = x / h with h = sqrt(g) / r^2; q may be r */
OB_CLONES static void ob_adapt_normalised(double *q, double *restrict g, const double *restrict x, const double *r,
                                          double s, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double u = r[i], z = x[i] * u, sum = g[i] + s * (z * z);
        g[i] = sum;
        q[i] = sum < DBL_MIN ? 0.0 : u * (z / sqrt(sum));
    }
}

/* g += s z^2, q = x / h with h = (1 + g) / r^2; q may be r */
OB_CLONES static void ob_adapt_second_order(double *q, double *restrict g, const double *restrict x, const double *r,
                                            double s, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double u = r[i], z = x[i] * u, sum = g[i] + s * (z * z);
        g[i] = sum;
        q[i] = u * (z / (1.0 + sum));
    }
}

#endif
