"""How large a model is, by its trees' own account."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn.model_selection
import sklearn.model_selection as theirs
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees._random import FOLDS, keyed_uint64
from dtrees.coding.group_keys import group_keys
from dtrees.model_selection import GridSearchCV, HashKFold, cross_validate
from dtrees.model_selection.folds import FoldSplits, ModelSize, Splits, size_of


@pytest.mark.parametrize("depth", [1, None])
def test_the_size_of_a_forest_is_that_of_its_trees(depth):
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(5, max_depth=depth, random_state=0).fit(X, y)
    depths = [tree.get_depth() for tree in forest]
    leaves = [tree.get_n_leaves() for tree in forest]
    assert size_of(forest) == ModelSize(trees=5, depth=max(depths), n_leaves=sum(leaves))
    tree = DecisionTreeClassifier(max_depth=depth).fit(X, y)
    assert size_of(tree) == ModelSize(1, tree.get_depth(), tree.get_n_leaves())


N = 60
Y, GROUPS = np.arange(N) % 3, np.arange(N) % 7
SPLITTERS = {
    "leave-one-out": theirs.LeaveOneOut(),
    "folds": theirs.KFold(4, shuffle=True, random_state=0),
    "stratified": theirs.StratifiedKFold(5),
    "repeated": theirs.RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "groups": theirs.LeaveOneGroupOut(),
    "shuffled": theirs.ShuffleSplit(4, test_size=0.2, random_state=0),
    "time series": theirs.TimeSeriesSplit(4, gap=1),
}
SHORT = ("leave-one-out", "folds", "stratified", "groups")


@pytest.mark.parametrize("name", SPLITTERS)
def test_kept_splits_are_those_of_the_splitter(name):
    groups = GROUPS if name == "groups" else None
    expected = list(SPLITTERS[name].split(np.zeros(N), Y, groups))
    splits = Splits(iter(expected), N)
    assert len(splits) == len(expected)
    for found in (list(splits), splits[:], [splits[i] for i in range(len(splits))]):
        for own, other in zip(found, expected, strict=True):
            for side, same in zip(own, other, strict=True):
                np.testing.assert_array_equal(side, same, strict=True)
    others = splits._others.values()
    assert len(others) == (0 if name in SHORT else len(expected) / (1 + (name == "repeated")))
    assert [isinstance(split, np.ndarray) for split in others] == [name == "repeated"] * len(others)
    assert isinstance(splits.in_short(), FoldSplits) == (name in SHORT)


ODD = [
    ([0, 1], [2]),
    (np.array([0, 1]), [2]),
    (np.array([True, True, False]), np.array([False, False, True])),
    (np.array([1, 0]), np.array([2])),
    (np.array([0, 1]), np.array([-1])),
    (np.array([0, 1]), np.array([3])),
    (np.array([0, 1]), np.array([1])),
    (np.array([0, 1], dtype=np.int32), np.array([2], dtype=np.int32)),
    (np.array([0.0, 1.0]), np.array([2.0])),
    (np.array([[0, 1]]), np.array([[2]])),
    [np.array([0, 1]), np.array([2])],
    (np.array([0]), np.array([1]), np.array([2])),
    "no split",
    None,
]


@pytest.mark.parametrize("split", ODD, ids=str)
def test_what_is_no_such_split_stays_what_it_is(split):
    assert Splits([split], 3)[0] is split


@given(st.data(), st.integers(1, 6))
def test_any_sides_stay_what_they_are(data, n):
    """Also where rows repeat, and the lengths of both sides add up to the number of rows."""
    drawn, splits = st.lists(st.integers(0, n - 1), max_size=n), []
    for _ in range(data.draw(st.integers(1, 3))):
        train = sorted(set(data.draw(drawn)))
        others = st.sampled_from([*set(range(n)) - set(train)] or [0])
        n_test = data.draw(st.sampled_from([n - len(train), 1]))
        test = data.draw(st.lists(others, min_size=n_test, max_size=n_test))
        splits.append((np.array(train, dtype=np.intp), np.array(test, dtype=np.intp)))
    kept = Splits(splits, n)
    for number, split in enumerate(splits):
        for side in (0, 1):
            np.testing.assert_array_equal(kept[number][side], split[side])
            np.testing.assert_array_equal(kept.side(number, side), split[side])


SEEDS = st.integers(0, 2**31 - 2)


def rows(n):
    return np.zeros((n, 1))


@given(st.integers(2, 9), st.integers(0, 1000), SEEDS)
def test_every_row_is_held_out_once(k, n, seed):
    splits = HashKFold(k, random_state=seed).split(rows(200 + n))
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
    splitter = HashKFold(k, random_state=seed)
    np.testing.assert_array_equal(splitter.folds(rows(n)), splitter.folds(rows(2 * n))[:n])


def test_a_fold_is_a_function_of_seed_and_row():
    seed = int(np.random.RandomState(7).randint(np.iinfo(np.int32).max))
    draws = [int(keyed_uint64(seed, FOLDS, row, 1)[0]) for row in range(50)]
    expected = [((draw >> 32) * 6) >> 32 for draw in draws]
    assert HashKFold(6, random_state=7).folds(rows(50)).tolist() == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200), st.integers(2, 5), SEEDS)
def test_classes_are_dealt_to_the_row(y, k, seed):
    y = np.array([*y, *[0] * k])
    fold = HashKFold(k, stratify=True, random_state=seed).folds(rows(len(y)), y)
    for label in np.unique(y):
        sizes = np.bincount(fold[y == label], minlength=k)
        assert sizes.max() - sizes.min() <= 1
    sizes = np.bincount(fold, minlength=k)
    assert sizes.max() - sizes.min() <= 1


@given(st.lists(st.integers(0, 12), max_size=200), st.integers(2, 5), SEEDS)
def test_a_fold_of_groups_is_a_function_of_seed_and_label(groups, k, seed):
    groups = np.array([*groups, *range(200)])
    splitter = HashKFold(k, random_state=seed)
    fold = splitter.folds(rows(len(groups)), None, groups)
    np.testing.assert_array_equal(fold, splitter.folds(rows(200))[groups])


@given(st.lists(st.text(), unique=True), SEEDS, st.randoms())
def test_other_groups_move_none(more, seed, random):
    groups = [str(i) for i in range(60)]
    splitter = HashKFold(2, random_state=seed)
    fold = dict(zip(groups, splitter.folds(rows(60), None, groups).tolist(), strict=True))
    mixed = [*groups[::2], *more, *more]
    random.shuffle(mixed)
    found = splitter.folds(rows(len(mixed)), None, mixed).tolist()
    held_out = dict(zip(mixed, found, strict=True))
    assert [held_out[group] for group in mixed] == found
    for group in groups[::2]:
        assert held_out[group] == fold[group]


INTEGERS = np.random.default_rng(0).integers(-40, 40, 500)
NAMES = np.char.add("group ", INTEGERS.astype(str))


def series(values, kind=None):
    return dd.from_pandas(pd.Series(values, dtype=kind), npartitions=3)


@pytest.mark.parametrize(
    "groups",
    [
        INTEGERS.astype("float32"),
        INTEGERS.astype(object),
        da.from_array(INTEGERS, chunks=70),
        da.from_array(INTEGERS, chunks=70)[da.from_array(np.ones(500, bool), chunks=70)],
        da.concatenate([da.from_array(INTEGERS[:9]), da.from_array(INTEGERS[9:] / 1)]),
        series(INTEGERS, "Int32"),
        series(INTEGERS, "category"),
        dd.from_pandas(pd.DataFrame({"group": INTEGERS}), npartitions=3),
        dd.from_pandas(pd.Series(0, index=np.sort(INTEGERS)), npartitions=3).index,
    ],
    ids=lambda groups: type(groups).__module__ + "." + type(groups).__name__,
)
def test_integers_are_groups_however_they_are_stored(groups):
    expected = np.sort(INTEGERS) if isinstance(groups, dd.Index) else INTEGERS
    splitter = HashKFold(5, random_state=2)
    expected = splitter.folds(rows(500), None, expected)
    np.testing.assert_array_equal(splitter.folds(rows(500), None, groups), expected)


@pytest.mark.parametrize(
    "groups",
    [
        NAMES.astype(object),
        da.from_array(NAMES, chunks=70),
        series(NAMES, "string[pyarrow]"),
        series(NAMES, "category"),
    ],
    ids=lambda groups: type(groups).__module__ + "." + type(groups).__name__,
)
def test_strings_are_groups_however_they_are_stored(groups):
    splitter = HashKFold(5, random_state=2)
    expected = splitter.folds(rows(500), None, NAMES)
    np.testing.assert_array_equal(splitter.folds(rows(500), None, groups), expected)


@pytest.mark.parametrize("groups", [da.from_array(NAMES, chunks=70), series(NAMES, "str")])
def test_labels_in_collections_are_not_fetched(groups, monkeypatch):
    """What comes to this process, and to the splitter, are keys."""
    seen = []
    folds = HashKFold.folds

    def watched(self, X, y, groups):
        seen.append(groups)
        return folds(self, X, y, groups)

    X = np.random.default_rng(1).normal(size=(500, 3))
    y = (X[:, 0] > 0).astype(int)
    splitter = HashKFold(3, random_state=0)
    tree = DecisionTreeClassifier(random_state=0)
    expected = cross_validate(tree, X, y, cv=splitter, groups=NAMES)["test_score"]
    grids = GridSearchCV(tree, {"max_depth": [1, 9]}, cv=splitter)
    best = grids.fit(X, y, groups=NAMES).cv_results_["mean_test_score"]
    monkeypatch.setattr(HashKFold, "folds", watched)
    lazy = da.from_array(X, chunks=(90, 3))
    for table in (X, lazy):
        found = cross_validate(tree, table, y, cv=splitter, groups=groups)["test_score"]
        np.testing.assert_array_equal(found, expected)
        found = grids.fit(table, y, groups=groups).cv_results_["mean_test_score"]
        np.testing.assert_array_equal(found, best)
    for keys in seen:
        np.testing.assert_array_equal(keys, group_keys(NAMES))
        assert np.asarray(keys).dtype == np.uint64
    assert len(seen) == 4


@pytest.mark.parametrize("lazily", [False, True])
def test_labels_that_are_none(lazily):
    for bad, error in ((None, ValueError), (np.nan, ValueError), ((1, 2), TypeError)):
        groups = np.fromiter([*"abcdefgh", bad], object, 9)
        groups = da.from_array(groups, chunks=4) if lazily else groups
        with pytest.raises(error, match="groups holds"):
            HashKFold(2, random_state=0).split(rows(9), None, groups)


def test_few_groups_are_an_error():
    groups = np.arange(90) % 3
    outcomes = []
    for seed in range(40):
        splitter = HashKFold(3, random_state=seed)
        n_folds = len(np.unique(splitter.folds(rows(1000))[:3]))
        if n_folds == 3:
            assert len(np.unique(splitter.folds(rows(90), None, groups))) == 3
        else:
            with pytest.raises(ValueError, match=r"3 folds of 3 groups: one of them has no group"):
                splitter.split(rows(90), None, groups)
        outcomes.append(n_folds)
    assert set(outcomes) > {3}


def in_frames(values):
    return dd.from_pandas(pd.DataFrame({"x": np.ravel(values)}), npartitions=3)


def in_unknown_chunks(values):
    lazy = da.from_array(values, chunks=50)
    return lazy[da.from_array(np.ones(len(values), bool), chunks=50)]


@pytest.mark.one_of(10)
@pytest.mark.parametrize("other", [np.asarray, list, da.from_array, series, in_unknown_chunks])
@pytest.mark.parametrize("table", [np.asarray, list, da.from_array, in_frames, in_unknown_chunks])
@pytest.mark.parametrize("n_values", [150, 250])
def test_lengths_are_compared(table, other, n_values):
    X, y, values = table(rows(200)), other(np.arange(200) % 5), other(np.arange(n_values) % 5)
    message = f"X has 200 rows, {{}} has {n_values} values"
    for stratify in (False, True):
        with pytest.raises(ValueError, match=message.format("y")):
            HashKFold(3, stratify=stratify).split(X, values)
    with pytest.raises(ValueError, match=message.format("groups")):
        HashKFold(3).split(X, y, values)
    assert len(HashKFold(2, stratify=True).folds(X, y)) == 200
    assert len(HashKFold(2, random_state=0).folds(X, y, y)) == 200


def test_two_bytes_per_row_are_kept():
    splits = HashKFold(5, random_state=0).split(rows(1000))
    (fold,) = [value for value in vars(splits).values() if isinstance(value, np.ndarray)]
    assert fold.dtype == np.uint16
    assert fold.shape == (1000,)
    train, test = splits[-1]
    np.testing.assert_array_equal(test, np.flatnonzero(fold == 4))
    np.testing.assert_array_equal(train, np.flatnonzero(fold != 4))
    assert [len(test) for _, test in splits[1:3]] == [len(test) for _, test in splits][1:3]
    with pytest.raises(IndexError):
        splits[5]


@pytest.mark.parametrize("more", [{}, {"stratify": True}])
def test_scores_are_those_of_lists_of_rows(more):
    X, y = load_iris(return_X_y=True)
    splitter = HashKFold(4, random_state=3, **more)
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
    splitter = clone(HashKFold(4, random_state=3))
    assert splitter.get_n_splits(X, y) == 4
    scores = sklearn.model_selection.cross_val_score(DummyClassifier(), X, y, cv=splitter)
    assert scores.shape == (4,)


def test_folds_do_not_depend_on_chunks():
    X, _y = load_iris(return_X_y=True)
    splitter = HashKFold(3, random_state=1)
    expected = splitter.folds(X)
    for chunks in ((150, 4), (7, 4)):
        np.testing.assert_array_equal(splitter.folds(da.from_array(X, chunks=chunks)), expected)


def test_no_random_state_draws_other_folds():
    splitter = HashKFold(5)
    assert (splitter.folds(rows(500)) != splitter.folds(rows(500))).any()


@pytest.mark.parametrize(
    ("splitter", "y", "groups", "match"),
    [
        (HashKFold(1), None, None, r"'n_splits' parameter of HashKFold .* \[2, 65536\]. Got 1"),
        (HashKFold(2.5), None, None, "'n_splits' parameter of HashKFold must be an int"),
        (HashKFold(3, stratify=[0, 1]), None, None, "'stratify' parameter of HashKFold must be"),
        (HashKFold(3, random_state=-1), None, None, "'random_state' parameter of HashKFold must"),
        (HashKFold(7), None, None, "one of them has no row"),
        (HashKFold(3, stratify=True), None, None, "needs y"),
        (HashKFold(3, stratify=True), np.zeros((6, 2)), None, "one target of classes.* 2 columns"),
        (HashKFold(4, stratify=True), [0, 0, 0, 1, 1, 1], None, "the largest has 3"),
        (HashKFold(3), None, [0, 0, 1, 1, 1, 0], "3 folds of 2 groups: one of them has no group"),
        (HashKFold(2), None, np.zeros((6, 2)), r"one label per row: expected shape \(6,\), got"),
        (HashKFold(2, stratify=True), [0] * 6, [0, 0, 1, 1, 2, 2], "cannot be stratified"),
    ],
)
def test_folds_that_there_cannot_be(splitter, y, groups, match):
    with pytest.raises(ValueError, match=match):
        splitter.split(rows(6), y, groups)
