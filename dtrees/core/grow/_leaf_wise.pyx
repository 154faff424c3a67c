"""Trees of boosting: the leaf that gains most is split next, and leaves get steps.

    open leaves, by their best gain       tree
    3.1   2.2   0.4                       0 ── 1 ── 3      leaf 3 (3.1) is split; its smaller child
          2.2   0.4   1.9   0.2                └─ 2   └─ 4  is counted, the larger one is the rest

A leaf knows its best split as soon as it is there. Splits do not depend on the order in which
leaves are split; the order only says which of them are made before there are
`max_leaf_nodes`. A grower makes once what the trees of a model share.

A tree may be grown from some of the rows. The others walk along: they are partitioned with those of
their leaf, and are not counted::

    rows    [ drawn: leaf 2 | leaf 0 | leaf 1 ][ others: leaf 2 | leaf 0 | leaf 1 ]

They go where the finished tree sends them (`split_rest`), which is known from the drawn rows alone.

Rows may be in several places, each with a grower that grows the same tree, round by round. All of
them count their rows of some nodes, and what they have counted is added up; sums of integers are
the same in any order. Each searches a part of the columns, whose sums it has, and the best splits
of all parts are those of the nodes (`dtrees.core.stores.boosted._boosted_store`)::

    member 0   count ──┬── sums ── search its columns ──┬── take, expand ── count ──
    member 1   count ──┴── sums ── search its columns ──┴── take, expand ── count ──

A round takes longer than to count a leaf. So some leaves are *expanded* at a time, those that gain
most: split, and their children counted in one round and searched. Splits are taken in their order
as far as their leaves are expanded. What is expanded and not taken is a leaf again, and the tree is
that of one leaf at a time. With 31 leaves it takes 12 to 13 rounds, and 3 to 13 % more rows are
counted.

Then leaves get steps, which they add to the raw predictions of their rows::

    sums of leaves ──newton_steps──▶ steps ──add_leaf_steps──▶ weights and weighted steps of nodes
                                                  └──────────▶ rows are moved

The records of the trees of a model stand tree behind tree, until it has grown. A tree is recorded
in the order in which its leaves were split. Here it is put in preorder at once, behind those before
it. The arrays of all trees are made in one go, so that a tree which has grown costs a copy of its
records and no object::

    trees       0                1            2
    nodes       0 1 2 3 4 5 6    0 1 2        0 1 2 3 4      children: numbers in their tree
    words       ──────────────────────▶                      subsets: offsets in all words
"""
import numpy as np

from libc.math cimport INFINITY, fabs, frexp, ldexp, rint
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from dtrees.core.data._columns cimport Column, words_of_subset
from dtrees.core.data._memory cimport resize
from dtrees.core.data._structs cimport LEAF, RowStatistics, Split, Totals, int128_t
from dtrees.core.grow._boosted_rows cimport (
    ColumnDraws, RowDraws, RowSquares, add_drawn, bind_categories, route_of_others
)
from dtrees.core.grow._node_buffer cimport (
    NodeBuffer, Record, copy_words, free_node_buffer, make_leaf, partial_tree_of, reserve_records,
    write_record
)
from dtrees.core.grow._node_step cimport SPLIT, grow_node
from dtrees.core.grow._team cimport Team, lead
from dtrees.core.histogram._layout cimport GRADIENTS, OUTPUTS, CellKind
from dtrees.core.search._criterion cimport mean_hessian, soft_threshold
from dtrees.core.search._open_node cimport OpenNode, free_node, value_of_node
from dtrees.core.search._parameters cimport TrainParameters
from dtrees.core.search._search cimport Search, finish_node, free_search, new_search
from dtrees.core.stores._partition cimport Route
from dtrees.core.stores.boosted._boosted_store cimport (
    SUMS_OF_NODE, UNLIMITED, BoostedStore, ChildSearch, Found, Part, bind_blocks, bind_part,
    bind_rules, boosted_store, choose_split, copy_part, count_and_search_chunk, count_chunk,
    give_back_histogram, has_lost_splits, part_of, partition_rows, search_chunk,
    size_of_histogram, size_of_part, take_histogram, tell_split, to_next_output,
    words_of_outputs
)
from dtrees.core.stores.boosted._column_blocks cimport ColumnBlock, ColumnBlocks

from dtrees.core.grow.node_record import RECORD, RecordsOfTrees

# ---------------------------------------------------------------------------------------------
# growth

MOST_HESSIAN = 2.0**61   # in units: no sum of two rows is as large, and twice it fits a word
SMOOTHING = 10.0         # hessian of a step of zero, where categories are put in order: the same

cdef double NOTHING = 2.0**-45      # of a score: what a difference of scores may be by rounding


cdef enum:
    AT_ONCE = 4             # leaves that are expanded in a round, where others have rows

cdef struct Leaf:
    # Of the tree, or one that has been: an inner node; or a child of a leaf that is expanded.
    OpenNode node
    Split split             # the best one, as its search left it
    bint is_open            # it has a split, which gains something
    bint is_in_tree
    int64_t number          # of those in the tree, in the order in which they came
    int64_t left            # child, the right one is behind it; 0: it is not expanded
    int64_t n_here          # rows[node.start .. node.start + n_here), of the node's rows
    int64_t rest_start      # rows[rest_start .. rest_start + rest_n) are there, and not grown from
    int64_t rest_n
    bint has_rest           # whether there are such rows, here or elsewhere

cdef struct Children:
    # Of a leaf that is expanded, or a root alone: places of leaves.
    int64_t lesser          # whose rows are counted
    int64_t other           # that is the rest of its parent, or -1
    bint search_lesser
    bint search_other

cdef struct Likeliest:
    # Leaves that are expanded next: by the least gain on the way to them, falling.
    int64_t[AT_ONCE] leaves
    double[AT_ONCE] gains
    int n
    int most

cdef struct LeafHeap:
    int64_t* leaves         # numbers; the one that is split next comes first
    int64_t n
    bint by_gain            # otherwise the last leaf is split first


cdef class LeafWiseGrower:
    """Grows trees from one table, whose blocks are filled.

    `shift` are the bits of the sum of the hessians of all rows; the number of rows fits the others.
    Trees are grown from the `chosen` rows, ascending; None: from all of them. `squares` are those
    of the rows of the table; None: many categories pay nothing. `part` says which part of the
    columns is searched here, and how many parts there are, where others grow the same trees from
    other rows; a number beyond the last one: none is. None: all rows are here. `order` are outputs
    that trees have together, in the order in which scores are added up; None: they have one. They
    have second derivatives each, or with `are_alike` the same, and no step is regularized.
    """
    cdef ColumnBlocks blocks
    cdef Team team
    cdef object rules
    cdef readonly double l2         # in units of the hessians of the last tree
    cdef readonly double l1         # in units of its gradients
    cdef readonly double path_smooth    # in units of its hessians
    cdef double gain_unit           # what a gain is in the units of the loss
    cdef double least_gain          # of a split, in units: it has to gain more
    cdef TrainParameters params
    cdef BoostedStore store
    cdef NodeBuffer out
    cdef Leaf* leaves
    cdef int64_t n_leaves           # with inner nodes, until the tree is settled
    cdef int64_t* taken             # leaves that were split, in their order
    cdef int64_t n_taken
    cdef int64_t leaves_capacity
    cdef LeafHeap open_leaves       # the one that is split next comes first
    cdef int64_t most_leaves
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_drawn       # rows that a tree is grown from
    cdef readonly int64_t n_counted     # rows of all nodes that were counted
    cdef uint64_t[:, ::1] derivatives
    cdef readonly int n_outputs
    cdef const int64_t[::1] order       # of several outputs, in y
    cdef double[::1] scale              # units of their fields, the coarsest being 1
    cdef const uint32_t[::1] chosen
    cdef const uint32_t* first_chosen   # NULL: all rows of the table
    cdef RowSquares squares             # or None: many categories pay nothing
    cdef uint32_t[::1] rows
    cdef uint32_t[::1] scratch
    cdef readonly list arrays           # these two
    cdef readonly object n_searched     # sparse columns of nodes, by block: int64
    cdef RowDraws row_draws             # or None: all of them
    cdef int64_t n_parts                # of the columns; 0: all rows are here
    cdef int64_t part                   # which of them is searched here
    cdef Part* parts
    cdef ColumnBlock* searched          # columns of the part
    cdef int64_t width                  # words of a `Found`, with those of a subset
    cdef int64_t* told                  # a `Found` of each leaf, where there are parts
    cdef Children[AT_ONCE] some         # of leaves that were expanded in this round
    cdef int n_some
    cdef bint has_grown
    cdef list alive                 # arrays whose memory the parameters point to
    cdef ColumnDraws draws

    def __cinit__(self, ColumnBlocks blocks not None, rules, int shift, Team team not None,
                  const uint32_t[::1] chosen=None, RowSquares squares=None, part=None,
                  const int64_t[::1] order=None, bint are_alike=True):
        cdef int64_t b
        cdef RowStatistics of_row
        cdef CellKind kind = GRADIENTS
        cdef int64_t[::1] searched = np.zeros(blocks.n_blocks + 1, dtype=np.int64)
        memset(&of_row, 0, sizeof(RowStatistics))
        self.blocks = blocks
        self.rules = rules
        self.team = team
        self.chosen = chosen
        self.squares = squares
        self.n_rows = blocks.n_rows if chosen is None else chosen.shape[0]
        if chosen is not None and self.n_rows > 0:  # a member may have none
            assert chosen[self.n_rows - 1] < blocks.n_rows
            self.first_chosen = &chosen[0]
        self.most_leaves = UNLIMITED if rules.max_leaf_nodes is None else rules.max_leaf_nodes
        self.open_leaves.by_gain = rules.max_leaf_nodes is not None
        self.alive = bind_rules(&self.params, blocks, rules, shift)
        self.draws = ColumnDraws(blocks.bound.n_columns, rules.max_features, rules.columns_by_tree)
        self.arrays = [blocks.empty(self.n_rows + 1, dtype=np.uint32) for _ in range(2)]
        self.rows, self.scratch = self.arrays
        self.store = boosted_store()
        self.store.store.params = &self.params
        bind_blocks(&self.store, blocks)
        self.n_outputs = 1 if order is None else order.shape[0]
        if self.n_outputs > 1:
            self.order = order
            self.scale = np.ones(self.n_outputs if are_alike else 2 * self.n_outputs)
            self.store.n_outputs = self.n_outputs
            self.params.n_statistics = 1 + self.n_outputs
            self.params.criterion.n_outputs = self.n_outputs
            self.params.criterion.n_classes = <int>self.scale.shape[0]
            self.params.criterion.sums_numbers = True
            self.params.criterion.has_hessians = not are_alike
            self.params.criterion.scale = &self.scale[0]
            self.params.layout.to_next_output = to_next_output(&self.store)
            kind = OUTPUTS
        self.store.n_searched = &searched[0]
        self.n_searched = np.asarray(searched)
        self.store.rows = &self.rows[0]
        self.store.scratch = &self.scratch[0]
        self.store.found = <Split*>calloc(2 * blocks.n_blocks + 1, sizeof(Split))
        self.store.searches = <Search**>calloc(blocks.n_blocks + 1, sizeof(Search*))
        if self.store.found == NULL or self.store.searches == NULL:
            raise MemoryError
        for b in range(blocks.n_blocks + 1):
            self.store.searches[b] = new_search(&self.params.criterion, kind, of_row,
                                                &self.params.limits)
            if self.store.searches[b] == NULL:
                raise MemoryError
        self.store.store.search = self.store.searches[blocks.n_blocks]
        if part is not None:
            self.part, self.n_parts = part
            self.bind_parts()

    def __dealloc__(self):
        cdef int64_t i
        if self.store.searches != NULL:
            for i in range(self.store.n_blocks + 1):
                free_search(self.store.searches[i])
        for i in range(self.n_leaves):
            free_node(&self.leaves[i].node)
        for i in range(self.store.n_free):
            free(self.store.free_histograms[i])
        free(self.store.searches)
        free(self.store.found)
        free(self.store.free_histograms)
        free(self.parts)
        free(self.searched)
        free(self.told)
        free(self.open_leaves.leaves)
        free(self.taken)
        free(self.leaves)
        free_node_buffer(&self.out)

    def grow(self, derivatives, hessian, gradient, units, uint64_t number=0,
             RowDraws row_draws=None, double row_hessian=1.0):
        """Grow one tree from the rows that are here; arguments as for `begin`."""
        cdef bint complete
        self.begin(derivatives, hessian, gradient, units, number, row_draws, row_hessian)
        with nogil:
            complete = self.grow_all()
        if not complete:
            raise MemoryError

    def begin(self, derivatives, hessian, gradient, units, uint64_t number=0,
              RowDraws row_draws=None, double row_hessian=1.0, drawn=None, n_rows=None):
        """Begin a tree, whose records are `piece` once it has grown.

        `derivatives` are ``gradient << 32 | hessian`` of each row of the table, in `units`: what
        one unit of a hessian, and of a gradient, is in the units of the loss. `hessian` and
        `gradient` are the sums over all rows. `number` is that of the tree, for its draws of
        columns. It is grown from the rows of `row_draws`; None: from all. `row_hessian` is the mean
        hessian of a row, in units, where many categories pay or steps are smoothed. Where others
        have rows, too, all sums are those of all of them: `n_rows` are their rows, and `drawn` what
        `sums_of_drawn` says of all.

        Of several outputs, derivatives are uint64 (n_outputs, n_rows); `hessian`, `gradient`, both
        units and `drawn` are lists. All are in the order of scores.
        """
        hessian_units, gradient_units = map(np.atleast_1d, units)
        hessians, gradients = np.atleast_1d(hessian).tolist(), np.atleast_1d(gradient).tolist()
        cdef double unit = hessian_units.max()
        cdef double gradient_unit = gradient_units.max()
        cdef Totals* totals
        cdef int64_t n_all
        cdef int64_t i
        self.derivatives = np.atleast_2d(derivatives)
        assert self.derivatives.shape[0] == self.n_outputs == len(gradients)
        assert self.derivatives.shape[1] == self.blocks.n_rows
        self.row_draws = row_draws
        self.n_drawn = self.n_rows if row_draws is None else row_draws.n_drawn
        self.store.derivatives = &self.derivatives[0, 0]
        self.l2 = self.rules.l2 / unit
        self.params.criterion.l2 = self.l2
        self.l1 = self.params.criterion.l1 = self.rules.l1 / gradient_unit
        if self.rules.max_delta_step > 0:
            self.params.criterion.most_step = self.rules.max_delta_step * (unit / gradient_unit)
        self.path_smooth = self.rules.path_smooth * row_hessian
        self.params.criterion.smoothing = SMOOTHING / unit
        bind_categories(&self.params.criterion, self.squares, self.rules, row_hessian)
        self.gain_unit = gradient_unit * (gradient_unit / unit)
        self.least_gain = self.rules.min_split_gain / max(self.gain_unit, 2.0**-1074)
        self.params.criterion.gain_unit = 1.0   # leaves are compared in units, however tiny these
        self.params.limits.min_weight = <int64_t>min(
            max(1.0, self.rules.min_child_weight / unit), MOST_HESSIAN)
        for i in range(self.store.n_blocks + 1):
            self.store.searches[i].min_weight = self.params.limits.min_weight
        self.params.limits.tree = number
        self.draws.begin_tree(&self.params)
        for i in range(self.n_leaves):
            free_node(&self.leaves[i].node)
        self.out.count = self.out.n_words = self.n_leaves = self.open_leaves.n = self.n_taken = 0
        self.store.told = NULL
        self.has_grown = False
        if not self.reserve_leaves():
            raise MemoryError
        memset(self.leaves, 0, sizeof(Leaf))
        totals = &self.leaves[0].node.totals
        totals.n = n_all = self.n_rows if n_rows is None else n_rows
        totals.weight = hessians[0]
        totals.target = gradients[0]
        if row_draws is not None:
            of_outputs = [drawn] if self.n_outputs == 1 else drawn
            if drawn is None:
                of_outputs = [sums_of_drawn(row_draws, own) for own in self.derivatives]
            totals.n, totals.weight, totals.target = of_outputs[0]
            hessians, gradients = zip(*(own[1:] for own in of_outputs))
        if self.n_outputs > 1:
            scale = *(gradient_units / gradient_unit), *(hessian_units / unit)
            self.begin_outputs((*gradients, *hessians), scale)
        with nogil:
            self.leaves[0].n_here = self.n_drawn
            self.leaves[0].node.parent = -1
            self.leaves[0].is_in_tree = True
            self.leaves[0].rest_start = self.n_drawn
            self.leaves[0].rest_n = self.n_rows - self.n_drawn
            self.leaves[0].has_rest = totals.n < n_all
            self.params.criterion.path_smooth = 0   # there is nothing above a root
            self.leaves[0].node.above.value = value_of_node(&self.params, &self.leaves[0].node, 0)
            self.params.criterion.path_smooth = self.path_smooth

    cdef begin_outputs(self, sums, scale):
        """Give the root the fields of all outputs, and these their units."""
        cdef OpenNode* root = &self.leaves[0].node
        cdef int k
        root.class_totals = <int64_t*>malloc(self.scale.shape[0] * sizeof(int64_t))
        if root.class_totals == NULL:
            raise MemoryError
        for k in range(self.scale.shape[0]):
            root.class_totals[k], self.scale[k] = sums[k], scale[k]
        if self.params.criterion.has_hessians:
            root.totals.weight = mean_hessian(&self.params.criterion, root.class_totals)

    def expand(self):
        """Go on with a tree until some of its nodes are to be counted: how many.

        0: the tree has grown.
        """
        cdef int n
        with nogil:
            n = self.next_round()
        if n < 0:
            raise MemoryError
        return n

    @property
    def ends_of_parts(self):
        """Where the words of each part end, of what members add up of a node: a list of int."""
        cdef int64_t k
        sizes = [size_of_part(&self.store, self.parts + k) for k in range(self.n_parts)]
        return np.cumsum(sizes).tolist()

    def put_counts(self, int64_t[::1] words not None, int64_t first, int64_t n_nodes):
        """Count the rows here of the nodes that `expand` has found, in all columns.

        words : int64 (n_nodes * words of a node,), OUT, part after part. In each these are nodes
        `first`, `first + 1`, ... of the `n_nodes` that trees have in this round.
        """
        cdef bint has_memory
        assert words.shape[0] == n_nodes * self.ends_of_parts[self.n_parts - 1]
        with nogil:
            has_memory = self.count(&words[0], first, n_nodes)
        if not has_memory:
            raise MemoryError

    def search_part(self, int64_t[::1] words not None, int64_t first):
        """Search the part of the columns that is this grower's.

        words : int64 (nodes * words of the part,), those of all members together. Returns what is
        found for the lesser and the other child of each leaf: int64 (2 * nodes, width).
        """
        cdef int64_t[:, ::1] found = np.zeros((2 * self.n_some, self.width), dtype=np.int64)
        cdef bint has_memory = True
        cdef int64_t size = 0
        if self.part < self.n_parts and self.n_some > 0:
            size = size_of_part(&self.store, self.parts + self.part)
            assert words.shape[0] >= (first + self.n_some) * size
            with nogil:
                has_memory = self.search_sums(&words[first * size], size, &found[0, 0])
        if not has_memory:
            raise MemoryError
        return np.asarray(found)

    def take(self, const int64_t[:, ::1] found not None):
        """Take the best of what has been found in all parts: `search_part` says how it looks."""
        cdef const Found* told
        cdef int64_t leaf
        cdef int i, which
        assert found.shape[0] == 2 * self.n_some and found.shape[1] == self.width
        for i in range(self.n_some):
            for which in range(2):
                leaf = self.some[i].other if which else self.some[i].lesser
                if leaf < 0:
                    continue
                memcpy(self.told + leaf * self.width, &found[2 * i + which, 0],
                       self.width * sizeof(int64_t))
                told = <const Found*>(self.told + leaf * self.width)
                self.leaves[leaf].split = told.split
                self.leaves[leaf].has_rest = told.has_rest
            self.end_search(self.some + i)
        if has_lost_splits(&self.store):
            raise MemoryError

    def piece(self):
        """The tree that was grown last, as a `PartialTree`, in the order of its records.

        Statistics are sums of hessians and gradients, until steps take their place.
        """
        return partial_tree_of(&self.out, self.params.n_statistics)

    def leaves_of_tree(self):
        """Of the tree that was grown last: int64 (n_leaves, 3): record, first row, rows here."""
        cdef int64_t[:, ::1] found = np.empty((self.n_leaves, 3), dtype=np.int64)
        cdef int64_t i
        for i in range(self.n_leaves):
            found[i, 0] = self.leaves[i].node.record
            found[i, 1] = self.leaves[i].node.start
            found[i, 2] = self.leaves[i].n_here
        return np.asarray(found)

    cdef void sum_up(self, const int64_t* of_leaves) noexcept nogil:
        """Give the records of the tree that was grown last other sums; those of leaves are known.

        of_leaves : (n_leaves, n_statistics)
        """
        cdef const Record* node
        cdef int64_t* sums = self.out.statistics
        cdef int64_t S = self.params.n_statistics
        cdef int64_t i, k
        for i in range(self.n_leaves):
            for k in range(S):
                sums[S * self.leaves[i].node.record + k] = of_leaves[S * i + k]
        for i in range(self.out.count - 1, -1, -1):     # children stand behind their parents
            node = self.out.nodes + i
            if node.left >= 0:
                for k in range(S):
                    sums[S * i + k] = sums[S * node.left + k] + sums[S * node.right + k]

    @property
    def n_histograms(self):
        """Histograms that are there: as many as were in use at a time."""
        return self.store.n_free

    @property
    def rows_of_leaves(self):
        """Rows that the tree was grown from, leaf after leaf: uint32 (n_drawn,)."""
        return np.asarray(self.rows)[:self.n_drawn]

    def add_steps(self, const double[::1] steps not None, double[::1] raw not None):
        """`move_rows`, for tests."""
        assert steps.shape[0] == self.n_leaves and raw.shape[0] == self.blocks.n_rows
        self.move_rows(&steps[0], &raw[0])

    cdef void move_rows(self, const double* steps, double* raw) noexcept nogil:
        """Add to the raw prediction of each row the step of its leaf; raw: of the whole table."""
        cdef int64_t i, k
        cdef double step
        cdef const uint32_t* rows
        cdef const Leaf* leaf
        for i in range(self.n_leaves):
            step = steps[i]
            leaf = self.leaves + i
            rows = self.store.rows + leaf.node.start
            for k in range(leaf.n_here):
                raw[rows[k]] += step
            rows = self.store.rows + leaf.rest_start
            for k in range(leaf.rest_n):
                raw[rows[k]] += step

    # -----------------------------------------------------------------------------------------

    cdef bint reserve_leaves(self) noexcept nogil:
        """Room for children of some leaves, histograms and places; False without memory."""
        cdef int64_t capacity = 2 * self.n_leaves + 4 * AT_ONCE
        if self.n_leaves + 2 * AT_ONCE <= self.leaves_capacity:
            return True
        if not (resize(<void**>&self.leaves, capacity * sizeof(Leaf))
                and resize(<void**>&self.taken, capacity * sizeof(int64_t))
                and resize(<void**>&self.open_leaves.leaves, capacity * sizeof(int64_t))
                and resize(<void**>&self.told, (capacity * self.width + 1) * sizeof(int64_t))
                and resize(<void**>&self.store.free_histograms, 2 * capacity * sizeof(void*))):
            return False
        self.leaves_capacity = capacity
        return True

    cdef bint can_split(self, const OpenNode* node) noexcept nogil:
        """Whether limits allow a node to be split."""
        return (node.depth < self.params.limits.max_depth
                and node.totals.n >= self.params.limits.min_samples_split
                and node.totals.n >= 2 * self.params.limits.min_rows
                and node.totals.weight >= 2 * self.params.limits.min_weight)

    cdef bind_parts(self):
        """Lay out the parts of the columns."""
        cdef int64_t k, n_words
        cdef int64_t most = 0
        self.parts = <Part*>calloc(self.n_parts + 1, sizeof(Part))
        self.searched = <ColumnBlock*>calloc(self.store.n_blocks + 1, sizeof(ColumnBlock))
        if self.parts == NULL or self.searched == NULL:
            raise MemoryError
        for k in range(self.n_parts):
            self.parts[k] = part_of(&self.store, self.blocks, k, self.n_parts)
        if self.part < self.n_parts:
            bind_part(self.searched, &self.store, self.parts + self.part)
        self.store.searched = self.searched
        for k in range(self.blocks.bound.n_columns):
            n_words = words_of_subset(self.params.columns + k)
            if self.params.columns[k].n_ordered < self.params.columns[k].n_codes:
                most = max(most, n_words)
        self.width = (<int64_t>(sizeof(Found) // sizeof(int64_t)) + words_of_outputs(&self.store)
                      + 2 * most)

    cdef void best_of_blocks(self, int which, Split* best) noexcept nogil:
        """The best of the splits that the blocks found, OUT."""
        cdef const Split* found
        cdef int64_t b
        best.test = LEAF
        for b in range(self.store.n_blocks):
            found = self.store.found + 2 * b + which
            if beats(found, best):
                best[0] = found[0]

    cdef void keep_split(self, int64_t i) noexcept nogil:
        """What the best split of a leaf gains; its histogram goes where there is none."""
        cdef Leaf* leaf = self.leaves + i
        cdef Search* q = self.store.store.search
        self.choose(i)
        finish_node(q)
        leaf.split.gain = q.split.gain
        leaf.is_open = (leaf.split.test != LEAF
                        and leaf.split.gain > max(NOTHING * abs(leaf.split.score),
                                                  self.least_gain))
        if not leaf.is_open:
            give_back_histogram(&self.store, &leaf.node)

    cdef void choose(self, int64_t i) noexcept nogil:
        """Make the split of a leaf the one that the store is asked for."""
        self.store.told = NULL
        if self.n_parts > 0:
            self.store.told = <const Found*>(self.told + i * self.width)
        choose_split(&self.store, &self.leaves[i].node, &self.leaves[i].split)

    cdef bint begin_counts(self) noexcept nogil:
        """Histograms for the children that are counted; the others have those of their parents."""
        cdef Leaf* lesser
        cdef int i, o
        for i in range(self.n_some):
            lesser = self.leaves + self.some[i].lesser
            lesser.node.histogram = take_histogram(&self.store)
            if lesser.node.histogram == NULL:
                return False
            self.n_counted += lesser.n_here
            lesser.node.totals.moment = 0
            for o in range(self.n_outputs if self.squares is not None else 0):
                lesser.node.totals.moment += self.squares.sum_of(
                    self.store.derivatives + o * self.store.n_rows,
                    self.store.rows + lesser.node.start, lesser.n_here,
                    min(2 * bits_of_unit(self.scale[o]), 62) if self.n_outputs > 1 else 0)
        return True

    cdef ChildSearch search_of(self, const Children* children) noexcept nogil:
        cdef ChildSearch search
        cdef Leaf* lesser = self.leaves + children.lesser
        memset(&search, 0, sizeof(ChildSearch))
        search.s = &self.store
        search.lesser = &lesser.node
        search.n_here = lesser.n_here
        search.other = NULL
        if children.other >= 0:
            search.other = &self.leaves[children.other].node
        search.search_lesser = children.search_lesser
        search.search_other = children.search_other
        return search

    cdef bint search(self, const Children* children) noexcept nogil:
        """Search two leaves, the lesser of which is counted by now if others have rows of it."""
        cdef ChildSearch search = self.search_of(children)
        search.drawn_of_lesser = self.draws.draw(&self.params, search.lesser, 0)
        search.drawn_of_other = self.draws.draw(&self.params, search.other, 1)
        if self.squares is not None and search.other != NULL:
            search.other.totals.moment -= search.lesser.totals.moment
        lead(&self.team.jobs, count_and_search_chunk if self.n_parts == 0 else search_chunk,
             &search, self.store.n_blocks, False)
        return not has_lost_splits(&self.store)

    cdef bint end_search(self, const Children* children) noexcept nogil:
        """Keep the splits of two leaves; False without memory."""
        if children.search_lesser:
            self.keep_split(children.lesser)
        else:
            give_back_histogram(&self.store, &self.leaves[children.lesser].node)
        if children.search_other:
            self.keep_split(children.other)
        elif children.other >= 0:
            give_back_histogram(&self.store, &self.leaves[children.other].node)
        elif self.leaves[0].is_open:
            push_leaf(&self.open_leaves, self.leaves, 0)
        self.store.is_whole = False
        return not has_lost_splits(&self.store)

    # where others have rows, too ---------------------------------------------------------------

    cdef bint count(self, int64_t* words, int64_t first, int64_t n_nodes) noexcept nogil:
        """As `put_counts`; False without memory."""
        cdef ChildSearch search
        cdef int64_t* last
        cdef int128_t moment
        cdef Leaf* lesser
        cdef int64_t k, size
        cdef int i, _o
        if not self.begin_counts():
            return False
        for i in range(self.n_some):
            search = self.search_of(self.some + i)
            lead(&self.team.jobs, count_chunk, &search, self.store.n_blocks, False)
            lesser = self.leaves + self.some[i].lesser
            moment = lesser.node.totals.moment
            last = lesser.node.histogram + size_of_histogram(&self.store) - SUMS_OF_NODE
            for _o in range(self.n_outputs):
                last[0] = <int64_t>(moment >> 64)           # in parts that add up without a carry
                last[1] = <int64_t><uint32_t>(moment >> 32)
                last[2] = <int64_t><uint32_t>moment
                last[3] = lesser.rest_n
                last[4] = self.leaves[self.some[i].other].rest_n if self.some[i].other >= 0 else 0
                last += to_next_output(&self.store)
        for k in range(self.n_parts):
            size = size_of_part(&self.store, self.parts + k)
            for i in range(self.n_some):
                lesser = self.leaves + self.some[i].lesser
                copy_part(&self.store, self.parts + k, lesser.node.histogram,
                          words + (first + i) * size, False)
            words += n_nodes * size
        return True

    cdef bint search_sums(self, int64_t* words, int64_t size, int64_t* found) noexcept nogil:
        """As `search_part`; False without memory."""
        cdef const int64_t* last
        cdef OpenNode* node
        cdef Found* told
        cdef int i, which
        for i in range(self.n_some):
            node = &self.leaves[self.some[i].lesser].node
            copy_part(&self.store, self.parts + self.part, node.histogram, words + i * size, True)
            last = words + (i + 1) * size - SUMS_OF_NODE
            node.totals.moment = (
                (<int128_t>last[0] << 64) + (<int128_t>last[1] << 32) + last[2])
            if not self.search(self.some + i):
                return False
            for which in range(2):
                told = <Found*>(found + (2 * i + which) * self.width)
                told.has_rest = last[3 + which] > 0
                if not (self.some[i].search_other if which else self.some[i].search_lesser):
                    continue
                self.best_of_blocks(which, &told.split)
                if which:
                    node = &self.leaves[self.some[i].other].node
                if told.split.test != LEAF:
                    tell_split(&self.store, node, told)
        return not has_lost_splits(&self.store)

    # -------------------------------------------------------------------------------------------

    cdef void split_rest(self, const Leaf* leaf, Leaf* left, Leaf* right,
                         Record* record) noexcept nogil:
        """Move the rows of a split leaf that it was not grown from, as the tree will say."""
        cdef const Column* column = self.params.columns + record.column
        cdef Route route = route_of_others(record, column, self.out.words)
        left.rest_start = leaf.rest_start
        left.rest_n = partition_rows(&self.store, record.column, &route,
                                     self.store.rows + leaf.rest_start, leaf.rest_n)
        right.rest_start = leaf.rest_start + left.rest_n
        right.rest_n = leaf.rest_n - left.rest_n
        left.has_rest = left.rest_n > 0
        right.has_rest = right.rest_n > 0

    cdef bint split(self, int64_t i, Children* children) noexcept nogil:
        """Split a leaf into two that come behind all others; False without memory.

        children : OUT, and whether they are to be searched
        """
        cdef Leaf* leaf = self.leaves + i
        cdef Leaf* left = self.leaves + self.n_leaves
        cdef Leaf* right = left + 1
        cdef Leaf* other
        cdef bint left_is_lesser
        cdef bint has_room = self.n_taken + 2 < self.most_leaves    # once this one is taken
        memset(left, 0, 2 * sizeof(Leaf))
        self.choose(i)
        if self.store.store.search.out_of_memory:
            return False
        leaf.left = self.n_leaves
        self.store.n_here = leaf.n_here
        grow_node(&self.store.store, &self.out, &leaf.node, &left.node, &right.node, SPLIT)
        self.n_leaves += 2
        if self.store.store.search.out_of_memory:
            return False
        left.n_here = self.store.n_left_here
        right.n_here = leaf.n_here - left.n_here
        self.out.nodes[leaf.node.record].gain *= self.gain_unit
        write_record(&self.out, &self.params, &left.node)
        write_record(&self.out, &self.params, &right.node)
        if self.out.out_of_memory:
            return False
        if leaf.has_rest:
            self.split_rest(leaf, left, right, self.out.nodes + leaf.node.record)
        left_is_lesser = 2 * left.node.totals.n <= leaf.node.totals.n
        children.lesser = leaf.left if left_is_lesser else leaf.left + 1
        children.other = leaf.left + 1 if left_is_lesser else leaf.left
        children.search_lesser = has_room and self.can_split(
            &self.leaves[children.lesser].node)
        children.search_other = has_room and self.can_split(&self.leaves[children.other].node)
        other = self.leaves + children.other
        other.node.histogram = leaf.node.histogram
        other.node.totals.moment = leaf.node.totals.moment
        leaf.node.histogram = NULL
        if not children.search_lesser and not children.search_other:
            give_back_histogram(&self.store, &other.node)
        return True

    cdef bint split_likeliest(self) noexcept nogil:
        """Split the open leaf that comes first; and, where others have rows, some that come next.

        False without memory.
        """
        cdef Likeliest found
        cdef int64_t i
        if not self.reserve_leaves():
            return False
        found.n = 0
        found.most = 1
        if self.n_parts > 0:
            found.most = min(<int64_t>AT_ONCE, self.most_leaves - self.n_taken - 1)
        for i in range(self.open_leaves.n if self.open_leaves.by_gain and found.most > 1
                       else min(<int64_t>found.most, self.open_leaves.n)):
            if self.open_leaves.by_gain:
                self.add_likeliest(&found, self.open_leaves.leaves[i], INFINITY)
            elif self.leaves[self.open_leaves.leaves[i]].left == 0:
                found.leaves[found.n] = self.open_leaves.leaves[i]
                found.n += 1
        for i in range(found.n):
            if not self.split(found.leaves[i], self.some + self.n_some):
                return False
            self.n_some += (self.some[self.n_some].search_lesser
                            or self.some[self.n_some].search_other)
        return True

    cdef void add_likeliest(self, Likeliest* found, int64_t i, double above) noexcept nogil:
        """Add an open leaf to those that are expanded next, or what its children have of them.

        Likeliest are those with the greatest of the least gains on the way from the tree to them.
        """
        cdef const Leaf* leaf = self.leaves + i
        cdef double least = min(above, leaf.split.gain)
        cdef int k
        if not leaf.is_open:
            return
        if leaf.left > 0:
            self.add_likeliest(found, leaf.left, least)
            self.add_likeliest(found, leaf.left + 1, least)
            return
        if found.n == found.most and found.gains[found.n - 1] >= least:
            return
        k = min(found.n, found.most - 1)
        while k > 0 and found.gains[k - 1] < least:
            found.leaves[k] = found.leaves[k - 1]
            found.gains[k] = found.gains[k - 1]
            k -= 1
        found.leaves[k] = i
        found.gains[k] = least
        found.n = min(found.n + 1, found.most)

    cdef void take_split(self, int64_t i) noexcept nogil:
        """Let the children of an expanded leaf take its place in the tree."""
        cdef Leaf* child
        cdef int64_t k
        self.taken[self.n_taken] = i
        self.n_taken += 1
        for k in range(self.leaves[i].left, self.leaves[i].left + 2):
            child = self.leaves + k
            child.is_in_tree = True
            child.number = 2 * self.n_taken + (k - self.leaves[i].left)
            if child.is_open:
                push_leaf(&self.open_leaves, self.leaves, k)

    cdef bint settle(self) noexcept nogil:
        """Let leaves that were expanded in vain be leaves, and keep those of the tree alone.

        Words of subsets come in the order of the splits. False without memory.
        """
        cdef uint64_t* words = NULL
        cdef Record* record
        cdef Leaf* leaf
        cdef int64_t n_words = 0
        cdef int64_t n = 0
        cdef int64_t i, size
        for i in range(self.n_taken):
            self.leaves[self.taken[i]].is_in_tree = False
        if self.n_parts > 0 and self.out.n_words > 0:
            words = <uint64_t*>malloc(self.out.n_words * sizeof(uint64_t))
            if words == NULL:
                return False
            for i in range(self.n_taken):
                record = self.out.nodes + self.leaves[self.taken[i]].node.record
                if record.subset >= 0:
                    size = words_of_subset(self.params.columns + record.column)
                    memcpy(words + n_words, self.out.words + record.subset,
                           size * sizeof(uint64_t))
                    record.subset = <int32_t>n_words
                    n_words += size
            memcpy(self.out.words, words, n_words * sizeof(uint64_t))
            self.out.n_words = n_words
            free(words)
        for i in range(self.n_leaves):
            leaf = self.leaves + i
            give_back_histogram(&self.store, &leaf.node)
            if not leaf.is_in_tree:
                free_node(&leaf.node)
                continue
            if leaf.left > 0:
                make_leaf(self.out.nodes + leaf.node.record)
            self.leaves[n] = leaf[0]
            n += 1
        self.n_leaves = n
        return True

    cdef int next_round(self) noexcept nogil:
        """Split leaves until some of their children are to be counted; how many such leaves.

        The root is counted first. 0: the tree has grown. -1: there is no memory.
        """
        cdef int64_t best
        self.n_some = 0
        if self.has_grown:      # others in the same rounds have not
            return 0
        if self.n_leaves == 0:
            if not self.plant():
                return -1
            if self.most_leaves >= 2 and self.can_split(&self.leaves[0].node):
                self.some[0] = Children(0, -1, True, False)
                self.n_some = 1
                return 1
        while self.open_leaves.n > 0 and self.n_taken + 1 < self.most_leaves:
            best = self.open_leaves.leaves[0]
            if self.leaves[best].left == 0:
                if not self.split_likeliest():
                    return -1
                if self.n_some > 0:
                    return self.n_some
            self.take_split(pop_leaf(&self.open_leaves, self.leaves))
        self.has_grown = True
        return 0 if self.settle() else -1

    cdef bint plant(self) noexcept nogil:
        """Begin with the root, which is leaf 0; False without memory."""
        cdef int64_t i
        self.n_leaves = 1
        write_record(&self.out, &self.params, &self.leaves[0].node)
        if self.out.out_of_memory:
            return False
        if self.n_drawn < self.n_rows:
            memcpy(self.store.rows, &self.row_draws.rows[0], self.n_rows * sizeof(uint32_t))
        elif self.first_chosen != NULL:
            memcpy(self.store.rows, self.first_chosen, self.n_rows * sizeof(uint32_t))
        else:
            for i in range(self.n_rows):
                self.store.rows[i] = <uint32_t>i
        self.store.is_whole = self.chosen is None and self.n_drawn == self.n_rows
        return True

    cdef bint grow_all(self) noexcept nogil:
        """Grow the tree whose root is leaf 0; False without memory."""
        cdef Children* children = self.some     # of one leaf at a time
        cdef int n = self.next_round()
        while n > 0:
            if not (self.begin_counts() and self.search(children)):
                return False
            if children.search_lesser:
                self.best_of_blocks(0, &self.leaves[children.lesser].split)
            if children.search_other:
                self.best_of_blocks(1, &self.leaves[children.other].split)
            if not self.end_search(children):
                return False
            n = self.next_round()
        return n == 0


cdef inline int bits_of_unit(double unit) noexcept nogil:
    """How many times 1 was halved."""
    cdef int exponent
    frexp(unit, &exponent)
    return 1 - exponent


cdef inline bint beats(const Split* split, const Split* other) noexcept nogil:
    """Whether a split is better than another one of the same node, in whatever order they come."""
    return split.test != LEAF and (
        other.test == LEAF or split.score > other.score
        or (split.score == other.score and split.column < other.column))


def keep_best(int64_t[:, ::1] own not None, const int64_t[:, ::1] others not None):
    """Make of splits that were found in one part of the columns the better ones of two, in place.

    They are as `LeafWiseGrower.search_part` returns them.
    """
    cdef int64_t i
    assert own.shape[0] == others.shape[0] and own.shape[1] == others.shape[1]
    for i in range(own.shape[0]):
        if beats(&(<const Found*>&others[i, 0]).split, &(<const Found*>&own[i, 0]).split):
            own[i] = others[i]


def sums_of_drawn(RowDraws row_draws not None, const uint64_t[::1] derivatives not None):
    """Rows that were drawn, and sums of their hessians and gradients: a list of int."""
    cdef Totals totals
    with nogil:
        add_drawn(row_draws, &derivatives[0], &totals)
    return [totals.n, totals.weight, totals.target]


# ---------------------------------------------------------------------------------------------
# open leaves, in the order in which they are split
#
# Which of two comes first does not depend on when they were pushed: the one that gains more, of
# equal ones the one that came first. Where a tree may have any number of leaves, the last
# one is split first, so that few histograms wait.

cdef bint comes_before(const LeafHeap* heap, const Leaf* leaves, int64_t first,
                       int64_t second) noexcept nogil:
    """Whether an open leaf is split before another one."""
    cdef const Leaf* a = leaves + first
    cdef const Leaf* b = leaves + second
    if not heap.by_gain:
        return first > second
    if a.split.gain != b.split.gain:
        return a.split.gain > b.split.gain
    return a.number < b.number


cdef void push_leaf(LeafHeap* heap, const Leaf* leaves, int64_t leaf) noexcept nogil:
    """Put an open leaf into the heap, which has room. O(log open leaves)."""
    cdef int64_t at = heap.n
    cdef int64_t above
    heap.n += 1
    while at > 0:
        above = (at - 1) // 2
        if not comes_before(heap, leaves, leaf, heap.leaves[above]):
            break
        heap.leaves[at] = heap.leaves[above]
        at = above
    heap.leaves[at] = leaf


cdef int64_t pop_leaf(LeafHeap* heap, const Leaf* leaves) noexcept nogil:
    """Take the leaf that is split next from the heap. O(log open leaves)."""
    cdef int64_t first = heap.leaves[0]
    cdef int64_t at = 0
    cdef int64_t below = 1
    cdef int64_t leaf
    heap.n -= 1
    leaf = heap.leaves[heap.n]
    while below < heap.n:
        if (below + 1 < heap.n
                and comes_before(heap, leaves, heap.leaves[below + 1], heap.leaves[below])):
            below += 1
        if not comes_before(heap, leaves, heap.leaves[below], leaf):
            break
        heap.leaves[at] = heap.leaves[below]
        at = below
        below = 2 * at + 1
    heap.leaves[at] = leaf
    return first


# ---------------------------------------------------------------------------------------------
# steps of leaves

cdef enum:
    STEP_BITS = 61              # of the sum of weighted steps


def newton_steps(const int64_t[:, ::1] sums not None, const double[::1] n_rounded not None,
                 double l2, int shift, double most, double l1=0.0):
    """``- gradient / (hessian + l2)`` of some nodes; 0 where nothing is below the line, and where
    the gradients may add up to 0, each of them being rounded by half a unit.

    So where they would by construction, as at the root of balanced classes, the classes tie.

    sums : int64 (n, 2), hessians and gradients. n_rounded : float64 (n,), gradients that were
    rounded: rows, or counts of them. l2 : in units of the hessians. shift : bits of a unit of
    gradients, in those of a unit of hessians. most : no step is larger. l1 : draws gradients to 0,
    in their units. Returns float64 (n,).
    """
    cdef double[::1] steps = np.empty(sums.shape[0])
    cdef int64_t i
    for i in range(sums.shape[0]):
        steps[i] = newton_step(&sums[i, 0], n_rounded[i], l1, l2, shift, most)
    return np.asarray(steps)


cdef inline double newton_step(const int64_t* sums, double n_rounded, double l1, double l2,
                               int shift, double most) noexcept nogil:
    cdef double below = <double>sums[0] + l2
    cdef double gradient
    if below <= 0 or 2 * fabs(<double>sums[1]) <= n_rounded:
        return 0.0
    gradient = soft_threshold(<double>sums[1], l1)
    return min(max(-ldexp(gradient, -shift) / below, -most), most)


cdef int64_t weight_of_leaf(LeafWiseGrower grower, int64_t i, const int64_t* weight) noexcept nogil:
    """Of the rows of a leaf that are here, in units; without weights, the number of all rows."""
    cdef const Leaf* leaf = grower.leaves + i
    cdef const uint32_t* rows = grower.store.rows + leaf.node.start
    cdef int64_t sum = leaf.node.totals.n
    cdef int64_t k
    if weight != NULL:
        sum = 0
        for k in range(leaf.n_here):
            sum += weight[rows[k]]
    return sum


cdef const int64_t* first_weight(LeafWiseGrower grower, const int64_t[::1] weight) except? NULL:
    if weight is None:
        return NULL
    assert weight.shape[0] == grower.blocks.n_rows
    return &weight[0]


def weights_of_leaves(LeafWiseGrower grower not None, const int64_t[::1] weight):
    """Weight of each leaf of the tree that was grown last, in units: int64 (n_leaves,).

    weight : int64 (rows of the table,); None: the number of rows
    """
    cdef int64_t[::1] found = np.empty(grower.n_leaves, dtype=np.int64)
    cdef const int64_t* first = first_weight(grower, weight)
    cdef int64_t i
    with nogil:
        for i in range(grower.n_leaves):
            found[i] = weight_of_leaf(grower, i, first)
    return np.asarray(found)


def add_leaf_steps(LeafWiseGrower grower not None, const int64_t[::1] weight, double weight_unit,
                   double[:, ::1] raw not None, newton=None, const double[:, ::1] steps=None,
                   const int64_t[::1] weights=None):
    """Move the rows of the tree that was grown last, and give its records their statistics.

    These are weights and weighted steps. A weighted step is rounded to an integer, and rows are
    moved by the quotient of that and the weight: by the very number that the stored tree gives.

    weight : as for `weights_of_leaves`; `weight_unit` is what one unit is for the user. raw :
    float64 (n_outputs, rows of the table), IN and OUT. steps : by output and leaf; None:
    `newton_steps`, of `newton` the shift of each output, the most, a rate that they are multiplied
    by, and whether a row of weight two has two gradients that were rounded. weights : by leaf;
    None: those of the rows. Returns the unit of weighted steps of each output. Steps and shifts are
    in the order of scores, as sums are so far; raw predictions, units and weighted steps are not.
    """
    cdef int64_t n = grower.n_leaves
    cdef int64_t S = grower.params.n_statistics
    cdef double[::1] stored = np.empty(n)
    cdef int64_t[:, ::1] sums = np.empty((n, S), dtype=np.int64)
    cdef int64_t[2] of_output
    cdef const int64_t* own
    cdef const int64_t* of_row = first_weight(grower, weight)
    cdef bint is_newton = steps is None
    cdef bint is_given = weights is not None
    cdef bint are_counts = False
    cdef double most = 0
    cdef double rate = 0
    cdef int64_t total = 0
    cdef double[::1] units = np.empty(S - 1)
    cdef int[::1] shifts = np.zeros(S - 1, dtype=np.intc)
    cdef double largest, of_leaf, n_rounded, l1, l2
    cdef bint has_hessians = grower.params.criterion.has_hessians
    cdef int64_t i, o, at
    cdef int exponent
    assert is_newton or (steps.shape[0] == S - 1 and steps.shape[1] == n)
    assert not is_given or weights.shape[0] == n
    assert raw.shape[0] == S - 1 and raw.shape[1] == grower.blocks.n_rows
    if is_newton:
        shifts = np.array(newton[0], dtype=np.intc)
        most, rate, are_counts = newton[1:]
    with nogil:
        for i in range(n):
            sums[i, 0] = weights[i] if is_given else weight_of_leaf(grower, i, of_row)
            total += sums[i, 0]
        for o in range(S - 1):
            at = o if S == 2 else grower.order[o]
            l1, l2 = grower.l1, grower.l2
            if has_hessians:
                l1, l2 = l1 / grower.scale[o], l2 / grower.scale[S - 1 + o]
            largest = 0
            for i in range(n):
                if is_newton:
                    n_rounded = grower.leaves[i].node.totals.n
                    if are_counts and of_row != NULL:
                        n_rounded = <double>sums[i, 0] * weight_unit
                    own = grower.out.statistics + S * grower.leaves[i].node.record
                    of_output[0], of_output[1] = own[0], own[1 + o]
                    if has_hessians:
                        of_output[0] = grower.leaves[i].node.class_totals[S - 1 + o]
                    stored[i] = rate * newton_step(of_output, n_rounded, l1, l2, shifts[o], most)
                else:
                    stored[i] = steps[o, i]
                largest = max(largest, fabs(stored[i]))
            frexp(largest * (<double>total * weight_unit), &exponent)
            units[at] = ldexp(1.0, exponent - STEP_BITS)
            for i in range(n):
                of_leaf = <double>sums[i, 0] * weight_unit
                sums[i, 1 + at] = <int64_t>rint(
                    ldexp(stored[i] * of_leaf, STEP_BITS - exponent))
                stored[i] = <double>sums[i, 1 + at] * units[at] / of_leaf
            grower.move_rows(&stored[0], &raw[at, 0])
        grower.sum_up(&sums[0, 0])
    return list(units)


cdef class GrownRecords:
    """Trees that were grown leaf by leaf."""
    cdef NodeBuffer out
    cdef list n_nodes
    cdef list units             # of each tree; of several outputs, a list of each
    cdef int64_t n_statistics   # of a node: weight, and weighted step of each output
    cdef int64_t* stack
    cdef int64_t* position      # of the records of a tree
    cdef int64_t room           # of both

    def __cinit__(self, int64_t n_outputs=1):
        self.n_statistics = 1 + n_outputs
        self.n_nodes, self.units = [], []

    def __dealloc__(self):
        free_node_buffer(&self.out)
        free(self.stack)
        free(self.position)

    def append(self, LeafWiseGrower grower not None, unit=1.0):
        """The tree that was grown last, as its records are now; `unit` of its second statistic."""
        cdef bint has_memory
        cdef int64_t first = self.out.count
        assert grower.params.n_statistics == self.n_statistics
        with nogil:
            has_memory = self.add(&grower.out)
        if not has_memory:
            raise MemoryError
        self.n_nodes.append(self.out.count - first)
        self.units.append(unit)

    cdef bint add(self, const NodeBuffer* tree) noexcept nogil:
        """Copy the records of a tree in preorder; False without memory. O(nodes)."""
        cdef int64_t first = self.out.count
        cdef int64_t n_words = self.out.n_words
        cdef int64_t depth = 1
        cdef int64_t n = 0
        cdef int64_t S = self.n_statistics
        cdef int64_t i
        cdef Record* record
        if not self._has_room(tree):
            return False
        if tree.n_words > 0 and copy_words(&self.out, tree.words, tree.n_words) < 0:
            return False
        self.stack[0] = 0
        while depth > 0:
            depth -= 1
            i = self.stack[depth]
            self.position[i] = n
            self.out.nodes[first + n] = tree.nodes[i]
            memcpy(self.out.statistics + S * (first + n), tree.statistics + S * i,
                   S * sizeof(int64_t))
            n += 1
            if tree.nodes[i].left >= 0:
                self.stack[depth] = tree.nodes[i].right
                self.stack[depth + 1] = tree.nodes[i].left
                depth += 2
        for i in range(first, first + n):
            record = self.out.nodes + i
            if record.left >= 0:
                record.left = self.position[record.left]
                record.right = self.position[record.right]
            if record.subset >= 0:
                record.subset += n_words
        self.out.count += n
        return True

    cdef bint _has_room(self, const NodeBuffer* tree) noexcept nogil:
        """Room for one more tree."""
        cdef int64_t room = 2 * tree.count + 64
        if tree.count > self.room:
            if not (resize(<void**>&self.stack, room * sizeof(int64_t))
                    and resize(<void**>&self.position, room * sizeof(int64_t))):
                return False
            self.room = room - 1            # the stack has a place more
        return reserve_records(&self.out, tree.count, self.n_statistics)

    def take(self):
        """All trees so far, as `RecordsOfTrees`; there are none then."""
        cdef int64_t n = self.out.count
        nodes = np.empty(n, dtype=RECORD)
        statistics = np.empty((n, self.n_statistics), dtype=np.int64)
        words = np.empty(self.out.n_words, dtype=np.uint64)
        cdef uint8_t[::1] raw_nodes = nodes.view(np.uint8)
        cdef int64_t[:, ::1] of_node = statistics
        cdef uint8_t[::1] raw_words = words.view(np.uint8)
        n_nodes, units = np.array(self.n_nodes, dtype=np.int64), np.array(self.units)
        if n > 0:
            memcpy(&raw_nodes[0], self.out.nodes, n * sizeof(Record))
            memcpy(&of_node[0, 0], self.out.statistics, statistics.nbytes)
        if self.out.n_words > 0:
            memcpy(&raw_words[0], self.out.words, words.nbytes)
        self.out.count = self.out.n_words = 0
        self.n_nodes, self.units = [], []
        return RecordsOfTrees(nodes, statistics, words, n_nodes, units)
