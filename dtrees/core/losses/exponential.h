/* exp(x) in loops that the compiler turns into vectors. */
#ifndef DTREES_EXPONENTIAL_H
#define DTREES_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

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

#endif
