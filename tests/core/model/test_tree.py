"""The grown tree: frozen, compared by bits, measured; and its record's two declarations."""

from dataclasses import replace

import joblib
import numpy as np
import pytest

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.core.model.tree import LEAF, Forest, Tree, mean_of_sums, relative_gains
from tests.laws.tables import Example, fit


@pytest.fixture
def tree() -> Tree:
    rng = np.random.default_rng(0)
    table = [rng.normal(size=60).tolist(), rng.choice(list("abcd"), 60).tolist()]
    return fit(Example(table, rng.integers(0, 3, 60), None, "gini"))


def test_arrays_are_read_only(tree):
    for name, array in tree.arrays().items():
        with pytest.raises(ValueError, match="read-only"):
            array.flat[:1] = 0
        assert not array.flags.writeable, name


def test_arrays_are_of_one_length(tree):
    for name, array in tree.arrays().items():
        assert name == "subset_words" or len(array) == tree.node_count


def test_dtypes(tree):
    expected = {
        "feature": np.int32,
        "children_left": np.int32,
        "children_right": np.int32,
        "test": np.uint8,
        "code": np.uint32,
        "threshold": np.float64,
        "missing_go_to_left": np.uint8,
        "subset_offset": np.int64,
        "subset_words": np.uint64,
        "n_node_samples": np.int32,
        "statistics": np.int32,
        "impurity": np.float64,
        "gain": np.float64,
    }
    assert {name: array.dtype for name, array in tree.arrays().items()} == expected


def test_preorder(tree):
    inner = np.flatnonzero(tree.test != LEAF)
    np.testing.assert_array_equal(tree.children_left[inner], inner + 1)
    assert (tree.children_right[inner] > tree.children_left[inner]).all()
    assert tree.n_leaves == len(inner) + 1


def test_depth(tree):
    def depths(node: int, depth: int):
        yield depth
        if tree.test[node] != LEAF:
            yield from depths(tree.children_left[node], depth + 1)
            yield from depths(tree.children_right[node], depth + 1)

    expected = list(depths(0, 0))
    assert tree.depth.tolist() == expected
    assert tree.max_depth == max(expected)


def test_equals(tree):
    assert tree.equals(tree)
    for name, array in tree.arrays().items():
        other = array.copy()
        other.view(np.uint8).reshape(-1)[0] ^= 1
        changed = Tree(**{**tree.arrays(), name: other}, n_columns=2, criterion="gini")
        assert not tree.equals(changed), name
    for name, other in (("n_columns", 3), ("weight_unit", 2.0), ("unit", 2.0), ("offset", 1.0)):
        assert not tree.equals(replace(tree, **{name: other})), name


@pytest.mark.parametrize("weight", [1, 2**30, 2**31])
def test_counts_are_small_where_those_of_the_root_fit(tree, weight):
    rows = np.full(tree.node_count, weight)
    other = replace(tree, statistics=np.column_stack([rows, rows]), n_node_samples=rows)
    fits = weight < 2**30
    assert other.statistics.dtype == (np.int32 if fits else np.int64)
    assert other.n_node_samples.dtype == (np.int32 if weight < 2**31 else np.int64)
    np.testing.assert_array_equal(other.weighted_n_node_samples, 2.0 * weight)
    np.testing.assert_array_equal(other.value, 0.5)


def test_values_of_nodes(tree):
    rows = np.arange(1, tree.node_count + 1)
    sums = np.column_stack([rows, 7 * rows])
    mean = Tree(
        **{**tree.arrays(), "statistics": sums},
        n_columns=2,
        criterion="squared_error",
        weight_unit=0.5,
        unit=0.25,
        offset=3.0,
    )
    assert (tree.n_values, mean.n_values) == (3, 1)
    np.testing.assert_array_equal(mean.value, np.full((tree.node_count, 1), 3.5 + 3.0))
    np.testing.assert_array_equal(tree.value, tree.statistics / tree.statistics.sum(1)[:, None])
    np.testing.assert_array_equal(mean.weighted_n_node_samples, rows * 0.5)
    few = np.array([tree.node_count - 1, 0, 0])
    many = np.tile(few, tree.node_count)
    for each in (tree, mean):
        np.testing.assert_array_equal(each.value_of(few), each.value[few])
        np.testing.assert_array_equal(each.value_of(many), each.value[many])


def test_forest(tree):
    forest = Forest((tree,))
    assert len(forest) == 1
    assert forest[0] is tree


def test_trees_without_subsets_have_one_layout(tree):
    """The strides of an empty array, which `joblib.hash` looks at, are those of a new one."""
    arrays = {name: array[:1] for name, array in tree.arrays().items() if name != "subset_words"}
    facts = {"n_columns": tree.n_columns, "criterion": tree.criterion}
    stretch = np.zeros(2, np.uint64)[1:1]
    cut, new = (
        Tree(**arrays, subset_words=words, **facts) for words in (stretch, np.empty(0, np.uint64))
    )
    assert joblib.hash(cut.arrays()) == joblib.hash(new.arrays())


def regression_tree(scale, criterion="squared_error"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.exp(X[:, 0] + 0.3 * rng.normal(size=200)) * scale
    return DecisionTreeRegressor(criterion=criterion, max_depth=4).fit(X, y).tree_.model


@pytest.mark.parametrize("criterion", ["squared_error", "poisson"])
def test_tiny_targets_have_the_gains_of_others(criterion):
    usual, tiny = regression_tree(1.0, criterion), regression_tree(2.0**-1000, criterion)
    assert relative_gains(usual) is usual.gain
    assert tiny.gain.max() < 1e-280
    np.testing.assert_array_equal(usual.feature, tiny.feature)
    mine, theirs = relative_gains(tiny), relative_gains(usual)
    np.testing.assert_allclose(mine / mine.max(), theirs / theirs.max(), rtol=1e-9, atol=1e-12)


def test_classes_have_one_unit():
    X = np.arange(10.0)[:, None]
    grown = DecisionTreeClassifier().fit(X, np.arange(10) % 2).tree_.model
    assert relative_gains(grown) is grown.gain


def test_rows_without_a_vote():
    mean = mean_of_sums(np.array([[2.0], [0.0]]), np.array([[2], [0]]), [1.0])
    np.testing.assert_array_equal(mean, [[1.0], [np.nan]])


def test_sums_that_overflow_are_the_mean_of_the_offsets():
    huge = 1.5e308
    for offsets, expected in (([huge] * 4, huge), ([huge, -huge, huge, huge], huge / 2)):
        found = mean_of_sums(np.full((1, 1), np.inf), 4, offsets)
        np.testing.assert_array_equal(found, [[expected]])
