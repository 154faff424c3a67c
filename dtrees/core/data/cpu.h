/* Whether loops for registers of 256 bits are compiled, and whether this machine runs them. */
#ifndef DTREES_WIDE_H
#define DTREES_WIDE_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(DTREES_DEBUG)
#include <immintrin.h>
#define DTREES_X86 1
#define WIDE __attribute__((target("avx2,popcnt")))
#define HAS_WIDE() (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
#else
#define HAS_WIDE() 0
#endif

#endif
