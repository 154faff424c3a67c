"""Laws from the raw table to the leaf: coding, growth and prediction together."""

from __future__ import annotations

import random

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given
from hypothesis import strategies as st

from dtrees.coding.codebook import CodeBook
from dtrees.core.grow.source import DatasetSource
from dtrees.core.model.tree import AT_MOST, IN_SUBSET, LEAF, Tree
from dtrees.core.predict.binned import CodedRows
from dtrees.core.predict.raw import apply
from tests.laws.tables import (
    KINDS,
    ORDERED,
    Example,
    coded,
    codes_of,
    examples,
    fit,
    tree_of_source,
)
from tests.oracle.candidates import categories_of, numbers_of
from tests.oracle.greedy import assert_tree_is_greedy

NUMBERS = ("distinct", "ties", "counts", "mostly", "constant")


def objects(table: list[list]) -> np.ndarray:
    """A table of numbers, strings and None as one array."""
    X = np.empty((len(table[0]), len(table)), dtype=object)
    for j, column in enumerate(table):
        X[:, j] = column
    return X


def floats(table: list[list]) -> np.ndarray:
    """A table of numbers with NaN for missing values."""
    return np.array([[np.nan if v is None else v for v in column] for column in table]).T


def fit_raw(example: Example, X) -> tuple[Tree, CodeBook]:
    book, matrix = CodeBook.fit_encode(X)
    source = DatasetSource(matrix, example.target, example.rules)
    return tree_of_source(source, book.thresholds), book


class TestCoding:
    @given(examples(limits=False))
    def test_codes_by_definition(self, example):
        book, matrix = CodeBook.fit_encode(objects(example.table))
        for j, column in enumerate(example.table):
            codes, n_codes, n_ordered = codes_of(column)
            np.testing.assert_array_equal(matrix.column(j), codes)
            assert (book.n_codes[j], book.n_ordered[j]) == (n_codes, n_ordered)

    @given(examples())
    def test_tree_is_greedy_on_raw_values(self, example):
        tree, _ = fit_raw(example, objects(example.table))
        assert_tree_is_greedy(tree, example.table, example.target, example.rules)

    @given(examples(kinds=NUMBERS, draws=True), st.sampled_from(["csr", "csc", "coo"]))
    def test_sparse_is_dense(self, example, form):
        X = floats(example.table)
        sparse = scipy.sparse.csr_array(X).asformat(form)
        dense, book = fit_raw(example, X)
        other, sparse_book = fit_raw(example, sparse)
        assert dense.equals(other)
        np.testing.assert_array_equal(apply(dense, book, X), apply(other, sparse_book, sparse))

    @given(examples(kinds=NUMBERS), st.sampled_from([np.float32, "F", "strided", "objects"]))
    def test_form_does_not_matter(self, example, form):
        table = [[None if v is None else float(np.float32(v)) for v in c] for c in example.table]
        X = floats(table)
        expected, _ = fit_raw(example, X)
        other = {
            "F": lambda: np.asfortranarray(X),
            "strided": lambda: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
            "objects": lambda: objects(table),
        }.get(form, lambda: X.astype(np.float32))()
        assert expected.equals(fit_raw(example, other)[0])


class TestIncreasingTransforms:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize(
        "transform", [lambda v: v**3, lambda v: 2 * v + 1, np.arctan, lambda v: -np.exp(-v)]
    )
    @given(data=st.data())
    def test_change_nothing(self, transform, data):
        kinds = ("distinct", "ties", "counts", "hybrid", "categories")
        example = data.draw(examples(kinds=kinds, draws=True))
        table = [
            [float(transform(v)) if isinstance(v, float) else v for v in column]
            for column in example.table
        ]
        # rounding may bring two values together
        assume(
            all(codes_of(a)[1] == codes_of(b)[1] for a, b in zip(example.table, table, strict=True))
        )
        before, book = fit_raw(example, objects(example.table))
        after, other = fit_raw(example, objects(table))
        for name in before.arrays().keys() - {"threshold", "code"}:
            a, b = getattr(before, name), getattr(after, name)
            assert a.tobytes() == b.tobytes(), name
        # Rows of weight zero may lie between the neighbours of a threshold.
        rows = rows_that_count(example)
        np.testing.assert_array_equal(
            apply(before, book, objects(example.table))[rows],
            apply(after, other, objects(table))[rows],
        )


class TestPrediction:
    @given(examples(draws=True, random_splits=True), st.sampled_from([None, 2, 3]), st.booleans())
    def test_codes_lead_to_the_same_leaf(self, example, max_bins, has_numbers_only):
        kinds = {type(v) for column in example.table for v in column} - {type(None)}
        X = objects(example.table)
        if has_numbers_only:
            assume(kinds <= {float})
            X = scipy.sparse.csr_array(floats(example.table))
        book, matrix = CodeBook.fit_encode(X, max_bins=max_bins)
        values = book.code_values()
        source = DatasetSource(matrix, example.target, example.rules, values=values)
        tree = tree_of_source(source, book.thresholds)
        rows = np.flatnonzero(np.arange(example.n_rows) % 3)
        np.testing.assert_array_equal(
            CodedRows(matrix).leaves(tree, rows), apply(tree, book, X)[rows]
        )

    @given(examples(draws=True))
    def test_training_rows_find_their_leaf(self, example):
        X = objects(example.table)
        tree, book = fit_raw(example, X)
        leaves = apply(tree, book, X)
        assert (tree.test[leaves] == LEAF).all()
        counts = np.bincount(leaves[rows_that_count(example)], minlength=tree.node_count)
        leaf = tree.test == LEAF
        np.testing.assert_array_equal(counts[leaf], tree.n_node_samples[leaf])

    @pytest.mark.filterwarnings("ignore:Column .* none of its values was there at fit:UserWarning")
    @given(examples(draws=True), examples(limits=False), st.integers(0, 99))
    def test_new_rows_by_definition(self, example, other, seed):
        # Cells of another table, put below columns of the same kind.
        X = objects(example.table)
        tree, book = fit_raw(example, X)
        rng = random.Random(seed)
        pool = [v for column in other.table for v in column]
        table = []
        for column in example.table:
            known = {type(v) for v in column}
            table.append([rng.choice(pool) for _ in range(20)])
            table[-1] = [v if type(v) in known else None for v in table[-1]]
        leaves = apply(tree, book, objects(table))
        for i, leaf in enumerate(leaves):
            assert leaf == leaf_of(tree, example.table, [column[i] for column in table])

    @given(examples(kinds=ORDERED))
    def test_coded_rows(self, example):
        # The tree of codes is the tree of raw values.
        assert fit(example).equals(fit_raw(example, floats(example.table))[0])


def rows_that_count(example: Example) -> np.ndarray:
    return np.arange(example.n_rows) if example.weight is None else np.flatnonzero(example.weight)


def leaf_of(tree: Tree, table: list[list], row: list) -> int:
    """Walk one row of raw values by the essay of `dtrees.core.model.tree`."""
    node = 0
    while tree.test[node] != LEAF:
        column = int(tree.feature[node])
        numbers, categories = numbers_of(table[column]), categories_of(table[column])
        value, test, threshold = row[column], tree.test[node], tree.threshold[node]
        is_number = isinstance(value, float)
        if value is None or (
            not is_number and value not in categories
        ):  # handle_unknown: as missing
            left = tree.missing_go_to_left[node]
        elif test != IN_SUBSET:
            left = is_number and (value <= threshold if test == AT_MOST else value > threshold)
        elif is_number:
            left = False
        else:
            code = 1 + len(numbers) + categories.index(value)
            word = int(tree.subset_words[tree.subset_offset[node] + code // 64])
            left = word >> code % 64 & 1
        node = int(tree.children_left[node] if left else tree.children_right[node])
    return node


def test_every_kind_is_drawn():
    assert set(ORDERED) | set(NUMBERS) < set(KINDS)
    assert coded([[1.0, None, "a"]]).n_codes.tolist() == [2]
