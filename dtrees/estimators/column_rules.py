"""Rules for single columns: along which ones predictions rise or fall, and which ones interact.

Both are given as in scikit-learn, by number or by name, and are resolved here once the table is
read. What they do in a node stands in `dtrees.core.search._open_node`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np

from dtrees.coding.codebook import CodeBook
from dtrees.coding.outputs import raw_by_output
from dtrees.coding.target import Target

NO_ORDER = "Categorical features cannot have monotonic constraints"  # scikit-learn's words
MOST_UNITS = 2**40  # of the weight of a column
TWO_CLASSES_ONLY = "Monotonicity constraints are not supported with multiclass classification"


def directions_of(given: Any, book: CodeBook, target: Target) -> tuple[int, ...] | None:
    """The direction of every column: 1, -1, or 0 where it has none; None: no column has one.

    `given` is ``monotonic_cst``: a direction for each column, or directions by name. ValueError:
    not one for each column, other values or names, columns with categories, three classes or more.
    """
    if given is None:
        return None
    directions = np.asarray(given)
    if isinstance(given, Mapping):
        for name, value in given.items():
            if value not in (-1, 0, 1):
                raise ValueError(
                    f"monotonic_cst[{name!r}] must be either -1, 0 or 1. Got {value!r}."
                )
        directions = _by_name("monotonic_cst", given, book, 0)
    if directions.shape != (book.n_columns,):
        raise ValueError(
            f"monotonic_cst has shape {directions.shape} but the input data X has "
            f"{book.n_columns} features."
        )
    if not np.isin(directions, (-1, 0, 1)).all():
        raise ValueError(
            "monotonic_cst must be an array-like of -1, 0 or 1. Observed values: "
            f"{np.unique(directions).tolist()}."
        )
    if not directions.any():
        return None
    n_classes = max(raw_by_output(target))
    if target.kind == "classification" and n_classes > 2:
        raise ValueError(f"{TWO_CLASSES_ONLY}: y has {n_classes} classes. Set monotonic_cst=None.")
    with_categories = np.flatnonzero((directions != 0) & (book.n_ordered < book.n_codes))
    if len(with_categories) > 0:
        raise ValueError(
            f"{NO_ORDER}: column "
            f"{book.name(int(with_categories[0]))} has categories. Give it 0 in monotonic_cst."
        )
    return tuple(directions.astype(int).tolist())


def units_of_weights(given: Any, book: CodeBook) -> tuple[int, ...] | None:
    """How likely each column is drawn, in units of at most `MOST_UNITS`; None: all alike.

    `given` is ``feature_weights``: a weight for each column, or weights by name, 1 for columns left
    out. ValueError: not one for each column, other names, or weights that are not positive.
    """
    if given is None:
        return None
    is_dict = isinstance(given, Mapping)
    values = np.asarray(list(given.values()) if is_dict else given)
    if values.dtype.kind not in "fiu" or not ((values > 0) & (values < np.inf)).all():
        raise ValueError("feature_weights must be positive, finite numbers.")
    weights = _by_name("feature_weights", given, book, 1.0) if is_dict else values
    if weights.shape != (book.n_columns,):
        raise ValueError(
            f"feature_weights has shape {weights.shape} but the input data X has "
            f"{book.n_columns} features."
        )
    units = np.rint(weights.astype(np.float64) / weights.max() * MOST_UNITS).astype(int)
    return None if (units == units[0]).all() else tuple(np.maximum(units, 1).tolist())


def _by_name(parameter: str, given: Mapping[Any, Any], book: CodeBook, others: float) -> np.ndarray:
    """Values by the names of columns, as an array; `others` for columns left out."""
    if book.feature_names is None:
        raise ValueError(
            f"{parameter} is a dict, and X has no feature names. Give an array, or fit a data "
            "frame whose columns have names."
        )
    place = {name: number for number, name in enumerate(book.feature_names.tolist())}
    unknown = [name for name in given if name not in place]
    if unknown:
        raise ValueError(
            f"{parameter} contains {len(unknown)} unexpected feature names: {unknown[:5]}."
        )
    _refuse_twice(parameter, given, book)
    found = np.full(book.n_columns, others)
    for name, value in given.items():
        found[place[name]] = value
    return found


def _refuse_twice(parameter: str, names: Iterable[Any], book: CodeBook) -> None:
    """Raise where a name is that of several columns, of which one would be taken."""
    found = [] if book.feature_names is None else book.feature_names.tolist()
    for name in names:
        if found.count(name) > 1:
            raise ValueError(
                f"{parameter} names {name!r}, and X has {found.count(name)} columns of that name. "
                "Give their numbers, or rename them."
            )


def interactions_of(
    given: Any, book: CodeBook, barred: Collection[int] = ()
) -> tuple[tuple[int, ...], ...] | None:
    """Sets of columns that may be tested on the way to one leaf; None: all interact.

    `given` is ``interaction_cst``: "pairwise", "no_interactions", or sets of column numbers or
    names; columns in none of the sets are one more. No test may look at `barred` columns. Each of
    the others is in a set. ValueError: no such sets, or no such columns.
    """
    if given is None and not barred:
        return None
    every = range(book.n_columns)
    if given is None:
        found = [tuple(every)]
    elif isinstance(given, str):
        found = list(combinations(every, 1 if given == "no_interactions" else 2))
    else:
        found = [_columns_of(group, book) for group in given]
    rest = tuple(sorted(set(every).difference(*found)))
    sets = [*found, rest] if rest else found
    if barred:
        sets = [tuple(column for column in group if column not in barred) for group in sets]
    if any(len(group) == book.n_columns for group in sets):
        return None
    return tuple(sets)


def _columns_of(group: Any, book: CodeBook) -> tuple[int, ...]:
    """The columns of a set, ascending."""
    if isinstance(group, str) or not hasattr(group, "__iter__"):
        raise ValueError(
            f"Interaction constraints must be a sequence of tuples, lists or sets, got: {group!r}."
        )
    names = [] if book.feature_names is None else book.feature_names.tolist()
    columns = set()
    _refuse_twice("interaction_cst", (name for name in group if isinstance(name, str)), book)
    for column in group:
        if isinstance(column, str) and column in names:
            columns.add(names.index(column))
        elif isinstance(column, Integral) and 0 <= int(column) < book.n_columns:
            columns.add(int(column))
        else:
            raise ValueError(
                f"Interaction constraints must consist of names of columns or of numbers from 0 to "
                f"{book.n_columns - 1}, got {column!r} in {group!r}."
            )
    return tuple(sorted(columns))
