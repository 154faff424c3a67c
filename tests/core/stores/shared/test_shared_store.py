"""Sets that share nodes get the trees that each would get alone, whatever is counted together."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit

from dtrees import ExtraTreesClassifier, ExtraTreesRegressor
from dtrees.core.data import _columns
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow import shared
from dtrees.core.grow.shared import LOGARITHMS, n_alone
from dtrees.core.membership.resampling import of_sets
from dtrees.core.stores.shared._shared_nodes import MOST_SETS
from dtrees.model_selection import cross_validate
from dtrees.parallel import LocalRunner
from tests.core.walk import rows_of_nodes
from tests.estimators.forest_cases import assert_same
from tests.laws.tables import SEVEN_WAYS, Example, coded, coded_sparse, examples, fit, seeded
from tests.laws.test_class_weights import check_sets as check_weighed
from tests.laws.test_shared import SEEDS, check, check_sets, folds, grow_sets, masks
from tests.oracle.criterion import RowStatistics
from tests.oracle.greedy import assert_tree_is_greedy
from tests.registers import wide_registers

TOGETHER = Tuning(shared_rows=0)
few = settings(max_examples=max(12, settings.default.max_examples // 5))


@pytest.mark.parametrize("cut", [folds, masks], ids=["folds", "masks"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_each_set_gets_the_tree_of_its_rows(case, cut):
    example = seeded(*case, n_rows=70)
    rows = cut(70, 4, 2)
    together = n_alone(coded(example.table), example.target, example.rules, of_sets(rows))
    assert case[0] in LOGARITHMS or together == (0, "")
    check_sets(example, rows, tuning=TOGETHER)


@pytest.mark.parametrize("case", SEVEN_WAYS[:4], ids=str)
def test_which_is_the_greedy_one(case):
    example = seeded(*case, kinds=("ties", "hybrid", "distinct"), n_rows=40, max_depth=3)
    rows = masks(40, 3, 5)
    trees = grow_sets(example, coded(example.table), rows, tuning=TOGETHER).trees
    for mine, tree in zip(rows, trees, strict=True):
        target = example.target.only(mine)
        assert_tree_is_greedy(tree, example.table, target, example.rules)


def test_members_that_choose_one_column_and_other_thresholds_stay_together():
    """Each row whose side they disagree on goes to both children."""
    rng = np.random.default_rng(4)
    column = rng.normal(size=200)
    y = (column + rng.normal(size=200) > 0).astype(int)
    example = Example([column.tolist(), [1.0] * 200], y, None, "gini", {"min_samples_leaf": 5})
    rows = folds(200, 8, 0)
    trees = grow_sets(example, coded(example.table), rows, tuning=TOGETHER).trees
    assert len({tree.threshold[0] for tree in trees}) > 1
    check_sets(example, rows, tuning=TOGETHER)


# --------------------------------------------------------------------------------------------
# any columns, and splits that are drawn

KINDS = ("missing", "hybrid", "mostly a category", "ties")


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("storage", "shared_rows"), [(None, 0), (300, 0), (70_000, 100)], ids=str)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_columns_of_every_width(case, storage, shared_rows):
    """Categories and hybrids among them."""
    example = seeded(*case, kinds=KINDS, n_rows=300)
    matrix = coded(example.table, storage)
    check_sets(example, folds(300, 4, 2), matrix, tuning=Tuning(shared_rows=shared_rows))


@pytest.mark.parametrize("max_features", [1, 3])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_columns_that_are_drawn(case, max_features):
    """Further ones are drawn for the sets that found no split."""
    example = seeded(*case, kinds=KINDS, n_rows=120, max_features=max_features, seed=1)
    check_sets(example, folds(120, 4, 2), tuning=Tuning(shared_rows=0))


# --------------------------------------------------------------------------------------------
# splits that are drawn

MANY = ("distinct", "missing", "distinct", "counts")  # columns of as many codes as rows, and others
LARGEST = st.sampled_from([255, 300, 70_000])  # codes of 8, 16 and 32 bits


@pytest.mark.parametrize("largest", [255, 300, 70_000])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_drawn_splits_of_any_width(case, largest):
    example = seeded(*case, kinds=MANY, n_rows=200, min_samples_leaf=2, random_splits=True)
    check_sets(example, folds(200, 4, 0), coded(example.table, largest), tuning=TOGETHER)


@few
@given(examples(draws=True, random_splits=True, max_rows=120), LARGEST, SEEDS, st.integers(1, 9))
def test_sets_of_any_rows_draw_splits(example, largest, seed, n_sets):
    """Sets of any rows draw many thresholds of a column."""
    rows = masks(example.n_rows, n_sets, seed)
    check(example, rows, coded(example.table, largest), tuning=TOGETHER)


def test_as_many_sets_as_there_may_be():
    example = seeded("squared_error", 0, "none", kinds=MANY, n_rows=300, random_splits=True)
    check_sets(example, masks(300, MOST_SETS, 5), coded(example.table), tuning=TOGETHER)


MODELS = {
    "two classes": ExtraTreesClassifier(4),
    "balanced": ExtraTreesClassifier(4, class_weight="balanced", max_depth=6),
    "bags": ExtraTreesClassifier(4, bootstrap=True, max_depth=6),
    "five classes": ExtraTreesClassifier(4, max_features=None),
    "entropy": ExtraTreesClassifier(4, criterion="entropy", max_depth=6),
    "numbers": ExtraTreesRegressor(4),
    "poisson": ExtraTreesRegressor(4, criterion="poisson", max_depth=6),
}
CVS = {"folds": KFold(4, shuffle=True, random_state=0), "shuffled": ShuffleSplit(3, random_state=0)}


@pytest.mark.one_of(8)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("cv", "is_sparse"),
    [(CVS["folds"], False), (CVS["shuffled"], False), (CVS["folds"], True)],
    ids=["folds", "shuffled", "sparse"],
)
def test_the_loop_that_it_stands_for(name, cv, is_sparse):
    """Models of a cross-validation are those of fits with weights of zero, bit for bit."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1600, 5))
    X[rng.random(X.shape) < 0.02] = np.nan
    signal = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]) + rng.normal(size=1600)
    y = np.exp(signal) if name in ("numbers", "poisson") else np.digitize(signal, [0.5])
    if name == "five classes":
        y = np.digitize(signal, [-1, 0, 1, 2])
    if is_sparse:
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.5, np.nan_to_num(X), 0))
    model = clone(MODELS[name]).set_params(random_state=0, max_bins=255)
    splits = list(cv.split(y))
    found = cross_validate(model, X, y, cv=splits, return_estimator=True)
    report = found["final_estimator"].fit_report_
    assert report["shared_nodes"] >= 4
    assert report["shared_rows"] >= 4 * 1600
    for (train, _), ours in zip(splits, found["estimator"], strict=True):
        weight = np.zeros(len(y))
        weight[train] = 1
        alone = clone(model).fit(X, y, sample_weight=weight)
        assert_same(ours, alone)


# --------------------------------------------------------------------------------------------
# children


def roots(example, rows):
    trees = grow_sets(example, coded(example.table), rows, tuning=TOGETHER).trees
    return [int(tree.feature[0]) for tree in trees]


@pytest.mark.parametrize("n_columns", [2, 5])
def test_members_that_choose_other_columns(n_columns):
    """Columns are copies of the target, each with noise in other rows."""
    rng = np.random.default_rng(n_columns)
    y = rng.integers(0, 2, 120)
    noise = rng.random((n_columns, 120)) < 0.12
    columns = np.where(noise, 1 - y, y) * 3.0 + rng.integers(0, 2, (n_columns, 120))
    example = Example([column.tolist() for column in columns], y, None, "gini")
    rows = folds(120, 9, 1)
    assert len(set(roots(example, rows))) > 1
    check_sets(example, rows, tuning=TOGETHER)


@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_subsets_of_categories_differ_between_members(case):
    kinds = ("categories", "many categories", "hybrid", "mostly a category")
    example = seeded(*case, kinds=kinds, n_rows=110, min_samples_leaf=2)
    check_sets(example, masks(110, 6, 2), tuning=TOGETHER)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_members_that_have_few_rows_in_common(share):
    """Nearly every row is missing in some member, or nearly none."""
    example = seeded("gini", 3, "none", kinds=("ties", "distinct", "missing", "counts"), n_rows=130)
    rows = np.random.default_rng(0).random((7, 130)) < share
    rows[:, :3] = True
    check_sets(example, rows, tuning=TOGETHER)


# --------------------------------------------------------------------------------------------
# cells and sums


@pytest.mark.parametrize("n_sets", [1, 3, 12])
@pytest.mark.parametrize("n_classes", [2, 11])
def test_rows_that_only_some_members_have(n_sets, n_classes):
    kinds = ("distinct", "ties", "counts")
    example = seeded("gini", n_classes, "none", kinds=kinds, n_rows=100)
    check_sets(example, folds(100, n_sets + 1, n_sets), tuning=TOGETHER)


def test_weights_that_one_number_cannot_hold():
    """Weights whose sum leaves its field: rows are not packed."""
    example = seeded("gini", 2, "none", kinds=("distinct", "ties"), n_rows=60)
    weight = np.full(60, 2.0**40)
    weight[::3] = 1.0
    heavy = type(example)(example.table, example.y, weight, "gini")
    check_sets(heavy, folds(60, 3, 0), tuning=TOGETHER)


FEW_CODES = ("ties", "counts", "missing", "categories")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("code", [lambda table: coded(table), lambda table: coded_sparse(table, 3)])
@pytest.mark.parametrize("n_lacking", [0, 1, 2, 5])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_sets_that_lack_some_cells(case, n_lacking, code):
    example = seeded(*case, kinds=FEW_CODES, n_rows=300, max_depth=3)
    cell = np.random.default_rng(0).integers(0, 8, 300)
    lacks = [{(s + k) % 8 for k in range(n_lacking)} for s in range(4)]
    rows = np.array([[c not in own for c in cell.tolist()] for own in lacks])
    check_sets(example, rows, code(example.table), tuning=TOGETHER)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("cut", [folds, masks], ids=["folds", "masks"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_sums_of_every_node_of_every_set(case, cut):
    example = seeded(*case, kinds=("ties", "categories", "distinct"), n_rows=60, max_depth=5)
    sets = cut(60, 4, 1)
    statistics = RowStatistics(example.target, example.criterion)
    trees = grow_sets(example, coded(example.table), sets, tuning=TOGETHER).trees
    for has, tree in zip(sets, trees, strict=True):
        rows = rows_of_nodes(tree, example)  # of the whole table, wherever its tests send them
        for node in range(tree.node_count):
            mine = [row for row in rows[node].tolist() if has[row]]
            sums = statistics.sums(mine)
            assert tree.n_node_samples[node] == len(mine)
            weight = float(sums.weight * statistics.weight_unit)
            assert tree.weighted_n_node_samples[node] == pytest.approx(weight, rel=1e-12)
            value = statistics.value(sums)
            np.testing.assert_allclose(tree.value[node], value, rtol=1e-9, atol=1e-12)
            assert (tree.impurity[node] == 0.0) == (len({example.y[row] for row in mine}) == 1)


def test_a_set_of_one_row():
    example = seeded("squared_error", 0, "none", kinds=("distinct",), n_rows=12)
    sets = np.eye(12, dtype=bool)[:3]
    trees = grow_sets(example, coded(example.table), sets, tuning=TOGETHER).trees
    for number, tree in enumerate(trees):
        assert tree.node_count == 1
        assert tree.n_node_samples.tolist() == [1]
        assert tree.value[0, 0] == pytest.approx(example.y[number])
        assert tree.impurity[0] == 0.0


# --------------------------------------------------------------------------------------------
# columns of many codes, by intervals

CRITERIA = [
    ("gini", 2),
    ("gini", 4),
    ("entropy", 2),
    ("entropy", 3),
    ("squared_error", 0),
    ("poisson", 0),
]
BY_INTERVALS = {"interval_rows": 0, "interval_codes": 0}
BOUNDED = Tuning(shared_rows=0, **BY_INTERVALS)


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


@pytest.mark.one_of(6)
@pytest.mark.parametrize("weights", ["none", "times", "fractions"])
@pytest.mark.parametrize("case", CRITERIA, ids=str)
@pytest.mark.parametrize("limits", [{"max_depth": 4}, {"min_samples_leaf": 20}], ids=str)
def test_intervals_give_each_set_its_tree(case, weights, limits, grown):
    example = example_of(*case, weights, **limits)
    check_sets(example, folds(600, 5, 1), tuning=BOUNDED)
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
def test_any_sets_by_intervals(case, weights, seed, n_sets, wide, random_ties):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(300, 900))
    limits = {"max_depth": int(rng.integers(1, 9)), "min_samples_leaf": int(rng.integers(1, 40))}
    if random_ties:
        limits |= {"random_ties": True, "seed": seed % 1000}
    example = example_of(*case, weights, n_rows, seed, **limits)
    with wide_registers(wide):
        rows = folds(n_rows, n_sets, seed) if rng.random() < 0.5 else masks(n_rows, n_sets, seed)
        check_sets(example, rows, tuning=BOUNDED)


@pytest.mark.parametrize("case", [CRITERIA[0], *CRITERIA[-2:]], ids=str)
def test_constrained_columns_are_searched_code_by_code(case, grown):
    """A boundary that breaks an order is not what others have to reach."""
    example = example_of(*case, max_depth=5, monotonic=(1, 0, -1, 0, 1))
    check_sets(example, folds(600, 5, 1), tuning=BOUNDED)
    assert grown[0].n_bounded == 0


@pytest.mark.parametrize("storage", [None, 70_000], ids=["16 bits", "32 bits"])
@pytest.mark.parametrize("shared_rows", [0, 100])
def test_intervals_of_columns_of_16_and_32_bits(storage, shared_rows, grown):
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


@pytest.mark.one_of(2)
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
    check_sets(example, rows, tuning=BOUNDED)
    assert sum(sets.n_alive for sets in grown_so_far) > 0


@pytest.mark.one_of(4)
@pytest.mark.parametrize("weights", ["none", "times"])
@pytest.mark.parametrize("kind", ["balanced", "any"])
@pytest.mark.parametrize("case", [("gini", 2), ("gini", 4), ("entropy", 3)], ids=str)
def test_sets_with_class_weights_of_their_own(grown_so_far, case, kind, weights):
    grown_so_far.clear()
    example = example_of(*case, weights, max_depth=4)
    check_weighed(example, folds(600, 4, 1), kind, tuning=BOUNDED)
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
    check_sets(example, rows, tuning=BOUNDED)
    assert grown_so_far[0].n_alive > 0
