/* Vector helpers under every geometry: contiguous doubles in, sums or updated weights out.
 *
 * Reductions keep eight running sums in a fixed order, so compilers vectorise them without -ffast-math and every
 * instruction set gives the same digits (the build turns contraction to fused multiply-add off).
 */
#ifndef ONLINEBREGMAN_VECTOR_OPS_H
#define ONLINEBREGMAN_VECTOR_OPS_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Clones for newer x86-64 instruction sets, chosen at load time; needs gcc >= 12 and glibc's ifunc. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define OB_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define OB_CLONES
#endif

#define OB_LANES 8
#define OB_SUM8(s) (((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])))
/* Runs BODY for i in [0, n), with k = i mod 8 as the lane of the running sum. */
#define OB_FOR_LANES(n, BODY)                                                                                          \
    do {                                                                                                               \
        ptrdiff_t i_ = 0;                                                                                              \
        for (; i_ + OB_LANES <= (n); i_ += OB_LANES)                                                                   \
            for (int k = 0; k < OB_LANES; ++k) {                                                                       \
                const ptrdiff_t i = i_ + k;                                                                            \
                BODY                                                                                                   \
            }                                                                                                          \
        for (int k = 0; i_ + k < (n); ++k) {                                                                           \
            const ptrdiff_t i = i_ + k;                                                                                \
            BODY                                                                                                       \
        }                                                                                                              \
    } while (0)

/* The smallest weight a positive geometry keeps: a weight at zero could never grow again. */
#define OB_TINY DBL_MIN

/* sum a b */
OB_CLONES static double ob_dot(const double *restrict a, const double *restrict b, ptrdiff_t n) {
    double s[OB_LANES] = {0};
    OB_FOR_LANES(n, { s[k] += a[i] * b[i]; });
    return OB_SUM8(s);
}

/* sum a b and sum b b in one pass */
OB_CLONES static void ob_dot_norm(const double *restrict a, const double *restrict b, ptrdiff_t n, double *dot,
                                  double *norm) {
    double s[OB_LANES] = {0}, q[OB_LANES] = {0};
    OB_FOR_LANES(n, {
        s[k] += a[i] * b[i];
        q[k] += b[i] * b[i];
    });
    *dot = OB_SUM8(s);
    *norm = OB_SUM8(q);
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
OB_CLONES static double ob_nonfinite(const double *restrict a, ptrdiff_t n) {
    double s[OB_LANES] = {0};
    OB_FOR_LANES(n, { s[k] += a[i] * 0.0; });
    return OB_SUM8(s);
}

/* sum a */
OB_CLONES static double ob_sum(const double *restrict a, ptrdiff_t n) {
    double s[OB_LANES] = {0};
    OB_FOR_LANES(n, { s[k] += a[i]; });
    return OB_SUM8(s);
}

/* smallest and largest of a, and of 0 */
OB_CLONES static void ob_range(const double *restrict a, ptrdiff_t n, double *lo, double *hi) {
    double l[OB_LANES] = {0}, h[OB_LANES] = {0};
    OB_FOR_LANES(n, {
        l[k] = a[i] < l[k] ? a[i] : l[k];
        h[k] = a[i] > h[k] ? a[i] : h[k];
    });
    for (int k = 1; k < OB_LANES; ++k) {
        l[0] = l[k] < l[0] ? l[k] : l[0];
        h[0] = h[k] > h[0] ? h[k] : h[0];
    }
    *lo = l[0];
    *hi = h[0];
}

/* sum_ += w (clock - stamp), stamp = clock: what the weights added to their average since they last moved */
OB_CLONES static void ob_accumulate(double *restrict sum, double *restrict stamp, const double *restrict w, double clock,
                                    ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        sum[i] += w[i] * (clock - stamp[i]);
        stamp[i] = clock;
    }
}

/* e = exp(-(c x + shift)), within 1.2 units in the last place; 0 below -708, infinity above 709.
 *
 * Branch-free, so that it vectorises: z = k ln 2 + r with |r| <= ln 2 / 2, exp(r) by its Taylor polynomial of degree
 * 13, times 2^k put together from bits.
 */
OB_CLONES static void ob_exp(double *restrict e, const double *restrict x, double c, double shift, ptrdiff_t n) {
    const double log2e = 1.4426950408889634, ln2_hi = 6.93147180369123816490e-01, ln2_lo = 1.90821492927058770002e-10;
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer held in the low bits */
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double z0 = -(c * x[i] + shift);
        double z = z0 < -708.0 ? -708.0 : z0;
        z = z > 709.0 ? 709.0 : z;
        const double shifted = z * log2e + magic;
        const double kd = shifted - magic;
        const double r = (z - kd * ln2_hi) - kd * ln2_lo;
        double p = 1.6059043836821613e-10;
        p = p * r + 2.08767569878681e-09;
        p = p * r + 2.505210838544172e-08;
        p = p * r + 2.755731922398589e-07;
        p = p * r + 2.7557319223985893e-06;
        p = p * r + 2.48015873015873e-05;
        p = p * r + 0.0001984126984126984;
        p = p * r + 0.001388888888888889;
        p = p * r + 0.008333333333333333;
        p = p * r + 0.041666666666666664;
        p = p * r + 0.16666666666666666;
        p = p * r + 0.5;
        p = p * r + 1.0;
        p = p * r + 1.0;
        uint64_t bits;
        memcpy(&bits, &shifted, sizeof bits);
        bits = (bits + 1023) << 52; /* the magic constant's own bits are shifted out */
        double scale;
        memcpy(&scale, &bits, sizeof scale);
        double v = p * scale;
        v = z0 < -708.0 ? 0.0 : v;
        e[i] = z0 > 709.0 ? HUGE_VAL : v;
    }
}

/* w = w e, never below OB_TINY */
OB_CLONES static void ob_entropy_step(double *restrict w, const double *restrict e, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double v = w[i] * e[i];
        w[i] = v < OB_TINY ? OB_TINY : v;
    }
}

/* sums of v, v x, v x^2 with v = w e */
OB_CLONES static void ob_entropy_sums(const double *restrict w, const double *restrict e, const double *restrict x,
                                      ptrdiff_t n, double *sum, double *dot, double *square) {
    double s[OB_LANES] = {0}, d[OB_LANES] = {0}, q[OB_LANES] = {0};
    OB_FOR_LANES(n, {
        const double v = w[i] * e[i];
        const double vx = v * x[i];
        s[k] += v;
        d[k] += vx;
        q[k] += vx * x[i];
    });
    *sum = OB_SUM8(s);
    *dot = OB_SUM8(d);
    *square = OB_SUM8(q);
}

/* the same with e = 1 */
OB_CLONES static void ob_weighted_sums(const double *restrict w, const double *restrict x, ptrdiff_t n, double *sum,
                                       double *dot, double *square) {
    double s[OB_LANES] = {0}, d[OB_LANES] = {0}, q[OB_LANES] = {0};
    OB_FOR_LANES(n, {
        const double vx = w[i] * x[i];
        s[k] += w[i];
        d[k] += vx;
        q[k] += vx * x[i];
    });
    *sum = OB_SUM8(s);
    *dot = OB_SUM8(d);
    *square = OB_SUM8(q);
}

/* Burg at w(c) = w / (1 + c x w): sums of w(c) x and of (w(c) x)^2 */
OB_CLONES static void ob_burg_sums(const double *restrict w, const double *restrict x, double c, ptrdiff_t n,
                                   double *dot, double *square) {
    double d[OB_LANES] = {0}, q[OB_LANES] = {0};
    OB_FOR_LANES(n, {
        const double u = w[i] * x[i];
        const double r = u / (1.0 + c * u);
        d[k] += r;
        q[k] += r * r;
    });
    *dot = OB_SUM8(d);
    *square = OB_SUM8(q);
}

/* smallest and largest of w x, and of 0 */
OB_CLONES static void ob_burg_range(const double *restrict w, const double *restrict x, ptrdiff_t n, double *lo,
                                    double *hi) {
    double l[OB_LANES] = {0}, h[OB_LANES] = {0};
    OB_FOR_LANES(n, {
        const double u = w[i] * x[i];
        l[k] = u < l[k] ? u : l[k];
        h[k] = u > h[k] ? u : h[k];
    });
    for (int k = 1; k < OB_LANES; ++k) {
        l[0] = l[k] < l[0] ? l[k] : l[0];
        h[0] = h[k] > h[0] ? h[k] : h[0];
    }
    *lo = l[0];
    *hi = h[0];
}

/* w = min(w / (1 + c x w), upper), never below OB_TINY */
OB_CLONES static void ob_burg_step(double *restrict w, const double *restrict x, double c, double upper, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        double v = w[i] / (1.0 + c * (w[i] * x[i]));
        v = v < OB_TINY ? OB_TINY : v;
        w[i] = v > upper ? upper : v;
    }
}

/* largest x / (1/w - 1/upper): how fast the first weight reaches its upper bound */
OB_CLONES static double ob_burg_speed(const double *restrict w, const double *restrict x, double inverse_upper,
                                      ptrdiff_t n) {
    double h[OB_LANES] = {0};
    OB_FOR_LANES(n, {
        const double v = x[i] / (1.0 / w[i] - inverse_upper);
        h[k] = v > h[k] ? v : h[k];
    });
    for (int k = 1; k < OB_LANES; ++k)
        h[0] = h[k] > h[0] ? h[k] : h[0];
    return h[0];
}

/* v = A z and return z'A z for a symmetric A (n, n) of which only the upper triangle is read */
OB_CLONES static double ob_symv(const double *restrict a, const double *restrict z, double *restrict v, ptrdiff_t n) {
    memset(v, 0, n * sizeof(double));
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double *row = a + i * n + i;
        const ptrdiff_t m = n - i;
        const double zi = z[i];
        double s[OB_LANES] = {0};
        double *vi = v + i;
        const double *zi_ = z + i;
        vi[0] += row[0] * zi;
        OB_FOR_LANES(m - 1, {
            s[k] += row[i + 1] * zi_[i + 1];
            vi[i + 1] += row[i + 1] * zi;
        });
        vi[0] += OB_SUM8(s);
    }
    return ob_dot(v, z, n);
}

/* A -= c v v', upper triangle */
OB_CLONES static void ob_syr(double *restrict a, const double *restrict v, double c, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double f = c * v[i];
        double *row = a + i * n;
        for (ptrdiff_t j = i; j < n; ++j)
            row[j] -= f * v[j];
    }
}

#endif
