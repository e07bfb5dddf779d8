/* Penalties in the metrics of the adaptive geometries, see adaptive.h: 1 / h of a coordinate, 0 where no row had a
 * value, and the flow of a penalty, v' = -(l1 sign(v) + l2 v) / h for some time, the limit of many small proximal
 * steps. Consecutive flows are one flow, for the sum of their times.
 */
#ifndef ONLINEBREGMAN_ADAPTIVE_PENALTY_H
#define ONLINEBREGMAN_ADAPTIVE_PENALTY_H

#include "adaptive.h"
#include "exp.h"
#include "penalty.h"

#define OB_LARGEST_RECIPROCAL 1e300 /* finite, so that its product with 0 is 0 */

/* h = sqrt(g) / r^2, or (1 + g) / r^2 with a prior */
OB_INLINE double ob_reciprocal(double g, double r, int prior) {
    const double t = r * (r / (prior ? 1.0 + g : sqrt(g)));
    return r == OB_UNSEEN || (!prior && g < DBL_MIN) ? 0.0 : t < OB_LARGEST_RECIPROCAL ? t : OB_LARGEST_RECIPROCAL;
}

/* A weight after the time t h: max(0, (abs(w) + l1 / l2) exp(-l2 t) - l1 / l2), with the sign of w */
OB_INLINE double ob_flow(double w, double t, double l1, double l2) {
    if (l2 == 0.0)
        return ob_soft_threshold(w, l1 * t);
    double lost;
    const double left = ob_decay(l2 * t, &lost);
    return ob_soft_threshold(w * left, l1 / l2 * lost);
}

/* The same for weights w and times t, or the time 1 if t is NULL; r = 1 if r is NULL. Each case has its own loop. */
#define OB_FLOWS(TIME, R, PRIOR, L2)                                                \
    for (ptrdiff_t i = 0; i < n; ++i)                                               \
        w[i] = ob_flow(w[i], (TIME) * ob_reciprocal(g[i], R, PRIOR), l1, L2)
#define OB_CASES(R, PRIOR)                                                          \
    if (t && l2 == 0.0)                                                             \
        OB_FLOWS(t[i], R, PRIOR, 0.0);                                              \
    else if (t)                                                                     \
        OB_FLOWS(t[i], R, PRIOR, l2);                                               \
    else if (l2 == 0.0)                                                             \
        OB_FLOWS(1.0, R, PRIOR, 0.0);                                               \
    else                                                                            \
        OB_FLOWS(1.0, R, PRIOR, l2)

OB_CLONES static void ob_shrink(double *restrict w, const double *restrict g, const double *restrict r, int prior,
                                const double *restrict t, double l1, double l2, ptrdiff_t n) {
    if (!r) {
        OB_CASES(1.0, 0);
    } else if (prior) {
        OB_CASES(r[i], 1);
    } else {
        OB_CASES(r[i], 0);
    }
}

#undef OB_CASES
#undef OB_FLOWS

#endif
