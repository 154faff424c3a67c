"""Constraints leave an interval as long as they allow a boundary in it, and few that have none."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dtrees.core.data import _cpu
from dtrees.core.search._intervals import bounds_of
from tests.core.search.test_intervals import (
    NOTHING,
    boundaries,
    distances,
    intervals,
    score,
    tables,
)


def values_of(rows, left):
    """What both sides predict, as the search compares them: a mean, or the share of class 1."""
    return tuple(float(int(rows[side, -1].sum())) / float(side.sum()) for side in (left, ~left))


def is_allowed(values, direction, lower, upper):
    left, right = values
    return lower <= min(values) and max(values) <= upper and direction * (right - left) >= 0


@st.composite
def constraints(draw, rows):
    """A direction, and bounds that the node itself keeps, up to a multiple of its mean."""
    mean = float(int(rows[:, -1].sum())) / len(rows)
    spread = float(np.ptp(rows[:, -1]))
    below, above = (draw(st.sampled_from([0.0, 0.01, 0.1, 0.4, math.inf])) for _ in range(2))
    return draw(st.sampled_from([-1, 0, 1])), mean - below * spread, mean + above * spread


@given(st.data(), st.booleans(), st.booleans(), st.integers(-20, 20))
def test_what_is_allowed_is_left(data, by_distance, wide, beside):
    rows, codes, last, has_missing, min_rows, kind = data.draw(tables())
    assume(rows.shape[1] <= 2)
    if rows.shape[1] == 1 and np.ptp(rows) == 0:
        rows[0] += 1
    impurity = kind if kind in ("entropy", "poisson") else ""
    monotonic = data.draw(constraints(rows))
    number, sums, n = intervals(rows, codes, last)
    away = None
    if by_distance and kind in ("numbers", "narrow"):
        mean, away = distances(rows, number, len(last), beside)
        away = mean, away + max(beside, 0)
    span = (float(rows.min()), float(rows.max()))
    before = _cpu.use_wide(wide)
    try:
        at_end, inside = bounds_of(
            *(sums, n, last.astype(np.uint32), span),
            min_rows=min_rows,
            impurity=impurity,
            away=away,
            monotonic=monotonic,
        )
    finally:
        _cpu.use_wide(before)
    best = np.full(len(last), -1e290)
    slack = 1e-12 * abs(rows).max() ** 2 * len(rows) ** 2  # of the scores of this test
    for left, interval, is_end in boundaries(codes, number, has_missing, min_rows):
        if not is_allowed(values_of(rows, left), *monotonic):
            continue
        found = score(rows, left, impurity)
        if is_end:
            best[interval] = max(best[interval], found)
        else:
            assert found <= inside[interval] + (0 if impurity == "entropy" else slack)
    occurs = n > 0
    assert ((at_end > NOTHING) == (best > NOTHING))[occurs].all()
    both = occurs & (best > NOTHING)
    np.testing.assert_allclose(at_end[both], best[both], 1e-6, slack)


KINDS = ["two", "entropy", "numbers", "poisson"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", ["rise", "fall", "stay"])
def test_most_that_have_none_are_dead(kind, what):
    """Values have to rise where they fall, and the other way, or to stay near the mean."""
    rng = np.random.default_rng(0)
    codes = np.arange(1, 20_001)
    is_high = codes > 12_000 if what == "fall" else codes < 8000
    signal = rng.normal(is_high, 1.0)
    rows = {
        "two": (signal > 0.5).astype(np.int64)[:, None],
        "entropy": np.eye(2, dtype=np.int64)[(signal > 0.5).astype(int)],
        "numbers": (signal * 2**20).astype(np.int64)[:, None],
        "poisson": rng.poisson(4 * np.exp(signal)).astype(np.int64)[:, None],
    }[kind]
    last = np.linspace(0, 20_000, 256).astype(int)[1:]
    number, sums, n = intervals(rows, codes, last)
    span = (float(rows.min()), float(rows.max()))
    mean = float(rows[:, -1].mean())
    near = 0.3 * (rows[is_high, -1].mean() - mean)
    bounds = (mean - near, mean + near) if what == "stay" else (-1e300, 1e300)
    monotonic = ({"rise": 1, "fall": -1, "stay": 0}[what], *bounds)
    how = {"impurity": kind if kind in ("entropy", "poisson") else "", "monotonic": monotonic}
    if kind == "numbers":
        how["away"] = distances(rows, number, len(last))
    at_end, inside = bounds_of(sums, n, last.astype(np.uint32), span, **how)
    allowed = [is_allowed(values_of(rows, codes <= code), *monotonic) for code in last[:-1]]
    assert ((at_end > NOTHING)[:-1] == allowed).all()
    beside = np.convolve([*allowed, True], [1, 1, 1], "same") > 0
    assert np.count_nonzero((inside > NOTHING) & ~beside) <= 0.1 * len(last)
