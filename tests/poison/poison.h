/* Memory that is full of one byte when it is handed out: for LD_PRELOAD, on Linux with glibc.

   Every block of the heap, whoever asks for it, and pages that the package's kernels or Python's
   mmap ask for. What is cleared (calloc) stays clear. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static volatile int pattern = -1; /* none */

__attribute__((constructor)) static void begin(void) {
    const char* given = getenv("DTREES_POISON");
    if (given)
        pattern = (int)strtol(given, NULL, 16);
}

void poison_with(int byte) {
    pattern = byte;
}

static void* filled(void* block, size_t from, size_t to) {
    if (block && pattern >= 0 && from < to)
        memset((char*)block + from, pattern, to - from);
    return block;
}

void* malloc(size_t n) {
    void* block = __libc_malloc(n);
    return filled(block, 0, malloc_usable_size(block));
}

void* realloc(void* old, size_t n) {
    size_t before = malloc_usable_size(old);
    void* block = __libc_realloc(old, n);
    return filled(block, before, n ? malloc_usable_size(block) : 0);
}

void* memalign(size_t alignment, size_t n) {
    return filled(__libc_memalign(alignment, n), 0, n);
}

void* aligned_alloc(size_t alignment, size_t n) {
    return memalign(alignment, n);
}

int posix_memalign(void** room, size_t alignment, size_t n) {
    *room = memalign(alignment, n);
    return *room ? 0 : ENOMEM;
}

static int is_ours(void* caller) {
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname
           && (strstr(info.dli_fname, "/mmap.") || (strstr(info.dli_fname, "/dtrees/")
               && !strstr(info.dli_fname, "/site-packages/")));
}

void* mmap(void* at, size_t n, int protection, int flags, int file, off_t offset) {
    void* room = (void*)syscall(SYS_mmap, at, n, protection, flags, file, offset);
    int is_new = room != MAP_FAILED && (flags & MAP_ANONYMOUS) && (protection & PROT_WRITE);
    return is_new && is_ours(__builtin_return_address(0)) ? filled(room, 0, n) : room;
}

void* mmap64(void* at, size_t n, int protection, int flags, int file, off_t offset)
    __attribute__((alias("mmap")));

void* mremap(void* old, size_t old_n, size_t n, int flags, ...) {
    void *room, *fixed = NULL;
    va_list more;
    if (flags & MREMAP_FIXED) {
        va_start(more, flags);
        fixed = va_arg(more, void*);
        va_end(more);
    }
    room = (void*)syscall(SYS_mremap, old, old_n, n, flags, fixed);
    return room != MAP_FAILED && is_ours(__builtin_return_address(0)) ? filled(room, old_n, n)
                                                                       : room;
}
