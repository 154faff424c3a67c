/* exp(x) and derivatives of losses in loops that the compiler turns into vectors. */
#ifndef DTREES_DERIVATIVES_H
#define DTREES_DERIVATIVES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "data/cpu.h"

#define ROWS_AT_ONCE 256

#define ROUNDING 6755399441055744.0 /* 1.5 * 2**52: added to a number, its integer is in the low bits */

static inline uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

static inline double of_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

/* 2**k, of `ROUNDING + k`, for -1023 < k < 1024. */
static inline double power_of_two(double shifted) {
    return of_bits((bits_of(shifted) + 1023) << 52);
}

/* exp(x) to one unit in the last place; inf above 709.8, 0 below -745.2, nan of nan.

   x = k log 2 + r, |r| <= log(2) / 2; exp(r) by its series, whose next term is below 2**-57; what is
   rounded off r is added back. 2**k is the product of two powers, as it may be too small for one. */
static inline double exponential(double x) {
    double bounded = x < -746.0 ? -746.0 : x;
    bounded = bounded > 710.0 ? 710.0 : bounded;
    double k = (bounded * 1.4426950408889634 + ROUNDING) - ROUNDING;
    double high = bounded - k * 0.6931471803691238;
    double low = k * 1.9082149292705877e-10;
    double r = high - low;
    double lost = (high - r) - low;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = 1.0 + (r + (lost + r * r * p));
    double half = k * 0.5 + ROUNDING;
    double rest = (k - (half - ROUNDING)) + ROUNDING;
    return p * power_of_two(half) * power_of_two(rest);
}

static inline double logistic(double x) { return 1.0 / (1.0 + exponential(-x)); }

typedef enum {
    LOGISTIC,
    SQUARED_ERROR,
    ABSOLUTE_ERROR,
    QUANTILE,
    HUBER,
    POISSON_LOSS,
    GAMMA_LOSS,
    TWEEDIE_LOSS,
    GIVEN /* derivatives are there already */
} LossKind;

/* By row, as derivatives of the loss by the raw prediction. y : 0 or 1 for LOGISTIC.
   level : of QUANTILE; the largest gradient of HUBER; the power of TWEEDIE_LOSS. `kind` is a
   constant where this is inlined.
   Where raw prediction and target are equal, the slope of ABSOLUTE_ERROR and QUANTILE is 0. A model
   may begin with the largest y, or the least, and then all rows would have one slope. */
static inline void derive_as(LossKind kind, int64_t n, const double *raw, const double *y,
                             double level, double *gradient, double *hessian) {
    if (kind == LOGISTIC) {
        for (int64_t i = 0; i < n; i++) {
            double p = logistic(raw[i]);
            gradient[i] = p - y[i];
            hessian[i] = p * (1.0 - p);
        }
    } else if (kind == SQUARED_ERROR) {
        for (int64_t i = 0; i < n; i++) {
            gradient[i] = raw[i] - y[i];
            hessian[i] = 1.0;
        }
    } else if (kind == ABSOLUTE_ERROR) {
        for (int64_t i = 0; i < n; i++) {
            gradient[i] = raw[i] > y[i] ? 1.0 : raw[i] < y[i] ? -1.0 : 0.0;
            hessian[i] = 1.0;
        }
    } else if (kind == QUANTILE) {
        for (int64_t i = 0; i < n; i++) {
            gradient[i] = raw[i] > y[i] ? 1.0 - level : raw[i] < y[i] ? -level : 0.0;
            hessian[i] = 1.0;
        }
    } else if (kind == HUBER) {
        for (int64_t i = 0; i < n; i++) {
            double above = raw[i] - y[i];
            above = above > level ? level : above;
            gradient[i] = above < -level ? -level : above;
            hessian[i] = 1.0;
        }
    } else if (kind == POISSON_LOSS) {
        for (int64_t i = 0; i < n; i++) {
            double mean = exponential(raw[i]);
            gradient[i] = mean - y[i];
            hessian[i] = mean;
        }
    } else if (kind == TWEEDIE_LOSS) {
        for (int64_t i = 0; i < n; i++) {
            double own = y[i] * exponential((1.0 - level) * raw[i]);
            double mean = exponential((2.0 - level) * raw[i]);
            gradient[i] = mean - own;
            hessian[i] = (2.0 - level) * mean + (level - 1.0) * own;
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            double ratio = y[i] * exponential(-raw[i]);
            gradient[i] = 1.0 - ratio;
            hessian[i] = ratio;
        }
    }
}

static inline void derive_in(LossKind kind, int64_t n, const double *raw, const double *y,
                             double level, double *gradient, double *hessian) {
    switch (kind) {
    case LOGISTIC: derive_as(LOGISTIC, n, raw, y, level, gradient, hessian); break;
    case SQUARED_ERROR: derive_as(SQUARED_ERROR, n, raw, y, level, gradient, hessian); break;
    case ABSOLUTE_ERROR: derive_as(ABSOLUTE_ERROR, n, raw, y, level, gradient, hessian); break;
    case QUANTILE: derive_as(QUANTILE, n, raw, y, level, gradient, hessian); break;
    case HUBER: derive_as(HUBER, n, raw, y, level, gradient, hessian); break;
    case POISSON_LOSS: derive_as(POISSON_LOSS, n, raw, y, level, gradient, hessian); break;
    case TWEEDIE_LOSS: derive_as(TWEEDIE_LOSS, n, raw, y, level, gradient, hessian); break;
    default: derive_as(GAMMA_LOSS, n, raw, y, level, gradient, hessian);
    }
}

/* gradient << 32 | hessian, each times its scale and rounded to nearest; sums of both are added. */
static inline void pack_in(int64_t n, const double *gradient, const double *hessian,
                           double gradient_scale, double hessian_scale, uint64_t *out,
                           int64_t *sums) {
    uint64_t g_sum = 0, h_sum = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t g = bits_of(gradient[i] * gradient_scale + ROUNDING);
        uint64_t h = bits_of(hessian[i] * hessian_scale + ROUNDING);
        out[i] = g << 32 | (h & 0xFFFFFFFFu);
        g_sum += g - bits_of(ROUNDING);
        h_sum += h - bits_of(ROUNDING);
    }
    sums[0] += (int64_t)g_sum;
    sums[1] += (int64_t)h_sum;
}

/* The largest absolute gradient and the largest hessian, and what is in `largest`, (2,), already.
   Numbers that are not negative have the order of their bits, and maxima of integers take half of
   the time. */
static inline void largest_in(int64_t n, const double *gradient, const double *hessian,
                              double *largest) {
    int64_t g = bits_of(largest[0]), h = bits_of(largest[1]);
    for (int64_t i = 0; i < n; i++) {
        int64_t above = bits_of(fabs(gradient[i])), below = bits_of(hessian[i]);
        g = above > g ? above : g;
        h = below > h ? below : h;
    }
    largest[0] = of_bits(g);
    largest[1] = of_bits(h);
}

/* Shares of classes, from raw predictions that stand class by class, `stride` apart; the largest is
   taken off first. values : (n_classes, ROWS_AT_ONCE), OUT. */
static inline void softmax_in(int64_t n_classes, int64_t n, const double *raw, int64_t stride,
                              double *values) {
    double most[ROWS_AT_ONCE], sum[ROWS_AT_ONCE];
    for (int64_t i = 0; i < n; i++) {
        most[i] = raw[i];
        sum[i] = 0.0;
    }
    for (int64_t k = 1; k < n_classes; k++)
        for (int64_t i = 0; i < n; i++)
            most[i] = raw[k * stride + i] > most[i] ? raw[k * stride + i] : most[i];
    for (int64_t k = 0; k < n_classes; k++)
        for (int64_t i = 0; i < n; i++) {
            double e = exponential(raw[k * stride + i] - most[i]);
            values[k * ROWS_AT_ONCE + i] = e;
            sum[i] += e;
        }
    for (int64_t k = 0; k < n_classes; k++)
        for (int64_t i = 0; i < n; i++)
            values[k * ROWS_AT_ONCE + i] = values[k * ROWS_AT_ONCE + i] / sum[i];
}

static inline void exponential_in(int64_t n, const double *x, double *out) {
    for (int64_t i = 0; i < n; i++)
        out[i] = exponential(x[i]);
}

static inline void logistic_in(int64_t n, const double *x, double *out) {
    for (int64_t i = 0; i < n; i++)
        out[i] = logistic(x[i]);
}

#ifndef DTREES_X86
#define WIDE
#endif

#define UNPACKED(...) __VA_ARGS__

/* A loop for registers of 128 and of 256 bits; the first argument says which of them is run. */
#define TWICE(name, parameters, arguments)                                                         \
    static inline void name##_plain parameters { name##_in arguments; }                            \
    WIDE static inline void name##_wide parameters { name##_in arguments; }                        \
    static inline void name##_by_width(int is_wide, UNPACKED parameters) {                         \
        (is_wide ? name##_wide : name##_plain) arguments;                                          \
    }

TWICE(derive,
      (LossKind kind, int64_t n, const double *raw, const double *y, double level,
       double *gradient, double *hessian),
      (kind, n, raw, y, level, gradient, hessian))
TWICE(pack,
      (int64_t n, const double *gradient, const double *hessian, double gradient_scale,
       double hessian_scale, uint64_t *out, int64_t *sums),
      (n, gradient, hessian, gradient_scale, hessian_scale, out, sums))
TWICE(largest, (int64_t n, const double *gradient, const double *hessian, double *largest),
      (n, gradient, hessian, largest))
TWICE(softmax,
      (int64_t n_classes, int64_t n, const double *raw, int64_t stride, double *values),
      (n_classes, n, raw, stride, values))
TWICE(exponential, (int64_t n, const double *x, double *out), (n, x, out))
TWICE(logistic, (int64_t n, const double *x, double *out), (n, x, out))

#endif
