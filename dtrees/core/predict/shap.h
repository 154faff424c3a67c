/* What a step down a tree does to several rows at several points, for `_shap.pyx`.

   Arrays are (points, LANES): rows stand side by side, so a loop over them is one of registers. */
#ifndef DTREES_SHAP_H
#define DTREES_SHAP_H

#include <stdint.h>

#include "data/cpu.h"

#define LANES 32 /* rows that go down a tree together */
#define SHAP_INLINE static inline __attribute__((always_inline))

/* What a factor is where a row has met all tests of the column, where it has failed the last one
   only, and where it had failed one before: (points,), (points,), and one number. */
typedef struct {
    const double *met;
    const double *failed;
    double lost;
} Factors;

typedef union {
    double number;
    int64_t bits;
} Bits;

/* The factor of a row, whose `before` and `after` are -1 or 0: no branch, and no load. */
SHAP_INLINE double chosen(Bits met, Bits failed, Bits lost, int64_t before, int64_t after) {
    Bits found;
    found.bits = (met.bits & after) | (failed.bits & before & ~after) | (lost.bits & ~before);
    return found.number;
}

/* next = product * factor */
SHAP_INLINE void multiply_in(const double *restrict product, const int64_t *before,
                             const int64_t *after, const Factors *f, int64_t n_points, int64_t n,
                             double *restrict next) {
    Bits lost = {f->lost};
    for (int64_t k = 0; k < n_points; k++) {
        Bits met = {f->met[k]}, failed = {f->failed[k]};
        for (int64_t r = 0; r < n; r++)
            next[k * LANES + r] =
                product[k * LANES + r] * chosen(met, failed, lost, before[r], after[r]);
    }
}

/* phi += sum over points of sums * factor; all += sums */
SHAP_INLINE void collect_in(const double *restrict sums, const int64_t *before,
                            const int64_t *after, const Factors *f, int64_t n_points, int64_t n,
                            double *restrict phi, double *restrict all) {
    double own[LANES] = {0};
    Bits lost = {f->lost};
    for (int64_t k = 0; k < n_points; k++) {
        Bits met = {f->met[k]}, failed = {f->failed[k]};
        for (int64_t r = 0; r < n; r++) {
            double here = sums[k * LANES + r];
            own[r] += here * chosen(met, failed, lost, before[r], after[r]);
            all[k * LANES + r] += here;
        }
    }
    for (int64_t r = 0; r < n; r++)
        phi[r] += own[r];
}

/* sums = products * value */
SHAP_INLINE void weigh_in(const double *restrict product, double value, int64_t n_points,
                          int64_t n, double *restrict sums) {
    for (int64_t k = 0; k < n_points; k++)
        for (int64_t r = 0; r < n; r++)
            sums[k * LANES + r] = product[k * LANES + r] * value;
}

/* both += sum over points of one * other */
SHAP_INLINE void pair_in(const double *one, const double *other, int64_t n_points, int64_t n,
                         double *both) {
    double own[LANES] = {0};
    for (int64_t k = 0; k < n_points; k++)
        for (int64_t r = 0; r < n; r++)
            own[r] += one[k * LANES + r] * other[k * LANES + r];
    for (int64_t r = 0; r < n; r++)
        both[r] += own[r];
}

/* Numbers up to a threshold pass, and missing ones where they do: -1 or 0. */
SHAP_INLINE void compare_in(const double *x, double threshold, int64_t missing, int64_t n,
                            int64_t *passes) {
    for (int64_t r = 0; r < n; r++)
        passes[r] = -((x[r] <= threshold) | ((x[r] != x[r]) & missing));
}

/* Each with registers of 256 bits, where `wide` says so, and without. Rows stand side by side, so
   the bits are the same. */
#ifdef DTREES_X86
#define BY_REGISTERS(name, call, ...)                                                              \
    WIDE static void name##_wide(__VA_ARGS__) { name##_in call; }                                  \
    static void name(int wide, __VA_ARGS__) {                                                      \
        if (wide) name##_wide call;                                                                \
        else name##_in call;                                                                       \
    }
#else
#define BY_REGISTERS(name, call, ...)                                                              \
    static void name(int wide, __VA_ARGS__) { (void)wide, name##_in call; }
#endif

BY_REGISTERS(multiply, (product, before, after, f, n_points, n, next), const double *product,
             const int64_t *before, const int64_t *after, const Factors *f, int64_t n_points,
             int64_t n, double *next)
BY_REGISTERS(collect, (sums, before, after, f, n_points, n, phi, all), const double *sums,
             const int64_t *before, const int64_t *after, const Factors *f, int64_t n_points,
             int64_t n, double *phi, double *all)
BY_REGISTERS(weigh, (product, value, n_points, n, sums), const double *product, double value,
             int64_t n_points, int64_t n, double *sums)
BY_REGISTERS(pair, (one, other, n_points, n, both), const double *one, const double *other,
             int64_t n_points, int64_t n, double *both)
BY_REGISTERS(compare, (x, threshold, missing, n, passes), const double *x, double threshold,
             int64_t missing, int64_t n, int64_t *passes)

#endif
