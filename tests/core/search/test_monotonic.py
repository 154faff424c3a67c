"""Scores within bounds, as the search of a column finds them, beside every boundary in fractions.

Trees whose columns are monotonic stand in tests/laws/test_constraints.py and
tests/estimators/test_column_rules.py.
"""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.search._gradient_scan import split_of_cells


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
def test_scores(rows, direction, l2, bounds):
    cells = np.array([(0, 0, 0), *((n, 1024 * n, g * n) for n, g in rows)], dtype=np.int64)
    found = split_of_cells(cells, 1, 1, l2, monotonic=(direction, *bounds))
    by_bins = split_of_cells(cells, 1, 1, l2, by_bins=True, monotonic=(direction, *bounds))
    assert found == by_bins
    expected = best_score(cells, Fraction(l2), direction, bounds)
    if expected is None:
        assert found is None
        return
    np.testing.assert_allclose(found["score"], float(expected), rtol=1e-12, atol=1e-9)
