"""What a boundary has to reach in a scan of one number per row; see _number_scan.pyx.

Why the margin of logarithms is larger than their roundings. Sums are integers of at most 62 bits,
so that no logarithm of a mean is beyond 44, and a Poisson score is within 44 S. Of this a double
loses a few units of 2**-53 of the score, and its logarithm as much: less than 2**-44 S. The terms
s*s / (w*c) of `may_reach` are not negative. Where they come to more than 200 S the sum is positive
whatever is rounded; else their roundings are below 2**-43 S. `LAST_LOGARITHMS` is 2**-40. All of
this needs the weights of both sides to the last bits: W - w is taken from the integers, as W has
up to 61 bits, and a difference of doubles might be off by all of a light side.
"""
from dtrees.core.data._fixed_point cimport natural_log
from dtrees.core.search._search cimport Search

cdef extern from *:
    """
    #define DTREES_LAST_LOGARITHMS 0x1p-40
    """
    const double LAST_LOGARITHMS "DTREES_LAST_LOGARITHMS"  # of a Poisson score, for its target

cdef struct Reach:
    double score            # at least
    double limit            # of D*D / (w * rest), at least
    bint known              # Poisson: logarithms of a boundary, the means of whose sides are
    double left
    double rest
    double log_left         # less 1
    double log_rest


cdef inline void note_rates(const Search* q, double w, double rest, double s,
                            Reach* reach) noexcept nogil:
    """Take the logarithms of a boundary. w, s : of what is on the left; rest : weight of the right.
    """
    if s <= 0 or q.S - s <= 0:
        return
    reach.known = True
    reach.left = s / w
    reach.rest = (q.S - s) / rest
    reach.log_left = natural_log(reach.left) - 1
    reach.log_rest = natural_log(reach.rest) - 1


cdef inline bint may_reach(const Search* q, double w, double rest, double s,
                           const Reach* reach) noexcept nogil:
    """Whether a boundary may score so much, by the logarithms of another one; no division by a
    weight. w, s : of what is on the left; rest : weight of the right."""
    cdef double right = q.S - s
    cdef double linear = s * reach.log_left + right * reach.log_rest
    cdef double score = reach.score - 2 * LAST_LOGARITHMS * q.S
    return (s * s * rest / reach.left + right * right * w / reach.rest
            + w * rest * (linear - score) >= 0)
