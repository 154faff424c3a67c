"""Nodes of few rows, which are gathered in one place from all blocks and finished there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
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
from dtrees.core.stores.blocks.block import EVERYONE, GatheredRows
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
    """Rows of a node that come from several blocks; copies, whose arrays are aligned."""
    coded = CodedMatrix.stack([part.coded for part in parts])
    target = Target.stack([part.target for part in parts])
    if parts[0].combination is None:
        return GatheredRows(coded, target, None, EVERYONE)
    masks, number = np.unique(np.concatenate([part.masks for part in parts]), return_inverse=True)
    ends = np.cumsum([len(part.masks) for part in parts])
    of_parts = np.split(number.astype(np.uint16), ends[:-1])
    combinations = [own[part.combination] for own, part in zip(of_parts, parts, strict=True)]
    return GatheredRows(coded, target, np.concatenate(combinations), masks)


def grow_gathered(
    gathered: Sequence[GatheredRows],
    node: GatheredNode,
    values: tuple[np.ndarray, np.ndarray] | None,
    arena: Arena,
    run: Runner = serial,
    work: Counter[str] | None = None,
) -> tuple[PartialTree, ...]:
    """Grow the subtrees of a node, a piece for each of its sets, on one thread.

    `gathered` are all rows of the node, from all blocks. `values` is `CodeBook.code_values`, for
    random splits. The runner's event ``cancelled`` ends the growth by a `CancelledError`. `work` is
    told what the sets have shared (`dtrees.core.grow.shared`).
    """
    rows, weights = stacked(gathered), node.class_weights
    how = {"run": run, "values": values, "arena": arena, "scale": node.scales[0], "work": work}
    source = DatasetSource(rows.coded, rows.target, node.rules[0], **how)
    if rows.combination is None:
        if weights is not None:
            source = replace(source, target=weights.of(rows.target, 0))
        above = FREE if node.above is None else node.above[0]
        return (source.finish(node.depth, node.path, above),)
    bits = np.array(node.sets, dtype=np.uint64)
    mix = (rows.masks >> bits[:, None]) & np.uint64(1) > 0
    resampling = Resampling(rows.combination, mix, weights)
    where = node.depth, node.path
    how = {"scales": node.scales, "above": node.above}
    return tuple(pieces_of_sets(source, node.rules, resampling, *where, **how))
