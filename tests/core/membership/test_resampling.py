"""Training sets as mixes of cells."""

import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding.target import Target, class_integers
from dtrees.core.membership import resampling as module
from dtrees.core.membership.resampling import (
    ClassWeights,
    Lacking,
    Resampling,
    of_sets,
    plain,
    without_class_weights,
)


def test_plain():
    resampling = plain()
    assert resampling.mix.shape == (1, 1)
    assert resampling.is_plain
    assert resampling.cells is None


def test_folds_and_final():
    k = 4
    mix = np.vstack([1 - np.eye(k, dtype=np.int64), np.ones((1, k), dtype=np.int64)])
    resampling = Resampling(np.arange(12, dtype=np.uint16) % k, mix)
    assert resampling.mix.shape == (resampling.n_sets, 4) == (5, 4)
    assert not resampling.is_plain
    y = np.arange(12)
    expected = [y[resampling.cells != fold].sum() for fold in range(k)] + [y.sum()]
    np.testing.assert_array_equal(resampling.totals(y), expected)


class LeaveOneOut:
    """Leave-one-out of some rows, and all of them as the last set; made one at a time."""

    def __init__(self, n_rows):
        self._n_rows = n_rows

    def __len__(self):
        return self._n_rows + 1

    def __getitem__(self, number):
        rows = np.ones(self._n_rows, dtype=bool)
        if number < self._n_rows:
            rows[number] = False
        return rows


def test_leave_one_out_takes_memory_by_rows():
    """At most 64 bytes a row and 1 MiB, and not a byte for each row of each set (9 million)."""
    n_rows = 3_000
    tracemalloc.start()
    try:
        sets = of_sets(LeaveOneOut(n_rows))
        some = sets.some(np.arange(0, n_rows + 1, 2))
        totals = sets.totals()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * n_rows + 2**20  # a table of keys
    assert sets.mix.shape == (n_rows + 1, n_rows)
    assert totals.tolist() == [n_rows - 1] * n_rows + [n_rows]
    assert some.n_sets == n_rows // 2 + 1
    assert np.flatnonzero(~some.rows(7)).tolist() == [14]
    assert some.rows(n_rows // 2).all()


def dense(sets):
    """The same sets, with their mix written down."""
    return Resampling(sets.cells, sets.mix[:].astype(bool))


@given(st.data())
def test_sets_that_lack_a_cell_are_as_good_as_their_mix(data):
    n_rows = data.draw(st.integers(1, 30))
    folds = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n_rows, max_size=n_rows)))
    rows = np.array([folds != fold for fold in data.draw(st.permutations(range(-1, 5)))])
    sets = of_sets(rows)
    assert isinstance(sets.mix, Lacking)
    assert_same_sets(sets, dense(sets), rows)
    some = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=4))
    assert_same_sets(sets.some(some), dense(sets).some(some), rows[some])
    assert_same_sets(pickle.loads(pickle.dumps(sets)), dense(sets), rows)


def assert_same_sets(sets, other, rows):
    numbers = np.arange(len(rows[0]))
    assert sets.is_plain == other.is_plain
    assert sets.mix.shape == other.mix.shape
    np.testing.assert_array_equal(sets.totals(numbers), other.totals(numbers))
    np.testing.assert_array_equal(sets.totals(numbers), rows @ numbers)
    for number, mine in enumerate(rows):
        np.testing.assert_array_equal(sets.rows(number), mine)
        np.testing.assert_array_equal(sets.has(number), other.has(number))
    for one, two in zip(sets.cells_of([0]), other.cells_of([0]), strict=True):
        np.testing.assert_array_equal(one, two, strict=True)


def test_sets_that_lack_several_cells_have_a_mix():
    rows = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1]], dtype=bool)
    sets = of_sets(rows)
    assert isinstance(sets.mix, np.ndarray)
    for number, mine in enumerate(rows):
        np.testing.assert_array_equal(sets.rows(number), mine)
    np.testing.assert_array_equal(sets.totals(), rows.sum(axis=1))


@pytest.mark.parametrize("n_folds", [2, 3, 7], ids=["two cells", "three", "seven"])
@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(50) % 3 > 0,
        np.full(50, 2**16 - 1, dtype=np.uint16),
        np.arange(-30, 20),
        np.full(50, 2**57 + 1),
    ],
    ids=["bool", "narrow", "negative", "large"],
)
def test_totals_are_exact(numbers, n_folds):
    rows = np.array([np.arange(50) % n_folds == fold for fold in range(n_folds)])
    rows = np.vstack([rows, rows[0] | rows[1]])
    expected = [sum(numbers[mine].tolist()) for mine in rows]
    assert of_sets(rows).totals(numbers).tolist() == expected


@pytest.mark.parametrize("n_sets", [1, 2])
def test_all_rows_are_plain(n_sets):
    assert of_sets(np.ones((n_sets, 5), dtype=bool)).is_plain == (n_sets == 1)


@pytest.mark.parametrize("room", [0, 2**20], ids=["set by set", "by cell"])
@pytest.mark.parametrize("weight", [None, np.arange(60) % 3], ids=["none", "whole"])
@pytest.mark.parametrize("kind", ["folds", "halves"])
def test_class_totals_are_sums_of_the_rows_of_a_set(kind, weight, room, monkeypatch):
    monkeypatch.setattr(module, "MOST_TOTALS", room - 8 * 60)
    rng = np.random.default_rng(0)
    rows = np.arange(60) % 5 != np.arange(6)[:, None]
    if kind == "halves":
        rows = rng.random((6, 60)) < 0.5
    target = Target.classification(rng.integers(0, 3, 60), weight)
    w = np.ones(60, dtype=int) if weight is None else weight
    expected = [[w[mine & (target.y == k)].sum() for k in range(3)] for mine in rows]
    assert of_sets(rows).class_totals(target).tolist() == expected


def test_class_weights_go_with_their_sets():
    sets = of_sets(np.arange(60) % 5 != np.arange(6)[:, None])
    apart = sets.cells_of([0, 1])
    own = ClassWeights(np.arange(1, 13).reshape(6, 2), np.arange(6))
    weighing = sets.weighing(own)
    assert weighing.cells_of([0, 1]) is apart
    assert weighing.some([4, 1]).class_weights.multiplier.tolist() == [[9, 10], [3, 4]]
    target = weighing.target_of(3, Target.classification(np.arange(60) % 2))
    assert target.class_multiplier.tolist() == [7, 8]
    assert target.class_exponent == 3
    np.testing.assert_array_equal(target.w, np.arange(60) % 5 != 3)


CLASSES = np.random.default_rng(0).integers(0, 3, 90)
WEIGHTS = np.random.default_rng(1).integers(0, 4, 90).astype(float)


def some_sets(seed=0):
    return np.random.default_rng(seed).random((5, 90)) < 0.7


def balanced(totals, classes=(0, 1, 2)):
    return class_integers("balanced", np.array(classes), totals)


@pytest.mark.parametrize("weight", [None, WEIGHTS], ids=["none", "whole"])
def test_integers_are_those_of_own_fits(weight):
    rows = some_sets()
    resampling = of_sets(rows)
    target = Target.classification(CLASSES, weight)
    own = ClassWeights.of_totals(resampling.class_totals(target), balanced)
    for number, mine in enumerate(rows):
        given = (np.ones(90) if weight is None else weight) * mine
        expected = Target.classification(CLASSES, given, "balanced")
        found = resampling.weighing(own).target_of(number, target)
        np.testing.assert_array_equal(found.class_multiplier, expected.class_multiplier)
        assert found.weight_unit == expected.weight_unit == own.unit(target, number)
        assert found.total_weight == expected.total_weight
        np.testing.assert_array_equal(found.has_weight, expected.has_weight)


def test_classes_of_equal_weight_are_ones():
    """As a fit that has no class weights: 30 rows of each class in the one, not in the other."""
    own = ClassWeights.of_totals(np.array([[30, 30, 30], [30, 20, 10]]), balanced)
    assert own.multiplier[0].tolist() == [1, 1, 1]
    assert own.exponent[0] == 0
    assert len(set((own.multiplier[1] * [30, 20, 10]).tolist())) == 1
    assert own.some([1]).multiplier.tolist() == own.multiplier[1:].tolist()


def test_a_class_weighs_nothing_in_all_sets_or_in_none():
    with pytest.raises(AssertionError, match="nothing in some sets"):
        ClassWeights(np.array([[1, 0], [1, 1]]), np.zeros(2, dtype=np.int64))


def test_class_weights_of_a_target_are_the_same_in_all_sets():
    assert ClassWeights.of_target(Target.classification(CLASSES), 3) is None
    target = Target.classification(CLASSES, None, {0: 0.3, 1: 0.0, 2: 2.0})
    found = ClassWeights.of_target(target, 3)
    assert found.multiplier.tolist() == [target.class_multiplier.tolist()] * 3
    assert found.exponent.tolist() == [target.class_exponent] * 3


def test_rows_of_classes_that_weigh_nothing_do_not_count():
    plain = Target.classification(CLASSES)
    assert without_class_weights(plain) is plain
    assert (
        without_class_weights(Target.classification(CLASSES, None, {0: 2.0, 1: 1, 2: 1})).w is None
    )
    target = Target.classification(CLASSES, WEIGHTS, {0: 0.3, 1: 0.0, 2: 2.0})
    found = without_class_weights(target)
    assert found.class_multiplier is None
    np.testing.assert_array_equal(found.w, WEIGHTS * (CLASSES != 1))
    np.testing.assert_array_equal(found.has_weight, target.has_weight)
