"""Rows of any table down many trees: leaves are those of a slow walk, and columns are read once.

What a label is in the codebook is found once per column and call, whatever the number of trees.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn import inspection

from dtrees import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
from dtrees.coding import CodeBook
from dtrees.coding.labels import Labels
from dtrees.core.model.tree import ABOVE, IN_SUBSET, LEAF, Forest, Tree
from dtrees.core.predict import packed_forest, raw
from dtrees.core.predict._packed_forest import (
    GrownTrees,
    PackedTrees,
    add_leaves,
    are_dense,
    set_limits,
)
from dtrees.core.predict._walk import walk_leaves
from dtrees.exceptions import UnseenCategoryError
from dtrees.parallel import threaded
from tests.core.predict.test_raw import SEEDS, mixed_frame, numbers, random_tree, slow_leaves

pandas = pytest.importorskip("pandas")


def random_forest(book: CodeBook, seed: int, n_trees: int = 4, n_leaves: int = 15) -> Forest:
    return Forest(tuple(random_tree(book, n_leaves, seed + i) for i in range(n_trees)))


def grown_on(n_rows: int, seed: int, unknown: str = "missing", **how):
    """A frame of every kind, its cells and its codebook, and a forest of random tests on it."""
    frame, rows = mixed_frame(n_rows, seed)
    book, _ = CodeBook.fit_encode(frame, handle_unknown=unknown)
    return frame, rows, book, random_forest(book, seed + 1, **how)


def slow(forest: Forest, book: CodeBook, rows: list[list]) -> np.ndarray:
    return np.column_stack([slow_leaves(tree, book, rows) for tree in forest.trees])


def check(forest: Forest, book: CodeBook, X, rows: list[list], run=None) -> None:
    """Leaves and values by the forest's walk, and tree by tree, are those of the slow walk."""
    run = {} if run is None else {"run": run}
    leaves = slow(forest, book, rows)
    total = np.zeros((len(rows), forest[0].n_values))
    for i, tree in enumerate(forest.trees):
        total += tree.value[leaves[:, i]]
    found = raw.forest_apply(forest, book, X, **run)
    assert found.dtype == np.intp
    np.testing.assert_array_equal(found, leaves)
    values = raw.forest_values(forest, book, X, **run)
    np.testing.assert_array_equal(values, total / len(forest))
    table = book.check(X)
    by_tree = list(raw.leaves_by_tree(forest.trees, book, table, threaded(1)))
    np.testing.assert_array_equal(np.column_stack(by_tree), leaves)
    alone = [raw.apply(tree, book, table, **run) for tree in forest.trees]
    np.testing.assert_array_equal(np.column_stack(alone), leaves)


class TestWalk:
    @pytest.mark.parametrize("handle_unknown", ["missing", "majority"])
    @given(seed=SEEDS, new=st.booleans())
    def test_every_kind(self, handle_unknown, seed, new):
        _, _, book, forest = grown_on(60, seed, handle_unknown)
        other, rows = mixed_frame(40, seed + 1, new)
        check(forest, book, other, rows)

    def test_many_rows_and_threads(self):
        _, _, book, forest = grown_on(500, 1, "majority", n_leaves=40)
        other, rows = mixed_frame(raw.FOREST_ROWS + 99, seed=3, new=True)
        check(forest, book, pandas.concat([other] * 3), rows * 3, threaded(2))

    @pytest.mark.parametrize("handle_unknown", ["missing", "majority"])
    def test_a_hybrid_column_that_holds_numbers_only(self, handle_unknown):
        _, _, book, forest = grown_on(300, 4, handle_unknown, n_leaves=40)
        other, rows = mixed_frame(200, seed=6)
        other["hybrid"] = [np.nan if i % 5 == 0 else i % 13 + 0.5 for i in range(200)]
        for row, value in zip(rows, other["hybrid"], strict=True):
            row[4] = value
        check(forest, book, other, rows)

    @pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "bool", "float16", ">f8"])
    def test_numbers_of_any_type(self, dtype):
        X = np.abs(numbers(200, 4, seed=3, missing=0)).astype(dtype)
        book, _ = CodeBook.fit_encode(X)
        forest = random_forest(book, seed=4)
        check(forest, book, X, X.astype(float).tolist())
        check(forest, book, X[:1], X[:1].astype(float).tolist())

    def test_a_frame_of_several_types(self):
        X = np.nan_to_num(numbers(200, 4, seed=5))
        frame = pandas.DataFrame(
            {
                "a": X[:, 0].astype(np.float32),
                "b": X[:, 1].astype(np.int64),
                "c": X[:, 2],
                "d": pandas.array(X[:, 3].astype(int), dtype="Int64"),
            }
        )
        book, _ = CodeBook.fit_encode(frame)
        check(random_forest(book, seed=6), book, frame, X.tolist())

    @pytest.mark.parametrize("limit", ["MOST_SLOTS", "MOST_THRESHOLDS", "MOST_CODES", "WORD_LIMIT"])
    def test_forests_that_are_too_large_walk_tree_by_tree(self, limit, monkeypatch):
        monkeypatch.setattr(packed_forest, limit, 2)
        _, _, book, forest = grown_on(100, 7, "majority", n_leaves=30)
        assert any(isinstance(part, Tree) for part in packed_forest.pack_forest(forest, book))
        other, rows = mixed_frame(80, seed=9, new=True)
        check(forest, book, other, rows)

    @pytest.mark.parametrize("made", [np.asarray, scipy.sparse.csc_array, pandas.DataFrame])
    def test_trees_of_numbers_that_are_too_large(self, made, monkeypatch):
        monkeypatch.setattr(packed_forest, "MOST_THRESHOLDS", 2)
        X = np.nan_to_num(numbers(raw.GATHER_ROWS + 99, 4, seed=10))
        book, _ = CodeBook.fit_encode(X[:200])
        forest = random_forest(book, seed=11, n_leaves=30)
        assert tuple(packed_forest.pack_forest(forest, book)) == forest.trees
        table = made(X)
        if made is pandas.DataFrame:
            table = table.astype({0: np.int64, 2: np.float32})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # columns have no names
            check(forest, book, table, X.tolist())

    def test_sparse_tables(self):
        X = numbers(300, 6, seed=12)
        X[np.random.default_rng(1).random(X.shape) < 0.6] = 0
        book, _ = CodeBook.fit_encode(X)
        check(random_forest(book, seed=13), book, scipy.sparse.csr_array(X), X.tolist())

    def test_trees_of_one_leaf(self):
        frame, rows, book, forest = grown_on(50, 1, n_leaves=1)
        check(forest, book, frame, rows)

    def test_another_codebook_packs_anew(self):
        _, _, book, forest = grown_on(80, 14, n_leaves=30)
        other, rows = mixed_frame(80, seed=16, new=True)
        check(forest, book, other, rows)
        check(forest, replace(book, handle_unknown="majority"), other, rows)

    def test_few_strings_are_read_as_many(self):
        text = ["red", None, "blue", "new", "7", "red"] * 30
        frame = pandas.DataFrame({"a": pandas.array(text, dtype="string"), "b": range(180)})
        book, _ = CodeBook.fit_encode(frame[frame["a"] != "new"], handle_unknown="majority")
        forest = random_forest(book, seed=17, n_leaves=20)
        whole = raw.forest_apply(forest, book, frame)
        for size in (1, 6, 64, 65):
            part = raw.forest_apply(forest, book, frame[:size])
            np.testing.assert_array_equal(part, whole[:size])


class TestBrokenForests:
    """Trees may come from a file: a clear error, never a crash or an endless walk."""

    @pytest.mark.parametrize(
        ("name", "wrong"),
        [
            ("feature", 100),
            ("feature", -7),
            ("test", 200),
            ("children_left", 0),
            ("children_right", 2**30),
            ("children_left", -5),
            ("subset_offset", -1),
            ("subset_offset", 10**12),
        ],
    )
    def test_numbers_out_of_range(self, name, wrong):
        frame, _, book, forest = grown_on(300, 20, n_leaves=40)
        tree = forest[1]
        array = getattr(tree, name).copy()
        array[np.flatnonzero(tree.test == IN_SUBSET)] = wrong
        broken = Forest((forest[0], replace(tree, **{name: array}), forest[2]))
        with pytest.raises(ValueError, match=r"broken|tests column"):
            raw.forest_values(broken, book, frame)


@pytest.fixture
def reads(monkeypatch) -> Counter:
    """How often the labels of each column are read."""
    counted: Counter = Counter()
    read_labels = CodeBook.read_labels

    def counting(self: CodeBook, column: Labels, name: str) -> tuple[np.ndarray, np.ndarray]:
        counted[column.column] += 1
        return read_labels(self, column, name)

    monkeypatch.setattr(CodeBook, "read_labels", counting)
    return counted


def table_of(n_rows: int, seed: int):
    frame, _ = mixed_frame(n_rows, seed)
    y = np.random.default_rng(seed).integers(0, 2, n_rows)
    return frame, y


ONCE = {1: 1, 3: 1, 4: 1}  # the columns of labels, and one read of each


class TestLabelsAreReadOnce:
    """Per column and call, whatever the number of trees."""

    @pytest.mark.parametrize(
        ("method", "n_rows"),
        [("predict", 1), ("predict_proba", 500), ("apply", 500), ("decision_path", 1)],
    )
    def test_of_forests(self, method, n_rows, reads):
        X, y = table_of(500, seed=0)
        forest = RandomForestClassifier(12, random_state=0).fit(X, y)
        rows = X[-n_rows:]
        reads.clear()
        getattr(forest, method)(rows)
        assert reads == ONCE

    def test_of_boosted_models_of_classes(self, reads):
        X, _ = table_of(300, seed=1)
        model = GradientBoostingClassifier(max_iter=9, min_samples_leaf=5).fit(
            X, np.arange(300) % 4
        )
        reads.clear()
        model.predict_proba(X)
        assert reads == ONCE

    def test_of_forests_that_walk_tree_by_tree(self, reads, monkeypatch):
        monkeypatch.setattr(packed_forest, "MOST_SLOTS", 2)
        X, y = table_of(300, seed=2)
        forest = RandomForestClassifier(6, random_state=0).fit(X, y)
        reads.clear()
        forest.predict(X)
        assert reads == ONCE

    def test_of_many_blocks_of_rows(self, reads):
        X, y = table_of(300, seed=3)
        forest = RandomForestClassifier(6, random_state=0, n_jobs=2).fit(X, y)
        tall = pandas.concat([X] * 40)
        assert len(tall) > 2 * raw.FOREST_ROWS
        reads.clear()
        forest.predict(tall)
        assert reads == ONCE

    def test_of_each_block_of_a_collection(self, reads):
        frame = pytest.importorskip("dask.dataframe")
        X, y = table_of(300, seed=4)
        forest = RandomForestClassifier(6, random_state=0).fit(X, y)
        expected = forest.predict(X)
        blocks = forest.predict(frame.from_pandas(X, npartitions=3))
        reads.clear()
        np.testing.assert_array_equal(blocks.compute(scheduler="sync"), expected)
        assert reads == dict.fromkeys(ONCE, 3)

    def test_when_scikit_learn_inspects(self, reads, monkeypatch):
        X, y = table_of(60, seed=6)
        X = X.drop(columns="hybrid").dropna().reset_index(drop=True)
        forest = RandomForestClassifier(12, random_state=0).fit(X, y[: len(X)])
        n_predictions, check = 0, CodeBook.check

        def counting(self: CodeBook, *table, **options):
            nonlocal n_predictions
            n_predictions += 1
            return check(self, *table, **options)

        monkeypatch.setattr(CodeBook, "check", counting)
        reads.clear()
        inspection.permutation_importance(forest, X, y[: len(X)], n_repeats=2, random_state=0)
        asked = {"categorical_features": ["town", "kind"], "grid_resolution": 100}
        inspection.partial_dependence(forest, X, ["town"], **asked)
        assert n_predictions > 2 * X.shape[1] + X["town"].nunique()
        assert reads == dict.fromkeys([1, 3], n_predictions)

    def test_of_trees_that_are_kept(self, reads):
        X, y = table_of(300, seed=5)
        asked = {"random_state": 0, "warm_start": True, "oob_score": True}
        with pytest.warns(UserWarning, match=r"out-of-bag|votes|OOB"):
            forest = RandomForestClassifier(2, **asked).fit(X, y)
        forest.n_estimators = 3
        reads.clear()
        with pytest.warns(UserWarning, match=r"out-of-bag|votes|OOB"):
            forest.fit(X, y)
        few = reads.copy()
        forest.set_params(n_estimators=30).fit(X, y)
        reads.clear()
        forest.set_params(n_estimators=31).fit(X, y)
        assert reads == few

    def test_new_categories_are_an_error_of_the_column(self):
        X = pandas.DataFrame({"a": list("xyxy") * 9, "b": list("uuvv") * 9})
        book, _ = CodeBook.fit_encode(X, handle_unknown="error")
        forest = random_forest(book, seed=1, n_trees=3, n_leaves=4)
        with pytest.raises(UnseenCategoryError, match="'new' in column 'b'"):
            raw.forest_values(forest, book, X.assign(b=["new", *X["b"][1:]]))


@pytest.mark.parametrize("unseen", ["missing", "majority"])
@given(seed=SEEDS, n_rows=st.integers(1, 30), n_trees=st.integers(1, 30))
def test_few_rows_and_many_trees(unseen, seed, n_rows, n_trees):
    """More trees than are in flight at a time, or fewer, down which one row walks."""
    _, _, book, forest = grown_on(60, seed, unseen, n_trees=n_trees, n_leaves=1 + seed % 20)
    other, rows = mixed_frame(n_rows, seed + 1, new=True)
    check(forest, book, other, rows)


@pytest.mark.parametrize(("limit", "most"), [("MOST_SLOTS", 5), ("MOST_THRESHOLDS", 4)])
def test_forests_in_parts(limit, most, monkeypatch):
    _, _, book, forest = grown_on(200, 1, n_trees=9, n_leaves=4)
    assert len(packed_forest.pack_forest(forest, book)) == 1
    monkeypatch.setattr(packed_forest, limit, most)
    again = Forest(forest.trees)
    parts = packed_forest.pack_forest(again, book)
    assert len(parts) > 1
    assert sum(part.n_trees for part in parts) == len(forest)
    other, rows = mixed_frame(90, seed=3, new=True)
    check(again, book, other, rows)


def test_threads_pack_the_same():
    frame, rows, book, forest = grown_on(300, 4, n_trees=20, n_leaves=40)
    check(forest, book, frame, rows, threaded(2))


@given(seed=SEEDS)
def test_counts(seed):
    frame, _ = mixed_frame(60, seed)
    book, _ = CodeBook.fit_encode(frame)
    trees = [random_tree(book, n_leaves, seed) for n_leaves in (1, 7, 30)]
    grown = GrownTrees(trees, book.n_columns)
    inner = [tree.test != LEAF for tree in trees]
    np.testing.assert_array_equal(np.diff(grown.start), [of.sum() for of in inner])
    np.testing.assert_array_equal(np.diff(grown.first_leaf), [(~of).sum() for of in inner])
    feature = np.concatenate([tree.feature for tree in trees])
    test = np.concatenate([tree.test for tree in trees])
    subset, compared = feature[test == IN_SUBSET], feature[(test != IN_SUBSET) & (test != LEAF)]
    n = book.n_columns
    np.testing.assert_array_equal(grown.n_subsets, np.bincount(subset, minlength=n))
    np.testing.assert_array_equal(grown.n_compared, np.bincount(compared, minlength=n))
    assert grown.with_above == (test == ABOVE).any()


@pytest.mark.parametrize("name", ["threshold", "test", "statistics", "missing_go_to_left"])
def test_arrays_of_other_lengths(name):
    tree = stump(0.5)
    with pytest.raises(ValueError, match="differ in length"):
        GrownTrees([replace(tree, **{name: getattr(tree, name)[:2].copy()})], 1)


def test_trees_of_other_classes():
    more = replace(stump(0.5), statistics=np.ones((3, 4), dtype=np.int64))
    with pytest.raises(ValueError, match="differ in length"):
        GrownTrees([stump(0.5), more], 1)


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, 5e-324, -5e-324, 1e308]


NUMBERS = st.floats(allow_nan=False) | st.sampled_from(SPECIAL)


def stump(threshold: float, column: int = 0, n_columns: int = 1) -> Tree:
    """A test and two leaves."""
    return Tree(
        feature=np.array([column, -2, -2], dtype=np.int32),
        children_left=np.array([1, -1, -1], dtype=np.int32),
        children_right=np.array([2, -1, -1], dtype=np.int32),
        test=np.array([1, 0, 0], dtype=np.uint8),
        code=np.zeros(3, dtype=np.uint32),
        threshold=np.array([threshold, np.nan, np.nan]),
        missing_go_to_left=np.zeros(3, dtype=np.uint8),
        subset_offset=np.full(3, -1, dtype=np.int64),
        subset_words=np.empty(0, dtype=np.uint64),
        n_node_samples=np.array([2, 1, 1]),
        statistics=np.array([[1, 1], [1, 0], [0, 1]]),
        impurity=np.zeros(3),
        gain=np.zeros(3),
        n_columns=n_columns,
        criterion="gini",
    )


def ranked(thresholds: list[float]) -> tuple[np.ndarray, PackedTrees]:
    """The distinct thresholds of stumps of one column, and the stumps as a forest."""
    one = np.array([len(thresholds)])
    book = SimpleNamespace(n_columns=1, n_codes=one, n_ordered=one)
    (packed,) = packed_forest.pack_trees(tuple(map(stump, thresholds)), book)
    return packed.thresholds[:-1], packed.trees


def check_ranks(thresholds: list[float]) -> None:
    distinct, forest = ranked(thresholds)
    np.testing.assert_array_equal(distinct, np.unique(thresholds))
    codes = np.unique(np.linspace(0, len(distinct), 30).astype(np.uint16))[:, None]
    leaves = np.empty((len(thresholds), len(codes)), dtype=np.int32)
    walk_leaves(forest, codes, leaves)
    passes = np.searchsorted(distinct, thresholds)[:, None] >= codes.T
    np.testing.assert_array_equal(leaves, np.where(passes, 1, 2))


@given(st.lists(NUMBERS, min_size=1, max_size=50))
def test_few_thresholds(thresholds):
    check_ranks(thresholds)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8])
def test_many_thresholds(kind):
    rng = np.random.default_rng(0)
    thresholds = (rng.normal(size=9_000) * 50).astype(kind).astype(float)
    thresholds[:3] = np.inf, -0.0, 0.0
    check_ranks(thresholds.tolist())
    bits = rng.integers(0, 2**64, 5_000, dtype=np.uint64).view(np.float64)
    check_ranks(bits[~np.isnan(bits)].tolist())


def test_what_is_no_number_is_above_all():
    distinct, _ = ranked([np.nan, 1.0, -np.nan, 0.0])
    np.testing.assert_array_equal(distinct, [0.0, 1.0, np.nan, np.nan])


def test_limits_that_do_not_fit():
    _, forest = ranked([1.0, 2.0])
    with pytest.raises(ValueError, match="differ in length"):
        set_limits(forest, np.arange(2), np.arange(2), np.arange(3))


def trees_with(book: CodeBook, seed: int, n_classes: int, share: float, largest: int) -> Forest:
    """Random trees whose statistics are zero but for a share of them."""
    rng = np.random.default_rng(seed)
    trees = []
    for i in range(5):
        tree = random_tree(book, 12, seed + i)
        shape = (tree.node_count, n_classes)
        counts = rng.integers(1, largest, shape) * (rng.random(shape) < share)
        trees.append(replace(tree, statistics=counts))
    return Forest(tuple(trees))


def sums(forest: Forest, leaves: np.ndarray) -> np.ndarray:
    total = np.zeros((len(leaves), forest[0].n_values))
    for tree, of_tree in zip(forest.trees, leaves.T, strict=True):
        total += tree.value[of_tree]
    return total / len(forest)


@pytest.mark.filterwarnings("ignore:invalid value")
@given(
    seed=SEEDS,
    n_classes=st.integers(1, 30),
    share=st.sampled_from([0.02, 0.1, 0.7, 1.0]),
    largest=st.sampled_from([2, 50, 2**40]),
)
def test_shares_of_classes(seed, n_classes, share, largest):
    """A leaf without weight has no shares, and so have the rows that reach it."""
    X = numbers(80, 3, seed=seed)
    book, _ = CodeBook.fit_encode(X)
    forest = trees_with(book, seed, n_classes, share, largest)
    leaves = raw.forest_apply(forest, book, X)
    for n in (1, 3, len(X)):
        found = raw.forest_values(forest, book, X[:n])
        np.testing.assert_array_equal(found, sums(forest, leaves[:n]))


@given(seed=SEEDS, offset=st.sampled_from([0.0, -3.5, 1e6]))
def test_values_of_numbers(seed, offset):
    X = numbers(80, 3, seed=seed)
    book, _ = CodeBook.fit_encode(X)
    rng = np.random.default_rng(seed)
    trees = [
        replace(
            random_tree(book, 12, seed + i),
            statistics=rng.integers(1, 2**40, (23, 2)),
            criterion="squared_error",
            unit=2.0**-20,
            weight_unit=0.1,
            offset=offset,
        )
        for i in range(4)
    ]
    forest = Forest(tuple(trees))
    leaves = raw.forest_apply(forest, book, X)
    for n in (1, len(X)):
        found = raw.forest_values(forest, book, X[:n])
        np.testing.assert_array_equal(found, sums(forest, leaves[:n]))


@pytest.mark.parametrize(("share", "is_few"), [(0.05, True), (0.9, False)])
def test_zeros_are_left_out_where_they_are_many(share, is_few):
    X = numbers(80, 3, seed=0)
    book, _ = CodeBook.fit_encode(X)
    forest = trees_with(book, 0, 20, share, 50)
    grown = packed_forest.GrownTrees(forest.trees, book.n_columns)
    assert are_dense(grown) != is_few


N_ROWS = 900


def trees_of(kind):
    """Trees of 1, 2, 3 or 30 values, and leaves of some rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 3))
    if kind == 1:
        y = 1e3 * X[:, 0] + rng.normal(size=N_ROWS)
        model = RandomForestRegressor(5, random_state=0, min_samples_leaf=3)
    else:
        y = rng.integers(0, kind, N_ROWS)
        model = RandomForestClassifier(5, random_state=0, min_samples_leaf=4 if kind < 30 else 1)
    model.fit(X, y, rng.random(N_ROWS))
    return model.forest_.trees, np.ascontiguousarray(model.apply(X).T, dtype=np.int32)


def added(trees, leaves):
    total = np.zeros((leaves.shape[1], trees[0].n_values))
    for tree, own in zip(trees, leaves, strict=True):
        total += tree.value[own]
    return total


@pytest.mark.one_of(6)
@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("n_rows", [0, 5, N_ROWS])
@pytest.mark.parametrize("kind", [1, 2, 3, 30])
def test_sums_of_values(kind, n_rows, is_wide):
    trees, leaves = trees_of(kind)
    if is_wide:
        trees = [replace(tree, statistics=tree.statistics.astype(np.int64)) for tree in trees]
    leaves = leaves[:, :n_rows].copy()
    total = np.zeros((n_rows, trees[0].n_values))
    for begin, end in ((n_rows // 3, n_rows), (0, n_rows // 3)):
        add_leaves(trees, leaves, total, begin, end)
    assert total.tobytes() == added(trees, leaves).tobytes()


@pytest.mark.filterwarnings("ignore:invalid value")
def test_leaves_of_no_weight_are_nan():
    """A file may say so."""
    trees, leaves = trees_of(30)
    statistics = trees[1].statistics.copy()
    statistics[leaves[1, 0]] = 0
    trees = [trees[0], replace(trees[1], statistics=statistics)]
    total = np.zeros((N_ROWS, 30))
    add_leaves(trees, leaves[:2], total, 0, N_ROWS)
    assert np.isnan(total[0]).all()
    np.testing.assert_array_equal(total, added(trees, leaves[:2]))


def test_sums_of_trees_of_one_leaf():
    X, y = np.zeros((20, 2)), np.arange(20.0)
    trees = RandomForestRegressor(2, random_state=0).fit(X, y).forest_.trees
    total, leaves = np.zeros((20, 1)), np.zeros((2, 20), dtype=np.int32)
    add_leaves(trees, leaves, total, 0, 20)
    np.testing.assert_array_equal(total, added(trees, leaves))


def test_leaves_that_do_not_fit():
    trees, leaves = trees_of(3)
    total = np.zeros((N_ROWS, 3))
    for wrong in (-1, trees[2].node_count):
        broken = leaves.copy()
        broken[2, 17] = wrong
        with pytest.raises(ValueError, match="no node of tree 2"):
            add_leaves(trees, broken, total, 0, 20)
    with pytest.raises(ValueError, match="one leaf for each row and tree"):
        add_leaves(trees[:3], leaves, total, 0, 1)
    for shape in ((N_ROWS, 2), (N_ROWS - 1, 3)):
        with pytest.raises(ValueError, match="do not fit the trees"):
            add_leaves(trees, leaves, np.zeros(shape), 0, 1)
    for begin, end in ((-1, 3), (3, 2), (0, N_ROWS + 1)):
        with pytest.raises(ValueError, match="There are no rows"):
            add_leaves(trees, leaves, total, begin, end)
