/* Allocations of the package's kernels that fail: for LD_PRELOAD, on Linux with glibc.

   Only calls from a kernel (a shared object below "/dtrees/", and not one of a library) are
   counted, while a switch is on.
   The library also counts which of their blocks are not freed yet, and the bytes of these. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void __libc_free(void*);

#define SLOTS (1 << 20)                 /* a power of two, many more than there are blocks */
#define GONE ((void*)1)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void* blocks[SLOTS];             /* open addressing */
static int64_t sizes[SLOTS];
static int64_t n_blocks, n_bytes, most_bytes, n_calls, failing = -1, last_failing = -1;
static volatile int is_on;

void no_memory_begin(int64_t first, int64_t last) {
    n_calls = 0;
    failing = first;
    last_failing = last;
    most_bytes = n_bytes;
    is_on = 1;
}

/* Calls since the beginning. */
int64_t no_memory_end(void) {
    is_on = 0;
    return n_calls;
}

int64_t no_memory_blocks(void) {
    return n_blocks;
}

/* Most bytes that were claimed at one time since the beginning. */
int64_t no_memory_most_bytes(void) {
    return most_bytes;
}

static int is_kernel(void* caller) {
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "/dtrees/")
           && strstr(info.dli_fname, ".so") && !strstr(info.dli_fname, "/site-packages/");
}

static int fails(void) {
    int64_t call;
    if (!is_on)
        return 0;
    call = __atomic_fetch_add(&n_calls, 1, __ATOMIC_RELAXED);
    return failing <= call && call <= last_failing;
}

static size_t slot_of(void* block) {
    return ((uintptr_t)block * UINT64_C(0x9E3779B97F4A7C15)) >> 44 & (SLOTS - 1);
}

static void remember(void* block, size_t n) {
    size_t at = slot_of(block);
    if (!block)
        return;
    pthread_mutex_lock(&lock);
    while (blocks[at] && blocks[at] != GONE)
        at = (at + 1) & (SLOTS - 1);
    blocks[at] = block;
    sizes[at] = n;
    n_blocks++;
    n_bytes += n;
    if (n_bytes > most_bytes)
        most_bytes = n_bytes;
    pthread_mutex_unlock(&lock);
}

static size_t size_of(void* block) {
    size_t at = slot_of(block), n;
    pthread_mutex_lock(&lock);
    while (blocks[at] && blocks[at] != block)
        at = (at + 1) & (SLOTS - 1);
    n = blocks[at] && block ? sizes[at] : 0;
    pthread_mutex_unlock(&lock);
    return n;
}

static void forget(void* block) {
    size_t at = slot_of(block);
    if (!block || !n_blocks)
        return;
    pthread_mutex_lock(&lock);
    while (blocks[at] && blocks[at] != block)
        at = (at + 1) & (SLOTS - 1);
    if (blocks[at]) {
        blocks[at] = blocks[(at + 1) & (SLOTS - 1)] ? GONE : NULL;
        n_blocks--;
        n_bytes -= sizes[at];
    }
    pthread_mutex_unlock(&lock);
}

void* malloc(size_t n) {
    void* block;
    int mine = is_on && is_kernel(__builtin_return_address(0));
    if (mine && fails())
        return NULL;
    block = __libc_malloc(n);
    if (mine)
        remember(block, n);
    return block;
}

void* calloc(size_t n, size_t size) {
    void* block;
    int mine = is_on && is_kernel(__builtin_return_address(0));
    if (mine && fails())
        return NULL;
    block = __libc_calloc(n, size);
    if (mine)
        remember(block, n * size);
    return block;
}

void* realloc(void* old, size_t n) {
    void* block;
    int mine = is_on && is_kernel(__builtin_return_address(0));
    size_t before = mine ? size_of(old) : 0;
    if (mine && fails())
        return NULL;
    forget(old);
    block = __libc_realloc(old, n);
    if (mine)
        remember(block ? block : old, block ? n : before);
    return block;
}

void free(void* block) {
    forget(block);
    __libc_free(block);
}

/* Pages of the system (`data/memory.h`), of which all that is asked for counts. */
void* mmap(void* at, size_t n, int protection, int flags, int file, off_t offset) {
    void* room;
    int mine = is_on && is_kernel(__builtin_return_address(0));
    if (mine && fails())
        return MAP_FAILED;
    room = (void*)syscall(SYS_mmap, at, n, protection, flags, file, offset);
    if (mine && room != MAP_FAILED)
        remember(room, n);
    return room;
}

void* mmap64(void* at, size_t n, int protection, int flags, int file, off_t offset)
    __attribute__((alias("mmap")));

void* mremap(void* old, size_t old_n, size_t n, int flags, ...) {
    void *room, *fixed = NULL;
    va_list more;
    int mine = is_on && is_kernel(__builtin_return_address(0));
    if (mine && fails())
        return MAP_FAILED;
    if (flags & MREMAP_FIXED) {
        va_start(more, flags);
        fixed = va_arg(more, void*);
        va_end(more);
    }
    room = (void*)syscall(SYS_mremap, old, old_n, n, flags, fixed);
    if (mine && room != MAP_FAILED) {
        forget(old);
        remember(room, n);
    }
    return room;
}

int munmap(void* room, size_t n) {
    forget(room);
    return syscall(SYS_munmap, room, n);
}
