"""The search of a shared node is that of each set, whatever its columns are and which are drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit

from dtrees import ExtraTreesClassifier, ExtraTreesRegressor
from dtrees.core.data.tuning import Tuning
from dtrees.core.stores.shared._shared_nodes import MOST_SETS
from dtrees.model_selection import cross_validate
from tests.estimators.forest_cases import assert_same
from tests.laws.tables import SEVEN_WAYS, coded, examples, seeded
from tests.laws.test_shared import SEEDS, TOGETHER, check, check_sets, folds, masks

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
