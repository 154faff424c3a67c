/* Large pages for large arrays, where the system gives them to those who ask.
 *
 * An array that is written for the first time is handed out page by page: 6,000 interruptions for
 * 24 MB in pages of 4 KB, 12 in pages of 2 MB. As in numpy, arrays from 4 MB on ask for these. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define LARGE_ARRAY ((size_t)1 << 22)

#ifdef __linux__
#include <sys/mman.h>
#endif

static inline void advise_large(void *array, size_t n_bytes)
{
#ifdef MADV_HUGEPAGE
    if (array != NULL && n_bytes >= LARGE_ARRAY) {
        size_t begin = 4096 - (uintptr_t)array % 4096;
        madvise((char *)array + begin, n_bytes - begin, MADV_HUGEPAGE); /* if it fails, pages are small */
    }
#else
    (void)array, (void)n_bytes;
#endif
}
