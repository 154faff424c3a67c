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

/* Let pages of a file that is mapped and shared count no more as memory of the process. The system
   keeps them as long as there is room. Of other memory the contents would be lost. */
static inline void let_go_of_pages(const void *array, size_t n_bytes) {
#ifdef MADV_DONTNEED
    size_t beyond = (uintptr_t)array % (size_t)sysconf(_SC_PAGESIZE);
    madvise((char *)array - beyond, n_bytes + beyond, MADV_DONTNEED);
#else
    (void)array;
    (void)n_bytes;
#endif
}

/* Pages of the system: memory that is there when it is written for the first time.

   Room for twice as many records as there are costs nothing in pages, they grow without a copy, and
   the system has them back at once from whatever thread. Heaps of threads keep what was freed. */
#ifdef __linux__
/* More room, with what there was (NULL: nothing); NULL without memory, and the old room stays. */
static inline void *resize_pages(void *old, size_t old_bytes, size_t n_bytes) {
    void *room;
    if (old != NULL) {
        room = mremap(old, old_bytes, n_bytes, MREMAP_MAYMOVE);
        return room == MAP_FAILED ? NULL : room;
    }
    room = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return NULL;
    madvise(room, n_bytes, MADV_NOHUGEPAGE); /* or room that is not written yet is there, too */
    return room;
}

static inline void free_pages(void *room, size_t n_bytes) {
    munmap(room, n_bytes);
}

#else
static inline void *resize_pages(void *old, size_t old_bytes, size_t n_bytes) {
    (void)old;
    (void)old_bytes;
    (void)n_bytes;
    return NULL;
}

static inline void free_pages(void *room, size_t n_bytes) {
    (void)room;
    (void)n_bytes;
}
#endif

#endif
