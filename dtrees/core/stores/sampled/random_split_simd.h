/* The codes of 32 columns of a row side by side, for `_random_split.pyx`.

   `random_split_loops.h` is compiled for registers of 256 bits and for those that every x86-64 has; what
   there is decides when it runs. Other machines, and the debug build, get loops in plain C. All of
   it is integers and comparisons: the results are the same. */
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
    uint32_t n[SLOTS];           /* of the left side: rows, weight, weight of class 1 */
    uint32_t w[SLOTS];
    uint32_t s[SLOTS];
} SimdSplits;

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(name, KIND)

#ifdef DTREES_X86

#define KIND wide
#define TARGET WIDE
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
#include "stores/sampled/random_split_loops.h"
#undef KIND
#undef TARGET
#undef V
#undef LOAD
#undef STORE
#undef SPLAT
#undef ADD
#undef SUB
#undef AND
#undef OR
#undef EQUAL
#undef LESSER
#undef GREATER

typedef struct {
    __m128i half[2];
} Pair;

static inline Pair pair_of(__m128i a, __m128i b) {
    Pair pair = {{a, b}};
    return pair;
}

#define OF_PAIR(f, x, y) pair_of(f((x).half[0], (y).half[0]), f((x).half[1], (y).half[1]))
#define V Pair
#define LOAD(p) \
    pair_of(_mm_loadu_si128((const __m128i *)(p)), _mm_loadu_si128((const __m128i *)(p) + 1))
#define STORE(p, x) \
    (_mm_storeu_si128((__m128i *)(p), (x).half[0]), \
     _mm_storeu_si128((__m128i *)(p) + 1, (x).half[1]))
#define SPLAT(c) pair_of(_mm_set1_epi8((char)(c)), _mm_set1_epi8((char)(c)))
#define ADD(x, y) OF_PAIR(_mm_add_epi8, x, y)
#define SUB(x, y) OF_PAIR(_mm_sub_epi8, x, y)
#define AND(x, y) OF_PAIR(_mm_and_si128, x, y)
#define OR(x, y) OF_PAIR(_mm_or_si128, x, y)
#define EQUAL(x, y) OF_PAIR(_mm_cmpeq_epi8, x, y)
#define LESSER(x, y) OF_PAIR(_mm_min_epu8, x, y)
#define GREATER(x, y) OF_PAIR(_mm_max_epu8, x, y)

#else

/* Loops of a fixed length, which compilers turn into the registers of the machine. */
typedef struct {
    uint8_t code[SLOTS];
} Block;

#define BLOCK_OF(name, expression) \
    static inline Block name(Block x, Block y) { \
        Block out; \
        for (int j = 0; j < SLOTS; j++) { \
            uint8_t a = x.code[j], b = y.code[j]; \
            out.code[j] = (uint8_t)(expression); \
        } \
        return out; \
    }

BLOCK_OF(block_add, a + b)
BLOCK_OF(block_sub, a - b)
BLOCK_OF(block_and, a & b)
BLOCK_OF(block_or, a | b)
BLOCK_OF(block_equal, a == b ? 255 : 0)
BLOCK_OF(block_lesser, a < b ? a : b)
BLOCK_OF(block_greater, a > b ? a : b)

static inline Block block_load(const uint8_t *p) {
    Block out;
    for (int j = 0; j < SLOTS; j++)
        out.code[j] = p[j];
    return out;
}

static inline void block_store(uint8_t *p, Block x) {
    for (int j = 0; j < SLOTS; j++)
        p[j] = x.code[j];
}

static inline Block block_splat(uint8_t c) {
    Block out;
    for (int j = 0; j < SLOTS; j++)
        out.code[j] = c;
    return out;
}

#define V Block
#define LOAD(p) block_load(p)
#define STORE(p, x) block_store(p, x)
#define SPLAT(c) block_splat((uint8_t)(c))
#define ADD(x, y) block_add(x, y)
#define SUB(x, y) block_sub(x, y)
#define AND(x, y) block_and(x, y)
#define OR(x, y) block_or(x, y)
#define EQUAL(x, y) block_equal(x, y)
#define LESSER(x, y) block_lesser(x, y)
#define GREATER(x, y) block_greater(x, y)
#define simd_ranges_wide simd_ranges_plain
#define simd_sums_wide simd_sums_plain
#define simd_upto_wide simd_upto_plain

#endif

#define KIND plain
#define TARGET
#include "stores/sampled/random_split_loops.h"

#endif
