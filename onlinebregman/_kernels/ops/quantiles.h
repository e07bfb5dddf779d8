/* Quantiles of errors, one for each of some coverages: see quantile_tracker.pyx. All are logarithms. The interval for a
 * coverage is that of the largest quantile up to it, so that those before the first radius that the error does not
 * exceed have missed, and no others.
 */
#ifndef ONLINEBREGMAN_QUANTILES_H
#define ONLINEBREGMAN_QUANTILES_H

#include "vector.h"

/* A quantile, corrected by the misses in excess of what `chance` explains */
OB_INLINE double ob_corrected(double q, double excess, double chance, double step) {
    const double beyond = excess > chance ? excess - chance : excess < -chance ? excess + chance : 0.0;
    return q + step * beyond;
}

/* The radii up to the first one that is at least `most`; what is behind it is of no use */
OB_CLONES static void ob_find_radii(double *restrict radii, const double *restrict q, const double *restrict excess,
                                    const double *restrict spread, double root, double step,
                                    const double *restrict wider, double unit, double most, ptrdiff_t n) {
    double largest = -HUGE_VAL;
    for (ptrdiff_t j = 0; j < n; ++j)
        radii[j] = ob_corrected(q[j], excess[j], spread[j] * root + 1.0, step);
    for (ptrdiff_t j = 0; j < n; ++j) {
        largest = radii[j] > largest ? radii[j] : largest;
        radii[j] = largest + wider[j] + unit;
        if (radii[j] >= most)
            break;
    }
}

/* Quantiles move up after a miss and down otherwise, by at most `step`; returns how many missed */
OB_CLONES static ptrdiff_t ob_move_quantiles(double *restrict q, double *restrict excess,
                                             const double *restrict radii, double error, const double *restrict levels,
                                             const double *restrict rates, double rate, double step,
                                             const double *restrict spread, double root, const double *restrict least,
                                             ptrdiff_t n) {
    ptrdiff_t missed = 0;
    while (missed < n && radii[missed] < error)
        ++missed;
    for (ptrdiff_t j = 0; j < n; ++j) {
        const double eta = rate * rates[j] < step ? rate * rates[j] : step;
        const double change = levels[j] - (j < missed ? 0.0 : 1.0), moved = q[j] + eta * change;
        const double corrected = ob_corrected(q[j], excess[j], spread[j] * root + 1.0, step);
        excess[j] = (j < missed) | (corrected > least[j]) ? excess[j] + change : excess[j];
        q[j] = (j < missed) | (moved > least[j]) ? moved : least[j];
    }
    return missed;
}

#endif
