/* Symmetric matrices P from which the squares of few vectors are subtracted: panels of eight columns down to the
 * diagonal, each in tiles of 8 columns x 8 rows, the last one of which has both triangles. Vectors are padded with
 * zeros to a multiple of eight. */
#ifndef ONLINEBREGMAN_COVARIANCE_H
#define ONLINEBREGMAN_COVARIANCE_H

#include "vector.h"

#define OB_LAG 8 /* vectors that are subtracted together */

#if defined(__GNUC__)
#define OB_UNROLLED _Pragma("GCC unroll 8")
#else
#define OB_UNROLLED
#endif

/* The sums of eight groups of eight numbers */
OB_INLINE void ob_group_sums(double *restrict total, const double *restrict s) {
#if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
#define OB_PAIRS(a, b)                                                                                                 \
    (__builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7))
    for (int j = 0; j < 8; j += 4, s += 32) {
        const ob_4 t0 = OB_AT(const ob_unaligned4, s, 0) + OB_AT(const ob_unaligned4, s, 4);
        const ob_4 t1 = OB_AT(const ob_unaligned4, s, 8) + OB_AT(const ob_unaligned4, s, 12);
        const ob_4 t2 = OB_AT(const ob_unaligned4, s, 16) + OB_AT(const ob_unaligned4, s, 20);
        const ob_4 t3 = OB_AT(const ob_unaligned4, s, 24) + OB_AT(const ob_unaligned4, s, 28);
        const ob_4 lo = OB_PAIRS(t0, t1), hi = OB_PAIRS(t2, t3);
        OB_AT(ob_unaligned4, total, j) =
            __builtin_shufflevector(lo, hi, 0, 1, 4, 5) + __builtin_shufflevector(lo, hi, 2, 3, 6, 7);
    }
#undef OB_PAIRS
#else
    for (int j = 0; j < 8; ++j, s += 8)
        total[j] = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
#endif
}

/* v = P x */
OB_WIDE(void, ob_symmetric_product, (p, x, v, n), const double *restrict p, const double *restrict x,
        double *restrict v, ptrdiff_t n) {
    double sums[64], total[8];
    memset(v, 0, ((n + 7) & ~(ptrdiff_t)7) * sizeof(double));
    for (ptrdiff_t j = 0; j < n; j += 8) {
        const double *restrict z = x + j;
#define OB_MULTIPLIED(i)                                                                                               \
    (((OB_COLUMN(0, i) * z[0] + OB_COLUMN(1, i) * z[1]) + (OB_COLUMN(2, i) * z[2] + OB_COLUMN(3, i) * z[3])) +         \
     ((OB_COLUMN(4, i) * z[4] + OB_COLUMN(5, i) * z[5]) + (OB_COLUMN(6, i) * z[6] + OB_COLUMN(7, i) * z[7])))
#define OB_COLUMN(c, i) a##c
#define OB_PASSES(T, U)                                                                                                \
    for (int l = 0; l < 8; l += (int)(sizeof(T) / sizeof(double))) {                                                   \
        T s0 = {0}, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;                                     \
        const double *at = p + l;                                                                                      \
        for (ptrdiff_t k = l; k < j; k += 8, at += 64) {                                                               \
            const T y = OB_AT(const U, x, k);                                                                          \
            const T a0 = OB_AT(const U, at, 0), a1 = OB_AT(const U, at, 8), a2 = OB_AT(const U, at, 16);               \
            const T a3 = OB_AT(const U, at, 24), a4 = OB_AT(const U, at, 32), a5 = OB_AT(const U, at, 40);             \
            const T a6 = OB_AT(const U, at, 48), a7 = OB_AT(const U, at, 56);                                          \
            OB_AT(U, v, k) += OB_MULTIPLIED(k);                                                                        \
            s0 += a0 * y, s1 += a1 * y, s2 += a2 * y, s3 += a3 * y;                                                    \
            s4 += a4 * y, s5 += a5 * y, s6 += a6 * y, s7 += a7 * y;                                                    \
        }                                                                                                              \
        OB_AT(U, sums, l) = s0, OB_AT(U, sums, 8 + l) = s1, OB_AT(U, sums, 16 + l) = s2, OB_AT(U, sums, 24 + l) = s3;  \
        OB_AT(U, sums, 32 + l) = s4, OB_AT(U, sums, 40 + l) = s5, OB_AT(U, sums, 48 + l) = s6;                         \
        OB_AT(U, sums, 56 + l) = s7;                                                                                   \
    }
        OB_AT_WIDTH(OB_PASSES)
#undef OB_PASSES
#undef OB_COLUMN
#define OB_COLUMN(c, i) p[8 * c + i]
        ob_group_sums(total, sums);
        p += 8 * j;
        for (int i = 0; i < 8; ++i)
            v[j + i] = (v[j + i] + total[i]) + OB_MULTIPLIED(i);
#undef OB_COLUMN
#undef OB_MULTIPLIED
        p += 64;
    }
}

/* P = scale (P - sum v v') over OB_LAG vectors, which follow each other */
OB_WIDE(void, ob_subtract_squares, (p, v, scale, n), double *restrict p, const double *restrict v, double scale,
        ptrdiff_t n) {
    const ptrdiff_t length = (n + 7) & ~(ptrdiff_t)7;
    for (ptrdiff_t j = 0; j < n; j += 8) {
#define OB_PASSES(T, U)                                                                                                \
    for (int l = 0; l < 8; l += (int)(sizeof(T) / sizeof(double))) {                                                   \
        double *at = p + l;                                                                                            \
        for (ptrdiff_t k = l; k <= j + l; k += 8, at += 64) {                                                          \
            T squares[8] = {{0}};                                                                                      \
            OB_UNROLLED for (int r = 0; r < OB_LAG; ++r) {                                                             \
                const T u = OB_AT(const U, v, r * length + k);                                                         \
                OB_UNROLLED for (int c = 0; c < 8; ++c) squares[c] += u * v[r * length + j + c];                       \
            }                                                                                                          \
            OB_UNROLLED for (int c = 0; c < 8; ++c)                                                                    \
                OB_AT(U, at, 8 * c) = (OB_AT(U, at, 8 * c) - squares[c]) * scale;                                      \
        }                                                                                                              \
    }
        OB_AT_WIDTH(OB_PASSES)
#undef OB_PASSES
        p += 8 * (j + 8);
    }
}

#undef OB_UNROLLED

#endif
