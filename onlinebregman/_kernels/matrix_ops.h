/* Products of a symmetric matrix with several vectors, and updates of many ranks, at the speed of registers.
 *
 * The digits of a vector do not depend on which vectors come with it: each sum runs in the order of its terms, in parts
 * of OB_PART terms, whether one vector is multiplied or sixty.
 */
#ifndef ONLINEBREGMAN_MATRIX_OPS_H
#define ONLINEBREGMAN_MATRIX_OPS_H

#include "vector_ops.h"

#define OB_PART 256
#define OB_ROWS 6
#define OB_COLUMNS 8

/* c[r, l] += sum_p a[r, p] b[p, l] for so many rows r and columns l of a tile of 6 x 8. All of the tile is computed: a
 * has six rows of length `a_width`, b is packed in rows of eight. */
OB_CLONES static void ob_tile(double *restrict c, ptrdiff_t c_width, ptrdiff_t rows, ptrdiff_t columns,
                              const double *restrict a, ptrdiff_t a_width, const double *restrict b, ptrdiff_t n) {
#if defined(__GNUC__)
    ob_8 s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0};
    for (ptrdiff_t p = 0; p < n; ++p) {
        const ob_8 v = *(const ob_unaligned8 *)(b + p * OB_COLUMNS);
        s0 += a[p] * v;
        s1 += a[a_width + p] * v;
        s2 += a[2 * a_width + p] * v;
        s3 += a[3 * a_width + p] * v;
        s4 += a[4 * a_width + p] * v;
        s5 += a[5 * a_width + p] * v;
    }
    const ob_8 s[OB_ROWS] = {s0, s1, s2, s3, s4, s5};
    if (columns == OB_COLUMNS) {
        for (ptrdiff_t r = 0; r < rows; ++r)
            *(ob_unaligned8 *)(c + r * c_width) += s[r];
        return;
    }
#else
    double s[OB_ROWS][OB_COLUMNS] = {{0}};
    for (ptrdiff_t p = 0; p < n; ++p)
        for (ptrdiff_t r = 0; r < OB_ROWS; ++r)
            for (ptrdiff_t l = 0; l < OB_COLUMNS; ++l)
                s[r][l] += a[r * a_width + p] * b[p * OB_COLUMNS + l];
#endif
    for (ptrdiff_t r = 0; r < rows; ++r)
        for (ptrdiff_t l = 0; l < columns; ++l)
            c[r * c_width + l] += s[r][l];
}

/* b = eight columns of so many rows of a, zeros where there are fewer */
static void ob_pack(double *restrict b, const double *restrict a, ptrdiff_t a_width, ptrdiff_t columns, ptrdiff_t n) {
    if (columns == OB_COLUMNS) {
        for (ptrdiff_t p = 0; p < n; ++p)
            memcpy(b + p * OB_COLUMNS, a + p * a_width, OB_COLUMNS * sizeof(double));
        return;
    }
    memset(b, 0, n * OB_COLUMNS * sizeof(double));
    for (ptrdiff_t p = 0; p < n; ++p)
        memcpy(b + p * OB_COLUMNS, a + p * a_width, columns * sizeof(double));
}

/* y = W z for one vector; t is room for another */
static void ob_times_one(const double *restrict w, const double *restrict z, double *restrict y, double *restrict t,
                         ptrdiff_t d) {
    memset(y, 0, d * sizeof(double));
    for (ptrdiff_t start = 0; start < d; start += OB_PART) {
        const ptrdiff_t end = start + OB_PART < d ? start + OB_PART : d;
        memset(t, 0, d * sizeof(double));
        for (ptrdiff_t p = start; p < end; ++p)
            ob_axpy(t, w + p * d, -z[p], d);
        ob_axpy(y, t, -1.0, d);
    }
}

/* Y = Z W for k rows of Z and Y, whose memory goes on to a multiple of six rows; W (d, d) is symmetric, all of it. */
static void ob_times(const double *restrict w, const double *restrict z, double *restrict y, ptrdiff_t k, ptrdiff_t d,
                     double *restrict t) {
    double b[OB_PART * OB_COLUMNS];
    if (k < 4) {
        for (ptrdiff_t r = 0; r < k; ++r)
            ob_times_one(w, z + r * d, y + r * d, t, d);
        return;
    }
    memset(y, 0, k * d * sizeof(double));
    for (ptrdiff_t start = 0; start < d; start += OB_PART) {
        const ptrdiff_t n = d - start < OB_PART ? d - start : OB_PART;
        for (ptrdiff_t i = 0; i < d; i += OB_COLUMNS) {
            const ptrdiff_t columns = d - i < OB_COLUMNS ? d - i : OB_COLUMNS;
            ob_pack(b, w + start * d + i, d, columns, n);
            for (ptrdiff_t r = 0; r < k; r += OB_ROWS)
                ob_tile(y + r * d + i, d, k - r < OB_ROWS ? k - r : OB_ROWS, columns, z + r * d + start, d, b, n);
        }
    }
}

/* W -= sum_p s_p v_p v_p' for m <= OB_PART rows of V, both triangles; t is room for (d + 5) m values. */
static void ob_update(double *restrict w, const double *restrict v, const double *restrict s, ptrdiff_t m, ptrdiff_t d,
                      double *restrict t) {
    double b[OB_PART * OB_COLUMNS];
    for (ptrdiff_t p = 0; p < m; ++p)
        for (ptrdiff_t i = 0; i < d; ++i)
            t[i * m + p] = -s[p] * v[p * d + i];
    for (ptrdiff_t j = 0; j < d; j += OB_COLUMNS) {
        const ptrdiff_t columns = d - j < OB_COLUMNS ? d - j : OB_COLUMNS;
        ob_pack(b, v + j, d, columns, m);
        for (ptrdiff_t i = 0; i < j + columns; i += OB_ROWS)
            ob_tile(w + i * d + j, d, d - i < OB_ROWS ? d - i : OB_ROWS, columns, t + i * m, m, b, m);
    }
    for (ptrdiff_t top = 0; top < d; top += OB_COLUMNS) /* the lower triangle, in blocks that stay in the cache */
        for (ptrdiff_t i = top; i < d; ++i)
            for (ptrdiff_t j = top; j < i && j < top + OB_COLUMNS; ++j)
                w[i * d + j] = w[j * d + i];
}

#endif
