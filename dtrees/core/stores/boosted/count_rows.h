/* Rows of a node to the cells of a block of columns, for `_column_blocks.pyx`. */
#ifndef DTREES_COUNT_ROWS_H
#define DTREES_COUNT_ROWS_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
/* Two 64-bit sums, which are added by one instruction. The first one has all 64 bits. */
typedef uint64_t Pair __attribute__((vector_size(16), may_alias));
static inline Pair pair_of(uint64_t first, uint64_t second) {
    Pair made = {first, second};
    return made;
}
#define ADD_PAIR(cell, pair) (*(Pair *)(cell) += (pair))
#define PREFETCH(address) __builtin_prefetch(address)
#else
typedef struct {
    uint64_t first, second;
} Pair;
static inline Pair pair_of(uint64_t first, uint64_t second) {
    Pair made = {first, second};
    return made;
}
#define ADD_PAIR(cell, pair)                                                                       \
    (((uint64_t *)(cell))[0] += (pair).first, ((uint64_t *)(cell))[1] += (pair).second)
#define PREFETCH(address)
#endif

#define ROWS_AHEAD 24

/* What a row adds: rows << shift | hessian, gradient. */
static inline Pair pair_of_row(uint64_t derivatives, uint64_t one) {
    return pair_of((derivatives & 0xFFFFFFFFu) + one, (uint64_t)((int64_t)derivatives >> 32));
}

/* rows : ascending, (n,), or NULL, all of the first n. codes : of the block, row by row; behind the
   last row there may be nothing. cells : of each column of the block. */
#define COUNT_ROWS(width)                                                                          \
    static void count_rows_##width(const uint32_t *rows, int64_t n, const uint8_t *codes,          \
                                   const uint64_t *derivatives, uint64_t one,                      \
                                   int64_t *const *cells) {                                        \
        char *base[width];                                                                         \
        for (int j = 0; j < width; j++)                                                            \
            base[j] = (char *)cells[j];                                                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t row = rows ? rows[i] : i;                                                      \
            if (rows && i + ROWS_AHEAD < n) {                                                      \
                int64_t ahead = rows[i + ROWS_AHEAD];                                              \
                PREFETCH(codes + ahead * width);                                                   \
                PREFETCH(derivatives + ahead);                                                     \
            }                                                                                      \
            Pair pair = pair_of_row(derivatives[row], one);                                        \
            uint64_t word = 0;                                                                     \
            if (width >= 4 && i + 1 < n) /* so eight bytes end before the rows do */               \
                memcpy(&word, codes + row * width, 8);                                             \
            else                                                                                   \
                memcpy(&word, codes + row * width, width);                                         \
            for (int j = 0; j < width; j++)                                                        \
                ADD_PAIR(base[j] + (((word >> (8 * j)) & 255) << 4), pair);                        \
        }                                                                                          \
    }

COUNT_ROWS(1)
COUNT_ROWS(2)
COUNT_ROWS(3)
COUNT_ROWS(4)
COUNT_ROWS(5)
COUNT_ROWS(6)
COUNT_ROWS(7)
COUNT_ROWS(8)

static inline void count_rows(int width, const uint32_t *rows, int64_t n, const uint8_t *codes,
                              const uint64_t *derivatives, uint64_t one, int64_t *const *cells) {
    static void (*const count[8])(const uint32_t *, int64_t, const uint8_t *,
                                  const uint64_t *, uint64_t, int64_t *const *) = {
        count_rows_1, count_rows_2, count_rows_3, count_rows_4,
        count_rows_5, count_rows_6, count_rows_7, count_rows_8};
    count[width - 1](rows, n, codes, derivatives, one, cells);
}

#endif
