"""Bits of nodes against a plain recursion."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.model.preorder import Shape


@given(st.lists(st.booleans(), min_size=1, max_size=14), st.integers(1, 4))
def test_bits_are_a_shape_or_an_error(bits, n_trees):
    is_inner = np.array(bits)
    sizes = [len(part) for part in np.array_split(is_inner, min(n_trees, len(bits)))]

    def end_of(node, stop):
        if node >= stop:
            raise ValueError
        if not bits[node]:
            return node + 1
        right[node] = end_of(node + 1, stop)
        return end_of(right[node], stop)

    right: dict[int, int] = {}
    start, fine = 0, True
    for size in sizes:
        try:
            fine &= end_of(start, start + size) == start + size
        except ValueError:
            fine = False
        start += size
    if not fine:
        with pytest.raises(ValueError, match="preorder"):
            Shape(is_inner, np.array(sizes))
        return
    shape = Shape(is_inner, np.array(sizes))
    assert dict(zip(shape.inner.tolist(), shape.right.tolist(), strict=True)) == right
