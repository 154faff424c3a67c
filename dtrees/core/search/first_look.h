/* Squared errors in floats, of rows that weigh one each: which columns are worth an exact look.

   Targets less their mean add up to p on the left of a boundary. With k of n rows there, it gains
   p * p / (k * (n - k)), but for a factor; its root is compared:

   rows along a column        4     0     7     2
   distances from the mean  1.5  -0.5  -2.0   1.0
   p                        1.5   1.0  -1.0
   |p| * shape[k]           .87   .50   .58

   A column whose best one is less than that of another one by more than roundings may cost cannot
   win. */
#ifndef DTREES_FIRST_LOOK_H
#define DTREES_FIRST_LOOK_H

#include <math.h>
#include <stdint.h>

#include "data/cpu.h"

#define LOST_IN_FLOATS 0x1p-23 /* twice what a rounding may cost */
#define LOST_IN_DOUBLES 0x1p-48

typedef struct {
    double all;   /* sum of all distances from the mean, */
    double large; /* and of all targets, whose roundings the exact scores have */
    double widest; /* greatest shape: of one row on a side */
} Distances;

/* Fills away[row] for n rows. */
static inline Distances distances(const int64_t *target, const uint32_t *rows, int64_t n,
                                  float *away) {
    int64_t first = target[rows[0]], sum = 0;
    double all = 0, large = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += target[rows[i]]; /* at most 2**62 */
        large += fabs((double)target[rows[i]]);
    }
    double mean = (double)((__int128)sum - (__int128)n * first) / (double)n; /* from `first` */
    for (int64_t i = 0; i < n; i++) {
        double d = (double)(target[rows[i]] - first) - mean;
        away[rows[i]] = (float)d;
        all += fabs(d);
    }
    return (Distances){all, large, 1 / sqrt((double)(n - 1))};
}

/* What the root of a gain may be off by. A distance is rounded, and three times what eight rows add
   up to; then the sums of all eights before, none of which is larger than `most`. */
static inline float lost_in(const Distances *d, int64_t n, float most) {
    double floats = 8 * d->all + (double)(n / 8 + 8) * (double)most;
    return (float)((floats * LOST_IN_FLOATS + d->large * LOST_IN_DOUBLES) * d->widest);
}

#ifdef DTREES_X86

/* shape[k] = 1 / sqrt(k * (n - k)) for 0 < k < n, and -1 where fewer than `least` rows are on a
   side. */
WIDE static void fill_shape(int64_t n, int64_t least, float *shape) {
    float all = (float)n;
    for (int64_t k = 1; k < n; k++) shape[k] = 1 / sqrtf((float)k * (all - (float)k));
    for (int64_t k = 1; k < n && k < least; k++) shape[k] = shape[n - k] = -1;
}

WIDE static inline float largest_of(__m256 x) {
    x = _mm256_max_ps(x, _mm256_permute2f128_ps(x, x, 1));
    x = _mm256_max_ps(x, _mm256_shuffle_ps(x, x, 0x4E));
    x = _mm256_max_ps(x, _mm256_shuffle_ps(x, x, 0xB1));
    return _mm256_cvtss_f32(x);
}

/* The best boundary of a column with n entries; below 0: there is none. most : gets the greatest
   sum. */
WIDE static float best_of_column(const uint32_t *e, int64_t n, const float *away,
                                 const float *shape, float *most) {
    __m256 none = _mm256_set1_ps(-1), best = none, before = _mm256_setzero_ps(), large = before;
    __m256 sign = _mm256_set1_ps(-0.0f);
    int64_t i = 0;
    for (; i + 8 < n; i += 8) {
        __m256 x = _mm256_set_ps(away[e[i + 7] & 0xFFFF], away[e[i + 6] & 0xFFFF],
                                 away[e[i + 5] & 0xFFFF], away[e[i + 4] & 0xFFFF],
                                 away[e[i + 3] & 0xFFFF], away[e[i + 2] & 0xFFFF],
                                 away[e[i + 1] & 0xFFFF], away[e[i] & 0xFFFF]);
        __m256i here = _mm256_loadu_si256((const __m256i *)(e + i));
        __m256i next = _mm256_loadu_si256((const __m256i *)(e + i + 1));
        __m256i same = _mm256_cmpeq_epi32(_mm256_srli_epi32(_mm256_xor_si256(here, next), 16),
                                          _mm256_setzero_si256());
        /* sums up to each of the eight: in both halves, then in all */
        x = _mm256_add_ps(x, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(x), 4)));
        x = _mm256_add_ps(x, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(x), 8)));
        __m256 low = _mm256_permute2f128_ps(x, x, 0x08);
        x = _mm256_add_ps(x, _mm256_shuffle_ps(low, low, 0xFF));
        __m256 high = _mm256_permute2f128_ps(x, x, 0x11);
        __m256 sum = _mm256_add_ps(x, before);
        before = _mm256_add_ps(before, _mm256_shuffle_ps(high, high, 0xFF));
        sum = _mm256_andnot_ps(sign, sum);
        large = _mm256_max_ps(large, sum);
        __m256 at = _mm256_loadu_ps(shape + i + 1);
        __m256 forbidden = _mm256_or_ps(_mm256_castsi256_ps(same), at); /* by its sign */
        sum = _mm256_mul_ps(sum, at);
        best = _mm256_max_ps(best, _mm256_blendv_ps(sum, none, forbidden));
    }
    float sum = _mm256_cvtss_f32(before), rest = -1;
    *most = largest_of(large);
    for (; i < n - 1; i++) {
        sum += away[e[i] & 0xFFFF];
        float x = fabsf(sum);
        *most = x > *most ? x : *most;
        x *= shape[i + 1];
        rest = x > rest && shape[i + 1] > 0 && (e[i] ^ e[i + 1]) >> 16 ? x : rest;
    }
    float x = largest_of(best);
    return x > rest ? x : rest;
}

#else

#define fill_shape(...)
#define best_of_column(...) 0

#endif
#endif
