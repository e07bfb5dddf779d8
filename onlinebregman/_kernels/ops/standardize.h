/* Rows standardised by running means and deviations of their columns. */
#ifndef ONLINEBREGMAN_STANDARDIZE_H
#define ONLINEBREGMAN_STANDARDIZE_H

#include "vector.h"

/* (x - mean) / deviation, clipped to [-limit, limit]; NaN where x is not finite. The deviation is 1 / (root unit), and
 * root is 0 for constant columns. In this order of factors none overflows. */
OB_INLINE double ob_standardized(double x, double mean, double root, double unit, double limit) {
    const double z = ((x - mean) * root) * unit, low = z < -limit ? -limit : z;
    return (low > limit ? limit : low) + 0.0 * x;
}

/* z = the standardised row x */
OB_CLONES static void ob_standardize(double *restrict z, const double *restrict x, const double *restrict mean,
                                     const double *restrict root, double unit, double limit, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        z[i] = ob_standardized(x[i], mean[i], root[i], unit, limit);
}

/* The same, not clipped: a constant column is only centred */
OB_CLONES static void ob_centre_and_scale(double *restrict z, const double *restrict x, const double *restrict mean,
                                          const double *restrict root, double unit, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        z[i] = root[i] > 0.0 ? ((x[i] - mean[i]) * root[i]) * unit : x[i] - mean[i];
}

/* As the first one, and then the row, of weight h, is added to the statistics: mean, squares = sum h (x - mean)^2
 * (Welford), and root = 1 / sqrt(squares), or 0 if the deviation is below `least` times the mean. `total` is the weight
 * of all rows, this one included, and share = h / total, or 0 where the mean is not subtracted. */
OB_CLONES static void ob_standardize_and_count(double *restrict z, const double *restrict x, double *restrict mean,
                                               double *restrict squares, double *restrict root, double unit,
                                               double limit, double h, double share, double total, double least,
                                               ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; i += OB_LANES)
        OB_PREFETCH(x + i + 512);
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double d = x[i] - mean[i], m = mean[i] + share * d, s = squares[i] + (h * d) * (x[i] - m);
        const double bound = (least * m) * (least * m) * total, inverse = 1.0 / sqrt(s);
        z[i] = ob_standardized(x[i], mean[i], root[i], unit, limit);
        mean[i] = m;
        squares[i] = s;
        root[i] = s > bound ? inverse : 0.0;
    }
}

/* z = 0 where x is missing (NaN) */
OB_CLONES static void ob_zero_missing(double *restrict z, const double *restrict x, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        z[i] = x[i] == x[i] ? z[i] : 0.0;
}

/* The same two for columns with missing values (NaN), which become 0 and are not counted: `weights` are those of the
 * rows in which each column was present. A column that was never missing gets the same digits as above. */
OB_CLONES static void ob_standardize_present(double *restrict z, const double *restrict x,
                                             const double *restrict mean, const double *restrict root,
                                             const double *restrict weights, double limit, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        z[i] = ob_standardized(x[i] == x[i] ? x[i] : mean[i], mean[i], root[i], sqrt(weights[i]), limit);
}

OB_CLONES static void ob_standardize_and_count_present(double *restrict z, const double *restrict x,
                                                       double *restrict mean, double *restrict squares,
                                                       double *restrict root, double *restrict weights, double limit,
                                                       double h, double least, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const int present = x[i] == x[i];
        const double value = present ? x[i] : mean[i], more = present ? h : 0.0, total = weights[i] + more;
        const double d = value - mean[i], share = total > 0.0 ? more / total : 0.0;
        const double m = mean[i] + share * d, s = squares[i] + (more * d) * (value - m);
        const double bound = (least * m) * (least * m) * total, inverse = 1.0 / sqrt(s);
        z[i] = ob_standardized(value, mean[i], root[i], sqrt(weights[i]), limit);
        mean[i] = m;
        squares[i] = s;
        weights[i] = total;
        root[i] = s > bound ? inverse : 0.0;
    }
}

/* Without means, for a sparse row; `squares` and `root` are those of all columns */
static void ob_sparse_standardize(double *restrict z, const double *restrict x, const ptrdiff_t *restrict index,
                                  const double *restrict root, double unit, double limit, ptrdiff_t n) {
    for (ptrdiff_t k = 0; k < n; ++k)
        z[k] = ob_standardized(x[k], 0.0, root[index[k]], unit, limit);
}

static void ob_sparse_count(const double *restrict x, const ptrdiff_t *restrict index, double *restrict squares,
                            double *restrict root, double h, ptrdiff_t n) {
    for (ptrdiff_t k = 0; k < n; ++k) {
        const double s = squares[index[k]] + (h * x[k]) * x[k];
        squares[index[k]] = s;
        root[index[k]] = s > 0.0 ? 1.0 / sqrt(s) : 0.0;
    }
}

#endif
