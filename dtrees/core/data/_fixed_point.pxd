"""Numbers that have the same bits on every machine: a logarithm, and moments as integers.

Only additions, multiplications, divisions and conversions of IEEE doubles are used, each rounded
once (the build turns contraction off). The logarithm is our own, since those of the C libraries
differ in the last bit.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from dtrees.core.data._structs cimport POISSON, Impurity, Totals, int128_t


cdef inline double natural_log(double x) noexcept nogil:
    """log(x) for finite x > 0, to about an ulp, with one fixed order of operations.

    x = m * 2**k with m in [sqrt(1/2), sqrt(2)); log m = 2 artanh(z), z = (m-1)/(m+1), by the odd
    series, whose next term is below 2**-57.
    """
    cdef uint64_t bits
    cdef int64_t k = 0
    cdef double m, z, z2, p
    if x < 2.2250738585072014e-308:
        x = x * 18014398509481984.0
        k = -54
    memcpy(&bits, &x, 8)
    k += <int64_t>(bits >> 52) - 1023
    bits = (bits & 0xFFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL
    memcpy(&m, &bits, 8)
    if m > 1.4142135623730951:
        m = m * 0.5
        k += 1
    z = (m - 1.0) / (m + 1.0)
    z2 = z * z
    p = 1.0 / 23.0
    p = p * z2 + 1.0 / 21.0
    p = p * z2 + 1.0 / 19.0
    p = p * z2 + 1.0 / 17.0
    p = p * z2 + 1.0 / 15.0
    p = p * z2 + 1.0 / 13.0
    p = p * z2 + 1.0 / 11.0
    p = p * z2 + 1.0 / 9.0
    p = p * z2 + 1.0 / 7.0
    p = p * z2 + 1.0 / 5.0
    p = p * z2 + 1.0 / 3.0
    p = 2.0 * z + 2.0 * z * z2 * p
    return <double>k * 0.6931471803691238 + (<double>k * 1.9082149292705877e-10 + p)


cdef inline int128_t moment_of(Impurity impurity, double fixed_point, int64_t w, int64_t wy,
                               int64_t y) noexcept nogil:
    """What a row adds to `Totals.moment`: weight y**2, or weight y log y in fixed point.

    Rows that no tree of a growth has are added up beside its own, and left out afterwards. The
    scale is not made for them: what does not fit counts nothing.
    """
    cdef double logarithm
    if impurity != POISSON:
        return <int128_t>wy * y
    if y <= 0:
        return 0
    logarithm = <double>y * natural_log(<double>y) * fixed_point + 0.5
    return <int128_t>w * <int64_t>logarithm if logarithm < 9e18 else 0


cdef inline int128_t spread_of(const Totals* t, double unit) noexcept nogil:
    """moment - target**2 / weight in integers, where `one_scale`: nothing cancels.

    unit : of the weights.
    """
    cdef int128_t squares = <int128_t>t.target * t.target
    cdef int128_t quotient = squares / t.weight
    cdef int128_t spread
    cdef int shift = 0
    while unit < 1.0:
        unit = unit * 2.0
        shift += 1
    spread = t.moment - (quotient << shift)
    if shift > 0:
        spread -= ((squares - quotient * t.weight) << shift) / t.weight
    return spread
