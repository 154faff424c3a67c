/* Scores at the ends of intervals, and bounds inside of them, for `_intervals.pyx`. */
#ifndef DTREES_INTERVALS_H
#define DTREES_INTERVALS_H

#include <math.h>
#include <stdint.h>

#include "data/cpu.h"

/* Sums of a node, targets of its rows for their weights, limits of a side, what may be lost of a
   difference of products, and what stands for a boundary that is not permitted. */
typedef struct {
    double n;
    double weight;
    double target;
    double lowest;
    double highest;
    double min_rows;
    double min_weight;
    double slack;
    double none;
} NodeSums;

static inline __attribute__((always_inline)) double larger(double a, double b) { return a > b ? a : b; }
static inline __attribute__((always_inline)) double smaller(double a, double b) { return a < b ? a : b; }

/* |D| at (w, s), at least: docs/algorithms/bounds.md, "Roundings". */
static inline __attribute__((always_inline)) double distance(const NodeSums *node, double w, double s) {
    return fabs(node->weight * s - w * node->target) + node->slack;
}

/* The highest D*D / product of two corners, with one division. */
static inline __attribute__((always_inline)) double higher_corner(double D, double product, double E, double other) {
    D = product > 0 ? D * D : 0;
    E = other > 0 ? E * E : 0;
    product = product > 0 ? product : 1;
    other = other > 0 ? other : 1;
    int first = D * other > E * product;
    D = first ? D : E;
    product = first ? product : other;
    return D / product;
}

/* A cut inside scores less than the corners of what its sums may be: all rows of the highest
   targets first, or of the lowest. */
static inline __attribute__((always_inline)) double bound_inside(const NodeSums *node, double w0, double s0, double w1, double s1,
                                  double ends) {
    double W = node->weight, range = node->highest - node->lowest;
    double share = range > 0 ? 1 / range : 0;
    double dw = w1 - w0;
    double part = (s1 - s0 - dw * node->lowest) * share; /* weight of the highest targets */
    part = smaller(larger(part, 0), dw);
    double rest = dw - part;
    double w = w0 + part, v = w0 + rest;
    double corner = higher_corner(distance(node, w, s0 + part * node->highest), w * (W - w),
                                  distance(node, v, s0 + rest * node->lowest), v * (W - v));
    return larger(corner, ends);
}

/* n, w, s : (count + 1,) sums up to each interval. behind : (count + 1,) weights of what is behind
   it, of integers: W may have more bits than a double. many : by interval, 1 where it has boundaries,
   else 0. at_end, inside : by interval; become larger, where a boundary is permitted. end :
   (count + 1,) scratch. */
static inline __attribute__((always_inline)) void score_intervals_in(
    const NodeSums *node, const double *restrict n, const double *restrict w,
    const double *restrict behind, const double *restrict s, const double *restrict many,
    int64_t count, double *restrict end, double *restrict at_end, double *restrict inside) {
    const NodeSums t = *node;
    for (int64_t i = 0; i <= count; i++) {
        double product = w[i] * behind[i];
        double D = distance(&t, w[i], s[i]);
        D = product > 0 ? D * D : 0;
        end[i] = D / (product > 0 ? product : 1);
    }
    for (int64_t i = 0; i < count; i++) {
        double bound = bound_inside(&t, w[i], s[i], w[i + 1], s[i + 1],
                                    larger(end[i], end[i + 1]));
        bound = n[i + 1] - n[i] > many[i] ? bound * (1 + 1e-9) : t.none;
        bound = n[i + 1] > t.min_rows ? bound : t.none;
        bound = t.n - n[i] > t.min_rows ? bound : t.none;
        bound = w[i + 1] >= t.min_weight ? bound : t.none;
        bound = behind[i] >= t.min_weight ? bound : t.none;
        inside[i] = larger(inside[i], bound);
        double left = w[i + 1], rest = behind[i + 1];
        double D = distance(&t, left, s[i + 1]);
        double score = D * D / (left * rest > 0 ? left * rest : 1);
        score = n[i + 1] >= t.min_rows ? score : t.none;
        score = t.n - n[i + 1] >= t.min_rows ? score : t.none;
        score = left >= t.min_weight ? score : t.none;
        score = rest >= t.min_weight ? score : t.none;
        at_end[i] = larger(at_end[i], score);
    }
}

#define SCORE_INTERVALS(name, target_of) \
    target_of static void name(const NodeSums *node, const double *n, const double *w, \
                               const double *behind, const double *s, const double *many, \
                               int64_t count, double *end, double *at_end, double *inside) { \
        score_intervals_in(node, n, w, behind, s, many, count, end, at_end, inside); \
    }

SCORE_INTERVALS(score_intervals_plain, )
#ifdef DTREES_X86
SCORE_INTERVALS(score_intervals_wide, WIDE)
#else
#define score_intervals_wide score_intervals_plain
#endif
#undef SCORE_INTERVALS

#endif
