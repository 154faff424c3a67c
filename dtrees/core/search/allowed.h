/* Which boundaries bounds of values allow, for `_allowed_intervals.pyx`. */
#ifndef DTREES_ALLOWED_H
#define DTREES_ALLOWED_H

#include <stdint.h>

#include "data/cpu.h"

/* Sums of a node; targets of its rows for their weights: the least, the greatest, and a number near
   their mean. Bounds of the values of a side; `low` and `high` say more where values have to rise or
   to fall. What may be lost of a target, and what stands for a boundary that is not permitted. */
typedef struct {
    double weight;
    double target;
    double lowest;
    double highest;
    double mean;
    double lower;
    double upper;
    double low_left, high_left;
    double low_right, high_right;
    double direction;
    double slack;
    double none;
} Allowed;

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS double greater_of(double a, double b) { return a > b ? a : b; }
ALWAYS double lesser_of(double a, double b) { return a < b ? a : b; }

/* What the sums of a side may be between two boundaries: four corners, and how far the targets
   move from the mean. */
typedef struct {
    double w[4], s[4];
    double away, up, down;      /* of the mean, at the first boundary, and from there */
    int has_away;
} Region;

ALWAYS Region region_of(const Allowed *node, double w0, double s0, double w1, double s1, double away,
                        int has_away) {
    double range = node->highest - node->lowest;
    double dw = w1 - w0;
    double part = (s1 - s0 - dw * node->lowest) * (range > 0 ? 1 / range : 0);
    part = lesser_of(greater_of(part, 0), dw);
    double rest = dw - part;
    double moved = s1 - s0 - node->mean * dw;
    Region found = {{w0, w1, w0 + part, w0 + rest},
                    {s0, s1, s0 + part * node->highest, s0 + rest * node->lowest},
                    s0 - node->mean * w0, 0.5 * (away + moved), 0.5 * (away - moved), has_away};
    return found;
}

/* The least of s - value * w, at least. */
ALWAYS double least_above(const Region *r, double mean, double value) {
    double found = r->s[0] - value * r->w[0];
    for (int k = 1; k < 4; k++) found = lesser_of(found, r->s[k] - value * r->w[k]);
    double tilt = mean - value;
    double by_mean = r->away - r->down + lesser_of(tilt * r->w[0], tilt * r->w[1]);
    return r->has_away ? greater_of(found, by_mean) : found;
}

/* The greatest, at most. */
ALWAYS double most_above(const Region *r, double mean, double value) {
    double found = r->s[0] - value * r->w[0];
    for (int k = 1; k < 4; k++) found = greater_of(found, r->s[k] - value * r->w[k]);
    double tilt = mean - value;
    double by_mean = r->away + r->up + greater_of(tilt * r->w[0], tilt * r->w[1]);
    return r->has_away ? lesser_of(found, by_mean) : found;
}

/* w, s : (count + 1,) sums up to each interval; behind, rest : of what is behind it. away : by
   interval, distances of targets from the mean; NULL: not known. at_end, inside : by interval;
   become `none` where no boundary is allowed. */
ALWAYS void leave_allowed_in(const Allowed *node, const double *restrict w, const double *restrict s,
                             const double *restrict behind, const double *restrict rest,
                             const double *restrict away, int64_t count, double *restrict at_end,
                             double *restrict inside) {
    const Allowed t = *node;
    for (int64_t i = 0; i < count; i++) {
        Region r = region_of(&t, w[i], s[i], w[i + 1], s[i + 1], away ? away[i] : 0, away != 0);
        double of_right = t.target - t.high_right * t.weight;
        int dead = least_above(&r, t.mean, t.high_left) > t.slack;
        dead |= most_above(&r, t.mean, t.low_left) < -t.slack;
        dead |= of_right - most_above(&r, t.mean, t.high_right) > t.slack;
        of_right = t.target - t.low_right * t.weight;
        dead |= of_right - least_above(&r, t.mean, t.low_right) < -t.slack;
        inside[i] = dead ? t.none : inside[i];
        double left = s[i + 1] / w[i + 1], right = rest[i + 1] / behind[i + 1];
        int allowed = (left >= t.lower) & (left <= t.upper) & (right >= t.lower)
                      & (right <= t.upper) & (t.direction * (right - left) >= 0);
        at_end[i] = allowed ? at_end[i] : t.none;
    }
}

#define LEAVE_ALLOWED(name, target_of) \
    target_of static void name(const Allowed *node, const double *w, const double *s, \
                               const double *behind, const double *rest, const double *away, \
                               int64_t count, double *at_end, double *inside) { \
        if (away) \
            leave_allowed_in(node, w, s, behind, rest, away, count, at_end, inside); \
        else \
            leave_allowed_in(node, w, s, behind, rest, 0, count, at_end, inside); \
    }

LEAVE_ALLOWED(leave_allowed_plain, )
#ifdef DTREES_X86
LEAVE_ALLOWED(leave_allowed_wide, WIDE)
#else
#define leave_allowed_wide leave_allowed_plain
#endif
#undef LEAVE_ALLOWED
#undef ALWAYS

#endif
