/* Vectors: instruction sets, registers of several widths, and what compilers without vector extensions do instead.
 *
 * Nothing here is a formula. Helpers are written once, as a BODY for groups of values, and give the same digits in all
 * widths and without vectors.
 */
#ifndef ONLINEBREGMAN_SIMD_H
#define ONLINEBREGMAN_SIMD_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Clones for newer x86-64 instruction sets, chosen at load time; needs gcc >= 12 and glibc's ifunc. */
#ifdef OB_CLONES /* a build for one instruction set */
#elif defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && defined(__GNUC__) &&                      \
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
typedef int64_t ob_8_bits __attribute__((vector_size(64)));
typedef int64_t ob_4_bits __attribute__((vector_size(32)));
typedef int64_t ob_2_bits __attribute__((vector_size(16)));
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
typedef struct {
    union {
        ob_8_bits by8;
        ob_4_bits half[2];
        ob_2_bits quarter[4];
    };
    ob_4_bits by4;
    ob_2_bits by2;
    int64_t by1;
} ob_bits;
#define OB_ONE {{{1, 1, 1, 1, 1, 1, 1, 1}}, {1, 1, 1, 1}, {1, 1}, 1}
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
/* PASSES(T, U) for registers of `ob_width` values: T is their type, U that of values in memory. */
#define OB_AT_WIDTH(PASSES)                                                                                            \
    if (ob_width == 8)                                                                                                 \
        PASSES(ob_8, ob_unaligned8)                                                                                    \
    else if (ob_width == 4)                                                                                            \
        PASSES(ob_4, ob_unaligned4)                                                                                    \
    else                                                                                                               \
        PASSES(ob_2, ob_unaligned2)
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
typedef int64_t ob_bits[15];
#define OB_ONE {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
#define OB_AT_WIDTH(PASSES) PASSES(double, double)
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

/* Operations on a group of values of type T, which is double, ob_8, ob_4 or ob_2: in C these have different forms.
 * OB_PICK is m ? a : b, and OB_FLOOR max(v, f) for a number f. Of integers h that run over groups OB_SIGN collects the
 * signs of all v, `ob_negative` being true if one is below 0, and OB_RAISE is h = max(h, |v|), the only maximum that
 * compilers vectorise. OB_STORE stores to where L(p) loads from. */
#define OB_OF(T, name) OB_JOIN(name, OB_KIND_##T)
#define OB_JOIN(name, kind) OB_JOINED(name, kind)
#define OB_JOINED(name, kind) name##_##kind
#define OB_KIND_double one
#define OB_KIND_ob_8 group
#define OB_KIND_ob_4 group
#define OB_KIND_ob_2 group
#define OB_MAX(a, b) ((a) > (b) ? (a) : (b))
#define OB_ABS(T, v) OB_OF(T, OB_ABS)(T, v)
#define OB_ABS_one(T, v) fabs(v)
#define OB_ABS_group(T, v) ((T)((T##_bits)(v) & INT64_MAX))
#define OB_PICK(T, m, a, b) OB_OF(T, OB_PICK)(T, m, a, b)
#define OB_PICK_one(T, m, a, b) ((m) ? (a) : (b))
#define OB_PICK_group(T, m, a, b)                                                                                      \
    ((T)(((T##_bits)(m) & (T##_bits)(a)) | (~(T##_bits)(m) & (T##_bits)(b))))
#define OB_FLOOR(T, v, f) OB_PICK(T, (v) < (f), (T){0} + (f), v)
#define OB_SIGN(T, h, v) OB_OF(T, OB_SIGN)(T, h, v)
#define OB_SIGN_one(T, h, v) ((h) |= OB_BITS(v))
#define OB_SIGN_group(T, h, v) ((h) |= (T##_bits)(v))
#define OB_RAISE(T, h, v) OB_OF(T, OB_RAISE)(T, h, v)
#define OB_RAISE_one(T, h, v) ((h) = OB_MAX(OB_BITS(fabs(v)), h))
#define OB_RAISE_group(T, h, v)                                                                                        \
    do {                                                                                                               \
        const T##_bits size = (T##_bits)(v) & INT64_MAX, more = size > (h);                                            \
        (h) = (size & more) | ((h) & ~more);                                                                           \
    } while (0)
#define OB_STORE(T, p, v)                                                                                              \
    do {                                                                                                               \
        const T stored = (v);                                                                                          \
        memcpy((p) + i, &stored, sizeof(T));                                                                           \
    } while (0)
#define OB_AT(U, p, shift) (*(U *)((p) + (shift)))

/* Totals of running signs, maxima and products. */
#if defined(__GNUC__)
OB_INLINE int ob_negative(const int ob_width, const ob_bits *h) {
    const ob_4_bits by4 = (OB_LOWER(ob_4_bits, h) | h->by4) | OB_UPPER(ob_4_bits, h);
    const ob_2_bits lo2 = {by4[0], by4[1]}, hi2 = {by4[2], by4[3]}, by2 = (lo2 | h->by2) | hi2;
    return ((by2[0] | h->by1) | by2[1]) < 0;
}

OB_INLINE double ob_largest(const int ob_width, const ob_bits *h) {
    ob_4_bits most = OB_LOWER(ob_4_bits, h);
    OB_RAISE_group(ob_4, most, OB_UPPER(ob_4_bits, h));
    OB_RAISE_group(ob_4, most, h->by4);
    ob_2_bits upper = {most[2], most[3]};
    OB_RAISE_group(ob_2, upper, ((ob_2_bits){most[0], most[1]}));
    OB_RAISE_group(ob_2, upper, h->by2);
    return OB_DOUBLE(OB_MAX(OB_MAX(upper[0], upper[1]), h->by1));
}

OB_INLINE double ob_product(const int ob_width, const ob_lanes *p) {
    const ob_4 by4 = (OB_LOWER(ob_4, p) * OB_UPPER(ob_4, p)) * p->by4;
    const ob_2 lo2 = {by4[0], by4[1]}, hi2 = {by4[2], by4[3]}, by2 = (lo2 * hi2) * p->by2;
    return (by2[0] * by2[1]) * p->by1;
}
#else
OB_INLINE int ob_negative(const int ob_width, const ob_bits *h) {
    int64_t any = 0;
    for (int k = 0; k < 15; ++k)
        any |= (*h)[k];
    return any < 0;
}

OB_INLINE double ob_largest(const int ob_width, const ob_bits *lanes) {
    int64_t most = 0;
    for (int k = 0; k < 15; ++k)
        most = OB_MAX((*lanes)[k], most);
    return OB_DOUBLE(most);
}

OB_INLINE double ob_product(const int ob_width, const ob_lanes *lanes) {
    const double *p = *lanes;
    const double a = (p[0] * p[4]) * p[8], b = (p[1] * p[5]) * p[9];
    const double c = (p[2] * p[6]) * p[10], d = (p[3] * p[7]) * p[11];
    return (((a * c) * p[12]) * ((b * d) * p[13])) * p[14];
}
#endif

/* Prefetch memory that is read soon; any address is allowed. */
#if defined(__GNUC__)
#define OB_PREFETCH(p) __builtin_prefetch(p)
#else
#define OB_PREFETCH(p) ((void)0)
#endif

#endif
