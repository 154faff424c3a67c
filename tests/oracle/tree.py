"""The slow, obvious tree: recursion on raw values, every candidate tried, sums by brute force.

What a grown tree means is defined here and in the two files beside it. Nothing is shared with the
product, and the product never imports it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.oracle.candidates import Candidate, candidates
from tests.oracle.criterion import RowStatistics
from tests.oracle.outputs import statistics_of
from tests.oracle.ties import ROOT, child, order_of_columns

EPSILON = 2.0**-52


@dataclass(frozen=True)
class Rules:
    """The limits of a growth under the names of `dtrees.core.data.rules.GrowthRules`."""

    criterion: str = "gini"
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    random_ties: bool = False
    seed: int = 0
    tree: int = 0


def must_be_leaf(rows, depth: int, statistics: RowStatistics, rules) -> bool:
    """Whether a node is a leaf whatever its columns hold."""
    return (
        (rules.max_depth is not None and depth >= rules.max_depth)
        or len(rows) < rules.min_samples_split
        or len(rows) < 2 * rules.min_samples_leaf
        or statistics.is_pure(rows)
    )


def gains_enough(gain, root_weight, rules) -> bool:
    """scikit-learn's comparison with ``min_impurity_decrease``; by default zero gains pass."""
    return float(gain / root_weight) + EPSILON >= rules.min_impurity_decrease


def threshold_of(boundary: tuple[float, float | None]) -> float:
    """Midpoint of the numbers beside a cut; the left one if that rounds up to the right one."""
    below, above = boundary
    if above is None:
        return float("inf")
    middle = below / 2 + above / 2
    return middle if middle < above else below


def missing_goes_left(split: Candidate, some_missing: bool, whole) -> bool:
    """The direction that was chosen; without missing values, the heavier side."""
    if some_missing:
        return split.missing_left
    return 2 * split.sums.weight > whole.weight


def oracle_fit(table, target, rules: Rules) -> dict[str, Any]:
    """A tree as nested dicts.

    Parameters
    ----------
    table : list of columns, each a list of float, str or None
    target : dtrees.coding.target.Target, or anything with its attributes
    rules : Rules

    Returns
    -------
    dict
        ``n``, ``value``, ``impurity``; of inner nodes also ``column``, ``test``, ``threshold``,
        ``subset``, ``missing_left``, ``gain``, ``left`` and ``right``.
    """
    statistics = statistics_of(target, rules.criterion)
    rows = statistics.rows()
    root_weight = statistics.sums(rows).weight * statistics.weight_unit

    def grow(rows: list[int], depth: int, path: int) -> dict[str, Any]:
        whole = statistics.sums(rows)
        node: dict[str, Any] = {
            "n": len(rows),
            "value": statistics.value(whole),
            "impurity": statistics.impurity(rows),
        }
        if must_be_leaf(rows, depth, statistics, rules):
            return node
        first = order_of_columns(rules, path)
        offered = sorted(candidates(table, rows, statistics, rules), key=lambda c: first(c.column))
        if not offered:
            return node
        gains = [statistics.gain(whole, c.sums) for c in offered]
        best = gains.index(max(gains))  # the first of equal ones
        split = offered[best]
        if not gains_enough(gains[best], root_weight, rules):
            return node
        column = table[split.column]
        some_missing = any(column[i] is None for i in rows)
        node |= {
            "column": split.column,
            "test": split.test,
            "threshold": threshold_of(split.boundary) if split.boundary else None,
            "subset": split.subset,
            "missing_left": missing_goes_left(split, some_missing, whole),
            "gain": float(gains[best]),
            "left": grow([i for i in rows if i in split.left], depth + 1, child(path, True)),
            "right": grow([i for i in rows if i not in split.left], depth + 1, child(path, False)),
        }
        return node

    return grow(rows, 0, ROOT)
