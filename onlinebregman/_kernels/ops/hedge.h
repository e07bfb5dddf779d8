/* Exponential weights of n experts. The length of every vector is n rounded up to a multiple of OB_LANES. */
#ifndef ONLINEBREGMAN_HEDGE_H
#define ONLINEBREGMAN_HEDGE_H

#include "logistic.h"

/* An expert's weight is proportional to exp(-rate total cost); neg_log_ratio is -ln of its prior weight relative to
 * equal ones. If that is 0, the total cost is exactly the cost. */
#define OB_TOTAL_COST(k) (costs[k] + neg_log_ratio[k] / rate)

OB_CLONES static double ob_least_cost(const double *restrict costs, const double *restrict neg_log_ratio, double rate,
                                          ptrdiff_t n) {
    double least = HUGE_VAL;
    for (ptrdiff_t k = 0; k < n; ++k)
        least = OB_TOTAL_COST(k) < least ? OB_TOTAL_COST(k) : least;
    return least;
}

/* The least of (total cost - best) + losses */
static double ob_least_rise(const double *costs, const double *neg_log_ratio, const double *losses, double rate,
                            double best, ptrdiff_t n) {
    double least = HUGE_VAL;
    for (ptrdiff_t k = 0; k < n; ++k) {
        const double rise = (OB_TOTAL_COST(k) - best) + losses[k];
        least = rise < least ? rise : least;
    }
    return least;
}

/* w ~ exp(-rate total cost), with the sum 1 */
OB_WIDE(void, ob_weigh, (w, costs, neg_log_ratio, rate, best, n), double *restrict w, const double *restrict costs,
        const double *restrict neg_log_ratio, double rate, double best, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += OB_LANES)
        for (int k = 0; k < OB_LANES; ++k)
            w[i + k] = ob_exp_soon(-(rate * (OB_TOTAL_COST(i + k) - best)));
    const double total = ob_added(ob_width, w, n);
    for (ptrdiff_t i = 0; i < n; i += OB_LANES)
        for (int k = 0; k < OB_LANES; ++k)
            w[i + k] /= total;
}

/* w = exp(-rate ((total cost - best) + losses - rise)); returns the sum */
OB_WIDE(double, ob_weigh_after, (w, costs, neg_log_ratio, losses, rate, best, rise, n), double *restrict w,
        const double *restrict costs, const double *restrict neg_log_ratio, const double *restrict losses, double rate,
        double best, double rise, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += OB_LANES)
        for (int k = 0; k < OB_LANES; ++k)
            w[i + k] = ob_exp_soon(-(rate * ((OB_TOTAL_COST(i + k) - best) + losses[i + k] - rise)));
    return ob_added(ob_width, w, n);
}

/* logs = rate (total cost - best) - ln largest: -ln of the weights, `largest` being the largest of them */
static void ob_minus_logs(double *logs, const double *costs, const double *neg_log_ratio, double rate, double best,
                          double largest, ptrdiff_t n) {
    for (ptrdiff_t k = 0; k < n; ++k)
        logs[k] = rate * (OB_TOTAL_COST(k) - best) - log(largest);
}

/* costs = best - (ln(keep w + part ratio) + neg_log_ratio) / rate */
OB_CLONES static void ob_costs(double *restrict costs, const double *restrict w, const double *restrict ratio,
                               const double *restrict neg_log_ratio, double keep, double part, double rate, double best,
                               ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += OB_LANES)
        for (int k = 0; k < OB_LANES; ++k) {
            const double v = keep * w[i + k] + part * ratio[i + k];
            costs[i + k] = best - ob_log1(v > DBL_MIN ? v : DBL_MIN) / rate - neg_log_ratio[i + k] / rate;
        }
}

/* t = exp(-(a + b - least)); -ln of the sum of exp(-(a + b)) */
OB_WIDE(double, ob_soft_least, (t, a, b, n), double *restrict t, const double *restrict a, const double *restrict b,
        ptrdiff_t n) {
    double least = HUGE_VAL;
    for (ptrdiff_t k = 0; k < n; ++k)
        least = a[k] + b[k] < least ? a[k] + b[k] : least;
    if (least == HUGE_VAL)
        return least;
    for (ptrdiff_t i = 0; i < n; i += OB_LANES)
        for (int k = 0; k < OB_LANES; ++k)
            t[i + k] = ob_exp_soon(-(a[i + k] + b[i + k] - least));
    return least - log(ob_added(ob_width, t, n));
}

/* -ln sum w exp(-losses), the loss of a mixture of probabilities; t is a buffer of the same length */
OB_WIDE(double, ob_mix_loss, (w, losses, t, n), const double *restrict w, const double *restrict losses,
        double *restrict t, ptrdiff_t n) {
    double least = HUGE_VAL;
    for (ptrdiff_t k = 0; k < n; ++k)
        least = losses[k] < least ? losses[k] : least;
    for (ptrdiff_t i = 0; i < n; i += OB_LANES)
        for (int k = 0; k < OB_LANES; ++k)
            t[i + k] = ob_exp_soon(-(losses[i + k] - least));
    return least - log(ob_inner(ob_width, w, t, n));
}

/* ln(sum w exp(-(z - 1)^2 / 2) / sum w exp(-(z + 1)^2 / 2)); t is a buffer of the same length */
OB_WIDE(double, ob_log_odds_of_ends, (w, z, t, n), const double *restrict w, const double *restrict z,
        double *restrict t, ptrdiff_t n) {
    double sums[2];
    for (int side = 0; side < 2; ++side) {
        const double end = side ? -1.0 : 1.0;
        for (ptrdiff_t i = 0; i < n; i += OB_LANES)
            for (int k = 0; k < OB_LANES; ++k)
                t[i + k] = ob_exp_soon(-0.5 * ((z[i + k] - end) * (z[i + k] - end)));
        sums[side] = ob_inner(ob_width, w, t, n);
    }
    return log(sums[0] / sums[1]);
}

/* The log losses of two classes for scores a; sign = 1 for the second class, -1 for the first */
OB_CLONES static void ob_log_losses(double *restrict losses, const double *restrict a, double sign, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += OB_LANES)
        for (int k = 0; k < OB_LANES; ++k)
            losses[i + k] = ob_softplus(-sign * a[i + k]);
}

/* sum w / (1 + e^-a) and sum w / (1 + e^a); t is a buffer of the same length */
OB_WIDE(void, ob_mix_two, (w, a, t, above, below, n), const double *restrict w, const double *restrict a,
        double *restrict t, double *restrict above, double *restrict below, ptrdiff_t n) {
    for (int side = 0; side < 2; ++side) {
        for (ptrdiff_t i = 0; i < n; i += OB_LANES)
            for (int k = 0; k < OB_LANES; ++k) {
                const double e = ob_exp_soon(-fabs(a[i + k])), z = side ? -a[i + k] : a[i + k];
                t[i + k] = (z >= 0.0 ? 1.0 : e) / (1.0 + e);
            }
        *(side ? below : above) = ob_inner(ob_width, w, t, n);
    }
}

#endif
