/* Scores at the corners of intervals, for `_intervals.pyx`. */
#ifndef DTREES_INTERVALS_H
#define DTREES_INTERVALS_H

#include <math.h>
#include <stdint.h>

#include "data/cpu.h"

/* What the corners of the intervals of a column are scored by: sums of the node, targets of its
   rows for their weights, and what may be lost of a difference of products. */
typedef struct {
    double weight;
    double target;
    double lowest;
    double highest;
    double slack;
} CornerSums;

static inline double score_corner(const CornerSums *node, double w, double s) {
    double product = w * (node->weight - w);
    double D = fabs(node->weight * s - w * node->target) + node->slack;
    return product > 0 ? D * D / product : 0;
}

static inline double larger(double a, double b) { return a > b ? a : b; }

/* w, s : (n + 1,) sums up to each interval. ends : (n + 1,) scratch. */
static inline void score_corners_in(const CornerSums *node, const double *w, const double *s,
                                    int64_t n, double *ends, double *found) {
    double range = node->highest - node->lowest;
    double share = range > 0 ? 1 / range : 0;
    double lowest = node->lowest, highest = node->highest;
    for (int64_t i = 0; i <= n; i++)
        ends[i] = score_corner(node, w[i], s[i]);
    for (int64_t i = 0; i < n; i++) {
        double dw = w[i + 1] - w[i];
        double part = (s[i + 1] - s[i] - dw * lowest) * share; /* weight of the highest targets */
        part = part < 0 ? 0 : part;
        part = part > dw ? dw : part;
        double rest = dw - part;
        double corner = larger(score_corner(node, w[i] + part, s[i] + part * highest),
                               score_corner(node, w[i] + rest, s[i] + rest * lowest));
        found[i] = larger(corner, larger(ends[i], ends[i + 1]));
    }
}

static void score_corners_plain(const CornerSums *node, const double *w, const double *s,
                                int64_t n, double *ends, double *found) {
    score_corners_in(node, w, s, n, ends, found);
}

#ifdef DTREES_X86
WIDE static void score_corners_wide(const CornerSums *node, const double *w, const double *s,
                                    int64_t n, double *ends, double *found) {
    score_corners_in(node, w, s, n, ends, found);
}
#else
#define score_corners_wide score_corners_plain
#endif

#endif
