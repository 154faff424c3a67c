"""The weakest links of a grown tree, in the order in which they break.

Minimal cost-complexity pruning (Breiman et al. 1984), the last promise of [SF] 3. Cutting the
branch below node t raises the tree's cost by R(t) - R(branch) and saves leaves(branch) - 1 leaves,
so it pays as soon as a leaf costs more than

    alpha(t) = (R(t) - R(branch of t)) / (leaves(branch of t) - 1)

The weakest link is the node of the smallest alpha; of equal ones the first in preorder, so an
ancestor goes before what hangs below it. It becomes a leaf, the numbers of its ancestors change,
and the next weakest link is looked for until the root is a leaf.

The smallest alpha is kept in a tournament: a complete binary tree over the nodes in which every
match holds the winner of its two sides. A changed alpha replays the matches above it and stops at
the first one that it neither won before nor wins now.

    match 1                    [2]
    matches 2, 3          [2]       [5]
    nodes 0..7          0 1 2 3   4 5 6 7

Cost: O(nodes x depth) additions, as in scikit-learn, but no scan over all nodes for every link.
The sums are taken in scikit-learn's order, so equal impurities give an equal path, bit for bit.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t


cdef inline int64_t _winner(const double[::1] alpha, int64_t a, int64_t b) noexcept nogil:
    """Of two nodes, a < b, the one of smaller alpha; of equal ones the first."""
    return a if alpha[a] <= alpha[b] else b


cdef void _replay(const double[::1] alpha, int64_t[::1] match, int64_t node) noexcept nogil:
    """Brings the matches above a node up to date after its alpha has changed."""
    cdef int64_t at = (alpha.shape[0] + node) >> 1
    cdef int64_t winner
    while at >= 1:
        winner = _winner(alpha, match[2 * at], match[2 * at + 1])
        if winner != node and match[at] == winner:
            return
        match[at] = winner
        at >>= 1


def weakest_links(
    const int32_t[::1] left,
    const int32_t[::1] right,
    const int32_t[::1] last,
    const double[::1] cost,
):
    """All weakest links of a tree, weakest first.

    Parameters
    ----------
    left, right : int32 (n_nodes,)
        Children, -1 in leaves; nodes in preorder.
    last : int32 (n_nodes,)
        Last node of every node's branch: branch t is t..last[t].
    cost : float64 (n_nodes,)
        R(t): the node's share of the weight times its impurity.

    Returns
    -------
    links : int32 (n_links,)
        Nodes in the order in which they become leaves; the last one is the root.
    alphas : float64 (n_links,)
        Alpha of each link when it broke.
    costs : float64 (n_links + 1,)
        R of the whole tree before the first link broke and after each.
    """
    cdef int64_t n = left.shape[0]
    cdef int64_t size = 1 << max(int(n - 1).bit_length(), 1)
    links_array = np.empty(n // 2, dtype=np.int32)
    alphas_array = np.empty(n // 2, dtype=np.float64)
    costs_array = np.empty(n // 2 + 1, dtype=np.float64)
    cdef int32_t[::1] links = links_array
    cdef double[::1] alphas = alphas_array
    cdef double[::1] costs = costs_array
    cdef int32_t[::1] parent = np.full(n, -1, dtype=np.int32)
    cdef int64_t[::1] leaves = np.zeros(n, dtype=np.int64)
    cdef double[::1] branch = np.zeros(n, dtype=np.float64)
    cdef double[::1] alpha = np.full(size, INFINITY, dtype=np.float64)
    cdef int64_t[::1] match = np.zeros(2 * size, dtype=np.int64)
    cdef int64_t i, at, link, saved
    cdef int64_t n_links = 0
    cdef double rise
    with nogil:
        _sum_branches(left, right, cost, parent, leaves, branch)
        for i in range(size):
            match[size + i] = i
            if i < n and left[i] >= 0:
                alpha[i] = (cost[i] - branch[i]) / (leaves[i] - 1)
        for i in range(size - 1, 0, -1):
            match[i] = _winner(alpha, match[2 * i], match[2 * i + 1])
        costs[0] = branch[0]
        while alpha[0] < INFINITY:
            link = match[1]
            links[n_links] = <int32_t> link
            alphas[n_links] = alpha[link]
            _break_below(alpha, match, link, last)
            saved = leaves[link] - 1
            rise = cost[link] - branch[link]
            branch[link] = cost[link]
            at = parent[link]
            while at >= 0:
                leaves[at] -= saved
                branch[at] += rise
                alpha[at] = (cost[at] - branch[at]) / (leaves[at] - 1)
                _replay(alpha, match, at)
                at = parent[at]
            n_links += 1
            costs[n_links] = branch[0]
    return links_array[:n_links], alphas_array[:n_links], costs_array[: n_links + 1]


cdef void _sum_branches(
    const int32_t[::1] left, const int32_t[::1] right, const double[::1] cost,
    int32_t[::1] parent, int64_t[::1] leaves, double[::1] branch,
) noexcept nogil:
    """Fill parents, and R and the number of leaves of every branch (none in a leaf itself)."""
    cdef int64_t i, at
    for i in range(left.shape[0]):
        if left[i] >= 0:
            parent[left[i]] = <int32_t> i
            parent[right[i]] = <int32_t> i
            continue
        branch[i] = cost[i]
        at = parent[i]
        while at >= 0:
            branch[at] += cost[i]
            leaves[at] += 1
            at = parent[at]


cdef void _break_below(
    double[::1] alpha, int64_t[::1] match, int64_t link, const int32_t[::1] last
) noexcept nogil:
    """What hangs below the link breaks no more; what broke already is skipped whole."""
    cdef int64_t i = link
    while i <= last[link]:
        if alpha[i] < INFINITY:
            alpha[i] = INFINITY
            _replay(alpha, match, i)
            i += 1
        else:
            i = last[i] + 1


ctypedef fused number_t:
    int64_t
    double


def least_above(const int32_t[::1] left, const int32_t[::1] right, number_t[::1] values):
    """Give every node the least value of its own and of its ancestors, in place.

    Parameters
    ----------
    left, right : int32 (n_nodes,)
        Children, -1 in leaves; nodes in preorder.
    values : int64 or float64 (n_nodes,)
    """
    cdef int64_t i
    cdef int64_t n = left.shape[0]
    with nogil:
        for i in range(n):  # parents stand before their children
            if left[i] >= 0:
                values[left[i]] = min(values[left[i]], values[i])
                values[right[i]] = min(values[right[i]], values[i])


def depths(const int32_t[::1] left, const int32_t[::1] right):
    """Depth of every node, int64 (n_nodes,); the root has 0. Nodes in preorder."""
    found = np.zeros(left.shape[0], dtype=np.int64)
    cdef int64_t[::1] depth = found
    cdef int64_t i
    with nogil:
        for i in range(depth.shape[0]):
            if left[i] >= 0:
                depth[left[i]] = depth[right[i]] = depth[i] + 1
    return found


ctypedef fused node_t:
    int32_t
    int64_t


def ends_of(const node_t[::1] right):
    """Last node of every branch, of the same type: go right until there is a leaf. O(nodes).

    right : integers (n_nodes,)
        Right child of every inner node, which stands behind it; of a leaf itself, or negative.
    """
    found = np.array(right)
    cdef node_t[::1] last = found
    cdef int64_t i
    with nogil:
        for i in range(last.shape[0] - 1, -1, -1):
            last[i] = <node_t>i if last[i] < 0 else last[last[i]]
    return found
