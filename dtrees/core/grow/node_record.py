"""What a growth returns, and the numpy twin of a node's record (`_node_buffer.Record`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RECORD = np.dtype(
    [
        ("impurity", np.float64),
        ("gain", np.float64),
        ("n", np.uint32),
        ("subset", np.int32),
        ("left", np.int32),
        ("right", np.int32),
        ("column", np.int32),
        ("boundary", np.uint32),
        ("beyond", np.uint32),
        ("test", np.uint8),
        ("missing_left", np.uint8),
    ],
    align=True,
)


@dataclass(frozen=True)
class PartialTree:
    """Records of connected nodes."""

    # RECORD (n_nodes,): ``left`` and ``right`` are numbers in the same piece
    nodes: np.ndarray
    statistics: np.ndarray  # int64 (n_nodes, n_statistics)
    words: np.ndarray  # uint64 (n_words,)


@dataclass(frozen=True)
class RecordsOfTrees:
    """Records of trees in preorder, one tree behind the other."""

    # RECORD (n_nodes of all,): ``left`` and ``right`` are numbers in the same tree, ``subset`` is
    # an offset in all words
    nodes: np.ndarray
    statistics: np.ndarray  # int64 (n_nodes of all, n_statistics)
    words: np.ndarray  # uint64 (n_words,)
    n_nodes: np.ndarray  # int64 (n_trees,)
    units: np.ndarray  # float64 (n_trees,): of weighted targets
