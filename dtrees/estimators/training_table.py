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
from dtrees.estimators.fit_plan import Encoded, FitPlan, rows_of
from dtrees.parallel import CodedPartitions, FitStatistics, LocalRunner, PartitionedTable, admitted


@dataclass(frozen=True, eq=False)
class Codes:
    """A table as one way of coding has it."""

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
        self._seed: int | None = None
        self._codes: dict[Hashable, Codes] = {}
        self._targets: dict[Hashable, Target] = {}
        self.told: set[str] = set()  # what was logged of it

    def encoded(self, plan: FitPlan, seed: int, run: LocalRunner) -> Encoded:
        """What a fit to all rows grows from; ValueError: an input is not what it should be.

        The target is kept for the next growth, if it depends on plain values.
        """
        y, own = self.read(plan), plan.estimator
        weight = own.class_weight
        key = type(own), plan.criterion == "poisson", weight, own.bootstrap
        is_plain = weight is None or isinstance(weight, str)
        target = self._targets.get(key) if is_plain else None
        if target is None:
            target = plan.target(y, self.sample_weight)
            if is_plain:
                self._targets[key] = target
        codes = self.codes(plan, seed, run)
        return plan.resolve(codes.book, codes.coded, target, seed)

    def read(self, plan: FitPlan) -> np.ndarray:
        """The target; ValueError: it, or the table, is not what it should be."""
        if self._read is None:
            self._read = plan.read(self.X, self.y)
        return self._read[1]

    def codes(self, plan: FitPlan, seed: int, run: LocalRunner) -> Codes:
        """The codes of a table that has been read; made when they are asked for first."""
        assert self._read is not None
        coding = plan.coding(self._read[0].n_rows, seed)
        are_plain = all(value is None or type(value) in (str, int) for value in coding)
        key: Hashable = coding if are_plain else str(joblib.hash(coding))  # of lists of columns
        if key not in self._codes:
            stats = self._stats.continued()
            with stats.phase("coding"):
                book, coded = plan.code(self._read[0], seed, run, stats, self.sample_weight)
            self._codes[key] = Codes(book, coded, rows_of(coded), stats)
        return self._codes[key]

    def seed_of(self, plan: FitPlan) -> int:
        """A seed for a fit; without a random state, the same for all of this table."""
        if plan.estimator.random_state is not None:
            return plan.seed()
        if self._seed is None:
            self._seed = plan.seed()
        return self._seed
