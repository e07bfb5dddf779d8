/* Vector helpers of all geometries: sums over, and updates of, contiguous doubles.
 *
 * Reductions keep eight running sums in a fixed order, so compilers vectorise them without -ffast-math and every
 * instruction set gives the same digits (the build turns contraction to fused multiply-add off).
 */
#ifndef ONLINEBREGMAN_VECTOR_H
#define ONLINEBREGMAN_VECTOR_H

#include "simd.h"

/* The smallest weight of a positive geometry: a weight of zero could never grow again. */
#define OB_TINY DBL_MIN

/* sum a b; inlined into other helpers */
OB_INLINE double ob_inner(const int ob_width, const double *a, const double *b, ptrdiff_t n) {
    ob_lanes s = OB_ZERO;
#define OB_BODY(T, L, A) { A(s) += L(a) * L(b); }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    return OB_SUM8(s);
}

OB_WIDE(double, ob_dot, (a, b, n), const double *restrict a, const double *restrict b, ptrdiff_t n) {
    return ob_inner(ob_width, a, b, n);
}

/* sum (a - b) x: exactly 0 where a = b, which the sum of a x and -b x is not */
OB_WIDE(double, ob_dot_signed, (a, b, x, n), const double *restrict a, const double *restrict b,
        const double *restrict x, ptrdiff_t n) {
    ob_lanes s = OB_ZERO;
#define OB_BODY(T, L, A) { A(s) += (L(a) - L(b)) * L(x); }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    return OB_SUM8(s);
}

/* sum w x and, in the same pass, sum x x over a row x. Memory 4 KB ahead is prefetched, as the processor does not
 * prefetch rows while weights are updated. The sum that a step needs first is returned, not stored to memory. */
OB_WIDE(double, ob_dot_and_square, (w, x, n, square), const double *restrict w, const double *restrict x, ptrdiff_t n,
        double *square) {
    ob_lanes s = OB_ZERO, q = OB_ZERO;
#define OB_BODY(T, L, A) { const T v = L(x); OB_PREFETCH(x + i + 512); A(s) += L(w) * v; A(q) += v * v; }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    *square = OB_SUM8(q);
    return OB_SUM8(s);
}

/* w -= c x */
OB_CLONES static void ob_axpy(double *restrict w, const double *restrict x, double c, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        w[i] -= c * x[i];
}

/* w *= c, never below OB_TINY */
OB_CLONES static void ob_scale_positive(double *restrict w, double c, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double v = w[i] * c;
        w[i] = v < OB_TINY ? OB_TINY : v;
    }
}

/* 0 when all are finite, NaN otherwise */
OB_WIDE(double, ob_nonfinite, (a, n), const double *restrict a, ptrdiff_t n) {
    ob_lanes s = OB_ZERO;
#define OB_BODY(T, L, A) { A(s) += L(a) * 0.0; }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    return OB_SUM8(s);
}

/* sum a */
OB_INLINE double ob_added(const int ob_width, const double *a, ptrdiff_t n) {
    ob_lanes s = OB_ZERO;
#define OB_BODY(T, L, A) { A(s) += L(a); }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    return OB_SUM8(s);
}

OB_WIDE(double, ob_sum, (a, n), const double *restrict a, ptrdiff_t n) {
    return ob_added(ob_width, a, n);
}

/* widen [lo, hi] to contain all of a */
OB_CLONES static void ob_range(const double *restrict a, ptrdiff_t n, double *lo, double *hi) {
    int64_t l = OB_RANK(OB_BITS(*lo)), h = OB_RANK(OB_BITS(*hi));
    for (ptrdiff_t i = 0; i < n; ++i) {
        const int64_t bits = OB_BITS(a[i]), v = OB_RANK(bits);
        l = v < l ? v : l;
        h = v > h ? v : h;
    }
    *lo = OB_DOUBLE(OB_RANK(l));
    *hi = OB_DOUBLE(OB_RANK(h));
}

/* p = a b; p may be a */
OB_CLONES static void ob_multiply(double *p, const double *a, const double *restrict b, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        p[i] = a[i] * b[i];
}

/* sum_ += w (clock - stamp), stamp = clock: adds weights, times the time since they changed, to the sum of averaging */
OB_CLONES static void ob_accumulate(double *restrict sum, double *restrict stamp, const double *restrict w,
                                    double clock, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        sum[i] += w[i] * (clock - stamp[i]);
        stamp[i] = clock;
    }
}

/* w = min(w, upper) */
OB_CLONES static void ob_clip(double *restrict w, double upper, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        w[i] = w[i] > upper ? upper : w[i];
}

/* v = A z and return z'A z for a symmetric A (n, n) of which only the upper triangle is read: four rows at a time, each
 * as a row and as a column */
OB_WIDE(double, ob_symv, (a, z, v, n), const double *restrict a, const double *restrict z, double *restrict v,
        ptrdiff_t n) {
    memset(v, 0, n * sizeof(double));
    for (ptrdiff_t top = 0; top < n; top += 4) {
        const ptrdiff_t rows = n - top < 4 ? n - top : 4, rest = n - top - rows;
        for (ptrdiff_t k = top; k < top + rows; ++k) {
            v[k] += a[k * n + k] * z[k];
            for (ptrdiff_t l = k + 1; l < top + rows; ++l) {
                v[k] += a[k * n + l] * z[l];
                v[l] += a[k * n + l] * z[k];
            }
        }
        if (rest == 0)
            break;
        const double *r0 = a + top * n + top + 4, *r1 = r0 + n, *r2 = r1 + n, *r3 = r2 + n, *x = z + top + 4;
        const double z0 = z[top], z1 = z[top + 1], z2 = z[top + 2], z3 = z[top + 3];
        double *u = v + top + 4;
        ob_lanes s0 = OB_ZERO, s1 = OB_ZERO, s2 = OB_ZERO, s3 = OB_ZERO;
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T a0 = L(r0), a1 = L(r1), a2 = L(r2), a3 = L(r3), y = L(x);                                              \
        const T w = L(u) + ((a0 * z0 + a1 * z1) + (a2 * z2 + a3 * z3));                                                \
        OB_STORE(T, u, w);                                                                                             \
        A(s0) += a0 * y;                                                                                               \
        A(s1) += a1 * y;                                                                                               \
        A(s2) += a2 * y;                                                                                               \
        A(s3) += a3 * y;                                                                                               \
    }
        OB_REDUCE(rest, OB_BODY);
#undef OB_BODY
        v[top] += OB_SUM8(s0);
        v[top + 1] += OB_SUM8(s1);
        v[top + 2] += OB_SUM8(s2);
        v[top + 3] += OB_SUM8(s3);
    }
    return ob_dot(v, z, n);
}

/* A -= c v v', upper triangle */
OB_CLONES static void ob_syr(double *restrict a, const double *restrict v, double c, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i, a += n) {
        const double s = c * v[i];
        for (ptrdiff_t j = i; j < n; ++j)
            a[j] -= s * v[j];
    }
}

#endif
