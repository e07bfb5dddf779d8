/* Quantiles of errors, one for each of some coverages, that move up after a miss and down otherwise: see
 * quantile_tracker.pyx. The interval for a coverage is that of the largest quantile up to it, so that those before the
 * first quantile that the error does not exceed have missed, and no others.
 */
#ifndef ONLINEBREGMAN_QUANTILES_H
#define ONLINEBREGMAN_QUANTILES_H

#include "vector.h"

static void ob_find_radii(double *restrict radii, const double *restrict q, double unit, ptrdiff_t n) {
    double largest = 0.0;
    for (ptrdiff_t j = 0; j < n; ++j) {
        largest = q[j] > largest ? q[j] : largest;
        radii[j] = largest * unit;
    }
}

OB_CLONES static void ob_move_quantiles(double *restrict q, const double *restrict radii, double error,
                                        const double *restrict rise, const double *restrict fall,
                                        const double *restrict least, ptrdiff_t n) {
    ptrdiff_t missed = 0;
    while (missed < n && radii[missed] < error)
        ++missed;
    for (ptrdiff_t j = 0; j < missed; ++j)
        q[j] *= rise[j];
    for (ptrdiff_t j = missed; j < n; ++j) {
        const double lower = q[j] * fall[j];
        q[j] = lower > least[j] ? lower : least[j];
    }
}

#endif
