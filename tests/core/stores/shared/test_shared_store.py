""""""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit

from dtrees import ExtraTreesClassifier, ExtraTreesRegressor
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow.shared import LOGARITHMS, n_alone
from dtrees.core.membership.resampling import of_sets
from dtrees.core.stores.shared._shared_nodes import MOST_SETS
from dtrees.model_selection import cross_validate
from tests.estimators.forest_cases import assert_same
from tests.laws.tables import SEVEN_WAYS, Example, coded, examples, seeded
from tests.laws.test_shared import SEEDS, check, check_sets, folds, grow_sets, masks
from tests.oracle.greedy import assert_tree_is_greedy

TOGETHER = Tuning(shared_rows=0)


@pytest.mark.parametrize("limits", [{}, {"max_features": 2, "seed": 3}], ids=["all", "drawn"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_each_set_gets_the_tree_of_its_rows(case, limits):
    example = seeded(*case, n_rows=70, **limits)
    rows = folds(70, 3, 2)
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


@pytest.mark.parametrize("shared_rows", [0, 100])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_columns_of_32_bits_code_by_code(case, shared_rows):
    """Categories and hybrids among them."""
    example = seeded(*case, kinds=KINDS, n_rows=300)
    matrix = coded(example.table, 70_000)
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
few = settings(max_examples=max(12, settings.default.max_examples // 5))


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


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("cv", CVS.values(), ids=list(CVS))
def test_the_loop_that_it_stands_for(name, cv):
    """Models of a cross-validation are those of fits with weights of zero, bit for bit."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1600, 5))
    X[rng.random(X.shape) < 0.02] = np.nan
    signal = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]) + rng.normal(size=1600)
    y = np.exp(signal) if name in ("numbers", "poisson") else np.digitize(signal, [0.5])
    if name == "five classes":
        y = np.digitize(signal, [-1, 0, 1, 2])
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
