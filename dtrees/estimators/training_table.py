"""A table that many models are fitted to, which is read and coded once."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
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

logger = logging.getLogger(__name__)


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
        self._told: set[str] = set()

    @property
    def is_heard(self) -> bool:
        """Whether anybody is told what `tell` says."""
        return logger.isEnabledFor(logging.INFO)

    def tell(self, alone: Mapping[str, int], n_sets: int) -> None:
        """Log how many models of several sets share nothing, by reason; once for a table."""
        for reason, count in alone.items():
            many = f"{count} of {n_sets} " if count < n_sets else ""
            said = f"{many}models are fitted one by one: {reason}"
            if count > 0 and n_sets > 1 and said not in self._told:
                self._told.add(said)
                logger.info(said)

    def encoded(self, plan: FitPlan, seed: int, run: LocalRunner) -> Encoded:
        """What a fit to all rows grows from; ValueError: an input is not what it should be."""
        target = self._target(plan)
        codes = self.codes(plan, seed, run)
        return plan.resolve(codes.book, codes.coded, target, seed)

    def _target(self, plan: FitPlan) -> Target:
        """The target of a fit to all rows, kept for the next growth, if it depends on plain values.

        ValueError: it, or the table, is not what it should be.
        """
        y, own = self.read(plan), plan.estimator
        weight = getattr(own, "class_weight", None)
        if not (weight is None or isinstance(weight, str)):
            return plan.target(y, self.sample_weight)
        key = type(own), plan.criterion == "poisson", weight, getattr(own, "bootstrap", None)
        if key not in self._targets:
            self._targets[key] = plan.target(y, self.sample_weight)
        return self._targets[key]

    def read(self, plan: FitPlan) -> np.ndarray:
        """The target; ValueError: it, or the table, is not what it should be."""
        if self._read is None:
            self._read = plan.read(self.X, self.y)
        return self._read[1]

    def codes(self, plan: FitPlan, seed: int, run: LocalRunner) -> Codes:
        """The codes of a table that has been read; made when they are asked for first."""
        assert self._read is not None
        key = self._key(plan, seed)
        if key not in self._codes:
            stats = self._stats.continued()
            with stats.phase("coding"):
                book, coded = plan.code(self._read[0], seed, run, stats, self.sample_weight)
            self._codes[key] = Codes(book, coded, rows_of(coded), stats)
        return self._codes[key]

    @property
    def n_rows(self) -> int:
        """Rows of the table, which has been read."""
        assert self._read is not None
        return self._read[0].n_rows

    def seed_of(self, plan: FitPlan) -> int:
        """A seed for a fit; without a random state, the same for all of this table."""
        if plan.estimator.random_state is not None:
            return plan.seed()
        if self._seed is None:
            self._seed = plan.seed()
        return self._seed

    def values_of_y(self) -> np.ndarray:
        """The target, as it was read."""
        assert self._read is not None
        return self._read[1]

    def _key(self, plan: FitPlan, seed: int) -> Hashable:
        """What codes depend on; lists of columns as text."""
        coding = plan.coding(self.n_rows, seed)
        if all(value is None or type(value) in (str, int) for value in coding):
            return coding
        return str(joblib.hash(coding))
