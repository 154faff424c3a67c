"""Folds that are drawn by row id."""

import dask.array as da
import numpy as np
import pytest
import sklearn.model_selection
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees._random import FOLDS, keyed_uint64
from dtrees.model_selection import GridSearchCV, KeyedKFold, cross_validate
from dtrees.model_selection.stand_in import FoldSplits

SEEDS = st.integers(0, 2**31 - 2)


def rows(n):
    return np.zeros((n, 1))


@given(st.integers(2, 9), st.integers(0, 1000), SEEDS)
def test_every_row_is_held_out_once(k, n, seed):
    splits = KeyedKFold(k, random_state=seed).split(rows(200 + n))
    assert len(splits) == k
    held_out = np.concatenate([test for _, test in splits])
    assert sorted(held_out) == list(range(200 + n))
    for train, test in splits:
        assert len(test) > 0
        assert sorted([*train, *test]) == list(range(200 + n))
        assert (np.diff(test) > 0).all()
        assert (np.diff(train) > 0).all()


@given(st.integers(2, 9), SEEDS, st.integers(300, 500))
def test_folds_stay_when_rows_are_added(k, seed, n):
    splitter = KeyedKFold(k, random_state=seed)
    np.testing.assert_array_equal(splitter.folds(rows(n)), splitter.folds(rows(2 * n))[:n])


def test_a_fold_is_a_function_of_seed_and_row():
    seed = int(np.random.RandomState(7).randint(np.iinfo(np.int32).max))
    draws = [int(keyed_uint64(seed, FOLDS, row, 1)[0]) for row in range(50)]
    expected = [((draw >> 32) * 6) >> 32 for draw in draws]
    assert KeyedKFold(6, random_state=7).folds(rows(50)).tolist() == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200), st.integers(2, 5), SEEDS)
def test_classes_are_dealt_to_the_row(y, k, seed):
    y = np.array([*y, *[0] * k])
    fold = KeyedKFold(k, stratify=True, random_state=seed).folds(rows(len(y)), y)
    for label in np.unique(y):
        sizes = np.bincount(fold[y == label], minlength=k)
        assert sizes.max() - sizes.min() <= 1
    sizes = np.bincount(fold, minlength=k)
    assert sizes.max() - sizes.min() <= 1


def test_labels_of_any_kind_are_dealt():
    y = np.array(["b", "a", "c", "a"] * 10, dtype=object)
    numbers = np.array([1, 0, 2, 0] * 10)
    splitter = KeyedKFold(4, stratify=True, random_state=0)
    np.testing.assert_array_equal(splitter.folds(rows(40), y), splitter.folds(rows(40), numbers))


@given(st.lists(st.integers(0, 12), min_size=1, max_size=200), st.integers(2, 5), SEEDS)
def test_groups_stay_together(groups, k, seed):
    groups = np.array([*groups, *range(k)])
    fold = KeyedKFold(k, random_state=seed).folds(rows(len(groups)), None, groups)
    of_group = {label: set(fold[groups == label].tolist()) for label in np.unique(groups)}
    assert all(len(folds) == 1 for folds in of_group.values())
    sizes = np.bincount([folds.pop() for folds in of_group.values()], minlength=k)
    assert sizes.max() - sizes.min() <= 1


def test_two_bytes_per_row_are_kept():
    splits = KeyedKFold(5, random_state=0).split(rows(1000))
    (fold,) = [value for value in vars(splits).values() if isinstance(value, np.ndarray)]
    assert fold.dtype == np.uint16
    assert fold.shape == (1000,)
    train, test = splits[-1]
    np.testing.assert_array_equal(test, np.flatnonzero(fold == 4))
    np.testing.assert_array_equal(train, np.flatnonzero(fold != 4))
    assert [len(test) for _, test in splits[1:3]] == [len(test) for _, test in splits][1:3]
    with pytest.raises(IndexError):
        splits[5]


def test_shared_growth_holds_no_lists(monkeypatch):
    """The splits that scikit-learn's loop gets are those of the splitter, one at a time."""
    seen = []
    split = FoldSplits.split

    def watched(self, *given, **named):
        seen.append(self)
        return split(self, *given, **named)

    monkeypatch.setattr(FoldSplits, "split", watched)
    X, y = load_iris(return_X_y=True)
    cross_validate(RandomForestClassifier(2), X, y, cv=KeyedKFold(3, random_state=0))
    assert len(seen) == 1


@pytest.mark.parametrize("more", [{}, {"stratify": True}])
def test_scores_are_those_of_lists_of_rows(more):
    X, y = load_iris(return_X_y=True)
    splitter = KeyedKFold(4, random_state=3, **more)
    lists = [(train, test) for train, test in splitter.split(X, y)]
    tree = DecisionTreeClassifier(random_state=0)
    for scoring in (None, "roc_auc_ovr"):
        found = cross_validate(tree, X, y, cv=splitter, scoring=scoring)["test_score"]
        expected = cross_validate(tree, X, y, cv=lists, scoring=scoring)["test_score"]
        np.testing.assert_array_equal(found, expected)
    grids = [
        GridSearchCV(tree, {"max_depth": [1, 3]}, cv=cv).fit(X, y).cv_results_["mean_test_score"]
        for cv in (splitter, lists)
    ]
    np.testing.assert_array_equal(*grids)


def test_scikit_learn_takes_it():
    X, y = load_iris(return_X_y=True)
    splitter = clone(KeyedKFold(4, random_state=3))
    assert splitter.get_n_splits(X, y) == 4
    scores = sklearn.model_selection.cross_val_score(DummyClassifier(), X, y, cv=splitter)
    assert scores.shape == (4,)


def test_folds_do_not_depend_on_chunks():
    X, _y = load_iris(return_X_y=True)
    splitter = KeyedKFold(3, random_state=1)
    expected = splitter.folds(X)
    for chunks in ((150, 4), (7, 4)):
        np.testing.assert_array_equal(splitter.folds(da.from_array(X, chunks=chunks)), expected)


def test_no_random_state_draws_other_folds():
    splitter = KeyedKFold(5)
    assert (splitter.folds(rows(500)) != splitter.folds(rows(500))).any()


@pytest.mark.parametrize(
    ("splitter", "y", "groups", "match"),
    [
        (KeyedKFold(1), None, None, "n_splits must be an integer from 2 to 65536: got n_splits=1"),
        (KeyedKFold(2.5), None, None, "n_splits must be an integer"),
        (KeyedKFold(7), None, None, "one of them has no row"),
        (KeyedKFold(3, stratify=True), None, None, "needs y"),
        (KeyedKFold(4, stratify=True), [0, 0, 0, 1, 1, 1], None, "the largest has 3"),
        (KeyedKFold(3), None, [0, 0, 1, 1, 1, 0], "number of groups: 2"),
        (KeyedKFold(2, stratify=True), [0] * 6, [0, 0, 1, 1, 2, 2], "cannot be stratified"),
    ],
)
def test_folds_that_there_cannot_be(splitter, y, groups, match):
    with pytest.raises(ValueError, match=match):
        splitter.split(rows(6), y, groups)
