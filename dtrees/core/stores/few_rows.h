/* Columns of a node of at most 16 rows, each of them in two integers, for `_few_rows.pyx`.

   Rows of the node have numbers 0 .. 15. A digit of four bits for each, the lowest one first:

   values of rows 0 .. 3    7.5  2.0  9.1  2.0
   order                      1    3    0    2     row numbers, by ascending value
   rank                       0    0    1    2     equal values are equal ranks

   Both go to a child by `pext`, which puts the digits of its rows side by side. Squared errors are
   compared for eight columns at a time, in floats, which tell the columns that are worth an exact
   look. */
#ifndef DTREES_FEW_ROWS_H
#define DTREES_FEW_ROWS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "data/cpu.h"

#define DIGITS 16 /* of four bits, in an integer: rows of a node, at most */
#define LOST_IN_FLOATS 0x1p-23 /* twice what a rounding may cost */
#define LOST_IN_DOUBLES 0x1p-48

typedef struct {
    uint64_t *order, *rank; /* by column; some more are constant, up to a multiple of eight */
    int32_t *column;
    int64_t n; /* columns */
} FewColumns;

/* The first n digits. */
static inline uint64_t first_digits(int64_t n) { return n >= DIGITS ? ~0ull : (1ull << 4 * n) - 1; }

/* Some columns are constant, up to a multiple of eight. */
static inline void fill_up(FewColumns *c) {
    for (int64_t i = c->n; i % 8 != 0; i++) c->order[i] = c->rank[i] = 0;
}

#ifdef DTREES_X86

#define WIDE_BITS __attribute__((target("avx2,bmi2")))

/* Of eight columns, the best score of a boundary, as the root of what it gains; below 0: none.

   away : of rows from the mean target. shape[k]: of k rows on the left, 1 / sqrt(k * (n - k)); below 0
   where that is not permitted. */
WIDE_BITS static inline __m256 best_of_eight(const uint64_t *order, const uint64_t *rank, int64_t n,
                                             const float *away, const float *shape) {
    __m256 low = _mm256_loadu_ps(away), high = _mm256_loadu_ps(away + 8);
    __m256 none = _mm256_set1_ps(-1), sum = _mm256_setzero_ps(), best = none;
    __m256 sign = _mm256_set1_ps(-0.0f);
    __m256i four[2], changes[2];
    for (int k = 0; k < 2; k++) {
        __m256i r = _mm256_loadu_si256((const __m256i *)(rank + 4 * k));
        four[k] = _mm256_loadu_si256((const __m256i *)(order + 4 * k));
        r = _mm256_xor_si256(r, _mm256_srli_epi64(r, 4));
        r = _mm256_or_si256(r, _mm256_srli_epi64(r, 1));
        changes[k] = _mm256_or_si256(r, _mm256_srli_epi64(r, 2)); /* the lowest bit of a digit */
    }
    for (int64_t half = 0; 8 * half < n - 1; half++) {
        __m256 a = _mm256_castsi256_ps(four[0]), b = _mm256_castsi256_ps(four[1]);
        __m256 c = _mm256_castsi256_ps(changes[0]), d = _mm256_castsi256_ps(changes[1]);
        __m256i rows = _mm256_castps_si256(half ? _mm256_shuffle_ps(a, b, 0xDD)
                                                : _mm256_shuffle_ps(a, b, 0x88));
        __m256i change = _mm256_castps_si256(half ? _mm256_shuffle_ps(c, d, 0xDD)
                                                  : _mm256_shuffle_ps(c, d, 0x88));
        int64_t end = n - 1 - 8 * half < 8 ? n - 1 - 8 * half : 8;
        for (int64_t i = 0; i < end; i++) {
            __m256 x = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, rows),
                                        _mm256_permutevar8x32_ps(high, rows),
                                        _mm256_castsi256_ps(_mm256_slli_epi32(rows, 28)));
            sum = _mm256_add_ps(sum, x);
            x = _mm256_mul_ps(_mm256_andnot_ps(sign, sum), _mm256_set1_ps(shape[8 * half + i + 1]));
            x = _mm256_blendv_ps(none, x, _mm256_castsi256_ps(_mm256_slli_epi32(change, 31)));
            best = _mm256_max_ps(best, x);
            rows = _mm256_srli_epi32(rows, 4);
            change = _mm256_srli_epi32(change, 4);
        }
    }
    /* lanes in the order of the columns */
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(best), 0xD8));
}

/* Fills away[row] with the distances from the mean target, for the n rows of a column. Returns what
   the root of a gain may be off by: a distance is rounded, and so are 15 sums and two products.
   Exact scores have the roundings of the targets. */
static inline float distances(const int64_t *target, uint64_t order, int64_t n, float *away) {
    int64_t first = target[order & 15], sum = 0;
    double all = 0, large = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t y = target[order >> 4 * i & 15];
        sum += y; /* at most 2**62 */
        large += fabs((double)y);
    }
    double mean = (double)((__int128)sum - (__int128)n * first) / (double)n; /* from `first` */
    for (int64_t i = 0; i < n; i++) {
        int64_t row = order >> 4 * i & 15;
        double d = (double)(target[row] - first) - mean;
        away[row] = (float)d;
        all += fabs(d);
    }
    return (float)((18 * all * LOST_IN_FLOATS + large * LOST_IN_DOUBLES) / sqrt((double)(n - 1)));
}

WIDE static inline float largest_of(__m256 x) {
    x = _mm256_max_ps(x, _mm256_permute2f128_ps(x, x, 1));
    x = _mm256_max_ps(x, _mm256_shuffle_ps(x, x, 0x4E));
    x = _mm256_max_ps(x, _mm256_shuffle_ps(x, x, 0xB1));
    return _mm256_cvtss_f32(x);
}

/* A bit for each column that may have the best boundary of a node of n rows; eight columns are a
   byte. best : scratch, by column. */
WIDE_BITS static void columns_in_reach(const FewColumns *c, int64_t n, const int64_t *target,
                                      const float *shape, float *best, uint8_t *reaching) {
    float away[DIGITS];
    __m256 most = _mm256_set1_ps(-1);
    memset(away, 0, sizeof(away));
    float lost = distances(target, c->order[0], n, away);
    for (int64_t i = 0; i < c->n; i += 8) {
        __m256 x = best_of_eight(c->order + i, c->rank + i, n, away, shape);
        _mm256_storeu_ps(best + i, x);
        most = _mm256_max_ps(most, x);
    }
    float reach = largest_of(most) - 2 * lost;
    __m256 least = _mm256_set1_ps(reach > 0 ? reach : 0);
    for (int64_t i = 0; i < c->n; i += 8)
        reaching[i / 8] = (uint8_t)_mm256_movemask_ps(
            _mm256_cmp_ps(_mm256_loadu_ps(best + i), least, _CMP_GE_OQ));
}

/* A column in a child: as the next one, if it varies there. */
WIDE_BITS static inline void move_column(FewColumns *to, uint64_t order, uint64_t rank,
                                         int32_t column, uint64_t digits_of_child, int64_t n) {
    uint64_t ranks = _pext_u64(rank, digits_of_child);
    to->order[to->n] = _pext_u64(order, digits_of_child);
    to->rank[to->n] = ranks;
    to->column[to->n] = column;
    to->n += (ranks & 15) != ranks >> 4 * (n - 1);
}

/* Columns of a node of n rows to its children, of which `left` has the first n_left rows of `order`.
   NULL: a leaf, which needs none. */
WIDE_BITS static void part_columns(const FewColumns *c, int64_t n, uint64_t order, int64_t n_left,
                                   FewColumns *left, FewColumns *right) {
    uint8_t side[DIGITS];
    uint64_t masks[4];
    memset(side, 0, sizeof(side));
    for (int64_t i = 0; i < n_left; i++) side[order >> 4 * i & 15] = 15;
    __m256i of_row = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)side));
    __m256i low = _mm256_set1_epi8(15);
    uint64_t all = first_digits(n);
    for (int64_t i = 0; i < c->n; i += 4) {
        __m256i rows = _mm256_loadu_si256((const __m256i *)(c->order + i));
        __m256i even = _mm256_shuffle_epi8(of_row, _mm256_and_si256(rows, low));
        __m256i odd = _mm256_shuffle_epi8(of_row,
                                          _mm256_and_si256(_mm256_srli_epi64(rows, 4), low));
        _mm256_storeu_si256((__m256i *)masks, _mm256_or_si256(even, _mm256_slli_epi64(odd, 4)));
        for (int64_t k = i; k < i + 4 && k < c->n; k++) {
            if (left != NULL)
                move_column(left, c->order[k], c->rank[k], c->column[k], masks[k - i] & all,
                            n_left);
            if (right != NULL)
                move_column(right, c->order[k], c->rank[k], c->column[k], ~masks[k - i] & all,
                            n - n_left);
        }
    }
    if (left != NULL) fill_up(left);
    if (right != NULL) fill_up(right);
}

#else

#define columns_in_reach(...)
#define part_columns(...)

#endif
#endif
