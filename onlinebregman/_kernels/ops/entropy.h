/* Vector helpers of the entropies: relative, Burg's and binary. */
#ifndef ONLINEBREGMAN_ENTROPY_H
#define ONLINEBREGMAN_ENTROPY_H

#include "exp.h"

/* Before a short loop, keeps gcc from unrolling it for every possible length. */
#if defined(__GNUC__) && !defined(__clang__)
#define OB_KEEP_LOOP _Pragma("GCC unroll 1")
#else
#define OB_KEEP_LOOP
#endif

/* sum ln a over positive numbers: the logarithm of products of their mantissas, which lie between sqrt(1/2) and
 * sqrt(2), plus ln 2 times the sum of their exponents */
OB_CLONES static double ob_sum_log(const double *restrict a, ptrdiff_t n) {
    const uint64_t half_octave = 0x3ff0000000000000ULL - 0x3fe6a09e667f3bcdULL; /* bits of 1 minus bits of sqrt(1/2) */
    double total = 0.0, exponents = 0.0;
    for (ptrdiff_t start = 0; start < n; start += 64 * OB_LANES) {
        const ptrdiff_t end = n - start < 64 * OB_LANES ? n : start + 64 * OB_LANES;
        double product[OB_LANES], power[OB_LANES];
        for (int k = 0; k < OB_LANES; ++k) {
            product[k] = 1.0;
            power[k] = 0.0;
        }
        ptrdiff_t i = start;
#define OB_FACTOR(K)                                                                                                   \
    {                                                                                                                  \
        uint64_t bits;                                                                                                 \
        double m;                                                                                                      \
        memcpy(&bits, &a[i + (K)], sizeof bits);                                                                       \
        const uint64_t octave = (bits + half_octave) >> 52;                                                            \
        bits -= (octave - 1023) << 52;                                                                                 \
        memcpy(&m, &bits, sizeof m);                                                                                   \
        product[K] *= m;                                                                                               \
        power[K] += (double)((int32_t)octave - 1023);                                                                  \
    }
        for (; i + OB_LANES <= end; i += OB_LANES)
            for (int k = 0; k < OB_LANES; ++k)
                OB_FACTOR(k)
        for (; i < end; ++i)
            OB_FACTOR(0)
#undef OB_FACTOR
        exponents += ((power[0] + power[1]) + (power[2] + power[3])) +
                     ((power[4] + power[5]) + (power[6] + power[7]));
        total += log(((product[0] * product[1]) * (product[2] * product[3])) *
                     ((product[4] * product[5]) * (product[6] * product[7])));
    }
    return total + OB_LN2 * exponents;
}

/* --- relative entropy: w(c) = w exp(-c x) ---------------------------------------------------------------------------
 *
 * w may be n weights or, with `both`, 2 n: those of the second half move along -x.
 */

/* v = w e, never below OB_TINY; v may be w */
OB_CLONES static void ob_entropy_step(double *v, const double *w, const double *restrict e, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double moved = w[i] * e[i];
        v[i] = moved < OB_TINY ? OB_TINY : moved;
    }
}

/* 1 / k! */
static const double ob_taylor[15] = {
    1.0, 1.0, 0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333, 0.001388888888888889,
    0.0001984126984126984, 2.48015873015873e-05, 2.7557319223985893e-06, 2.755731922398589e-07, 2.505210838544172e-08,
    2.08767569878681e-09, 1.6059043836821613e-10, 1.1470745597729725e-11,
};

/* The largest |z| for which seven terms each of sinh z and cosh z - 1 give exp(z) within 5e-17. */
#define OB_SHORT_REACH 0.52

/* sums of w x (returned) and w x^2, and the largest |x| */
OB_WIDE(double, ob_entropy_sums, (w, x, n, both, square, largest), const double *restrict w, const double *restrict x,
        ptrdiff_t n, int both, double *square, double *largest) {
    ob_lanes d = OB_ZERO, q = OB_ZERO;
    ob_bits h = OB_ZERO;
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T v = L(x);                                                                                              \
        T sum = L(w), difference = sum;                                                                                \
        if (both) {                                                                                                    \
            sum += L(w + n);                                                                                           \
            difference -= L(w + n);                                                                                    \
        }                                                                                                              \
        A(d) += difference * v;                                                                                        \
        A(q) += sum * v * v;                                                                                           \
        OB_RAISE(T, A(h), v);                                                                                          \
    }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    *square = OB_SUM8(q);
    *largest = ob_largest(ob_width, &h);
    return OB_SUM8(d);
}

/* sums of w x^k, k = 0 ... 5 */
OB_WIDE(void, ob_entropy_moments, (w, x, n, both, moment), const double *restrict w, const double *restrict x,
        ptrdiff_t n, int both, double *restrict moment) {
    ob_lanes m0 = OB_ZERO, m1 = OB_ZERO, m2 = OB_ZERO, m3 = OB_ZERO, m4 = OB_ZERO, m5 = OB_ZERO;
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T v = L(x), square = v * v;                                                                              \
        T even = L(w), odd = even;                                                                                     \
        if (both) {                                                                                                    \
            even += L(w + n);                                                                                          \
            odd -= L(w + n);                                                                                           \
        }                                                                                                              \
        odd *= v;                                                                                                      \
        A(m0) += even;                                                                                                 \
        A(m1) += odd;                                                                                                  \
        A(m2) += even *= square;                                                                                       \
        A(m3) += odd *= square;                                                                                        \
        A(m4) += even *= square;                                                                                       \
        A(m5) += odd *= square;                                                                                        \
    }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    moment[0] = OB_SUM8(m0);
    moment[1] = OB_SUM8(m1);
    moment[2] = OB_SUM8(m2);
    moment[3] = OB_SUM8(m3);
    moment[4] = OB_SUM8(m4);
    moment[5] = OB_SUM8(m5);
}

/* v = w exp(-c x) for |c x| <= reach <= OB_SHORT_REACH, never below OB_TINY; v may be w. Returns the sum.
 *
 * Both factors, exp(-z) and exp(z), are computed from the polynomials of sinh z and cosh z - 1, with the number
 * of terms that `reach` requires.
 */
OB_WIDE(double, ob_entropy_move, (v, w, x, c, reach, n, both), double *v, const double *w, const double *restrict x,
        double c, double reach, ptrdiff_t n, int both) {
    static const double limits[] = {1.4e-3, 0.015, 0.064, 0.16, 0.31}; /* (5e-17 (2 m + 1)!)^(1 / (2 m + 1)), m terms */
    int terms = 2;
    for (int k = 0; k < 5; ++k)
        terms += reach > limits[k];
    ob_lanes s = OB_ZERO;
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T z = c * L(x), square = z * z;                                                                          \
        T odd = square * ob_taylor[2 * terms - 1] + ob_taylor[2 * terms - 3];                                          \
        T even = square * ob_taylor[2 * terms] + ob_taylor[2 * terms - 2];                                             \
        OB_KEEP_LOOP                                                                                                   \
        for (int k = 2 * terms - 5; k > 0; k -= 2) {                                                                   \
            odd = odd * square + ob_taylor[k];                                                                         \
            even = even * square + ob_taylor[k + 1];                                                                   \
        }                                                                                                              \
        odd *= z;                                                                                                      \
        even *= square;                                                                                                \
        T moved = L(w);                                                                                                \
        moved += moved * (even - odd);                                                                                 \
        OB_STORE(T, v, OB_FLOOR(T, moved, OB_TINY));                                                                   \
        if (both) {                                                                                                    \
            T twin = L(w + n);                                                                                         \
            twin += twin * (even + odd);                                                                               \
            OB_STORE(T, v + n, OB_FLOOR(T, twin, OB_TINY));                                                            \
            moved += twin;                                                                                             \
        }                                                                                                              \
        A(s) += moved;                                                                                                 \
    }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    return OB_SUM8(s);
}

/* --- Burg entropy: w(c) = w / (1 + c x w) ------------------------------------------------------------------------- */

/* widen [lo, hi] to contain all w x */
OB_CLONES static void ob_product_range(const double *restrict w, const double *restrict x, ptrdiff_t n, double *lo,
                                       double *hi) {
    int64_t l = OB_RANK(OB_BITS(*lo)), h = OB_RANK(OB_BITS(*hi));
    for (ptrdiff_t i = 0; i < n; ++i) {
        const int64_t bits = OB_BITS(w[i] * x[i]), v = OB_RANK(bits);
        l = v < l ? v : l;
        h = v > h ? v : h;
    }
    *lo = OB_DOUBLE(OB_RANK(l));
    *hi = OB_DOUBLE(OB_RANK(h));
}

/* sums of w(c) x and of (w(c) x)^2 */
OB_WIDE(void, ob_burg_sums, (w, x, c, n, dot, square), const double *restrict w, const double *restrict x, double c,
        ptrdiff_t n, double *dot, double *square) {
    ob_lanes d = OB_ZERO, q = OB_ZERO;
#define OB_START(T, L, A) { const T u = L(w) * L(x); A(d) += u; A(q) += u * u; }
#define OB_BODY(T, L, A) { const T u = L(w) * L(x), r = u / (1.0 + c * u); A(d) += r; A(q) += r * r; }
    if (c == 0)
        OB_REDUCE(n, OB_START);
    else
        OB_REDUCE(n, OB_BODY);
#undef OB_START
#undef OB_BODY
    *dot = OB_SUM8(d);
    *square = OB_SUM8(q);
}

/* w = w(c), never below OB_TINY; infinity beyond the domain of c */
OB_CLONES static void ob_burg_step(double *restrict w, const double *restrict x, double c, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double ratio = 1.0 + c * (w[i] * x[i]);
        const double v = ratio > 0.0 ? w[i] / ratio : INFINITY;
        w[i] = v < OB_TINY ? OB_TINY : v;
    }
}

/* r = 1 + c x w, which Burg's weights are divided by */
OB_CLONES static void ob_burg_ratios(double *restrict r, const double *restrict w, const double *restrict x, double c,
                                     ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        r[i] = 1.0 + c * (w[i] * x[i]);
}

/* The same for c measured from the end of its domain, -1 / largest, where `largest` is one of the x w: its ratio is
 * c x w, and those near it are computed without cancellation, too. */
OB_CLONES static void ob_burg_ratios_near_end(double *restrict r, const double *restrict w, const double *restrict x,
                                            double largest, double c, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double u = w[i] * x[i];
        r[i] = (largest - u) / largest + c * u;
    }
}

/* v = w / r, never below OB_TINY; v may be w or r */
OB_CLONES static void ob_quotients(double *v, const double *w, const double *r, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double q = w[i] / r[i];
        v[i] = q < OB_TINY ? OB_TINY : q;
    }
}

/* sums of w x and of (w x)^2 */
OB_CLONES static void ob_dot_square(const double *restrict w, const double *restrict x, ptrdiff_t n, double *dot,
                                    double *square) {
    double d = 0.0, q = 0.0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double u = w[i] * x[i];
        d += u;
        q += u * u;
    }
    *dot = d;
    *square = q;
}

/* sum ln(1 + c x w) if all |c x w| <= 1/2: by logarithms of products of 512 factors, which do not over- or underflow */
OB_WIDE(double, ob_burg_log, (w, x, c, n), const double *restrict w, const double *restrict x, double c, ptrdiff_t n) {
    double total = 0.0;
    for (; n > 0; w += 64 * OB_LANES, x += 64 * OB_LANES, n -= 64 * OB_LANES) {
        const ptrdiff_t length = n < 64 * OB_LANES ? n : 64 * OB_LANES;
        ob_lanes p = OB_ONE;
#define OB_BODY(T, L, A) { A(p) *= 1.0 + c * (L(w) * L(x)); }
        OB_REDUCE(length, OB_BODY);
#undef OB_BODY
        total += log(ob_product(ob_width, &p));
    }
    return total;
}

/* sum of the w whose x > 0 */
OB_CLONES static double ob_burg_mass(const double *restrict w, const double *restrict x, ptrdiff_t n) {
    double total = 0.0;
    for (ptrdiff_t i = 0; i < n; ++i)
        total += x[i] > 0.0 ? w[i] : 0.0;
    return total;
}

/* --- binary entropy ----------------------------------------------------------------------------------------------- */

/* The sum of the weights outside a sparse row, in `blocks` vectors of `width` weights each */
static inline double ob_sum_outside(const double *w, ptrdiff_t width, ptrdiff_t blocks, const ptrdiff_t *index,
                                    ptrdiff_t n) {
    double total = 0.0;
    for (ptrdiff_t b = 0; b < blocks; ++b)
        for (ptrdiff_t j = 0, k = 0; j < width; ++j) {
            if (k < n && index[k] == j)
                ++k;
            else
                total += w[b * width + j];
        }
    return total;
}

/* Its logarithm, each weight being w exp(depth) */
static inline double ob_log_sum_outside(const double *w, const double *depth, ptrdiff_t width, ptrdiff_t blocks,
                                        const ptrdiff_t *index, ptrdiff_t n) {
    double most = -INFINITY, total = 0.0;
    for (ptrdiff_t b = 0; b < blocks; ++b)
        for (ptrdiff_t j = 0, k = 0; j < width; ++j) {
            if (k < n && index[k] == j) {
                ++k;
                continue;
            }
            const double each = log(w[b * width + j]) + depth[b * width + j];
            total = each > most ? total * exp(most - each) + 1.0 : total + exp(each - most);
            most = each > most ? each : most;
        }
    return most + log(total);
}

/* v = w e / (1 - w + w e) strictly between 0 and 1, with e a factor of the odds w / (1 - w); v may be w or e */
OB_CLONES static void ob_binary_moved(double *v, const double *w, const double *e, ptrdiff_t n) {
    const double largest = 1.0 - DBL_EPSILON / 2;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double up = w[i] * (e[i] > DBL_MAX ? DBL_MAX : e[i]);
        double moved = e[i] > DBL_MAX ? 1.0 : up / (1.0 - w[i] + up);
        moved = moved < OB_TINY ? OB_TINY : moved;
        v[i] = moved > largest ? largest : moved;
    }
}

/* r = 1 - w + w e, the denominator of the moved weights; r may be e */
OB_CLONES static void ob_binary_ratios(double *r, const double *w, const double *e, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        r[i] = 1.0 - w[i] + w[i] * e[i];
}

/* sums of w x and w (1 - w) x^2 */
OB_WIDE(void, ob_binary_sums, (w, x, n, dot, square), const double *restrict w, const double *restrict x, ptrdiff_t n,
        double *dot, double *square) {
    ob_lanes d = OB_ZERO, q = OB_ZERO;
#define OB_BODY(T, L, A) { const T u = L(w) * L(x); A(d) += u; A(q) += (u - u * L(w)) * L(x); }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    *dot = OB_SUM8(d);
    *square = OB_SUM8(q);
}

#endif
