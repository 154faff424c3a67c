"""The walk: few rows, sparse rows and binned rows reach the leaves of a slow walk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from dtrees import RandomForestRegressor
from dtrees.coding import CodeBook
from dtrees.core.model.tree import ABOVE, AT_MOST, IN_SUBSET, LEAF, Tree
from dtrees.core.predict import packed_forest, raw
from dtrees.core.predict._packed_forest import GrownTrees, PackedTrees
from dtrees.core.predict._walk import (
    PackedTree,
    add_numbers,
    code_sparse,
    find_leaves,
    walk_numbers,
)
from dtrees.parallel import threaded
from tests.coding.examples import coded_columns
from tests.core.predict.test_binned import grown
from tests.core.predict.test_packed_forest import check, random_forest, stump
from tests.core.predict.test_raw import SEEDS, numbers, random_tree
from tests.registers import wide_registers


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


def slots_of_two_columns(first):
    """A forest that compares column 1 with -1 and column 0 with 1.5, in slots of this order."""
    packed = PackedTrees(GrownTrees([stump(-1.0, 1, 2), stump(1.5, 0, 2)], 2), 2, None, False)
    thresholds = np.array([-1.0, 1.5, np.nan])
    packed.set_thresholds(np.array([1, 0]), thresholds, np.array(first), 2)
    return packed


def test_codes_of_a_stretch():
    table = scipy.sparse.csc_array(np.array([[0, 5.0], [2.0, 0], [np.nan, -3.0], [1.0, 0]]))
    args = table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data
    first, cells, zeros = code_sparse(slots_of_two_columns([0, 1, 2]), *args, 1, 4)
    assert first.tolist() == [0, 1, 3, 3]  # 1.0 has the code of zero
    assert cells.tolist() == [1 << 16 | 1, 0, 1 << 16 | 65_535]
    assert zeros.tolist() == [1, 0]


def test_broken_tables():
    for first in ([0, 1], [0, 2, 1], [0, 1, 3], [-1, 1, 2]):
        with pytest.raises(ValueError, match="slots do not fit"):
            slots_of_two_columns(first)
    indptr, rows = np.array([0, 2, 1]), np.array([0, 1], dtype=np.int32)
    with pytest.raises(ValueError, match="indptr does not ascend"):
        code_sparse(slots_of_two_columns([0, 1, 2]), indptr, rows, np.ones(2), 0, 3)


class TestFewRows:
    """One call codes few rows of numbers and walks: their values are those of many rows."""

    @pytest.mark.one_of(10)
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
        total = np.zeros((1, 2))
        for wrong in ((X[:2], total), (X[:1, :3], total), (X[:1], total[:, :0])):
            with pytest.raises(ValueError, match="do not fit"):
                add_numbers(part.trees, *wrong, 0)


def hand_made(rng, n_codes, n_ordered, n_inner):
    """A tree that tests what it likes, its children behind their parent."""
    n = 2 * n_inner + 1
    children = np.arange(1, n).reshape(n_inner, 2)  # of the first nodes
    feature, test, code = np.full(n, -2, np.int32), np.zeros(n, np.uint8), np.zeros(n, np.uint32)
    missing_left, offset, words = np.zeros(n, np.uint8), np.full(n, -1, np.int64), []
    for node in range(n_inner):
        j = feature[node] = rng.integers(len(n_codes))
        numbers = [AT_MOST, ABOVE] * bool(n_ordered[j])
        test[node] = rng.choice(numbers + [IN_SUBSET] * bool(n_ordered[j] < n_codes[j]))
        missing_left[node] = rng.integers(2)
        if test[node] == IN_SUBSET:
            offset[node] = len(words)
            words += rng.integers(0, 2**64, n_codes[j] // 64 + 1, dtype=np.uint64).tolist()
        else:
            code[node] = rng.choice([rng.integers(n_ordered[j] + 1), n_ordered[j], 2**32 - 1, 0])
    left, right = (np.append(side, np.full(n_inner + 1, -1)) for side in children.T)
    zeros = np.zeros(n)
    return Tree(
        *(feature, left.astype(np.int32), right.astype(np.int32), test, code, zeros, missing_left),
        *(offset, np.array(words, dtype=np.uint64), np.ones(n, dtype=np.int64)),
        *(np.ones((n, 2), dtype=np.int64), zeros, zeros, len(n_codes), "gini"),
    )


def leaf_of(tree, codes, n_ordered):
    node = 0
    while tree.test[node] != LEAF:
        j = tree.feature[node]
        code = int(codes[j])
        if code == 0:
            goes_left = tree.missing_go_to_left[node]
        elif tree.test[node] == IN_SUBSET:
            word = int(tree.subset_words[tree.subset_offset[node] + code // 64])
            goes_left = word >> code % 64 & 1
        else:
            passes = code <= tree.code[node]
            goes_left = code <= n_ordered[j] and passes == (tree.test[node] == AT_MOST)
        node = (tree.children_left if goes_left else tree.children_right)[node]
    return node


@pytest.mark.parametrize("most_codes", [63, 255, 256, 65_535])
@pytest.mark.parametrize("seed", range(4))
def test_trees_of_all_tests(seed, most_codes):
    rng = np.random.default_rng(seed)
    n_codes = np.array([most_codes, 64, 5, 63])
    n_ordered = np.array([most_codes, 0, 5, 30])  # of numbers, categories, numbers, both
    edges = np.stack([0 * n_codes, 0 * n_codes + 1, n_ordered, n_ordered + 1, n_codes - 1, n_codes])
    inside = rng.integers(0, n_codes + 1, (60, 4))
    codes = np.minimum(np.vstack([rng.permuted(np.tile(edges, (10, 1)), axis=0), inside]), n_codes)
    dtype = np.uint8 if most_codes < 256 else np.uint16
    coded = coded_columns([own.astype(dtype) for own in codes.T], n_codes, n_ordered)
    trees = [hand_made(rng, n_codes, n_ordered, n_inner) for n_inner in (64, 127, 3)]
    found = np.empty((3, len(codes)), dtype=np.int32)
    find_leaves(trees, coded, np.arange(len(codes)), found)
    expected = [[leaf_of(tree, own, n_ordered) for own in codes] for tree in trees]
    np.testing.assert_array_equal(found, expected)


def test_what_does_not_fit():
    _, coded, tree, _ = grown("mixed", None)
    rows, leaves = np.arange(3), np.empty((1, 3), dtype=np.int32)
    for trees, room in (([tree], np.empty((1, 2), dtype=np.int32)), ([tree, tree], leaves)):
        with pytest.raises(ValueError, match="one leaf for each row and tree"):
            find_leaves(trees, coded, rows, room)
    with pytest.raises(ValueError, match="no row 700"):
        find_leaves([tree], coded, rows + 698, leaves)
    column = np.where(tree.test == LEAF, tree.feature, 7).astype(np.int32)
    with pytest.raises(ValueError, match="is broken"):
        find_leaves([replace(tree, feature=column)], coded, rows, leaves)
    assert (tree.test == IN_SUBSET).any()
    offset = np.where(tree.test == IN_SUBSET, len(tree.subset_words), -1)
    with pytest.raises(ValueError, match="no subset"):
        find_leaves([replace(tree, subset_offset=offset)], coded, rows, leaves)


def test_numbers_that_do_not_fit():
    X = numbers(50, 3, seed=22)
    book, _ = CodeBook.fit_encode(X)
    packed = PackedTree(random_tree(book, 20, seed=23), np.arange(3, dtype=np.int32))
    leaves = np.empty(50, dtype=np.int32)
    for wrong in ((X[:, :1], leaves), (X, leaves[:-1])):
        with pytest.raises(ValueError, match="do not fit"):
            walk_numbers(packed, *wrong)


def test_totals_that_do_not_fit():
    X = numbers(50, 3, seed=26)
    book, _ = CodeBook.fit_encode(X)
    (part,) = packed_forest.pack_forest(random_forest(book, seed=27), book)
    codes = np.zeros((9, part.trees.n_slots), dtype=np.uint16)
    for total, first in ((np.zeros((8, 2)), 0), (np.zeros((9, 0)), 0), (np.zeros((9, 2)), -1)):
        with pytest.raises(ValueError, match="do not fit"):
            packed_forest.walk_values(part.trees, codes, total, first)


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("power", [1, 6])  # of a target with a long tail: ways of unlike lengths
def test_rows_reach_the_same_leaves_in_registers(missing, power):
    X = numbers(700, 5, seed=power, missing=missing)
    y = np.exp(np.nan_to_num(X[:, 0]) * power) + np.arange(700)
    forest = RandomForestRegressor(3, random_state=0).fit(X, y)
    with wide_registers(False):
        expected = [(forest.apply(X[:n]), forest.predict(X[:n])) for n in (127, 128, 161, 700)]
    for leaves, values in expected:
        own = X[: len(leaves)]
        np.testing.assert_array_equal(forest.apply(own), leaves)
        np.testing.assert_array_equal(forest.predict(own), values)
