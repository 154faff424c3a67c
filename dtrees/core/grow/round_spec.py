"""What trees are grown from in rounds, and the blocks that hold their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.grow.assembly import Thresholds
from dtrees.core.grow.gathered import GatheredNode
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.membership.class_weights import ClassWeights
from dtrees.core.membership.shares import Shares
from dtrees.core.stores.blocks.block import Common
from dtrees.core.stores.blocks.messages import Counts, HistogramRequest, Root, SplitUpdate
from dtrees.typing import Runner, serial

HISTOGRAM_BUDGET = 256 * 2**20
GATHER_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class RoundSpec:
    """What trees are grown from in rounds.

    Attributes
    ----------
    common : Common
    sample : CodedMatrix
        At least one row of the table, whose columns are those of all, and as sparse.
    target : Target
        Of the same rows.
    thresholds : callable
        `CodeBook.thresholds`.
    n_sets : int
    n_rows : int64 (n_sets,)
        Rows of positive weight of each training set.
    shares : Shares, default=Shares()
    may_be_empty : bool, default=False
        Whether a bag could have no rows that count.
    values : (float64, int64 (n_columns + 1,)) or None, default=None
        `CodeBook.code_values`, for random splits.
    histogram_budget : int
        Bytes of the histograms of a round.
    gather_rows : int
        Nodes of at most so many rows are gathered in one place.
    n_stored : int, default=0
        Cells that the sparse columns of all rows store, about.
    class_weights : ClassWeights or None, default=None
        Of each set, where they are not those of the target, which then has none.
    run : Runner, default=serial
        Searches the codes of a node, a task for each set.
    """

    common: Common
    sample: CodedMatrix
    target: Target
    thresholds: Thresholds
    n_sets: int
    n_rows: np.ndarray
    shares: Shares = field(default_factory=Shares)
    may_be_empty: bool = False
    values: tuple[np.ndarray, np.ndarray] | None = None
    histogram_budget: int = HISTOGRAM_BUDGET
    gather_rows: int = GATHER_ROWS
    n_stored: int = 0
    class_weights: ClassWeights | None = None
    run: Runner = serial

    @property
    def is_small(self) -> bool:
        """Whether trees are gathered in one place as they are: nothing is counted in rounds."""
        depth = self.common.rules.max_depth
        return depth != 0 and int(self.n_rows.max(initial=0)) <= self.gather_rows

    def some(self, numbers: Sequence[int]) -> RoundSpec:
        """The same for some of the sets."""
        assert self.common.masks is not None
        own = np.zeros_like(self.common.masks)
        for place, number in enumerate(numbers):
            own |= ((self.common.masks >> np.uint64(number)) & np.uint64(1)) << np.uint64(place)
        common = replace(self.common, masks=own)
        n_rows = self.n_rows[numbers]
        weights = None if self.class_weights is None else self.class_weights.some(numbers)
        n_sets = len(numbers)
        found = replace(self, common=common, n_sets=n_sets, n_rows=n_rows, class_weights=weights)
        return replace(found, may_be_empty=True)


class Blocks(Protocol):
    """All rows, wherever they are."""

    def begin(self, common: Common) -> None:
        """Begin a growth; the positions of the one before are forgotten."""

    def bags(self, roots: Sequence[Root], n_sets: int) -> list[tuple[Counts, list[int]]]:
        """By tree: sums of its bag in each set, and the key of the largest draw of each block."""

    def count(self, update: SplitUpdate | None, requests: Sequence[HistogramRequest]) -> Counts:
        """Take an update, if there is one; then return sums and histograms of some nodes."""

    def finish(
        self, update: SplitUpdate, nodes: Sequence[GatheredNode]
    ) -> Iterable[tuple[int, tuple[PartialTree, ...]]]:
        """Take the last update; then return subtrees of nodes, by their number, in any order."""
