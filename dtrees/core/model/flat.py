"""Trees as one array per attribute, the trees one behind the other: `packing` without packing.

A message of many small arrays costs a frame for each of them, and trees that were made by hand
cannot be packed. `split_trees` takes the arrays apart again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dtrees.core.model.integers import Arrays
from dtrees.core.model.tree import REGRESSION, UNITS, Tree

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
    """All arrays of some trees, bit for bit; O(nodes).

    Parameters
    ----------
    trees : sequence of Tree
        Of one table and criterion, at least one.

    Returns
    -------
    arrays : dict of str to array
        Those of a tree, and of each tree "n_nodes", "n_words" and `UNITS`.
    facts : dict of str to int or str
        What all trees share.
    """
    arrays = {
        name: np.concatenate([getattr(tree, name) for tree in trees]) for name in trees[0].arrays()
    }
    arrays["n_nodes"] = np.array([tree.node_count for tree in trees], dtype=np.int64)
    arrays["n_words"] = np.array([len(tree.subset_words) for tree in trees], dtype=np.int64)
    for name in UNITS:
        arrays[name] = np.array([getattr(tree, name) for tree in trees])
    return arrays, {"n_columns": trees[0].n_columns, "criterion": trees[0].criterion}


def split_trees(
    all_of: Mapping[str, np.ndarray],
    words: np.ndarray,
    n_nodes: np.ndarray,
    word_counts: np.ndarray,
    *,
    n_columns: int,
    criterion: str,
    units: Mapping[str, np.ndarray],
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
    of_units = {name: array.tolist() for name, array in units.items()}
    trees = []
    for i, (n, n_words) in enumerate(zip(n_nodes.tolist(), word_counts.tolist(), strict=True)):
        nodes = slice(ends[i] - n, ends[i])
        fields: dict[str, Any] = {name: array[nodes] for name, array in locked.items()}
        for name, values in of_units.items():
            fields[name] = values[i]
        fields["subset_words"] = words[word_ends[i] - n_words : word_ends[i]] if n_words else NONE
        fields["n_columns"], fields["criterion"] = n_columns, criterion
        trees.append(Tree.of_locked(fields) if is_narrow else Tree(**fields))
    return tuple(trees)
