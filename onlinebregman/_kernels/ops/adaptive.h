/* Kernels of the adaptive geometries. They store of each coordinate r, the reciprocal of the largest |x| so far
 * (OB_UNSEEN where there was none), and z = x r, which lies between -1 and 1.
 */
#ifndef ONLINEBREGMAN_ADAPTIVE_H
#define ONLINEBREGMAN_ADAPTIVE_H

#include "exp.h"
#include "penalty.h"

#define OB_UNSEEN DBL_MAX

/* A score that is this near to a kink, relative to sum |w x|, is on it. Rounding errors are smaller, up to 2e-14 after
 * a step from a much larger score, and so much smaller that a score which approaches the kink row by row is hardly ever
 * within one from this line. */
#define OB_KINK_ROUNDING 1e-12

/* sum |w x| */
OB_WIDE(double, ob_size_of_terms, (w, x, n), const double *restrict w, const double *restrict x, ptrdiff_t n) {
    ob_lanes s = OB_ZERO;
#define OB_BODY(T, L, A) { A(s) += OB_ABS(T, L(w) * L(x)); }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    return OB_SUM8(s);
}

/* Returns sum w x; in the same pass computes sum z^2, and whether an |x| is the largest so far: then its z^2 is > 1. */
OB_WIDE(double, ob_normalised_dot, (w, x, r, n, square, larger), const double *restrict w, const double *restrict x,
        const double *restrict r, ptrdiff_t n, double *square, int *larger) {
    ob_lanes s = OB_ZERO, q = OB_ZERO;
    ob_bits h = OB_ZERO;
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T v = L(x), z = v * L(r), square_z = z * z;                                                              \
        A(s) += L(w) * v;                                                                                              \
        A(q) += square_z;                                                                                              \
        OB_SIGN(T, A(h), 1.0 - square_z);                                                                              \
    }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    *square = OB_SUM8(q);
    *larger = ob_negative(ob_width, &h);
    return OB_SUM8(s);
}

/* The factor of a weight where |x| is `larger` = M / m times the largest before, g being the coordinate's sum: m / M;
 * with a prior of strength M^2, for which the weight is pull / (M^2 + m^2 g), the factor that keeps the pull */
static inline double ob_rescaling(double larger, double g, int prior) {
    const double ratio = 1.0 / larger, square = ratio * ratio;
    return prior ? square * (1.0 + g) / (1.0 + square * g) : ratio;
}

/* out = x times the factor that its weight is going to get; values that are not finite are copied */
OB_CLONES static void ob_rescale_row(double *restrict out, const double *restrict x, const double *restrict g,
                                     const double *restrict r, int prior, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double a = fabs(x[i]), larger = a * r[i];
        out[i] = larger > 1.0 && r[i] < OB_UNSEEN && a <= DBL_MAX ? x[i] * ob_rescaling(larger, g[i], prior) : x[i];
    }
}

/* Where the largest |x| grows from m to M, rescale the weight, and g, a sum of z^2, to the new unit */
OB_CLONES static void ob_update_largest(double *restrict w, double *restrict g, double *restrict r,
                                        const double *restrict x, int prior, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double a = fabs(x[i]), larger = a * r[i];
        if (larger > 1.0) {
            if (r[i] < OB_UNSEEN) {
                w[i] *= ob_rescaling(larger, g[i], prior);
                g[i] /= larger * larger;
            }
            r[i] = 1.0 / a;
        }
    }
}

/* g += s x^2, q = x / h with h = sqrt(g); returns sum x q, as those below do */
OB_WIDE(double, ob_adapt, (q, g, x, s, n), double *restrict q, double *restrict g, const double *restrict x, double s,
        ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double v = x[i], sum = g[i] + s * (v * v);
        g[i] = sum;
        q[i] = sum < DBL_MIN ? 0.0 : v / sqrt(sum);
    }
    return ob_inner(ob_width, x, q, n);
}

/* g += s z^2, q = x / h with h = sqrt(g) / r^2; q may be r */
OB_WIDE(double, ob_adapt_normalised, (q, g, x, r, s, n), double *q, double *restrict g, const double *restrict x,
        const double *r, double s, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double u = r[i], z = x[i] * u, sum = g[i] + s * (z * z);
        g[i] = sum;
        q[i] = sum < DBL_MIN ? 0.0 : u * (z / sqrt(sum));
    }
    return ob_inner(ob_width, x, q, n);
}

/* g += s z^2, q = x / h with h = (1 + g) / r^2; q may be r */
OB_WIDE(double, ob_adapt_second_order, (q, g, x, r, s, n), double *q, double *restrict g, const double *restrict x,
        const double *r, double s, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double u = r[i], z = x[i] * u, sum = g[i] + s * (z * z);
        g[i] = sum;
        q[i] = u * (z / (1.0 + sum));
    }
    return ob_inner(ob_width, x, q, n);
}

/* The bet of a coordinate: wealth clip(theta, -1, 1) / (2 sqrt(a)), theta = pull / sqrt(a), a = sum of squares + m^2 */
static inline double ob_bet(double pull, double squares, double m, double wealth) {
    const double a = squares + m * m, root = sqrt(a), theta = pull / root;
    const double share = theta > 1.0 ? 1.0 : theta < -1.0 ? -1.0 : theta;
    return a > 0.0 ? 0.5 * share / root * wealth : 0.0;
}

/* The bets on a row, whose |x| may be larger than all before, and w = unit * bet */
OB_CLONES static void ob_bets(double *restrict w, double *restrict bet, const double *restrict x,
                              const double *restrict pull, const double *restrict squares,
                              const double *restrict largest, const double *restrict wealth, double unit, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double a = fabs(x[i]), m = a > largest[i] ? a : largest[i];
        bet[i] = ob_bet(pull[i], squares[i], m, wealth[i]);
        w[i] = unit * bet[i];
    }
}

/* The number of coordinates that have their first nonzero value in this row */
OB_CLONES static double ob_count_new(const double *restrict x, const double *restrict largest, ptrdiff_t n) {
    int64_t fresh = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        fresh += largest[i] == 0.0 && x[i] != 0.0;
    return (double)fresh;
}

/* Add the outcomes d = s x, clipped to the largest |x|, to wealth (if bets were made: played > 0), pull and squares;
 * the largest |x| is updated with counted |x|. */
OB_CLONES static void ob_settle(const double *restrict bet, const double *restrict x, double *restrict pull,
                                double *restrict squares, double *restrict largest, double *restrict wealth, double s,
                                double counted, double played, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double a = fabs(x[i]), m = a > largest[i] ? a : largest[i], b = counted * a;
        const double outcome = s * x[i], d = outcome > m ? m : outcome < -m ? -m : outcome;
        wealth[i] += played > 0.0 ? d * bet[i] : 0.0;
        largest[i] = b > m ? b : m;
        pull[i] += d;
        squares[i] += d * d;
    }
}

/* Penalties in the metrics of the adaptive geometries: 1 / h of a coordinate, 0 where no row had a
 * value, and the flow of a penalty, v' = -(l1 sign(v) + l2 v) / h for some time, the limit of many small proximal
 * steps. Consecutive flows are one flow, for the sum of their times.
 */
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
