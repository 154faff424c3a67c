/* Boundaries of a column by the squared errors of several outputs, for `_output_scan.pyx`.

   Sums of the outputs are vectors of doubles, four outputs in a register of 256 bits. T adds up what
   the rows of a side are beyond the means of the node:

   entries of rows         7        31        12        of 32 bits, or of 64
   T before them           0     y7 - mean   + y31 - mean
   T*T >= reach * w * rest ?     four boundaries in one comparison

   Doubles are rounded, so a boundary is kept unless it cannot be the best one: between `lower` and
   `upper` is its score. Which of those that are kept is the best is told by integers. */
#ifndef DTREES_OUTPUTS_H
#define DTREES_OUTPUTS_H

#include <stdint.h>

#include "data/cpu.h"

#define MOST_LANES 512   /* outputs; a multiple of four */
#define MOST_KEPT 32     /* boundaries that may be the best one */
#define AHEAD 16         /* entries by which rows are asked for before they are read */
#define SHARE 0x1p-20    /* of a score, that roundings may cost */

typedef struct {
    int lanes;             /* outputs, and zeros up to a multiple of four */
    double W, w;           /* weight of the node, and of the side before the first entry */
    double lost;           /* what roundings may cost T*T, beside a share of it */
    double reach;          /* what a score has to reach, divided by W*W */
    const double *numbers; /* by row, (lanes,) */
    const int64_t *weight; /* by row; NULL: one each */
    const double *mean;    /* of the node, (lanes,) */
    double sums[MOST_LANES]; /* T */
    int64_t at[MOST_KEPT]; /* entries before which boundaries are, and the most they may score */
    double upper[MOST_KEPT];
    int n_kept;            /* -1: there are too many */
} OutputScan;

#ifdef DTREES_X86

/* An entry, of 64 bits if `wide`, a constant. */
static inline uint64_t entry_at(const void *e, int64_t i, int wide) {
    return wide ? ((const uint64_t *)e)[i] : ((const uint32_t *)e)[i];
}

/* Move a row to the side; returns what it weighs. */
WIDE static inline double move_row(const OutputScan *t, int64_t row, const __m256d *mean,
                                   __m256d *sums, int K, int weighted) {
    const double *own = t->numbers + row * 4 * K;
    double weight = weighted ? (double)t->weight[row] : 1.0;
    for (int k = 0; k < K; k++) {
        __m256d usual = weighted ? _mm256_mul_pd(mean[k], _mm256_set1_pd(weight)) : mean[k];
        sums[k] = _mm256_add_pd(sums[k], _mm256_sub_pd(_mm256_loadu_pd(own + 4 * k), usual));
    }
    return weight;
}

/* Keep a boundary before entry i, and forget those that it beats. */
static void keep_boundary(OutputScan *t, int64_t i, double squares, double shape) {
    double upper = (squares * (1 + SHARE) + t->lost) / shape;
    double lower = (squares * (1 - SHARE) - t->lost) / shape;
    if (t->n_kept < 0) return;
    if (lower > t->reach) {
        int n = 0;
        t->reach = lower;
        for (int k = 0; k < t->n_kept; k++) {
            t->at[n] = t->at[k];
            t->upper[n] = t->upper[k];
            n += t->upper[k] >= lower;
        }
        t->n_kept = n;
    }
    if (t->n_kept == MOST_KEPT) {
        t->n_kept = -1;
        return;
    }
    t->at[t->n_kept] = i;
    t->upper[t->n_kept++] = upper;
}

/* Look at the boundaries before e[first..stop), first > 0. K : registers of lanes; it, `weighted`
   and `wide` are constants where this is inlined, as a rule. */
WIDE static inline void look_at_lanes(OutputScan *t, const void *e, int64_t first, int64_t stop,
                                      int K, int weighted, int wide) {
    __m256d sums[MOST_LANES / 4], mean[MOST_LANES / 4];
    uint64_t mask_of_row = wide ? 0xFFFFFFFF : 0xFFFF;
    double w = t->w;
    for (int k = 0; k < K; k++) {
        sums[k] = _mm256_loadu_pd(t->sums + 4 * k);
        mean[k] = _mm256_loadu_pd(t->mean + 4 * k);
    }
    for (int64_t i = 0; i < first; i++)
        w += move_row(t, entry_at(e, i, wide) & mask_of_row, mean, sums, K, weighted);
    for (int64_t i = first; i < stop; i += 4) {
        __m256d squares[4];
        double left[4];
        for (int j = 0; j < 4; j++) {
            int64_t at = i + j < stop ? i + j : stop - 1;
            squares[j] = _mm256_mul_pd(sums[0], sums[0]);
            for (int k = 1; k < K; k++)
                squares[j] = _mm256_add_pd(squares[j], _mm256_mul_pd(sums[k], sums[k]));
            left[j] = w;
            if (at + AHEAD < stop) {
                uint64_t next = entry_at(e, at + AHEAD, wide) & mask_of_row;
                __builtin_prefetch(t->numbers + next * 4 * K);
                __builtin_prefetch(t->numbers + next * 4 * K + 8);
            }
            w += move_row(t, entry_at(e, at, wide) & mask_of_row, mean, sums, K, weighted);
        }
        __m256d ab = _mm256_hadd_pd(squares[0], squares[1]);
        __m256d cd = _mm256_hadd_pd(squares[2], squares[3]);
        __m256d all = _mm256_add_pd(_mm256_permute2f128_pd(ab, cd, 0x21),
                                    _mm256_blend_pd(ab, cd, 0xC));
        __m256d of_left = _mm256_setr_pd(left[0], left[1], left[2], left[3]);
        __m256d shape = _mm256_mul_pd(of_left, _mm256_sub_pd(_mm256_set1_pd(t->W), of_left));
        __m256d most = _mm256_add_pd(_mm256_mul_pd(all, _mm256_set1_pd(1 + SHARE)),
                                     _mm256_set1_pd(t->lost));
        int mask = _mm256_movemask_pd(_mm256_cmp_pd(
            most, _mm256_mul_pd(_mm256_set1_pd(t->reach), shape), _CMP_GE_OQ));
        if (mask) {
            double found[4], shapes[4];
            _mm256_storeu_pd(found, all);
            _mm256_storeu_pd(shapes, shape);
            for (int j = 0; j < 4 && i + j < stop; j++)
                if (mask >> j & 1
                    && (entry_at(e, i + j, wide) ^ entry_at(e, i + j - 1, wide)) > mask_of_row
                    && found[j] * (1 + SHARE) + t->lost >= t->reach * shapes[j])
                    keep_boundary(t, i + j, found[j], shapes[j]);
        }
    }
}

WIDE static inline void look_at_rows(OutputScan *t, const void *e, int64_t first, int64_t stop,
                                     int weighted, int wide) {
    int K = t->lanes / 4;
    if (K == 1)
        look_at_lanes(t, e, first, stop, 1, weighted, wide);
    else if (K == 2)
        look_at_lanes(t, e, first, stop, 2, weighted, wide);
    else if (K == 3)
        look_at_lanes(t, e, first, stop, 3, weighted, wide);
    else
        look_at_lanes(t, e, first, stop, K, weighted, wide);
}

WIDE static void look_at_outputs(OutputScan *t, const void *e, int wide, int64_t first,
                                 int64_t stop) {
    if (t->weight)
        wide ? look_at_rows(t, e, first, stop, 1, 1) : look_at_rows(t, e, first, stop, 1, 0);
    else
        wide ? look_at_rows(t, e, first, stop, 0, 1) : look_at_rows(t, e, first, stop, 0, 0);
}

#else

#define look_at_outputs(...) 0

#endif
#endif
