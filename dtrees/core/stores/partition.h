/* Entries of 32 bits to the children of a node, eight at a time.

   Left ones move to the front of `entries`, right ones to `scratch`, each in their order; returns how
   many went left. An entry is a row in its lower half, whose side[row] is 1 where it goes left
   (`partition_eights`, for `_partition.pyx`), a row of any number (`partition_eight_rows`), or a row
   with a code, whose side[code] it is (`partition_eights_by_code`, for `_boosted_store.pyx`).

   eight entries      a b c d e f g h          in_front[sides]      1 3 4 6 - - - -
   their sides        0 1 0 1 1 0 1 0     ->   moved together       b d e g . . . .

   What stands behind those that were moved is written over by the next eight. */
#ifndef DTREES_PARTITION_H
#define DTREES_PARTITION_H

#include <stdint.h>

#include "data/cpu.h"

#ifdef DTREES_X86

static uint8_t in_front[256][8]; /* the places of the bits of a number */

static void fill_in_front(void) {
    for (int sides = 0; sides < 256; sides++)
        for (int i = 0, k = 0; i < 8; i++)
            if (sides >> i & 1) in_front[sides][k++] = (uint8_t)i;
}

/* `to` is never ahead of where the eight were. */
WIDE static inline void move_eight(uint32_t *to, __m256i eight, uint32_t sides) {
    __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)in_front[sides]));
    _mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(eight, order));
}

#define PARTITION_EIGHTS(name, side_of, ...)                                                       \
    WIDE static int64_t name(uint32_t *entries, int64_t n, __VA_ARGS__, uint32_t *scratch) {       \
        int64_t left = 0, right = 0, i = 0;                                                        \
        for (; i + 8 <= n; i += 8) {                                                               \
            const uint32_t *e = entries + i;                                                       \
            uint32_t low = side_of(e[0]) | side_of(e[1]) << 1 | side_of(e[2]) << 2                 \
                           | side_of(e[3]) << 3;                                                   \
            uint32_t high = side_of(e[4]) | side_of(e[5]) << 1 | side_of(e[6]) << 2                \
                            | side_of(e[7]) << 3;                                                  \
            uint32_t sides = low | high << 4;                                                      \
            __m256i eight = _mm256_loadu_si256((const __m256i *)e);                                \
            int64_t count = __builtin_popcount(sides);                                             \
            move_eight(entries + left, eight, sides);                                              \
            move_eight(scratch + right, eight, 255 ^ sides);                                       \
            left += count;                                                                         \
            right += 8 - count;                                                                    \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            uint32_t entry = entries[i];                                                           \
            uint8_t is_left = side_of(entry);                                                      \
            entries[left] = entry;                                                                 \
            scratch[right] = entry;                                                                \
            left += is_left;                                                                       \
            right += 1 - is_left;                                                                  \
        }                                                                                          \
        return left;                                                                               \
    }

#define SIDE_OF_ROW(entry) (uint32_t)side[(entry) & 0xFFFF]
#define SIDE_OF_ANY(row) (uint32_t)side[row]
#define SIDE_OF_CODE(entry) (uint32_t)side[codes[(entry) * stride]]

PARTITION_EIGHTS(partition_eights, SIDE_OF_ROW, const uint8_t *side)
PARTITION_EIGHTS(partition_eight_rows, SIDE_OF_ANY, const uint8_t *side)
PARTITION_EIGHTS(partition_eights_by_code, SIDE_OF_CODE, const uint8_t *codes, int64_t stride,
                 const uint8_t *side)

/* The rows of one side, in their order, and their cells; returns how many. There is room for n. For
   `_shared_nodes.pyx`. */
WIDE static int64_t take_eight_rows(const uint32_t *rows, const uint8_t *cell, const uint8_t *side,
                                    int64_t n, int wanted, uint32_t *to_rows, uint8_t *to_cell) {
    int64_t taken = 0, i = 0;
    __m128i all = _mm_set1_epi8((char)wanted);
    for (; i + 8 <= n; i += 8) {
        __m128i at = _mm_cmpeq_epi8(_mm_loadl_epi64((const __m128i *)(side + i)), all);
        __m128i cells = _mm_loadl_epi64((const __m128i *)(cell + i));
        uint32_t sides = (uint32_t)_mm_movemask_epi8(at) & 255;
        __m128i order = _mm_loadl_epi64((const __m128i *)in_front[sides]);
        move_eight(to_rows + taken, _mm256_loadu_si256((const __m256i *)(rows + i)), sides);
        _mm_storel_epi64((__m128i *)(to_cell + taken), _mm_shuffle_epi8(cells, order));
        taken += __builtin_popcount(sides);
    }
    for (; i < n; i++) {
        to_rows[taken] = rows[i];
        to_cell[taken] = cell[i];
        taken += side[i] == wanted;
    }
    return taken;
}

#else

#define fill_in_front()
#define partition_eights(...) 0
#define partition_eight_rows(...) 0
#define partition_eights_by_code(...) 0
#define take_eight_rows(...) 0

#endif
#endif
