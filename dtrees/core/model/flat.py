r"""Trees as one array per attribute, the trees one behind the other: `packing` without packing.

A message of many small arrays costs a frame for each of them, and trees that were made by hand
cannot be packed. `split_trees` takes the arrays apart again.

The shape of trees is read from a bit per node: inner or leaf. With inner nodes as opening and
leaves as closing brackets, and the last leaf left out, a tree in preorder is a balanced expression,
and the right child stands behind the bracket that closes its parent::

        0                   node    0 1 2 3 4 5 6
       / \                          ( ( ) ( ) )           0 pairs with 5: right child 6
      1   6                                               1 pairs with 2: right child 3
     / \                                                  3 pairs with 4: right child 5
    2   3
       / \
      4   5

So bits that are not balanced are no tree, and every tree that is read ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dtrees.core.data.criteria import REGRESSION
from dtrees.core.model._pruning import ends_of
from dtrees.core.model.tree import UNITS, Tree

Arrays = dict[str, np.ndarray]

DTYPES: dict[str, np.dtype[Any]] = {
    "feature": np.dtype(np.int32),
    "children_left": np.dtype(np.int32),
    "children_right": np.dtype(np.int32),
    "test": np.dtype(np.uint8),
    "code": np.dtype(np.uint32),
    "threshold": np.dtype(np.float64),
    "missing_go_to_left": np.dtype(np.uint8),
    "subset_offset": np.dtype(np.int64),
    "subset_words": np.dtype(np.uint64),
    "n_node_samples": np.dtype(np.int64),
    "statistics": np.dtype(np.int64),
    "impurity": np.dtype(np.float64),
    "gain": np.dtype(np.float64),
}
# The types that an array of a tree may have: counts are int32 where they fit.
TYPES = {
    name: (dtype, np.dtype(np.int32)) if name in ("n_node_samples", "statistics") else (dtype,)
    for name, dtype in DTYPES.items()
}

NONE = np.empty(0, dtype=np.uint64)  # words of a tree without subsets
NONE.flags.writeable = False


def flatten(trees: Sequence[Tree]) -> tuple[Arrays, dict[str, Any]]:
    """All arrays of some trees of one table and criterion, at least one, bit for bit; O(nodes).

    These are the arrays of a tree, and of each tree "n_nodes", "n_words" and `UNITS`, which are
    (n_trees, n_outputs) of several outputs of numbers; and by name what all trees share.
    """
    arrays = {
        name: np.concatenate([getattr(tree, name) for tree in trees]) for name in trees[0].arrays()
    }
    arrays["n_nodes"] = np.array([tree.node_count for tree in trees], dtype=np.int64)
    arrays["n_words"] = np.array([len(tree.subset_words) for tree in trees], dtype=np.int64)
    for name in UNITS:
        arrays[name] = np.array([getattr(tree, name) for tree in trees])
    return arrays, shared_facts(trees[0])


def shared_facts(tree: Tree) -> dict[str, Any]:
    """What all trees of one growth have in common, of a tree of it: numbers, words and a list."""
    facts: dict[str, Any] = {"n_columns": tree.n_columns, "criterion": tree.criterion}
    return facts | ({"n_classes": list(tree.n_classes)} if tree.n_classes else {})


def n_classes_of(facts: Mapping[str, Any], n_statistics: int) -> tuple[int, ...]:
    """Classes of each of several outputs, as facts have them; ValueError: they are none."""
    n_classes = facts.get("n_classes", ())
    if "n_classes" in facts and not (
        isinstance(n_classes, list)
        and len(n_classes) > 1
        and all(type(n) is int and n > 0 for n in n_classes)
        and sum(n_classes) == n_statistics
        and facts["criterion"] not in REGRESSION
    ):
        raise ValueError(f"There are not {n_statistics} classes of several outputs.")
    return tuple(n_classes)


def split_trees(
    all_of: Mapping[str, np.ndarray],
    words: np.ndarray,
    n_nodes: np.ndarray,
    word_counts: np.ndarray,
    *,
    n_columns: int,
    criterion: str,
    units: Mapping[str, np.ndarray],
    n_classes: Sequence[int] = (),
) -> tuple[Tree, ...]:
    """Trees as stretches of arrays that hold the nodes of all of them, without copies.

    But for counts that are of a wider type than a tree has them in.
    """
    locked = {name: array.view() for name, array in all_of.items()}
    words = words.view()
    for array in (*locked.values(), words):
        array.flags.writeable = False  # and so are its stretches
    counts = ["n_node_samples"] if criterion in REGRESSION else ["n_node_samples", "statistics"]
    is_narrow = all(locked[name].dtype == np.int32 for name in counts)
    ends, word_ends = np.cumsum(n_nodes).tolist(), np.cumsum(word_counts).tolist()
    of_units = {
        name: array.tolist() if array.ndim == 1 else list(map(tuple, array.tolist()))
        for name, array in units.items()
    }
    trees = []
    for i, (n, n_words) in enumerate(zip(n_nodes.tolist(), word_counts.tolist(), strict=True)):
        nodes = slice(ends[i] - n, ends[i])
        fields: dict[str, Any] = {name: array[nodes] for name, array in locked.items()}
        for name, values in of_units.items():
            fields[name] = values[i]
        fields["subset_words"] = words[word_ends[i] - n_words : word_ends[i]] if n_words else NONE
        fields["n_columns"], fields["criterion"] = n_columns, criterion
        fields["n_classes"] = tuple(n_classes)
        if not is_narrow:
            trees.append(Tree(**fields))
            continue
        tree = object.__new__(Tree)  # which is as `__post_init__` would make it, in a tenth of the
        vars(tree).update(fields)  # time: a boosted model has hundreds of trees of some sixty nodes
        trees.append(tree)
    return tuple(trees)


def times_below(nodes: np.ndarray, last: np.ndarray) -> np.ndarray:
    """How many of some nodes are proper ancestors of every node, int64 (n_nodes,).

    last : last node of every branch.
    """
    steps = np.bincount(nodes + 1, minlength=len(last) + 1)
    steps -= np.bincount(last[nodes] + 1, minlength=len(last) + 1)
    return np.cumsum(steps[:-1])


class Shape:
    """The shape of trees in preorder, one behind the other; all arrays are int64.

    It is made of `is_inner`, bool (n_nodes,), of all trees, and the nodes of each. Raises
    ValueError where the bits are not those of such trees.
    """

    def __init__(self, is_inner: np.ndarray, n_nodes: np.ndarray) -> None:
        ends = np.cumsum(n_nodes)
        self.start = ends - n_nodes  # first node of every tree
        self.inner = np.flatnonzero(is_inner)  # numbers of these nodes
        self.leaves = np.flatnonzero(~is_inner)
        self.tree = np.repeat(np.arange(len(n_nodes)), n_nodes)  # of every node
        open_after = np.cumsum(np.where(is_inner, 1, -1)) + self.tree
        within = np.ones(len(is_inner), dtype=bool)
        within[ends - 1] = False
        level = (open_after + ~is_inner)[within]  # equal for the brackets of a pair
        if (open_after[ends - 1] != -1).any() or level.min(initial=1) < 1:
            raise ValueError("The nodes are not those of trees in preorder.")
        if level.max(initial=0) < 2**15:
            level = level.astype(np.int16)  # sorted by counting
        pairs = np.flatnonzero(within)[np.argsort(level, kind="stable")].reshape(-1, 2)
        right = np.empty(len(is_inner), dtype=np.int64)
        right[pairs[:, 0]] = pairs[:, 1] + 1
        self.right = right[self.inner]  # child of every inner node
        last = np.arange(len(is_inner))
        last[self.inner] = self.right
        self.last = ends_of(last)  # node of every branch

    def sums(self, of_leaves: np.ndarray) -> np.ndarray:
        """Sums over the leaves of every branch, int64 (n_nodes, k); of_leaves : int64 (n, k)."""
        n_nodes = len(self.last)
        upto = np.zeros((n_nodes + 1, of_leaves.shape[1]), dtype=np.int64)
        upto[self.leaves + 1] = of_leaves
        np.cumsum(upto, axis=0, out=upto)
        return upto[self.last + 1] - upto[:n_nodes]

    def levels(self) -> list[np.ndarray]:
        """Places in ``inner`` by the depth of the nodes, the deepest first."""
        depth = times_below(self.inner, self.last)[self.inner]
        order = np.argsort(depth, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(depth[order])) + 1)[::-1]
