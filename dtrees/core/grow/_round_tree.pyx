"""The tree of one training set whose rows are elsewhere: its records, and the node step on them.

    blocks ──▶ sums, histograms added up ──▶ `RoundTree` ──▶ FoundSplit ──▶ blocks

A node is recorded as soon as its sums are known, and searched when its histogram is
(`_histogram_store`). It is split then, or when the codes are known of some intervals, which the
search asks for. Records are those of every other growth, in the order of the rounds.
"""
import numpy as np

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport UINT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport words_of_subset
from dtrees.core.data._structs cimport IN_SUBSET, LEAF, Inherited, int128_t
from dtrees.core.grow._node_buffer cimport (
    NodeBuffer, Record, copy_words, free_node_buffer, partial_tree_of, reserve_records, stand_for,
    write_record
)
from dtrees.core.grow._node_step cimport search_members, split_members
from dtrees.core.histogram._layout cimport Layout
from dtrees.core.search._criterion cimport NONE
from dtrees.core.search._open_node cimport OpenNode, describe, free_node
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search, free_search, new_search
from dtrees.core.stores._dataset cimport Dataset
from dtrees.core.stores._store cimport Member, only_member
from dtrees.core.stores.blocks._histogram_store cimport (
    AliveColumn, HistogramStore, Places, bound_intervals_of, histogram_store, mark_intervals_of,
    search_again, words_of_alive
)
from dtrees.core.stores.blocks._node_counts cimport (
    CLASS_0, HIGHEST, HIGHEST_SHARE, LOWEST, LOWEST_SHARE, MOMENT, N, TARGET, WEIGHT
)

from dtrees.core.stores.blocks.messages import FoundSplit


cdef class RoundNode:
    """A node of one training set, which has no split yet; a root is given its depth and key."""
    cdef OpenNode node
    cdef int64_t n_set_words    # as in `Limits`
    cdef int64_t n_classes      # of `class_totals`
    cdef double lowest          # of targets for their weights, of a regression
    cdef double highest

    def __cinit__(self, int64_t depth=0, uint64_t path=0):
        self.node.depth = depth
        self.node.path = path
        self.node.parent = -1
        self.lowest = 0
        self.highest = 1

    def __dealloc__(self):
        free_node(&self.node)

    def __reduce__(self):
        cdef OpenNode bare = self.node
        bare.class_totals = NULL
        bare.features = NULL
        bare.few_columns = NULL
        bare.histogram = NULL
        bare.above.sets = NULL
        return node_as_it_was, (
            PyBytes_FromStringAndSize(<char*>&bare, sizeof(OpenNode)),
            bytes_of(self.node.class_totals, self.n_classes),
            bytes_of(self.node.above.sets, self.n_set_words),
            self.n_set_words, self.n_classes, self.lowest, self.highest)

    @property
    def depth(self):
        return self.node.depth

    @property
    def path(self):
        return self.node.path

    @property
    def above(self):
        """What its ancestors allow it, as `dtrees.core.grow.source.Above`."""
        cdef const Inherited* above = &self.node.above
        sets = bytes_of(above.sets, self.n_set_words)
        return (above.lower if above.has_lower else None,
                above.upper if above.has_upper else None, sets)

    @property
    def n(self):
        """Rows; of a root only when it is recorded."""
        return self.node.totals.n


cdef object bytes_of(const void* numbers, int64_t n):
    """Some numbers of eight bytes as bytes; None: there are none."""
    return None if numbers == NULL else PyBytes_FromStringAndSize(<char*>numbers, 8 * n)


cdef void* copied(numbers) except? NULL:
    """The bytes, in memory of their own; NULL for None."""
    cdef const uint8_t[::1] of_bytes
    cdef void* found
    if numbers is None:
        return NULL
    of_bytes = numbers
    found = malloc(max(1, len(of_bytes)))
    if found == NULL:
        raise MemoryError
    if len(of_bytes) > 0:
        memcpy(found, &of_bytes[0], len(of_bytes))
    return found


def node_as_it_was(const uint8_t[::1] bare, class_totals, sets, n_set_words, n_classes, lowest,
                   highest):
    """A node from its pickle, which processes of one machine type exchange."""
    cdef RoundNode found = RoundNode()
    if len(bare) != sizeof(OpenNode):
        raise ValueError("This node is of another build.")
    memcpy(&found.node, &bare[0], sizeof(OpenNode))
    found.node.class_totals = <int64_t*>copied(class_totals)
    found.node.above.sets = <uint64_t*>copied(sets)
    found.n_set_words, found.n_classes = n_set_words, n_classes
    found.lowest, found.highest = lowest, highest
    return found


cdef class RoundTree:
    """A tree of a training set.

    Parameters
    ----------
    dataset : Dataset
        Of a few rows, with the columns and units of all.
    rules : GrowthRules
    scale : Scale
    counted : Dataset or None, default=None
        The same as blocks have it, where these count without the class weights of the set.
    of_class : int64 (n_classes,) or None, default=None
        These weights, which are in the sums of nodes, and not in histograms.
    piece : PartialTree or None, default=None
        The records so far.
    """
    cdef Dataset dataset
    cdef Dataset counted
    cdef const int64_t[::1] of_class
    cdef TrainParameters* params
    cdef NodeBuffer out
    cdef list subtrees
    cdef readonly object rules
    cdef readonly object scale

    def __cinit__(self, Dataset dataset, rules, scale, Dataset counted=None,
                  const int64_t[::1] of_class=None, piece=None):
        self.dataset = dataset
        self.counted = dataset if counted is None else counted
        self.of_class = of_class
        self.params = &dataset.params
        self.subtrees = []
        self.rules = rules
        self.scale = scale
        if piece is not None:
            self.write_piece(piece)

    def __dealloc__(self):
        free_node_buffer(&self.out)

    cdef write_piece(self, piece):
        """Write the records of a piece, which is the first one."""
        cdef int64_t n = len(piece.nodes), S = self.params.n_statistics
        cdef const uint8_t[::1] nodes = piece.nodes.view(np.uint8)
        cdef const int64_t[:, ::1] statistics = piece.statistics
        cdef const uint64_t[::1] words = piece.words
        if not reserve_records(&self.out, n, S):
            raise MemoryError
        self.out.count = n
        if n > 0:
            memcpy(self.out.nodes, &nodes[0], n * sizeof(Record))
            memcpy(self.out.statistics, &statistics[0, 0], n * S * sizeof(int64_t))
        if len(words) > 0 and copy_words(&self.out, &words[0], len(words)) < 0:
            raise MemoryError

    def record(self, RoundNode node, const int64_t[::1] sums):
        """Record a node whose sums are known (as `_node_counts.count`); whether it stays a leaf."""
        cdef OpenNode* open = &node.node
        cdef int64_t limb = <int64_t>1 << 32
        cdef size_t n_bytes = self.has_class_totals(node)
        if sums[N] > UINT32_MAX:
            raise ValueError(f"A node of {sums[N]:,} rows: a tree counts up to {UINT32_MAX:,}.")
        open.totals.n = sums[N]
        open.totals.weight = sums[WEIGHT]
        open.totals.target = sums[TARGET]
        open.totals.moment = (<int128_t>sums[MOMENT] * limb + sums[MOMENT + 1]) * limb
        open.totals.moment += sums[MOMENT + 2]
        open.totals.lowest = sums[LOWEST]
        open.totals.highest = sums[HIGHEST]
        if n_bytes == 0:
            node.lowest = <double>sums[LOWEST_SHARE]
            node.highest = <double>sums[HIGHEST_SHARE]
        if n_bytes > 0:
            memcpy(open.class_totals, &sums[CLASS_0], n_bytes)
        describe(open, self.params)
        self.write(open)
        return open.is_leaf

    cdef size_t has_class_totals(self, RoundNode node) except? 0:
        """Let a node have room for sums of classes, or outputs, if there are any; its bytes."""
        cdef size_t n_bytes = self.params.criterion.n_classes * sizeof(int64_t)
        if n_bytes > 0 and node.node.class_totals == NULL:
            node.node.class_totals = <int64_t*>malloc(n_bytes)
            if node.node.class_totals == NULL:
                raise MemoryError
            node.n_classes = self.params.criterion.n_classes
        return n_bytes

    cdef write(self, OpenNode* open):
        write_record(&self.out, self.params, open)
        if self.out.out_of_memory:
            raise MemoryError

    def search(self, RoundNode node, histogram, columns, ways, first, one_by_one=None):
        """Search a recorded node; see `RoundSearch`."""
        return RoundSearch(self, node, histogram, columns, ways, first, one_by_one)

    cdef test_of(self, const Record* record):
        cdef int64_t n_words
        cdef uint64_t[::1] words
        subset = None
        if record.test == IN_SUBSET:
            n_words = words_of_subset(self.params.columns + record.column)
            subset = words = np.empty(n_words, dtype=np.uint64)
            memcpy(&words[0], self.out.words + record.subset, n_words * sizeof(uint64_t))
        return FoundSplit(record.column, record.test, record.boundary, bool(record.missing_left),
                          subset)

    def reserve(self, RoundNode node):
        """Record a node whose sums are not known; `graft` takes its place."""
        cdef size_t n_bytes = self.has_class_totals(node)
        if n_bytes > 0:
            memset(node.node.class_totals, 0, n_bytes)
        self.write(&node.node)

    def graft(self, RoundNode node, subtree):
        """Let a finished subtree, in preorder, take the place of a node that is reserved."""
        self.subtrees.append(subtree)
        stand_for(&self.out, node.node.record, len(self.subtrees))

    def pieces(self):
        """The records and the grafted subtrees, for `dtrees.core.grow.assembly.join`."""
        return [partial_tree_of(&self.out, self.params.n_statistics), *self.subtrees]


cdef class RoundSearch:
    """The search of a node of one set, which may want to know more of some columns.

    Parameters
    ----------
    tree : RoundTree
    node : RoundNode
        That is recorded.
    histogram : Histogram
        Of some columns.
    columns : int32 (k,)
        Those that are not listed, as the histogram has them.
    ways : uint8 (n_columns,)
        By column, as `_node_counts` has them.
    first : int64 (n_columns + 1,)
        Places of the columns before each one.
    one_by_one : int32 (k,) or None, default=None
        All of the columns, where the first one that can be split is the last to be looked at. None
        of them is counted by interval.

    Attributes
    ----------
    wanted : dict of int to uint64 (n_intervals // 64 + 1,)
        Columns whose codes are wanted, and a bit for each interval that is.
    """
    cdef RoundTree tree
    cdef RoundNode node
    cdef HistogramStore store
    cdef Search* q
    cdef list arrays            # whose memory the store points to
    cdef AliveColumn* again
    cdef readonly dict wanted

    def __cinit__(self, RoundTree tree, RoundNode node, histogram, const int32_t[::1] columns,
                  const uint8_t[::1] ways, const int64_t[::1] first,
                  const int32_t[::1] one_by_one):
        cdef const int64_t[::1] dense = histogram.dense
        cdef const Layout* layout = &tree.counted.params.layout
        cdef int64_t[::1] cell = np.empty(3 * layout.n_words, dtype=np.int64)
        cdef Member member
        cdef Search* q = new_search(&tree.params.criterion, tree.params.layout.kind,
                                    tree.dataset.of_row, &tree.params.limits)
        if q == NULL:
            raise MemoryError
        self.q = q
        self.tree = tree
        self.node = node
        self.wanted = {}
        self.arrays = [dense, cell, columns, ways, first, one_by_one]
        self.store = histogram_store(tree.params, layout, q)
        if tree.of_class is not None:
            self.store.of_class = &tree.of_class[0]
        self.store.first = &first[0]
        self.store.cell = &cell[0]
        self.store.ways = &ways[0]
        self.store.lowest = node.lowest
        self.store.highest = node.highest
        self.store.listed = self.places_of(histogram.places, histogram.values)
        if len(dense) > 0:
            self.store.histogram = &dense[0]
            self.store.columns = &columns[0]
            self.store.n_columns = len(columns)
        if one_by_one is not None:
            self.store.one_by_one = &one_by_one[0]
            self.store.n_one_by_one = len(one_by_one)
        member = self.member(NULL, NULL)
        with nogil:
            search_members(&self.store.store, &member, 1)
        self.check_memory()
        if one_by_one is None and len(dense) > 0:
            self.want()

    def __dealloc__(self):
        free_search(self.q)
        free(self.again)

    cdef Places places_of(self, places, values):
        """A list, which lives as long as the search."""
        cdef const int64_t[::1] place = places
        cdef const int64_t[::1] value = values
        cdef Places found = Places(NULL, NULL, len(place))
        self.arrays += [place, value]
        if len(place) > 0:
            found.place = &place[0]
            found.value = &value[0]
        return found

    cdef Member member(self, OpenNode* left, OpenNode* right):
        return only_member(&self.node.node, self.tree.params, self.q, left, right)

    cdef check_memory(self):
        if self.store.store.out_of_memory or self.q.out_of_memory or self.tree.out.out_of_memory:
            raise MemoryError

    cdef want(self):
        """Find out which codes are wanted."""
        cdef double[::1] reach = np.empty(self.store.n_columns)
        cdef uint64_t[::1] alive
        cdef int64_t k
        cdef bint any
        self.store.reach = &reach[0]
        with nogil:
            any = bound_intervals_of(&self.store)
        for k in range(self.store.n_columns if any else 0):
            if reach[k] <= NONE or reach[k] < self.store.best:
                continue
            alive = np.zeros(words_of_alive(&self.store, k), dtype=np.uint64)
            mark_intervals_of(&self.store, k, &alive[0])
            self.wanted[self.store.columns[k]] = np.asarray(alive)
        self.store.reach = NULL
        self.check_memory()

    def take(self, wanted, places, values):
        """Search once more, with the codes that were wanted.

        Parameters
        ----------
        wanted : dict of int to uint64 (n,)
            As the attribute, columns ascending; may have more than this node wanted.
        places, values : int64 (n,)
            The codes of these intervals, as a list.
        """
        cdef const uint64_t[::1] alive
        cdef int64_t k
        self.again = <AliveColumn*>calloc(len(wanted) + 1, sizeof(AliveColumn))
        if self.again == NULL:
            raise MemoryError
        for k, (column, bits) in enumerate(wanted.items()):
            alive = bits
            self.arrays.append(alive)
            self.again[k] = AliveColumn(column, &alive[0])
        self.store.again = self.again
        self.store.n_again = len(wanted)
        self.store.codes = self.places_of(places, values)
        with nogil:
            search_again(&self.store)
        self.check_memory()

    def split(self):
        """Split the node, if that gains enough; once, when nothing is wanted any more.

        Returns
        -------
        split : (FoundSplit, RoundNode, RoundNode) or None
            The test, and the children without sums. None: there is none, or it gains too little.
        can_be_split : bool
        """
        cdef RoundNode left = RoundNode()
        cdef RoundNode right = RoundNode()
        cdef Member member = self.member(&left.node, &right.node)
        cdef bint can_be_split = self.q.split.test != LEAF
        cdef bint is_split
        left.n_set_words = right.n_set_words = self.tree.params.limits.n_set_words
        left.n_classes = right.n_classes = self.tree.params.criterion.n_classes
        with nogil:
            is_split = split_members(&self.store.store, &self.tree.out, &member, 1) != 0
        self.check_memory()
        if not is_split:
            return None, can_be_split
        return (self.tree.test_of(self.tree.out.nodes + self.node.node.record), left, right), True
