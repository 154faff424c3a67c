"""How the codes of each column are counted in rounds, so that what is sent stays small.

    few codes                      a cell for each code            way 0
    many codes, all ordered,       a cell for each interval of     way b: intervals of 2**b codes;
    and there are bounds           neighbouring codes              then the codes of some of them
    many codes, else; sparse       a list of what occurs           LISTED

Intervals are codes that differ in their last bits only, so that nobody has to be told where they
end: those of all blocks are the same. Missing values have an interval of their own::

    code        0   1   2   3   4   5   6   7   8   9        way 2
    interval    0   1   1   1   1   2   2   2   2   3        (code + 3) >> 2
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint8_t

from dtrees.core.data._columns cimport STORED_SPARSE, Column
from dtrees.core.search._intervals cimport has_bounds_for
from dtrees.core.stores._dataset cimport Dataset


def ways_of(Dataset dataset, resolution):
    """How each column is counted.

    Parameters
    ----------
    dataset : Dataset
        At least one row of the table.
    resolution : Resolution

    Returns
    -------
    uint8 (n_columns,)
        Bits of the codes of an interval, or `LISTED`.
    """
    cdef int64_t n_columns = dataset.params.limits.n_columns
    cdef bint has_bounds = (has_bounds_for(&dataset.params.criterion)
                            and not dataset.params.limits.random_splits)
    cdef int64_t interval_codes = resolution.interval_codes
    cdef int64_t n_intervals = resolution.n_intervals
    cdef int64_t listed_codes = resolution.listed_codes
    cdef uint8_t[::1] ways = np.zeros(n_columns, dtype=np.uint8)
    cdef const Column* column
    cdef int64_t j
    for j in range(n_columns):
        column = dataset.columns + j
        if column.storage == STORED_SPARSE:
            ways[j] = LISTED
        elif has_bounds and column.n_ordered == column.n_codes > interval_codes:
            while cells_of(column, ways[j]) > n_intervals + 1:
                ways[j] += 1
        elif column.n_codes > listed_codes:
            ways[j] = LISTED
    return np.asarray(ways)


def without_intervals(ways):
    """The same, but that columns are listed that else are counted by interval; uint8 (k,)."""
    return np.where(ways > 0, LISTED, 0).astype(np.uint8)


def sizes_of(Dataset dataset, const uint8_t[::1] ways):
    """Numbers in the histogram of every column, none of those that are listed; int64 (n_columns,).
    """
    cdef int64_t[::1] sizes = np.zeros(len(ways), dtype=np.int64)
    cdef int32_t j
    for j in range(len(ways)):
        if ways[j] != LISTED:
            sizes[j] = cells_of(dataset.columns + j, ways[j]) * dataset.params.layout.n_words
    return np.asarray(sizes)
