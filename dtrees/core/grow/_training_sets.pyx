"""Training sets that grow together: what they share, and the limits of each."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport calloc, free

from dtrees.core.data._columns cimport STORED_SPARSE
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.histogram._layout cimport COUNT, LARGEST_FIELD, PACKED, WEIGHTED_SUM
from dtrees.core.search._intervals cimport has_bounds_for
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.shared._shared_nodes cimport MOST_CELLS, MOST_SETS


cdef class TrainingSets:
    """Sets of rows that lack a cell each, and what a growth does with each of them.

    Parameters
    ----------
    dataset : Dataset
        Of all rows. Splits are not random, and columns not sparse where they are drawn
        (`why_not_shared`).
    cell : uint16 (n_rows,)
    has : uint8 (n_sets, n_cells)
        1 where a set has the rows of a cell. At most `MOST_SETS` sets, each of which has rows, and
        `MOST_CELLS` cells.
    total_weight : float64 (n_sets,)
        In the user's units.
    least : int64 (n_sets, 3)
        Rows of a node that is split, rows of a leaf, and its weight in units of the weights.
    times : uint16 (n_rows,) or None
        The weights, where rows count a whole number of times and columns are drawn.
    tuning : Tuning

    Attributes
    ----------
    n_bounded, n_alive : int
        Columns of nodes that were searched by intervals, and those of which some were alive.
    n_shared_nodes, n_shared_rows : int
        Nodes that were searched for two sets or more at once, and rows that they hold together.
    """

    def __cinit__(self, Dataset dataset, const uint16_t[::1] cell, const uint8_t[:, ::1] has,
                  const double[::1] total_weight, const int64_t[:, ::1] least,
                  const uint16_t[::1] times, tuning):
        cdef int s
        cdef bint draws = dataset.params.limits.max_features < dataset.params.limits.n_columns
        assert has.shape[0] <= MOST_SETS and has.shape[1] <= MOST_CELLS
        self.dataset = dataset
        self.cell = cell
        self.n_sets = <int>has.shape[0]
        self.has = has
        self.times = times
        self.shared_rows = tuning.shared_rows
        self.interval_rows = tuning.interval_rows
        self.interval_codes = tuning.interval_codes
        self.params_of = <TrainParameters*>calloc(self.n_sets, sizeof(TrainParameters))
        if self.params_of == NULL:
            raise MemoryError
        for s in range(self.n_sets):
            self.params_of[s] = dataset.params
            self.params_of[s].limits.total_weight = total_weight[s]
            self.params_of[s].limits.min_samples_split = least[s, 0]
            self.params_of[s].limits.min_rows = least[s, 1]
            self.params_of[s].limits.min_weight = least[s, 2]
            self.params_of[s].count_rule.least_rows = tuning.counted_rows
            self.params_of[s].draws = draws
        self.choose_cells()
        self.list_dense()
        if (not draws and dataset.n_rows >= tuning.interval_rows
                and has_bounds_for(&dataset.params.criterion)):
            self.intervals = dataset.bound.intervals(dataset.n_rows, tuning.interval_codes)

    def __dealloc__(self):
        free(self.params_of)
        free(self.dense)
        free(self.slot)

    cdef list_dense(self):
        """Which columns are dense; the others have entries."""
        cdef int64_t n_columns = self.dataset.params.limits.n_columns
        cdef int64_t j
        if not (claim(<void**>&self.dense, (n_columns + 1) * sizeof(int32_t))
                and claim(<void**>&self.slot, (n_columns + 1) * sizeof(int32_t))):
            raise MemoryError
        for j in range(n_columns):
            self.slot[j] = -1
            if self.dataset.columns[j].storage == STORED_SPARSE:
                self.n_stored += self.dataset.columns[j].stored
                continue
            self.slot[j] = <int32_t>self.n_dense
            self.dense[self.n_dense] = <int32_t>j
            self.n_dense += 1

    cdef choose_cells(self):
        """Two classes: all that a row adds is one number, where no sum overflows its field."""
        cdef const RowStatistics* of_row = &self.dataset.of_row
        cdef int64_t total = 0
        cdef int64_t i
        self.layout = self.dataset.params.layout
        if of_row.value != NULL or self.dataset.params.layout.kind not in (COUNT, WEIGHTED_SUM):
            return
        for i in range(self.dataset.n_rows):
            total += self.dataset.live[i] if of_row.weight == NULL else of_row.weight[i]
            if total > LARGEST_FIELD:
                return
        self.is_packed = True
        self.layout.kind = PACKED
        self.layout.n_words = 1
