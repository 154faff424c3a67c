/* The members of a shared node side by side, for `_class_scan.pyx`.

   Eight members stand in a register, 32 bits each. A sum of squares of at most 46,340 rows fits
   them, and so does what is added up on the way, modulo 2**32. Scores are computed in doubles, by
   the operations of `flush` in `_search.pxd` and in their order: they are the same bits. */
#ifndef DTREES_CLASS_SCAN_H
#define DTREES_CLASS_SCAN_H

#include <stdint.h>

#include "data/cpu.h"

#define MEMBERS 8 /* of a register */

/* What the search of a column knows of its members, and what it finds. */
typedef struct {
    int64_t width;         /* members, a multiple of eight */
    int64_t n_classes;
    int32_t *totals;       /* (n_classes, width) */
    int32_t *side;         /* (n_classes, MEMBERS), scratch */
    int32_t n[64];         /* rows */
    int32_t least[64];     /* rows of the left side, at least and at most */
    int32_t most[64];
    int32_t squares[64];   /* sum of squares over classes */
    double best[64];       /* score of the best boundary, */
    int64_t at[64];        /* the number of its code, and BEHIND if missing ones go left */
    int32_t n_codes[64];   /* how many occur */
} MemberScan;

#define BEHIND ((int64_t)1 << 32)

#ifdef DTREES_X86

#define LOAD32(p) _mm256_loadu_si256((const __m256i *)(p))
#define STORE32(p, x) _mm256_storeu_si256((__m256i *)(p), x)

static const int32_t bit_of_member[64] __attribute__((aligned(32))) = {
#define BITS8(i) 1 << (i), 1 << ((i) + 1), 1 << ((i) + 2), 1 << ((i) + 3), \
    1 << ((i) + 4), 1 << ((i) + 5), 1 << ((i) + 6), (int32_t)(1u << ((i) + 7))
    BITS8(0), BITS8(8), BITS8(16), BITS8(24), BITS8(0), BITS8(8), BITS8(16), BITS8(24)};
#undef BITS8

/* All bits of each of eight members, from m on, that a word holds. */
WIDE static inline __m256i mask_of(uint64_t members, int64_t m) {
    __m256i bit = LOAD32(bit_of_member + m);
    __m256i mine = _mm256_set1_epi32((int32_t)(uint32_t)(members >> (m & 32)));
    return _mm256_cmpeq_epi32(_mm256_and_si256(mine, bit), bit);
}

WIDE static inline void write_members(int32_t *out, int64_t width, uint64_t members) {
    for (int64_t m = 0; m < width; m += MEMBERS)
        STORE32(out + m, mask_of(members, m));
}

/* cells : (codes, n_classes, width), added to. rank : by code its number, or NULL. has : by cell of
   the table a mask of each member, written by `write_members`. */
#define COUNT_CLASSES(kind, code_t) \
    WIDE static inline void count_classes_##kind(int32_t *cells, int64_t n_classes, int64_t width, \
                                          const code_t *codes, const uint32_t *rank, \
                                          const uint32_t *rows, const uint16_t *label, \
                                          const uint8_t *cell, const int32_t *has, int64_t n) { \
        for (int64_t i = 0; i < n; i++) { \
            uint32_t code = codes[rows[i]]; \
            const int32_t *mine = has + cell[i] * width; \
            int32_t *to = cells + ((rank ? rank[code] : code) * n_classes + label[i]) * width; \
            for (int64_t m = 0; m < width; m += MEMBERS) \
                STORE32(to + m, _mm256_sub_epi32(LOAD32(to + m), LOAD32(mine + m))); \
        } \
    } \
    WIDE static inline void count_some_classes_##kind(int32_t *cells, int64_t n_classes, int64_t width, \
                                               const code_t *codes, const uint32_t *rank, \
                                               const uint32_t *rows, const uint16_t *label, \
                                               const uint64_t *who, int64_t n) { \
        for (int64_t i = 0; i < n; i++) { \
            uint32_t code = codes[rows[i]]; \
            int32_t *to = cells + ((rank ? rank[code] : code) * n_classes + label[i]) * width; \
            for (int64_t m = 0; m < width; m += MEMBERS) \
                STORE32(to + m, _mm256_sub_epi32(LOAD32(to + m), mask_of(who[i], m))); \
        } \
    }

COUNT_CLASSES(u8, uint8_t)
COUNT_CLASSES(u16, uint16_t)
#undef COUNT_CLASSES

/* Scores of four boundaries, of which `allowed` are considered; the better ones are kept. */
WIDE static inline void keep_better(__m128i left, __m128i squares, __m128i others, __m256d weight,
                                    __m128i allowed, int64_t at, __m256d *best,
                                    __m256d *best_at) {
    __m256d w = _mm256_cvtepi32_pd(left);
    __m256d rest = _mm256_sub_pd(weight, w);
    __m256d a = _mm256_mul_pd(_mm256_cvtepi32_pd(squares), rest);
    __m256d b = _mm256_mul_pd(_mm256_cvtepi32_pd(others), w);
    __m256d score = _mm256_div_pd(_mm256_add_pd(a, b), _mm256_mul_pd(w, rest));
    __m256d better = _mm256_and_pd(_mm256_cmp_pd(score, *best, _CMP_GT_OQ),
                                   _mm256_castsi256_pd(_mm256_cvtepi32_epi64(allowed)));
    *best = _mm256_blendv_pd(*best, score, better);
    *best_at = _mm256_blendv_pd(*best_at, _mm256_castsi256_pd(_mm256_set1_epi64x(at)), better);
}

/* The best boundary of an ordered column for each member.

   cells : (n_codes, n_classes, width). has_missing : the first code is that of missing values.
   rows : (n_codes, width), of each code; filled. none : below every score. */
WIDE static inline void search_members(MemberScan *x, const int32_t *cells, int64_t n_codes,
                                int has_missing, int32_t *rows, double none) {
    int64_t K = x->n_classes, width = x->width;
    for (int64_t m = 0; m < width; m += MEMBERS) {
        __m256i n = LOAD32(x->n + m), node = LOAD32(x->squares + m);
        __m256i least = LOAD32(x->least + m), most = LOAD32(x->most + m);
        __m256d low_n = _mm256_cvtepi32_pd(_mm256_castsi256_si128(n));
        __m256d high_n = _mm256_cvtepi32_pd(_mm256_extracti128_si256(n, 1));
        __m256d low_best = _mm256_set1_pd(none), high_best = low_best;
        __m256d low_at = _mm256_setzero_pd(), high_at = low_at;
        __m256i n_present = _mm256_setzero_si256();
        for (int pass = 0; pass <= has_missing; pass++) { /* missing ones right, then left */
            __m256i squares = _mm256_setzero_si256(), cross = squares, w = squares;
            for (int64_t c = 0; c < K; c++)
                STORE32(x->side + c * MEMBERS, squares);
            for (int64_t d = has_missing && !pass; d < n_codes; d++) {
                const int32_t *cell = cells + d * K * width + m;
                __m256i of_code = _mm256_setzero_si256();
                for (int64_t c = 0; c < K; c++) {
                    __m256i add = LOAD32(cell + c * width);
                    __m256i side = LOAD32(x->side + c * MEMBERS);
                    __m256i sum = _mm256_add_epi32(side, add);
                    squares = _mm256_add_epi32(
                        squares, _mm256_mullo_epi32(add, _mm256_add_epi32(side, sum)));
                    cross = _mm256_add_epi32(
                        cross, _mm256_mullo_epi32(add, LOAD32(x->totals + c * width + m)));
                    of_code = _mm256_add_epi32(of_code, add);
                    STORE32(x->side + c * MEMBERS, sum);
                }
                w = _mm256_add_epi32(w, of_code);
                STORE32(rows + d * width + m, of_code);
                if (pass == 0 || d == 0)
                    n_present = _mm256_sub_epi32(
                        n_present, _mm256_cmpgt_epi32(of_code, _mm256_setzero_si256()));
                if (pass && d == 0)
                    continue;
                __m256i barred = _mm256_or_si256(_mm256_cmpgt_epi32(least, w),
                                                 _mm256_cmpgt_epi32(w, most));
                __m256i allowed = _mm256_cmpeq_epi32(barred, _mm256_setzero_si256());
                if (_mm256_testz_si256(allowed, allowed))
                    continue;
                __m256i others = _mm256_add_epi32(_mm256_sub_epi32(node, cross),
                                                  _mm256_sub_epi32(squares, cross));
                int64_t at = d | (pass ? BEHIND : 0);
                keep_better(_mm256_castsi256_si128(w), _mm256_castsi256_si128(squares),
                            _mm256_castsi256_si128(others), low_n,
                            _mm256_castsi256_si128(allowed), at, &low_best, &low_at);
                keep_better(_mm256_extracti128_si256(w, 1), _mm256_extracti128_si256(squares, 1),
                            _mm256_extracti128_si256(others, 1), high_n,
                            _mm256_extracti128_si256(allowed, 1), at, &high_best, &high_at);
            }
        }
        STORE32(x->n_codes + m, n_present);
        _mm256_storeu_pd(x->best + m, low_best);
        _mm256_storeu_pd(x->best + m + 4, high_best);
        _mm256_storeu_si256((__m256i *)(x->at + m), _mm256_castpd_si256(low_at));
        _mm256_storeu_si256((__m256i *)(x->at + m + 4), _mm256_castpd_si256(high_at));
    }
}

#undef LOAD32
#undef STORE32

#else

#define write_members(...) ((void)0)
#define count_classes_u8(...) ((void)0)
#define count_classes_u16(...) ((void)0)
#define count_some_classes_u8(...) ((void)0)
#define count_some_classes_u16(...) ((void)0)
#define search_members(...) ((void)0)

#endif
#endif
