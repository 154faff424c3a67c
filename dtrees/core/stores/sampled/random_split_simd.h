/* The codes of 32 columns of a row side by side, for `_random_split.pyx`.

   Row i is at codes + width * (lower half of item[i]), as in _column_loader.pxd. All of it is
   integers and comparisons. */
#ifndef DTREES_RANDOM_SPLIT_SIMD_H
#define DTREES_RANDOM_SPLIT_SIMD_H

#include <stdint.h>

#include "data/cpu.h"

#define SLOTS 32
#define PIVOTS 16

/* Of a block of columns at one node. Codes less one: missing ones, which are 0, become 255. */
typedef struct {
    uint8_t least[SLOTS];        /* of the codes less one */
    uint8_t most[SLOTS];         /* of the codes */
    uint8_t greatest[SLOTS];     /* of the codes less one: 255 if one is missing */
    uint8_t at[SLOTS];           /* the last code of the left side, less one */
    uint8_t missing_left[SLOTS]; /* all bits or none */
    uint8_t left[SLOTS];         /* the greatest code of the left side */
    uint8_t right[SLOTS];        /* the least code of the right side, less one */
    uint64_t n[SLOTS];           /* of the left side: rows, or all sums, `PACKED` of _layout.pxd */
} SimdSplits;

#ifdef DTREES_X86

#define V __m256i
#define LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define STORE(p, x) _mm256_storeu_si256((__m256i *)(p), x)
#define SPLAT(c) _mm256_set1_epi8((char)(c))
#define ADD(x, y) _mm256_add_epi8(x, y)
#define SUB(x, y) _mm256_sub_epi8(x, y)
#define AND(x, y) _mm256_and_si256(x, y)
#define OR(x, y) _mm256_or_si256(x, y)
#define EQUAL(x, y) _mm256_cmpeq_epi8(x, y)
#define LESSER(x, y) _mm256_min_epu8(x, y)
#define GREATER(x, y) _mm256_max_epu8(x, y)

/* The range of the codes in every slot, and whether one is missing. */
WIDE static void simd_ranges(SimdSplits *x, const uint8_t *codes, int64_t width,
                                      const uint64_t *item, int64_t n) {
    V one = SPLAT(1), least = SPLAT(255), most = SPLAT(0), greatest = SPLAT(0);
    for (int64_t i = 0; i < n; i++) {
        V row = LOAD(codes + width * (int64_t)(uint32_t)item[i]);
        V less = SUB(row, one);
        least = LESSER(least, less);
        most = GREATER(most, row);
        greatest = GREATER(greatest, less);
    }
    STORE(x->least, least);
    STORE(x->most, most);
    STORE(x->greatest, greatest);
}

/* Pass over so few rows that 8 bits hold their sums. Those after `x` are constants: without
   `sides`, all sums are packed; without `any_missing` no missing code goes left; without `weighted`
   all rows are counted once. */
WIDE static inline __attribute__((always_inline)) void simd_some(
    SimdSplits *x, const uint8_t *codes, int64_t width, const uint64_t *item, int64_t n,
    uint32_t *sides, int any_missing, int weighted) {
    V one = SPLAT(1), zero = SPLAT(0), at = LOAD(x->at), missing_left = LOAD(x->missing_left);
    V left = LOAD(x->left), right = LOAD(x->right), rows = zero, weights = zero, targets = zero;
    uint8_t r[SLOTS], w[SLOTS], s[SLOTS];
    for (int64_t i = 0; i < n; i++) {
        uint8_t weight = (uint8_t)(item[i] >> 32);
        uint8_t target = (uint8_t)(weight * (uint8_t)(item[i] >> 48));
        V row = LOAD(codes + width * (int64_t)(uint32_t)item[i]);
        V less = SUB(row, one);
        V mask = EQUAL(LESSER(less, at), less);
        if (any_missing)
            mask = OR(mask, AND(EQUAL(row, zero), missing_left));
        rows = SUB(rows, mask);
        left = GREATER(left, AND(row, mask));
        right = LESSER(right, OR(less, mask));
        if (sides)
            sides[i] = (uint32_t)_mm256_movemask_epi8(mask);
        else
            targets = ADD(targets, AND(mask, SPLAT(target)));
        if (weighted)
            weights = ADD(weights, AND(mask, SPLAT(weight)));
    }
    STORE(x->left, left);
    STORE(x->right, right);
    STORE(r, rows);
    STORE(w, weighted ? weights : rows);
    STORE(s, targets);
    for (int j = 0; j < SLOTS; j++)
        x->n[j] += sides ? r[j] : (uint64_t)r[j] << 42 | (uint64_t)w[j] << 21 | s[j];
}

/* Which rows go left in every slot, and the codes beside the threshold.

   sides: a bit for each slot of each row, and x->n are rows. NULL: x->n are rows, weights and weights
   of class 1, and no row counts more than most_times, which is at most 255. */
WIDE static void simd_sides(SimdSplits *x, const uint8_t *codes, int64_t width,
                            const uint64_t *item, int64_t n, uint32_t *sides,
                            int64_t most_times) {
    int64_t chunk = sides ? 255 : 255 / most_times;
    V missing = LOAD(x->missing_left);
    int any_missing = !_mm256_testz_si256(missing, missing);
    STORE(x->left, SPLAT(0));
    STORE(x->right, SPLAT(255));
    for (int j = 0; j < SLOTS; j++)
        x->n[j] = 0;
    for (int64_t i = 0; i < n; i += chunk, item += chunk) {
        int64_t count = chunk < n - i ? chunk : n - i;
        if (sides)
            simd_some(x, codes, width, item, count, sides + i, 1, 0);
        else if (any_missing)
            simd_some(x, codes, width, item, count, NULL, 1, 1);
        else if (most_times > 1)
            simd_some(x, codes, width, item, count, NULL, 0, 1);
        else
            simd_some(x, codes, width, item, count, NULL, 0, 0);
    }
}

/* How many of 256 ascending numbers are at most another; the last ones are not counted whatever it
   is. pivot: each 16th. */
WIDE static uint32_t simd_upto(const double *value, const double *pivot, double at) {
    uint32_t blocks = 0, rest = 0;
    for (int j = 0; j < PIVOTS - 1; j++)
        blocks += pivot[j] <= at;
    value += PIVOTS * blocks;
    for (int j = 0; j < PIVOTS; j++)
        rest += value[j] <= at;
    return PIVOTS * blocks + rest;
}

#else

#define simd_ranges(...)
#define simd_sides(...)
#define simd_upto(...) 0

#endif

#endif
