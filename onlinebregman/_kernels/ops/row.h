/* Helpers for rows that are not contiguous doubles, and for several models on one row. */
#ifndef ONLINEBREGMAN_ROW_H
#define ONLINEBREGMAN_ROW_H

#include "vector.h"

/* Returns the sum of W(i) x_i over i in [0, n) in four running sums: the order in which all dot products of sparse rows
 * are added. */
#define OB_RETURN_SPARSE_DOT(n, W, x)                                                                                  \
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;                                                                     \
    ptrdiff_t i = 0;                                                                                                   \
    for (; i + 4 <= n; i += 4) {                                                                                       \
        s0 += W(i) * x[i];                                                                                             \
        s1 += W(i + 1) * x[i + 1];                                                                                     \
        s2 += W(i + 2) * x[i + 2];                                                                                     \
        s3 += W(i + 3) * x[i + 3];                                                                                     \
    }                                                                                                                  \
    for (; i < n; ++i)                                                                                                 \
        s0 += W(i) * x[i];                                                                                             \
    return (s0 + s1) + (s2 + s3);

/* sum w x over the columns of a sparse row */
static double ob_sparse_dot(const double *w, const ptrdiff_t *index, const double *x, ptrdiff_t n) {
#define OB_W(i) w[index[i]]
    OB_RETURN_SPARSE_DOT(n, OB_W, x)
#undef OB_W
}

/* the same for the weights w of its columns, gathered */
static double ob_gathered_dot(const double *w, const double *x, ptrdiff_t n) {
#define OB_W(i) w[i]
    OB_RETURN_SPARSE_DOT(n, OB_W, x)
#undef OB_W
}

/* w -= c x on the columns of a sparse row */
static void ob_sparse_axpy(double *restrict w, const ptrdiff_t *restrict index, const double *restrict x, double c,
                           ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        w[index[i]] -= c * x[i];
}

/* sum v x of lazily averaged weights v = total + w (clock - stamp) */
OB_WIDE(double, ob_average_dot, (total, stamp, w, clock, x, n), const double *restrict total,
        const double *restrict stamp, const double *restrict w, double clock, const double *restrict x, ptrdiff_t n) {
    ob_lanes s = OB_ZERO;
#define OB_BODY(T, L, A) { A(s) += (L(total) + L(w) * (clock - L(stamp))) * L(x); }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    return OB_SUM8(s);
}

/* v = w on the columns of a sparse row */
static void ob_gather(double *restrict v, const double *restrict w, const ptrdiff_t *restrict index, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        v[i] = w[index[i]];
}

/* w = v on the columns of a sparse row */
static void ob_scatter(double *restrict w, const double *restrict v, const ptrdiff_t *restrict index, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        w[index[i]] = v[i];
}

/* The same for four vectors, which lie `stride` numbers apart in w and follow each other in v */
static void ob_gather_4(double *restrict v, const double *restrict w, ptrdiff_t stride, const ptrdiff_t *restrict index,
                        ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double *own = w + index[i];
        v[i] = own[0], v[n + i] = own[stride], v[2 * n + i] = own[2 * stride], v[3 * n + i] = own[3 * stride];
    }
}

static void ob_scatter_4(double *restrict w, const double *restrict v, ptrdiff_t stride,
                         const ptrdiff_t *restrict index, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        double *own = w + index[i];
        own[0] = v[i], own[stride] = v[n + i], own[2 * stride] = v[2 * n + i], own[3 * stride] = v[3 * n + i];
    }
}

/* 0 when the weights on the columns of a sparse row are finite, NaN otherwise */
static double ob_sparse_nonfinite(const double *w, const ptrdiff_t *index, ptrdiff_t n) {
    double s0 = 0.0, s1 = 0.0;
    ptrdiff_t i = 0;
    for (; i + 2 <= n; i += 2) {
        s0 += 0.0 * w[index[i]];
        s1 += 0.0 * w[index[i + 1]];
    }
    return i < n ? s0 + (s1 + 0.0 * w[index[i]]) : s0 + s1;
}

/* Convert a row of floats to doubles, stored in the same pieces in which OB_REDUCE loads it: a load that spans several
 * recent stores would have to wait for them */
OB_CLONES static void ob_widen_values(double *restrict x, const float *restrict a, ptrdiff_t n) {
    ptrdiff_t i = 0;
#if defined(__GNUC__)
    typedef float floats8 __attribute__((vector_size(32), aligned(4), may_alias));
    typedef float floats4 __attribute__((vector_size(16), aligned(4), may_alias));
    for (; i + 8 <= n; i += 8)
        *(ob_unaligned8 *)(x + i) = __builtin_convertvector(*(const floats8 *)(a + i), ob_8);
    if (n & 4) {
        *(ob_unaligned4 *)(x + i) = __builtin_convertvector(*(const floats4 *)(a + i), ob_4);
        i += 4;
    }
    if (n & 2) {
        *(ob_unaligned2 *)(x + i) = (ob_2){a[i], a[i + 1]};
        i += 2;
    }
#endif
    for (; i < n; ++i)
        x[i] = a[i];
}

/* Convert 32-bit column indices to ptrdiff_t */
OB_CLONES static void ob_widen_columns(ptrdiff_t *restrict index, const int32_t *restrict a, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i)
        index[i] = a[i];
}

/* sum w x for four models, bit for bit as by ob_dot, reading x once */
OB_WIDE(void, ob_dot4, (w0, w1, w2, w3, x, n, dots), const double *restrict w0, const double *restrict w1,
        const double *restrict w2, const double *restrict w3, const double *restrict x, ptrdiff_t n,
        double *restrict dots) {
    ob_lanes s0 = OB_ZERO, s1 = OB_ZERO, s2 = OB_ZERO, s3 = OB_ZERO;
#define OB_BODY(T, L, A)                                                                                               \
    {                                                                                                                  \
        const T v = L(x);                                                                                              \
        A(s0) += L(w0) * v;                                                                                            \
        A(s1) += L(w1) * v;                                                                                            \
        A(s2) += L(w2) * v;                                                                                            \
        A(s3) += L(w3) * v;                                                                                            \
    }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    dots[0] = OB_SUM8(s0);
    dots[1] = OB_SUM8(s1);
    dots[2] = OB_SUM8(s2);
    dots[3] = OB_SUM8(s3);
}

/* A x, each of the m sums of n products bit for bit as by ob_dot; rows of A are `width` numbers apart */
static void ob_dots(const double *a, ptrdiff_t width, ptrdiff_t m, const double *x, ptrdiff_t n, double *dots) {
    ptrdiff_t k = 0;
    for (; k + 4 <= m; k += 4, a += 4 * width)
        ob_dot4(a, a + width, a + 2 * width, a + 3 * width, x, n, dots + k);
    for (; k < m; ++k, a += width)
        dots[k] = ob_dot(a, x, n);
}

/* w_k -= c_k x for four models */
OB_CLONES static void ob_axpy4(double *restrict w0, double *restrict w1, double *restrict w2, double *restrict w3,
                               const double *restrict x, const double *restrict c, ptrdiff_t n) {
    const double c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double v = x[i];
        w0[i] -= c0 * v;
        w1[i] -= c1 * v;
        w2[i] -= c2 * v;
        w3[i] -= c3 * v;
    }
}

/* z += sum x_k w_k over rows of a matrix of n columns: the first m, or those of `index`; four at a time */
OB_CLONES static void ob_add_rows(double *restrict z, const double *restrict w, const ptrdiff_t *restrict index,
                                  const double *restrict x, ptrdiff_t m, ptrdiff_t n) {
    for (ptrdiff_t k = 0; k < m; k += 4) {
        const double *row[4];
        double c[4];
        for (int r = 0; r < 4; ++r) {
            const ptrdiff_t one = k + r < m ? k + r : k;
            row[r] = w + n * (index == NULL ? one : index[one]);
            c[r] = k + r < m ? x[k + r] : 0.0;
        }
        const double *w0 = row[0], *w1 = row[1], *w2 = row[2], *w3 = row[3];
        const double c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
        for (ptrdiff_t i = 0; i < n; ++i)
            z[i] += (c0 * w0[i] + c1 * w1[i]) + (c2 * w2[i] + c3 * w3[i]);
    }
}

/* How many of some values are at most x: of few, this takes less time than a search */
OB_CLONES static ptrdiff_t ob_rank(const double *restrict values, ptrdiff_t n, double x) {
    ptrdiff_t rank = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        rank += values[i] <= x;
    return rank;
}

/* x[i * stride] = value i of a column, `step` bytes apart, for i < n; `kind` is their format character. Returns whether
 * values of this kind are numbers. */
static int ob_gather_column(double *restrict x, ptrdiff_t stride, const char *restrict at, ptrdiff_t step, char kind,
                            ptrdiff_t n) {
#define OB_KIND(letter, T)                                                                                             \
    case letter:                                                                                                       \
        for (ptrdiff_t i = 0; i < n; ++i)                                                                              \
            x[i * stride] = (double)*(const T *)(at + i * step);                                                       \
        return 1;
    switch (kind) {
        OB_KIND('d', double)
        OB_KIND('f', float)
        OB_KIND('q', long long)
        OB_KIND('l', long)
        OB_KIND('i', int)
        OB_KIND('h', short)
        OB_KIND('b', signed char)
        OB_KIND('Q', unsigned long long)
        OB_KIND('L', unsigned long)
        OB_KIND('I', unsigned)
        OB_KIND('H', unsigned short)
        OB_KIND('B', unsigned char)
        OB_KIND('?', unsigned char)
    }
#undef OB_KIND
    return 0;
}

#endif
