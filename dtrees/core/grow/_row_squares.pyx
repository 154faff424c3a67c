"""Squares of the gradients of a node's rows: the impurity by which many categories pay.

A sum has 128 bits, so nothing is lost and the order of the rows does not matter. A square is
divided by the weight of its row, so a row of weight two adds what two rows add::

    weight    packed gradient    adds, weights are counts    adds, the heaviest row weighs 1.5
    1         g                  g * g                       g * g * 1.5
    2         2 g                2 * (g * g)
    1.5       1.5 g                                          1.5 * (1.5 * g * g)
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from dtrees.core.data._structs cimport int128_t
from dtrees.core.search._criterion cimport Criterion
from dtrees.core.search._open_node cimport OpenNode


cdef class RowSquares:
    """The weights of the rows of a table, for squares of their gradients.

    Parameters
    ----------
    weight : float64 (n_rows,) or None
    heaviest : float
        The largest weight of the rows that trees are grown from.
    are_counts : bool
        Whether weights are small whole numbers, so that a row of weight two is two rows.
    """

    def __cinit__(self, weight, double heaviest, bint are_counts):
        cdef const double[::1] of_row
        self.weight = weight
        self.are_counts = are_counts
        self.heaviest = 1.0
        if weight is not None:
            of_row = weight
            self.of_row = &of_row[0]
            if not are_counts:
                self.heaviest = heaviest

    cdef int128_t sum_of(self, const uint64_t* derivatives, const uint32_t* rows,
                         int64_t n) noexcept nogil:
        """Of packed gradients, times the heaviest weight where weights are no counts. O(n)."""
        cdef int128_t sum = 0
        cdef int64_t i, g, w
        cdef double light
        for i in range(n):
            g = <int32_t>(derivatives[rows[i]] >> 32)
            if self.of_row == NULL:
                sum += g * g
            elif self.are_counts:
                w = <int64_t>self.of_row[rows[i]]
                g = g // w
                sum += g * g * w
            else:
                light = self.heaviest / self.of_row[rows[i]]
                sum += <int64_t>(<double>g * <double>g * light)
        return sum

    cdef void part(self, const uint64_t* derivatives, const uint32_t* rows, OpenNode* lesser,
                   OpenNode* other) noexcept nogil:
        """Moments of two children, one of which has that of their parent, or of a root alone."""
        lesser.totals.moment = self.sum_of(derivatives, rows + lesser.start, lesser.totals.n)
        if other != NULL:
            other.totals.moment -= lesser.totals.moment

    def of_rows(self, const uint64_t[::1] derivatives not None, rows):
        """Sum of the squares of packed gradients, each divided by the weight of its row.

        Parameters
        ----------
        derivatives : uint64 (n_rows,)
            ``gradient << 32 | hessian``.
        rows : uint32 (n,)

        Returns
        -------
        float
        """
        cdef const uint32_t[::1] some = np.asarray(rows, dtype=np.uint32)
        return <double>self.sum_of(&derivatives[0], &some[0], some.shape[0]) / self.heaviest


cdef void bind_categories(Criterion* criterion, RowSquares squares, rules,
                          double row_hessian) noexcept:
    """What many categories pay in a tree; nothing without squares.

    rules : dtrees.core.data.rules.BoostingRules. row_hessian : the mean, in units
    """
    criterion.category_penalty = criterion.square_unit = 0.0
    criterion.row_hessian = row_hessian
    if squares is not None and row_hessian > 0:
        criterion.category_penalty = rules.category_penalty
        criterion.square_unit = 1.0 / (squares.heaviest * row_hessian)
