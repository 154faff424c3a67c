/* Boundaries of a column between rows of two classes, 16 entries at a time, for `_two_class_scan.pyx`.

   Entries are of 32 bits, and rows from `ones` on are those of class 1:

   rows of 16 entries     7 31 12 40 41 9 ...          ones = 30
   classes                0  1  0  1  1 0 ...          a bit each
   boundaries             .  x  x  x  .  x             where neighbours differ, if ranks all do

   Stretches in which no boundary can reach the best score are passed over, as in `_number_scan`. Of
   those that may reach the best entropy, only those are returned that do. */
#ifndef DTREES_TWO_CLASSES_H
#define DTREES_TWO_CLASSES_H

#include <stdint.h>

#include "data/cpu.h"

typedef struct {
    double W, S, reach;
    int bounded;
    int64_t n, s;
    uint32_t ones;
    const int64_t *f;
    int64_t zeros, weight, base;
    double best;
} TwoClasses;

/* The entropy's score where a side weighs w, of which `ones` are of class 1, from the table of
   x log x. zeros, weight: of the node. base: its own x log x, which comes off. */
static inline double entropy_of(const int64_t *f, int64_t zeros, int64_t weight, int64_t base,
                                int64_t w, int64_t ones) {
    int64_t others = zeros - (w - ones), rest = weight - w;
    return (double)(f[w - ones] + f[others] + f[ones] + f[rest - others] - f[w] - f[rest] - base);
}

#ifdef DTREES_X86

/* The first n of eight entries. Those behind may be of a column that another thread works at: they
   are not read. */
WIDE static inline __m256i load_entries(const uint32_t *e, int64_t n) {
    if (n >= 8) return _mm256_loadu_si256((const __m256i *)e);
    __m256i place = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i wanted = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), place);
    return _mm256_maskload_epi32((const int *)e, wanted);
}

/* A bit for each of `count` entries, at most 16, whose row is not below ones = least + 1. */
WIDE static inline uint32_t classes_of(const uint32_t *e, int64_t count, __m256i least) {
    __m256i row = _mm256_set1_epi32(0xFFFF);
    __m256i a = _mm256_and_si256(load_entries(e, count), row);
    __m256i b = _mm256_and_si256(load_entries(e + 8, count - 8), row);
    uint32_t low = (uint32_t)_mm256_movemask_ps(
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(a, least)));
    uint32_t high = (uint32_t)_mm256_movemask_ps(
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(b, least)));
    return low | high << 8;
}

/* A bit for each of `count` entries, at most 16, whose rank differs from that of the one before. */
WIDE static inline uint32_t changes_of(const uint32_t *e, int64_t count) {
    uint32_t same = 0;
    for (int k = 0; k < 16; k += 8) {
        __m256i here = load_entries(e + k, count - k);
        __m256i before = load_entries(e + k - 1, count - k);
        __m256i rest = _mm256_srli_epi32(_mm256_xor_si256(here, before), 16);
        __m256i equal = _mm256_cmpeq_epi32(rest, _mm256_setzero_si256());
        same |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(equal)) << k;
    }
    return ~same;
}

/* Whether no boundary before one of `count` entries, of which `ones` are of class 1, reaches. All
   numbers but the squares are whole and below 2**53. */
WIDE static inline int is_passed_over(const TwoClasses *t, int64_t w, int64_t s, int64_t count,
                                      int64_t ones) {
    double before = (double)w, after = (double)(w + count - 1);
    double D = t->W * (double)s - before * t->S;
    double up = D + (double)ones * (t->W - t->S);
    double down = (double)(count - ones) * t->S - D;
    double least = before * (t->W - before), last = after * (t->W - after);
    D = up > down ? up : down;
    least = least < last ? least : last;
    return D * D < t->reach * least;
}

/* The first entry of e[i..stop) before which a boundary may reach, and t->s up to it; or `stop`.
   i > 0. by_label: neighbours of one class are no boundary. */
WIDE static int64_t next_boundary(TwoClasses *t, const uint32_t *e, int64_t i, int64_t stop,
                                  int by_label) {
    __m256i least = _mm256_set1_epi32((int)t->ones - 1);
    int64_t s = t->s;
    while (i < stop) {
        int64_t count = stop - i < 16 ? stop - i : 16;
        uint32_t all = (1u << count) - 1;
        uint32_t classes = classes_of(e + i, count, least) & all;
        int64_t ones = __builtin_popcount(classes);
        if (!t->bounded || !is_passed_over(t, t->n + i, s, count, ones)) {
            uint32_t before = (e[i - 1] & 0xFFFF) >= t->ones;
            uint32_t at = all & (by_label ? classes ^ (classes << 1 | before) : changes_of(e + i, count));
            for (; at; at &= at - 1) {
                int k = __builtin_ctz(at);
                int64_t side = s + __builtin_popcount(classes & ((1u << k) - 1));
                double w = (double)(t->n + i + k);
                double D = t->W * (double)side - w * t->S;
                if ((!t->bounded || D * D >= t->reach * (w * (t->W - w)))
                    && (!t->f
                        || entropy_of(t->f, t->zeros, t->weight, t->base, t->n + i + k, side)
                               >= t->best)) {
                    t->s = side;
                    return i + k;
                }
            }
        }
        s += ones;
        i += count;
    }
    t->s = s;
    return stop;
}

#else

#define next_boundary(...) 0

#endif
#endif
