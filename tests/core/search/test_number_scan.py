"""Scans of one number per row: what is passed over holds no better boundary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core._testing import boundaries_of_numbers
from dtrees.core.data.tuning import Tuning
from tests.laws.tables import Example, arrays_of, coded_sparse, fit, grow_parts, seeded
from tests.registers import wide_registers

SORTED = Tuning(counted_rows=1 << 40)
COUNTED = Tuning(counted_rows=0)
WAYS = [
    ("gini", 2, "none"),
    ("gini", 2, "integers"),
    ("gini", 2, "fractions"),
    ("squared_error", 0, "none"),
    ("squared_error", 0, "integers"),
    ("poisson", 0, "none"),
    ("poisson", 0, "integers"),
]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("limits", [{}, {"min_samples_leaf": 7}, {"min_weight_leaf": 9.5}], ids=str)
def test_a_tree_of_entries_is_that_of_histograms(way, limits):
    """Distinct and tied values, values that most rows hold, missing ones in every second column."""
    kinds = ("distinct", "distinct", "ties", "counts", "mostly", "missing", "ties")
    example = seeded(*way, kinds=kinds, n_rows=900, **limits)
    by_histogram = arrays_of(fit(example, tuning=COUNTED))
    assert arrays_of(fit(example, tuning=SORTED)) == by_histogram
    sparse = [(coded_sparse(example.table, 3), example.target)]
    assert arrays_of(grow_parts(example, sparse, tuning=SORTED)) == by_histogram


@given(
    st.integers(20, 200),
    st.integers(1, 57),
    st.integers(-3, 3),
    st.sampled_from([1, 5]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_four_at_a_time_find_what_one_at_a_time_finds(n, bits, offset, least, weighted, seed):
    """Targets of few and of many digits, columns that say something and columns that do not."""
    rng = np.random.default_rng(seed)
    x = np.arange(n)
    step = np.where(x < n // 2, 1.0, rng.random())
    y = rng.normal(size=n) + step + offset
    y = np.round(y / np.abs(y).max() * 2.0**bits)
    table = [x, rng.permutation(n), rng.integers(0, 7, n), np.where(x % 5, 3.0, x)]
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    limits = {"min_samples_leaf": least, "max_depth": 3}
    example = Example([c.astype(float).tolist() for c in table], y, weight, "squared_error", limits)
    found = [arrays_of(fit(example, tuning=tuning)) for tuning in (SORTED, COUNTED)]
    with wide_registers(False):
        found.append(arrays_of(fit(example, tuning=SORTED)))
    assert found == [found[0]] * 3


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
@pytest.mark.parametrize("down", [False, True])
def test_a_side_may_weigh_hardly_more_than_a_rounding_of_the_node(criterion, down):
    """The node weighs more than 2**53: a difference of doubles is off by some of what is left."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weight = np.concatenate([rng.integers(2**52, 2**53, 49), np.ones(16), [1000.0]])
        y = np.zeros(66)
        y[0], y[-1] = 2.0**-40, 16.0
        x = np.arange(66.0)[::-1] if down else np.arange(66.0)
        example = Example([x.tolist()], y, weight, criterion, {"max_depth": 2})
        assert arrays_of(fit(example, tuning=SORTED)) == arrays_of(fit(example, tuning=COUNTED))


def score(target, i):
    """The score of the boundary before row i, in Python's integers but for the quotient."""
    W, S, s = len(target), sum(target), sum(target[:i])
    return (W * s - i * S) ** 2 / (i * (W - i))


@given(
    st.integers(2, 120),
    st.integers(1, 57),
    st.integers(-3, 3),
    st.integers(0, 40),
    st.sampled_from([1.0, 0.9, 0.3, 0.0]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_boundaries_that_reach(n, bits, offset, before, factor, ties, seed):
    """All that reach are found, with the sums before them, whatever is passed over."""
    rng = np.random.default_rng(seed)
    step = np.where(np.arange(n) < n // 2, 1.0, rng.random())
    values = rng.normal(size=n) + step + offset
    target = (values / np.abs(values).max() * 2.0**bits).astype(np.int64)
    rank = np.sort(rng.integers(0, n, n)) if ties else np.arange(n)
    rows = [0] * before + target.tolist()
    found = {i: score(rows, before + i) for i in range(1, n)}
    reach = max(found.values()) * factor if factor > 0 else -1e300
    expected = {
        (i, sum(rows[: before + i]))
        for i in found
        if rank[i] != rank[i - 1] and (factor == 0 or found[i] >= reach)
    }
    given_reach = reach * (1 - 2.0**-48) if factor > 0 else reach  # as of a search
    boundaries = boundaries_of_numbers(target, rank.astype(np.uint16), given_reach, before=before)
    assert boundaries is None or expected <= set(boundaries)
    if boundaries is not None and factor > 0 and bits < 40:  # beyond, W s - w S loses bits
        assert all(found[i] >= given_reach * (1 - 1e-9) for i, _ in boundaries)
