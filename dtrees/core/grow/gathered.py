"""Nodes of few rows, which are gathered in one place from all blocks and finished there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import Scale
from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.shared import pieces_of_sets
from dtrees.core.grow.source import FREE, Above, DatasetSource
from dtrees.core.membership.resampling import ClassWeights, Resampling
from dtrees.core.stores.blocks.block import GatheredRows, concatenated
from dtrees.typing import Runner, serial


@dataclass(frozen=True)
class GatheredNode:
    """A node of few rows, whose subtrees are grown where its rows are gathered."""

    node: int
    tree: int
    number: int  # of the tree
    sets: tuple[int, ...]
    depth: int
    path: int
    n: int  # most rows that a set has here
    rules: tuple[GrowthRules, ...]  # by set
    scales: tuple[Scale, ...]  # by set
    class_weights: ClassWeights | None = None  # by set, where rows are without them
    above: tuple[Above, ...] | None = None  # by set, what ancestors allow it; None: anything


def stacked(parts: Sequence[GatheredRows]) -> GatheredRows:
    """Rows that come from several blocks; copies, whose arrays are aligned."""
    coded = CodedMatrix.stack([part.coded for part in parts])
    target = Target.stack([part.target for part in parts])
    times = concatenated([part.times for part in parts])
    masks = concatenated([part.masks for part in parts])
    n_rows = np.concatenate([part.n_rows for part in parts])
    return GatheredRows(coded, target, times, masks, n_rows)


def each_node(parts: Sequence[GatheredRows]) -> Iterator[GatheredRows]:
    """The rows of each node, from blocks of which each has some of all nodes."""
    rows, n_nodes = stacked(parts), len(parts[0].n_rows)
    if n_nodes == 1:
        yield rows
        return
    order = np.argsort(
        np.repeat(np.tile(np.arange(n_nodes), len(parts)), rows.n_rows), kind="stable"
    )
    take = rows.coded.taker()
    for n in rows.n_rows.reshape(-1, n_nodes).sum(axis=0).tolist():
        own, order = order[:n], order[n:]
        times = None if rows.times is None else rows.times.take(own)
        masks = None if rows.masks is None else rows.masks.take(own)
        yield GatheredRows(take(own), rows.target.take(own), times, masks, np.array([n]))


def grow_gathered(
    rows: GatheredRows,
    node: GatheredNode,
    values: tuple[np.ndarray, np.ndarray] | None,
    arena: Arena,
    run: Runner = serial,
    work: Counter[str] | None = None,
) -> tuple[PartialTree, ...]:
    """Grow the subtrees of a node, a piece for each of its sets, on one thread.

    `rows` are all of the node. `values` is `CodeBook.code_values`, for random splits. The runner's
    event ``cancelled`` ends the growth by a `CancelledError`. `work` is told what the sets have
    shared (`dtrees.core.grow.shared`).
    """
    weights, target = node.class_weights, rows.target
    if rows.times is not None:
        target = target.bagged(rows.times)
    how = {"run": run, "values": values, "arena": arena, "scale": node.scales[0], "work": work}
    source = DatasetSource(rows.coded, target, node.rules[0], **how)
    if rows.masks is None:
        if weights is not None:
            source = replace(source, target=weights.of(target, 0))
        above = FREE if node.above is None else node.above[0]
        return (source.finish(node.depth, node.path, above),)
    bits = np.array(node.sets, dtype=np.uint64)
    masks, combination = np.unique(rows.masks, return_inverse=True)
    mix = (masks >> bits[:, None]) & np.uint64(1) > 0
    resampling = Resampling(combination.astype(np.uint16), mix, weights)
    where = node.depth, node.path
    how = {"scales": node.scales, "above": node.above}
    return tuple(pieces_of_sets(source, node.rules, resampling, *where, **how))
