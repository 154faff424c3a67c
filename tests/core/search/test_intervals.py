"""No cut inside an interval scores higher than its bound, and most intervals are ruled out."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core._testing import bounds_of
from dtrees.core.search._criterion import xlogx_table
from tests.registers import wide_registers

NOTHING = -1e289
FIXED_POINT = 2.0**30


def score(rows, left, impurity=""):
    """The score of a side, as the kernels have it: larger is better, of one node."""
    W, w = len(rows), int(left.sum())
    if impurity == "entropy":
        f = xlogx_table(W + 1, FIXED_POINT)
        sides = [rows[left].sum(axis=0), rows[~left].sum(axis=0)]
        return float(
            sum(f[side].sum() - f[side.sum()] for side in sides)
            - (f[rows.sum(axis=0)].sum() - f[W])
        )
    if impurity == "poisson":
        sides = [(int(rows[side].sum()), int(side.sum())) for side in (left, ~left)]
        if min(s for s, _ in sides) == 0:
            return -1e300
        return sum(s * math.log(s / w) for s, w in sides)
    if rows.shape[1] == 1:
        D = W * int(rows[left].sum()) - w * int(rows.sum())
        return D * D / (w * (W - w))
    return sum((rows[side].sum(axis=0) ** 2).sum() / side.sum() for side in (left, ~left))


def rounding(score, rows):
    """What a score may be off by: 48 units of its |D| (docs/algorithms/bounds.md, "Roundings")."""
    W = len(rows)
    off = 48 * 2.0**-53 * W**2 * float(abs(rows).max()) / math.sqrt(W - 1)
    return 2 * math.sqrt(abs(score)) * off + off**2


def intervals(rows, codes, last):
    """Sums and numbers of rows of the intervals that end with some codes."""
    number = np.searchsorted(last, codes)
    n = np.bincount(number, minlength=len(last))
    sums = np.stack([np.bincount(number, column, len(last)) for column in rows.T], axis=1)
    return number, np.ascontiguousarray(sums, dtype=np.int64), n.astype(np.int64)


def boundaries(codes, number, has_missing, min_rows):
    """All permitted boundaries: the left side, its last interval, and whether it ends with that."""
    for missing_left in {False, has_missing}:
        known = codes > 0 if has_missing else np.ones(len(codes), dtype=bool)
        for code in np.unique(codes[known]):
            left = (known & (codes <= code)) | (~known & missing_left)
            n = int(left.sum())
            if min_rows <= n <= len(codes) - min_rows:
                interval = number[codes == code][0]
                is_end = code == codes[number == interval].max()
                yield left, interval, is_end


def cuts(rows, codes, number, has_missing, min_rows, impurity):
    """Scores of all permitted boundaries, with the interval in which the left side ends."""
    for left, interval, is_end in boundaries(codes, number, has_missing, min_rows):
        yield score(rows, left, impurity), interval, is_end


@st.composite
def tables(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows, n_codes = draw(st.integers(4, 120)), draw(st.integers(2, 60))
    has_missing = draw(st.booleans())
    codes = np.sort(rng.integers(0 if has_missing else 1, n_codes + 1, n_rows))
    kind = draw(st.sampled_from(["two", "several", "entropy", "numbers", "narrow", "poisson"]))
    signal = rng.random(n_rows) < codes / n_codes
    if kind in ("several", "entropy"):
        labels = (
            signal + rng.integers(0, draw(st.integers(1 if kind == "entropy" else 2, 6)), n_rows)
        ).astype(int)
        labels[0] = labels[1] == 0  # two classes at least
        rows = np.eye(labels.max() + 1, dtype=np.int64)[labels]
        rows = rows[:, rows.any(axis=0)]
    elif kind == "two":
        rows = signal.astype(np.int64)[:, None]
    elif kind == "poisson":
        rows = rng.poisson(draw(st.sampled_from([0.1, 1.0, 60.0])) * (1 + signal))[:, None]
        rows[0] = 1
    else:
        scale, middle = (2**45, 0) if kind == "numbers" else (8, 2**40)
        rows = (rng.normal(signal, 1) * scale).astype(np.int64)[:, None] + middle
    last = np.unique([*rng.choice(n_codes + 1, draw(st.integers(1, 8))), n_codes])
    last = last[last > 0]
    if has_missing and codes[0] == 0:
        last = np.concatenate([[0], last])
    else:
        codes = np.maximum(codes, 1)
        has_missing = False
    min_rows = draw(st.sampled_from([1, 1, 2, 9]))
    return rows, codes, last, has_missing, min_rows, kind


@given(tables(), st.booleans())
def test_no_cut_is_better_than_its_bound(table, wide):
    """An interval without rows has the score of the one before, at its end."""
    rows, codes, last, has_missing, min_rows, kind = table
    impurity = kind if kind in ("entropy", "poisson") else ""
    if rows.shape[1] == 1 and np.ptp(rows) == 0:
        rows[0] += 1
    number, sums, n = intervals(rows, codes, last)
    span = (float(rows.min()), float(rows.max()))
    ends = last.astype(np.uint32)
    with wide_registers(wide):
        at_end, inside = bounds_of(sums, n, ends, span, min_rows=min_rows, impurity=impurity)
    best = np.full(len(last), -1e290)
    for found, interval, is_end in cuts(rows, codes, number, has_missing, min_rows, impurity):
        if is_end:
            best[interval] = max(best[interval], found)
        else:
            assert found <= inside[interval] + (
                0 if impurity == "entropy" else rounding(found, rows)
            )
    permitted = (n > 0) & (at_end > NOTHING)
    for scored, found in zip(at_end[permitted], best[permitted], strict=True):
        assert scored == pytest.approx(found, rel=1e-6, abs=rounding(found, rows))
    assert (permitted == (best > NOTHING)).all()
    for i in np.flatnonzero(n[1:] == 0) + 1:
        is_behind = n[i:].sum() == 0  # what has no row behind it is no boundary, if it is looked at
        is_none = is_behind and at_end[i] < NOTHING
        is_first = n[:i].sum() == 0 or (has_missing and i == 1)
        assert is_first or is_none or at_end[i] == at_end[i - 1]


@pytest.mark.parametrize(
    ("kind", "most"),
    [("two", 0.05), ("several", 0.1), ("entropy", 0.1), ("numbers", 0.1), ("poisson", 0.4)],
)
def test_most_intervals_are_ruled_out(kind, most):
    rng = np.random.default_rng(0)
    codes = np.arange(1, 20_001)
    signal = rng.normal((codes > 8000) * 1.0, 1.0)
    rows = {
        "two": (signal > 0.5).astype(np.int64)[:, None],
        "entropy": np.eye(4, dtype=np.int64)[np.digitize(signal, [-0.5, 0.5, 1.5])],
        "several": np.eye(4, dtype=np.int64)[np.digitize(signal, [-0.5, 0.5, 1.5])],
        "numbers": (signal * 2**20).astype(np.int64)[:, None],
        "poisson": rng.poisson(np.exp(signal / 2)).astype(np.int64)[:, None],
    }[kind]
    last = np.linspace(0, 20_000, 256).astype(int)[1:]
    _, sums, n = intervals(rows, codes, last)
    span = (float(rows.min()), float(rows.max()))
    ends, impurity = last.astype(np.uint32), kind if kind in ("entropy", "poisson") else ""
    at_end, inside = bounds_of(sums, n, ends, span, impurity=impurity)
    assert 1 <= np.count_nonzero(inside >= at_end.max()) <= most * len(last)


def test_intervals_of_one_code_have_no_cut():
    target = np.array([[3], [1], [2]])
    n = np.array([4, 5, 6])
    _, inside = bounds_of(target, n, np.array([1, 2, 9], np.uint32))
    assert (inside > NOTHING).tolist() == [False, False, True]


# --------------------------------------------------------------------------------------------
# several classes

counts = st.integers(0, 40)


def bound(rows, impurity):
    """The bound of the middle one of three intervals, of these rows of each class."""
    rows = np.array(rows, dtype=np.int64)
    last = np.array([1, 99, 100], dtype=np.uint32)
    return bounds_of(rows, rows.sum(axis=1), last, impurity=impurity)[1][1]


def score_of(left, right, impurity):
    both = np.vstack(
        [np.repeat(np.eye(len(left), dtype=np.int64), each, 0) for each in (left, right)]
    )
    return score(both, np.arange(len(both)) < sum(left), impurity)


@pytest.mark.parametrize("impurity", ["", "entropy"])
@given(st.data())
def test_no_mix_of_rows_is_better(impurity, data):
    """Classes may be missing on any side, where the slope of x log x is infinite."""
    K = data.draw(st.integers(3 if impurity == "" else 2, 5))
    before, inside, behind = (
        np.array(data.draw(st.lists(counts, min_size=K, max_size=K))) for _ in range(3)
    )
    before[0] += before.sum() == 0
    behind[-1] += behind.sum() == 0
    inside[0] += 2 * (inside.sum() < 2)
    part = np.array([data.draw(st.integers(0, int(most))) for most in inside])
    corners = [inside * np.array(has) for has in itertools.product((0, 1), repeat=K)]
    most = bound([before, inside, behind], impurity) + 1e-9 * before.sum()
    for each in (part, *corners):
        assert score_of(before + each, behind + inside - each, impurity) <= most


@given(st.lists(st.integers(1, 30), min_size=6, max_size=6))
def test_two_classes_have_four_corners(numbers):
    before, inside, behind = np.array(numbers).reshape(3, 2)
    found = max(
        score_of(before + part, behind + inside - part, "entropy")
        for part in (inside * 0, inside * [1, 0], inside * [0, 1], inside)
    )
    assert bound([before, inside, behind], "entropy") == pytest.approx(found, rel=1e-6, abs=100)


@pytest.mark.parametrize("n_classes", [2, 3])
@given(st.integers(0, 2**32 - 1))
def test_what_x_log_x_loses_is_added(n_classes, seed):
    """Sides of nearly the same shares: what a row changes is less than its roundings."""
    rng = np.random.default_rng(seed)
    share = np.append(2**25, rng.integers(1, 3, n_classes - 1)) + rng.integers(0, 2, n_classes)
    inside = np.array([int(rng.integers(2, 9))] + [0] * (n_classes - 1))
    before, behind = share, share * int(rng.integers(1, 3))
    most = bound([before, inside, behind], "entropy")
    for some in range(1, inside[0]):
        part = np.array([some] + [0] * (n_classes - 1))
        rows = np.array([before + part, inside - part, behind], dtype=np.int64)
        last = np.array([1, 99, 100], dtype=np.uint32)
        at_end = bounds_of(rows, rows.sum(axis=1), last, impurity="entropy")[0]
        assert at_end[0] <= most
