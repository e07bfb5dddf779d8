/* Vector helpers of the p-norm geometry: powers and sums over them.
 *
 * The powers of theta are v = sgn(theta) abs(theta / unit)^(p-1). `inverse` is the exact inverse of the unit, a power
 * of two.
 */
#ifndef ONLINEBREGMAN_PNORM_H
#define ONLINEBREGMAN_PNORM_H

#include "exp.h"

/* x^y for x >= 0 and abs(y) <= 1000, within about 1 + y/2 units in the last place; results below 2^-1022 are 0, those
 * above 2^1000 are 2^1000.
 *
 * Branch-free, so that it vectorises: x = 2^k m with m between sqrt(1/2) and sqrt(2), log2 m by the series of the
 * inverse hyperbolic tangent at (m - 1) / (m + 1), and 2^z as in ob_exp1. y k is exact for the leading 24 bits of y, so
 * that the integer part of z costs no digits.
 */
static inline double ob_pow(double x, double y) {
    const double leading = (double)(float)y;
    double k;
    const double m = ob_split(x, &k);
    const double s = (m - 1.0) / (m + 1.0), t = s * s;
    double q = 0.15186263588304877; /* 2 / (19 ln 2) */
    q = q * t + 0.16972882833987805;
    q = q * t + 0.19235933878519512;
    q = q * t + 0.22195308321368667;
    q = q * t + 0.26230818925253881;
    q = q * t + 0.32059889797532516;
    q = q * t + 0.41219858311113242;
    q = q * t + 0.57707801635558536;
    q = q * t + 0.96179669392597555;
    q = q * t + 2.8853900817779268; /* 2 / ln 2 */

    const double whole = leading * k;
    double rest = (y - leading) * k + y * (s * q);
    double z = whole + rest;
    const int under = z < -1022.0 || x < DBL_MIN, over = z > 1000.0;
    z = z < -1022.0 ? -1022.0 : z;
    z = z > 1000.0 ? 1000.0 : z;
    const double shifted = z + OB_ROUNDING;
    double r = (whole - (shifted - OB_ROUNDING)) + rest;
    r = r < -1.0 ? -1.0 : r; /* where z was clipped */
    r = r > 1.0 ? 1.0 : r;
    double v = ob_exp_near(r * OB_LN2) * ob_two_to(shifted);
    v = under ? 0.0 : v;
    return over ? 0x1p1000 : v;
}

/* v = sgn(theta) abs(theta / unit)^exponent; by products for a small integer exponent */
OB_CLONES static void ob_power(double *restrict v, const double *restrict theta, double inverse, double exponent,
                               ptrdiff_t n) {
    if (exponent == floor(exponent) && exponent <= 8.0) {
        for (ptrdiff_t i = 0; i < n; ++i)
            v[i] = theta[i] * inverse;
        for (int k = 1; k < exponent; ++k)
            for (ptrdiff_t i = 0; i < n; ++i)
                v[i] *= fabs(theta[i] * inverse);
        return;
    }
    for (ptrdiff_t i = 0; i < n; ++i)
        v[i] = copysign(ob_pow(fabs(theta[i] * inverse), exponent), theta[i]);
}

/* sums of v x and abs(r)^(p-2) x^2 with r = theta / unit, v = sgn(r) abs(r)^(p-1) */
OB_WIDE(void, ob_power_sums, (theta, v, x, inverse, n, dot, square), const double *restrict theta,
        const double *restrict v, const double *restrict x, double inverse, ptrdiff_t n, double *dot, double *square) {
    ob_lanes d = OB_ZERO, q = OB_ZERO;
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T r = L(theta) * inverse;                                                                                \
        A(d) += L(v) * L(x);                                                                                           \
        A(q) += r * L(v) / (r * r + DBL_MIN) * (L(x) * L(x));                                                          \
    }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    *dot = OB_SUM8(d);
    *square = OB_SUM8(q);
}

/* sum abs(theta / unit)^p */
static double ob_power_total(const double *theta, double inverse, double p, ptrdiff_t n) {
    double v[64], total = 0.0;
    for (ptrdiff_t start = 0; start < n; start += 64) {
        const ptrdiff_t length = n - start < 64 ? n - start : 64;
        ob_power(v, theta + start, inverse, p - 1.0, length);
        total += ob_dot(theta + start, v, length) * inverse;
    }
    return total;
}

#endif
