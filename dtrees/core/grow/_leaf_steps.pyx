"""What the leaves of a tree of derivatives add to raw predictions, without the interpreter.

    sums of leaves ──newton_steps──▶ steps ──add_leaf_steps──▶ weights and weighted steps of nodes
                                                  └──────────▶ rows are moved
"""
import numpy as np

from libc.math cimport fabs, frexp, ldexp, rint
from libc.stdint cimport int64_t, uint32_t

from dtrees.core.grow._leaf_heap cimport Leaf
from dtrees.core.grow._leaf_wise cimport LeafWiseGrower

cdef enum:
    STEP_BITS = 61              # of the sum of weighted steps


def newton_steps(const int64_t[:, ::1] sums not None, double l2, int shift, double most):
    """``- gradient / (hessian + l2)`` of some nodes; 0 where nothing is below the line.

    Parameters
    ----------
    sums : int64 (n, 2)
        Hessians and gradients.
    l2 : float
        In units of the hessians.
    shift : int
        Bits of a unit of gradients, in those of a unit of hessians.
    most : float
        No step is larger.

    Returns
    -------
    float64 (n,)
    """
    cdef int64_t n = sums.shape[0]
    cdef double[::1] steps = np.empty(n)
    cdef double above, below
    cdef int64_t i
    with nogil:
        for i in range(n):
            below = <double>sums[i, 0] + l2
            above = -ldexp(<double>sums[i, 1], -shift)
            steps[i] = min(max(above / below, -most), most) if below > 0 else 0.0
    return np.asarray(steps)


def weights_of_leaves(LeafWiseGrower grower not None, const int64_t[::1] weight):
    """Weight of each leaf of the tree that was grown last, in units: int64 (n_leaves,).

    weight : int64 (rows of the table,) or None
        None: the number of rows.
    """
    cdef int64_t[::1] found = np.empty(grower.n_leaves, dtype=np.int64)
    cdef const Leaf* leaf
    cdef const uint32_t* rows
    cdef int64_t i, k, sum
    assert weight is None or weight.shape[0] == grower.blocks.n_rows
    with nogil:
        for i in range(grower.n_leaves):
            leaf = grower.leaves + i
            sum = leaf.node.totals.n
            if weight is not None:
                rows = grower.store.rows + leaf.node.start
                sum = 0
                for k in range(leaf.node.totals.n):
                    sum += weight[rows[k]]
            found[i] = sum
    return np.asarray(found)


def add_leaf_steps(LeafWiseGrower grower not None, piece, const double[::1] steps not None,
                   const int64_t[::1] weights not None, double weight_unit,
                   double[::1] raw not None):
    """Move the rows of the tree that was grown last, and tell its statistics.

    A weighted step is rounded to an integer, and rows are moved by the quotient of that and the
    weight: by the very number that the stored tree gives.

    Parameters
    ----------
    piece : PartialTree
        What the grower returned.
    steps : float64 (n_leaves,)
    weights : int64 (n_leaves,)
    weight_unit : float
        What one unit of the weights is for the user.
    raw : float64 (rows of the table,), IN and OUT

    Returns
    -------
    statistics : int64 (n_nodes, 2)
        Weights and weighted steps.
    unit : float
        Of weighted steps.
    """
    cdef int64_t n = grower.n_leaves
    of_leaves = np.empty((n, 2), dtype=np.int64)
    cdef int64_t[:, ::1] sums = of_leaves
    cdef double[::1] stored = np.empty(n)
    cdef double largest = 0
    cdef int64_t weight = 0
    cdef double unit
    cdef int64_t i
    cdef int exponent
    assert steps.shape[0] == n and weights.shape[0] == n
    with nogil:
        for i in range(n):
            largest = max(largest, fabs(steps[i]))
            weight += weights[i]
        frexp(largest * (<double>weight * weight_unit), &exponent)
        unit = ldexp(1.0, exponent - STEP_BITS)
        for i in range(n):
            sums[i, 0] = weights[i]
            sums[i, 1] = <int64_t>rint(
                ldexp(steps[i] * (<double>weights[i] * weight_unit), STEP_BITS - exponent))
            stored[i] = <double>sums[i, 1] * unit / (<double>weights[i] * weight_unit)
    grower.add_steps(np.asarray(stored), raw)
    return grower.sums_of_nodes(piece, of_leaves), unit
