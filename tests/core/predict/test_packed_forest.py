"""Rows of any table down many trees: leaves are those of a slow walk, and columns are read once.

What a label is in the codebook is found once per column and call, whatever the number of trees.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn import inspection

from dtrees import (
    BaggingClassifier,
    DecisionTreeClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.coding import CodeBook
from dtrees.coding.labels import Labels
from dtrees.core.model.tree import ABOVE, AT_MOST, IN_SUBSET, LEAF, Forest
from dtrees.core.predict import packed_forest, raw
from dtrees.core.predict._packed_forest import code_sparse
from dtrees.exceptions import UnseenCategoryError
from dtrees.parallel import threaded
from tests.core.predict.test_raw import SEEDS, mixed_frame, numbers, random_tree, slow_leaves

pandas = pytest.importorskip("pandas")


def random_forest(book: CodeBook, seed: int, n_trees: int = 4, n_leaves: int = 15) -> Forest:
    return Forest(tuple(random_tree(book, n_leaves, seed + i) for i in range(n_trees)))


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
        frame, _ = mixed_frame(60, seed)
        book, _ = CodeBook.fit_encode(frame, handle_unknown=handle_unknown)
        forest = random_forest(book, seed)
        other, rows = mixed_frame(40, seed + 1, new)
        assert packed_forest.pack_forest(forest, book) is not None
        check(forest, book, other, rows)

    def test_all_tests_occur(self):
        frame, _ = mixed_frame(60, seed=0)
        book, _ = CodeBook.fit_encode(frame)
        tests = np.concatenate([tree.test for tree in random_forest(book, seed=0).trees])
        assert set(tests) == {LEAF, AT_MOST, ABOVE, IN_SUBSET}

    def test_many_rows_and_threads(self):
        frame, _ = mixed_frame(500, seed=1)
        book, _ = CodeBook.fit_encode(frame, handle_unknown="majority")
        forest = random_forest(book, seed=2, n_leaves=40)
        other, rows = mixed_frame(raw.FOREST_ROWS + 99, seed=3, new=True)
        check(forest, book, pandas.concat([other] * 3), rows * 3, threaded(2))

    @pytest.mark.parametrize("handle_unknown", ["missing", "majority"])
    def test_a_hybrid_column_that_holds_numbers_only(self, handle_unknown):
        frame, _ = mixed_frame(300, seed=4)
        book, _ = CodeBook.fit_encode(frame, handle_unknown=handle_unknown)
        forest = random_forest(book, seed=5, n_leaves=40)
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
        assert packed_forest.pack_forest(forest, book) is not None
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
        frame, _ = mixed_frame(100, seed=7)
        book, _ = CodeBook.fit_encode(frame, handle_unknown="majority")
        forest = random_forest(book, seed=8, n_leaves=30)
        assert packed_forest.pack_forest(forest, book) is None
        other, rows = mixed_frame(80, seed=9, new=True)
        check(forest, book, other, rows)

    @pytest.mark.parametrize("made", [np.asarray, scipy.sparse.csc_array, pandas.DataFrame])
    def test_trees_of_numbers_that_are_too_large(self, made, monkeypatch):
        monkeypatch.setattr(packed_forest, "MOST_THRESHOLDS", 2)
        X = np.nan_to_num(numbers(raw.GATHER_ROWS + 99, 4, seed=10))
        book, _ = CodeBook.fit_encode(X[:200])
        forest = random_forest(book, seed=11, n_leaves=30)
        assert packed_forest.pack_forest(forest, book) is None
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
        frame, rows = mixed_frame(50, seed=1)
        book, _ = CodeBook.fit_encode(frame)
        check(random_forest(book, seed=0, n_leaves=1), book, frame, rows)

    def test_another_codebook_packs_anew(self):
        frame, _ = mixed_frame(80, seed=14)
        book, _ = CodeBook.fit_encode(frame, handle_unknown="missing")
        forest = random_forest(book, seed=15, n_leaves=30)
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


class TestFewRows:
    """One call codes few rows of numbers and walks: their values are those of many rows."""

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("most_slots", [99, 5])
    @pytest.mark.parametrize("n_rows", [1, 4, 5, 64, 65])
    @pytest.mark.parametrize("form", ["C", "F", "reversed", "other order of bytes", "float32"])
    def test_are_those_of_many(self, form, n_rows, most_slots, monkeypatch):
        monkeypatch.setattr(packed_forest, "MOST_SLOTS", most_slots)
        X = numbers(300, 6, seed=23).astype(np.float32).astype(np.float64)
        assert np.isnan(X[:n_rows]).any()
        book, _ = CodeBook.fit_encode(X)
        forest = random_forest(book, seed=24, n_trees=20, n_leaves=5)
        assert (len(packed_forest.pack_forest(forest, book)) > 1) == (most_slots == 5)
        rows = {
            "C": X[:n_rows],
            "F": np.asfortranarray(X)[:n_rows],
            "reversed": X[::-1, ::-1].copy()[::-1, ::-1][:n_rows],
            "other order of bytes": X[:n_rows].astype(">f8"),
            "float32": X[:n_rows].astype(np.float32),
        }[form]
        found = raw.forest_values(forest, book, rows)
        np.testing.assert_array_equal(found, raw.forest_values(forest, book, X)[:n_rows])

    def test_are_refused_where_they_do_not_fit(self):
        X = numbers(300, 4, seed=25)
        book, _ = CodeBook.fit_encode(X)
        (part,) = packed_forest.pack_forest(random_forest(book, seed=26), book)
        rest = part.number_slots, part.thresholds, part.first
        total = np.zeros((1, 2))
        for wrong in (X[:2], X[:1, :3]):
            with pytest.raises(ValueError, match="do not fit"):
                part.few.add_values(wrong, total, 0)
        with pytest.raises(ValueError, match="do not fit"):
            part.few.add_values(X[:1], total[:, :0], 0)
        for wrong in (part.number_columns[:-1], part.number_columns + 1):
            with pytest.raises(ValueError, match="do not fit"):
                packed_forest.FewRows(part.nodes, part.values, 4, wrong, *rest)


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
        frame, _ = mixed_frame(300, seed=20)
        book, _ = CodeBook.fit_encode(frame)
        forest = random_forest(book, seed=21, n_leaves=40)
        tree = forest[1]
        array = getattr(tree, name).copy()
        array[np.flatnonzero(tree.test == IN_SUBSET)] = wrong
        broken = Forest((forest[0], replace(tree, **{name: array}), forest[2]))
        with pytest.raises(ValueError, match=r"broken|tests column"):
            raw.forest_values(broken, book, frame)

    def test_lengths(self):
        frame, _ = mixed_frame(300, seed=20)
        book, _ = CodeBook.fit_encode(frame)
        forest = random_forest(book, seed=21)
        short = replace(forest[0], threshold=forest[0].threshold[:-1].copy())
        with pytest.raises(ValueError, match="differ in length"):
            raw.forest_values(Forest((short, forest[1])), book, frame)


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

    @pytest.mark.parametrize("n_rows", [1, 500])
    @pytest.mark.parametrize("method", ["predict", "predict_proba", "apply", "decision_path"])
    def test_of_forests(self, method, n_rows, reads):
        X, y = table_of(500, seed=0)
        forest = RandomForestClassifier(12, random_state=0).fit(X, y)
        rows = X[-n_rows:]
        reads.clear()
        getattr(forest, method)(rows)
        assert reads == ONCE

    def test_of_bags_and_trees(self, reads):
        X, y = table_of(300, seed=1)
        for model in (BaggingClassifier(n_estimators=6, random_state=0), DecisionTreeClassifier()):
            model.fit(X, y)
            reads.clear()
            model.predict(X)
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

    def test_when_scikit_learn_inspects(self, reads, monkeypatch):
        X, y = table_of(60, seed=6)
        X = X.drop(columns="hybrid").dropna().reset_index(drop=True)
        forest = RandomForestClassifier(12, random_state=0).fit(X, y[: len(X)])
        calls = Counter()
        check = CodeBook.check

        def counting(self: CodeBook, *table, **options):
            calls["predictions"] += 1
            return check(self, *table, **options)

        monkeypatch.setattr(CodeBook, "check", counting)
        reads.clear()
        inspection.permutation_importance(forest, X, y[: len(X)], n_repeats=2, random_state=0)
        asked = {"categorical_features": ["town", "kind"], "grid_resolution": 100}
        inspection.partial_dependence(forest, X, ["town"], **asked)
        assert calls["predictions"] > 2 * X.shape[1] + X["town"].nunique()
        assert reads == dict.fromkeys([1, 3], calls["predictions"])

    def test_new_categories_are_an_error_of_the_column(self):
        X = pandas.DataFrame({"a": list("xyxy") * 9, "b": list("uuvv") * 9})
        book, _ = CodeBook.fit_encode(X, handle_unknown="error")
        forest = random_forest(book, seed=1, n_trees=3, n_leaves=4)
        with pytest.raises(UnseenCategoryError, match="'new' in column 'b'"):
            raw.forest_values(forest, book, X.assign(b=["new", *X["b"][1:]]))


def sparse_numbers(n_rows: int, n_columns: int, seed: int, share: float) -> np.ndarray:
    """Numbers of both signs, some missing, most of them zero."""
    X = numbers(n_rows, n_columns, seed)
    X[np.random.default_rng(seed).random(X.shape) >= share] = 0
    return X


@given(
    seed=SEEDS,
    share=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    dtype=st.sampled_from([np.float32, np.float64]),
    made=st.sampled_from([scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array]),
)
def test_rows_are_those_of_dense_tables(seed, share, dtype, made):
    X = sparse_numbers(70, 9, seed, 0.5).astype(dtype)
    book, _ = CodeBook.fit_encode(X)
    forest = random_forest(book, seed, n_trees=15)
    other = sparse_numbers(40, 9, seed + 1, share).astype(dtype)
    check(forest, book, made(other), other.astype(float).tolist())
    np.testing.assert_array_equal(
        raw.forest_values(forest, book, made(other)), raw.forest_values(forest, book, other)
    )


def test_zeros_that_are_stored():
    X = sparse_numbers(200, 5, 1, 0.5)
    book, _ = CodeBook.fit_encode(X)
    table = scipy.sparse.csr_array(np.where(X == 0, 7.0, X))
    table.data[table.data == 7.0] = 0.0
    check(random_forest(book, seed=2), book, table, X.tolist())


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "bool"])
def test_other_types(dtype):
    X = np.abs(np.nan_to_num(sparse_numbers(200, 5, 3, 0.3))).astype(dtype)
    book, _ = CodeBook.fit_encode(X)
    table = scipy.sparse.csr_array(X)
    check(random_forest(book, seed=4), book, table, X.astype(float).tolist())


def test_many_rows_threads_and_parts(monkeypatch):
    X = sparse_numbers(raw.FOREST_ROWS + 300, 12, 5, 0.2)
    book, _ = CodeBook.fit_encode(X[:500])
    monkeypatch.setattr(packed_forest, "MOST_SLOTS", 9)
    forest = random_forest(book, seed=6, n_trees=6, n_leaves=9)
    assert len(packed_forest.pack_forest(forest, book)) > 1
    check(forest, book, scipy.sparse.csc_array(X), X.tolist(), threaded(2))


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
def test_fitted_forests(kind):
    X = sparse_numbers(400, 30, 7, 0.1)
    y = (X[:, :3].sum(axis=1) > 0) + 2 * (np.nan_to_num(X[:, 4]) > 0)
    forest = kind(30, random_state=0, n_jobs=2).fit(X, y)
    table = scipy.sparse.csr_matrix(X)
    np.testing.assert_array_equal(forest.predict(table), forest.predict(X))
    np.testing.assert_array_equal(forest.apply(table), forest.apply(X))


def test_codes_of_a_stretch():
    table = scipy.sparse.csc_array(np.array([[0, 5.0], [2.0, 0], [np.nan, -3.0], [1.0, 0]]))
    columns, thresholds = np.array([1, 0]), np.array([-1.0, 1.5, np.nan])
    args = table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data
    bounds = np.array([0, 1, 2])
    first, cells, zeros = code_sparse(*args, columns, thresholds, bounds, 1, 4)
    assert first.tolist() == [0, 1, 3, 3]  # 1.0 has the code of zero
    assert cells.tolist() == [1 << 16 | 1, 0, 1 << 16 | 65_535]
    assert zeros.tolist() == [1, 0]


def test_broken_tables():
    table = scipy.sparse.csc_array(np.eye(3))
    indptr = np.array([0, 2, 1, 3])
    rest = np.arange(3), np.array([np.nan]), np.zeros(4, dtype=np.int64), 0, 3
    with pytest.raises(ValueError, match="indptr does not ascend"):
        code_sparse(indptr, table.indices.astype(np.int32), table.data, *rest)
