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
    """Records of connected nodes.

    Attributes
    ----------
    nodes : `dtrees.core.grow.node_record.RECORD` (n_nodes,)
        ``left`` and ``right`` are numbers in the same piece.
    statistics : int64 (n_nodes, n_statistics)
    words : uint64 (n_words,)
    """

    nodes: np.ndarray
    statistics: np.ndarray
    words: np.ndarray


@dataclass(frozen=True)
class RecordsOfTrees:
    """Records of trees in preorder, one tree behind the other.

    Attributes
    ----------
    nodes : `dtrees.core.grow.node_record.RECORD` (n_nodes of all,)
        ``left`` and ``right`` are numbers in the same tree, ``subset`` is an offset in all words.
    statistics : int64 (n_nodes of all, n_statistics)
    words : uint64 (n_words,)
    n_nodes : int64 (n_trees,)
    units : float64 (n_trees,)
        Of weighted targets.
    """

    nodes: np.ndarray
    statistics: np.ndarray
    words: np.ndarray
    n_nodes: np.ndarray
    units: np.ndarray
