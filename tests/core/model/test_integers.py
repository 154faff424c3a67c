"""Integers in narrow types come back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.model.integers import narrow, widen


@given(
    st.lists(
        st.one_of(
            st.integers(-3, 3),
            st.integers(-300, 300),
            st.integers(-(2**31), 2**31),
            st.integers(-(2**63), 2**63 - 1),
        ),
        max_size=30,
    ),
    st.integers(1, 2**40),
    st.booleans(),
)
def test_narrow_integers(values, factor, divide):
    numbers = np.array(values, dtype=np.int64)
    if divide:
        numbers = numbers // factor * factor
    arrays = narrow("x", numbers, divide=divide)
    assert sum(array.nbytes for array in arrays.values()) <= numbers.nbytes + 8
    np.testing.assert_array_equal(widen(arrays, "x", len(numbers)), numbers)
