"""Ordered columns are searched straight from cells, and as other columns are: by bins.

Scores within bounds of the steps are those of every boundary in fractions. Trees whose columns are
monotonic stand in tests/laws/test_constraints.py and tests/estimators/test_column_rules.py.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core._testing import split_of_cells
from tests.registers import wide_registers


@st.composite
def histograms(draw):
    n_codes = draw(st.integers(1, 12))
    cells = np.zeros((n_codes + 1, 3), dtype=np.int64)  # rows, hessian, gradient
    for code in range(n_codes + 1):
        rows = draw(st.sampled_from([0, 0, 1, 2, 5]))
        if rows:
            cells[code] = rows, rows * draw(st.integers(1, 4)), draw(st.integers(-6, 6))
    return cells


@given(histograms(), st.integers(1, 4), st.integers(1, 6), st.sampled_from([0.0, 1.5]))
def test_the_same_split_as_by_bins(cells, min_rows, min_weight, l2):
    how = {"min_rows": min_rows, "min_weight": min_weight, "l2": l2}
    assert split_of_cells(cells, **how) == split_of_cells(cells, **how, by_bins=True)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 700),
    st.sampled_from([1, 2, 20]),
    st.sampled_from([1, 2**36]),
    st.sampled_from([0.0, 1e9]),
    st.booleans(),
)
def test_many_codes_and_large_sums(seed, n_codes, min_rows, min_weight, l2, wide):
    random = np.random.default_rng(seed)
    rows = random.poisson(random.choice([0.3, 3.0, 40.0]), n_codes + 1)
    rows[0] *= random.integers(2)  # missing values, or none
    cells = np.stack(
        [
            rows,
            random.integers(0, 2**24, n_codes + 1) * rows,
            random.integers(-(2**44), 2**44, n_codes + 1) * rows,
        ],
        axis=1,
    )
    how = {"min_rows": min_rows, "min_weight": min_weight, "l2": l2}
    with wide_registers(wide):
        found = split_of_cells(cells, **how)
    assert found == split_of_cells(cells, **how, by_bins=True)


def test_missing_values_alone_on_the_left_are_those_alone_on_the_right():
    cells = np.array([[3, 3, 9], [0, 0, 0], [2, 2, -1], [2, 2, -1]])
    found = split_of_cells(cells, min_rows=1, min_weight=1, l2=0.0)
    assert (found["boundary"], found["beyond"], found["missing_left"]) == (3, 0, 0)


@pytest.mark.parametrize(("min_rows", "boundary"), [(1, 1), (2, 2), (3, 3)])
def test_few_rows_on_a_side_are_no_split(min_rows, boundary):
    cells = np.array([[0, 0, 0], [1, 1, 50], [1, 1, -1], [1, 1, -1], [3, 3, -3]])
    found = split_of_cells(cells, min_rows=min_rows, min_weight=1, l2=0.0)
    assert found["boundary"] == boundary


def test_no_split():
    cells = np.array([[0, 0, 0], [4, 4, 2]])
    assert split_of_cells(cells, min_rows=1, min_weight=1, l2=0.0) is None


def steps_of(cells, at, l2, bounds):
    """Sums and steps, within bounds, of both sides of a boundary."""
    found = []
    for side in (cells[: at + 1], cells[at + 1 :]):
        hessian, gradient = int(side[:, 1].sum()), int(side[:, 2].sum())
        step = Fraction(-gradient) / Fraction(hessian + l2)
        step = min(max(step, Fraction(bounds[0])), Fraction(bounds[1]))
        found.append((hessian + l2, gradient, step))
    return found


def best_score(cells, l2, direction, bounds):
    """The best score of boundaries whose steps are in order; None where there is none."""
    scores = []
    for at in range(1, len(cells) - 1):
        if min(cells[: at + 1, 0].sum(), cells[at + 1 :, 0].sum()) < 1:
            continue
        left, right = steps_of(cells, at, l2, bounds)
        if direction * (right[2] - left[2]) >= 0:
            scores.append(sum(-t * (2 * g + h * t) for h, g, t in (left, right)))
    return max(scores, default=None)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(-4, 4).map(lambda g: 1024 * g)),
        min_size=2,
        max_size=9,
    ),
    st.sampled_from([-1, 0, 1]),
    st.sampled_from([0.0, 2.0**12]),
    st.sampled_from([(-9.0, 9.0), (-0.5, 0.25), (0.0, 0.0), (0.25, 1.0)]),
)
def test_scores_within_bounds(rows, direction, l2, bounds):
    cells = np.array([(0, 0, 0), *((n, 1024 * n, g * n) for n, g in rows)], dtype=np.int64)
    found = split_of_cells(cells, 1, 1, l2, monotonic=(direction, *bounds))
    by_bins = split_of_cells(cells, 1, 1, l2, by_bins=True, monotonic=(direction, *bounds))
    assert found == by_bins
    expected = best_score(cells, Fraction(l2), direction, bounds)
    if expected is None:
        assert found is None
        return
    np.testing.assert_allclose(found["score"], float(expected), rtol=1e-12, atol=1e-9)
