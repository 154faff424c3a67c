"""Trees as one array per attribute, the trees one behind the other: `packing` without packing.

A message of many small arrays costs a frame for each of them, and trees that were made by hand
cannot be packed. `dtrees.core.model.packing.split_trees` takes the arrays apart again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtrees.core.model.packing import UNITS, Arrays
from dtrees.core.model.tree import Tree


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
