"""The kernel of SHAP values: shapes of trees, and trees that cannot be."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

from dtrees import DecisionTreeRegressor
from dtrees.coding.codebook import CodeBook
from dtrees.core.model.tree import Tree
from dtrees.core.predict._shap import ShapTree, add_interventional, add_path_dependent
from dtrees.core.predict.contributions import (
    contributions,
    interventional_weights,
    prepare_trees,
    rule_of,
)
from dtrees.export.model_nodes import ModelNodes
from dtrees.typing import serial
from tests.export.examples import examples

SLOT = np.arange(3, dtype=np.int32)


def ready(tree, value, book):
    return prepare_trees([tree], [value], book, serial)


def shap_of(model, rows, **options):
    view = ModelNodes.of(model)
    trees = [nodes.coded_tree for nodes in view.trees]
    values = [tree.value for tree in trees]
    table = view.book.check(rows)
    if "background" in options:
        options["background"] = view.book.check(options["background"])
    ready = prepare_trees(trees, values, view.book, serial)
    phi, pairs = contributions(ready, view.book, table, serial, n_outputs=view.n_outputs, **options)
    return phi if pairs is None else pairs


@given(examples())
def test_rows_do_not_depend_on_their_neighbours(example):
    whole = shap_of(example.model, example.rows)
    alone = [shap_of(example.model, example.rows[i : i + 1])[0] for i in range(len(whole))]
    assert np.array(alone).tobytes() == whole.tobytes()


def chain(depth, n_columns):
    """A tree that takes one row off at a time, by the columns in turn; row i has leaf i."""
    n = 2 * depth + 1
    inner = np.arange(n) % 2 == 0
    inner[-1] = False
    level = np.arange(n) // 2
    rows_here = np.where(inner, depth + 1 - level, 1)
    value = np.where(inner, 0, level)
    total = np.where(inner, (depth * (depth + 1) - level * (level - 1)) // 2, value)
    return Tree(
        feature=np.where(inner, level % n_columns, -2).astype(np.int32),
        children_left=np.where(inner, np.arange(n) + 1, -1).astype(np.int32),
        children_right=np.where(inner, np.arange(n) + 2, -1).astype(np.int32),
        test=inner.astype(np.uint8),
        code=np.ones(n, dtype=np.uint32),
        threshold=np.where(inner, level + 0.5, np.nan),
        missing_go_to_left=np.zeros(n, dtype=np.uint8),
        subset_offset=np.full(n, -1, dtype=np.int64),
        subset_words=np.empty(0, dtype=np.uint64),
        n_node_samples=rows_here.astype(np.int32),
        statistics=np.column_stack([rows_here, total]).astype(np.int64),
        impurity=np.zeros(n),
        gain=np.zeros(n),
        n_columns=n_columns,
        criterion="squared_error",
    )


@pytest.mark.parametrize(("depth", "n_columns"), [(30_000, 1), (2_000, 40), (300, 300)])
def test_a_path_as_long_as_the_tree(depth, n_columns):
    X = np.repeat(np.arange(depth + 1.0)[:, None], n_columns, axis=1)
    book, _ = CodeBook.fit_encode(X)
    tree, rows = chain(depth, n_columns), X[[0, 1, depth // 2, depth]]
    known, others = book.check(rows), X[[0, depth // 3, depth]]
    for background in None, book.check(others):
        phi, _ = contributions(
            ready(tree, tree.value, book), book, known, serial, n_outputs=1, background=background
        )
        mean = depth / 2 if background is None else others[:, 0].mean()
        expected = rows[:, 0] - mean
        np.testing.assert_allclose(phi.sum(axis=(1, 2)), expected, rtol=1e-9, atol=1e-9 * depth)


def test_columns_of_equal_roles_on_a_long_path_add_the_same():
    """Rows meet the test of every column or fail it, which only the order could tell apart."""
    depth = 200
    X = np.repeat(np.arange(depth + 1.0)[:, None], depth, axis=1)
    book, _ = CodeBook.fit_encode(X)
    tree = chain(depth, depth)
    alike = np.where(np.arange(2 * depth + 1) == 2 * depth, 1.0, 0.0)[:, None]  # of the last leaf
    phi, _ = contributions(
        ready(tree, alike, book),
        book,
        book.check(X[-1:]),
        serial,
        n_outputs=1,
        background=book.check(X[:1]),
    )
    np.testing.assert_allclose(phi[0, :, 0], 1 / depth, rtol=1e-12)


def test_rows_without_weight_are_not_there():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(80, 3)), np.arange(80) % 2
    y = X[:, 0] * X[:, 1]
    known = DecisionTreeRegressor(random_state=0).fit(X[1::2], y[1::2])
    model = DecisionTreeRegressor(random_state=0).fit(X, y, weight)
    np.testing.assert_allclose(shap_of(model, X), shap_of(known, X), rtol=1e-9, atol=1e-12)


def test_leaves_without_weight_are_not_expected():
    """As a file may have them: rows that come there are explained, and nothing is divided by 0."""
    tree = chain(3, 2)
    statistics = tree.statistics.copy()
    statistics[[2, 4, 5, 6], 0] = 0  # all rows are in the first leaf
    statistics[0, 0] = 1
    tree = replace(tree, statistics=statistics, n_node_samples=statistics[:, 0])
    X = np.repeat(np.arange(4.0)[:, None], 2, axis=1)
    book, _ = CodeBook.fit_encode(X)
    value = np.arange(7.0)[:, None]
    phi, _ = contributions(ready(tree, value, book), book, book.check(X), serial, n_outputs=1)
    assert phi.sum(axis=(1, 2)) == pytest.approx([0, 2, 4, 5])  # leaves 1, 3, 5, 6


def test_one_leaf_says_nothing():
    model = DecisionTreeRegressor().fit(np.zeros((5, 2)), np.arange(5))
    assert not shap_of(model, np.zeros((3, 2))).any()
    assert not shap_of(model, np.zeros((3, 2)), background=np.zeros((1, 2))).any()


class TestBrokenArguments:
    @pytest.fixture
    def parts(self):
        X = np.random.default_rng(0).random((50, 3))
        model = DecisionTreeRegressor(random_state=0).fit(X, X.sum(axis=1))
        return model.tree_.model, X[:4].T.copy(), model.tree_.codebook.n_codes

    def ready(self, tree, n_codes, slot=SLOT):
        return ShapTree(tree, slot, tree.value, n_codes)

    @pytest.mark.parametrize("child", [0, 99, -3])
    def test_children_that_cannot_be(self, parts, child):
        tree, _, n_codes = parts
        right = tree.children_right.copy()
        right[0] = child
        with pytest.raises(ValueError, match="broken"):
            self.ready(replace(tree, children_right=right), n_codes)

    def test_children_of_two(self):
        tree = chain(4, 2)
        right = tree.children_right.copy()
        right[2] = 3
        with pytest.raises(ValueError, match="node 3 has no subset, or not one parent"):
            self.ready(replace(tree, children_right=right), np.zeros(2, dtype=np.int64), SLOT[:2])

    def test_columns_that_cannot_be(self, parts):
        tree, _, n_codes = parts
        with pytest.raises(ValueError, match="broken"):
            self.ready(replace(tree, feature=tree.feature + 3), n_codes)

    def test_subsets_that_cannot_be(self):
        X = pd.DataFrame({"a": pd.Categorical(list("abcd") * 5)})
        model = DecisionTreeRegressor().fit(X, np.arange(20) % 4 == 1)
        tree, book = model.tree_.model, model.tree_.codebook
        offset = tree.subset_offset + 1000
        broken = replace(tree, subset_offset=offset)
        with pytest.raises(ValueError, match="broken"):
            ready(broken, tree.value, book)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"weights": interventional_weights(1)}, "too few weights"),
            ({"phi": np.zeros((3, 2, 4))}, "values do not fit"),
            ({"other_codes": np.zeros((3, 2), dtype=np.int64)}, "background does not fit"),
        ],
    )
    def test_lengths_of_two_rows(self, parts, change, message):
        tree, numbers, n_codes = parts
        own = self.ready(tree, n_codes)
        given = {
            "weights": interventional_weights(own.most_columns),
            "phi": np.zeros((3, 1, 4)),
            "other_codes": None,
        } | change
        others = numbers[:, :2].copy()
        with pytest.raises(ValueError, match=message):
            add_interventional(
                own, numbers, None, others, given["other_codes"], given["weights"], given["phi"]
            )

    @pytest.mark.parametrize(
        ("slot", "message"),
        [
            (SLOT - 2, "has no slot"),
            (SLOT[:2], "broken"),
            (np.arange(4, dtype=np.int32), "differ in length"),
        ],
    )
    def test_slots_of_other_columns(self, parts, slot, message):
        tree, _, n_codes = parts
        with pytest.raises(ValueError, match=message):
            self.ready(tree, n_codes, slot)

    def test_children_of_nobody(self, parts):
        tree, _, n_codes = parts
        left = tree.children_left.copy()
        left[0] = 2
        with pytest.raises(ValueError, match="broken"):
            self.ready(replace(tree, children_left=left), n_codes)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"numbers": np.zeros((2, 4))}, "numbers do not fit"),
            ({"rule": rule_of(1)}, "too few points"),
            ({"phi": np.zeros((3, 1, 9))}, "values do not fit"),
            ({"phi": np.zeros((3, 1, 8))[:, :, ::2]}, "values do not fit"),
            ({"pairs": np.zeros((3, 1, 4))}, "values do not fit"),
            ({"codes": np.zeros((1, 1), dtype=np.int64)}, "codes do not fit"),
        ],
    )
    def test_lengths(self, parts, change, message):
        tree, numbers, n_codes = parts
        own = self.ready(tree, n_codes)
        given = {
            "numbers": numbers,
            "rule": rule_of(own.most_columns),
            "phi": np.zeros((3, 1, 4)),
            "pairs": None,
            "codes": None,
        } | change
        with pytest.raises(ValueError, match=message):
            add_path_dependent(
                own, given["numbers"], given["codes"], *given["rule"], given["phi"], given["pairs"]
            )  # fmt: skip
