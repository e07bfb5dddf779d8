/* Exponentials, logarithms and cosines: branch-free, so that they vectorise, and the same digits on every processor. */
#ifndef ONLINEBREGMAN_EXP_H
#define ONLINEBREGMAN_EXP_H

#include "vector.h"

#define OB_ROUNDING 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to an integer held in the low bits */
#define OB_LN2 0.6931471805599453

/* 2^k, for a k that was rounded by adding OB_ROUNDING, whose own bits are shifted out */
OB_INLINE double ob_two_to(double shifted) {
    uint64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* exp(r) for small r, by its Taylor polynomial of degree 13 */
OB_INLINE double ob_exp_near(double r) {
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
    return p * r + 1.0;
}

/* The remainder r of z = k ln 2 + r, with abs(r) <= ln 2 / 2 and k as the argument `shifted` of `ob_two_to`; abs(z) <=
 * 709 */
OB_INLINE double ob_ln2_rest(double z, double *shifted) {
    const double log2e = 1.4426950408889634, ln2_hi = 6.93147180369123816490e-01, ln2_lo = 1.90821492927058770002e-10;
    *shifted = z * log2e + OB_ROUNDING;
    const double k = *shifted - OB_ROUNDING;
    return (z - k * ln2_hi) - k * ln2_lo;
}

/* exp(z), within 1.2 units in the last place; 0 below -708, infinity above 709: exp(r) times 2^k, z = k ln 2 + r */
OB_INLINE double ob_exp1(double z0) {
    double z = z0 < -708.0 ? -708.0 : z0, shifted;
    z = z > 709.0 ? 709.0 : z;
    const double r = ob_ln2_rest(z, &shifted);
    double v = ob_exp_near(r) * ob_two_to(shifted);
    v = z0 < -708.0 ? 0.0 : v;
    return z0 > 709.0 ? HUGE_VAL : v;
}

/* The terms of the same polynomial from r^4 on, r^4 / 4! + ... + r^13 / 13!, by Estrin's scheme */
OB_INLINE double ob_exp_tail(double r) {
    const double r2 = r * r, r4 = r2 * r2;
    const double p4 = (0.041666666666666664 + 0.008333333333333333 * r) +
                      r2 * (0.001388888888888889 + 0.0001984126984126984 * r);
    const double p8 = (2.48015873015873e-05 + 2.7557319223985893e-06 * r) +
                      r2 * (2.755731922398589e-07 + 2.505210838544172e-08 * r);
    const double p12 = 2.08767569878681e-09 + 1.6059043836821613e-10 * r;
    return r4 * (p4 + r4 * (p8 + r4 * p12));
}

/* exp(z) for z below some hundred, within 1.5 units in the last place; 0 below -708. It has a lower latency than
 * ob_exp1, for single numbers. */
OB_INLINE double ob_exp_soon(double z0) {
    double shifted;
    const double r = ob_ln2_rest(z0 < -708.0 ? -708.0 : z0, &shifted);
    const double p = ((1.0 + r) + r * r * (0.5 + 0.16666666666666666 * r)) + ob_exp_tail(r);
    return z0 < -708.0 ? 0.0 : p * ob_two_to(shifted);
}

/* exp(-z) for z >= 0, 0 above 708, and in *lost 1 - exp(-z), both without cancellation */
OB_INLINE double ob_decay(double z, double *lost) {
    double shifted;
    const double r = ob_ln2_rest(z > 708.0 ? -708.0 : -z, &shifted), unit = ob_two_to(shifted);
    const double rest = unit * (r + (r * r * (0.5 + 0.16666666666666666 * r) + ob_exp_tail(r)));
    *lost = (1.0 - unit) - rest;
    return z > 708.0 ? 0.0 : unit + rest;
}

/* e = exp(-(c x + shift)) */
OB_CLONES static void ob_exp(double *restrict e, const double *restrict x, double c, double shift, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        e[i] = ob_exp1(-(c * x[i] + shift));
}

/* e = exp(-(c (x - origin) + shift)): accurate near the origin even for a large c x; the halves do not overflow */
OB_CLONES static void ob_exp_from(double *restrict e, const double *restrict x, double c, double origin, double shift,
                                  ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        e[i] = ob_exp1(-(2.0 * (c * (0.5 * x[i] - 0.5 * origin)) + shift));
}

/* 2 artanh s = ln((1 + s) / (1 - s)) for |s| <= 0.172, which is (sqrt(2) - 1) / (sqrt(2) + 1) */
OB_INLINE double ob_twice_artanh(double s) {
    const double t = s * s, t2 = t * t, t4 = t2 * t2;
    const double p0 = (1.0 + 1.0 / 3.0 * t) + t2 * (1.0 / 5.0 + 1.0 / 7.0 * t);
    const double p4 = (1.0 / 9.0 + 1.0 / 11.0 * t) + t2 * (1.0 / 13.0 + 1.0 / 15.0 * t);
    const double p8 = (1.0 / 17.0 + 1.0 / 19.0 * t) + t2 * (1.0 / 21.0);
    const double p = p0 + t4 * (p4 + t4 * p8);
    return 2.0 * s * p;
}

/* m of x = 2^k m, with m between sqrt(1/2) and sqrt(2), for normal numbers x > 0; *k is k */
OB_INLINE double ob_split(double x, double *k) {
    const uint64_t root_half = 0x3fe6a09e667f3bcdULL; /* sqrt(1/2) */
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint64_t exponent = (bits + ((1024ULL << 52) - root_half)) >> 52; /* k + 1024 */
    bits -= (exponent - 1024) << 52;
    double m;
    memcpy(&m, &bits, sizeof m);
    const uint64_t integer = exponent | 0x4330000000000000ULL; /* 2^52 + exponent as a double */
    memcpy(k, &integer, sizeof *k);
    *k -= 4503599627371520.0; /* 2^52 + 1024 */
    return m;
}

/* ln x for normal numbers x > 0, within 1.5 units in the last place: x = 2^k m, and ln m by the series of the inverse
 * hyperbolic tangent at (m - 1) / (m + 1) */
OB_INLINE double ob_log1(double x) {
    double k;
    const double m = ob_split(x, &k);
    return k * OB_LN2 + ob_twice_artanh((m - 1.0) / (m + 1.0));
}

/* z = scale cos(2 pi z), within about 1e-15 times the scale, as long as z has digits after the decimal point */
OB_CLONES static void ob_cosines(double *z, double scale, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double turn = z[i] - ((z[i] + OB_ROUNDING) - OB_ROUNDING); /* between -1/2 and 1/2 */
        const double f = fabs(turn) - 0.25;                  /* cos(2 pi turn) = -sin(2 pi f) */
        const double u = f * f;
        /* -sin(2 pi f) / f by powers of f^2 */
        double p = -0.0011309237482517963;
        p = p * u + 0.012031585942120627;
        p = p * u - 0.10422916220813984;
        p = p * u + 0.7181223017785006;
        p = p * u - 3.819952584848282;
        p = p * u + 15.09464257682299;
        p = p * u - 42.058693944897655;
        p = p * u + 76.70585975306139;
        p = p * u - 81.60524927607506;
        p = p * u + 41.34170224039976;
        p = p * u - 6.283185307179586;
        z[i] = scale * (p * f);
    }
}

#endif
