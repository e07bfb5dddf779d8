/* Givens rotations without square roots, for the forward algorithm: the same digits on every instruction set. */
#ifndef ONLINEBREGMAN_FORWARD_H
#define ONLINEBREGMAN_FORWARD_H

#include "row.h"

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

/* u -= move v, v += gain u as it was for four columns u, one after the other, and then u'x in the place of move: of m
 * values x, or of those in the columns `index`. If `measured`, returns sum u^2. */
OB_INLINE double ob_turn4(double *restrict u, double *restrict v, double *restrict move, const double *restrict gain,
                          const double *restrict x, const ptrdiff_t *restrict index, ptrdiff_t m, ptrdiff_t n,
                          int measured) {
    double *restrict u1 = u + n, *restrict u2 = u1 + n, *restrict u3 = u2 + n;
    const ptrdiff_t dense = index != NULL ? 0 : m < n ? m : n;
    const double m0 = move[0], m1 = move[1], m2 = move[2], m3 = move[3];
    const double g0 = gain[0], g1 = gain[1], g2 = gain[2], g3 = gain[3];
    ob_lanes s0 = OB_ZERO, s1 = OB_ZERO, s2 = OB_ZERO, s3 = OB_ZERO, squares = OB_ZERO;
#define OB_TURN(T, L)                                                                                                  \
    const T a0 = L(u), a1 = L(u1), a2 = L(u2), a3 = L(u3), r0 = L(v);                                                  \
    const T r1 = r0 + g0 * a0, r2 = r1 + g1 * a1, r3 = r2 + g2 * a2, r4 = r3 + g3 * a3;                                \
    const T b0 = a0 - m0 * r0, b1 = a1 - m1 * r1, b2 = a2 - m2 * r2, b3 = a3 - m3 * r3;                                \
    memcpy(u + i, &b0, sizeof(T));                                                                                     \
    memcpy(u1 + i, &b1, sizeof(T));                                                                                    \
    memcpy(u2 + i, &b2, sizeof(T));                                                                                    \
    memcpy(u3 + i, &b3, sizeof(T));                                                                                    \
    memcpy(v + i, &r4, sizeof(T));
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T y = L(x);                                                                                              \
        OB_TURN(T, L)                                                                                                  \
        A(s0) += b0 * y;                                                                                               \
        A(s1) += b1 * y;                                                                                               \
        A(s2) += b2 * y;                                                                                               \
        A(s3) += b3 * y;                                                                                               \
        if (measured)                                                                                                  \
            A(squares) += (b0 * b0 + b1 * b1) + (b2 * b2 + b3 * b3);                                                   \
    }
    OB_REDUCE(dense, OB_BODY);
#undef OB_BODY
    double size = measured ? OB_SUM8(squares) : 0.0;
    for (ptrdiff_t i = dense; i < n; ++i) {
        OB_TURN(double, OB_LOAD1)
        size += (b0 * b0 + b1 * b1) + (b2 * b2 + b3 * b3);
    }
#undef OB_TURN
    move[0] = OB_SUM8(s0);
    move[1] = OB_SUM8(s1);
    move[2] = OB_SUM8(s2);
    move[3] = OB_SUM8(s3);
    for (int k = 0; k < 4 && index != NULL; ++k)
        move[k] = ob_sparse_dot(u + k * n, index, x, m);
    return size;
}

/* next += gain u for four columns, one after the other */
OB_INLINE void ob_gain4(double *restrict next, const double *restrict u, const double *restrict gain, ptrdiff_t n) {
    const double *restrict u1 = u + n, *restrict u2 = u1 + n, *restrict u3 = u2 + n;
    const double g0 = gain[0], g1 = gain[1], g2 = gain[2], g3 = gain[3];
    for (ptrdiff_t i = 0; i < n; ++i)
        next[i] = (((next[i] + g0 * u[i]) + g1 * u1[i]) + g2 * u2[i]) + g3 * u3[i];
}

/* One pass over U, n columns in fours, each four as long as the last one: the step of the row before, by its move and
 * gain,
 *
 *     u_j -= move_j v,    v += gain_j u_j as it was,    from v = 0 on,
 *
 * and what the next row asks for: f = U'x in the place of move, b = D f in that of gain, and v = U b. Of x there are m
 * values, in the columns `index` or in the first ones; `one` is the coordinate of a further 1, or -1. `last` is room
 * for n values. If `measured`, returns sum u^2. */
OB_CLONES static double ob_turn(double *restrict u, double *restrict move, double *restrict gain,
                                const double *restrict d, const double *restrict x, const ptrdiff_t *restrict index,
                                ptrdiff_t m, ptrdiff_t one, double *restrict v, double *restrict last, ptrdiff_t n,
                                int measured) {
    double size = 0.0;
    ptrdiff_t seen = 0;
    memset(v, 0, n * sizeof(double));
    memset(last, 0, n * sizeof(double));
    for (ptrdiff_t j = 0; j < n; j += 4) {
        const ptrdiff_t length = j + 4;
        while (index != NULL && seen < m && index[seen] < length)
            ++seen;
        size += measured ? ob_turn4(u, last, move + j, gain + j, x, index, index != NULL ? seen : m, length, 1)
                         : ob_turn4(u, last, move + j, gain + j, x, index, index != NULL ? seen : m, length, 0);
        if (j <= one && one < length)
            move[one] += 1.0;
        for (ptrdiff_t k = j; k < length; ++k)
            gain[k] = move[k] * d[k];
        ob_gain4(v, u, gain + j, length);
        u += 4 * length;
    }
    return size;
}

/* The scalars of Bierman's rank-one update of U D U', from f = U'x and b = D f: with e_j = gamma + h sum_(k <= j) b_k
 * f_k
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
