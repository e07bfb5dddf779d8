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

/* the same with the new r in `rotated`; returns whether one of its numbers is not finite */
OB_CLONES static int ob_rotate_into(double *restrict rotated, const double *restrict r, double *restrict z, double x,
                                    double keep, double gain, ptrdiff_t n) {
    int64_t bits = 0; /* those of 0, unless a number is not finite */
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double v = z[i], t = keep * r[i] + gain * v;
        z[i] = v - x * r[i];
        rotated[i] = t;
        bits |= OB_BITS(t * 0.0);
    }
    return (bits & INT64_MAX) != 0;
}

/* `ob_rotate` for z, z + stride, z + 2 stride, z + 3 stride in turn, reading and writing r once */
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

/* The centre of the rows: of each column its mean, the scatter sum h (x - mean)^2 about it, and the prior that the
 * factor has of its weight, 0 as long as the column is constant. A column whose deviation is below this part of its
 * mean is constant up to rounding. */
#define OB_CONSTANT 1e-14

/* Whether a column of the row z differs from its mean for the first time */
OB_CLONES static int ob_differs(const double *restrict z, const double *restrict mean, const double *restrict prior,
                                ptrdiff_t n) {
    int64_t found = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        found |= (prior[i] == 0.0) & (z[i] != mean[i]);
    return found != 0;
}

/* z -= mean; 0 in columns that are constant so far */
OB_CLONES static void ob_centre(double *restrict z, const double *restrict mean, const double *restrict prior,
                                ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        z[i] = (z[i] - mean[i]) * (prior[i] > 0.0 ? 1.0 : 0.0);
}

/* z = x - centre, x limited to mean +- limit s. A value more than twice as far counts as the mean if others just were,
 * as the column may have `moved`; and so does NaN, with `missing` added. Where s is not known (> 0), z is 0 if it were
 * more than `most`. */
OB_CLONES static void ob_centre_limited(double *restrict z, const double *restrict x, const double *restrict centre,
                                        const double *restrict mean, const double *restrict deviation,
                                        const double *restrict moved, double limit, double most, double missing,
                                        ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const int known = deviation[i] > 0.0, present = x[i] == x[i];
        const double far = known ? limit * deviation[i] : HUGE_VAL, low = mean[i] - far, high = mean[i] + far;
        const int doubted = known && moved[i] > 0.0 && fabs(x[i] - mean[i]) > 2.0 * far;
        const double value = present && !doubted ? x[i] : mean[i], raised = value < low ? low : value;
        const double u = (raised > high ? high : raised) - centre[i];
        z[i] = (known || fabs(u) <= most ? u : 0.0) + (present ? 0.0 * x[i] : missing);
    }
}

/* The prior that a column should have, alpha times its variance; infinite if that overflows */
OB_INLINE double ob_prior(double scatter, double mean, double alpha, double total) {
    const double least = (OB_CONSTANT * mean) * (OB_CONSTANT * mean) * total;
    return (scatter > least) | !(scatter <= DBL_MAX) ? alpha * (scatter / total) : 0.0;
}

/* Subtract the means, and add the row to means and scatter (Welford): `share` is its part of the weight `total` of all
 * rows, h its weight about the old means; the past is multiplied by gamma. Returns whether a prior is by more than a
 * factor of two not what it should be, `constant` plus `rate` times the scatter: see `ob_prior`. Conditions are 0 or 1,
 * so that columns are computed side by side. */
OB_CLONES static int ob_centre_and_count(double *restrict z, double *restrict mean, double *restrict scatter,
                                         double *restrict prior, double gamma, double share, double h, double rate,
                                         double constant, double total, ptrdiff_t n) {
    int64_t off = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double c = z[i] - mean[i], m = mean[i] + share * c, s = gamma * scatter[i] + (h * c) * c;
        const double p = gamma * prior[i], least = (OB_CONSTANT * m) * (OB_CONSTANT * m) * total;
        const double t = constant + (s > least ? rate * s : s <= DBL_MAX ? 0.0 : s);
        z[i] = c * (p + t > 0.0 ? 1.0 : 0.0);
        mean[i] = m;
        scatter[i] = s;
        prior[i] = p;
        off |= OB_BITS(t > 2.0 * p ? 1.0 : t > 0.0 && 2.0 * t < p ? 1.0 : 0.0);
    }
    return off != 0;
}

/* U is stored in blocks of four columns, each down to the diagonal of its last column, in tiles of 4 columns x 8 rows:
 * one contiguous piece of aligned memory. Values below the diagonal are 0. */
#define OB_TILE 32

/* The sum in the order of OB_REDUCE: of eight running sums s of whole tiles, and of the first `left` values of t. */
OB_INLINE double ob_tiled_sum(const double *s, const double *t, ptrdiff_t left) {
    double by4[4], by2[2] = {0.0, 0.0}, by1 = 0.0;
    for (int l = 0; l < 4; ++l)
        by4[l] = (s[l] + (left & 4 ? t[l] : 0.0)) + s[l + 4];
    t += left & 4;
    if (left & 2) {
        by2[0] = t[0];
        by2[1] = t[1];
        t += 2;
    }
    if (left & 1)
        by1 = t[0];
    return (((by4[0] + by2[0]) + by4[2]) + by1) + ((by4[1] + by2[1]) + by4[3]);
}

/* ob_sparse_dot of a column of tiles */
OB_INLINE double ob_tiled_sparse_dot(const double *u, const ptrdiff_t *index, const double *x, ptrdiff_t n) {
#define OB_W(i) u[(index[i] >> 3) * OB_TILE + (index[i] & 7)]
    OB_RETURN_SPARSE_DOT(n, OB_W, x)
#undef OB_W
}

/* For four columns u of n tiles, one after the other: u -= move v and, with the old u, v += gain u; then move = u'x for
 * the first m values of x. In the same pass next += gain u for the four columns before, with their new gain. If
 * `measured`, returns sum u^2. As many rows of the tiles are handled in one pass as fit into a register. */
OB_INLINE double ob_turn4(const int ob_width, double *restrict u, double *restrict v, double *restrict move,
                          const double *restrict gain, const double *restrict x, ptrdiff_t m, ptrdiff_t n,
                          double *restrict next, const double *restrict before, const double *restrict gain_before,
                          ptrdiff_t n_before, int measured) {
    const ptrdiff_t whole = m / 8;
    const double m0 = move[0], m1 = move[1], m2 = move[2], m3 = move[3];
    const double g0 = gain[0], g1 = gain[1], g2 = gain[2], g3 = gain[3];
    const double h0 = gain_before[0], h1 = gain_before[1], h2 = gain_before[2], h3 = gain_before[3];
    double sums[4][8], last[4][8], size[8], none[8] = {0.0};
#define OB_BODY(T, U, S0, S1, S2, S3, BEFORE)                                                                          \
    {                                                                                                                  \
        const ptrdiff_t row = 8 * k + l, at = OB_TILE * k + l;                                                         \
        const T y = OB_AT(const U, x, row), r0 = OB_AT(U, v, row);                                                     \
        const T a0 = OB_AT(U, u, at), a1 = OB_AT(U, u, at + 8), a2 = OB_AT(U, u, at + 16), a3 = OB_AT(U, u, at + 24);  \
        const T r1 = r0 + g0 * a0, r2 = r1 + g1 * a1, r3 = r2 + g2 * a2;                                               \
        const T b0 = a0 - m0 * r0, b1 = a1 - m1 * r1, b2 = a2 - m2 * r2, b3 = a3 - m3 * r3;                            \
        OB_AT(U, u, at) = b0;                                                                                          \
        OB_AT(U, u, at + 8) = b1;                                                                                      \
        OB_AT(U, u, at + 16) = b2;                                                                                     \
        OB_AT(U, u, at + 24) = b3;                                                                                     \
        OB_AT(U, v, row) = r3 + g3 * a3;                                                                               \
        S0 += b0 * y;                                                                                                  \
        S1 += b1 * y;                                                                                                  \
        S2 += b2 * y;                                                                                                  \
        S3 += b3 * y;                                                                                                  \
        if (measured)                                                                                                  \
            squares += (b0 * b0 + b1 * b1) + (b2 * b2 + b3 * b3);                                                      \
        if (BEFORE)                                                                                                    \
            OB_AT(U, next, row) =                                                                                      \
                (((OB_AT(U, next, row) + h0 * OB_AT(const U, before, at)) + h1 * OB_AT(const U, before, at + 8)) +     \
                 h2 * OB_AT(const U, before, at + 16)) + h3 * OB_AT(const U, before, at + 24);                         \
    }
#define OB_PASSES(T, U)                                                                                                \
    for (int l = 0; l < 8; l += (int)(sizeof(T) / sizeof(double))) {                                                   \
        T s0 = {0}, s1 = s0, s2 = s0, s3 = s0, t0 = s0, t1 = s0, t2 = s0, t3 = s0, squares = s0;                       \
        ptrdiff_t k = 0;                                                                                               \
        for (; k < whole && k < n_before; ++k)                                                                         \
            OB_BODY(T, U, s0, s1, s2, s3, 1)                                                                           \
        for (; k < whole; ++k)                                                                                         \
            OB_BODY(T, U, s0, s1, s2, s3, 0)                                                                           \
        for (; k < n; ++k)                                                                                             \
            OB_BODY(T, U, t0, t1, t2, t3, k < n_before)                                                                \
        OB_AT(U, sums[0], l) = s0, OB_AT(U, sums[1], l) = s1, OB_AT(U, sums[2], l) = s2, OB_AT(U, sums[3], l) = s3;    \
        OB_AT(U, last[0], l) = t0, OB_AT(U, last[1], l) = t1, OB_AT(U, last[2], l) = t2, OB_AT(U, last[3], l) = t3;    \
        OB_AT(U, size, l) = squares;                                                                                   \
    }
    OB_AT_WIDTH(OB_PASSES)
#undef OB_PASSES
#undef OB_BODY
    for (int j = 0; j < 4; ++j)
        move[j] = ob_tiled_sum(sums[j], last[j], m & 7);
    return measured ? ob_tiled_sum(size, none, 0) : 0.0;
}

/* One pass over U of n columns: the step of the row before, by its move and gain,
 *
 *     u_j -= move_j v,    v += gain_j u_j with the old u_j,    from v = 0 on,
 *
 * and the products for the next row: f = U'x in place of move, b = D f in place of gain, and v = U b. x has m
 * values, in the columns `index` or in the first ones; `one` is the index of a coordinate of value 1, or -1. v
 * has n values, rounded up to a multiple of eight, and `buffer` twice as many. If `measured`, returns sum u^2. */
OB_WIDE(double, ob_turn, (u, move, gain, d, x, index, m, one, v, buffer, n, measured), double *restrict u,
        double *restrict move, double *restrict gain, const double *restrict d, const double *restrict x,
        const ptrdiff_t *restrict index, ptrdiff_t m, ptrdiff_t one, double *restrict v, double *restrict buffer,
        ptrdiff_t n, int measured) {
    const ptrdiff_t padded = (n + 7) & ~(ptrdiff_t)7;
    double *last = buffer, *row = buffer + padded, none[4] = {0.0, 0.0, 0.0, 0.0};
    const double *before = u, *gain_before = none;
    double size = 0.0;
    ptrdiff_t seen = 0, n_before = 0;
    memset(v, 0, padded * sizeof(double));
    memset(last, 0, 2 * padded * sizeof(double));
    if (index == NULL)
        memcpy(row, x, m * sizeof(double));
    for (ptrdiff_t j = 0; j < n; j += 4) {
        const ptrdiff_t length = j + 4, tiles = (length + 7) / 8, dense = index != NULL ? 0 : m < length ? m : length;
        double *f = move + j, *b = gain + j;
        size += measured ? ob_turn4(ob_width, u, last, f, b, row, dense, tiles, v, before, gain_before, n_before, 1)
                         : ob_turn4(ob_width, u, last, f, b, row, dense, tiles, v, before, gain_before, n_before, 0);
        if (index != NULL) {
            while (seen < m && index[seen] < length)
                ++seen;
            for (int k = 0; k < 4; ++k)
                f[k] = ob_tiled_sparse_dot(u + 8 * k, index, x, seen);
        }
        if (j <= one && one < length)
            move[one] += 1.0;
        for (int k = 0; k < 4; ++k)
            b[k] = f[k] * d[j + k];
        before = u;
        gain_before = b;
        n_before = tiles;
        u += OB_TILE * tiles;
    }
    for (ptrdiff_t k = 0; k < n_before; ++k, before += OB_TILE, v += 8)
        for (int l = 0; l < 8; ++l)
            v[l] = (((v[l] + gain_before[0] * before[l]) + gain_before[1] * before[l + 8]) +
                    gain_before[2] * before[l + 16]) + gain_before[3] * before[l + 24];
    return size;
}

/* x'A^-1 x, A^-1 = U D U' after the pending step of U (see `ob_turn`), which is not applied: with the old products f =
 * U'x the new ones are f_j - move_j v'x, and v'x += gain_j f_j. */
OB_CLONES static double ob_leverage(const double *restrict u, const double *restrict move, const double *restrict gain,
                                    const double *restrict d, const double *restrict x,
                                    const ptrdiff_t *restrict index, ptrdiff_t m, ptrdiff_t one, ptrdiff_t n) {
    double vx = 0.0, total = 0.0;
    for (ptrdiff_t j = 0; j < n; j += 4) {
        double f[4] = {0.0, 0.0, 0.0, 0.0};
        for (ptrdiff_t i = 0; i <= m; ++i) {
            const ptrdiff_t k = i == m ? one : index == NULL ? i : index[i];
            if (k < 0 || k >= j + 4)
                continue;
            const double *column = u + k / 8 * OB_TILE + k % 8, value = i == m ? 1.0 : x[i];
            for (int c = 0; c < 4; ++c)
                f[c] += column[8 * c] * value;
        }
        for (int c = 0; c < 4; ++c) {
            const double now = f[c] - move[j + c] * vx;
            vx += gain[j + c] * f[c];
            total += d[j + c] * (now * now);
        }
        u += OB_TILE * ((j + 4 + 7) / 8);
    }
    return total;
}

/* The scalars of Bierman's rank-one update of U D U', from f = U'x and b = D f: with e_j = gamma + h sum_(k <= j) b_k
 * f_k
 *
 *     f_j <- h f_j / e_(j-1),   d_j <- d_j e_(j-1) / (e_j gamma), without the division by gamma if the result
 *                                                                  would exceed `most`.
 *
 * Returns the smallest d before it is divided by gamma; `e` is a buffer of n values. */
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
