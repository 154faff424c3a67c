/* Boundaries of an ordered column of gradients, scored side by side, for `_gradient_scan.pyx`.

   A cell is two sums, rows << shift | hessian and gradient:

       cells            2|8,  -3    0|0, 0    1|4, 5      shift = 8
       sums up to each  2|8,  -3    2|8, -3   3|12, 2
       boundaries       where both sides have enough rows and hessian: a range, as both grow

   Each score is rounded as `gradient_score` rounds it, on every machine. */
#ifndef DTREES_GRADIENTS_H
#define DTREES_GRADIENTS_H

#include <stdint.h>
#include <string.h>

#include "data/cpu.h"

#define CODES_AT_ONCE 256
#define LANES_OF_SCORES 4

/* Sums of a node, and those that a left side has at least and at most. */
typedef struct {
    double weight, target, l2;
    int shift;
    uint64_t min_rows, max_rows;
    int64_t min_weight, max_weight;
} SidesOfNode;

static inline int64_t weight_of_sum(const SidesOfNode *node, int64_t sum) {
    return sum & (((int64_t)1 << node->shift) - 1);
}

/* How many of n sums have fewer rows: those below `rows << shift`. */
static inline int64_t count_below(const int64_t *sums, int64_t n, uint64_t least) {
    int64_t first = 0;
    while (n > 0) {
        int64_t half = n / 2;
        int below = (uint64_t)sums[2 * (first + half)] < least;
        first = below ? first + half + 1 : first;
        n = below ? n - half - 1 : half;
    }
    return first;
}

/* The sums that may be a left side: from `first` up to the end, which is returned. */
static inline int64_t permitted_sums(const SidesOfNode *node, const int64_t *sums, int64_t n,
                                     int64_t *first) {
    int64_t begin = count_below(sums, n, node->min_rows << node->shift);
    int64_t end = count_below(sums, n, (node->max_rows + 1) << node->shift);
    while (begin < end && weight_of_sum(node, sums[2 * begin]) < node->min_weight)
        begin++;
    while (begin < end && weight_of_sum(node, sums[2 * end - 2]) > node->max_weight)
        end--;
    *first = begin;
    return end;
}

/* Sums up to each of n codes, (n, 2). before : those before the first, which become those behind
   the last. */
static void add_up_plain(const int64_t *cells, int64_t n, int64_t *before, int64_t *sums) {
    for (int64_t i = 0; i < n; i++) {
        before[0] = (int64_t)((uint64_t)before[0] + (uint64_t)cells[2 * i]); /* no sign */
        before[1] += cells[2 * i + 1];
        sums[2 * i] = before[0];
        sums[2 * i + 1] = before[1];
    }
}

/* The first of n boundaries with the highest score above *best, which becomes that score; else -1.
   sums : with room for LANES_OF_SCORES more. */
static int64_t best_boundary_plain(const SidesOfNode *node, int64_t *sums, int64_t n,
                                   double *best) {
    const uint64_t mask = ((uint64_t)1 << node->shift) - 1;
    int64_t found = -1;
    double top = *best;
    for (int64_t i = 0; i < n; i++) {
        double w = (double)((uint64_t)sums[2 * i] & mask);
        double s = (double)sums[2 * i + 1];
        double other = node->target - s;
        double rest = (node->weight - w) + node->l2;
        w += node->l2;
        double score = (s * s * rest + other * other * w) / (w * rest);
        if (score > top) {
            top = score;
            found = i;
        }
    }
    *best = top;
    return found;
}

#ifdef DTREES_X86
WIDE static void add_up_wide(const int64_t *cells, int64_t n, int64_t *before, int64_t *sums) {
    __m128i sum = _mm_loadu_si128((const __m128i *)before);
    for (int64_t i = 0; i < n; i++) {
        sum = _mm_add_epi64(sum, _mm_loadu_si128((const __m128i *)(cells + 2 * i)));
        _mm_storeu_si128((__m128i *)(sums + 2 * i), sum);
    }
    _mm_storeu_si128((__m128i *)before, sum);
}

/* Integers below 2**52, and any integers, rounded once. */
WIDE static inline __m256d doubles_of_small(__m256i x) {
    __m256i two_52 = _mm256_set1_epi64x(0x4330000000000000);
    return _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(x, two_52)), _mm256_set1_pd(0x1p52));
}

WIDE static inline __m256d doubles_of_any(__m256i x) {
    __m256i two_52 = _mm256_set1_epi64x(0x4330000000000000);
    __m256i two_84 = _mm256_set1_epi64x(0x4530000080000000); /* and 2**63 */
    __m256i upper = _mm256_xor_si256(_mm256_srli_epi64(x, 32), two_84);
    __m256i lower = _mm256_blend_epi32(x, two_52, 0xAA);
    __m256d added = _mm256_set1_pd(0x1p84 + 0x1p63 + 0x1p52);
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(upper), added),
                         _mm256_castsi256_pd(lower));
}

/* Scores of the boundaries 0, 2, 1, 3. */
WIDE static inline __m256d scores_of_four(const SidesOfNode *node, const int64_t *sums) {
    __m256i a = _mm256_loadu_si256((const __m256i *)sums);
    __m256i b = _mm256_loadu_si256((const __m256i *)(sums + 4));
    __m256i mask = _mm256_set1_epi64x(((int64_t)1 << node->shift) - 1);
    __m256d l2 = _mm256_set1_pd(node->l2);
    __m256d w = doubles_of_small(_mm256_and_si256(_mm256_unpacklo_epi64(a, b), mask));
    __m256d s = doubles_of_any(_mm256_unpackhi_epi64(a, b));
    __m256d other = _mm256_sub_pd(_mm256_set1_pd(node->target), s);
    __m256d rest = _mm256_add_pd(_mm256_sub_pd(_mm256_set1_pd(node->weight), w), l2);
    w = _mm256_add_pd(w, l2);
    s = _mm256_mul_pd(_mm256_mul_pd(s, s), rest);
    other = _mm256_mul_pd(_mm256_mul_pd(other, other), w);
    return _mm256_div_pd(_mm256_add_pd(s, other), _mm256_mul_pd(w, rest));
}

WIDE static int64_t best_boundary_wide(const SidesOfNode *node, int64_t *sums, int64_t n,
                                       double *best) {
    static const int64_t order[4] = {0, 2, 1, 3};
    double score[CODES_AT_ONCE];
    __m256d top = _mm256_set1_pd(*best);
    for (int64_t i = n; i % 4 != 0; i++) /* four at a time, the last one again */
        memcpy(sums + 2 * i, sums + 2 * n - 2, 16);
    for (int64_t i = 0; i < n; i += 4) {
        __m256d four = scores_of_four(node, sums + 2 * i);
        top = _mm256_max_pd(four, top); /* of no number, top */
        _mm256_storeu_pd(score + i, four);
    }
    double highest[4];
    _mm256_storeu_pd(highest, top);
    for (int j = 1; j < 4; j++)
        highest[0] = highest[j] > highest[0] ? highest[j] : highest[0];
    if (!(highest[0] > *best))
        return -1;
    *best = highest[0];
    for (int64_t i = 0; i < n; i += 4)
        for (int j = 0; j < 4; j++)
            if (score[i + order[j]] == highest[0])
                return i + j;
    return -1;
}
#else
#define add_up_wide add_up_plain
#define best_boundary_wide best_boundary_plain
#endif

#endif
