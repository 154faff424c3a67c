"""Two trees side by side, node by node."""

import numpy as np


def assert_same_tree(ours, theirs, *, rtol=1e-11):
    """The same tests on the same rows, whatever order the nodes are numbered in."""
    assert ours.node_count == theirs.node_count
    assert ours.n_leaves == theirs.n_leaves
    assert ours.max_depth == theirs.max_depth
    scale = max(1.0, theirs.impurity[0])
    todo = [(0, 0)]
    while todo:
        a, b = todo.pop()
        assert ours.feature[a] == theirs.feature[b], (a, b)
        assert ours.threshold[a] == theirs.threshold[b], (a, b)
        _assert_same_node(ours, theirs, a, b, rtol, scale)
        if theirs.children_left[b] != -1:
            todo.append((ours.children_left[a], theirs.children_left[b]))
            todo.append((ours.children_right[a], theirs.children_right[b]))
        else:
            assert ours.children_left[a] == ours.children_right[a] == -1


def same_up_to_ties(ours, theirs, X, *, rtol=1e-9):
    """Compare trees in which several tests may be equally good.

    Where the two trees test differently, the tests must part the rows in the same way (perhaps
    with the sides exchanged), and the comparison goes on below; or they must gain exactly as much,
    and the comparison ends there. Returns the number of nodes compared and the number of such ends.
    """
    scale = max(1.0, theirs.impurity[0])
    compared, ends = 0, 0
    todo = [(0, 0, np.arange(len(X)))]
    while todo:
        a, b, rows = todo.pop()
        compared += 1
        _assert_same_node(ours, theirs, a, b, rtol, scale)
        assert ours.n_node_samples[a] == len(rows)
        inner = theirs.children_left[b] != -1
        if ours.impurity[a] == 0.0 and 0.0 < theirs.impurity[b] < 1e-14:
            continue  # a pure node, which scikit-learn's rounding does not see as such
        assert inner == (ours.children_left[a] != -1), (a, b)
        if not inner:
            continue
        goes_left = X[rows, ours.feature[a]] <= ours.threshold[a]
        their_left = X[rows, theirs.feature[b]] <= theirs.threshold[b]
        left, right = theirs.children_left[b], theirs.children_right[b]
        if np.array_equal(goes_left, ~their_left):
            left, right = right, left
        elif not np.array_equal(goes_left, their_left):
            assert abs(gain(ours, a) - gain(theirs, b)) <= rtol * scale * len(X), (a, b)
            ends += 1
            continue
        todo.append((ours.children_left[a], left, rows[goes_left]))
        todo.append((ours.children_right[a], right, rows[~goes_left]))
    return compared, ends


def assert_no_node_is_worse(ours, theirs, *, rtol=1e-9):
    """Wherever the two trees part, our split gains as much as theirs or more.

    Below such a node there is nothing to compare. Returns the number of nodes compared.
    """
    compared = 0
    todo = [(0, 0)]
    while todo:
        a, b = todo.pop()
        compared += 1
        leaf_a, leaf_b = ours.children_left[a] == -1, theirs.children_left[b] == -1
        gain_a = 0.0 if leaf_a else gain(ours, a)
        gain_b = 0.0 if leaf_b else gain(theirs, b)
        assert gain_a >= gain_b - rtol * max(1.0, abs(gain_b)), (a, b)
        if ours.feature[a] == theirs.feature[b] and ours.threshold[a] == theirs.threshold[b]:
            _assert_same_node(ours, theirs, a, b, rtol, max(1.0, theirs.impurity[0]))
            if not leaf_a:
                todo.append((ours.children_left[a], theirs.children_left[b]))
                todo.append((ours.children_right[a], theirs.children_right[b]))
    return compared


def gain(tree, node):
    """Weighted impurity decrease of the node's split."""
    cost = tree.weighted_n_node_samples * tree.impurity
    return cost[node] - cost[tree.children_left[node]] - cost[tree.children_right[node]]


def _assert_same_node(ours, theirs, a, b, rtol, scale):
    assert ours.n_node_samples[a] == theirs.n_node_samples[b], (a, b)
    np.testing.assert_allclose(
        ours.weighted_n_node_samples[a], theirs.weighted_n_node_samples[b], rtol=rtol
    )
    np.testing.assert_allclose(ours.impurity[a], theirs.impurity[b], rtol=0, atol=rtol * scale)
    np.testing.assert_allclose(
        ours.value[a], theirs.value[b], rtol=0, atol=rtol * max(1.0, np.abs(theirs.value).max())
    )
