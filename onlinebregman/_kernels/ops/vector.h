/* Vector helpers of all geometries: sums over, and updates of, contiguous doubles.
 *
 * Reductions keep eight running sums in a fixed order, so compilers vectorise them without -ffast-math and every
 * instruction set gives the same digits (the build turns contraction to fused multiply-add off).
 */
#ifndef ONLINEBREGMAN_VECTOR_H
#define ONLINEBREGMAN_VECTOR_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Clones for newer x86-64 instruction sets, chosen at load time; needs gcc >= 12 and glibc's ifunc. */
#ifdef OB_CLONES /* a build for one instruction set */
#elif defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__) && __GNUC__ >= 12
#define OB_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define OB_BY_WIDTH
#else
#define OB_CLONES
#endif

/* OB_WIDE(type, name, (arguments), parameters) { body } defines a helper with sums in vector registers. They are kept
 * in registers only if their type is not wider than these: so the body is compiled for registers of `ob_width` doubles,
 * and callers take the version for the widest that the processor has. */
#ifdef OB_BY_WIDTH
#define OB_LISTED(...) __VA_ARGS__
#define OB_WIDE(type, name, arguments, ...)                                                                            \
    OB_INLINE type name##_by(const int ob_width, __VA_ARGS__);                                                         \
    __attribute__((target("arch=x86-64-v4"))) static type name##_v4(__VA_ARGS__) {                                     \
        return name##_by(8, OB_LISTED arguments);                                                                      \
    }                                                                                                                  \
    __attribute__((target("arch=x86-64-v3"))) static type name##_v3(__VA_ARGS__) {                                     \
        return name##_by(4, OB_LISTED arguments);                                                                      \
    }                                                                                                                  \
    __attribute__((noinline)) static type name##_v1(__VA_ARGS__) {                                                     \
        return name##_by(2, OB_LISTED arguments);                                                                      \
    }                                                                                                                  \
    static inline type name(__VA_ARGS__) {                                                                             \
        return __builtin_cpu_supports("x86-64-v4")   ? name##_v4 arguments                                             \
               : __builtin_cpu_supports("x86-64-v3") ? name##_v3 arguments                                             \
                                                     : name##_v1 arguments;                                            \
    }                                                                                                                  \
    OB_INLINE type name##_by(const int ob_width, __VA_ARGS__)
#else
#if defined(__AVX512F__)
enum { ob_width = 8 };
#elif defined(__AVX__)
enum { ob_width = 4 };
#else
enum { ob_width = 2 };
#endif
#define OB_WIDE(type, name, arguments, ...) static type name(__VA_ARGS__)
#endif

/* The bits of a double, and the double of bits; the bits as integers in the order of the doubles, and back. Compilers
 * vectorise only a minimum or maximum of integers. */
#define OB_BITS(v) (((union { double value; int64_t bits; }){.value = (v)}).bits)
#define OB_DOUBLE(b) (((union { double value; int64_t bits; }){.bits = (b)}).value)
#define OB_RANK(bits) ((bits) ^ (((bits) >> 63) & INT64_MAX))

#define OB_LANES 8

/* Runs BODY(T, L, A) over i in [0, n), eight values at a time, in registers of `ob_width`, and then four, two and one
 * of what is left. T is the type of a group of values, L(p) loads a group at p[i], and A(s) is the element of the
 * running sums s that it is added to. It uses vector extensions, as compilers do not vectorise loops with more than one
 * sum in this way.
 */
#define OB_ZERO {0}
#define OB_LOAD1(p) ((p)[i])
#if defined(__GNUC__)
typedef double ob_8 __attribute__((vector_size(64)));
typedef double ob_4 __attribute__((vector_size(32)));
typedef double ob_2 __attribute__((vector_size(16)));
typedef double ob_unaligned8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef double ob_unaligned4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef double ob_unaligned2 __attribute__((vector_size(16), aligned(8), may_alias));
typedef struct {
    union {
        ob_8 by8;
        ob_4 half[2];
        ob_2 quarter[4];
    };
    ob_4 by4;
    ob_2 by2;
    double by1;
} ob_lanes;
#define OB_LOAD8(p) (*(const ob_unaligned8 *)((p) + i))
#define OB_LOAD4(p) (*(const ob_unaligned4 *)((p) + i))
#define OB_LOAD2(p) (*(const ob_unaligned2 *)((p) + i))
#define OB_BY8(s) ((s).by8)
#define OB_HALF0(s) ((s).half[0])
#define OB_HALF1(s) ((s).half[1])
#define OB_QUARTER0(s) ((s).quarter[0])
#define OB_QUARTER1(s) ((s).quarter[1])
#define OB_QUARTER2(s) ((s).quarter[2])
#define OB_QUARTER3(s) ((s).quarter[3])
#define OB_BY4(s) ((s).by4)
#define OB_BY2(s) ((s).by2)
#define OB_BY1(s) ((s).by1)
#define OB_REDUCE(n, BODY)                                                                                             \
    do {                                                                                                               \
        ptrdiff_t i = 0;                                                                                               \
        for (; i + OB_LANES <= (n);) {                                                                                 \
            if (ob_width == 8) {                                                                                       \
                BODY(ob_8, OB_LOAD8, OB_BY8)                                                                           \
                i += 8;                                                                                                \
            } else if (ob_width == 4) {                                                                                \
                BODY(ob_4, OB_LOAD4, OB_HALF0)                                                                         \
                i += 4;                                                                                                \
                BODY(ob_4, OB_LOAD4, OB_HALF1)                                                                         \
                i += 4;                                                                                                \
            } else {                                                                                                   \
                BODY(ob_2, OB_LOAD2, OB_QUARTER0)                                                                      \
                i += 2;                                                                                                \
                BODY(ob_2, OB_LOAD2, OB_QUARTER1)                                                                      \
                i += 2;                                                                                                \
                BODY(ob_2, OB_LOAD2, OB_QUARTER2)                                                                      \
                i += 2;                                                                                                \
                BODY(ob_2, OB_LOAD2, OB_QUARTER3)                                                                      \
                i += 2;                                                                                                \
            }                                                                                                          \
        }                                                                                                              \
        if ((n) & 4) {                                                                                                 \
            BODY(ob_4, OB_LOAD4, OB_BY4)                                                                               \
            i += 4;                                                                                                    \
        }                                                                                                              \
        if ((n) & 2) {                                                                                                 \
            BODY(ob_2, OB_LOAD2, OB_BY2)                                                                               \
            i += 2;                                                                                                    \
        }                                                                                                              \
        if ((n) & 1)                                                                                                   \
            BODY(double, OB_LOAD1, OB_BY1)                                                                             \
    } while (0)
#define OB_INLINE __attribute__((always_inline)) static inline
/* the lower and the upper four of eight lanes */
#define OB_LOWER(T, s)                                                                                                 \
    (ob_width == 8   ? (T){(s)->by8[0], (s)->by8[1], (s)->by8[2], (s)->by8[3]}                                         \
     : ob_width == 4 ? (s)->half[0]                                                                                    \
                     : (T){(s)->quarter[0][0], (s)->quarter[0][1], (s)->quarter[1][0], (s)->quarter[1][1]})
#define OB_UPPER(T, s)                                                                                                 \
    (ob_width == 8   ? (T){(s)->by8[4], (s)->by8[5], (s)->by8[6], (s)->by8[7]}                                         \
     : ob_width == 4 ? (s)->half[1]                                                                                    \
                     : (T){(s)->quarter[2][0], (s)->quarter[2][1], (s)->quarter[3][0], (s)->quarter[3][1]})
OB_INLINE double ob_total(const int ob_width, const ob_lanes *s) {
    const ob_4 by4 = (OB_LOWER(ob_4, s) + s->by4) + OB_UPPER(ob_4, s);
    const ob_2 lo2 = {by4[0], by4[1]}, hi2 = {by4[2], by4[3]}, by2 = (lo2 + s->by2) + hi2;
    return (by2[0] + s->by1) + by2[1];
}
#else
typedef double ob_lanes[15]; /* eight, four, two, one */
#define OB_INLINE static inline
#define OB_LANE(s) ((s)[lane])
#define OB_EACH(first, last, BODY)                                                                                     \
    for (ptrdiff_t lane = (first); lane < (last); ++lane, ++i) {                                                       \
        BODY(double, OB_LOAD1, OB_LANE)                                                                                \
    }
#define OB_REDUCE(n, BODY)                                                                                             \
    do {                                                                                                               \
        ptrdiff_t i = 0;                                                                                               \
        while (i + OB_LANES <= (n))                                                                                    \
            OB_EACH(0, 8, BODY)                                                                                        \
        if ((n) & 4)                                                                                                   \
            OB_EACH(8, 12, BODY)                                                                                       \
        if ((n) & 2)                                                                                                   \
            OB_EACH(12, 14, BODY)                                                                                      \
        if ((n) & 1)                                                                                                   \
            OB_EACH(14, 15, BODY)                                                                                      \
    } while (0)
OB_INLINE double ob_total(const int ob_width, const ob_lanes *lanes) {
    const double *s = *lanes;
    const double a = (s[0] + s[8]) + s[4], b = (s[1] + s[9]) + s[5];
    const double c = (s[2] + s[10]) + s[6], d = (s[3] + s[11]) + s[7];
    return (((a + s[12]) + c) + s[14]) + ((b + s[13]) + d);
}
#endif
#define OB_SUM8(s) ob_total(ob_width, &(s))

/* Running bits, for a BODY of OB_REDUCE: OB_SIGN(T, h, v) collects the signs of all v; `ob_negative` is true if one is
 * below 0 */
#define OB_SIGN(T, h, v) OB_SIGN_##T(h, v)
#define OB_SIGN_double(h, v) ((h) |= OB_BITS(v))
#if defined(__GNUC__)
typedef int64_t ob_bits8 __attribute__((vector_size(64)));
typedef int64_t ob_bits4 __attribute__((vector_size(32)));
typedef int64_t ob_bits2 __attribute__((vector_size(16)));
typedef struct {
    union {
        ob_bits8 by8;
        ob_bits4 half[2];
        ob_bits2 quarter[4];
    };
    ob_bits4 by4;
    ob_bits2 by2;
    int64_t by1;
} ob_bits;
#define OB_SIGN_ob_8(h, v) ((h) |= (ob_bits8)(v))
#define OB_SIGN_ob_4(h, v) ((h) |= (ob_bits4)(v))
#define OB_SIGN_ob_2(h, v) ((h) |= (ob_bits2)(v))
OB_INLINE int ob_negative(const int ob_width, const ob_bits *h) {
    const ob_bits4 by4 = (OB_LOWER(ob_bits4, h) | h->by4) | OB_UPPER(ob_bits4, h);
    const ob_bits2 lo2 = {by4[0], by4[1]}, hi2 = {by4[2], by4[3]}, by2 = (lo2 | h->by2) | hi2;
    return ((by2[0] | h->by1) | by2[1]) < 0;
}
#else
typedef int64_t ob_bits[15];
OB_INLINE int ob_negative(const int ob_width, const ob_bits *h) {
    int64_t any = 0;
    for (int k = 0; k < 15; ++k)
        any |= (*h)[k];
    return any < 0;
}
#endif

/* Prefetch memory that is read soon; any address is allowed. */
#if defined(__GNUC__)
#define OB_PREFETCH(p) __builtin_prefetch(p)
#else
#define OB_PREFETCH(p) ((void)0)
#endif

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

/* sum a b and sum b b */
static void ob_dot_norm(const double *a, const double *b, ptrdiff_t n, double *dot, double *norm) {
    *dot = ob_dot_and_square(a, b, n, norm);
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
        memcpy(u + i, &w, sizeof(T));                                                                                  \
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
