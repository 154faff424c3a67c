"""How columns are counted; sums, histograms and lists of a node, beside sums of numpy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.blocks._node_counts import (
    CLASS_0,
    HIGHEST,
    LISTED,
    LOWEST,
    MOMENT,
    TARGET,
    WEIGHT,
    N,
    StoredCounter,
    count,
    list_codes,
    merged,
    of_sets,
    sizes_of,
    ways_of,
    without_intervals,
)
from dtrees.core.stores.blocks.block import EVERYONE, NodeRows, Resolution
from dtrees.core.stores.blocks.messages import Root
from tests.coding.examples import coded_columns
from tests.laws.tables import coded, coded_mixed, coded_sparse, seeded

N_ROWS = 400
N_CODES = (5, 300, 7)
RNG = np.random.default_rng(0)
CODES = [RNG.integers(0, n + 1, N_ROWS) for n in N_CODES]
CODED = coded_columns(CODES, N_CODES, N_CODES)
ROWS = np.flatnonzero(RNG.random(N_ROWS) < 0.6).astype(np.uint32)
TIMES = RNG.integers(1, 5, len(ROWS)).astype(np.uint16)
LABELS = RNG.integers(0, 3, N_ROWS)
COLUMNS = np.array([2, 0], dtype=np.int32)


def shard_of(target, criterion):
    return Dataset(CODED, target, GrowthRules(criterion=criterion))


def histogram_of(codes, n_codes, values):
    """Sums of each column of values, by code."""
    return np.stack([np.bincount(codes, v, n_codes + 1) for v in values.T], axis=1).astype(int)


@pytest.mark.parametrize("times", [None, TIMES])
def test_classes(times):
    node = NodeRows(Root(0, 0), ROWS, times, None, EVERYONE)
    sums, histogram = count(shard_of(Target.classification(LABELS), "gini"), node, 1, COLUMNS)
    weight = np.ones(len(ROWS), dtype=int) if times is None else times.astype(int)
    by_class = np.eye(3, dtype=int)[LABELS[ROWS]] * weight[:, None]
    assert sums[0, [N, WEIGHT]].tolist() == [len(ROWS), by_class.sum()]
    np.testing.assert_array_equal(sums[0, CLASS_0:], by_class.sum(axis=0))
    if times is not None:  # cells begin with the number of rows
        by_class = np.column_stack([np.ones(len(ROWS), int), by_class])
    expected = [histogram_of(CODES[j][ROWS], N_CODES[j], by_class).ravel() for j in COLUMNS]
    np.testing.assert_array_equal(histogram[0], np.concatenate(expected))


def test_regression():
    y = RNG.integers(-9, 9, N_ROWS).astype(float)
    target = Target.regression(y, center=False)
    node = NodeRows(Root(0, 0), ROWS, TIMES, None, EVERYONE)
    sums, histogram = count(shard_of(target, "squared_error"), node, 1, COLUMNS)
    codes, times = target.y[ROWS].astype(int), TIMES.astype(int)
    assert sums[0, [N, WEIGHT, TARGET]].tolist() == [len(ROWS), times.sum(), (times * codes).sum()]
    of_python = zip(times.tolist(), codes.tolist(), strict=True)
    high, middle, low = sums[0, MOMENT : MOMENT + 3].tolist()
    assert (high << 64) + (middle << 32) + low == sum(w * y * y for w, y in of_python)
    assert sums[0, [LOWEST, HIGHEST]].tolist() == [codes.min(), codes.max()]
    of_rows = np.column_stack([np.ones_like(times), times, times * codes])
    expected = [histogram_of(CODES[j][ROWS], N_CODES[j], of_rows).ravel() for j in COLUMNS]
    np.testing.assert_array_equal(histogram[0], np.concatenate(expected))


@pytest.mark.parametrize("members", [0b1111, 0b0110, 0b1000])
def test_a_set_has_the_sums_of_its_own_rows(members):
    masks = np.array([0b0111, 0b1011, 0b0001], dtype=np.uint64)
    combination = RNG.integers(0, 3, len(ROWS)).astype(np.uint16)
    shard = shard_of(Target.classification(LABELS), "entropy")
    node = NodeRows(Root(0, 0), ROWS, None, combination, masks)
    found = zip(*count(shard, node, members, COLUMNS), strict=True)
    numbers = [number for number in range(4) if members >> number & 1]
    for number, (sums, histogram) in zip(numbers, found, strict=True):
        own = (masks[combination] >> np.uint64(number)) & np.uint64(1) > 0
        alone = NodeRows(Root(0, 0), ROWS[own], None, None, EVERYONE)
        (expected_sums,), (expected,) = count(shard, alone, 1, COLUMNS)
        np.testing.assert_array_equal(sums, expected_sums)
        np.testing.assert_array_equal(histogram, expected)


def test_no_rows_add_up_to_nothing():
    node = NodeRows(Root(0, 0), ROWS[:0], None, None, EVERYONE)
    sums, histogram = count(shard_of(Target.classification(LABELS), "gini"), node, 1, COLUMNS)
    assert sums[0, N] == 0
    assert not histogram.any()


# how columns are counted

MANY_CODES = [7, 40, 40, 100, 0, 1000]
N_ORDERED = [7, 40, 0, 60, 0, 1000]  # numbers, categories, a hybrid
NO_CODES = [np.zeros(3, dtype=int)] * len(MANY_CODES)
WIDE = coded_columns(NO_CODES, MANY_CODES, N_ORDERED)
THREE_CLASSES = Target.classification(np.array([0, 1, 2]))
FINE = Resolution(interval_codes=20, n_intervals=8, listed_codes=50)


def ways(resolution=FINE, **rules):
    dataset = Dataset(WIDE, THREE_CLASSES, GrowthRules(**{"criterion": "gini"} | rules))
    return dataset, ways_of(dataset, resolution)


def test_only_ordered_columns_of_many_codes_have_intervals():
    dataset, found = ways()
    assert found.tolist() == [0, 3, 0, LISTED, 0, 7]  # 5 intervals of 8 codes, 8 of 128
    assert sizes_of(dataset, found).tolist() == [3 * n for n in (8, 6, 41, 0, 1, 9)]
    assert without_intervals(found).tolist() == [0, LISTED, 0, LISTED, 0, LISTED]


def test_what_has_no_bounds_is_listed():
    assert ways(random_splits=True)[1].tolist() == [0, 0, 0, LISTED, 0, LISTED]


@pytest.mark.parametrize("n_intervals", [1, 2, 5, 255])
def test_there_are_at_most_so_many_intervals(n_intervals):
    dataset, found = ways(Resolution(0, n_intervals))
    sizes = sizes_of(dataset, found)[[0, 1, 5]] // 3 - 1
    assert (sizes <= n_intervals).all()
    assert (sizes > n_intervals // 2).all() or n_intervals == 255


def test_sparse_columns_are_listed():
    matrix = coded_sparse([[1.0, 2.0, 3.0]], 0)
    dataset = Dataset(matrix, THREE_CLASSES, GrowthRules(criterion="gini"))
    assert ways_of(dataset, FINE).tolist() == [LISTED]


def test_histograms_have_a_cell_for_every_code_and_for_missing_values():
    example = seeded("gini", 3, "none", n_rows=30)
    matrix = coded(example.table)
    sizes = sizes_of(Dataset(matrix, example.target, example.rules))
    n_cells = np.array(matrix.n_codes) + 1
    assert len(set((sizes // n_cells).tolist())) == 1
    np.testing.assert_array_equal(sizes, n_cells * (sizes // n_cells))


# lists of what occurs

VALUES = st.integers(-3, 3).filter(bool)
LISTS = st.dictionaries(st.integers(0, 12), VALUES)
SHARED = st.dictionaries(st.tuples(st.integers(0, 12), st.integers(1, 15)), VALUES)


def arrays(numbers):
    pairs = sorted(numbers.items())
    return *(np.array([pair[k] for pair in pairs], dtype=np.int64) for k in (0, 1)), None


def shared(numbers):
    """A list whose keys are places and sets."""
    items = sorted(numbers.items())
    places, values = ([item[0][0] for item in items], [item[1] for item in items])
    who = np.array([item[0][1] for item in items], dtype=np.uint64)
    return np.array(places, dtype=np.int64), np.array(values, dtype=np.int64), who


@given(LISTS, LISTS, st.sampled_from([1, -1]))
def test_lists_add_up(one, other, sign):
    expected = {k: one.get(k, 0) + sign * other.get(k, 0) for k in {*one, *other}}
    places, values, who = merged(arrays(one), arrays(other), sign)
    kept = {k: v for k, v in expected.items() if v != 0}
    assert list(zip(places.tolist(), values.tolist(), strict=True)) == sorted(kept.items())
    assert who is None


@given(SHARED, SHARED)
def test_lists_of_several_sets_add_up(one, other):
    expected = {k: one.get(k, 0) + other.get(k, 0) for k in {*one, *other}}
    kept = {k: v for k, v in expected.items() if v != 0}
    found, whole = merged(shared(one), shared(other)), shared(kept)
    for mine, theirs in zip(found, whole, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@given(SHARED)
def test_each_set_has_its_numbers(numbers):
    found = of_sets(*shared(numbers), 4)
    for number, (places, values) in enumerate(found):
        own = np.zeros(13, dtype=int)
        for (place, who), value in numbers.items():
            own[place] += value * (who >> number & 1)
        np.testing.assert_array_equal(places, np.flatnonzero(own))
        np.testing.assert_array_equal(values, own[own != 0])


def test_a_list_of_one_set_is_that_of_the_set():
    places, values = np.array([3, 7]), np.array([1, 2])
    ((mine, numbers),) = of_sets(places, values, None, 1)
    assert (mine.tolist(), numbers.tolist()) == ([3, 7], [1, 2])


# a number is listed once for all sets that have it

FEW_CODES = np.array([2, 1, 2, 5, 1, 2])
FEW_COMBINATION = np.array([0, 1, 1, 2, 0, 3], dtype=np.uint16)
FEW_MASKS = np.array([0b0011, 0b0111, 0b1000, 0b0010], dtype=np.uint64)
ONE_COLUMN = np.zeros(1, dtype=np.int32)


def listed(members, masks=FEW_MASKS):
    matrix = coded_columns([FEW_CODES], [5], [5])
    dataset = Dataset(
        matrix, Target.classification([0, 1, 1, 0, 0, 0]), GrowthRules(criterion="gini")
    )
    rows = np.arange(len(FEW_CODES), dtype=np.uint32)
    node = NodeRows(Root(0, 0), rows, None, FEW_COMBINATION, masks)
    places, values, who = list_codes(dataset, node, members, ONE_COLUMN, np.array([0, 6]))
    return places.tolist(), [divmod(v, 2**32) for v in values.tolist()], who


def test_numbers_of_several_combinations():
    """Rows, and those of class 1; places ascend, and sets as numbers at a place."""
    places, values, who = listed(0b1111)
    assert places == [1, 1, 2, 2, 2, 5]
    assert who.tolist() == [0b0011, 0b0111, 0b0010, 0b0011, 0b0111, 0b1000]
    assert values == [(1, 0), (1, 1), (1, 0), (1, 0), (1, 1), (1, 0)]


def test_combinations_that_are_the_same_for_those_who_ask():
    """Sets are numbered as they are asked for; rows of nobody are left out."""
    places, values, who = listed(0b0011)
    assert (places, who.tolist()) == ([1, 2, 2], [0b11, 0b10, 0b11])
    assert values == [(2, 1), (1, 0), (2, 1)]
    places, values, who = listed(0b0100)
    assert (places, values, who) == ([1, 2], [(1, 1), (1, 1)], None)


@pytest.mark.parametrize("members", [0b1, 0b11])
def test_nobody_has_a_row(members):
    places, values, who = listed(members, FEW_MASKS & np.uint64(0b1000))
    assert places == values == []
    assert (who is None) == (members == 1)


def test_many_combinations_in_a_cell():
    """As many as sets of rows, each listed once."""
    masks = np.arange(1, 200, dtype=np.uint64)
    matrix = coded_columns([np.ones(398, dtype=int)], [5], [5])
    target = Target.classification(np.arange(398) % 3)
    dataset = Dataset(matrix, target, GrowthRules(criterion="gini"))
    combination = np.random.default_rng(0).permutation(398).astype(np.uint16) % 199
    rows = np.arange(398, dtype=np.uint32)
    node = NodeRows(Root(0, 0), rows, None, combination, masks)
    places, values, who = list_codes(dataset, node, 0xFF, ONE_COLUMN, np.array([0, 6]))
    assert values.sum() == 398
    pairs = list(zip(places.tolist(), who.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert {who for _, who in pairs} == set(range(1, 200))


# dense columns

N_DENSE = 30_000
DENSE_CODES = (40, 25_000, 5, 700)
LONG_CODES = [RNG.integers(0, n + 1, N_DENSE) for n in DENSE_CODES]
LONG = coded_columns(LONG_CODES, DENSE_CODES, DENSE_CODES)
LONG_ROWS = np.flatnonzero(RNG.random(N_DENSE) < 0.8).astype(np.uint32)
LONG_TIMES = RNG.integers(1, 5, len(LONG_ROWS)).astype(np.uint16)
MASKS = np.array([0b0111, 0b1011, 0b0001], dtype=np.uint64)
COMBINATION = RNG.integers(0, 3, len(LONG_ROWS)).astype(np.uint16)
FIRST = np.cumsum([0, *(n + 1 for n in DENSE_CODES)])
LONG_COLUMNS = np.array([0, 1, 3], dtype=np.int32)
TARGETS = {
    "gini": Target.classification(RNG.integers(0, 3, N_DENSE)),
    "two classes": Target.classification(RNG.integers(0, 2, N_DENSE)),
    "squared_error": Target.regression(RNG.integers(-3, 4, N_DENSE).astype(float), center=False),
}


def in_full(lists, n_words):
    """Cells of all columns, one behind the other."""
    full = np.zeros((len(lists), FIRST[-1] * n_words), dtype=int)
    for own, (places, values) in zip(full, lists, strict=True):
        assert (np.diff(places) > 0).all()
        assert (values != 0).all()
        own[places] = values
    return full.reshape(len(lists), -1, n_words)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("members", [0b1111, 0b0110, 0b1000])
@pytest.mark.parametrize("times", [None, LONG_TIMES])
@pytest.mark.parametrize("name", TARGETS)
def test_what_histograms_have(name, times, members):
    criterion = "squared_error" if name == "squared_error" else "gini"
    dataset = Dataset(LONG, TARGETS[name], GrowthRules(criterion=criterion))
    for node, asked in (
        (NodeRows(Root(0, 0), LONG_ROWS, times, COMBINATION, MASKS), members),
        (NodeRows(Root(0, 0), LONG_ROWS, times, None, EVERYONE), 1),
        (NodeRows(Root(0, 0), LONG_ROWS[:0], None, None, EVERYONE), 1),
    ):
        _, histogram = count(dataset, node, asked, LONG_COLUMNS)
        n_words = histogram.shape[1] // sum(DENSE_CODES[j] + 1 for j in LONG_COLUMNS)
        n_sets = asked.bit_count()
        found = of_sets(*list_codes(dataset, node, asked, LONG_COLUMNS, FIRST), n_sets)
        full = in_full(found, n_words)
        assert not full[:, FIRST[2] : FIRST[3]].any()
        kept = np.concatenate([np.arange(FIRST[j], FIRST[j + 1]) for j in LONG_COLUMNS])
        np.testing.assert_array_equal(full[:, kept].reshape(histogram.shape), histogram)


def test_codes_of_some_intervals():
    """All codes of an interval, or none; those of a column in words of its own."""
    dataset = Dataset(LONG, TARGETS["gini"], GrowthRules(criterion="gini"))
    node = NodeRows(Root(0, 0), LONG_ROWS, None, COMBINATION, MASKS)
    ways = np.array([3, 9, 0, 4], dtype=np.uint8)
    alive, is_alive = [], np.zeros(FIRST[-1], dtype=bool)
    for j in LONG_COLUMNS:
        interval = (np.arange(DENSE_CODES[j] + 1) + (1 << int(ways[j])) - 1) >> int(ways[j])
        bits = RNG.random(interval[-1] + 1) < 0.3
        is_alive[FIRST[j] : FIRST[j + 1]] = bits[interval]
        words = np.zeros((interval[-1] + 1) // 64 + 1, dtype=np.uint64)
        words.view(np.uint8)[: -(-len(bits) // 8)] = np.packbits(bits, bitorder="little")
        alive.append(words)
    asked = LONG_COLUMNS, FIRST, ways, np.concatenate(alive)
    found, whole = (
        in_full(of_sets(*list_codes(dataset, node, 0b1011, *some), 3), 3)
        for some in (asked, (LONG_COLUMNS, FIRST))
    )
    np.testing.assert_array_equal(found, whole * is_alive[:, None])
    assert 0 < np.count_nonzero(found) < np.count_nonzero(whole)


# sparse columns, beside the same in dense storage

N_SPARSE = 900
KINDS = ("distinct", "ties", "categories", "missing", "counts", "hybrid", "mostly", "constant")
TABLE = seeded("gini", 3, "none", kinds=KINDS, n_rows=N_SPARSE).table
ROW_WEIGHT = RNG.integers(1, 9, N_SPARSE) * 0.5
SPARSE_TARGETS = {
    "two classes": Target.classification(RNG.integers(0, 2, N_SPARSE)),
    "classes": Target.classification(RNG.integers(0, 3, N_SPARSE)),
    "many classes": Target.classification(np.arange(N_SPARSE) % 150),
    "weights": Target.classification(RNG.integers(0, 2, N_SPARSE), ROW_WEIGHT),
    "weights of classes": Target.classification(RNG.integers(0, 130, N_SPARSE), ROW_WEIGHT),
    "regression": Target.regression(RNG.integers(-4, 5, N_SPARSE).astype(float), center=False),
    "weights of values": Target.regression(RNG.normal(size=N_SPARSE), ROW_WEIGHT),
}
SPARSE_COLUMNS = np.array([6, 0, 3, 5], dtype=np.int32)


def datasets(target, matrix):
    rules = GrowthRules(
        criterion="gini" if SPARSE_TARGETS[target].kind == "classification" else "squared_error"
    )
    return Dataset(coded(TABLE), SPARSE_TARGETS[target], rules), Dataset(
        matrix, SPARSE_TARGETS[target], rules
    )


def from_dense(dense, matrix, node, members, columns):
    """Dense histograms as lists, without the cells that hold the fill code."""
    sizes = sizes_of(dense)
    n_words = int(sizes[0]) // (int(matrix.n_codes[0]) + 1)
    n_sets = members.bit_count()
    found = [([], []) for _ in range(n_sets)]
    before = 0
    for j in range(matrix.n_columns):
        if j in columns and matrix.storage[j] == 3:
            _, histogram = count(dense, node, members, np.array([j], dtype=np.int32))
            cells = histogram.reshape(n_sets, int(matrix.n_codes[j]) + 1, -1)
            n_words = cells.shape[2]
            cells[:, matrix.fill_code[matrix.slot[j]]] = 0
            for number, own in enumerate(cells.reshape(n_sets, -1)):
                places = np.flatnonzero(own)
                found[number][0].extend((places + before * n_words).tolist())
                found[number][1].extend(own[places].tolist())
        before += int(matrix.n_codes[j]) + 1
    return found


@pytest.mark.one_of(8)
@pytest.mark.parametrize("in_bags", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.6])
@pytest.mark.parametrize("target", SPARSE_TARGETS)
@pytest.mark.parametrize("layout", [coded_sparse, coded_mixed])
def test_lists_are_the_histograms_of_dense_columns(layout, target, share, in_bags):
    """Of sets, too, and of some columns in any order; each way is taken."""
    matrix = layout(TABLE, 1)
    dense, sparse = datasets(target, matrix)
    rows = np.flatnonzero(RNG.random(N_SPARSE) < share).astype(np.uint32)
    times = RNG.integers(1, 4, len(rows)).astype(np.uint16) if in_bags else None
    masks = np.array([0b0111, 0b1011, 0b0001, 0b1000], dtype=np.uint64)
    combination = RNG.integers(0, 4, len(rows)).astype(np.uint16)
    counter = StoredCounter(sparse, matrix)
    for node, members in (
        (NodeRows(Root(0, 0), rows, times, None, EVERYONE), 1),
        (NodeRows(Root(0, 0), rows, times, combination, masks), 0b1111),
        (NodeRows(Root(0, 0), rows, times, combination, masks), 0b1010),
    ):
        for columns in (None, SPARSE_COLUMNS, SPARSE_COLUMNS[:1], SPARSE_COLUMNS[:0]):
            asked = range(matrix.n_columns) if columns is None else columns.tolist()
            expected = from_dense(dense, matrix, node, members, asked)
            found = of_sets(*counter.count(node, members, columns), members.bit_count())
            assert [(a.tolist(), b.tolist()) for a, b in found] == [tuple(e) for e in expected]
    assert (counter.by_row > 0) == (share < 0.1), "few rows are marked"
    assert (counter.by_column > 0) >= (share > 0.1)


def test_no_rows_have_no_cells():
    matrix = coded_sparse(TABLE, 1)
    _, sparse = datasets("classes", matrix)
    node = NodeRows(Root(0, 0), np.zeros(0, dtype=np.uint32), None, None, EVERYONE)
    places, values, who = StoredCounter(sparse, matrix).count(node, 1)
    assert len(places) == len(values) == 0
    assert who is None
