/* Whether loops for registers of 256 bits are compiled, and whether this machine runs them. */
#ifndef DTREES_WIDE_H
#define DTREES_WIDE_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(DTREES_DEBUG)
#include <immintrin.h>
#define DTREES_X86 1
#define WIDE __attribute__((target("avx2,popcnt")))
#define HAS_WIDE() (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
/* Those left out have `pext`, and take long for it: 18 cycles and more. */
#define HAS_PEXT()                                                                                 \
    (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")                              \
     && !__builtin_cpu_is("bdver4") && !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2"))
#else
#define HAS_WIDE() 0
#define HAS_PEXT() 0
#endif

#endif
