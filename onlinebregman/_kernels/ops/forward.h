/* Givens rotations without square roots, for the forward algorithm: the same digits on every instruction set. */
#ifndef ONLINEBREGMAN_FORWARD_H
#define ONLINEBREGMAN_FORWARD_H

#include "vector.h"

/* r = keep r + gain z, z -= x r */
OB_CLONES static void ob_rotate(double *restrict r, double *restrict z, double x, double keep, double gain,
                                ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double v = z[i];
        z[i] = v - x * r[i];
        r[i] = keep * r[i] + gain * v;
    }
}

/* the same for z, z + stride, z + 2 stride, z + 3 stride in turn, with r read and written once */
OB_CLONES static void ob_rotate4(double *restrict r, double *restrict z, ptrdiff_t stride, const double *x,
                                 const double *keep, const double *gain, ptrdiff_t n) {
    double *restrict z1 = z + stride, *restrict z2 = z1 + stride, *restrict z3 = z2 + stride;
    const double x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    const double k0 = keep[0], k1 = keep[1], k2 = keep[2], k3 = keep[3];
    const double g0 = gain[0], g1 = gain[1], g2 = gain[2], g3 = gain[3];
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double r0 = r[i], v0 = z[i], v1 = z1[i], v2 = z2[i], v3 = z3[i];
        const double r1 = k0 * r0 + g0 * v0, r2 = k1 * r1 + g1 * v1, r3 = k2 * r2 + g2 * v2;
        z[i] = v0 - x0 * r0;
        z1[i] = v1 - x1 * r1;
        z2[i] = v2 - x2 * r2;
        z3[i] = v3 - x3 * r3;
        r[i] = k3 * r3 + g3 * v3;
    }
}

/* The scalars of Bierman's rank-one update of U D U', from f = U'x and b = D f: with e_j = gamma + h sum_(k <= j) b_k f_k
 *
 *     f_j <- h f_j / e_(j-1),   d_j <- d_j e_(j-1) / (e_j gamma), but not beyond `most` by gamma.
 *
 * Returns the smallest d before it is divided by gamma; `e` has room for n values. */
OB_CLONES static double ob_bierman(double *restrict d, double *restrict f, const double *restrict b, double *restrict e,
                                   double h, double gamma, double most, ptrdiff_t n) {
    double lo = DBL_MAX, hi = 0.0, last = gamma;
    for (ptrdiff_t j = 0; j < n; ++j)
        e[j] = h * b[j] * f[j];
    for (ptrdiff_t j = 0; j < n; ++j) {
        const double next = last + e[j];
        e[j] = last;
        last = next;
    }
    if (!(last <= DBL_MAX))
        return 0.0;
    for (ptrdiff_t j = 0; j < n; ++j) {
        d[j] *= e[j] / (e[j] + h * b[j] * f[j]);
        f[j] = h * f[j] / e[j];
    }
    ob_range(d, n, &lo, &hi);
    if (gamma < 1.0)
        for (ptrdiff_t j = 0; j < n; ++j) {
            const double grown = d[j] / gamma;
            d[j] = grown < most ? grown : d[j];
        }
    return lo;
}

#endif
