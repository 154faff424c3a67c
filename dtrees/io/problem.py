"""From a table to a problem: columns, a target, and what the target asks for.

The rule for the task, in the order of its questions:

1. A target that is not made of numbers (strings, booleans, categories) holds classes.
2. Numbers that are all whole, with at most `MOST_CLASSES` distinct values, are classes.
3. All other numbers are a quantity: regression.

A rule cannot know what was meant (a quantity counted from 1 to 5 looks like five classes), so
whoever knows better says so.

Rows without a target are left out; what kind a column is otherwise is the business of the codebook
and not touched here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dtrees.constraints import Having, InstanceOf, ListLike, OneOf, checked
from dtrees.parallel import computed, is_lazy

Task = Literal["classification", "regression"]

MOST_CLASSES = 20
"""Whole numbers with more distinct values than this are a quantity."""

MOST_LIKELY = 3  # names that a message takes for the one that was meant
MOST_SHOWN, FEW_SHOWN = 20, 10  # names that a message lists; and those of more
LETTERS_OF_A_PART = 3  # by which a name is told from its middle


@dataclass(frozen=True)
class Problem:
    """A table cut into columns and target.

    Attributes
    ----------
    X : DataFrame of shape (n_rows, n_columns)
        The columns, named by strings.
    y : array of shape (n_rows,)
        Numbers, or class labels as an object array of strings. Labels that are whole numbers are
        int64; where one of them does not fit, uint64; where that does not either, float64.
    task : 'classification' or 'regression'
        What the target asks for.
    rows_without_target : int
        Rows of the table that were left out.
    dropped : tuple of str
        Columns of the table that were left out.
    """

    X: Any
    y: np.ndarray
    task: Task
    rows_without_target: int
    dropped: tuple[str, ...] = ()


def task_of(y: np.ndarray) -> Task:
    """Return what the target of rows without gaps asks for, by the rule at the top of this module.

    O(n_rows log n_rows), for the distinct values.
    """
    if not is_number(y):
        return "classification"
    if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
        return "regression"
    return "classification" if len(np.unique(y)) <= MOST_CLASSES else "regression"


def is_number(y: np.ndarray) -> bool:
    """Tell whether the array holds integers or floats (booleans are not numbers here)."""
    return y.dtype.kind in "iuf"


def as_integers(y: np.ndarray) -> np.ndarray:
    """Whole numbers as int64, or else as uint64, if these hold all of them; or as they are."""
    least, most = y.min().item(), y.max().item()  # numbers of Python, which compare exactly
    for info in (np.iinfo(np.int64), np.iinfo(np.uint64)):
        if info.min <= least and most <= info.max:
            return y.astype(info.dtype)
    return y


@checked(
    table=(Having("columns"),),
    target=(InstanceOf(str, "str"),),
    task=(OneOf(("auto", "classification", "regression")),),
    drop=(ListLike(),),
)
def problem_of(
    table: Any, target: str, task: Literal["auto"] | Task = "auto", *, drop: Collection[str] = ()
) -> Problem:
    """Cut a DataFrame into columns and target and find out the task.

    Parameters
    ----------
    table : DataFrame
        Of pandas, or of Dask: then its target is computed, and nothing else. At least one row with
        a target and one column beside it.
    target : str
        Name of the target column.
    task : 'auto', 'classification' or 'regression'
        ``'auto'``: by the rule at the top of this module.
    drop : collection of str
        Columns that are left out.

    Raises
    ------
    ValueError
        There is no such column, nothing beside it, no row with a target, the target does not fit
        the task, or it is to be dropped.
    """
    if not is_lazy(table):
        table = table.set_axis([str(name) for name in table.columns], axis=1)
    names = list(table.columns)
    for name in (target, *drop):
        if name not in names:
            raise ValueError(f"no column {name!r} in the table{near(name, names)}")
    if target in drop:
        raise ValueError(f"the target column {target!r} cannot be dropped")
    dropped = tuple(name for name in names if name in drop)
    if len(names) == len(dropped) + 1:
        left = " that is not dropped" if dropped else ""
        raise ValueError(f"the table has no column beside the target {target!r}{left}")
    if dropped:
        table = table.drop(columns=list(dropped))
    (column,) = computed(table[target])
    given = column.notna().to_numpy(dtype=bool)
    if not given.any():
        raise ValueError(f"the table has no row with a value in the target column {target!r}")
    if not given.all():
        if is_lazy(table):
            table = table[table[target].notnull()]
        else:
            table = table[given].reset_index(drop=True)
        column = column[given]
    if column.dtype.kind in "mM":
        raise ValueError(
            f"the target column {target!r} holds dates or times, no classes and no numbers"
        )
    if column.dtype.kind in "iuf":
        of_kind = {"i": np.int64, "u": np.uint64, "f": np.float64}
        y = column.to_numpy(dtype=of_kind[column.dtype.kind])
        if column.dtype.kind == "u":
            y = as_integers(y)
    else:
        if any(isinstance(label, list | tuple | dict | np.ndarray) for label in column):
            raise ValueError(f"the target column {target!r} holds lists, no classes and no numbers")
        y = np.array([str(label) for label in column], dtype=object)
    found = task_of(y) if task == "auto" else task
    if found == "regression" and not is_number(y):
        raise ValueError(f"the target column {target!r} is not made of numbers: no regression")
    if found == "classification" and y.dtype.kind == "f" and np.array_equal(y, np.floor(y)):
        y = as_integers(y)
    return Problem(table.drop(columns=target), y, found, int((~given).sum()), dropped)


def near(name: str, names: Iterable[str]) -> str:
    """Suggest what a name that is none of the names was perhaps to be, for messages."""
    names = list(names)
    likely = _alike(str(name).strip().casefold(), names)
    if likely:
        return f", did you mean {' or '.join(map(repr, likely[:MOST_LIKELY]))}?"
    shown = names if len(names) <= MOST_SHOWN else names[:FEW_SHOWN]
    more = f", ... and {len(names) - len(shown):,} more" if len(shown) < len(names) else ""
    return f"; there are {', '.join(shown)}{more}"


def _alike(word: str, names: Sequence[str]) -> list[str]:
    """Names that are the word but for case, or else begin with it, hold it, or look like it."""
    plain = {name: name.strip().casefold() for name in names}
    rules: list[Callable[[str], bool]] = [lambda other: other == word]
    if word:
        rules.append(lambda other: other.startswith(word))
    if len(word) >= LETTERS_OF_A_PART and len(names) > 1:  # one name is a header, read wrongly
        rules += [
            lambda other: any(part.startswith(word) for part in re.split(r"[\W_]+", other)),
            lambda other: word in other,
            lambda other: word in "".join(part[:1] for part in re.split(r"[\W_]+", other)),
        ]
    found: list[str] = []
    for rule in rules:
        found = found or [name for name in names if rule(plain[name])]
    if found:
        return found
    close = difflib.get_close_matches(word, set(plain.values()), n=MOST_LIKELY)
    return [name for other in close for name in names if plain[name] == other]
