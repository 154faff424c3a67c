"""Pieces of a grown tree put together.

Growth leaves the large nodes in one piece and every subtree in another, cut as the threads or
shards happened to cut them. The tree that is made of them does not show the cuts: nodes are
numbered in preorder and subsets are stored in the order of their nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dtrees.coding.target import Target
from dtrees.core._assembly import arrays_of
from dtrees.core.model import IN_SUBSET, REGRESSION, Tree, count_type

SUBTREE = -3  # column of a record that stands for a later piece, whose number is in `left`

Thresholds = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Piece:
    """Records of connected nodes.

    Attributes
    ----------
    nodes : `dtrees.core.structs.RECORD` (n_nodes,)
        ``left`` and ``right`` are numbers in the same piece.
    statistics : int64 (n_nodes, n_statistics)
    words : uint64 (n_words,)
    """

    nodes: np.ndarray
    statistics: np.ndarray
    words: np.ndarray


def join(pieces: Sequence[Piece]) -> Piece:
    """One piece in preorder. O(nodes).

    Parameters
    ----------
    pieces : sequence of Piece
        Piece 0 holds the root as record 0, in any order of records; a record of it whose column is
        ``SUBTREE`` stands for the piece numbered in its ``left``. The others are in preorder.
    """
    top = pieces[0].nodes
    if len(top) == 1 and top["column"][0] == SUBTREE:
        return pieces[1]
    column, left, right = (top[name].tolist() for name in ("column", "left", "right"))
    start = np.zeros(len(top), dtype=np.int64)
    position = 0
    stack = [0]
    while stack:
        i = stack.pop()
        start[i] = position
        if column[i] == SUBTREE:
            position += len(pieces[left[i]].nodes)
            continue
        position += 1
        if left[i] >= 0:
            stack += (right[i], left[i])
    nodes = np.empty(position, dtype=top.dtype)
    statistics = np.empty((position, pieces[0].statistics.shape[1]), dtype=np.int64)
    words = np.concatenate([piece.words for piece in pieces])
    first_word = np.cumsum([0] + [len(piece.words) for piece in pieces])
    own = np.flatnonzero(top["column"] != SUBTREE)
    whole = top[own]
    inner = whole["left"] >= 0
    whole["left"][inner] = start[whole["left"][inner]]
    whole["right"][inner] = start[whole["right"][inner]]
    nodes[start[own]] = whole
    statistics[start[own]] = pieces[0].statistics[own]
    for i in np.flatnonzero(top["column"] == SUBTREE).tolist():
        number = left[i]
        piece = pieces[number]
        part = nodes[start[i] : start[i] + len(piece.nodes)]
        part.view(np.uint8)[:] = piece.nodes.view(np.uint8)  # field by field is slow
        part["left"][piece.nodes["left"] >= 0] += start[i]
        part["right"][piece.nodes["right"] >= 0] += start[i]
        part["subset"][piece.nodes["subset"] >= 0] += first_word[number]
        statistics[start[i] : start[i] + len(piece.nodes)] = piece.statistics
    return Piece(nodes, statistics, words)


def in_node_order(
    nodes: np.ndarray, words: np.ndarray, n_codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Subset offsets and words, stored in the order of the nodes."""
    offset = np.full(len(nodes), -1, dtype=np.int64)
    if len(words) == 0:
        return offset, words
    with_subset = np.flatnonzero(nodes["subset"] >= 0)
    length = n_codes[nodes["column"][with_subset]] // 64 + 1
    end = np.cumsum(length)
    offset[with_subset] = end - length
    source = np.repeat(nodes["subset"][with_subset] - (end - length), length)
    return offset, words[source + np.arange(len(source))]


def tree_of(
    piece: Piece,
    target: Target,
    n_codes: np.ndarray,
    thresholds: Thresholds,
    criterion: str,
) -> Tree:
    """The frozen tree of a piece in preorder.

    Parameters
    ----------
    piece : Piece
    target : Target
        For the units of the statistics.
    n_codes : int64 (n_columns,)
    thresholds : callable
        `dtrees.coding.CodeBook.thresholds`.
    criterion : str
    """
    nodes = piece.nodes
    arrays = arrays_of(nodes)
    threshold, code = thresholds(nodes["column"], nodes["boundary"], nodes["beyond"])
    subset_offset, subset_words = in_node_order(nodes, piece.words, n_codes)
    assert np.count_nonzero(subset_offset >= 0) == np.count_nonzero(arrays["test"] == IN_SUBSET)
    statistics_type = np.int64 if criterion in REGRESSION else count_type(piece.statistics)
    return Tree(
        **arrays,
        code=code,
        threshold=threshold,
        subset_offset=subset_offset,
        subset_words=subset_words,
        n_node_samples=nodes["n"].astype(count_type(nodes["n"])),
        statistics=piece.statistics.astype(statistics_type),  # a copy: they may be lent
        n_columns=len(n_codes),
        criterion=criterion,
        weight_unit=target.weight_unit,
        unit=target.wy_unit,
        offset=target.offset,
    )
