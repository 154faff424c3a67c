"""What belongs to the rows of a table, a target, weights or labels of groups, as NumPy has it.

Fits convert whatever they get. Splitters and scorers take rows by number, which columns of other
libraries answer in ways of their own, or not at all. So every entry point converts first
(`dtrees.parallel.admitted`).
"""

from __future__ import annotations

from typing import Any

import numpy as np


def row_values(values: Any) -> Any:
    """A value for each row as a NumPy array, where it is a column of another library.

    Parameters
    ----------
    values : object
        An extension array or an index of pandas, a column of Arrow or polars, or anything else that
        has ``__array__``. Series and data frames of pandas stay, as scorers may ask for their
        index; so does what is no array, such as a list.

    Returns
    -------
    object
        Python numbers of one type have that type instead of ``object``, and strings of variable
        width are objects: scikit-learn knows no others.
    """
    if not hasattr(values, "__array__"):
        return values
    if not isinstance(values, np.ndarray) and not hasattr(values, "iloc"):
        values = np.asarray(values)
    kind = getattr(getattr(values, "dtype", None), "kind", "")  # a data frame has several
    if kind == "T":
        return values.astype(object)
    if kind == "O" and values.ndim == 1 and len(values) > 0:
        cells = values.tolist()
        if len(set(map(type, cells))) == 1 and isinstance(cells[0], bool | int | float | np.number):
            dtype = np.array(cells).dtype
            return values if dtype.kind == "O" else values.astype(dtype)
    return values
