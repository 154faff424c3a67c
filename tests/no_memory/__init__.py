"""Memory that is not there: each golden model, while an allocation of a kernel fails.

`no_memory.h` stands before the C library's `malloc`, `calloc` and `realloc` and lets some calls of
the kernels fail. A model is made once to count the calls, then again while one of them fails, or
all from one on. It must raise MemoryError or be the same model, and all blocks must be freed.
"""

FOREVER = 1 << 62  # a call that never comes
