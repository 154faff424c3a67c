"""Pieces of a grown tree put together.

Growth leaves the large nodes in one piece and every subtree in another, divided as the threads or
blocks happened to divide them. The tree that is made of them does not show that: nodes are
numbered in preorder and subsets are stored in the order of their nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dtrees.coding.outputs import Outputs
from dtrees.coding.target import Target
from dtrees.core.data.criteria import REGRESSION
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow._node_buffer import arrays_of, fractions_of, join_records
from dtrees.core.grow.node_record import PartialTree, RecordsOfTrees
from dtrees.core.model.flat import split_trees
from dtrees.core.model.tree import IN_SUBSET, Tree, count_type

NODES_AT_ONCE = 2**13  # of trees whose records are put side by side
SUBTREE = -3  # column of a record that stands for a later piece, whose number is in `left`

Thresholds = Callable[..., tuple[np.ndarray, np.ndarray]]  # `CodeBook.thresholds`


def join(pieces: Sequence[PartialTree]) -> PartialTree:
    """One piece in preorder. O(nodes).

    Piece 0 holds the root as record 0, in any order of records; a record of it whose column is
    ``SUBTREE`` stands for the piece numbered in its ``left``. The others are in preorder.
    """
    top = pieces[0].nodes
    if len(top) == 1 and top["column"][0] == SUBTREE:
        return pieces[1]
    nodes, statistics = join_records(
        [piece.nodes for piece in pieces],
        [piece.statistics for piece in pieces],
        [len(piece.words) for piece in pieces],
    )
    words = np.concatenate([piece.words for piece in pieces])
    return PartialTree(nodes, statistics, words)


def trees_of(
    pieces: Iterable[PartialTree],
    target: Target,
    n_codes: np.ndarray,
    thresholds: Thresholds,
    rules: GrowthRules,
    weight_units: Sequence[float] | None = None,
    units: Sequence[float] | None = None,
) -> list[Tree]:
    """The frozen trees of pieces in preorder; their arrays are stretches of common ones.

    A piece is a tree, and is not held longer than it takes to make it. All are the same tree of a
    forest, of `rules`, grown on different sets of rows. `thresholds` is `CodeBook.thresholds`.
    `weight_units` and `units` are those of the weights and weighted targets of each piece; None:
    those of the target.
    """
    trees: list[Tree] = []
    for some in _together(pieces):  # their records are copied
        of_some = slice(len(trees), len(trees) + len(some))
        of_weights, of_sums = (
            None if given is None else given[of_some] for given in (weight_units, units)
        )
        trees += frozen(some, target, n_codes, thresholds, rules, of_weights, of_sums)
    return trees


def _together(pieces: Iterable[PartialTree]) -> Iterator[list[PartialTree]]:
    """Stretches of pieces of at most `NODES_AT_ONCE` nodes, or of one piece.

    A stretch is emptied before the next piece is asked for, which may grow in its memory.
    """
    some: list[PartialTree] = []
    n_nodes = 0
    for piece in pieces:
        if some and n_nodes + len(piece.nodes) > NODES_AT_ONCE:
            yield some
            some.clear()
            n_nodes = 0
        some.append(piece)
        n_nodes += len(piece.nodes)
        del piece
        if n_nodes >= NODES_AT_ONCE:
            yield some
            some.clear()
            n_nodes = 0
    if some:
        yield some


def frozen(
    pieces: Sequence[PartialTree],
    target: Target,
    n_codes: np.ndarray,
    thresholds: Thresholds,
    rules: GrowthRules,
    weight_units: Sequence[float] | None = None,
    units: Sequence[float] | None = None,
    numbers: Sequence[int] | None = None,
) -> list[Tree]:
    """The trees of pieces whose records are put side by side; arguments as for `trees_of`.

    `numbers` are those of the trees of a forest, where they differ.
    """
    nodes, words = pieces[0].nodes, pieces[0].words
    if len(pieces) > 1:
        raw = np.concatenate([piece.nodes.view(np.uint8) for piece in pieces])
        nodes = raw.view(nodes.dtype)  # field by field is slow
        n_words = np.cumsum([0, *(len(piece.words) for piece in pieces)])
        words = np.concatenate([piece.words for piece in pieces])
        if len(words) > 0:  # subsets count from the first
            shift = np.repeat(n_words[:-1], [len(piece.nodes) for piece in pieces])
            nodes["subset"] += np.where(nodes["subset"] >= 0, shift, 0)
    fractions = None
    if rules.random_splits:
        numbers = [rules.tree] * len(pieces) if numbers is None else numbers
        own = zip(pieces, numbers, strict=True)
        fractions = np.concatenate([fractions_of(p.nodes, rules.seed, tree) for p, tree in own])
    sums = np.stack([piece.statistics[0] for piece in pieces])
    statistics_type = np.int64 if rules.criterion in REGRESSION else count_type(sums)
    records = RecordsOfTrees(
        nodes,
        np.concatenate(  # a copy: they may be lent
            [piece.statistics for piece in pieces], dtype=statistics_type, casting="same_kind"
        ),
        words,
        np.array([len(piece.nodes) for piece in pieces]),
        np.full(len(pieces), target.wy_unit if units is None else units),
    )
    of_weights = target.weight_unit if weight_units is None else weight_units
    criterion, offset = rules.criterion, target.offset
    of_records = records, n_codes, thresholds, criterion, of_weights, offset, fractions
    trees = trees_of_records(*of_records)
    if isinstance(target, Outputs):
        return [replace(tree, **target.facts_of_trees()) for tree in trees]
    return trees


def trees_of_records(
    records: RecordsOfTrees,
    n_codes: np.ndarray,
    thresholds: Thresholds,
    criterion: str,
    weight_units: float | Sequence[float],
    offset: float = 0.0,
    fractions: np.ndarray | None = None,
) -> list[Tree]:
    """The frozen trees of records that stand side by side; other parameters as for `trees_of`.

    Statistics of the records are of the type that those of the trees have. `weight_units` is one of
    each tree, or of all; `offset` is added to means. `fractions` are those of random cuts, as for
    `CodeBook.thresholds`.
    """
    nodes, n_nodes = records.nodes, records.n_nodes
    if len(n_nodes) == 0:
        return []
    threshold, code = thresholds(nodes["column"], nodes["boundary"], nodes["beyond"], fractions)
    roots = n_nodes.cumsum() - n_nodes
    subset_offset = np.full(len(nodes), -1, dtype=np.int64)
    words, n_words = records.words, np.zeros(len(roots), dtype=np.int64)
    if len(words) > 0:
        subset_offset, words, n_words = subsets_of_trees(records, roots, n_codes)
    arrays: dict[str, Any] = {
        **arrays_of(nodes),
        "code": code,
        "threshold": threshold,
        "n_node_samples": nodes["n"].astype(count_type(nodes["n"][roots])),
        "statistics": records.statistics,
        "subset_offset": subset_offset,
    }
    assert ((subset_offset >= 0) == (arrays["test"] == IN_SUBSET)).all()
    units = {
        "weight_unit": np.full(len(n_nodes), weight_units),
        "unit": records.units,
        "offset": np.full(np.shape(records.units), offset),
    }
    facts: dict[str, Any] = {"n_columns": len(n_codes), "criterion": criterion}
    return list(split_trees(arrays, words, n_nodes, n_words, **facts, units=units))


def subsets_of_trees(
    records: RecordsOfTrees, roots: np.ndarray, n_codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Subset offsets of nodes in their tree, words of all trees, and how many each has.

    Words are stored in the order of the nodes.
    """
    nodes, words = records.nodes, records.words
    offset = np.full(len(nodes), -1, dtype=np.int64)
    with_subset = np.flatnonzero(nodes["subset"] >= 0)
    length = n_codes[nodes["column"][with_subset]] // 64 + 1
    start = np.cumsum(length) - length
    source = np.repeat(nodes["subset"][with_subset] - start, length)
    words = words[source + np.arange(len(source))]
    of_root = np.searchsorted(with_subset, np.append(roots, len(nodes)))
    first_word = np.append(start, len(words))[of_root]
    offset[with_subset] = start - np.repeat(first_word[:-1], records.n_nodes)[with_subset]
    return offset, words, np.diff(first_word)
