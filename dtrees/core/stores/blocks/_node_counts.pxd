"""Where the sums of a node stand; see _node_counts.pyx."""

cpdef enum:
    # The moment is in three parts, which add up without a carry.
    N = 0
    WEIGHT = 1
    TARGET = 2
    MOMENT = 3
    LOWEST = 6
    HIGHEST = 7
    CLASS_0 = 8
