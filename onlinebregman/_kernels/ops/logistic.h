/* The logistic loss L(a) = ln(1 + e^a) - y a and its implicit steps: single ones, or several at a time, bit for bit the
 * same. */
#ifndef ONLINEBREGMAN_LOGISTIC_H
#define ONLINEBREGMAN_LOGISTIC_H

#include "exp.h"

#define OB_LOCKSTEP 16 /* equations that are solved together; their arrays are padded to a multiple of this length */
#define OB_ROUNDS 6

/* ln(1 + e^a), with e = e^-|a|: the logarithm of 1 + e or, where that is beyond sqrt(2), of its half */
OB_INLINE double ob_softplus_by(double a, double e) {
    const int half = e > 0.41421356237309503;
    const double s = (half ? e - 1.0 : e) / (half ? e + 3.0 : e + 2.0);
    return (a > 0.0 ? a : 0.0) + ((half ? OB_LN2 : 0.0) + ob_twice_artanh(s));
}

OB_INLINE double ob_softplus(double a) {
    return ob_softplus_by(a, ob_exp_soon(-fabs(a)));
}

/* L' and L'' at a, and L''' / L'', with the same e */
OB_INLINE void ob_logistic_slopes_by(double a, double y, double e, double *slope, double *curvature, double *skew) {
    const double share = 1.0 / (1.0 + e);
    const double above = a >= 0.0 ? share : e * share, below = a <= 0.0 ? share : e * share;
    /* a weighted sum of the errors for y = 0 and 1, without cancellation where h(a) is near y = 0 or 1 */
    *slope = (1.0 - y) * above - y * below;
    *curvature = above * below;
    *skew = below - above;
}

OB_INLINE void ob_logistic_slopes(double a, double y, double *slope, double *curvature, double *skew) {
    ob_logistic_slopes_by(a, y, ob_exp_soon(-fabs(a)), slope, curvature, skew);
}

OB_INLINE void ob_logistic_derivatives(double a, double y, double *slope, double *curvature) {
    double skew;
    ob_logistic_slopes(a, y, slope, curvature, &skew);
}

/* ln v for v >= 1 within 0.06, from the bits of v */
OB_INLINE double ob_about_log(double v) {
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits = (bits >> 32) | 0x4330000000000000ULL; /* the upper half, added to 2^52 */
    memcpy(&v, &bits, sizeof v);
    return (v - (4503599627370496.0 + 1072693248.0)) * (OB_LN2 / 1048576.0);
}

/* A first estimate of the root of c = eta L'(start - c xSx), with L' and L'' at the start: Newton's step, but no
 * farther than about where the margin m has e^m = 1 + q / (1 + |start|), beyond which L' decreases exponentially */
OB_INLINE double ob_logistic_guess(double start, double xSx, double eta, double y, double slope, double curvature) {
    const double q = eta * xSx, step = eta * slope / (1.0 + q * curvature);
    const double margin = y == 1.0 ? start : -start, behind = margin < 0.0 ? -margin : 0.0;
    const double rise = ob_about_log(1.0 + q / (1.0 + behind)) - margin, most = rise > 0.0 ? rise / xSx : 0.0;
    const int cut = ((y == 1.0) | (y == 0.0)) & (most < fabs(step));
    return cut ? (step < 0.0 ? -most : most) : step;
}

/* One step of Halley's method; returns whether the result is exact up to rounding. Its error is at most
 * xSx^2 |step|^3 / 2, as the loss is self-concordant. */
OB_INLINE int ob_logistic_approach(double *c, double start, double xSx, double eta, double y) {
    double slope, curvature, skew;
    ob_logistic_slopes(start - *c * xSx, y, &slope, &curvature, &skew);
    const double psi = *c - eta * slope, bent = eta * curvature * xSx, rise = 1.0 + bent;
    const double scale = rise * rise + 0.5 * psi * (bent * xSx * skew), step = -psi * rise / scale;
    const double error = xSx * fabs(step);
    *c += step;
    return (fabs(scale) <= DBL_MAX) & (error <= 0.1) & (error * error * fabs(step) <= 1e-15 * fabs(*c));
}

/* The root, with L' and L'' at the start; NaN if OB_ROUNDS steps do not reach it */
static double ob_logistic_step(double start, double xSx, double eta, double y, double slope, double curvature) {
    double c = ob_logistic_guess(start, xSx, eta, y, slope, curvature);
    for (int round = 0; round < OB_ROUNDS; ++round)
        if (ob_logistic_approach(&c, start, xSx, eta, y))
            return c;
    return NAN;
}

/* The same for n equations, a multiple of OB_LOCKSTEP, with the slopes and curvatures of `ob_logistic_losses` */
OB_CLONES static void ob_logistic_steps(double *restrict c, const double *restrict start, const double *restrict xSx,
                                        const double *restrict eta, const double *restrict y,
                                        const double *restrict slope, const double *restrict curvature, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += OB_LOCKSTEP) {
        double left[OB_LOCKSTEP], any = 1.0;
        for (int k = 0; k < OB_LOCKSTEP; ++k) {
            c[i + k] =
                ob_logistic_guess(start[i + k], xSx[i + k], eta[i + k], y[i + k], slope[i + k], curvature[i + k]);
            left[k] = 1.0;
        }
        for (int round = 0; round < OB_ROUNDS && any > 0.0; ++round) {
            any = 0.0;
            for (int k = 0; k < OB_LOCKSTEP; ++k) {
                double next = c[i + k];
                const int there = ob_logistic_approach(&next, start[i + k], xSx[i + k], eta[i + k], y[i + k]);
                c[i + k] = left[k] > 0.0 ? next : c[i + k];
                left[k] = there ? 0.0 : left[k];
            }
            for (int k = 0; k < OB_LOCKSTEP; ++k)
                any += left[k];
        }
        for (int k = 0; k < OB_LOCKSTEP; ++k)
            c[i + k] = left[k] > 0.0 ? NAN : c[i + k];
    }
}

/* Value, slope and curvature of n losses, a multiple of OB_LOCKSTEP. Values are for targets 0 and 1; for other targets
 * see `logistic_value`. */
OB_CLONES static void ob_logistic_losses(double *restrict value, double *restrict slope, double *restrict curvature,
                                         const double *restrict a, const double *restrict y, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += OB_LOCKSTEP)
        for (int k = 0; k < OB_LOCKSTEP; ++k) {
            const double e = ob_exp_soon(-fabs(a[i + k]));
            double skew;
            ob_logistic_slopes_by(a[i + k], y[i + k], e, &slope[i + k], &curvature[i + k], &skew);
            value[i + k] = ob_softplus_by(y[i + k] == 1.0 ? -a[i + k] : a[i + k], e);
        }
}

#endif
