/* Rows standardised by running means and deviations of their columns, which no absurd value moves far.
 *
 * Of each column: its mean m, its deviation s, 1 / s, and the weight w of the values that these remember. A value x of
 * weight h counts as u = (x - m) / s, clipped to [-limit, limit], as far as it is seen. With g = h / (w + h),
 *
 *     m += g u s,    s *= sqrt((1 - g)(1 + g u^2)),    w += h,
 *
 * which is Welford's rule in units of s, so that nothing overflows. A value far beyond the limit also shortens the
 * memory. One of them changes little; a column that has moved has several, and is then learned anew.
 *
 * At the start nobody knows which value is the absurd one. While there are only two values, m - s and m + s, -s is
 * stored. If the third is much nearer to one of these than they are to each other, the other one is forgotten. */
#ifndef ONLINEBREGMAN_STANDARDIZE_H
#define ONLINEBREGMAN_STANDARDIZE_H

#include "vector.h"

#define OB_FAR 2.0         /* values this many times as far as the limit */
#define OB_KEPT 0.75       /* keep this share of the memory, */
#define OB_REMEMBERED 40.0 /* or nothing, if it is of values of less than this weight, */
#define OB_NEW 8.0         /* but of at least this */
#define OB_NEAR 0.1        /* much nearer than the deviation of two values, */
#define OB_BEYOND 50.0      /* so far beyond them that the third value is absurd */
#define OB_LOST 1e-12      /* and so small that they are lost in it */
#define OB_ROUNDED 1e-15   /* what rounding makes of m - s and m + s */
#define OB_SMALLEST 1e-300 /* a deviation below this is 0: its inverse would overflow */

OB_INLINE double ob_clipped(double u, double limit) {
    const double low = u < -limit ? -limit : u;
    return low > limit ? limit : low;
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

/* One of the first values of a column. A column of two values is believed to be one when as many values as `enough`
 * have said so. */
static void ob_count_first(double x, double *mean, double *deviation, double *inverse, double *weight, double limit,
                           double h, double enough, double least) {
    const double m = *mean, s = fabs(*deviation), near = x < m ? m - s : m + s, gap = fabs(x - near);
    const int equal = gap <= (s > 0.0 ? OB_ROUNDED * (fabs(m) + s) : least * fabs(m));
    if (*weight == 0.0 || (equal && gap > 0.0 && fabs(x) < OB_LOST * s)) { /* nothing is known, or lost by rounding */
        *mean = x;
        *deviation = 0.0;
        *weight = h;
    } else if (equal) {
        *weight += h;
        *deviation = *weight >= enough * h ? s : *deviation;
    } else if (gap < OB_NEAR * s || s == 0.0) { /* two values, whatever was before, except where nothing is clipped */
        const double w = limit < HUGE_VAL ? h : *weight, share = h / (w + h);
        *mean = (1.0 - share) * near + share * x;
        *deviation = fabs(share * x - share * near) * sqrt(w / h) * (limit < HUGE_VAL ? -1.0 : 1.0);
        *weight = w + h;
    } else {
        const double u = gap > OB_BEYOND * s ? ob_clipped((x - m) / s, OB_FAR * limit) : (x - m) / s;
        const double share = h / (*weight + h);
        *mean += share * (u * s);
        *deviation = s * sqrt((1.0 - share) * (1.0 + share * (u * u)));
        *weight += h;
    }
    *deviation = fabs(*deviation) < OB_SMALLEST ? 0.0 : *deviation;
    *inverse = *deviation == 0.0 ? 0.0 : 1.0 / fabs(*deviation);
}

/* Add the values of columns of which s is known; returns whether there are others */
OB_CLONES static int64_t ob_count_known(const double *restrict x, double *restrict mean, double *restrict deviation,
                                        double *restrict inverse, double *restrict weights, double limit, double h,
                                        ptrdiff_t n) {
    const double far = OB_FAR * limit, few = OB_REMEMBERED * h, new = OB_NEW * h;
    int64_t others = 0;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double s = deviation[i] > 0.0 ? deviation[i] : 0.0, d = x[i] == x[i] && s > 0.0 ? x[i] - mean[i] : 0.0;
        const double w = weights[i], u = d * inverse[i], c = ob_clipped(u, w < new ? far : limit);
        const double memory = fabs(u) > far && w >= new ? (w < few ? 0.0 : OB_KEPT * w) : w;
        const double more = x[i] == x[i] && s > 0.0 ? h : 0.0, total = memory + more;
        const double share = total > 0.0 ? more / total : 0.0;
        const double spread = s * sqrt((1.0 - share) * (1.0 + share * (c * c))), one_by = 1.0 / spread;
        others |= x[i] == x[i] ? (s > 0.0 && memory > 0.0 ? 0 : 1) : 0;
        mean[i] += share * (u == c ? d : c * s);
        const int known = memory > 0.0 && spread >= OB_SMALLEST;
        deviation[i] = s > 0.0 ? (known ? spread : 0.0) : deviation[i];
        inverse[i] = s > 0.0 ? (known ? one_by : 0.0) : inverse[i];
        weights[i] = memory > 0.0 ? total : 0.0;
    }
    return others;
}

/* Add the row x, of weight h; missing values (NaN) do not count */
static void ob_count(const double *x, double *mean, double *deviation, double *inverse, double *weights, double limit,
                     double h, double enough, double least, ptrdiff_t n) {
    if (ob_count_known(x, mean, deviation, inverse, weights, limit, h, n) != 0)
        for (ptrdiff_t i = 0; i < n; ++i)
            if (x[i] == x[i] && !(deviation[i] > 0.0))
                ob_count_first(x[i], mean + i, deviation + i, inverse + i, weights + i, limit, h, enough, least);
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

OB_INLINE double ob_root_of(double s, double weight) {
    return s > 0.0 ? 1.0 / (s * sqrt(weight)) : 0.0;
}

/* Of the first values the small ones count, as it takes longer to forget a large one */
static void ob_sparse_count(const double *restrict x, const ptrdiff_t *restrict index, double *restrict deviation,
                            double *restrict root, double *restrict weights, double limit, double h, ptrdiff_t n) {
    for (ptrdiff_t k = 0; k < n; ++k) {
        const ptrdiff_t j = ob_column(index, k);
        const double size = fabs(x[k]), s = deviation[j], w = weights[j];
        if (size < OB_SMALLEST)
            continue;
        if (w == 0.0 || (w <= 3.0 * h && size < OB_NEAR * s)) {
            deviation[j] = size;
            weights[j] = h;
        } else {
            const double u = ob_clipped(size / s, limit), share = h / (w + h);
            deviation[j] = s * sqrt((1.0 - share) + share * (u * u));
            weights[j] = w + h;
        }
        root[j] = ob_root_of(deviation[j], weights[j]);
    }
}

#endif
