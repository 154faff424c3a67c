"""What a boosted model knows before its first tree of rows that stay on the workers of a cluster.

`boosted_start` asks all rows at once; here each part is asked, and the answers are added up::

    y, weights     ──▶ classes, units, rows of each class by part     (`RowsElsewhere`)
    the draw       ──▶ which rows are held out: each draws by its rank in its class
    training rows  ──▶ weights of classes, mean, quantiles            ──▶ where the model begins

All of these are integers, or are found by counting, so the model is that of rows in one place. A
loss of the user's is asked by a worker, which has the targets of all rows for a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.coding.coded import digest_of_arrays
from dtrees.coding.target import Ask, GivenRows, Target, TargetUnits, exact_bincount
from dtrees.core.data.scale import units_of
from dtrees.core.losses.losses import (
    Loss,
    OwnLoss,
    counts_of_bytes,
    initial_of_classes,
    least_above,
    ordered,
    quantiles_by_bytes,
)
from dtrees.estimators.boosted_start import (
    Beginning,
    Sides,
    check_begin,
    numbers_of_loss,
    stops_early,
)
from dtrees.estimators.boosted_stopping import drawn_held, sizes_held
from dtrees.estimators.fit_plan import RowsElsewhere
from dtrees.estimators.prediction import offsets_of
from dtrees.parallel import FitStatistics

if TYPE_CHECKING:
    from dtrees.estimators.boosting import BaseBoosting


@dataclass(frozen=True, eq=False)
class PartOfFit:
    """Some rows of a fit.

    `y` are targets as the loss wants them, `units` weights, and `offset` is what raw predictions
    begin with, float64 (n_rows, n_values). `chosen` and `held`, bool (n_rows,), are rows that are
    grown from, and held out; None: all, and none.
    """

    first_row: int
    target: Target
    y: np.ndarray
    units: np.ndarray | None
    offset: np.ndarray | None
    chosen: np.ndarray | None
    held: np.ndarray | None

    @property
    def grown(self) -> Any:
        """Rows that are grown from, as an index."""
        return slice(None) if self.chosen is None else self.chosen

    @property
    def weight(self) -> np.ndarray | None:
        """Weights of the rows that are grown from, in units."""
        return None if self.units is None else self.units[self.grown]

    def arrays(self) -> dict[str, np.ndarray]:
        """What a block has of them, as `dtrees.parallel.boosted_members.StoredBoostedRows`."""
        found = {"y": self.y, "weight": self.units, "held": self.held, "chosen": self.chosen}
        found["raw"] = self.offset
        return {name: values for name, values in found.items() if values is not None}

    def sums(self) -> tuple[np.ndarray, int, int]:
        """What the rows that are grown from add up to, and two digests.

        Sums are weights of classes, or weight and weighted target; digests are of the rows that are
        chosen, and of what rows begin with.
        """
        own, grown = self.target, self.grown
        if own.kind == "classification":
            sums = exact_bincount(own.y[grown], self.weight, own.n_classes)
        else:
            some = own.take(grown)
            total = some.n_rows if some.w is None else int(some.w.sum())
            wy = some.y if some.wy is None else some.wy
            sums = np.array([total, int(wy.sum())])
        chosen = raw = 0
        if self.chosen is not None:
            chosen = digest_of_arrays([self.chosen], self.first_row)
        if self.offset is not None:
            raw = digest_of_arrays(list(self.offset.T), self.first_row)
        return sums, chosen, raw

    def range_of_counted(self) -> tuple[float, float]:
        """Least and greatest target of the rows that have a weight."""
        y = (self.y if self.units is None else self.y[self.units > 0]).astype(np.float64)
        return float(y.min(initial=np.inf)), float(y.max(initial=-np.inf))

    def are_alike(self) -> bool:
        """Whether all rows that have a weight have the weight one."""
        units, one = self.units, 1 / self.target.weight_unit
        return units is None or bool((units[units > 0] == one).all())

    def check_own(self, loss: OwnLoss) -> None:
        """Let a loss of the user's refuse targets of rows that have a weight (ValueError)."""
        loss.check(self.y if self.units is None else self.y[self.units > 0])

    def begins(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of the rows that are grown from, float64 (n,), or None."""
        weight = None if self.weight is None else self.weight * self.target.weight_unit
        return self.y[self.grown], weight

    def check_begin(self, loss: Loss | OwnLoss) -> None:
        """Refuse (ValueError) raw predictions of an infinite loss."""
        if self.offset is not None and len(self.y[self.grown]) > 0:
            check_begin(loss, self.y[self.grown], self.offset[self.grown])

    def values(self, begin: float | None, only_beyond: bool) -> tuple[np.ndarray, Any]:
        """Targets and their weights; or how far they are from where the model begins.

        `begin` nan: where rows begin. With `only_beyond` without those that are there.
        """
        y, weight = self.y[self.grown], self.weight
        if begin is not None:
            if np.isnan(begin):
                assert self.offset is not None
                y = np.abs(y - self.offset[self.grown, 0])
            else:
                y = np.abs(y - begin)
        if only_beyond:
            weight = None if weight is None else weight[y > 0]
            y = y[y > 0]
        return y, weight

    def counts(self, how: tuple[Any, ...], found: np.ndarray, byte: int) -> np.ndarray:
        """As `counts_of_bytes`, of `values`."""
        values, weight = self.values(*how)
        return counts_of_bytes([ordered(values)], [weight], found, byte)

    def above(self, how: tuple[Any, ...], found: np.ndarray) -> np.ndarray:
        """As `least_above`, of `values`."""
        values, _ = self.values(*how)
        return least_above([values], [ordered(values)], found)


def initial_of_own(
    loss: OwnLoss, n_values: int, parts: Sequence[tuple[np.ndarray, np.ndarray | None]]
) -> np.ndarray:
    """Raw predictions that a model of a loss of the user's begins with, float64 (n_values,).

    `parts` are as `PartOfFit.begins` says, of all rows.
    """
    weights = [weight for _, weight in parts if weight is not None]
    weight = np.concatenate(weights) if weights else None
    if weight is not None and (weight == 1).all():
        weight = None
    return loss.initial(np.concatenate([y for y, _ in parts]), weight, n_values)


def quantile_of_parts(ask: Ask, level: float, *how: Any) -> float:
    """The quantile of `PartOfFit.values`."""

    def count(found: np.ndarray, byte: int) -> np.ndarray:
        return np.sum(ask(PartOfFit.counts, how, found, byte), axis=0)

    def above(found: np.ndarray) -> np.ndarray:
        return np.max(ask(PartOfFit.above, how, found), axis=0)

    return float(quantiles_by_bytes(1, level, count, above)[0])


@dataclass(frozen=True, eq=False)
class Reading:
    """How the columns of a part become a `PartOfFit`.

    `totals` and `sizes`, int64 (n_classes,), are rows of each class, and those that are held out;
    None: none are. `all_grown`: neither held out nor without weight. `are_alike`: rows that have a
    weight have the weight one, which is not told.
    """

    read: Callable[..., GivenRows]
    units: TargetUnits
    loss: Loss | OwnLoss
    seed: int
    totals: np.ndarray | None
    sizes: np.ndarray | None
    all_grown: bool
    are_alike: bool = False

    def __call__(
        self, y: Any, sample_weight: Any, init_score: Any, first_row: int, before: np.ndarray
    ) -> PartOfFit:
        """Read a part, with the rows of each class `before` it."""
        rows = self.read(y, sample_weight, first_row)
        target = self.units.target(rows)
        units = units_of(target)
        offset = held = None
        if init_score is not None:
            n_values = target.n_classes if target.n_classes > 2 else 1
            offset = offsets_of(init_score, target.n_rows, n_values)
        counted = np.ones(target.n_rows, dtype=bool) if units is None else units > 0
        if self.sizes is not None and self.totals is not None:
            labels = target.y[counted] if target.kind == "classification" else None
            held = np.zeros(target.n_rows, dtype=bool)
            how = labels, before, self.totals, self.sizes, self.seed
            held[counted] = drawn_held(int(np.count_nonzero(counted)), *how)
        chosen = None
        if not self.all_grown:
            chosen = counted if held is None else counted & ~held
        if units is not None:
            units = None if self.are_alike else np.ascontiguousarray(units, dtype=np.int64)
        y_of_loss = numbers_of_loss(self.loss, target, rows.y)
        return PartOfFit(first_row, target, y_of_loss, units, offset, chosen, held)

    def arrays(self, *columns: Any) -> dict[str, np.ndarray]:
        """What a block has of a part."""
        return self(*columns).arrays()


def begin_elsewhere(
    model: BaseBoosting, rows: RowsElsewhere, seed: int, shown: bool, stats: FitStatistics
) -> tuple[Sides, Beginning]:
    """What a fit begins with; arguments as for `sides_of`."""
    loss, target, columns = model._loss(), rows.target, rows.columns
    are_classes = target.kind == "classification"
    counts = rows.counts
    totals, sizes = np.sum(counts, axis=0), None
    is_early = not shown and stops_early(model, target.n_live)
    if is_early and model.validation_fraction is not None:
        sizes = sizes_held(totals, are_classes, model.validation_fraction)
    before = list(np.cumsum([np.zeros_like(totals), *counts[:-1]], axis=0))
    all_grown = sizes is None and target.n_live == target.n_rows
    reading = Reading(rows.read, rows.units, loss, seed, totals, sizes, all_grown)
    has_offset = any(pieces[2] for pieces in columns.pieces)

    def work(ask: Ask) -> Beginning:
        own = loss
        if isinstance(own, OwnLoss):
            ask(PartOfFit.check_own, own)
        else:
            low, high = zip(*ask(PartOfFit.range_of_counted), strict=True)
            own.check(np.array([min(low), max(high)]))
        sums, chosen, raw = zip(*ask(PartOfFit.sums), strict=True)
        total = np.sum(sums, axis=0)
        if isinstance(own, OwnLoss):
            n_values = target.n_classes if are_classes and target.n_classes > 2 else 1
            (initial,) = ask(PartOfFit.begins, join=partial(initial_of_own, own, n_values))
        elif are_classes:
            initial = initial_of_classes(total / total.sum())
        elif own.level is not None:
            initial = np.array([quantile_of_parts(ask, own.level, None, False)])
        else:
            mean = float(rows.units.empty.to_value(total))
            initial = np.array([own.initial(np.zeros(0), None, mean)])
        if has_offset or model.init == "zero":
            initial = np.zeros(len(initial))
        if has_offset:
            ask(PartOfFit.check_begin, own)
        if own.beyond is not None:
            begin = np.nan if has_offset else float(initial[0])
            own = own.with_quantile(partial(quantile_of_parts, ask, own.beyond, begin))
        arrays = replace(reading, are_alike=all(ask(PartOfFit.are_alike))).arrays
        each = partial(columns.each, arrays, "boosted-rows-of-part", before)
        return Beginning(
            own,
            initial,
            has_offset=has_offset,
            elsewhere=each,
            digests={
                "chosen": None if all_grown else sum(chosen) % 2**64,
                "raw": sum(raw) % 2**64 if has_offset else None,
            },
        )

    begun = columns.asked(reading, work, stats, before)
    nothing = np.zeros(0)
    held = nothing if is_early else None
    return Sides(begun.loss, nothing, nothing, held), begun
