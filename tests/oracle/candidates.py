"""Every split that a node may choose from, in the order in which ties are broken.

A table is a list of columns, a column a list of raw values: float, str (a category), or None
(missing). What a column offers depends on the values present in the node:

    numbers only       each boundary between neighbours; all | missing
    categories only    in the order of their means each prefix, or in those of the medians of each
                       output; all | missing
                       three classes or more: all subsets, in the order of the Gray code
    both               `<= v` for each number, `> v` for each but the last, `= c` for each category

each with missing values on the right, then, if there are any, on the left. Missing alone on the
left is not tried: it mirrors all | missing.

With many categories and three classes or more the product searches by a heuristic. What is listed
here for that case is the least it must try: each category alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.oracle.criterion import RowStatistics, Sums

Value = float | str | None
MAX_SUBSETS = 1023


@dataclass(frozen=True)
class Candidate:
    """A test, and what it does to the rows of the node."""

    column: int
    test: str  # "<=", ">", "in"
    missing_left: bool
    boundary: tuple[float, float | None] | None  # the numbers beside the cut; None: no number above
    subset: frozenset[str] | None
    left: frozenset[int]  # rows
    sums: Sums  # of the left side


def numbers_of(values: Sequence[Value]) -> list[float]:
    return sorted({v for v in values if isinstance(v, float)})


def categories_of(values: Sequence[Value]) -> list[str]:
    return sorted({v for v in values if isinstance(v, str)})


def candidates(table, rows, statistics: RowStatistics, rules) -> list[Candidate]:
    """All permitted splits of a node: by column, then in the order of the column's enumeration."""
    whole = statistics.sums(rows)
    least_weight = rules.min_weight_leaf
    unit = statistics.weight_unit
    found = []
    for j, column in enumerate(table):
        missing = [i for i in rows if column[i] is None]
        for test, boundary, subset, missing_left in _tests(column, rows, statistics):
            left = [i for i in rows if passes(test, boundary, subset, column[i])]
            left += missing if missing_left else []
            sums = statistics.sums(left)
            rest = statistics.minus(whole, sums)
            if (
                min(sums.n, rest.n) >= rules.min_samples_leaf
                and min(sums.weight, rest.weight) * unit >= least_weight
                and statistics.allows(sums, rest)
            ):
                found.append(
                    Candidate(j, test, missing_left, boundary, subset, frozenset(left), sums)
                )
    return found


def passes(test: str, boundary, subset, value: Value) -> bool:
    """Whether a value that is not missing passes; numbers never equal categories."""
    if test == "in":
        return value in subset
    if not isinstance(value, float):
        return False
    return value <= boundary[0] if test == "<=" else value > boundary[0]


def _tests(column: Sequence[Value], rows, statistics: RowStatistics) -> Iterator[tuple]:
    present = [column[i] for i in rows]
    numbers, categories = numbers_of(present), categories_of(present)
    cuts = list(zip(numbers, [*numbers[1:], None], strict=True)) if numbers else []
    some_missing = None in present
    for missing_left in (False, True) if some_missing else (False,):
        all_alone = some_missing and not missing_left
        if not categories:
            for cut in cuts if all_alone else cuts[:-1]:
                yield "<=", cut, None, missing_left
        elif numbers:
            for cut in cuts:
                yield "<=", cut, None, missing_left
            for cut in cuts[:-1]:
                yield ">", cut, None, missing_left
            for c in categories:
                yield "in", None, frozenset({c}), missing_left
        elif categories:
            for subset in _subsets(column, rows, categories, statistics, all_alone):
                yield "in", None, frozenset(subset), missing_left


def _subsets(column, rows, categories, statistics, all_alone) -> Iterator[list[str]]:
    if statistics.has_order:
        sums = {c: statistics.sums([i for i in rows if column[i] == c]) for c in categories}
        for mean in statistics.means:
            ordered = sorted(categories, key=lambda c: (mean(sums[c]), c))
            for k in range(1, len(ordered) + all_alone):
                yield ordered[:k]
    elif 2 ** (len(categories) - 1) - 1 <= MAX_SUBSETS:
        for step in range(1, 2 ** (len(categories) - 1)):
            gray = step ^ (step >> 1)  # neighbours differ in one category; the last never enters
            yield [c for k, c in enumerate(categories) if gray >> k & 1]
        if all_alone:
            yield categories
    else:
        for c in categories:
            yield [c]
