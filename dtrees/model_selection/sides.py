"""Sides of splits, and what a function says of their rows: here, or where the rows are.

A scorer looks at the rows of one side of one split: at what its model says of them, and at their
targets. Where the codes of the table are here, rows are taken by number. Where they are on workers,
so may be the targets and the folds. Then one worker has the rows of a side for a moment, under the
numbers 0, 1, 2, ..., with a model that has no table::

    codes here         cells, number, rows, y[rows] ────────────▶ function ──▶ a score
    codes on workers   model of a set ──sent──▶ cells of it, 0, 0 ... m - 1, y of these ──▶ the same

So the same function scores the same numbers, and all that comes here is what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from dtrees.core.model.nested_trees import PruningGrid
from dtrees.estimators.boosted_sets import FittedBoosts
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.model_selection.candidates import Cells, Growth, cells_of
from dtrees.model_selection.folds import TEST, FoldSplits, Split
from dtrees.model_selection.prefitted_proxy import RowNumbers
from dtrees.parallel import (
    LazyColumn,
    PartitionedRows,
    RequestedRows,
    RowsOfFold,
    Side,
    Walk,
)
from dtrees.typing import Runner


def here(column: Any) -> Any:
    """A column in memory, if it is one."""
    return column.here() if isinstance(column, LazyColumn) else column


OfSide = Callable[..., Any]  # of cells, the number of a set, rows, and columns of these rows


def of_sides(
    cells: Cells,
    splits: Sequence[Split],
    sides: Sequence[tuple[int, int, OfSide]],
    columns: Sequence[Any] = (),
    *,
    with_targets: bool = True,
    is_here: bool = False,
    run: Runner | None = None,
) -> Iterable[Any]:
    """What functions say of sides of splits, in their order: by number, side and function.

    `columns` have a value for each row of the table, or are None. `with_targets`: a function looks
    at ``cells.fitted.y``. `is_here`: they look at what is here, and at answers that are at hand,
    wherever the codes are. `run` calls those that are called here; None: each when its answer is
    looked at. Raises what they raise; the error of a fit; and ClusterError.
    """
    fitted, walked = cells.fitted, cells.fitted.coded_rows
    numbers = RowNumbers(len(fitted.y), splits)
    if is_here or not isinstance(walked, PartitionedRows):
        columns = list(map(here, columns))

        def of_side(number: int, side: int, function: OfSide) -> Any:
            rows = numbers.rows(number, side)
            of_rows = [None if each is None else _safe_indexing(each, rows) for each in columns]
            return function(cells, number, rows, *of_rows)

        tasks = [partial(of_side, *each) for each in sides]
        return (task() for task in tasks) if run is None else run(tasks)
    asked = []
    alone = {number: cells.alone(number) for number, _, _ in sides}
    for number, side, function in sides:
        rows: Any
        if isinstance(splits, FoldSplits):
            about = len(fitted.y) // len(splits) if side == TEST else len(fitted.y)
            rows = RowsOfFold(number, side == TEST, about)
        else:
            rows = RequestedRows(numbers.rows(number, side))
        walks = [Walk(trees, rows, start) for trees, start in cells.walks(number)]
        asked.append(Side(walks, partial(_on_rows, *alone[number], function)))
    own = {
        "y": fitted.y if with_targets else None,
        "init_score": fitted.offset if isinstance(fitted, FittedBoosts) else None,
    }
    given = {f"column {place}": values for place, values in enumerate(columns)}
    fold = splits.fold if isinstance(splits, FoldSplits) else None
    return walked.on_sides(asked, fold, own | given)


def _on_rows(
    growth: Growth,
    fitted: FittedSets,
    limits: PruningGrid | None,
    function: OfSide,
    answers: Sequence[Sequence[np.ndarray]],
    columns: Sequence[Any],
) -> Any:
    """What a function says of the rows of a side, where they are; `answers` are by walk."""
    y, offset, *others = columns
    own = {"offset": offset} if isinstance(fitted, FittedBoosts) else {}
    cells = cells_of(growth, replace(fitted, y=y, **own), limits)
    walked, rows = PartitionedRows(None), np.arange(len(answers[0][0]))
    for (trees, start), found in zip(cells.walks(0), answers, strict=True):
        walked.keep(trees, rows, start, found)
    cells.fitted = replace(cells.fitted, coded_rows=walked)
    return function(cells, 0, rows, *others)
