"""Whether loops use registers of 256 bits.

Scans of entries (`_two_class_scan`, `_number_scan`), random splits (`_random_split`), partitions
(`_partition`, `_shared_nodes`) and predictions (`_walk`) have loops for them beside others. Which
one runs is decided once, by what the processor has; the results are the same.
Nodes of few rows (`_few_rows`) ask for `pext` besides.
"""

from dtrees.core.data._paths cimport HAS_PATH_SWITCHES

cdef extern from "data/cpu.h" nogil:
    bint HAS_WIDE()
    bint HAS_PEXT()

is_wide = HAS_WIDE()
has_pext = HAS_PEXT()


def use_wide(bint wide):
    """Whether to use registers of 256 bits, where there are any; returns what it was before."""
    global is_wide
    before = is_wide
    is_wide = wide and HAS_WIDE()
    return before


def has_path_switches():
    """Whether the environment can switch special paths off in this build; see _paths.pxd."""
    return HAS_PATH_SWITCHES
