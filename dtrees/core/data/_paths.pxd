"""Switches of special paths: the constant 1, but in the build of `make paths`.

A special path is a second way to the same bits, there for speed or memory only. The one place that
chooses it asks ``PATH_IS_ON("its_name")``. In a build with ``DTREES_PATHS=1``, the environment
variable ``DTREES_PATHS_OFF`` names the paths that are switched off, with commas between them; each
place reads it once. docs/development/paths.md has a row for every path.
"""

cdef extern from * nogil:
    """
    #ifdef DTREES_PATHS
    #include <stdlib.h>
    #include <string.h>
    #define HAS_PATH_SWITCHES 1

    /* 1: the path is on, 2: it is off. */
    __attribute__((unused)) static int state_of_path(const char* name)
    {
        const char* at = getenv("DTREES_PATHS_OFF");
        size_t length = strlen(name);
        while (at != NULL && *at != '\\0') {
            size_t n = strcspn(at, ",");
            if (n == length && memcmp(at, name, n) == 0)
                return 2;
            at += n + (at[n] == ',');
        }
        return 1;
    }

    #define PATH_IS_ON(name)                                                \\
        ({                                                                  \\
            static int state = 0;                                           \\
            if (__atomic_load_n(&state, __ATOMIC_RELAXED) == 0)             \\
                __atomic_store_n(&state, state_of_path(name), __ATOMIC_RELAXED); \\
            __atomic_load_n(&state, __ATOMIC_RELAXED) == 1;                 \\
        })
    #else
    #define HAS_PATH_SWITCHES 0
    #define PATH_IS_ON(name) ((void)(name), 1)
    #endif
    """
    bint HAS_PATH_SWITCHES
    bint PATH_IS_ON(const char* name)
