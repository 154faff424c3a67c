"""The node step on at most 16 rows: a column is two integers, and no entries are moved.

Half of the nodes of a tree have two or three rows. What a column costs there is not its entries but
what stands around them. So a node of few rows gives its entries up: the order of its rows along a
column is an integer of 16 digits, and so are their ranks (`few_rows.h`). Its subtree is grown from
these. Trees are the same, bit for bit: floats tell which columns are worth a look, and scores are
those of other nodes.

This serves numbers of rows that weigh one each, by absolute error, whose rows are numbered in the
order of y, and by squared error, which two classes are, too. Rows with missing values, categories,
columns that are counted, orders and sets of columns stay with their entries. So do nodes of more
than 4,096 columns that vary, and all on processors that lack `pext`, or take long for it.
"""
from libc.math cimport sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from dtrees._random cimport hash64
from dtrees.core.data._bits cimport trailing_zeros
from dtrees.core.data._cpu cimport has_pext, is_wide
from dtrees.core.data._paths cimport PATH_IS_ON
from dtrees.core.data._structs cimport ABSOLUTE, ALL_ORDERED, NO_RANK, SQUARED, PresortedFeature
from dtrees.core.histogram._layout cimport COUNT, SUM
from dtrees.core.search._absolute_errors cimport step
from dtrees.core.search._criterion cimport NONE, squared_score
from dtrees.core.search._open_node cimport OpenNode, has_constraints
from dtrees.core.search._parameters cimport TIES
from dtrees.core.search._search cimport Search, key_of_tie, take_split
from dtrees.core.stores._store cimport CodesOfRanks, Member, Store, prefetch_codes
from dtrees.core.stores.presorted._buffers cimport Buffers
from dtrees.core.stores.presorted._presorted_store cimport partition_rows

cdef extern from "stores/few_rows.h" nogil:
    ctypedef struct FewColumns:
        uint64_t* order         # by column, a digit of four bits for each row
        uint64_t* rank
        int32_t* column
        int64_t n
    void columns_in_reach(const FewColumns*, int64_t, const int64_t*, const float*, float*,
                          uint8_t*) noexcept
    void part_columns(const FewColumns*, int64_t, uint64_t, int64_t, FewColumns*,
                      FewColumns*) noexcept
    void fill_up(FewColumns*) noexcept

cdef float[DIGITS + 1][DIGITS] shapes   # of k of n rows on the left: 1 / sqrt(k * (n - k))

for _n in range(2, DIGITS + 1):
    for _k in range(1, _n):
        shapes[_n][_k] = 1 / sqrt(_k * (_n - _k))


cdef FewRowsStore few_rows_store() noexcept nogil:
    """A store without rows."""
    cdef FewRowsStore s
    memset(&s, 0, sizeof(FewRowsStore))
    s.store.search_node = search_node
    s.store.choose = choose
    s.store.partition = partition
    return s


# ---------------------------------------------------------------------------------------------
# from entries

cdef bint may_pack(const Store* store, const Buffers* w, const OpenNode* node) noexcept nogil:
    """Whether a node of narrow buffers can give its entries up."""
    cdef const Search* q = store.search
    cdef const PresortedFeature* feature
    cdef int64_t r
    if (node.totals.n > DIGITS or not is_wide or not has_pext
            or (q.kind != SUM and q.kind != COUNT)
            or (q.criterion.impurity != SQUARED and q.criterion.impurity != ABSOLUTE)
            or node.n_features > MOST_COLUMNS or has_constraints(store.params)
            or not PATH_IS_ON("few_rows")):
        return False
    for r in range(node.n_features):
        feature = node.features + r
        if (feature.length == 0 or feature.last_ordered != ALL_ORDERED or feature.fill == 0
                or (<const uint32_t*>w.entries)[feature.offset] >> 16 == 0):
            return False
    return True


cdef FewColumns* new_columns(int64_t n) noexcept nogil:
    """Room for n columns, and some that are constant; NULL without memory."""
    cdef int64_t room = n + 8
    cdef FewColumns* c = <FewColumns*>malloc(sizeof(FewColumns) + room * 20)
    if c != NULL:
        c.order = <uint64_t*>(c + 1)
        c.rank = c.order + room
        c.column = <int32_t*>(c.rank + room)
        c.n = 0
    return c


cdef bint pack(FewRowsStore* s, const Store* store, Buffers* w, OpenNode* node) noexcept nogil:
    """Turn the entries of a node into columns of few rows; False without memory. O(entries)."""
    cdef const uint32_t* rows = w.rows + node.start
    cdef FewColumns* c = new_columns(node.n_features)
    cdef int64_t r
    if c == NULL:
        return False
    s.w = w
    s.store.params = store.params
    s.store.search = store.search
    for r in range(node.totals.n):
        s.row[r] = rows[r]
        s.target[r] = (w.of_row.label[rows[r]] if store.search.kind == COUNT
                       else w.of_row.target[rows[r]])
        w.side[rows[r]] = <uint8_t>r
    for r in range(node.n_features):
        pack_column(<const uint32_t*>w.entries, node.features + r, w.side, node.totals.n,
                    c.order + c.n, c.rank + c.n)
        c.column[c.n] = node.features[r].column
        c.n += c.rank[c.n] != 0
    fill_up(c)
    free(node.features)
    node.features = NULL
    node.n_features = 0
    node.few_columns = c
    return True


cdef inline void pack_column(const uint32_t* entries, const PresortedFeature* feature,
                             const uint8_t* number, int64_t n, uint64_t* order,
                             uint64_t* rank) noexcept nogil:
    """Order and ranks of a column; rows without an entry stand where the fill code does."""
    cdef const uint32_t* e = entries + feature.offset
    cdef int64_t m = feature.length
    cdef int64_t at = 0
    cdef int64_t i
    cdef uint64_t others = (<uint64_t>1 << n) - 1
    cdef uint64_t own = 0
    cdef uint32_t before
    order[0] = 0
    rank[0] = 0
    for i in range(m if m < n else 0):
        others ^= <uint64_t>1 << number[e[i] & 0xFFFF]
    before = e[0] >> 16
    for i in range(m):
        if m < n and others != 0 and e[i] >> 16 > feature.fill:
            own += i > 0
            at = pack_others(order, rank, &others, at, own)
            before = feature.fill
        own += e[i] >> 16 != before
        before = e[i] >> 16
        order[0] |= <uint64_t>number[e[i] & 0xFFFF] << at
        rank[0] |= own << at
        at += 4
    if m < n and others != 0:
        pack_others(order, rank, &others, at, own + (m > 0))


cdef int64_t pack_others(uint64_t* order, uint64_t* rank, uint64_t* others, int64_t at,
                         uint64_t own) noexcept nogil:
    """Rows that have no entries, a bit each, from bit `at` on; none is left. Returns the next
    bit."""
    while others[0] != 0:
        order[0] |= <uint64_t>trailing_zeros(others[0]) << at
        rank[0] |= own << at
        others[0] &= others[0] - 1
        at += 4
    return at


# ---------------------------------------------------------------------------------------------
# the node step

cdef struct Best:
    # The best boundary so far, as `Search` compares them.
    double score
    uint64_t key            # of a tie; not needed where the lowest column wins
    int64_t column          # by its place; -1: there is none
    int64_t n_left


cdef void search_node(Store* store, Member* member) noexcept nogil:
    cdef FewRowsStore* s = <FewRowsStore*>store
    cdef Search* q = store.search
    cdef const FewColumns* c = <const FewColumns*>member.node.few_columns
    cdef int64_t n = member.node.totals.n
    cdef int64_t least = max(q.min_rows, q.min_weight, 1)
    cdef int64_t k
    cdef float[DIGITS] shape
    cdef float[MOST_COLUMNS] scratch
    cdef uint8_t[MOST_COLUMNS >> 3] reaching
    cdef uint64_t bits
    cdef Best best = Best(NONE, 0, -1, 0)
    store.work += c.n + 8
    if c.n == 0 or n < 2 * least:
        return
    if n == 2:
        search_two(s, c, &best)
    elif q.criterion.impurity == ABSOLUTE:
        search_medians(s, c, n, least, &best)
    else:
        for k in range(1, n):
            shape[k] = shapes[n][k] if least <= k <= n - least else -1
        columns_in_reach(c, n, s.target, shape, scratch, reaching)
        for k in range(0, c.n, 8):
            bits = reaching[k // 8]
            while bits != 0:
                if k + trailing_zeros(bits) < c.n:
                    search_column(s, c, k + trailing_zeros(bits), n, least, &best)
                bits &= bits - 1
    if best.column >= 0:
        take(s, c, &best)


cdef void search_two(FewRowsStore* s, const FewColumns* c, Best* best) noexcept nogil:
    """The split of two rows: all columns vary, and their scores are equal. So the one that wins a
    tie is the only one looked at."""
    cdef Search* q = s.store.search
    cdef uint64_t of_ties = hash64(q.of_node, TIES)
    cdef uint64_t most = 0
    cdef uint64_t key
    cdef int64_t first = 0
    cdef int64_t i
    for i in range(c.n if q.random_ties else 0):
        key = hash64(of_ties, <uint64_t>c.column[i])
        first = i if key > most else first
        most = max(most, key)
    if q.criterion.impurity == ABSOLUTE:
        keep_column(q, c, first, <double><int64_t>q.totals.moment, 1, best)
    else:
        search_column(s, c, first, 2, 1, best)


cdef inline void search_column(FewRowsStore* s, const FewColumns* c, int64_t i, int64_t n,
                               int64_t least, Best* best) noexcept nogil:
    """Look at the boundaries of column number i; what is found is not told by branches. Ties are
    those of `comes_first`, with the key of the best column kept."""
    cdef const Search* q = s.store.search
    cdef int64_t W = q.totals.weight
    cdef int64_t S = q.totals.target
    cdef uint64_t order = c.order[i]
    cdef uint64_t changes = c.rank[i] ^ c.rank[i] >> 4
    cdef int64_t sum = 0
    cdef int64_t n_left = 0
    cdef int64_t k
    cdef double most = NONE
    cdef double score
    cdef bint counts
    for k in range(1, n):
        sum += s.target[order & 15]
        score = squared_score(W, S, k, sum)
        counts = (changes & 15) != 0 and least <= k and k <= n - least and score > most
        most = score if counts else most
        n_left = k if counts else n_left
        order >>= 4
        changes >>= 4
    keep_column(q, c, i, most, n_left, best)


cdef inline void keep_column(const Search* q, const FewColumns* c, int64_t i, double most,
                             int64_t n_left, Best* best) noexcept nogil:
    """Keep the best boundary of column number i if it beats what is there."""
    cdef uint64_t key = 0
    if most < best.score or most == NONE:
        return
    if q.random_ties:
        key = key_of_tie(q, c.column[i])
    if (most > best.score or key > best.key
            or (key == best.key and c.column[i] < c.column[best.column])):
        best[0] = Best(most, key, i, n_left)


cdef void search_medians(FewRowsStore* s, const FewColumns* c, int64_t n, int64_t least,
                         Best* best) noexcept nogil:
    """Look at the boundaries of all columns, by absolute errors, of three rows or more."""
    cdef const Search* q = s.store.search
    cdef const int64_t* y = s.target - 1
    cdef uint64_t order = c.order[0]
    cdef uint64_t rows = 0
    cdef uint64_t changes, places, others
    cdef int64_t middle, left, right, i, k, _k, p, held, errors, n_left
    cdef double most, score
    cdef bint counts
    for k in range(n):
        rows |= <uint64_t>2 << (order >> 4 * k & 15)
    others = ~rows
    for _k in range(n // 2):
        rows &= rows - 1
    middle = trailing_zeros(rows)
    for i in range(c.n):
        order = c.order[i]
        changes = c.rank[i] ^ c.rank[i] >> 4
        places = left = errors = 0
        right = middle
        held = DIGITS + 1
        most = NONE
        n_left = 0
        for k in range(1, n):
            p = (order & 15) + 1
            places |= <uint64_t>1 << p
            errors += step(NULL, places, &left, y, p, held, k & 1 == 0, True, True)
            errors -= step(NULL, places | others, &right, y, p, held, n - k & 1 == 0, False, True)
            held = p
            score = <double>-errors
            counts = (changes & 15) != 0 and least <= k and k <= n - least and score > most
            most = score if counts else most
            n_left = k if counts else n_left
            order >>= 4
            changes >>= 4
        keep_column(q, c, i, most, n_left, best)


cdef inline void take(FewRowsStore* s, const FewColumns* c, const Best* best) noexcept nogil:
    """Make the best boundary the split of the node. Its ranks are any but that of missing values:
    rows tell the codes."""
    cdef Search* q = s.store.search
    cdef uint64_t order = c.order[best.column]
    s.chosen = best.column
    s.n_left = best.n_left
    q.best = best.score
    take_split(q, c.column[best.column], 1, 1, False, False)
    q.split.boundary_row = s.row[order >> 4 * (s.n_left - 1) & 15]
    q.split.beyond_row = s.row[order >> 4 * s.n_left & 15]


cdef void choose(Store* store, Member* member, uint64_t together) noexcept nogil:
    cdef FewRowsStore* s = <FewRowsStore*>store
    store.last_ordered = ALL_ORDERED
    store.codes = CodesOfRanks(False, NO_RANK, s.w.row_id)
    prefetch_codes(store)


cdef void partition(Store* store, Member* member, uint64_t together) noexcept nogil:
    cdef FewRowsStore* s = <FewRowsStore*>store
    cdef OpenNode* node = member.node
    cdef OpenNode* left = member.left
    cdef OpenNode* right = member.right
    cdef const FewColumns* c = <const FewColumns*>node.few_columns
    cdef uint64_t order = c.order[s.chosen]
    cdef int64_t i
    for i in range(node.totals.n):
        s.w.side[s.row[order >> 4 * i & 15]] = i < s.n_left
    if not partition_rows(store.params, s.w, node, left, right):
        store.search.out_of_memory = True
        return
    if left.is_leaf and right.is_leaf:
        return
    if not left.is_leaf:
        left.few_columns = new_columns(c.n)
        store.search.out_of_memory |= left.few_columns == NULL
    if not right.is_leaf:
        right.few_columns = new_columns(c.n)
        store.search.out_of_memory |= right.few_columns == NULL
    part_columns(c, node.totals.n, order, s.n_left, <FewColumns*>left.few_columns,
                 <FewColumns*>right.few_columns)
