"""Sparse columns of shared nodes: entries move once for all sets, which get the trees of fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold, RepeatedKFold, ShuffleSplit

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.core.data.tuning import Tuning
from dtrees.model_selection import cross_validate
from dtrees.parallel import LocalRunner
from tests.laws.tables import SEVEN_WAYS, coded_mixed, coded_sparse, examples, seeded
from tests.laws.test_shared import SEEDS, TOGETHER, check, check_sets, folds, masks

CODED = {"sparse": coded_sparse, "mixed": coded_mixed}
MEANS = ("impurity", "value")
few = settings(max_examples=max(12, settings.default.max_examples // 5))
FACTS = ("feature", "threshold", "impurity", "n_node_samples", "value", "children_left")


def n_shared(grown) -> int:
    return sum(sets.n_shared_nodes for sets in grown)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("shared_rows", [0, 60, 10**6], ids=["stay", "some go", "all go"])
@pytest.mark.parametrize("kind", CODED)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_each_set_gets_the_tree_of_its_rows(case, kind, shared_rows, grown):
    example = seeded(*case, n_rows=200, min_samples_leaf=3)
    matrix = CODED[kind](example.table, 7)
    check_sets(example, folds(200, 4, 0), matrix, tuning=Tuning(shared_rows=shared_rows))
    assert (n_shared(grown) > 0) == (shared_rows < 10**6)
    assert sum(sets.n_shared_rows for sets in grown) >= 200 * (shared_rows < 10**6)


@few
@given(examples(), st.sampled_from(sorted(CODED)), SEEDS, st.integers(2, 11))
def test_folds(example, kind, seed, n_folds):
    rows = folds(example.n_rows, min(n_folds, example.n_rows), seed)
    check(example, rows, CODED[kind](example.table, seed), tuning=TOGETHER)


@few
@given(examples(max_rows=120), st.sampled_from(sorted(CODED)), SEEDS, st.integers(1, 9))
def test_masks(example, kind, seed, n_sets):
    rows = masks(example.n_rows, n_sets, seed)
    check(example, rows, CODED[kind](example.table, seed), tuning=TOGETHER)


@few
@given(examples(max_rows=120), st.sampled_from(sorted(CODED)), SEEDS, st.integers(0, 200))
def test_sets_that_go_on_alone(example, kind, seed, shared_rows):
    """They take the entries of their node with them."""
    rows = folds(example.n_rows, min(5, example.n_rows), seed)
    matrix = CODED[kind](example.table, seed)
    check(example, rows, matrix, tuning=Tuning(shared_rows=shared_rows))


@few
@given(examples(max_rows=120), st.sampled_from(sorted(CODED)), SEEDS, st.sampled_from([1, 1 << 40]))
def test_threads(example, kind, seed, level_entries):
    rows = folds(example.n_rows, min(4, example.n_rows), seed)
    tuning = Tuning(task_entries=1, level_entries=level_entries, shared_rows=0)
    matrix = CODED[kind](example.table, seed)
    check(example, rows, matrix, run=LocalRunner(2), n_threads=2, tuning=tuning)


def random_table(rng: np.random.Generator, n_rows: int):
    """Numbers, some of them negative, zeros that are stored, and missing values; CSR or CSC."""
    n_columns = int(rng.integers(1, 40))
    values = rng.normal(size=(n_rows, n_columns)).round(2)
    if rng.random() < 0.5:
        values = np.round(values) / 2
    cells = np.where(
        rng.random((n_rows, n_columns)) < rng.random(n_columns),
        values,
        0.0,
    )
    rows, columns = np.nonzero((cells != 0) | (rng.random(cells.shape) < 0.05))
    values = cells[rows, columns]
    if rng.random() < 0.4:
        values[rng.random(len(values)) < 0.1] = np.nan
    table = sp.coo_array((values, (rows, columns)), shape=cells.shape)
    return (table.tocsr() if rng.random() < 0.5 else table.tocsc()), np.nan_to_num(cells)


@pytest.mark.parametrize("kind", ["two classes", "five classes", "numbers"])
@few
@given(seed=SEEDS, cv=st.sampled_from(["folds", "shuffled", "repeated"]), limited=st.booleans())
def test_the_loop_that_it_stands_for(kind, seed, cv, limited):
    """Models are those of `fit(X[train], y[train])`, bit for bit but for means of numbers."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(20, 90))
    X, cells = random_table(rng, n_rows)
    signal = cells[:, 0] + cells[:, -1] + rng.normal(size=n_rows)
    limits = {"max_depth": 3, "min_samples_leaf": 4} if limited else {}
    if kind == "numbers":
        model, y = (
            DecisionTreeRegressor(random_state=0, max_bins=None, **limits),
            np.round(2 * signal) / 2,
        )
    else:
        n_classes = 2 if kind == "two classes" else 5
        y = np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)
        model = DecisionTreeClassifier(random_state=0, max_bins=None, **limits)
    splits = {
        "folds": KFold(4, shuffle=True, random_state=0),
        "shuffled": ShuffleSplit(5, test_size=0.3, random_state=0),
        "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    }[cv]
    splits = list(splits.split(y))
    found = cross_validate(model, X, y, cv=splits, return_estimator=True)
    for (train, test), ours, score in zip(
        splits, found["estimator"], found["test_score"], strict=True
    ):
        alone = clone(model).fit(X.tocsr()[train], y[train])
        for fact in FACTS:
            found_fact, expected = getattr(ours.tree_, fact), getattr(alone.tree_, fact)
            if kind == "numbers" and fact in MEANS:  # the units of targets are those of all rows
                np.testing.assert_allclose(found_fact, expected, 1e-9, 1e-12, err_msg=fact)
            else:
                np.testing.assert_array_equal(found_fact, expected, err_msg=fact)
        assert score == pytest.approx(alone.score(X.tocsr()[test], y[test]), rel=1e-9, abs=1e-12)


def test_a_cross_validation_of_text_shares(grown):
    rng = np.random.default_rng(0)
    X = sp.random_array((2_000, 500), density=0.02, rng=rng, format="csr")
    y = (X[:, [0]].toarray()[:, 0] + X[:, [7]].toarray()[:, 0] > 0).astype(int)
    cross_validate(DecisionTreeClassifier(max_depth=3), X, y, cv=5)
    assert n_shared(grown) >= 1
    assert sum(sets.n_shared_rows for sets in grown) >= 2_000


def test_columns_that_nobody_stores(grown):
    """A table without any entry, and one with an empty column among others."""
    example = seeded("gini", 3, "none", kinds=("constant", "constant"), n_rows=60)
    check_sets(example, folds(60, 3, 0), coded_sparse(example.table, 0), tuning=TOGETHER)
    X = sp.csr_array((np.ones(30), (np.arange(30), np.full(30, 2))), shape=(60, 5))
    models = cross_validate(
        DecisionTreeClassifier(), X, np.arange(60) < 30, cv=3, return_estimator=True
    )
    assert all(model.get_n_leaves() <= 2 for model in models["estimator"])
