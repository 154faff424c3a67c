"""The logarithm of arrays, with the same bits everywhere: by additions and multiplications."""

from __future__ import annotations

import numpy as np


def log(x: np.ndarray) -> np.ndarray:
    """Natural logarithm of positive numbers, not subnormal: as `natural_log` of kernels."""
    bits = np.ascontiguousarray(x).view(np.int64)
    k = (bits >> 52) - 1023
    m = (bits & 0xFFFFFFFFFFFFF | 0x3FF0000000000000).view(np.float64)
    large = m > 1.4142135623730951
    m = np.where(large, m * 0.5, m)
    power = (k + large).astype(np.float64)
    z = (m - 1.0) / (m + 1.0)
    z2 = z * z
    p = np.full(len(z), 1.0 / 23.0)
    for odd in range(21, 1, -2):
        p = p * z2 + 1.0 / odd
    p = 2.0 * z + 2.0 * z * z2 * p
    return power * 0.6931471803691238 + (power * 1.9082149292705877e-10 + p)
