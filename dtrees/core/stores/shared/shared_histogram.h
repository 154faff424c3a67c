/* Rows that some members of a node have, to the histograms of these, for `_shared_histogram.pyx`.

   A cell holds the numbers of all members side by side, a multiple of four of them: whoever has the
   row, all of them are added to, and what a member lacks is a zero. */
#ifndef DTREES_COUNTING_H
#define DTREES_COUNTING_H

#include <stdint.h>

#include "data/cpu.h"

#ifdef DTREES_X86

#define BITS(i) 1ull << (i), 1ull << ((i) + 1), 1ull << ((i) + 2), 1ull << ((i) + 3)
static const uint64_t bit_of_member[64] __attribute__((aligned(32))) = {
    BITS(0), BITS(4), BITS(8), BITS(12), BITS(16), BITS(20), BITS(24), BITS(28),
    BITS(32), BITS(36), BITS(40), BITS(44), BITS(48), BITS(52), BITS(56), BITS(60)};
#undef BITS

/* Adds to four numbers what those members have that `has` says. */
WIDE static inline void add_to_members(int64_t *sums, __m256i has, __m256i adds) {
    __m256i sum = _mm256_loadu_si256((const __m256i *)sums);
    sum = _mm256_add_epi64(sum, _mm256_and_si256(has, adds));
    _mm256_storeu_si256((__m256i *)sums, sum);
}

/* rank : by code the number of its cell, NULL: the code itself. width : numbers of a word of a cell.
   added : by row of the node, all that it adds; NULL: a row and its target, two words of a cell. */
#define COUNT_WIDE(name, code_t) \
    WIDE static void name(int64_t *cells, int64_t width, const code_t *codes, \
                          const uint32_t *rank, const uint32_t *rows, const uint64_t *who, \
                          const int64_t *added, const int64_t *target, int64_t n) { \
        __m256i one = _mm256_set1_epi64x(1); \
        for (int64_t i = 0; i < n; i++) { \
            int64_t at = codes[rows[i]]; \
            at = (rank ? rank[at] : at) * width * (added ? 1 : 2); \
            __m256i mine = _mm256_set1_epi64x((int64_t)who[i]); \
            __m256i adds = _mm256_set1_epi64x(added ? added[i] : target[rows[i]]); \
            for (int64_t m = 0; m < width; m += 4) { \
                __m256i bit = _mm256_load_si256((const __m256i *)(bit_of_member + m)); \
                __m256i has = _mm256_cmpeq_epi64(_mm256_and_si256(mine, bit), bit); \
                if (added) { \
                    add_to_members(cells + at + m, has, adds); \
                } else { \
                    add_to_members(cells + at + m, has, one); \
                    add_to_members(cells + at + width + m, has, adds); \
                } \
            } \
        } \
    }

COUNT_WIDE(count_some_u8, uint8_t)
COUNT_WIDE(count_some_u16, uint16_t)
#undef COUNT_WIDE

#else

#define count_some_u8(...) ((void)0)
#define count_some_u16(...) ((void)0)

#endif
#endif
