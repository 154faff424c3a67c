"""A table that many models are fitted to, which is read and coded once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.tables import Table
from dtrees.coding.target import Target
from dtrees.core.predict.binned import LeafLookup
from dtrees.estimators.fit_plan import FitPlan, rows_of
from dtrees.parallel import CodedPartitions, FitStatistics, LocalRunner, PartitionedTable, admitted


@dataclass(frozen=True, eq=False)
class Codes:
    """A table and its target as one way of coding has them."""

    values: np.ndarray  # the target as it was read
    target: Target
    seed: int  # of a fit
    book: CodeBook
    coded: CodedMatrix | CodedPartitions
    rows: LeafLookup  # the same codes, ready to be walked
    stats: FitStatistics  # what was done to make them


class TrainingTable:
    """A table, its target and weights, read once, and coded once for each way of coding.

    Estimators with other parameters share the codes, unless they ask for other ones (``max_bins``,
    ``categorical_features``, ``handle_unknown``, and the seed, where values are sampled). `stats`
    says what has been done for the table so far.
    """

    def __init__(
        self, X: Any, y: Any, sample_weight: Any, stats: FitStatistics | None = None
    ) -> None:
        self._stats = FitStatistics() if stats is None else stats
        columns = {"y": y, "sample_weight": sample_weight}
        self.X, self.y, self.sample_weight = admitted(X, columns, self._stats)
        self._read: tuple[Table | PartitionedTable, np.ndarray] | None = None
        self._seed: int | None = None  # of all fits without a random state
        self._codes: dict[Hashable, tuple[Any, ...]] = {}
        self._targets: dict[Hashable, Target] = {}
        self.told: set[str] = set()  # what was logged of it

    def coded(self, plan: FitPlan, run: LocalRunner) -> Codes:
        """What a fit to all rows grows from; made when it is asked for first.

        The target is kept for the next growth, if it depends on plain values. ValueError: an input
        is not what it should be.
        """
        own, seed = plan.estimator, self._seed
        if seed is None or own.random_state is not None:
            seed = plan.seed()
            if own.random_state is None:
                self._seed = seed
        if self._read is None:
            self._read = plan.read(self.X, self.y)
        table, values = self._read
        weight, criterion = getattr(own, "class_weight", None), getattr(own, "criterion", None)
        key: Hashable = type(own), criterion == "poisson", weight, getattr(own, "bootstrap", None)
        is_plain = weight is None or isinstance(weight, str)
        target = self._targets.get(key) if is_plain else None
        if target is None:
            target = plan.target(values, self.sample_weight)
            if is_plain:
                self._targets[key] = target
        coding = plan.coding(table.n_rows, seed)
        are_plain = all(value is None or type(value) in (str, int) for value in coding)
        key = coding if are_plain else str(joblib.hash(coding))  # of lists of columns
        if key not in self._codes:
            stats = self._stats.continued()
            with stats.phase("coding"):
                book, coded = plan.code(table, seed, run, stats, self.sample_weight)
            self._codes[key] = book, coded, rows_of(coded), stats
        return Codes(values, target, seed, *self._codes[key])
