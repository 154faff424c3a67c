"""Training sets that grow together: what they share, and the limits of each."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t
from libc.stdlib cimport calloc, free

from dtrees.core.data._columns cimport MOST_INTERVALS, STORED_SPARSE
from dtrees.core.data._memory cimport claim
from dtrees.core.data._structs cimport RowStatistics
from dtrees.core.histogram._layout cimport (
    COUNT, LARGEST_FIELD, PACKED, WEIGHTED_CLASSES, WEIGHTED_SUM, has_classes, words_of
)
from dtrees.core.search._bounds cimport MOST_CLASSES
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores.shared._shared_nodes cimport MOST_CELLS, MOST_SETS
from dtrees.core.stores.shared._shared_state cimport SharedStore

cdef enum:
    EARLIER = 11            # times as many rows more, where all columns have intervals


WIDTH_OF_INTERVALS = MOST_INTERVALS + 1     # of a column, with that of missing values


def has_intervals(bint draws, bint is_constrained, int64_t n_rows, int n_classes, tuning):
    """Whether columns of many codes are searched by intervals.

    is_constrained : values have to rise or fall along some column.
    """
    return (not draws and not is_constrained and n_rows >= tuning.interval_rows
            and n_classes <= MOST_CLASSES)


cdef class TrainingSets:
    """Sets of rows that lack a cell each, and what a growth does with each of them.

    Parameters
    ----------
    dataset : Dataset
        Of all rows.
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
    class_weights : (int64 (n_sets, n_classes), float64 (n_sets, 3)) or None
        What each class weighs in each set, and units: of the weights, of gains, and the scale of
        x log x. The dataset counts rows, or their own weights, and these are multiplied by the
        class weights when they are read. None: the dataset has the weights, the same in all sets.

    Attributes
    ----------
    n_bounded, n_alive : int
        Columns of nodes that were searched by intervals, and those of which some were alive.
    n_shared_nodes, n_shared_rows : int
        Nodes that were searched for two sets or more at once, and rows that they hold together.
    """

    def __cinit__(self, Dataset dataset, const uint16_t[::1] cell, const uint8_t[:, ::1] has,
                  const double[::1] total_weight, const int64_t[:, ::1] least,
                  const uint16_t[::1] times, tuning, class_weights):
        cdef int s
        cdef bint draws = (dataset.params.limits.random_splits or
                           dataset.params.limits.max_features < dataset.params.limits.n_columns)
        assert has.shape[0] <= MOST_SETS and has.shape[1] <= MOST_CELLS
        self.dataset = dataset
        self.cell = cell
        self.n_sets = <int>has.shape[0]
        self.has = has
        self.times = times
        self.of_class = None
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
        if class_weights is not None:
            self.bind_class_weights(class_weights[0], class_weights[1])
        self.choose_cells()
        self.list_dense()
        if has_intervals(draws, dataset.params.limits.monotonic != NULL, dataset.n_rows,
                         dataset.params.criterion.n_classes, tuning):
            self.intervals = dataset.bound.intervals(dataset.n_rows, tuning.interval_codes)
            if self.intervals != NULL:
                self.part_earlier()
        elif dataset.params.limits.random_splits or dataset.params.limits.monotonic != NULL:
            self.part_at_once(tuning.interval_codes)

    def __dealloc__(self):
        free(self.params_of)
        free(self.dense)
        free(self.slot)

    def inherit(self, above):
        """Take what the ancestors of the node that has all rows allow it, by set, as `Above`."""
        self.above = above

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

    cdef void describe(self, SharedStore* store):
        """Tell the store of a thread what it has to know of the sets."""
        cdef Dataset dataset = self.dataset
        store.n_sets = self.n_sets
        store.store.params = &dataset.params
        store.params_of = self.params_of
        store.of_row = &dataset.of_row
        store.of_class = NULL if self.of_class is None else &self.of_class[0, 0]
        store.is_packed = self.is_packed
        store.layout = self.layout
        store.intervals = self.intervals
        store.interval_rows, store.interval_codes = self.interval_rows, self.interval_codes
        store.dense, store.n_dense, store.slot = self.dense, self.n_dense, self.slot
        store.n_rows, store.n_stored = dataset.n_rows, self.n_stored

    cdef bind_class_weights(self, const int64_t[:, ::1] of_class, const double[:, ::1] units):
        """Parameters of sets whose rows have weights."""
        cdef TrainParameters* params
        cdef int s
        assert of_class.shape[0] == self.n_sets and units.shape[0] == self.n_sets
        self.of_class = of_class
        for s in range(self.n_sets):
            params = &self.params_of[s]
            params.criterion.weight_unit = units[s, 0]
            params.criterion.gain_unit = units[s, 1]
            params.criterion.fixed_point = params.layout.fixed_point = units[s, 2]
            params.criterion.xlogx = NULL
            params.criterion.xlogx_size = 0
            params.layout.kind = (WEIGHTED_CLASSES if has_classes(params.layout.kind)
                                  else WEIGHTED_SUM)
            params.layout.n_words = words_of(params.layout.kind, params.layout.n_classes)
            if params.count_rule.n_words > 0:
                params.count_rule.n_words = params.layout.n_words

    cdef part_earlier(self):
        """Columns of many codes are cheaper to sort once for each set than to count in small nodes:
        the more of them there are, the larger are the nodes whose sets go on alone."""
        cdef int64_t n_columns = self.dataset.params.limits.n_columns
        cdef int64_t many = 0
        cdef int64_t j
        for j in range(n_columns):
            many += self.intervals[j].column.codes != NULL
        self.shared_rows += self.shared_rows * EARLIER * many // n_columns

    cdef part_at_once(self, int64_t interval_codes):
        """Where columns of many codes have no intervals, sets go on alone from the beginning: to
        count all codes, for each cell and set, costs more than that."""
        cdef int64_t n_columns = self.dataset.params.limits.n_columns
        cdef int64_t many = 0
        cdef int64_t j
        for j in range(n_columns):
            many += (self.dataset.columns[j].storage != STORED_SPARSE
                     and self.dataset.columns[j].n_codes >= interval_codes)
        if 2 * many > n_columns and self.shared_rows > 0:
            self.shared_rows = <int64_t>1 << 60  # more than any table has

    cdef choose_cells(self):
        """Two classes: all that a row adds is one number, where no sum overflows its field."""
        cdef const RowStatistics* of_row = &self.dataset.of_row
        cdef int64_t total = 0
        cdef int64_t i
        self.layout = self.dataset.params.layout
        if of_row.value != NULL:
            return
        if has_classes(self.layout.kind):
            if (self.layout.n_classes != 2 or self.params_of[0].draws or self.of_class is not None):
                return
        elif self.layout.kind not in (COUNT, WEIGHTED_SUM):
            return
        for i in range(self.dataset.n_rows):
            total += self.dataset.live[i] if of_row.weight == NULL else of_row.weight[i]
            if total > LARGEST_FIELD:
                return
        self.is_packed = True
        self.layout.kind = PACKED
        self.layout.n_words = 1
