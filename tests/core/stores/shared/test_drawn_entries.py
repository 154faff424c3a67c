"""Sparse columns that shared nodes draw: read once for all sets, which get the trees of fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit

from dtrees import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.core.data.tuning import Tuning
from dtrees.model_selection import cross_validate
from dtrees.parallel import LocalRunner
from tests.estimators.forest_cases import assert_same
from tests.laws.tables import SEVEN_WAYS, coded_mixed, coded_sparse, examples, seeded
from tests.laws.test_shared import SEEDS, TOGETHER, check, check_sets, folds, masks

CODED = {"sparse": coded_sparse, "mixed": coded_mixed}
DRAWS = {
    "columns": {"max_features": 2},
    "splits": {"random_splits": True},
    "both": {"max_features": 2, "random_splits": True},
}
few = settings(max_examples=max(12, settings.default.max_examples // 5))
KINDS = st.sampled_from(sorted(CODED))


def n_shared(grown) -> int:
    return sum(sets.n_shared_nodes for sets in grown)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("shared_rows", [0, 60, 10**6], ids=["stay", "some go", "all go"])
@pytest.mark.parametrize("kind", CODED)
@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_each_set_gets_the_tree_of_its_rows(case, draws, kind, shared_rows, grown):
    example = seeded(*case, n_rows=200, min_samples_leaf=3, **DRAWS[draws])
    matrix = CODED[kind](example.table, 7)
    check_sets(example, folds(200, 4, 0), matrix, tuning=Tuning(shared_rows=shared_rows))
    assert (n_shared(grown) > 0) == (shared_rows < 10**6)
    assert (sum(sets.n_shared_rows for sets in grown) > 100) == (shared_rows < 10**6)


@few
@given(examples(draws=True, random_splits=True), KINDS, SEEDS, st.integers(2, 11))
def test_folds(example, kind, seed, n_folds):
    rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
    check(example, rows, CODED[kind](example.table, seed), tuning=TOGETHER)


@few
@given(examples(draws=True, random_splits=True, max_rows=120), KINDS, SEEDS, st.integers(1, 9))
def test_masks(example, kind, seed, n_sets):
    rows = masks(example.n_rows, n_sets, seed)
    check(example, rows, CODED[kind](example.table, seed), tuning=TOGETHER)


@few
@given(examples(draws=True, random_splits=True, max_rows=120), KINDS, SEEDS, st.integers(0, 200))
def test_sets_that_go_on_alone(example, kind, seed, shared_rows):
    """Rows of a set stand in several stretches where sets have parted from each other."""
    rows = folds(example.n_rows, min(5, example.n_rows), seed)
    matrix = CODED[kind](example.table, seed)
    check(example, rows, matrix, tuning=Tuning(shared_rows=shared_rows))


@few
@given(examples(draws=True, random_splits=True, max_rows=120), KINDS, SEEDS)
def test_threads(example, kind, seed):
    rows = folds(example.n_rows, min(4, example.n_rows), seed)
    tuning = Tuning(task_entries=1, level_entries=1, shared_rows=0)
    matrix = CODED[kind](example.table, seed)
    check(example, rows, matrix, run=LocalRunner(2), n_threads=2, tuning=tuning)


def text(n_rows=700, n_columns=400, seed=0):
    """Words: a few are in most rows, most are in a few."""
    rng = np.random.default_rng(seed)
    share = 1 / (1 + np.arange(n_columns))
    cells = rng.random((n_rows, n_columns)) < share
    counts = np.where(cells, rng.integers(1, 5, cells.shape), 0).astype(float)
    signal = counts[:, 1] + counts[:, 2] - counts[:, 5] + rng.normal(size=n_rows)
    return sp.csr_array(counts), signal


@pytest.mark.parametrize("shared_rows", [0, 60, 700])
@pytest.mark.parametrize("case", [("gini", 2), ("gini", 4), ("squared_error", 0)], ids=str)
def test_rows_of_long_columns_are_searched_for(case, shared_rows, grown):
    """In small nodes of a column that most rows of the table store."""
    example = seeded(*case, "none", kinds=("counts", "ties", "counts"), n_rows=1500, max_features=2)
    matrix = coded_sparse(example.table, 3)
    assert np.diff(matrix.sparse_indptr).max() > 700
    check_sets(example, folds(1500, 3, 0), matrix, tuning=Tuning(shared_rows=shared_rows))
    assert n_shared(grown) > 0


MODELS = {
    "forest": RandomForestClassifier(4, max_depth=6),
    "balanced": ExtraTreesClassifier(4, class_weight="balanced"),
    "extra trees": ExtraTreesClassifier(4, max_depth=6),
    "numbers": RandomForestRegressor(4, max_features=0.2, max_depth=6),
    "extra numbers": ExtraTreesRegressor(4, max_depth=5),
}


CVS = {"folds": KFold(4, shuffle=True, random_state=0), "shuffled": ShuffleSplit(3, random_state=0)}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("cv", CVS.values(), ids=list(CVS))
def test_the_loop_that_it_stands_for(name, cv, grown):
    """Models of a cross-validation are those of fits with weights of zero, bit for bit."""
    X, signal = text()
    model = clone(MODELS[name]).set_params(random_state=0)
    y = signal if "numbers" in name else np.digitize(signal, [0.5, 1.5])
    splits = list(cv.split(y))
    found = cross_validate(model, X, y, cv=splits, return_estimator=True)
    assert n_shared(grown) >= 4
    assert sum(sets.n_shared_rows for sets in grown) >= 700
    for (train, _), ours in zip(splits, found["estimator"], strict=True):
        weight = np.zeros(len(y))
        weight[train] = 1
        alone = clone(model).fit(X, y, sample_weight=weight)
        assert_same(ours, alone)


def test_columns_that_nobody_stores(grown):
    """All that is drawn is constant, and nodes go on to draw."""
    X = sp.csr_array((np.ones(600), (np.arange(600), np.full(600, 2))), shape=(1200, 40))
    found = cross_validate(
        RandomForestClassifier(3, max_features=1, random_state=0),
        *(X, np.arange(1200) < 600),
        cv=KFold(3, shuffle=True, random_state=0),
        return_estimator=True,
    )
    assert (found["test_score"] == 1.0).all()
    assert n_shared(grown) > 0
