"""Pruned trees against scikit-learn's, which are grown with the limit, and against brute force."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from dtrees.core.model import pruning
from dtrees.core.model.pruning import PruningLimits
from dtrees.core.model.tree import AT_MOST, IN_SUBSET, LEAF, Tree

UNIT = 2.0**-32  # of the weights


def from_sklearn(grown) -> Tree:
    """A scikit-learn tree, renumbered in preorder, as one of ours."""
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        if grown.children_left[node] >= 0:
            stack += [grown.children_right[node], grown.children_left[node]]
    number = np.empty(grown.node_count + 1, dtype=np.int32)
    number[order] = np.arange(grown.node_count)
    number[-1] = -1
    left, right = number[grown.children_left[order]], number[grown.children_right[order]]
    inner = left >= 0
    weight, impurity = grown.weighted_n_node_samples[order], grown.impurity[order]
    cost = weight * impurity
    gain = np.where(inner, cost - cost[left] - cost[right], 0.0)
    n = grown.node_count
    is_classification = grown.n_classes[0] > 1
    sums = grown.value[order, 0] * weight[:, None]
    if not is_classification:
        sums = np.column_stack([weight, sums])
    return Tree(
        feature=np.where(inner, grown.feature[order], -2).astype(np.int32),
        children_left=left,
        children_right=right,
        test=np.where(inner, AT_MOST, LEAF).astype(np.uint8),
        code=np.zeros(n, dtype=np.uint32),
        threshold=np.where(inner, grown.threshold[order], np.nan),
        missing_go_to_left=np.zeros(n, dtype=np.uint8),
        subset_offset=np.full(n, -1, dtype=np.int64),
        subset_words=np.zeros(0, dtype=np.uint64),
        n_node_samples=grown.n_node_samples[order],
        statistics=np.rint(sums / UNIT).astype(np.int64),
        impurity=impurity,
        gain=gain,
        n_columns=grown.n_features,
        criterion="gini" if is_classification else "squared_error",
        weight_unit=UNIT,
        unit=UNIT,
    )


def assert_same_tree(ours: Tree, theirs: Tree) -> None:
    """The same nodes; gains of ours are those of the full tree, so they may differ in last bits."""
    for name, array in ours.arrays().items():
        other = getattr(theirs, name)
        assert array.dtype == other.dtype, name
        if name == "gain":
            np.testing.assert_allclose(array, other, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_array_equal(array, other, err_msg=name)


# One column: scikit-learn breaks ties between columns at random, within a column by order.
def classification(n_rows: int = 600, weights: bool = False, **parameters):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 1))
    y = (np.sin(3 * X[:, 0]) + rng.normal(size=n_rows)).round().clip(-1, 1)
    w = rng.integers(32, 128, n_rows) / 64 if weights else None
    return DecisionTreeClassifier(random_state=0, **parameters).fit(X, y, w)


def regression(n_rows: int = 500, **parameters):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 1))
    y = np.sin(3 * X[:, 0]) + rng.normal(size=n_rows)
    return DecisionTreeRegressor(random_state=0, **parameters).fit(X, y)


def weighted(**parameters):
    return classification(weights=True, **parameters)


FITS = [classification, weighted, regression]


@pytest.fixture(params=FITS, ids=lambda fit: fit.__name__)
def fit(request):
    return request.param


class TestLimitsEqualTheFitWithTheLimit:
    @pytest.mark.parametrize("depth", [0, 1, 3, 7, 100])
    def test_max_depth(self, fit, depth):
        tree = from_sklearn(fit().tree_)
        pruned = PruningLimits(max_depth=depth).prune(tree)
        if depth:
            assert_same_tree(pruned, from_sklearn(fit(max_depth=depth).tree_))
        else:
            assert pruned.node_count == 1
        assert pruned.max_depth == min(depth, tree.max_depth)

    @pytest.mark.parametrize("n_rows", [2, 3, 10, 77, 10_000])
    def test_min_samples_split(self, fit, n_rows):
        pruned = PruningLimits(min_samples_split=n_rows).prune(from_sklearn(fit().tree_))
        assert_same_tree(pruned, from_sklearn(fit(min_samples_split=n_rows).tree_))

    @pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.1, 2.0])
    def test_min_impurity_decrease(self, fit, share):
        full = fit().tree_
        least = share * full.impurity[0]
        pruned = PruningLimits(min_impurity_decrease=least).prune(from_sklearn(full))
        assert_same_tree(pruned, from_sklearn(fit(min_impurity_decrease=least).tree_))

    @pytest.mark.parametrize("n_leaves", [2, 3, 5, 17, 40, 10_000])
    def test_max_leaf_nodes(self, n_leaves):
        # Regression: gains of classification tie, and scikit-learn's heap has no rule for ties.
        tree = from_sklearn(regression().tree_)
        pruned = PruningLimits(max_leaf_nodes=n_leaves).prune(tree)
        assert_same_tree(pruned, from_sklearn(regression(max_leaf_nodes=n_leaves).tree_))
        assert pruned.n_leaves == min(n_leaves, tree.n_leaves)

    def test_ccp(self, fit):
        tree = from_sklearn(fit().tree_)
        alphas, _ = pruning.cost_complexity_path(tree)
        between = (np.unique(alphas)[:-1] + np.unique(alphas)[1:]) / 2
        for alpha in [0.0, *alphas[1:20:4], *between[::9], alphas[-1], 2 * alphas[-1]]:
            pruned = PruningLimits(ccp_alpha=alpha).prune(tree)
            assert_same_tree(pruned, from_sklearn(fit(ccp_alpha=alpha).tree_))

    @pytest.mark.parametrize("n_rows", [30, 200, 2_000])
    def test_cost_complexity_path(self, fit, n_rows):
        grown = fit(n_rows=n_rows) if fit is not weighted else fit()
        alphas, impurities = pruning.cost_complexity_path(from_sklearn(grown.tree_))
        theirs = path_of(grown.tree_)
        np.testing.assert_array_equal(alphas, theirs["ccp_alphas"])
        np.testing.assert_array_equal(impurities, theirs["impurities"])


def path_of(grown) -> dict:
    from sklearn.tree._tree import ccp_pruning_path

    return ccp_pruning_path(grown)


def chain(n_inner: int) -> Tree:
    """Every right child is a leaf; gains fall with depth."""
    n = 2 * n_inner + 1
    inner = np.arange(n) < n_inner
    left = np.where(inner, np.arange(n) + 1, -1).astype(np.int32)
    right = np.where(inner, n - 1 - np.arange(n), -1).astype(np.int32)
    rows = np.where(inner, n_inner + 1 - np.arange(n), 1)
    weight = rows.astype(np.float64)
    return Tree(
        feature=np.where(inner, 0, -2).astype(np.int32),
        children_left=left,
        children_right=right,
        test=np.where(inner, AT_MOST, LEAF).astype(np.uint8),
        code=inner.astype(np.uint32),
        threshold=np.where(inner, 0.5, np.nan),
        missing_go_to_left=np.zeros(n, dtype=np.uint8),
        subset_offset=np.full(n, -1, dtype=np.int64),
        subset_words=np.zeros(0, dtype=np.uint64),
        n_node_samples=rows,
        statistics=np.stack([rows, rows], axis=1),
        impurity=weight,
        gain=np.where(inner, weight, 0.0),
        n_columns=1,
        criterion="squared_error",
    )


class TestTruncate:
    def test_cuts_nothing(self):
        tree = chain(3)
        assert pruning.truncate(tree, tree.test == LEAF)[0] is tree

    def test_root(self):
        tree = from_sklearn(classification().tree_)
        root, _ = pruning.truncate(tree, np.arange(tree.node_count) == 0)
        assert root.node_count == 1
        assert root.feature[0] == -2
        assert np.isnan(root.threshold[0])
        assert root.gain[0] == 0
        np.testing.assert_array_equal(root.value[0], tree.value[0])

    def test_any_mask_against_recursion(self):
        tree = from_sklearn(classification().tree_)
        rng = np.random.default_rng(0)
        for share in (0.02, 0.1, 0.5):
            is_leaf = rng.random(tree.node_count) < share
            kept = list(walk(tree, 0, is_leaf))
            cut, numbers = pruning.truncate(tree, is_leaf)
            assert numbers.tolist() == kept
            np.testing.assert_array_equal(cut.impurity, tree.impurity[kept])
            assert list(walk(cut, 0, np.zeros(len(kept), dtype=bool))) == list(range(len(kept)))
            inner = cut.test != LEAF
            np.testing.assert_array_equal(inner, [not stops(tree, n, is_leaf) for n in kept])
            assert not any(array.flags.writeable for array in cut.arrays().values())
            assert (cut.gain[~inner] == 0).all()
            assert (cut.code[~inner] == 0).all()

    def test_subsets_are_compacted(self):
        # Left child and root test subsets of three and of one word; a cut keeps the root's.
        plain = chain(3)
        offset = np.array([2, 0, 5, -1, -1, -1, -1])
        test = np.array([IN_SUBSET] * 3 + [LEAF] * 4, dtype=np.uint8)
        words = np.arange(10, 16, dtype=np.uint64)
        tree = replace(plain, subset_offset=offset, subset_words=words, test=test)
        cut = PruningLimits(max_depth=2).prune(tree)
        np.testing.assert_array_equal(cut.subset_offset, [0, 3, -1, -1, -1])
        np.testing.assert_array_equal(cut.subset_words, [12, 13, 14, 10, 11])
        assert PruningLimits(max_depth=0).prune(tree).subset_words.shape == (0,)


def stops(tree: Tree, node: int, is_leaf: np.ndarray) -> bool:
    return is_leaf[node] or tree.test[node] == LEAF


def walk(tree: Tree, node: int, is_leaf: np.ndarray):
    """Nodes of the truncated tree in preorder."""
    yield node
    if not stops(tree, node, is_leaf):
        yield from walk(tree, tree.children_left[node], is_leaf)
        yield from walk(tree, tree.children_right[node], is_leaf)


class TestBestFirst:
    def test_nested(self):
        tree = from_sklearn(classification().tree_)
        order = pruning.best_first_order(tree)
        assert sorted(order) == list(np.flatnonzero(tree.test != LEAF))
        for k in (0, 1, 5, 30):
            np.testing.assert_array_equal(pruning.best_first_order(tree, k), order[:k])

    def test_brute_force_and_ties(self):
        # The open node of the highest gain, the first in preorder among equals.
        tree = from_sklearn(classification().tree_)
        tree = replace(tree, gain=np.round(tree.gain))
        open_nodes, order = {0}, []
        while open_nodes:
            node = min(open_nodes, key=lambda n: (-tree.gain[n], n))
            open_nodes.remove(node)
            if tree.test[node] != LEAF:
                order.append(node)
                open_nodes |= {tree.children_left[node], tree.children_right[node]}
        inner = [node for node in order if tree.test[node] != LEAF]
        np.testing.assert_array_equal(pruning.best_first_order(tree), inner)

    def test_single_leaf(self):
        root = PruningLimits(max_depth=0).prune(chain(2))
        assert len(pruning.best_first_order(root)) == 0
        assert PruningLimits(max_leaf_nodes=5).prune(root) is root
        assert PruningLimits(max_leaf_nodes=1).prune(chain(5)).node_count == 1


class TestCostComplexity:
    def test_single_leaf(self):
        root = PruningLimits(max_depth=0).prune(chain(2))
        alphas, impurities = pruning.cost_complexity_path(root)
        np.testing.assert_array_equal(alphas, [0.0])
        np.testing.assert_array_equal(impurities, root.impurity)
        assert PruningLimits(ccp_alpha=1.0).prune(root) is root

    def test_zero_cuts_nothing(self):
        tree = chain(4)
        assert PruningLimits(ccp_alpha=0.0).prune(tree) is tree

    def test_equal_alphas_cut_the_ancestor_first(self):
        # Both splits save one unit of cost per leaf: alpha is 1 at the root and below it.
        tree = chain(2)
        tree = replace(
            tree,
            impurity=np.array([2.0, 1.0, 0.0, 0.0, 0.0]),
            statistics=np.ones((5, 2), dtype=np.int64),
        )
        alphas, impurities = pruning.cost_complexity_path(tree)
        np.testing.assert_array_equal(alphas, [0.0, 1.0])
        np.testing.assert_array_equal(impurities, [0.0, 2.0])
        assert PruningLimits(ccp_alpha=np.nextafter(1.0, 0)).prune(tree) is tree
        assert PruningLimits(ccp_alpha=1.0).prune(tree).node_count == 1

    def test_path_is_that_of_the_pruned_trees(self):
        tree = from_sklearn(regression().tree_)
        alphas, impurities = pruning.cost_complexity_path(tree)
        assert (np.diff(alphas) >= -1e-12 * alphas[-1]).all()
        leaves = [PruningLimits(ccp_alpha=alpha).prune(tree).n_leaves for alpha in alphas[1::7]]
        assert all(a > b for a, b in pairwise(leaves))
        for alpha, impurity in list(zip(alphas, impurities, strict=True))[1::7]:
            cut = PruningLimits(ccp_alpha=alpha).prune(tree)
            leaf = cut.test == LEAF
            share = cut.weighted_n_node_samples[leaf] / cut.weighted_n_node_samples[0]
            np.testing.assert_allclose((share * cut.impurity[leaf]).sum(), impurity, rtol=1e-9)

    def test_deep_chain(self):
        # No recursion, and no loop over levels: a tree as deep as it is large.
        alphas, _ = pruning.cost_complexity_path(chain(3_000))
        assert len(alphas) == 2 or (np.diff(alphas) >= 0).all()
        assert PruningLimits(max_depth=1_500).prune(chain(3_000)).max_depth == 1_500


def test_a_branch_ends_where_its_right_children_do():
    rng = np.random.default_rng(0)
    grown = DecisionTreeClassifier(random_state=0).fit(
        rng.random((200, 3)), rng.integers(0, 3, 200)
    )
    tree = from_sklearn(grown.tree_)
    last = pruning.last_of_branch(tree)
    for node in range(tree.node_count):
        end = node
        while tree.children_right[end] >= 0:
            end = tree.children_right[end]
        assert last[node] == end
