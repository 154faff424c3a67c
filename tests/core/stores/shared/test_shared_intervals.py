""""""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dtrees.core.data import _columns, _cpu
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow import shared
from dtrees.core.grow.shared import n_alone
from dtrees.core.membership.resampling import of_sets
from dtrees.parallel import LocalRunner
from tests.laws.tables import Example, coded, fit
from tests.laws.test_class_weights import check_sets as check_weighed
from tests.laws.test_shared import check_sets, folds, grow_sets, masks

CRITERIA = [
    ("gini", 2),
    ("gini", 4),
    ("entropy", 2),
    ("entropy", 3),
    ("squared_error", 0),
    ("poisson", 0),
]
BY_INTERVALS = {"interval_rows": 0, "interval_codes": 0}
few = settings(max_examples=max(10, settings.default.max_examples // 5))


def example_of(criterion, n_classes, weights="none", n_rows=600, of=0, **limits):
    """Columns of more than 255 codes: distinct, with ties, with missing values; and few codes."""
    rng = np.random.default_rng(of)
    distinct = rng.normal(size=n_rows)
    ties = rng.integers(0, 400, n_rows).astype(float)
    missing = np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows))
    signal = distinct + (ties > 150) + np.nan_to_num(missing, nan=1.0) + rng.normal(size=n_rows)
    if n_classes > 0:
        edges = np.quantile(signal, np.linspace(0, 1, n_classes + 1)[1:-1])
        y = np.digitize(signal, edges)
    else:
        y = np.exp(signal).round(2) if criterion == "poisson" else signal.round(3)
    weight = {"none": None, "times": rng.integers(0, 4, n_rows), "fractions": rng.random(n_rows)}
    columns = [distinct, ties, missing, rng.integers(0, 5, n_rows).astype(float), distinct.round(3)]
    table = [[None if np.isnan(v) else v for v in column.tolist()] for column in columns]
    return Example(table, y, weight[weights], criterion, limits)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("weights", ["none", "times", "fractions"])
@pytest.mark.parametrize("case", CRITERIA, ids=str)
@pytest.mark.parametrize("limits", [{"max_depth": 4}, {"min_samples_leaf": 20}], ids=str)
def test_each_set_gets_its_tree(case, weights, limits, grown):
    example = example_of(*case, weights, **limits)
    check_sets(example, folds(600, 5, 1), tuning=Tuning(shared_rows=0, **BY_INTERVALS))
    assert grown[0].n_bounded > 0
    assert grown[0].n_alive <= grown[0].n_bounded


@few
@given(
    st.sampled_from(CRITERIA),
    st.sampled_from(["none", "times", "fractions"]),
    st.integers(0, 2**32 - 1),
    st.integers(2, 9),
    st.booleans(),
    st.booleans(),
)
def test_law(case, weights, seed, n_sets, wide, random_ties):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(300, 900))
    limits = {"max_depth": int(rng.integers(1, 9)), "min_samples_leaf": int(rng.integers(1, 40))}
    if random_ties:
        limits |= {"random_ties": True, "seed": seed % 1000}
    example = example_of(*case, weights, n_rows, seed, **limits)
    before = _cpu.use_wide(wide)
    try:
        rows = folds(n_rows, n_sets, seed) if rng.random() < 0.5 else masks(n_rows, n_sets, seed)
        check_sets(example, rows, tuning=Tuning(shared_rows=0, **BY_INTERVALS))
    finally:
        _cpu.use_wide(before)


@pytest.mark.parametrize("case", [CRITERIA[0], *CRITERIA[-2:]], ids=str)
def test_constrained_columns_are_searched_code_by_code(case, grown):
    """A boundary that breaks an order is not what others have to reach."""
    example = example_of(*case, max_depth=5, monotonic=(1, 0, -1, 0, 1))
    check_sets(example, folds(600, 5, 1), tuning=Tuning(shared_rows=0, **BY_INTERVALS))
    assert grown[0].n_bounded == 0


@pytest.mark.parametrize("storage", [None, 70_000], ids=["16 bits", "32 bits"])
@pytest.mark.parametrize("shared_rows", [0, 100])
def test_columns_of_all_widths(storage, shared_rows, grown):
    """Members that go on alone sort the codes of 32 bits themselves."""
    example = example_of("gini", 2, n_rows=900)
    tuning = Tuning(shared_rows=shared_rows, **BY_INTERVALS)
    check_sets(example, folds(900, 4, 2), coded(example.table, storage), tuning=tuning)
    assert grown[0].n_bounded > 0


@pytest.mark.parametrize("case", CRITERIA[1:], ids=str)
def test_several_threads_search_a_large_node(case, grown):
    """Each has its own columns; what is alive is told by the best boundary of all of them."""
    example = example_of(*case, n_rows=5_000, max_depth=3)
    rows, matrix = folds(5_000, 5, 3), coded(example.table)
    tuning = Tuning(level_entries=1, task_entries=1, **BY_INTERVALS)
    trees = grow_sets(example, matrix, rows, tuning=tuning, run=LocalRunner(2), n_threads=2)
    assert grown[0].n_bounded > 0
    one_thread = grow_sets(example, matrix, rows, tuning=tuning)
    assert grown[1].n_bounded == grown[0].n_bounded
    assert grown[1].n_alive == grown[0].n_alive
    assert one_thread.trees[0].node_count > 1
    alone = grow_sets(example, matrix, rows, tuning=Tuning(interval_rows=2**40))
    for mine, other in zip(trees.trees, alone.trees, strict=True):
        assert mine.equals(other)


def test_few_columns_of_a_real_size_are_looked_at_code_by_code(grown):
    example = example_of("gini", 2, n_rows=20_000, max_depth=3)
    grow_sets(example, coded(example.table), folds(20_000, 5, 0))
    assert 0 < grown[0].n_alive <= 0.6 * grown[0].n_bounded


USED = [("gini", 2, True), ("poisson", 0, True), ("entropy", 2, True), ("gini", 65, False)]


@pytest.mark.parametrize(("criterion", "n_classes", "used"), USED, ids=str)
@pytest.mark.parametrize("codes", ["few", "many"])
def test_intervals_are_made_where_they_are_used(criterion, n_classes, used, codes, monkeypatch):
    """Not for a tree alone, small tables, columns that are drawn, criteria without bounds."""
    made = []
    make = _columns.intervals_of
    monkeypatch.setattr(_columns, "intervals_of", lambda *of: made.append(of) or make(*of))
    for n_rows in (1000, 2000):
        example = example_of(criterion, n_classes, n_rows=n_rows, max_depth=2)
        columns = slice(3, 4) if codes == "few" else slice(None)
        example = replace(example, table=example.table[columns])
        fit(example)
        drawn = replace(example, limits={"max_depth": 2, "max_features": 1})
        if codes == "many":
            grow_sets(drawn, coded(drawn.table), folds(n_rows, 3, 0))
        assert made == []
        grow_sets(example, coded(example.table), folds(n_rows, 3, 0))
        assert (made != []) == (used and codes == "many" and n_rows == 2000)


def test_sets_part_earlier_the_more_columns_have_intervals(grown):
    example = example_of("gini", 2, n_rows=3000, max_depth=2)
    few = replace(example, table=[*example.table[:1], *example.table[3:4] * 3])
    for each in (example, few, replace(example, table=example.table[3:4])):
        grow_sets(each, coded(each.table), folds(3000, 3, 0))
    parted = [sets.shared_rows for sets in grown]
    assert parted[0] > parted[1] > parted[2] == Tuning().shared_rows


# --------------------------------------------------------------------------------------------
# intervals that are alive, code by code

TOGETHER = Tuning(shared_rows=0, **BY_INTERVALS)


def periodic(rng, n_rows, n_classes, missing):
    """Targets that repeat, by code: many boundaries of one column score the same, on either side of
    missing values."""
    period = np.append([0, 1], rng.integers(0, n_classes, rng.integers(0, 7)))
    codes = rng.permutation(n_rows)
    y = period[codes * int(rng.integers(1, 4)) // 3 % len(period)]
    column = codes.astype(float)
    if rng.random() < 0.3:
        column = np.minimum(column, n_rows - column)  # mirrored
    column[rng.random(n_rows) < missing] = np.nan
    return column, y


@few
@given(
    st.sampled_from([("gini", 2), ("gini", 3), ("entropy", 2), ("entropy", 4), ("poisson", 0)]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.02, 0.4]),
    st.booleans(),
)
def test_ties_are_settled_as_in_one_tree(grown_so_far, case, seed, missing, random_ties):
    grown_so_far.clear()
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(520, 800))
    columns, targets = zip(
        *[periodic(rng, n_rows, max(case[1], 2), missing) for _ in range(3)], strict=True
    )
    table = [[None if np.isnan(v) else v for v in column.tolist()] for column in columns]
    y = targets[0].astype(int) if case[1] > 0 else targets[0] + 1.0
    limits = {"max_depth": 3, "min_samples_leaf": int(rng.integers(1, 9))}
    if random_ties:
        limits |= {"random_ties": True, "seed": seed % 99}
    weight = rng.integers(0, 3, n_rows) if rng.random() < 0.3 else None
    example = Example(table, y, weight, case[0], limits)
    rows = folds(n_rows, 3, seed) if rng.random() < 0.5 else masks(n_rows, 3, seed)
    check_sets(example, rows, tuning=TOGETHER)
    assert sum(sets.n_alive for sets in grown_so_far) > 0


@pytest.mark.parametrize("weights", ["none", "times"])
@pytest.mark.parametrize("kind", ["balanced", "any"])
@pytest.mark.parametrize("case", [("gini", 2), ("gini", 4), ("entropy", 3)], ids=str)
def test_sets_with_class_weights_of_their_own(grown_so_far, case, kind, weights):
    grown_so_far.clear()
    example = example_of(*case, weights, max_depth=4)
    check_weighed(example, folds(600, 4, 1), kind, tuning=TOGETHER)
    assert sum(sets.n_alive for sets in grown_so_far) > 0


def test_many_codes_take_no_memory(grown_so_far, monkeypatch):
    """Tables share, however many codes there are, unless these are grown_so_far one by one."""
    example = example_of("squared_error", 0, n_rows=1500, max_depth=2)
    rows, matrix = folds(1500, 3, 0), coded(example.table, 70_000)
    monkeypatch.setattr(shared, "MOST_NUMBERS", 2**14)
    grown_so_far.clear()
    few_rows = Tuning(shared_rows=0, interval_rows=64)
    check_sets(example, rows, matrix, tuning=few_rows)
    assert grown_so_far[0].n_alive > 0
    assert grown_so_far[0].n_shared_nodes > 0
    grown_so_far.clear()
    grow_sets(example, matrix, rows, tuning=Tuning(shared_rows=0, interval_rows=2**40))
    assert grown_so_far == []
    sets = of_sets(rows)
    monkeypatch.setattr(shared, "MOST_NUMBERS", 100)
    reason = "counts of two of them would take too much memory"
    assert n_alone(matrix, example.target, example.rules, sets) == (len(rows), reason)


def test_a_tree_on_the_far_side_of_an_interval_without_rows(grown_so_far):
    """What lies between two codes of a set may be intervals that only other sets have."""
    rng = np.random.default_rng(3)
    column = np.sort(rng.normal(size=1200))
    y = (np.arange(1200) >= 600).astype(int)
    rows = np.ones((3, 1200), dtype=bool)
    rows[0, 500:700] = False
    rows[1, 601:650] = False
    example = Example([column.tolist()], y, None, "gini", {"max_depth": 2})
    grown_so_far.clear()
    check_sets(example, rows, tuning=TOGETHER)
    assert grown_so_far[0].n_alive > 0
