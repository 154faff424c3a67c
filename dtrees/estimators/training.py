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
class EncodedTable:
    """A training table as codes."""

    book: CodeBook
    coded: CodedMatrix | CodedPartitions
    target: Target
    seed: int


@dataclass(frozen=True)
class Encoded(EncodedTable):
    """The same, and the rules of the growth of trees."""

    rules: GrowthRules
    max_features: int


@dataclass(frozen=True, eq=False)
class Training:
    """A coded table, and where and for whom models are fitted to it."""

    encoded: Encoded
    coded_rows: LeafLookup  # the same table, ready to be walked
    y: Any  # the target as given, for out-of-bag scores
    run: LocalRunner
    advance: Callable[[int], object] = lambda n_trees: None  # hears of trees that have come
    stats: FitStatistics = field(default_factory=FitStatistics)  # told what a fit did


def rows_of(coded: CodedMatrix | CodedPartitions, stats: FitStatistics | None = None) -> LeafLookup:
    """Codes, ready to be walked, wherever they are; what is lost then is counted."""
    return CodedRows(coded) if isinstance(coded, CodedMatrix) else PartitionedRows(coded, stats)
