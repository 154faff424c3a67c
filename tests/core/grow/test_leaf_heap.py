"""Open leaves come in the order of their gains, whenever they were pushed."""

from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.grow._leaf_heap import order_of


@given(st.lists(st.integers(0, 9), max_size=40))
def test_the_one_that_gains_most_comes_first(gains):
    found = order_of([float(gain) for gain in gains]).tolist()
    assert found == sorted(range(len(gains)), key=lambda i: (-gains[i], i))


@given(st.lists(st.integers(0, 9), max_size=40))
def test_without_a_limit_of_leaves_the_last_one_comes_first(gains):
    found = order_of([float(gain) for gain in gains], False).tolist()
    assert found == list(range(len(gains)))[::-1]
