/* Rows standardised by running means and deviations of their columns, which no absurd value moves far.
 *
 * Of each column: its mean m, its deviation s, 1 / s, the weight w of its values, and the evidence e that it has moved.
 * A value x of weight h counts as u = (x - m) / s, and one beyond OB_ABSURD limits as the limit. With g = h / (w + h),
 *
 *     m += g u s,    s *= sqrt((1 - g)(1 + g u^2)),    w += h,
 *
 * which is Welford's rule in units of s, so that nothing overflows. A value beyond OB_BEYOND limits adds 3 to e, any
 * other one takes 1 from it as long as e > 0 (Page's cumulative sums): if more than a quarter of the values are far,
 * the column has moved, and once e is OB_MOVED, its values so far are forgotten.
 *
 * They are forgotten as well if its values draw together, as they do in a larger unit: if for more than OB_RUN blocks
 * of OB_BLOCK rows all are within OB_CLOSE deviations of each other, with steps from block to block of OB_STILL of the
 * usual ones, and for twice as long as they ever were before, so that it happens a few times only to columns that are
 * quiet by nature, and not to those that are slow. A block at whose end there is the least or the greatest of these
 * values, or the one from the end before, does not count: most values of a column may be equal.
 *
 * At the start nobody knows which value is the absurd one. While there are only two values, -s is stored, and in place
 * of e the share of the larger one. If the third is nearer to one of these than OB_NEAR of what lies between them, the
 * other one is forgotten. */
#ifndef ONLINEBREGMAN_STANDARDIZE_H
#define ONLINEBREGMAN_STANDARDIZE_H

#include "vector.h"

#define OB_LIMIT 5.0       /* deviations that values are limited to */
#define OB_ENOUGH 8.0      /* values after which a column of two has a deviation, to scale by */
#define OB_LEAST 1e-14     /* a column whose deviation is below this part of its mean is constant up to rounding */
#define OB_ABSURD 40.0     /* limits */
#define OB_BEYOND 2.0         /* limits */
#define OB_MOVED 24.0      /* eight far values in a row */
#define OB_NEAR 0.005
#define OB_CLOSE 0.9       /* deviations */
#define OB_SMALL 0.05      /* deviations, where to be learned anew costs more */
#define OB_STILL 0.2       /* of the usual step */
#define OB_MEAN 32.0       /* blocks of which the usual step is a mean */
#define OB_RUN 6.0         /* blocks */
#define OB_BLOCK 8.0       /* rows */
#define OB_LOST 1e-12      /* a value this small against the deviation of two is lost in it */
#define OB_ROUNDED 1e-14   /* what rounding makes of two values */
#define OB_SMALLEST 1e-300 /* a deviation below this is 0: its inverse would overflow */

OB_INLINE double ob_clipped(double u, double limit) {
    const double low = u < -limit ? -limit : u;
    return low > limit ? limit : low;
}

/* What a value counts as */
OB_INLINE double ob_counted(double u, double limit) {
    return fabs(u) > OB_ABSURD * limit ? ob_clipped(u, limit) : u;
}

/* z = (x - mean) / s clipped to [-limit, limit]; `missing` where x is NaN, NaN where x is infinite */
OB_CLONES static void ob_standardize(double *restrict z, const double *restrict x, const double *restrict mean,
                                     const double *restrict inverse, double limit, double missing, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double u = ob_clipped((x[i] - mean[i]) * inverse[i], limit) + 0.0 * x[i];
        z[i] = x[i] == x[i] ? u : missing;
    }
}

/* The same in the units of the column: x clipped to mean +- limit s, once s is known; where x is NaN, mean + missing */
OB_CLONES static void ob_limit(double *restrict z, const double *restrict x, const double *restrict mean,
                               const double *restrict deviation, double limit, double missing, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double far = deviation[i] > 0.0 ? limit * deviation[i] : HUGE_VAL;
        const double low = mean[i] - far, high = mean[i] + far;
        const double raised = x[i] < low ? low : x[i], inside = raised > high ? high : raised;
        z[i] = x[i] == x[i] ? inside + 0.0 * x[i] : mean[i] + missing;
    }
}

/* Not clipped: a constant column is only centred */
OB_CLONES static void ob_centre_and_scale(double *restrict z, const double *restrict x, const double *restrict mean,
                                          const double *restrict inverse, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        z[i] = inverse[i] > 0.0 ? (x[i] - mean[i]) * inverse[i] : x[i] - mean[i];
}

/* One of the first values of a column */
static void ob_count_first(double x, double *mean, double *deviation, double *inverse, double *weight, double *moved,
                           double limit, double h, double enough, double least) {
    const double m = *mean, s = fabs(*deviation), q = *moved, odds = sqrt(q / (1.0 - q));
    const double low = s > 0.0 ? m - s * odds : m, high = s > 0.0 ? m + s / odds : m, range = high - low;
    const int is_high = x - low > high - x;
    const double near = is_high ? high : low, gap = fabs(x - near);
    const int equal = gap <= (s > 0.0 ? OB_ROUNDED * (fabs(m) + range) : least * fabs(m));
    if (*weight == 0.0 || (equal && x != 0.0 && fabs(x) < OB_LOST * s)) { /* nothing is known, or lost by rounding */
        *mean = x;
        *deviation = *moved = 0.0;
        *weight = h;
    } else if (s == 0.0 && equal) {
        *weight += h;
    } else if (s == 0.0 || (!equal && gap < OB_NEAR * range && limit < HUGE_VAL)) { /* two values */
        const double w = s == 0.0 ? *weight : h, share = h / (w + h);
        *mean = (1.0 - share) * near + share * x;
        *deviation = fabs(share * x - share * near) * sqrt(w / h) * (limit < HUGE_VAL ? -1.0 : 1.0);
        *moved = limit < HUGE_VAL ? (x > near ? share : 1.0 - share) : 0.0;
        *weight = w + h;
    } else {
        const double u = ob_counted((x - m) / s, limit), share = h / (*weight + h);
        *mean += share * (u * s);
        *deviation = s * sqrt((1.0 - share) * (1.0 + share * (u * u)));
        *weight += h;
        if (equal && *weight < enough * h) { /* may stay a column of two values */
            *deviation = -*deviation;
            *moved = (1.0 - share) * q + (is_high ? share : 0.0);
        } else {
            *moved = 0.0;
        }
    }
    *deviation = fabs(*deviation) < OB_SMALLEST ? 0.0 : *deviation;
    *inverse = *deviation == 0.0 ? 0.0 : 1.0 / fabs(*deviation);
}

/* Whether s is known of every column, no value is missing or far, and no column may have moved */
OB_CLONES static int ob_ordinary(const double *restrict x, const double *restrict mean,
                                 const double *restrict deviation, const double *restrict inverse,
                                 const double *restrict moved, double limit, ptrdiff_t n) {
    const double far = OB_BEYOND * limit;
    int64_t other = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double known = fabs((x[i] - mean[i]) * inverse[i]) <= far ? deviation[i] : 0.0;
        other |= OB_BITS(known > 0.0 ? moved[i] : 1.0);
    }
    return other == 0;
}

/* Add the values of columns of which s is known; of one that has moved it no longer is. Conditions are numbers, 0 or 1,
 * so that columns are computed side by side. `ordinary`, a constant, leaves out what changes no digit of such rows. */
OB_INLINE void ob_count_columns(const int ordinary, const double *restrict x, double *restrict mean,
                                double *restrict deviation, double *restrict inverse, double *restrict weights,
                                double *restrict moved, double limit, double h, ptrdiff_t n) {
    const double far = OB_BEYOND * limit;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double m = mean[i], s = deviation[i], one_by = inverse[i], e = moved[i], w = weights[i];
        const double counts = ordinary ? 1.0 : s > 0.0 ? x[i] == x[i] ? 1.0 : 0.0 : 0.0;
        const double d = counts > 0.0 ? x[i] - m : 0.0, u = d * one_by, size = fabs(u);
        const double c = ordinary ? u : ob_counted(u, limit), step = ordinary || u == c ? d : c * s;
        const double evidence = e + (size > far ? 3.0 : -1.0), kept = !ordinary && evidence > 0.0 ? evidence : 0.0;
        const double stays = !ordinary && evidence >= OB_MOVED ? 1.0 - counts : 1.0;
        const double total = w + counts * h;
        const double share = counts * h / (ordinary || total > 0.0 ? total : 1.0);
        const double spread = s * sqrt((1.0 - share) * (1.0 + share * (c * c)));
        const double known = spread >= OB_SMALLEST ? stays : 0.0, next = 1.0 / (spread > 0.0 ? spread : 1.0);
        mean[i] = m + share * step;
        deviation[i] = ordinary || s > 0.0 ? known * spread : s;
        inverse[i] = ordinary || s > 0.0 ? known * next : one_by;
        moved[i] = counts > 0.0 ? stays * kept : e;
        weights[i] = stays * total;
    }
}

OB_CLONES static void ob_count_known(int ordinary, const double *x, double *mean, double *deviation, double *inverse,
                                     double *weights, double *moved, double limit, double h, ptrdiff_t n) {
    if (ordinary)
        ob_count_columns(1, x, mean, deviation, inverse, weights, moved, limit, h, n);
    else
        ob_count_columns(0, x, mean, deviation, inverse, weights, moved, limit, h, n);
}

/* Add the row x, of weight h; missing values (NaN) do not count. Returns whether columns begin with it. */
static int ob_count(const double *x, double *mean, double *deviation, double *inverse, double *weights, double *moved,
                    double limit, double h, double enough, double least, ptrdiff_t n) {
    const int ordinary = ob_ordinary(x, mean, deviation, inverse, moved, limit, n);
    int begun = 0;
    ob_count_known(ordinary, x, mean, deviation, inverse, weights, moved, limit, h, n);
    for (ptrdiff_t i = 0; !ordinary && i < n; ++i)
        if (!(deviation[i] > 0.0) && x[i] == x[i]) {
            ob_count_first(x[i], mean + i, deviation + i, inverse + i, weights + i, moved + i, limit, h, enough, least);
            begun |= weights[i] == h;
        }
    return begun;
}

OB_CLONES static void ob_widen(const double *restrict x, double *restrict low, double *restrict high, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        low[i] = x[i] < low[i] ? x[i] : low[i];
        high[i] = x[i] > high[i] ? x[i] : high[i];
    }
}

/* Whether columns have drawn together, at the end of a block: in [low, high], of `most` deviations, for `run` blocks,
 * after `longest` ones, with steps from one end of a block to the next whose sum is `steps`, the `usual` one before */
static void ob_count_close(const double *x, double *deviation, double *inverse, double *weights, double *moved,
                           double *low, double most, ptrdiff_t n) {
    double *high = low + n, *run = high + n, *longest = run + n, *last = longest + n, *steps = last + n;
    double *usual = steps + n;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double step = x[i] == x[i] ? fabs(x[i] - last[i]) : 0.0;
        const int close = high[i] - low[i] <= most * deviation[i];
        const int counts = step > 0.0 && low[i] < x[i] && x[i] < high[i];
        last[i] = x[i] == x[i] ? x[i] : last[i];
        if (close && !counts)
            continue;
        run[i] += close;
        steps[i] += step;
        if (close && !(run[i] > OB_RUN + 2.0 * longest[i] && steps[i] < OB_STILL * usual[i] * run[i]))
            continue;
        longest[i] = run[i] > longest[i] ? run[i] : longest[i];
        usual[i] += close ? steps[i] / run[i] - usual[i] : (steps[i] - (run[i] + 1.0) * usual[i]) / (run[i] + OB_MEAN);
        if (close)
            weights[i] = deviation[i] = inverse[i] = moved[i] = 0.0;
        run[i] = steps[i] = 0.0;
        low[i] = high[i] = last[i];
    }
}

/* Columns that are not centred, of a row that may be sparse (`index`, or NULL): s is the root mean square of the values
 * that are not 0, w their weight, and root = 1 / (s sqrt(w)), so that with the weight of all rows, unit^2, z = x root
 * unit is x by the root mean square of all values. */
OB_INLINE ptrdiff_t ob_column(const ptrdiff_t *index, ptrdiff_t k) {
    return index == NULL ? k : index[k];
}

static void ob_sparse_standardize(double *restrict z, const double *restrict x, const ptrdiff_t *restrict index,
                                  const double *restrict root, double unit, double limit, ptrdiff_t n) {
    for (ptrdiff_t k = 0; k < n; ++k)
        z[k] = ob_clipped((x[k] * root[ob_column(index, k)]) * unit, limit) + 0.0 * x[k];
}

/* Of the first values the small ones count, as it takes longer to forget a large one. If for as long as above all are
 * within OB_SMALL s, s becomes their mean size. */
static void ob_sparse_count(const double *restrict x, const ptrdiff_t *restrict index, double *state,
                            ptrdiff_t n_columns, double limit, double h, ptrdiff_t n) {
    for (ptrdiff_t k = 0; k < n; ++k) {
        double *deviation = state + ob_column(index, k), *root = deviation + n_columns, *weight = root + 2 * n_columns;
        double *run = weight + n_columns, *longest = run + n_columns, *mean_size = longest + n_columns;
        const double size = fabs(x[k]), s = *deviation, w = *weight, u = ob_counted(s > 0.0 ? size / s : 0.0, limit);
        const int close = size <= OB_SMALL * s;
        if (size < OB_SMALLEST)
            continue;
        if (w == 0.0 || (w <= 3.0 * h && size < OB_NEAR * s)) {
            *deviation = size;
            *weight = h;
        } else {
            *deviation = s * sqrt((1.0 - h / (w + h)) + h / (w + h) * (u * u));
            *weight = w + h;
        }
        *run += 1.0;
        *mean_size += (size - *mean_size) / *run;
        if (!close || *run > OB_RUN * OB_BLOCK + 2.0 * *longest) {
            *deviation = close ? *mean_size : *deviation;
            *longest = *run - 1.0 > *longest ? *run - 1.0 : *longest;
            *run = *mean_size = 0.0;
        }
        *root = 1.0 / (*deviation * sqrt(*weight));
    }
}

#endif
