/* The robust scale of a stream of numbers: in [lo, hi], ten mean deviations around the mean, a number is learned as it
 * is, and beyond as the nearest of these. Mean and deviation are those of what was learned, at the rate
 * max(1 / n, 1 %), so a single number, of any size, moves them by a tenth of a deviation, and a lasting change widens
 * the interval by nine percent a row.
 *
 * Until OB_FIRST numbers are known the interval is around their median, this number's included, in upper quartiles of
 * their deviations, and beyond it a number is learned as the median. Of fewer than three nothing is known: the interval
 * is the whole line.
 *
 * Where most numbers equal one of them, as zeros do among counts, they say nothing about the scale of the others:
 * deviations are those of `moves`, numbers that differ from the candidate of a majority vote (Boyer, Moore 1981), which
 * is a passing one if there is no majority. All but `first` and `usual` are distances from `origin`, the first number
 * or, if that was far from the others, one of these: what is learned does not depend on a constant added to all.
 */
#ifndef ONLINEBREGMAN_ROBUST_H
#define ONLINEBREGMAN_ROBUST_H

#include "vector.h"

enum { OB_FIRST = 20 };
#define OB_FAR 10.0 /* deviations */
#define OB_SLOWEST 0.01

typedef struct {
    double n, moves;        /* numbers so far, and those that moved */
    double origin;
    double mean, deviation; /* deviation 0: not known */
    double usual, votes;    /* what the majority may equal */
    double lo, hi;          /* the interval for the last number */
    double first[OB_FIRST]; /* moves */
} ob_robust;

/* Sort a few numbers and return their median, as a distance from `origin` */
static double ob_median(double *a, ptrdiff_t n, double origin) {
    for (ptrdiff_t i = 1; i < n; ++i)
        for (ptrdiff_t j = i; j > 0 && a[j] < a[j - 1]; --j) {
            const double larger = a[j - 1];
            a[j - 1] = a[j], a[j] = larger;
        }
    return (a[(n - 1) / 2] - origin) / 2 + (a[n / 2] - origin) / 2;
}

/* Mean, deviation and interval, and perhaps another origin, by the first n moves */
static void ob_robust_begin(ob_robust *s, ptrdiff_t n) {
    double a[OB_FIRST], far[OB_FIRST], half;
    const int usual = s->votes > s->n / 2;
    memcpy(a, s->first, sizeof(a));
    ob_median(a, n, 0.0);
    const double near = usual ? s->usual : a[(n - 1) / 2], mid = usual ? 0.0 : (a[n / 2] - near) / 2;
    for (ptrdiff_t i = 0; i < n; ++i)
        far[i] = fabs((s->first[i] - near) - mid);
    memcpy(a, far, sizeof(a));
    ob_median(a, n, 0.0);
    half = a[n == 5 ? 2 : 3 * (n - 1) / 4]; /* two of five may be far */
    for (ptrdiff_t i = 0; i < n && !(half > 0.0); ++i) /* ties */
        half = a[i];
    half *= OB_FAR + 1000.0 / (double)(n * n); /* few numbers may be close by chance */
    if (n < 3 || !(half > 0.0))
        return;
    if (!(fabs((s->origin - near) - mid) <= half))
        s->origin = near;
    s->mean = (near - s->origin) + mid;
    s->lo = s->mean - half, s->hi = s->mean + half, s->deviation = 0.0;
    for (ptrdiff_t i = 0; i < n; ++i)
        s->deviation += (far[i] < half ? far[i] : half) / (double)n;
}

/* Whether the interval is known, so that numbers may be learned at all */
OB_INLINE int ob_robust_known(const ob_robust *s) { return s->deviation > 0.0; }

/* What is learned of a number of which this is the distance from the origin */
OB_INLINE double ob_robust_clip(const ob_robust *s, double distance) {
    if (distance >= s->lo && distance <= s->hi)
        return distance;
    return s->moves <= OB_FIRST ? s->mean : distance < s->lo ? s->lo : s->hi;
}

/* The interval for the next number, once there are OB_FIRST */
OB_INLINE void ob_robust_look(ob_robust *s) {
    if (s->moves >= OB_FIRST && s->deviation > 0.0)
        s->lo = s->mean - OB_FAR * s->deviation, s->hi = s->mean + OB_FAR * s->deviation;
}

/* max(1 / n, 1 %): most numbers take no division */
OB_INLINE double ob_rate(double n) { return n < 1.0 / OB_SLOWEST ? fmax(OB_SLOWEST, 1.0 / n) : OB_SLOWEST; }

/* Count a number; returns what is learned of it, a distance from the origin. A new scale is all zeros. */
static double ob_robust_count(ob_robust *s, double y) {
    const int moved = !(s->votes > 0.0 && y == s->usual);
    if (s->n == 0.0)
        s->origin = y, s->lo = -HUGE_VAL, s->hi = HUGE_VAL;
    s->n += 1.0, s->moves += moved;
    if (moved && s->votes > 0.0)
        s->votes -= 1.0;
    else
        s->usual = y, s->votes += 1.0;
    if (s->moves <= OB_FIRST) {
        if (moved && s->moves >= 1.0) { /* not of a damaged file */
            s->first[(ptrdiff_t)s->moves - 1] = y;
            ob_robust_begin(s, (ptrdiff_t)s->moves);
        }
        return ob_robust_clip(s, y - s->origin);
    }
    ob_robust_look(s);
    const double learned = ob_robust_clip(s, y - s->origin), d = learned - s->mean;
    s->mean += ob_rate(s->n) * d;
    if (moved)
        s->deviation += ob_rate(s->moves) * (fabs(d) - s->deviation);
    return learned;
}

/* The same, returned as a number: the number itself if it is in the interval */
OB_INLINE double ob_robust_limit(ob_robust *s, double y) {
    const double distance = ob_robust_count(s, y);
    return distance == y - s->origin ? y : s->origin + distance;
}

/* The unit of steps on the loss of a quantile: three times the mean distance of targets from predictions on the side of
 * the steeper slope, where they may be dense. It is `most` while successive slopes are correlated, as predictions do
 * not keep up with the targets then, and for the median.
 */
typedef struct {
    double depth; /* mean of about twenty distances, in which each counts at most four of these means */
    double slope; /* the last one */
    double trend; /* products of successive slopes over about a hundred rows, less a fifth of their squares */
} ob_quantile;

static double ob_quantile_unit(ob_quantile *s, double slope, double distance, double most) {
    s->trend += slope * (s->slope - 0.2 * slope) - 0.01 * s->trend, s->slope = slope;
    if (fabs(slope) > 0.5 && distance > 0.0)
        s->depth += s->depth > 0.0 ? 0.05 * (fmin(distance, 4.0 * s->depth) - s->depth) : distance;
    s->depth = fmin(s->depth, most);
    return s->trend > 0.0 || !(s->depth > 0.0) ? most : fmin(3.0 * s->depth, most);
}

#endif
