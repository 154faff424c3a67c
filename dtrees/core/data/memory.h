/* Large pages for large arrays, where the system gives them to those who ask.

   An array that is written for the first time is handed out page by page: 6,000 interruptions for
   24 MB in pages of 4 KB, 12 in pages of 2 MB. As in numpy, arrays from 4 MB on ask for these. */
#ifndef DTREES_MEMORY_H
#define DTREES_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

#define LARGE_ARRAY ((size_t)1 << 22)

static inline void advise_large(void *array, size_t n_bytes) {
#ifdef MADV_HUGEPAGE
    if (array != NULL && n_bytes >= LARGE_ARRAY) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t begin = page - (uintptr_t)array % page;
        madvise((char *)array + begin, n_bytes - begin, MADV_HUGEPAGE); /* or pages are small */
    }
#else
    (void)array;
    (void)n_bytes;
#endif
}

#endif
