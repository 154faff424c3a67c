""""""

import ctypes

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow._shared_growth import SharedTeam
from dtrees.core.grow.shared import grow
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import of_sets
from dtrees.estimators.fit_plan import FitPlan
from dtrees.model_selection import cross_validate
from dtrees.parallel import LocalRunner
from dtrees.typing import serial
from tests.laws.tables import SEVEN_WAYS, coded_mixed, coded_sparse, examples, seeded
from tests.laws.test_shared import SEEDS, TOGETHER, check, check_sets, folds, grow_sets, masks
from tests.oracle.greedy import assert_tree_is_greedy

CODED = {"sparse": coded_sparse, "mixed": coded_mixed}


def n_shared(grown) -> int:
    return sum(sets.n_shared_nodes for sets in grown)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("shared_rows", [0, 60, 10**6], ids=["stay", "some go", "all go"])
@pytest.mark.parametrize("kind", CODED)
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_each_set_gets_the_tree_of_its_rows(case, kind, shared_rows, grown):
    example = seeded(*case, n_rows=200, min_samples_leaf=3)
    matrix = CODED[kind](example.table, 7)
    check_sets(example, folds(200, 4, 0), matrix, tuning=Tuning(shared_rows=shared_rows))
    assert (n_shared(grown) > 0) == (shared_rows < 10**6)
    assert sum(sets.n_shared_rows for sets in grown) >= 200 * (shared_rows < 10**6)


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


@pytest.mark.parametrize("case", SEVEN_WAYS[:2], ids=str)
def test_which_is_the_greedy_one(case):
    example = seeded(*case, kinds=("ties", "hybrid", "counts"), n_rows=300, max_depth=2)
    rows = folds(300, 3, 5)
    trees = grow_sets(example, coded_sparse(example.table, 5), rows, tuning=TOGETHER).trees
    for mine, tree in zip(rows, trees, strict=True):
        assert_tree_is_greedy(tree, example.table, example.target.only(mine), example.rules)


# --------------------------------------------------------------------------------------------
# who reads the entries of a node

NOISE = ("hybrid", "distinct", "counts")


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("n_threads", "shared_rows"), [(1, 0), (2, 40), (3, 0)])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_sets_that_choose_many_columns(case, shared_rows, n_threads):
    """Groups of one set and of several, which grow here, alone, or on another thread."""
    example = seeded(*case, kinds=NOISE * 4, n_rows=150, min_samples_leaf=2)
    rows = np.random.default_rng(3).random((11, 150)) < 0.5
    tuning = Tuning(task_entries=1, level_entries=0, shared_rows=shared_rows)
    matrix = coded_sparse(example.table, 3)
    run = LocalRunner(min(n_threads, 2))
    check_sets(example, rows, matrix, run=run, n_threads=n_threads, tuning=tuning)


@settings(max_examples=settings.default.max_examples)
@given(
    examples(draws=True, random_splits=True, max_rows=120) | examples(max_rows=120),
    st.sampled_from(sorted(CODED)),
    SEEDS,
    st.integers(2, 11),
    st.sampled_from([0, 30, 90, 2**40]),
    st.sampled_from([0, 1, 1 << 40]),
    st.sampled_from([1, 2]),
)
def test_any_order(example, kind, seed, n_sets, shared_rows, level_entries, n_threads):
    """Sets of folds, or of any rows, on one thread or two, which go on alone sooner or later."""
    rows = folds(example.n_rows, min(n_sets, example.n_rows), seed)
    if seed % 2:
        rows = masks(example.n_rows, n_sets, seed)
    tuning = Tuning(task_entries=1, level_entries=level_entries, shared_rows=shared_rows)
    matrix = CODED[kind](example.table, seed)
    run = LocalRunner(n_threads)
    check(example, rows, matrix, run=run, n_threads=n_threads, tuning=tuning)


@pytest.mark.parametrize("n_rows", [120, 900])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_columns_that_may_not_follow_are_left_behind(n_rows, n_jobs):
    rng = np.random.default_rng(n_rows)
    X = scipy.sparse.random(n_rows, 12, 0.3, "csc", random_state=rng)
    y = rng.integers(0, 2, n_rows)
    tree = DecisionTreeClassifier(interaction_cst=[[0, 1, 2, 3], [3, 4, 5, 6, 7]], n_jobs=n_jobs)
    cv = KFold(9, shuffle=True, random_state=0)
    found = cross_validate(tree, X, y, cv=cv, return_estimator=True)["estimator"]
    for (train, _), model in zip(cv.split(y), found, strict=True):
        weight = np.zeros(n_rows)
        weight[train] = 1
        alone = tree.fit(X, y, sample_weight=weight).tree_
        for fact in ("feature", "threshold", "value", "children_left"):
            assert np.array_equal(getattr(model.tree_, fact), getattr(alone, fact))


def test_a_left_child_of_other_members_is_no_sibling():
    """A small group's right child is pure, and its left one lies above the children of another."""
    rng = np.random.default_rng(129)
    n_rows = int(rng.integers(60, 400))
    X = scipy.sparse.random(n_rows, 9, rng.uniform(0.15, 0.6), "csc", random_state=rng)
    X.data = np.ceil(X.data * 6)
    dense = X.toarray()
    y = ((dense[:, 0] > 2) ^ (rng.random(n_rows) < 0.25)).astype(int) + (dense[:, 4] > 3)
    allowed = [[0, 1, 2], [2, 3, 4, 5], [6, 7, 8, 0], [1, 4, 7]]
    tree = DecisionTreeClassifier(interaction_cst=allowed, n_jobs=1)
    found = cross_validate(tree, X, y, cv=KFold(12), return_estimator=True)["estimator"]
    for (train, _), model in zip(KFold(12).split(y), found, strict=True):
        weight = np.zeros(n_rows)
        weight[train] = 1
        alone = tree.fit(X, y, sample_weight=weight).tree_
        for fact in ("feature", "threshold", "value", "children_left"):
            assert np.array_equal(getattr(model.tree_, fact), getattr(alone, fact))


def test_subtrees_are_grown_before_their_parents_entries_are_copied(monkeypatch):
    """A thread that divides upper nodes does not run ahead; here nobody helps it."""
    reliefs = []
    do_tasks = SharedTeam.do_tasks
    monkeypatch.setattr(SharedTeam, "do_tasks", lambda team: reliefs.append(team) or do_tasks(team))
    example = seeded("gini", 2, "none", kinds=NOISE * 4, n_rows=400, min_samples_leaf=2)
    rows = np.random.default_rng(0).random((11, 400)) < 0.3
    rows = np.vstack([rows, np.repeat(rows[:3], 3, axis=0)])  # groups of four
    tuning = Tuning(task_entries=1, level_entries=0, shared_rows=0)
    matrix = coded_sparse(example.table, 3)
    check_sets(example, rows, matrix, run=serial, n_threads=2, tuning=tuning)
    assert reliefs


class _Claimed(ctypes.Structure):
    """What `mallinfo2` of the GNU C library tells."""

    _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]


def claimed_bytes() -> int:
    """Bytes of all memory that was claimed and not freed."""
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("this C library does not count")
    asked = ctypes.CDLL(None).mallinfo2
    asked.restype = _Claimed
    found = asked()
    return found.e + found.h  # in mapped blocks, and in all others


def test_nodes_of_nearly_all_rows_have_no_entries_of_their_own(monkeypatch):
    """Three groups of sets part at the root, and splits cut few rows off."""
    seen = []  # whenever a node is searched
    share = SharedTeam.share
    monkeypatch.setattr(
        SharedTeam, "share", lambda team, *work: seen.append(claimed_bytes()) or share(team, *work)
    )
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(20_000, 100, 0.05, "csc", random_state=rng)
    y = rng.integers(0, 2, 20_000)
    encoded = FitPlan.of(DecisionTreeClassifier(max_depth=4)).encode(X, (y, None), 0, serial)
    groups = of_sets(np.repeat(rng.random((3, 20_000)) < 0.6, 4, axis=0))
    how = {"n_threads": 2, "tuning": Tuning(task_entries=1, level_entries=1, shared_rows=0)}
    source = DatasetSource(encoded.coded, encoded.target, encoded.rules, run=serial, **how)
    grow(source, [encoded.rules] * 12, groups, encoded.book.thresholds)
    assert len(seen) > 4
    assert max(seen) - seen[0] < 8 * X.nnz / 2


# --------------------------------------------------------------------------------------------
# columns that are drawn

DRAWS = {"columns": {"max_features": 2}, "both": {"max_features": 2, "random_splits": True}}


@pytest.mark.one_of(6)
@pytest.mark.parametrize("shared_rows", [0, 60, 10**6], ids=["stay", "some go", "all go"])
@pytest.mark.parametrize(("kind", "draws"), [("sparse", "columns"), ("mixed", "both")])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_each_set_gets_the_tree_of_its_rows_drawn(case, draws, kind, shared_rows, grown):
    example = seeded(*case, n_rows=200, min_samples_leaf=3, **DRAWS[draws])
    matrix = CODED[kind](example.table, 7)
    check_sets(example, folds(200, 4, 0), matrix, tuning=Tuning(shared_rows=shared_rows))
    assert (n_shared(grown) > 0) == (shared_rows < 10**6)
    assert (sum(sets.n_shared_rows for sets in grown) > 100) == (shared_rows < 10**6)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("shared_rows", [0, 60, 700])
@pytest.mark.parametrize("case", [("gini", 2), ("gini", 4), ("squared_error", 0)], ids=str)
def test_rows_of_long_columns_are_searched_for(case, shared_rows, grown):
    """In small nodes of a column that most rows of the table store."""
    example = seeded(*case, "none", kinds=("counts", "ties", "counts"), n_rows=1500, max_features=2)
    matrix = coded_sparse(example.table, 3)
    assert np.diff(matrix.sparse_indptr).max() > 700
    check_sets(example, folds(1500, 3, 0), matrix, tuning=Tuning(shared_rows=shared_rows))
    assert n_shared(grown) > 0


def test_columns_that_nobody_stores_drawn(grown):
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
