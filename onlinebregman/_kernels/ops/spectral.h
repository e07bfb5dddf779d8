/* Rank-one change of an eigendecomposition: diag(pole) + u u' with poles in ascending order and w = u^2.
 *
 * Its eigenvalues are the roots of f(t) = 1 + sum w_j / (pole_j - t), one between each pole and the next and one above
 * the last. A root is stored as an offset tau from the nearer pole, `origin`, so that differences pole_j - root have no
 * cancellation. Eight roots are computed at a time, one per lane: lanes are independent, so that every instruction set
 * gives the same digits.
 */
#ifndef ONLINEBREGMAN_SPECTRAL_H
#define ONLINEBREGMAN_SPECTRAL_H

#include "adaptive.h"

/* Arrays indexed by roots, and the poles, are padded by this number of values. */
#define OB_SPARE 16

#if defined(__GNUC__)
#define OB_WIDTH 8
typedef ob_8 ob_group;
typedef ob_8_bits ob_mask;
#define OB_GET(p) OB_AT(const ob_unaligned8, p, 0)
#define OB_PUT(p, v) (OB_AT(ob_unaligned8, p, 0) = (v))
#define OB_CHOOSE(m, a, b) OB_PICK(ob_8, m, a, b)
#define OB_LANE_OF(v, l) ((v)[l])
#else
#define OB_WIDTH 1
typedef double ob_group;
typedef int ob_mask;
#define OB_GET(p) (*(p))
#define OB_PUT(p, v) (*(p) = (v))
#define OB_CHOOSE(m, a, b) OB_PICK(double, m, a, b)
#define OB_LANE_OF(v, l) (v)
#endif
#define OB_SIZE(v) OB_CHOOSE((v) < 0.0, -(v), v)
#define OB_SMALLER(a, b) OB_CHOOSE((a) < (b), a, b)

/* f, f' and f''/2 at tau, and the size of the terms of f. Sums over the poles are kept in registers, see OB_WIDE. */
OB_INLINE void ob_secular_sums(const int ob_width, const double *pole, const double *w, ptrdiff_t k,
                               const ob_group *from, const ob_group *tau, ob_group *f, ob_group *f1, ob_group *f2,
                               ob_group *size) {
#define OB_PART_OF(U, v) (*(U *)((double *)(v) + l))
#define OB_SUMS(T, U)                                                                                                  \
    for (int l = 0; l < OB_WIDTH; l += (int)(sizeof(T) / sizeof(double))) {                                            \
        const T base = OB_PART_OF(U, from), at = OB_PART_OF(U, tau);                                                   \
        T s1 = {0}, s2 = s1, s = s1 + 1.0, sizes = s;                                                                  \
        for (ptrdiff_t j = 0; j < k; ++j) {                                                                            \
            const T r = 1.0 / ((pole[j] - base) - at), t = w[j] * r, t1 = t * r;                                       \
            s += t;                                                                                                    \
            s1 += t1;                                                                                                  \
            s2 += t1 * r;                                                                                              \
            sizes += OB_ABS(T, t);                                                                                     \
        }                                                                                                              \
        OB_PART_OF(U, f) = s;                                                                                          \
        OB_PART_OF(U, f1) = s1;                                                                                        \
        OB_PART_OF(U, f2) = s2;                                                                                        \
        OB_PART_OF(U, size) = sizes;                                                                                   \
    }
    OB_AT_WIDTH(OB_SUMS)
#undef OB_SUMS
#undef OB_PART_OF
}

/* The root of c x^2 - a x + b on the side where it is b / a for small b, without cancellation. */
#define OB_QUADRATIC(x, a, b, c)                                                                                       \
    do {                                                                                                               \
        ob_group q = (a) * (a) - 4.0 * (b) * (c);                                                                      \
        for (int l = 0; l < OB_WIDTH; ++l)                                                                             \
            OB_LANE_OF(q, l) = sqrt(fabs(OB_LANE_OF(q, l)));                                                           \
        const ob_mask up = (a) > 0.0;                                                                                  \
        x = OB_CHOOSE(up, 2.0 * (b), (a) - q) / OB_CHOOSE(up, (a) + q, 2.0 * (c));                                     \
    } while (0)

/* Set the gap above each of the k poles: the last root is below pole_k + sum w, where a pole of weight 0 is added. */
OB_INLINE void ob_close_poles(double *pole, double *w, ptrdiff_t k, double total) {
    for (ptrdiff_t j = 0; j < OB_SPARE; ++j) {
        pole[k + j] = pole[k - 1] + 2.0 * (double)(j + 1) * total;
        w[k + j] = 0.0;
    }
}

/* All k roots, and 1 / f' there: an eigenvector's (v'u)^2. f is interpolated by c + s / (pole_i - t) + S /
 * (pole_i+1 - t) with the same f, f' and f'' (Gragg): convergence is cubic from either side, and bisection is used
 * where rounding errors lead out of the bracket. Poles and w are padded by ob_close_poles. If `growth` is not zero, the
 * iteration starts at the given roots for w / (1 + growth).
 */
OB_WIDE(void, ob_secular, (pole, w, k, growth, origin, tau, energy), const double *pole, const double *w, ptrdiff_t k,
        double growth, double *origin, double *tau, double *energy) {
    const ob_group zero = {0};
    for (ptrdiff_t i = 0; i < k; i += OB_WIDTH) {
        const ob_group low = OB_GET(pole + i), high = OB_GET(pole + i + 1), gap = high - low;
        ob_group f, f1, f2, size, from, x, flow;
        int warm = growth != 0.0, astray = 1;
        while (astray) {
            if (warm) {
                from = OB_GET(origin + i);
                x = OB_GET(tau + i) + growth * OB_GET(energy + i);
            } else { /* choose the half of the gap, and start at the root for constant terms of the other poles */
                const ob_group below = OB_GET(w + i), above = OB_GET(w + i + 1);
                from = low;
                x = 0.5 * gap;
                ob_secular_sums(ob_width, pole, w, k, &from, &x, &f, &f1, &f2, &size);
                ob_mask right = f < 0.0;
                for (int l = 0; l < OB_WIDTH; ++l)
                    if (i + l >= k - 1)
                        OB_LANE_OF(right, l) = 0; /* there is no pole above the last root */
                from = OB_CHOOSE(right, high, low);
                const ob_group c = f - 2.0 * (above - below) / gap, a = OB_CHOOSE(right, -gap, gap) * c + below + above;
                const ob_group b = OB_CHOOSE(right, -(above * gap), below * gap);
                OB_QUADRATIC(x, a, b, c);
            }
            ob_group lo = low - from, hi = high - from;
            x = OB_CHOOSE((x > lo) & (x < hi), x, 0.5 * (lo + hi));
            for (int iteration = 0; iteration < 100; ++iteration) {
                ob_secular_sums(ob_width, pole, w, k, &from, &x, &f, &f1, &f2, &size);
                const ob_group d1 = (low - from) - x, d2 = (high - from) - x, sum = d1 + d2, product = d1 * d2;
                const ob_group a = sum * f - product * f1, b = product * f, c = f - sum * f1 + product * f2;
                ob_group step;
                lo = OB_CHOOSE(f < 0.0, x, lo);
                hi = OB_CHOOSE(f > 0.0, x, hi);
                OB_QUADRATIC(step, a, b, c);
                const ob_group next = x + step;
                step = OB_CHOOSE((next > lo) & (next < hi), step, 0.5 * (lo + hi) - x);
                step = OB_CHOOSE(OB_SIZE(f) <= 4.0 * DBL_EPSILON * size, zero, step);
                x += step;
                flow = 1.0 / (f1 + 2.0 * f2 * step);
                /* a step this small leaves an error of the order of its cube, and of its square in f' */
                const ob_mask done = OB_SIZE(step) <= 2e-8 * OB_SMALLER(-d1, d2);
                int left = 0;
                for (int l = 0; l < OB_WIDTH; ++l)
                    left += i + l < k && !OB_LANE_OF(done, l);
                if (!left)
                    break;
            }
            const ob_mask far = OB_SIZE(x) > 0.75 * gap; /* near the other pole: measure the root from there */
            astray = 0;
            for (int l = 0; l < OB_WIDTH; ++l)
                astray |= warm && i + l < k - 1 && OB_LANE_OF(far, l);
            warm = 0;
        }
        OB_PUT(origin + i, from);
        OB_PUT(tau + i, x);
        OB_PUT(energy + i, flow);
    }
}

/* The vector v, with the signs of u, for which these roots are exact (Gu and Eisenstat 1994, after Loewner):
 * v_j^2 = prod_i (root_i - pole_j) / prod_{i != j} (pole_i - pole_j). It is used instead of u to make the eigenvectors
 * orthogonal. */
OB_WIDE(void, ob_loewner, (pole, u, k, origin, tau, v), const double *pole, const double *u, ptrdiff_t k,
        const double *origin, const double *tau, double *v) {
#define OB_PRODUCTS(T, U)                                                                                              \
    for (ptrdiff_t j = 0; j < k; j += (ptrdiff_t)(sizeof(T) / sizeof(double))) {                                       \
        const T own = *(const U *)(pole + j), one = (T){0} + 1.0;                                                      \
        T product = one;                                                                                               \
        for (ptrdiff_t i = 0; i < k; ++i) {                                                                            \
            const T gap = pole[i] - own;                                                                               \
            product *= ((origin[i] - own) + tau[i]) / OB_PICK(T, gap == 0.0, one, gap);                                \
        }                                                                                                              \
        const ptrdiff_t left = k - j < (ptrdiff_t)(sizeof(T) / sizeof(double)) ? k - j : sizeof(T) / sizeof(double);   \
        memcpy(v + j, &product, left * sizeof(double));                                                                \
    }
    OB_AT_WIDTH(OB_PRODUCTS)
#undef OB_PRODUCTS
    for (ptrdiff_t j = 0; j < k; ++j)
        v[j] = copysign(sqrt(fabs(v[j])), u[j]);
}

/* The unit eigenvector of one root, proportional to v / (pole - root) */
OB_CLONES static void ob_eigenvector(const double *restrict pole, const double *restrict v, ptrdiff_t k, double origin,
                                     double tau, double *restrict out) {
    for (ptrdiff_t j = 0; j < k; ++j)
        out[j] = v[j] / ((pole[j] - origin) - tau);
    const double length = sqrt(ob_dot(out, out, k));
    for (ptrdiff_t j = 0; j < k; ++j)
        out[j] /= length;
}

/* a, b = c a + s b, c b - s a */
OB_CLONES static void ob_rotate_pair(double *restrict a, double *restrict b, double c, double s, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        const double v = c * a[i] + s * b[i];
        b[i] = c * b[i] - s * a[i];
        a[i] = v;
    }
}

/* sum_ij K_ij x_ij^2 with the logarithmic means K_ij = (p_i - p_j) / (g_i - g_j), p = exp(g), q = sqrt(p), and
 * x = sum_b sign_b x_b x_b' over the first `positive` vectors (sign +) and the other ones (sign -), of `stride` each.
 * g, p and q are padded by OB_SPARE values, x_b by zeros. */
OB_WIDE(double, ob_mean_square, (g, p, q, x, vectors, positive, stride, n), const double *g, const double *p,
        const double *q, const double *x, ptrdiff_t vectors, ptrdiff_t positive, ptrdiff_t stride, ptrdiff_t n) {
    double twos[OB_WIDTH], ones[OB_WIDTH], total = 0.0;
#define OB_MEANS(T, U)                                                                                                 \
    for (int l = 0; l < OB_WIDTH; l += (int)(sizeof(T) / sizeof(double))) {                                            \
        T twice = {0}, once = {0};                                                                                     \
        for (ptrdiff_t j = 0; j < n; j += OB_WIDTH) {                                                                  \
            const T gj = *(const U *)(g + j + l), pj = *(const U *)(p + j + l), qj = *(const U *)(q + j + l);          \
            for (ptrdiff_t i = 0; i < n && i < j + OB_WIDTH; ++i) {                                                    \
                T entry = {0};                                                                                         \
                for (ptrdiff_t b = 0; b < vectors; ++b) {                                                              \
                    const T part = x[b * stride + i] * *(const U *)(x + b * stride + j + l);                           \
                    entry += b < positive ? part : -part;                                                              \
                }                                                                                                      \
                const T gap = g[i] - gj, h2 = 0.25 * gap * gap;                                                        \
                /* sinh(h) / h for h = gap / 2, where the difference would cancel */                                   \
                const T series = q[i] * qj * (1.0 + h2 * (1.0 / 6 + h2 * (1.0 / 120 + h2 * (1.0 / 5040))));            \
                const T ratio = (p[i] - pj) / OB_PICK(T, h2 < 1e-3, (T){0} + 1.0, gap);                                \
                const T term = OB_PICK(T, h2 < 1e-3, series, ratio) * (entry * entry);                                 \
                if (i < j)                                                                                             \
                    twice += term;                                                                                     \
                else                                                                                                   \
                    once += term;                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        *(U *)(twos + l) = twice;                                                                                      \
        *(U *)(ones + l) = once;                                                                                       \
    }
    OB_AT_WIDTH(OB_MEANS)
#undef OB_MEANS
    for (int l = 0; l < OB_WIDTH; ++l)
        total += 2.0 * twos[l] + ones[l];
    return total;
}

/* sum p u^2 */
OB_WIDE(double, ob_weighted_square, (p, u, n), const double *restrict p, const double *restrict u, ptrdiff_t n) {
    ob_lanes s = OB_ZERO;
#define OB_BODY(T, L, A) { const T v = L(u); A(s) += L(p) * v * v; }
    OB_REDUCE(n, OB_BODY);
#undef OB_BODY
    return OB_SUM8(s);
}

/* out = A z for the nonzeros of a sparse z, A of shape (n, n) */
static void ob_gather_dot(const double *a, const ptrdiff_t *index, const double *z, ptrdiff_t nonzeros, ptrdiff_t n,
                          double *restrict out) {
    for (ptrdiff_t i = 0; i < n; ++i) {
        double s = 0.0;
        for (ptrdiff_t k = 0; k < nonzeros; ++k)
            s += a[i * n + index[k]] * z[k];
        out[i] = s;
    }
}

#endif
