"""Derivatives of losses as integers; see _derivatives.pyx."""
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "losses/derivatives.h" nogil:
    ctypedef enum LossKind:
        LOGISTIC
        SQUARED_ERROR
        ABSOLUTE_ERROR
        QUANTILE
        HUBER
        POISSON_LOSS
        GAMMA_LOSS
        TWEEDIE_LOSS
        GIVEN
    enum:
        ROWS_AT_ONCE

cdef struct LossRows:
    # The rows of a table, and what their derivatives are packed with.
    LossKind kind
    double level            # of a quantile; the largest gradient of Huber's loss; Tweedie's power
    int64_t n_rows          # of the table
    const uint32_t* chosen  # those of the fit, ascending; NULL: all of them
    int64_t n_chosen
    int64_t n_classes       # trees of an iteration; raw predictions and derivatives by class
    const double* raw       # (n_classes, n_rows)
    const double* y         # (n_rows,): numbers, 0 and 1, or classes 0, 1, 2, ...; or NULL:
    const uint8_t* classes  # (n_rows,): classes 0, 1, 2, ... in a byte
    const double* weight    # (n_rows,), or NULL
    bint are_counts         # weights say how often a row is there: derivatives are rounded first
    const double* gradient  # (n_classes, n_given), of a loss that is GIVEN by its derivatives:
    const double* hessian   # of the chosen rows
    int64_t n_given
    double gradient_scale
    double hessian_scale
    uint64_t* packed        # (n_classes, n_rows)


cdef int64_t scratch_of(const LossRows* rows) noexcept nogil
cdef void derive_rows(const LossRows* rows, int64_t begin, int64_t end, double* values,
                      int64_t* sums, double* largest) noexcept nogil
