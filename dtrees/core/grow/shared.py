"""Which training sets of a table grow together, and what each of them adds up to.

Sets whose scores are read from the same integers grow together (`_shared_growth`), up to
64 at a time; class weights are multiplied when they are read, and may be other ones in each set.
Sets that divide the rows into too many cells are grown set by set from the same codes::

    sets        0 1 2 3 4 5 6 7 8 9 10          ten folds and all rows
    bundles     [0 1 2 3 4 5 6 7 8 9 10]        one growth, pieces by set
                [0 1 2] [3 .. 10]               entropy: the scale of x log x may differ
                [0] [1] [2] ...                 a growth each

Either way the tree of a set is that of a fit in which the rows outside of it weigh nothing, bit for
bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace

import numpy as np

from dtrees.coding.coded import SPARSE, CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.criteria import CRITERIA, LOGARITHMS, OF_USERS
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import Scale, gain_unit_of, scale_of_sums, units_of
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow._shared_growth import (
    WIDTH_OF_INTERVALS,
    Subtree,
    TrainingSets,
    grow_together,
    has_intervals,
)
from dtrees.core.grow.assembly import Thresholds, join, trees_of
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.source import CANCELLED, FREE, Above, DatasetSource
from dtrees.core.membership.resampling import ClassWeights, Resampling, without_class_weights
from dtrees.core.model.tree import Tree
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.shared._shared_nodes import MOST_CELLS, MOST_SETS

SIZES = (MOST_SETS, MOST_SETS - 1, 32, 16, 8, 4, 2)  # of bundles
MOST_NUMBERS = 2**24  # of the histograms of a column in a bundle, 8 bytes each, for every thread
LEAST_BLOCKS = 10  # histograms of a column in a bundle of two sets
MOST_UNITS = 2**62  # no leaf weighs more


def grow(
    source: DatasetSource,
    rules: Sequence[GrowthRules],
    resampling: Resampling,
    thresholds: Thresholds,
) -> list[Tree]:
    """Grow one tree per training set, as `pieces_of_sets`.

    `thresholds` is `CodeBook.thresholds`.
    """
    own, target, n_codes = resampling.class_weights, source.target, source.coded.n_codes
    units = None if own is None else [own.unit(target, i) for i in range(resampling.n_sets)]
    pieces = pieces_of_sets(source, rules, resampling)
    return trees_of(pieces, target, n_codes, thresholds, rules[0], units)


def pieces_of_sets(
    source: DatasetSource,
    rules: Sequence[GrowthRules],
    resampling: Resampling,
    depth: int = 0,
    path: int = 0,
    scales: Sequence[Scale] | None = None,
    above: Sequence[Above] | None = None,
) -> Iterator[PartialTree]:
    """Grow the subtree of each set; yields a tree in preorder, for each set in turn.

    What grows together has grown before the first tree is given out; the others grow when it is
    their turn, in the memory of those that are done with.

    The source has all rows, in units that are those of every set. `rules` of sets differ in limits
    of rows and weight (`dtrees.core.membership.shares`). Every set has a cell once or not at all,
    and some weight. `scales` are those of the sets; None: of their rows. `above` is, by set, what
    the ancestors of the node allow it.
    """
    coded, target, tuning = source.coded, source.target, source.tuning
    sets = Sets(target, rules, resampling, scales)
    pieces: dict[int, list[Subtree]] = {}
    largest = numbers_of(coded, target, rules[0], tuning)
    for bundle in [] if why_alone(coded, target, rules[0], tuning) else sets.bundles(largest):
        scale = sets.scales[bundle[0]]
        dataset = Dataset(coded, sets.counts, rules[0], scale, source.values, alone=True)
        own = None if sets.class_weights is None else sets.class_weights_of(bundle)
        times = (
            target.times
            if draws(rules[0], coded)
            and dataset.is_weighted
            and own is None
            and target.n_outputs == 1
            else None
        )
        cells, has = sets.resampling.cells_of(bundle)
        total_weight, least_of = sets.limits_of(bundle)
        shared = TrainingSets(dataset, cells, has, total_weight, least_of, times, tuning, own)
        if above is not None:
            shared.inherit([above[number] for number in bundle])
        how = source.run, source.n_threads, source.cancelled, tuning
        grown = grow_together(shared, source.arena, *how, depth, path)
        if source.cancelled():
            raise CancelledError(CANCELLED)
        if source.work is not None:  # counts that do not depend on the number of threads
            source.work.update(
                shared_nodes=shared.n_shared_nodes,
                shared_rows=shared.n_shared_rows,
                bounded_columns=shared.n_bounded,
                alive_columns=shared.n_alive,
            )
        pieces.update(zip(bundle, grown, strict=True))
        del grown  # records are there twice for one set at a time
    for number in range(resampling.n_sets):
        if number in pieces:
            yield whole(pieces.pop(number))  # nothing is left of it here
        else:
            mine, scale = sets.target(number), sets.scales[number]
            alone = replace(source, target=mine, rules=sets.rules[number], scale=scale)
            yield alone.finish(depth, path, FREE if above is None else above[number])


def whole(subtrees: list[Subtree]) -> PartialTree:
    """A tree in preorder."""
    pieces = [subtree.piece() for subtree in subtrees]
    return pieces[0] if len(pieces) == 1 else join(pieces)


def draws(rules: GrowthRules, coded: CodedMatrix) -> bool:
    """Whether columns or splits are drawn."""
    most = rules.max_features
    return rules.random_splits or (most is not None and most < coded.n_columns)


def numbers_of(
    coded: CodedMatrix, target: Target, rules: GrowthRules, tuning: Tuning | None = None
) -> int:
    """Numbers of the largest histogram of a column.

    Codes that no row can hold take no room. Columns of many codes are counted by interval, but in
    nodes of few rows.
    """
    tuning = tuning or Tuning()
    dense = coded.storage != SPARSE
    width = np.minimum(coded.n_codes[dense] + 1, 2 * coded.n_rows)
    is_ordered = coded.n_ordered[dense] == coded.n_codes[dense]
    has_bounds = (
        rules.monotonic is None
        and not CRITERIA[rules.criterion].is_function
        and target.n_outputs == 1
    )
    if has_intervals(draws(rules, coded), has_bounds, coded.n_rows, target.n_classes, tuning):
        many = is_ordered & (coded.n_codes[dense] >= max(tuning.interval_codes, WIDTH_OF_INTERVALS))
        few = max(WIDTH_OF_INTERVALS, 2 * tuning.interval_rows)
        width[many] = np.minimum(width[many], few)
    return int(width.max(initial=0)) * (target.n_statistics + 1)


def why_alone(coded: CodedMatrix, target: Target, rules: GrowthRules, tuning: Tuning) -> str:
    """Why no sets of such a growth go together; empty where they may.

    To count all codes of a column of many codes, for each cell and set, costs more than growths one
    by one. Bounds of intervals know no orders, random splits, several targets or functions.
    """
    if rules.criterion in OF_USERS:
        return "their criterion is a user's"
    if not CRITERIA[rules.criterion].has_sums:
        return "their criterion has no sums that sets could share"
    many = (coded.storage != SPARSE) & (coded.n_codes >= tuning.interval_codes)
    is_function = CRITERIA[rules.criterion].is_function
    if tuning.shared_rows > 0 and (target.n_outputs > 1 or is_function) and many.any():
        what = f"criterion={rules.criterion!r}" if is_function else "several targets"
        return f"columns of many values have no bounds of intervals with {what}"
    has_no_bounds = rules.random_splits or rules.monotonic is not None
    if tuning.shared_rows > 0 and has_no_bounds and 2 * many.sum() > coded.n_columns:
        what = "random splits" if rules.random_splits else "monotonic_cst"
        return f"most columns have many values, whose intervals have no bounds with {what}"
    return ""


def n_alone(
    coded: CodedMatrix, target: Target, rules: GrowthRules, resampling: Resampling
) -> tuple[int, str]:
    """How many of some sets grow on their own, and why those do."""
    reason = why_alone(coded, target, rules, Tuning())
    if reason:
        return resampling.n_sets, reason
    sets = Sets(target, [rules] * resampling.n_sets, resampling)
    numbers = numbers_of(coded, target, rules)
    n = resampling.n_sets - sum(map(len, sets.bundles(numbers)))
    company = Counter(scale.fixed_point for scale in sets.scales)
    if n == 0:
        return 0, ""
    if LEAST_BLOCKS * numbers > MOST_NUMBERS:
        return n, "counts of two of them would take too much memory"
    if sets.have_one_scale and 1 in company.values():
        return n, "no other one has the same scale of logarithms"
    return n, "no other one of their group has rows in common with them"


class Sets:
    """What the rows of every set add up to, and which sets may grow together.

    `counts` is what rows add to the sums of all sets: the target without class weights. `scales`
    and `units` (of weights) are by set. `have_one_scale` says whether sets that grow together need
    the same scale of logarithms. Those that have class weights do not: they read none from a common
    table.
    """

    def __init__(
        self,
        target: Target,
        rules: Sequence[GrowthRules],
        resampling: Resampling,
        scales: Sequence[Scale] | None = None,
    ) -> None:
        self.rules, self._criterion = rules, rules[0].criterion
        own = resampling.class_weights
        if target.class_multiplier is not None:
            own = ClassWeights.of_target(target, resampling.n_sets)
            target = without_class_weights(target)
        self.counts, self.class_weights = target, own
        numbers = range(resampling.n_sets)
        self.units = [target.weight_unit if own is None else own.unit(target, i) for i in numbers]
        self.have_one_scale = self._criterion in LOGARITHMS and own is None
        cells = resampling.cells
        if cells is None:
            cells = np.zeros(target.n_rows, dtype=np.uint16)
            resampling = replace(resampling, cells=cells)
        self.resampling = resampling if own is None else resampling.weighing(own)
        self.cells: np.ndarray = cells
        is_dense = isinstance(resampling.mix, np.ndarray)
        assert not is_dense or (resampling.mix[:] <= 1).all(), "a set has a cell once or not at all"
        if scales is not None:
            self.scales = list(scales)
            return
        if own is None:
            units = resampling.totals(units_of(target))
        else:
            units = (resampling.class_totals(target) * own.multiplier).sum(axis=1)
        largest = [1] * resampling.n_sets
        if self._criterion == "poisson":
            counts = slice(None) if target.w is None else target.w > 0
            of_cell = np.ones(resampling.mix.shape[1], dtype=np.int64)
            y = target.y if target.n_outputs == 1 else target.y.max(axis=1)
            np.maximum.at(of_cell, self.cells[counts], y[counts])
            own_cells = map(resampling.has, range(resampling.n_sets))
            largest = [int(of_cell[has].max(initial=1)) for has in own_cells]
        self.scales = [
            scale_of_sums(
                weight, largest[number], self.units[number], self._criterion, target.n_outputs
            )
            for number, weight in enumerate(units.tolist())
        ]

    def bundles(self, histogram: int) -> list[list[int]]:
        """Sets that grow together; those that have no company are left out.

        `histogram` is how many numbers the largest one of a column has.
        """
        by_scale: dict[float, list[int]] = {}
        for number, scale in enumerate(self.scales):
            key = scale.fixed_point if self.have_one_scale else 1.0
            by_scale.setdefault(key, []).append(number)
        found = []
        for like in by_scale.values():
            for size in SIZES:
                divided = [like[i : i + size] for i in range(0, len(like), size)]
                most = min(MOST_CELLS, MOST_NUMBERS // max(1, histogram) - 2 - 2 * size)
                if all(self.resampling.cells_of(b)[1].shape[1] <= most for b in divided):
                    found += [  # those that have some row in common
                        b for b in divided if (self.resampling.cells_of(b)[1].sum(axis=0) > 1).any()
                    ]
                    break
        return found

    def limits_of(self, bundle: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Total weight of each set, and its limits as `TrainingSets` takes them."""
        total = np.array([self.scales[number].total_weight for number in bundle])
        rules = [self.rules[number] for number in bundle]
        weight = np.array([own.min_weight_leaf for own in rules])
        units = np.array([self.units[number] for number in bundle])
        weight = np.minimum(np.ceil(weight / units), MOST_UNITS)
        rows = [(own.min_samples_split, own.min_samples_leaf) for own in rules]
        return total, np.column_stack([np.array(rows), weight.astype(np.int64)])

    def target(self, number: int) -> Target:
        """The target in which the rows outside of a set weigh nothing."""
        return self.resampling.target_of(number, self.counts)

    def class_weights_of(self, bundle: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Class weights of the sets, and units, as `TrainingSets` takes them."""
        assert self.class_weights is not None
        units = []
        for number in bundle:
            unit, fixed_point = self.units[number], self.scales[number].fixed_point
            gain = gain_unit_of(self._criterion, self.counts.n_classes, unit, fixed_point)
            units.append((unit, gain, fixed_point))
        return np.ascontiguousarray(self.class_weights.multiplier[bundle]), np.array(units)
