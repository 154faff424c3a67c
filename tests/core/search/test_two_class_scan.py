"""Of two classes, 16 entries at a time find the boundaries that one at a time finds."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from dtrees import DecisionTreeClassifier
from dtrees.core._testing import boundaries_of_labels
from dtrees.core.data.tuning import Tuning
from dtrees.core.search._two_class_scan import steepest_of
from tests.laws.tables import Example, arrays_of, fit
from tests.registers import wide_registers

SORTED, COUNTED = Tuning(counted_rows=1 << 40), Tuning(counted_rows=0)


@given(
    st.integers(20, 200),
    st.floats(0, 1),
    st.sampled_from(["gini", "entropy"]),
    st.sampled_from([1, 5]),
    st.integers(0, 2**32 - 1),
)
def test_sixteen_at_a_time_find_what_one_at_a_time_finds(n, share, criterion, least, seed):
    """In columns whose values all differ, in some that do not, and beside missing values."""
    rng = np.random.default_rng(seed)
    x = np.arange(n)
    y = (rng.random(n) < np.where(x < n // 2, share, share / 4)).astype(int)
    table = [x, rng.permutation(n), rng.integers(0, n, n), np.where(x % 5, 3.0, x)]
    table = [column.astype(float).tolist() for column in table]
    table.append([None if v < n // 8 else v for v in table[1]])
    limits = {"min_samples_leaf": least, "max_depth": 3}
    example = Example(table, y, None, criterion, limits)
    found = [arrays_of(fit(example, tuning=tuning)) for tuning in (SORTED, COUNTED)]
    with wide_registers(False):
        found.append(arrays_of(fit(example, tuning=SORTED)))
    assert found == [found[0]] * 3


def divergences(label, n_left):
    """What a split of sorted rows gains, in nats, by how many of them are on the left."""

    def term(n, ones):
        p = ones / n
        return n * sum(x * np.log(np.where(x > 0, x, 1)) for x in (p, 1 - p))

    n, ones, left = len(label), label.sum(), np.cumsum(label)[n_left - 1]
    return term(n_left, left) + term(n - n_left, ones - left) - term(n, ones)


@pytest.mark.parametrize("n_rows", [3_000, 70_000])
@pytest.mark.parametrize("min_samples_leaf", [1, 40, 500])
@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_entropy_from_the_end_of_a_column(n_rows, min_samples_leaf, noise):
    """Most rows hold one value, which has no entries: of 32 bits, and of 64."""
    rng = np.random.default_rng(n_rows)
    x = np.where(rng.random(n_rows) < 0.2, rng.integers(-5, 60, n_rows), 0.0)
    label = (x > rng.integers(50, 58)) ^ (rng.random(n_rows) < noise)
    order = np.argsort(x, kind="stable")
    at = np.flatnonzero(np.diff(x[order])) + 1
    at = at[(at >= min_samples_leaf) & (n_rows - at >= min_samples_leaf)]
    tree = DecisionTreeClassifier(
        criterion="entropy", max_depth=1, min_samples_leaf=min_samples_leaf
    ).fit(x[:, None], label)
    n_left = tree.tree_.n_node_samples[1]
    assert n_left in at
    gains = divergences(label[order], at)
    assert gains[at == n_left] >= gains.max() * (1 - 1e-9)
    assert tree.tree_.threshold[0] == x[order][n_left - 1 : n_left + 1].mean()


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.sampled_from([16, 26, 36]), st.data())
def test_no_divergence_is_steeper_than_those_of_pure_sides(zeros, ones, bits, data):
    """Of a side with any share x of the ones, and of both pure ones."""
    p = ones / (zeros + ones)
    x = data.draw(st.floats(0, 1) | st.sampled_from([0.0, 1.0]))
    divergence = sum(a * np.log(a / b) for a, b in ((x, p), (1 - x, 1 - p)) if a > 0)
    found = steepest_of(zeros, ones, 2.0**bits)
    assert divergence <= found * (x - p) ** 2 + 1e-15
    if bits == 36:  # and it is no looser than it has to be
        pure = max(-np.log1p(-p) / p**2, -np.log(p) / (1 - p) ** 2)
        assert found == pytest.approx(pure, rel=1e-4)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("n_rows", [60_001, 300_242, 300_243])
def test_ties_of_entropy_are_decided_by_key(n_rows):
    """Scores are sums of numbers of sixty bits, so those of equal columns are off by hundreds."""
    x, label = np.zeros(n_rows), np.zeros(n_rows, dtype=int)
    x[:4], label[10] = [1, 2, 3, 4], 1
    X = np.repeat(x[:, None], 6, axis=1)
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=1, min_samples_leaf=4)
    found = [
        [
            tree.set_params(random_state=seed, n_jobs=n_jobs).fit(table, label).tree_.feature[0]
            for seed in range(6)
        ]
        for table in (X, scipy.sparse.csc_array(X))
        for n_jobs in (1, 2)
    ]
    assert len(set(found[0])) > 1
    assert found == [found[0]] * 4


def scores(label):
    """The score of the boundary before each row but the first."""
    w, s = np.arange(1, len(label)), np.cumsum(label)[:-1]
    W, S = len(label), label.sum()
    return (W * s - w * S) ** 2 / (w * (W - w))


@given(
    st.integers(2, 120),
    st.floats(0, 1),
    st.integers(0, 40),
    st.sampled_from([1.0, 0.9, 0.3, 0.0]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_boundaries_of_two_classes(n, share, before, factor, by_label, seed):
    """All that reach are found, with the sums before them, whatever is passed over."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < np.where(np.arange(n) < n // 2, share, share / 4)).astype(np.uint8)
    rank = np.arange(n) if by_label else np.sort(rng.integers(0, n, n))
    target = np.concatenate([np.zeros(before), label]).astype(np.int64)
    found = [float(score) for score in scores(target)[before:]]
    reach = max(found) * factor if factor > 0 else -1e300
    expected = [
        (i, int(label[:i].sum()))
        for i, score in enumerate(found, start=1)
        if rank[i] != rank[i - 1]
        and not (by_label and label[i] == label[i - 1])
        and (factor == 0 or score >= reach * (1 + 1e-12))
    ]
    given_reach = reach * (1 - 1e-12) if factor > 0 else reach
    boundaries = boundaries_of_labels(
        label, rank.astype(np.uint16), given_reach, before=before, by_label=by_label
    )
    assert boundaries is None or set(expected) <= set(boundaries)
    if boundaries is not None:
        least = given_reach * (1 - 1e-12) if factor > 0 else -1
        assert all(found[i - 1] >= least for i, _ in boundaries)
