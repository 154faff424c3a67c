/* Rows down a small tree, eight in a register of 256 bits, for `_walk.pyx`.

   32 rows take a step together until all have reached their leaves, whose numbers are negative and
   stay. Where ways are of very different lengths, too many rows wait, and `walk` is faster. A node
   is three numbers of 32 bits: slot and limit, right child, left child. */
#ifndef DTREES_WALK_SIMD_H
#define DTREES_WALK_SIMD_H

#include <stdint.h>

#include "data/cpu.h"

#define REGISTERS 4
#define GROUP (8 * REGISTERS) /* rows */

#ifdef DTREES_X86

/* The rows that a walk begins with, in groups, until in one of them half of all steps is waited;
   returns how many. At least one is left: a code is read with the one behind it. */
WIDE static int64_t walk_small(const int *nodes, const uint16_t *codes, int64_t width, int64_t n,
                               int32_t root, int32_t *leaf) {
    __m256i low = _mm256_set1_epi32(0xFFFF), slots = _mm256_set1_epi32(0x7FFF);
    __m256i zero = _mm256_setzero_si256(), start[REGISTERS];
    int64_t i = 0, waited = 0, all = 1;
    for (int k = 0; k < REGISTERS; k++)
        start[k] = _mm256_mullo_epi32(
            _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(8 * k)),
            _mm256_set1_epi32((int)width));
    for (; i + GROUP < n && 2 * waited < all; i += GROUP, codes += GROUP * width) {
        __m256i at[REGISTERS], ended, waits = zero;
        int of_lane[8];
        waited = all = 0;
        for (int k = 0; k < REGISTERS; k++)
            at[k] = _mm256_set1_epi32(root);
        do {
            ended = low;
            for (int k = 0; k < REGISTERS; k++) {
                __m256i first = _mm256_max_epi32(at[k], zero);
                first = _mm256_add_epi32(first, _mm256_add_epi32(first, first));
                __m256i test = _mm256_i32gather_epi32(nodes, first, 4);
                __m256i slot = _mm256_add_epi32(start[k], _mm256_and_si256(test, slots));
                __m256i code = _mm256_i32gather_epi32((const int *)codes, slot, 2);
                code = _mm256_and_si256(code, low);
                __m256i left = _mm256_cmpgt_epi32(_mm256_srli_epi32(test, 16), code);
                __m256i is_missing = _mm256_cmpeq_epi32(code, low), next; /* bit 15 tells its side */
                test = _mm256_srai_epi32(_mm256_slli_epi32(test, 16), 31);
                left = _mm256_or_si256(left, _mm256_and_si256(is_missing, test));
                next = _mm256_sub_epi32(first, left); /* left is -1 */
                next = _mm256_i32gather_epi32(nodes + 1, next, 4);
                __m256i is_leaf = _mm256_srai_epi32(at[k], 31);
                at[k] = _mm256_blendv_epi8(next, at[k], is_leaf);
                waits = _mm256_sub_epi32(waits, is_leaf);
                ended = k ? _mm256_and_si256(ended, at[k]) : at[k];
            }
            all += GROUP;
        } while (_mm256_movemask_ps(_mm256_castsi256_ps(ended)) != 0xFF);
        for (int k = 0; k < REGISTERS; k++)
            _mm256_storeu_si256((__m256i *)(leaf + i + 8 * k),
                                _mm256_xor_si256(at[k], _mm256_set1_epi32(-1)));
        _mm256_storeu_si256((__m256i *)of_lane, waits);
        for (int k = 0; k < 8; k++)
            waited += of_lane[k];
    }
    return i;
}

#else

#define walk_small(...) 0

#endif
#endif
