"""A coded table, and what fits models to it: what stands between coding and growth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.predict.binned import CodedRows, LeafLookup
from dtrees.parallel import CodedPartitions, FitStatistics, LocalRunner, PartitionedRows


@dataclass(frozen=True)
class Encoded:
    """A training table as codes, and the rules of the growth."""

    book: CodeBook
    coded: CodedMatrix | CodedPartitions
    target: Target
    rules: GrowthRules
    max_features: int
    seed: int


def _nobody(n_trees: int) -> None:
    """Hear of trees, and do nothing."""


@dataclass(frozen=True, eq=False)
class Training:
    """A coded table, and where and for whom models are fitted to it.

    Attributes
    ----------
    encoded : Encoded
    coded_rows : LeafLookup
        The same table, ready to be walked.
    y : array-like (n_rows,)
        The target as it was given; out-of-bag scores are of it.
    run : LocalRunner
    advance : callable (int) -> object
        Hears how many trees have come, as often as some have.
    stats : FitStatistics
        Where a fit writes down what it did.
    """

    encoded: Encoded
    coded_rows: LeafLookup
    y: Any
    run: LocalRunner
    advance: Callable[[int], object] = _nobody
    stats: FitStatistics = field(default_factory=FitStatistics)


def rows_of(coded: CodedMatrix | CodedPartitions, stats: FitStatistics | None = None) -> LeafLookup:
    """Codes, ready to be walked, wherever they are; what is lost then is counted."""
    return CodedRows(coded) if isinstance(coded, CodedMatrix) else PartitionedRows(coded, stats)
