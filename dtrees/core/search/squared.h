/* Boundaries of a column by squared error, of rows that weigh one each, for `_number_scan.pyx`.

   Four entries at a time, in registers of 256 bits:

   entries of rows        7      31     12     40
   targets               -3       8      5      2
   sums before them       s     s-3    s+5    s+10
   D*D >= reach * w * rest ?      one comparison of four; D is rounded up

   Stretches in which no boundary can reach the best score are passed over. */
#ifndef DTREES_SQUARED_H
#define DTREES_SQUARED_H

#include <math.h>
#include <stdint.h>

#include "data/cpu.h"
#include "search/rounding.h"

#define STRETCH_OF_NUMBERS 16 /* entries that are bounded together */

typedef struct {
    double W, S, reach;
    int bounded;   /* distances from the mean may be added up */
    int64_t mean;  /* of the targets, rounded to a neighbour */
    int64_t n, s;  /* of the side, before the entry that is looked at */
    const int64_t *target; /* by row */
} NumberScan;

#ifdef DTREES_X86

/* Targets of four entries. */
WIDE static inline __m256i targets_of(const int64_t *target, const uint32_t *e) {
    return _mm256_set_epi64x(target[e[3] & 0xFFFF], target[e[2] & 0xFFFF], target[e[1] & 0xFFFF],
                             target[e[0] & 0xFFFF]);
}

WIDE static inline int64_t sum_of(__m256i x) {
    __m128i half = _mm_add_epi64(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    return _mm_cvtsi128_si64(half) + _mm_extract_epi64(half, 1);
}

/* Integers of 64 bits, rounded to the nearest double: the upper half and the lower half, which are
   exact, each as what it adds to a power of two. */
WIDE static inline __m256d doubles_of(__m256i x) {
    __m256i low = _mm256_blend_epi32(_mm256_set1_epi64x(0x4330000000000000), x, 0x55);
    __m256i high = _mm256_xor_si256(_mm256_srli_epi64(x, 32),
                                    _mm256_set1_epi64x(0x4530000080000000));
    __m256d powers = _mm256_castsi256_pd(_mm256_set1_epi64x(0x4530000080100000));
    return _mm256_add_pd(_mm256_sub_pd(_mm256_castsi256_pd(high), powers),
                         _mm256_castsi256_pd(low));
}

/* Whether no boundary before one of the entries of a stretch reaches; `sum` gets their targets.

   D grows by no more than the targets above the mean, and falls by no more than those below. The
   mean was rounded: it is off by less than one for each row. */
WIDE static inline int is_stretch_dead(const NumberScan *t, const uint32_t *e, double before,
                                       int64_t s, int64_t *sum) {
    __m256i mean = _mm256_set1_epi64x(t->mean), zero = _mm256_setzero_si256();
    __m256i all = zero, above = zero;
    for (int k = 0; k < STRETCH_OF_NUMBERS; k += 4) {
        __m256i x = _mm256_sub_epi64(targets_of(t->target, e + k), mean);
        all = _mm256_add_epi64(all, x);
        above = _mm256_add_epi64(above, _mm256_andnot_si256(_mm256_cmpgt_epi64(zero, x), x));
    }
    double up = (double)sum_of(above), balance = (double)sum_of(all), down = up - balance;
    *sum = sum_of(all) + t->mean * STRETCH_OF_NUMBERS;
    double after = before + (STRETCH_OF_NUMBERS - 1);
    double first = before * (t->W - before), last = after * (t->W - after);
    double lost = LAST_BITS * (t->W * (fabs((double)s) + fabs((double)*sum) + up + down)
                               + (after + 1) * fabs(t->S));
    double D = t->W * (double)s - before * t->S;
    double most = D + t->W * (up + STRETCH_OF_NUMBERS);
    double least = t->W * (down + STRETCH_OF_NUMBERS) - D;
    D = (most > least ? most : least) + lost;
    return D * D < t->reach * (first < last ? first : last);
}

/* The first n of four entries. Those behind may be of a column that another thread works at: they
   are not read. */
WIDE static inline __m128i load_four(const uint32_t *e, int n) {
    if (n >= 4) return _mm_loadu_si128((const __m128i *)e);
    __m128i wanted = _mm_cmpgt_epi32(_mm_set1_epi32(n), _mm_setr_epi32(0, 1, 2, 3));
    return _mm_maskload_epi32((const int *)e, wanted);
}

/* A bit for each of `count` entries, at most four, before which there is a boundary that reaches. */
WIDE static inline int reaching(const NumberScan *t, const uint32_t *e, int count, double w,
                                __m256i sums) {
    __m256d left = _mm256_add_pd(_mm256_set1_pd(w), _mm256_set_pd(3, 2, 1, 0));
    __m256d W = _mm256_set1_pd(t->W);
    __m256d of_sums = _mm256_mul_pd(W, doubles_of(sums)), sign = _mm256_set1_pd(-0.0);
    __m256d of_weights = _mm256_mul_pd(left, _mm256_set1_pd(t->S));
    __m256d lost = _mm256_mul_pd(_mm256_set1_pd(LAST_BITS),
                                 _mm256_add_pd(_mm256_andnot_pd(sign, of_sums),
                                               _mm256_andnot_pd(sign, of_weights)));
    __m256d D = _mm256_andnot_pd(sign, _mm256_sub_pd(of_sums, of_weights));
    D = _mm256_add_pd(D, lost); /* `most_of_difference` */
    __m256d product = _mm256_mul_pd(left, _mm256_sub_pd(W, left));
    __m256d enough = _mm256_cmp_pd(_mm256_mul_pd(D, D),
                                   _mm256_mul_pd(_mm256_set1_pd(t->reach), product), _CMP_GE_OQ);
    __m128i here = load_four(e, count), before = load_four(e - 1, count);
    __m128i same = _mm_cmpeq_epi32(_mm_srli_epi32(_mm_xor_si128(here, before), 16),
                                   _mm_setzero_si128());
    return _mm256_movemask_pd(enough) & ~_mm_movemask_ps(_mm_castsi128_ps(same));
}

/* The first entry of e[i..stop) before which a boundary may reach, and t->s up to it; or `stop`.
   i > 0. */
WIDE static int64_t next_number(NumberScan *t, const uint32_t *e, int64_t i, int64_t stop) {
    int64_t s = t->s, sum;
    while (i < stop) {
        int64_t end = i + STRETCH_OF_NUMBERS;
        if (end > stop)
            end = stop;
        else if (t->bounded && is_stretch_dead(t, e + i, (double)(t->n + i), s, &sum)) {
            s += sum;
            i = end;
            continue;
        }
        for (; i < end; i += 4) {
            int count = end - i < 4 ? (int)(end - i) : 4;
            uint32_t mask = (1u << count) - 1;
            const uint32_t *four = e + i;
            int64_t s1 = s + t->target[four[0] & 0xFFFF];
            int64_t s2 = s1 + t->target[four[count > 1 ? 1 : 0] & 0xFFFF];
            int64_t s3 = s2 + t->target[four[count > 2 ? 2 : 0] & 0xFFFF];
            mask &= reaching(t, four, count, (double)(t->n + i), _mm256_set_epi64x(s3, s2, s1, s));
            if (mask) {
                int k = __builtin_ctz(mask);
                t->s = k < 2 ? (k == 0 ? s : s1) : (k == 2 ? s2 : s3);
                return i + k;
            }
            if (count == 4)
                s = s3 + t->target[four[3] & 0xFFFF];
            else
                s = count < 2 ? s1 : count == 2 ? s2 : s3;
        }
        i = end;
    }
    t->s = s;
    return stop;
}

#else

#define next_number(...) 0

#endif
#endif
