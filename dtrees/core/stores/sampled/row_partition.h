/* Items of a node to its children, four at a time, for `_row_partition.pyx`.

   Left ones move to the front of `item`, right ones to `spare`, each in their order, and their
   values likewise; returns how many went left. The row of an item is its lower half. Codes with
   code - above < width go left, and so does 0 where missing_left is 1. */
#ifndef DTREES_PARTING_H
#define DTREES_PARTING_H

#include <stdint.h>

#include "data/cpu.h"

#ifdef DTREES_X86

/* Those of four numbers, by their bits, that come first: the halves they are made of. */
#define FIRST(a, b, c, d) {2 * a, 2 * a + 1, 2 * b, 2 * b + 1, 2 * c, 2 * c + 1, 2 * d, 2 * d + 1}
static const int32_t in_front[16][8] __attribute__((aligned(32))) = {
    FIRST(0, 0, 0, 0), FIRST(0, 0, 0, 0), FIRST(1, 0, 0, 0), FIRST(0, 1, 0, 0),
    FIRST(2, 0, 0, 0), FIRST(0, 2, 0, 0), FIRST(1, 2, 0, 0), FIRST(0, 1, 2, 0),
    FIRST(3, 0, 0, 0), FIRST(0, 3, 0, 0), FIRST(1, 3, 0, 0), FIRST(0, 1, 3, 0),
    FIRST(2, 3, 0, 0), FIRST(0, 2, 3, 0), FIRST(1, 2, 3, 0), FIRST(0, 1, 2, 3)};

/* Four numbers, those of the mask in front; what stands behind them is written over, or not read.
   `to` is never ahead of where the four were. */
WIDE static inline void put(void *to, __m256i four, uint32_t mask) {
    __m256i order = _mm256_load_si256((const __m256i *)in_front[mask]);
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(four, order));
}

/* code_of(row) is the code of one row, mask_of(items) has a bit for each of four that go left. */
#define PART(code_of, mask_of) \
    int64_t left = 0, right = 0, i = 0; \
    for (; i + 4 <= n; i += 4) { \
        __m256i four = _mm256_loadu_si256((const __m256i *)(item + i)); \
        uint32_t mask = mask_of(four); \
        int64_t count = __builtin_popcount(mask); \
        put(item + left, four, mask); \
        put(spare + right, four, 15 ^ mask); \
        if (value) { \
            four = _mm256_loadu_si256((const __m256i *)(value + i)); \
            put(value + left, four, mask); \
            put(spare_value + right, four, 15 ^ mask); \
        } \
        left += count; \
        right += 4 - count; \
    } \
    for (; i < n; i++) { \
        uint64_t x = item[i]; \
        uint32_t is_left = SIDE(code_of((int64_t)(uint32_t)x)); \
        item[left] = x; \
        spare[right] = x; \
        if (value) { \
            int64_t y = value[i]; \
            value[left] = y; \
            spare_value[right] = y; \
        } \
        left += is_left; \
        right += 1 - is_left; \
    } \
    return left;

#define SIDE(code) (((code) - above < width) | (missing_left & ((code) == 0)))

/* By a column: the code of a row is at codes[row]. */
#define CODE(row) ((uint32_t)codes[row])
#define MASK(four) \
    (SIDE(CODE((uint32_t)item[i])) | SIDE(CODE((uint32_t)item[i + 1])) << 1 \
     | SIDE(CODE((uint32_t)item[i + 2])) << 2 | SIDE(CODE((uint32_t)item[i + 3])) << 3)
#define PART_BY_COLUMN(name, code_t) \
    WIDE static int64_t name(uint64_t *item, int64_t *value, uint64_t *spare, \
                             int64_t *spare_value, int64_t n, const code_t *codes, \
                             uint32_t above, uint32_t width, uint32_t missing_left) { \
        PART(CODE, MASK) \
    }

PART_BY_COLUMN(partition_u8, uint8_t)
PART_BY_COLUMN(partition_u16, uint16_t)
PART_BY_COLUMN(partition_u32, uint32_t)
#undef CODE
#undef MASK

/* By a slot of the codes by row: the code of a row is the byte at codes[stride * row + slot]. Rows
   of a small node are anywhere, so four are asked for at once: the words that hold them, which
   never reach beyond a row. */
#define CODE(row) ((uint32_t)codes[stride * (row) + slot])
#define MASK(four) mask_of_words(words, four, strides, shift, reach)
WIDE static inline uint32_t mask_of_words(const int *words, __m256i four, __m256i strides,
                                          __m128i shift, const __m128i *reach) {
    __m128i flip = _mm_set1_epi32((int)0x80000000);
    __m128i word = _mm256_i64gather_epi32(words, _mm256_mul_epu32(four, strides), 1);
    __m128i code = _mm_and_si128(_mm_srl_epi32(word, shift), _mm_set1_epi32(255));
    __m128i from = _mm_xor_si128(_mm_sub_epi32(code, reach[0]), flip);
    __m128i missing = _mm_and_si128(_mm_cmpeq_epi32(code, _mm_setzero_si128()), reach[2]);
    return (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(
        _mm_or_si128(_mm_cmpgt_epi32(reach[1], from), missing)));
}

WIDE static int64_t partition_slot(uint64_t *item, uint64_t *spare, int64_t n, const uint8_t *codes,
                              int32_t stride, int32_t slot, uint32_t above, uint32_t width,
                              uint32_t missing_left) {
    int64_t *value = 0, *spare_value = 0;
    const int *words = (const int *)(codes + (slot & ~3));
    __m256i strides = _mm256_set1_epi64x(stride);
    __m128i shift = _mm_cvtsi32_si128(8 * (slot & 3));
    __m128i reach[3] = {_mm_set1_epi32((int)above), _mm_set1_epi32((int)(width ^ 0x80000000)),
                        _mm_set1_epi32(-(int)missing_left)};
    PART(CODE, MASK)
}
#undef CODE
#undef MASK

#else

#define partition_u8(...) 0
#define partition_u16(...) 0
#define partition_u32(...) 0
#define partition_slot(...) 0

#endif
#endif
