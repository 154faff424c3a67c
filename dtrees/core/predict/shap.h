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

SHAP_INLINE double chosen(const Factors *f, int64_t k, int64_t before, int64_t after, double lost) {
    double here = after ? f->met[k] : f->failed[k];
    return before ? here : lost;
}

/* next = product * factor */
SHAP_INLINE void multiply_in(const double *product, const int64_t *before, const int64_t *after,
                             const Factors *f, int64_t n_points, int64_t n, double *next) {
    for (int64_t k = 0; k < n_points; k++)
        for (int64_t r = 0; r < n; r++)
            next[k * LANES + r] = product[k * LANES + r] * chosen(f, k, before[r], after[r], f->lost);
}

/* phi += sum over points of sums * factor; all += sums */
SHAP_INLINE void collect_in(const double *sums, const int64_t *before, const int64_t *after,
                            const Factors *f, int64_t n_points, int64_t n, double *phi,
                            double *all) {
    double own[LANES] = {0};
    for (int64_t k = 0; k < n_points; k++)
        for (int64_t r = 0; r < n; r++) {
            double here = sums[k * LANES + r];
            own[r] += here * chosen(f, k, before[r], after[r], f->lost);
            all[k * LANES + r] += here;
        }
    for (int64_t r = 0; r < n; r++)
        phi[r] += own[r];
}

/* sums = products * value */
SHAP_INLINE void weigh_in(const double *product, double value, int64_t n_points, int64_t n,
                          double *sums) {
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
