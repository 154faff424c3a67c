"""What a boundary has to reach in a scan of one number per row; see _number_scan.pyx."""
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


cdef inline void note_rates(const Search* q, double w, double s, Reach* reach) noexcept nogil:
    """Take the logarithms of a boundary. w, s : of what is on the left."""
    if s <= 0 or q.S - s <= 0:
        return
    reach.known = True
    reach.left = s / w
    reach.rest = (q.S - s) / (q.W - w)
    reach.log_left = natural_log(reach.left) - 1
    reach.log_rest = natural_log(reach.rest) - 1


cdef inline bint may_reach(const Search* q, double w, double s,
                           const Reach* reach) noexcept nogil:
    """Whether a boundary may score so much, by the logarithms of another one; no division by a
    weight. w, s : of what is on the left."""
    cdef double right = q.S - s
    cdef double rest = q.W - w
    cdef double linear = s * reach.log_left + right * reach.log_rest
    cdef double score = reach.score - 2 * LAST_LOGARITHMS * q.S
    return (s * s * rest / reach.left + right * right * w / reach.rest
            + w * rest * (linear - score) >= 0)
