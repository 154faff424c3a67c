"""Scans of one number per row: stretches that are passed over hold no better boundary."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.core.data.tuning import Tuning
from dtrees.core.search._number_scan import dead_stretches, reaching_boundaries
from tests.laws.tables import arrays_of, coded_sparse, fit, grow_parts, seeded

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


def scores(target, weight, poisson):
    """The score of the boundary before each row but the first."""
    w, s = np.cumsum(weight)[:-1].tolist(), np.cumsum(target)[:-1].tolist()
    W, S = int(weight.sum()), int(target.sum())
    if not poisson:
        return [
            Fraction((W * a - b * S) ** 2, b * (W - b)) if 0 < b < W else -1
            for a, b in zip(s, w, strict=True)
        ]
    return [
        a * math.log(a / b) + (S - a) * math.log((S - a) / (W - b))
        if 0 < a < S and 0 < b < W
        else -math.inf
        for a, b in zip(s, w, strict=True)
    ]


@st.composite
def columns(draw):
    """Targets by rank, weights, keywords, and whether rows are added from the end."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(20, 300))
    kind = draw(st.sampled_from(["classes", "numbers", "far", "large", "poisson"]))
    signal = (np.arange(n) > n * rng.random()) * draw(st.sampled_from([0, 1, 3]))
    weight = np.ones(n, dtype=np.int64)
    if kind != "classes" and draw(st.booleans()):
        weight = rng.integers(0, 2 ** draw(st.integers(1, 20)), n)
        weight[0] = 1
    if kind == "classes":
        target = (rng.normal(signal, 1) > 0.5).astype(np.int64)
    elif kind == "poisson":
        target = rng.poisson(draw(st.sampled_from([0.1, 1, 50])) * (1 + signal))
    else:
        scale, middle = {"numbers": (100, 0), "far": (8, 2**30), "large": (2**30, 2**28)}[kind]
        target = (rng.normal(signal, 1) * scale).astype(np.int64) + middle
    keywords = {"classes": kind == "classes", "poisson": kind == "poisson"}
    return target.astype(np.int64) * weight, weight, keywords, draw(st.booleans())


@given(columns(), st.floats(0, 1))
def test_no_boundary_of_a_dead_stretch_reaches_the_best(column, share):
    target, weight, keywords, down = column
    found = scores(target, weight, keywords["poisson"])
    best = max(found)
    if best == -math.inf:
        return
    reach = float(best)
    if share < 0.5 and not keywords["poisson"]:
        reach *= share  # that of another column
    ones = bool((weight == 1).all())
    dead = dead_stretches(target, reach, weight=None if ones else weight, down=down, **keywords)
    found = found[::-1] if down else found
    for i, is_dead in enumerate(dead):
        # the boundary before each of its rows
        assert not is_dead or max(found[16 * i : 16 * i + 16]) < reach


@pytest.mark.parametrize(
    ("kind", "most"), [("classes", 0.03), ("numbers", 0.06), ("weighted", 0.06), ("poisson", 0.2)]
)
@pytest.mark.parametrize("down", [False, True])
def test_most_stretches_are_dead(kind, most, down):
    rng = np.random.default_rng(0)
    signal = rng.normal((np.arange(20_000) > 8000) * 1.0, 1.0)
    weight = rng.integers(1, 4, 20_000) if kind == "weighted" else np.ones(20_000, dtype=np.int64)
    target = {
        "classes": (signal > 0.5).astype(np.int64),
        "numbers": (signal * 2**20).astype(np.int64),
        "weighted": (signal * 2**20).astype(np.int64) * weight,
        "poisson": rng.poisson(np.exp(signal)).astype(np.int64),
    }[kind]
    keywords = {"classes": kind == "classes", "poisson": kind == "poisson", "down": down}
    best = float(max(scores(target, weight, kind == "poisson")))
    given_weight = weight if kind == "weighted" else None
    dead = dead_stretches(target, best, weight=given_weight, **keywords)
    assert 1 <= np.count_nonzero(dead == 0) <= most * len(dead)


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


@pytest.mark.parametrize("poisson", [False, True])
@pytest.mark.parametrize("down", [False, True])
def test_the_last_row_may_be_a_side_of_its_own(poisson, down):
    """There, a corner has targets without weight: its score has no limit."""
    target = np.ones(60, dtype=np.int64)
    target[0 if down else -1] = 1000
    best = float(max(scores(target, np.ones(60, dtype=np.int64), poisson)))
    dead = dead_stretches(target, best, poisson=poisson, down=down)
    assert dead[-1] == 0
    assert dead[1] == 1


@pytest.mark.parametrize("poisson", [False, True])
@pytest.mark.parametrize("down", [False, True])
@given(st.integers(0, 2**32 - 1))
def test_a_side_may_weigh_hardly_more_than_a_rounding_of_the_node(poisson, down, seed):
    """The node weighs more than 2**53: a difference of doubles is off by some of what is left."""
    rng = np.random.default_rng(seed)
    weight = np.concatenate(
        [rng.integers(2**52, 2**53, 49), np.ones(16, dtype=np.int64), rng.integers(500, 2000, 1)]
    )
    target = np.zeros(66, dtype=np.int64)
    target[0], target[-1] = 50, 16 * weight[-1]
    found = scores(target, weight, poisson)
    reach = float(max(found[48:64]))
    reach -= abs(reach) * 2.0**-50
    if down:
        target, weight = target[::-1].copy(), weight[::-1].copy()
    dead = dead_stretches(target, reach, weight=weight, poisson=poisson, down=down)
    assert dead[3] == 0


def score_before(target, i):
    """The score_before of the boundary before row i, in Python's integers but for the quotient."""
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
def test_boundaries_of_numbers(n, bits, offset, before, factor, ties, seed):
    """All that reach are found, with the sums before them, whatever is passed over."""
    rng = np.random.default_rng(seed)
    step = np.where(np.arange(n) < n // 2, 1.0, rng.random())
    values = rng.normal(size=n) + step + offset
    target = (values / np.abs(values).max() * 2.0**bits).astype(np.int64)
    rank = np.sort(rng.integers(0, n, n)) if ties else np.arange(n)
    rows = [0] * before + target.tolist()
    found = {i: score_before(rows, before + i) for i in range(1, n)}
    reach = max(found.values()) * factor if factor > 0 else -1e300
    expected = {
        (i, sum(rows[: before + i]))
        for i in found
        if rank[i] != rank[i - 1] and (factor == 0 or found[i] >= reach)
    }
    given_reach = reach * (1 - 2.0**-48) if factor > 0 else reach  # as of a search
    boundaries = reaching_boundaries(target, rank.astype(np.uint16), given_reach, before=before)
    assert boundaries is None or expected <= set(boundaries)
    if boundaries is not None and factor > 0 and bits < 40:  # beyond, W s - w S loses bits
        assert all(found[i] >= given_reach * (1 - 1e-9) for i, _ in boundaries)
