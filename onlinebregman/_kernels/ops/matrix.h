/* Products of a symmetric matrix with several vectors, and updates of higher rank, blocked for registers and cache.
 *
 * The result for a vector does not depend on how many vectors are multiplied together: each sum runs in the order of
 * its terms, in parts of OB_PART terms.
 */
#ifndef ONLINEBREGMAN_MATRIX_H
#define ONLINEBREGMAN_MATRIX_H

#include "vector.h"

#define OB_PART 128
#define OB_ROWS 6
#define OB_COLUMNS 8
#define OB_PANEL 64

#define OB_LEAST(a, b) ((a) < (b) ? (a) : (b))

/* c[r, l] += sum_p a[r, p] b[p, l] for the given number of rows r and columns l of a tile of 6 x 8. The whole tile is
 * computed: a has six rows of length `a_width`, b is packed in rows of eight. */
OB_WIDE(void, ob_tile, (c, c_width, rows, columns, a, a_width, b, n), double *restrict c, ptrdiff_t c_width,
        ptrdiff_t rows, ptrdiff_t columns, const double *restrict a, ptrdiff_t a_width, const double *restrict b,
        ptrdiff_t n) {
    rows = OB_LEAST(rows, OB_ROWS);
    columns = OB_LEAST(columns, OB_COLUMNS);
    double s[OB_ROWS][OB_COLUMNS];
#define OB_SUM_COLUMNS(T, U)                                                                                           \
    for (int l = 0; l < OB_COLUMNS; l += (int)(sizeof(T) / sizeof(double))) {                                          \
        T s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0};                                                  \
        for (ptrdiff_t p = 0; p < n; ++p) {                                                                            \
            const T v = *(const U *)(b + p * OB_COLUMNS + l);                                                          \
            s0 += a[p] * v;                                                                                            \
            s1 += a[a_width + p] * v;                                                                                  \
            s2 += a[2 * a_width + p] * v;                                                                              \
            s3 += a[3 * a_width + p] * v;                                                                              \
            s4 += a[4 * a_width + p] * v;                                                                              \
            s5 += a[5 * a_width + p] * v;                                                                              \
        }                                                                                                              \
        const T sums[OB_ROWS] = {s0, s1, s2, s3, s4, s5};                                                              \
        for (int r = 0; r < OB_ROWS; ++r)                                                                              \
            *(U *)(s[r] + l) = sums[r];                                                                                \
    }
    OB_AT_WIDTH(OB_SUM_COLUMNS)
#undef OB_SUM_COLUMNS
    if (columns == OB_COLUMNS) {
        for (ptrdiff_t r = 0; r < rows; ++r)
            for (ptrdiff_t l = 0; l < OB_COLUMNS; ++l)
                c[r * c_width + l] += s[r][l];
        return;
    }
    for (ptrdiff_t r = 0; r < rows; ++r)
        for (ptrdiff_t l = 0; l < columns; ++l)
            c[r * c_width + l] += s[r][l];
}

/* Pack n rows of a into b, one tile of eight columns after the other, the last one padded with zeros. Whole rows are
 * read, as the values of a column of a large matrix are far apart in memory. */
static void ob_pack(double *restrict b, const double *restrict a, ptrdiff_t a_width, ptrdiff_t columns, ptrdiff_t n) {
    for (ptrdiff_t p = 0; p < n; ++p) {
        double *to = b + p * OB_COLUMNS;
        const double *from = a + p * a_width;
        ptrdiff_t left = columns;
        for (; left >= OB_COLUMNS; left -= OB_COLUMNS, from += OB_COLUMNS, to += n * OB_COLUMNS)
            memcpy(to, from, OB_COLUMNS * sizeof(double));
        if (left > 0) {
            memset(to, 0, OB_COLUMNS * sizeof(double));
            memcpy(to, from, left * sizeof(double));
        }
    }
}

/* y = W z for one vector; t is scratch of the same length */
OB_CLONES static void ob_times_one(const double *restrict w, const double *restrict z, double *restrict y,
                                   double *restrict t, ptrdiff_t d) {
    memset(y, 0, d * sizeof(double));
    for (ptrdiff_t start = 0; start < d; start += OB_PART) {
        const ptrdiff_t end = start + OB_LEAST(d - start, OB_PART);
        ptrdiff_t p = start;
        memset(t, 0, d * sizeof(double));
        for (; p + 4 <= end; p += 4) { /* in the order of the terms, but t is read and written once for four */
            const double *w0 = w + p * d, *w1 = w0 + d, *w2 = w1 + d, *w3 = w2 + d;
            const double z0 = z[p], z1 = z[p + 1], z2 = z[p + 2], z3 = z[p + 3];
            for (ptrdiff_t i = 0; i < d; ++i)
                t[i] = (((t[i] + z0 * w0[i]) + z1 * w1[i]) + z2 * w2[i]) + z3 * w3[i];
        }
        for (; p < end; ++p)
            for (ptrdiff_t i = 0; i < d; ++i)
                t[i] += z[p] * w[p * d + i];
        for (ptrdiff_t i = 0; i < d; ++i)
            y[i] += t[i];
    }
}

/* Y = Z W for k rows of Z and Y, padded to a multiple of six rows; both triangles of the symmetric W (d, d) are read. b
 * is scratch of max(OB_PART * OB_PANEL, d) values. */
static void ob_times(const double *restrict w, const double *restrict z, double *restrict y, ptrdiff_t k, ptrdiff_t d,
                     double *restrict b) {
    if (k < 4) {
        for (ptrdiff_t r = 0; r < k; ++r)
            ob_times_one(w, z + r * d, y + r * d, b, d);
        return;
    }
    memset(y, 0, k * d * sizeof(double));
    for (ptrdiff_t start = 0; start < d; start += OB_PART) {
        const ptrdiff_t n = OB_LEAST(d - start, OB_PART);
        for (ptrdiff_t left = 0; left < d; left += OB_PANEL) {
            const ptrdiff_t right = left + OB_LEAST(d - left, OB_PANEL);
            ob_pack(b, w + start * d + left, d, right - left, n);
            for (ptrdiff_t i = left; i < right; i += OB_COLUMNS)
                for (ptrdiff_t r = 0; r < k; r += OB_ROWS)
                    ob_tile(y + r * d + i, d, k - r, right - i, z + r * d + start, d, b + (i - left) * n, n);
        }
    }
}

/* y -= sum_p s_p (v_p.z) v_p for m rows of V: the contribution of pending updates to W z */
OB_WIDE(void, ob_correct, (y, v, s, z, m, d), double *restrict y, const double *restrict v, const double *restrict s,
        const double *restrict z, ptrdiff_t m, ptrdiff_t d) {
    ptrdiff_t p = 0;
    for (; p + 4 <= m; p += 4) {
        const double *v0 = v + p * d, *v1 = v0 + d, *v2 = v1 + d, *v3 = v2 + d;
        ob_lanes s0 = OB_ZERO, s1 = OB_ZERO, s2 = OB_ZERO, s3 = OB_ZERO;
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T x = L(z);                                                                                              \
        A(s0) += L(v0) * x;                                                                                            \
        A(s1) += L(v1) * x;                                                                                            \
        A(s2) += L(v2) * x;                                                                                            \
        A(s3) += L(v3) * x;                                                                                            \
    }
        OB_REDUCE(d, OB_BODY);
#undef OB_BODY
        const double c0 = s[p] * OB_SUM8(s0), c1 = s[p + 1] * OB_SUM8(s1);
        const double c2 = s[p + 2] * OB_SUM8(s2), c3 = s[p + 3] * OB_SUM8(s3);
        for (ptrdiff_t i = 0; i < d; ++i)
            y[i] -= (c0 * v0[i] + c1 * v1[i]) + (c2 * v2[i] + c3 * v3[i]);
    }
    for (; p < m; ++p)
        ob_axpy(y, v + p * d, s[p] * ob_dot(v + p * d, z, d), d);
}

/* W -= sum_p s_p v_p v_p' for m rows of V, both triangles; t is scratch of (2 d + 12) m values. */
static void ob_update(double *restrict w, const double *restrict v, const double *restrict s, ptrdiff_t m, ptrdiff_t d,
                      double *restrict t) {
    double *b = t + (d + 5) * m;
    for (ptrdiff_t i = 0; i < d; i += OB_COLUMNS)
        for (ptrdiff_t p = 0; p < m; ++p)
            for (ptrdiff_t l = i; l < d && l < i + OB_COLUMNS; ++l)
                t[l * m + p] = -s[p] * v[p * d + l];
    ob_pack(b, v, d, d, m);
    for (ptrdiff_t left = 0; left < d; left += OB_PANEL) { /* as many columns as keep b in the cache */
        const ptrdiff_t right = left + OB_LEAST(d - left, OB_PANEL);
        for (ptrdiff_t i = 0; i < right; i += OB_ROWS)
            for (ptrdiff_t j = i < left ? left : i / OB_COLUMNS * OB_COLUMNS; j < right; j += OB_COLUMNS)
                ob_tile(w + i * d + j, d, d - i, right - j, t + i * m, m, b + j * m, m);
        for (ptrdiff_t top = 0; top < right; top += OB_COLUMNS) /* and as rows of the lower triangle */
            for (ptrdiff_t i = left; i < right; ++i)
                for (ptrdiff_t j = top; j < i && j < top + OB_COLUMNS; ++j)
                    w[i * d + j] = w[j * d + i];
    }
}

/* w -= c v v, for the diagonal of W -= c v v' */
OB_CLONES static void ob_take_squares(double *restrict w, const double *restrict v, double c, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        w[i] -= c * v[i] * v[i];
}

/* Whether any w is below this fraction of its first value. */
OB_CLONES static int ob_any_below(const double *restrict w, const double *restrict first, double part, ptrdiff_t n) {
    int64_t below = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        below |= w[i] < part * first[i] ? 1 : 0;
    return below != 0;
}

/* q += c (x x - y y), the diagonal of W^-1 + c (x x' - y y'); returns sum w q, and in size sum w (x x + y y). Without y
 * if that is NULL. */
OB_WIDE(double, ob_inverse_diagonal, (q, w, x, y, c, n, size), double *restrict q, const double *restrict w,
        const double *restrict x, const double *restrict y, double c, ptrdiff_t n, double *size) {
    ob_lanes s = OB_ZERO, z = OB_ZERO;
    if (y == NULL) {
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T a = L(x), b = L(w), r = L(q) + c * (a * a);                                                            \
        memcpy(q + i, &r, sizeof(T));                                                                                  \
        A(s) += b * r;                                                                                                 \
        A(z) += b * (a * a);                                                                                           \
    }
        OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    } else {
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T a = L(x), e = L(y), b = L(w), r = L(q) + c * ((a - e) * (a + e));                                      \
        memcpy(q + i, &r, sizeof(T));                                                                                  \
        A(s) += b * r;                                                                                                 \
        A(z) += b * (a * a + e * e);                                                                                   \
    }
        OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    }
    *size = OB_SUM8(z);
    return OB_SUM8(s);
}

#endif
