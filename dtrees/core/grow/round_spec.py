"""What trees are grown from in rounds: the blocks that hold their rows, and their roots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from dtrees._random import BOOTSTRAP, keyed_largest
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.criteria import CRITERIA
from dtrees.core.data.scale import Scale, scale_of_sums
from dtrees.core.grow.assembly import Thresholds
from dtrees.core.grow.gathered import GatheredNode
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.membership.resampling import ClassWeights
from dtrees.core.membership.shares import Shares
from dtrees.core.stores.blocks._node_counts import CLASS_0, HIGHEST, TARGET, WEIGHT, N
from dtrees.core.stores.blocks.block import Common
from dtrees.core.stores.blocks.messages import Counts, Root, SplitUpdate
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.core.grow.tree_batch import TreeBatch

HISTOGRAM_BUDGET = 256 * 2**20
GATHER_ROWS = 65_536


@dataclass(frozen=True, eq=False)
class RoundSpec:
    """What trees are grown from in rounds."""

    common: Common
    sample: CodedMatrix  # at least one row, whose columns are those of the table, and as sparse
    target: Target  # of the same rows, as one of a bag where there are bags
    thresholds: Thresholds  # `CodeBook.thresholds`
    n_sets: int
    n_rows: np.ndarray  # int64 (n_sets,), rows of positive weight of each training set
    shares: Shares | None = None
    may_be_empty: bool = False  # whether a bag could have no rows that count
    # `CodeBook.code_values`, for random splits: float64, int64 (n_columns + 1,)
    values: tuple[np.ndarray, np.ndarray] | None = None
    histogram_budget: int = HISTOGRAM_BUDGET  # bytes of the histograms of a round
    gather_rows: int = GATHER_ROWS  # nodes of at most so many rows are gathered in one place
    n_stored: int = 0  # cells that the sparse columns of all rows store, about
    # of each set, where they are not those of the target, which then has none
    class_weights: ClassWeights | None = None
    run: Runner = serial  # searches the codes of a node, a task for each set

    @property
    def is_poisson(self) -> bool:
        """Whether sums have a scale that depends on rows: those of a deviance of one target."""
        return self.common.rules.criterion == "poisson" and self.target.n_outputs == 1

    @property
    def is_small(self) -> bool:
        """Whether trees are gathered in one place as they are: nothing is counted in rounds.

        Medians are not sums of what blocks count.
        """
        depth = self.common.rules.max_depth
        if not CRITERIA[self.common.rules.criterion].has_sums:
            return True
        return depth != 0 and int(self.n_rows.max(initial=0)) <= self.gather_rows

    def weighed(self, target: Target, heaviest: float | None) -> RoundSpec:
        """The same of rows that weigh something else; `heaviest` as of `Draws`."""
        draws = self.common.draws
        if draws is None:
            return replace(self, target=target)
        if draws.pasted is None:
            target = target.bagged(np.ones(1, dtype=np.uint16))
        common = replace(self.common, draws=replace(draws, heaviest=heaviest))
        may_be_empty = self.may_be_empty or heaviest is not None
        return replace(self, common=common, target=target, may_be_empty=may_be_empty)

    def some(self, numbers: Sequence[int]) -> RoundSpec:
        """What a round asks of some of the sets."""
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

    def grow(
        self,
        spec: RoundSpec,
        numbers: Sequence[int],
        begin: Roots,
        heard: Callable[[str, int], object],
    ) -> list[TreeBatch]:
        """Grow the nodes that are spread, in one or more batches of trees."""

    def finish(
        self, update: SplitUpdate, nodes: Sequence[GatheredNode]
    ) -> Iterable[tuple[int, tuple[PartialTree, ...]]]:
        """Take the last update; then return subtrees of nodes, by their number, in any order."""


@dataclass(frozen=True)
class Roots:
    """Where the trees of a batch begin."""

    roots: list[Root]
    # by tree, int64 (n_sets, 10 + n_classes), as blocks count; None: they have not been asked
    sums: list[np.ndarray] | None = None


def roots_of(spec: RoundSpec, numbers: Sequence[int], blocks: Blocks) -> Roots:
    """The root of each tree, with what it needs to know of its bag.

    Bags are summed up before they are counted for the scale of a deviance, because they may be
    empty, or because they are gathered at once. With several sets, empty bags are seen when they
    are counted.
    """
    roots = [Root(node, number) for node, number in enumerate(numbers)]
    draws = spec.common.draws
    is_poisson = spec.is_poisson
    may_be_empty = draws is not None and spec.may_be_empty and spec.n_sets == 1
    if not (may_be_empty or is_poisson or spec.is_small):
        return Roots(roots)
    bags = blocks.bags(roots, spec.n_sets)
    empty = [index for index, (counts, _) in enumerate(bags) if counts.sums[0, N] == 0]
    if empty and spec.n_sets == 1:
        assert draws is not None
        for index in empty:
            keys = np.array(sorted(set(bags[index][1])), dtype=np.uint64)
            key = int(keyed_largest(draws.seed, BOOTSTRAP, roots[index].number, keys))
            roots[index] = replace(roots[index], key=key)
        again = blocks.bags([roots[index] for index in empty], spec.n_sets)
        for index, bag in zip(empty, again, strict=True):
            bags[index] = bag
    for index, (counts, _) in enumerate(bags):
        if is_poisson:  # the same for all sets (`sets_of_scales`)
            scale = scale_of_root(spec, spec.target, counts.sums[0])
            roots[index] = replace(roots[index], fixed_point=scale.fixed_point)
    return Roots(roots, [counts.sums for counts, _ in bags])


def sets_of_scales(spec: RoundSpec, begin: Roots) -> list[list[int]]:
    """Sets whose trees of a deviance can grow together: those that have the same scales.

    What a row adds depends on the scale. A set without a row in one of the bags is alone.
    """
    assert begin.sums is not None
    groups: dict[tuple[float, ...], list[int]] = {}
    alone = []
    for number in range(spec.n_sets):
        rows = [sums[number] for sums in begin.sums]
        if any(own[N] == 0 for own in rows):
            alone.append([number])
            continue
        scales = tuple(scale_of_root(spec, spec.target, own).fixed_point for own in rows)
        groups.setdefault(scales, []).append(number)
    return [*groups.values(), *alone]


def weighed(sums: np.ndarray, class_weights: ClassWeights, sets: Sequence[int]) -> np.ndarray:
    """Sums of some sets with their class weights; int64 (n_sets, 10 + n_classes), a copy."""
    found = sums.copy()
    found[:, CLASS_0:] *= class_weights.multiplier[sets]
    found[:, WEIGHT] = found[:, CLASS_0:].sum(axis=1)
    found[:, TARGET] = found[:, CLASS_0 + 1] if found.shape[1] > CLASS_0 + 1 else 0
    return found


def scale_of_root(spec: RoundSpec, target: Target, sums: np.ndarray) -> Scale:
    """The scale of a tree whose root has these sums, int64 (10 + n_classes,).

    `target` is that of `spec`, with the class weights that are in the sums.
    """
    criterion = spec.common.rules.criterion
    weight, highest = sums[[WEIGHT, HIGHEST]].tolist()
    unit = target.weight_unit
    return scale_of_sums(weight, max(1, highest), unit, criterion, target.n_outputs)
