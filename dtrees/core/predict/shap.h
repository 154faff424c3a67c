/* What a step down a tree does to several rows at several points, for `_shap.pyx`.

   Arrays are (points, LANES): rows stand side by side, so a loop over them is one of registers. */
#ifndef DTREES_SHAP_H
#define DTREES_SHAP_H

#include <stdint.h>

#define LANES 32 /* rows of a batch, which go down a tree together */
#define SHAP_INLINE static inline __attribute__((always_inline)) /* knows n where it is LANES */

typedef union {
    double number;
    int64_t bits;
} Bits;

/* The factor of a row: where it has met all tests of the column, where it has failed the last one
   only, and where it had failed one before. `before` and `after` are -1 or 0: no branch. */
SHAP_INLINE double chosen(double met, double failed, double lost, int64_t before,
                          int64_t after) {
    Bits m = {met}, f = {failed}, l = {lost}, found;
    found.bits = (m.bits & after) | (f.bits & before & ~after) | (l.bits & ~before);
    return found.number;
}

/* next = product * factor; met, failed : (points,) */
SHAP_INLINE void multiply(const double *restrict product, const int64_t *before,
                          const int64_t *after, const double *met, const double *failed,
                          double lost, int64_t n_points, int64_t n, double *restrict next) {
    for (int64_t k = 0; k < n_points; k++) {
        double m = met[k], f = failed[k];
        for (int64_t r = 0; r < n; r++)
            next[k * LANES + r] = product[k * LANES + r] * chosen(m, f, lost, before[r], after[r]);
    }
}

/* phi += sum over points of sums * factor, 0 where a test had failed before; all += sums.
   OUT parts: half of what is added at the points; NULL: nobody asks. */
SHAP_INLINE void collect(const double *restrict sums, const int64_t *before, const int64_t *after,
                         const double *met, const double *failed, int64_t n_points, int64_t n,
                         double *restrict phi, double *restrict all, double *restrict parts) {
    double added[LANES] = {0};
    for (int64_t k = 0; k < n_points; k++) {
        double m = met[k], f = failed[k];
        for (int64_t r = 0; r < n; r++) {
            double here = sums[k * LANES + r];
            double part = here * chosen(m, f, 0, before[r], after[r]);
            added[r] += part;
            if (parts)
                parts[k * LANES + r] = 0.5 * part;
            all[k * LANES + r] += here;
        }
    }
    for (int64_t r = 0; r < n; r++)
        phi[r] += added[r];
}

/* one and other += sum over points of parts * slopes */
SHAP_INLINE void add_products(const double *restrict parts, const double *restrict slopes,
                              int64_t n_points, int64_t n, double *restrict one,
                              double *restrict other) {
    double added[LANES] = {0};
    for (int64_t k = 0; k < n_points; k++)
        for (int64_t r = 0; r < n; r++)
            added[r] += parts[k * LANES + r] * slopes[k * LANES + r];
    for (int64_t r = 0; r < n; r++) {
        one[r] += added[r];
        other[r] += added[r];
    }
}

#endif
