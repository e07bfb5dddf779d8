/* Proximal steps in the metrics of the geometries that adapt, see adaptive.h: 1 / h of a coordinate, 0 where no row had a
 * value, and steps of all weights by it, to the same numbers.
 */
#ifndef ONLINEBREGMAN_ADAPTIVE_PENALTY_H
#define ONLINEBREGMAN_ADAPTIVE_PENALTY_H

#include "adaptive.h"
#include "penalty.h"

#define OB_LARGEST_RECIPROCAL 1e300 /* finite, so that it can be multiplied by 0 */

OB_INLINE double ob_no_larger(double r) {
    return r < OB_LARGEST_RECIPROCAL ? r : OB_LARGEST_RECIPROCAL;
}

/* h = sqrt(g) */
OB_INLINE double ob_reciprocal(double g) {
    return g < DBL_MIN ? 0.0 : 1.0 / sqrt(g);
}

/* h = sqrt(g) / r^2 */
OB_INLINE double ob_reciprocal_normalised(double g, double r) {
    return g < DBL_MIN || r == OB_UNSEEN ? 0.0 : ob_no_larger(r * (r / sqrt(g)));
}

/* h = (1 + g) / r^2 */
OB_INLINE double ob_reciprocal_second_order(double g, double r) {
    return r == OB_UNSEEN ? 0.0 : ob_no_larger(r * (r / (1.0 + g)));
}

OB_CLONES static void ob_shrink(double *restrict w, const double *restrict g, double l1, double l2, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        w[i] = ob_scaled_proximal(w[i], ob_reciprocal(g[i]), l1, l2);
}

OB_CLONES static void ob_shrink_normalised(double *restrict w, const double *restrict g, const double *restrict r,
                                           double l1, double l2, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        w[i] = ob_scaled_proximal(w[i], ob_reciprocal_normalised(g[i], r[i]), l1, l2);
}

OB_CLONES static void ob_shrink_second_order(double *restrict w, const double *restrict g, const double *restrict r,
                                             double l1, double l2, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        w[i] = ob_scaled_proximal(w[i], ob_reciprocal_second_order(g[i], r[i]), l1, l2);
}

#endif
