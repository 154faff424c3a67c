"""Codebooks in model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dtrees.coding.codebook import HANDLE_UNKNOWN, CodeBook
from dtrees.coding.times import UNITS
from dtrees.core.model.packing import narrow, widen
from dtrees.export.values import Encoder, decode

MOST_CODES = 2**32 - 2


def encode_book(book: CodeBook, encoder: Encoder) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A codebook as JSON and arrays."""
    exact = book.high is book.low
    infinities = {"takes_infinities": True} if book.takes_infinities else {}
    names = book.feature_names
    document = {
        "n_columns": int(book.n_columns),
        "handle_unknown": book.handle_unknown,
        **infinities,
        "exact": exact,
        "feature_names": None if names is None else encoder.encode(names, "feature_names_in_"),
        "categories": [
            [int(j), encoder.encode(values, f"column {book.name(j)} of X, among its categories,")]
            for j, values in book.categories.items()
        ],
    }
    arrays = {"low": book.low, "exact": book.exact, "units": book.units}
    if not exact:
        arrays["high"] = book.high
    arrays |= narrow("n_codes", book.n_codes)
    arrays |= narrow("n_ordered", book.n_ordered)
    arrays |= narrow("n_values", np.diff(book.offsets))
    return document, arrays


def decode_book(
    document: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    values: Mapping[str, np.ndarray],
) -> CodeBook:
    """The codebook that was encoded; an error where it is none. `values` are the encoder's."""
    n_columns = document["n_columns"]
    expect(type(n_columns) is int and n_columns > 0, "the number of columns")
    n_codes = widen(arrays, "n_codes", n_columns)
    n_ordered = widen(arrays, "n_ordered", n_columns)
    n_values = widen(arrays, "n_values", n_columns)
    low, exact, units = arrays["low"], arrays["exact"], arrays["units"]
    high = low if document["exact"] is True else arrays["high"]
    expect(
        bool(((n_ordered >= 0) & (n_codes >= n_ordered) & (n_codes <= MOST_CODES)).all()),
        "the numbers of codes",
    )
    is_hybrid = (n_ordered > 0) & (n_codes > n_ordered)
    left_out = (n_values == 0) & ~is_hybrid
    expect(bool((left_out | (n_values == n_ordered)).all()), "the numbers of values")
    offsets = np.concatenate([[0], np.cumsum(n_values)])
    for array in (low, high):
        expect(array.dtype in (np.float32, np.float64) and array.ndim == 1, "the values of codes")
        expect(len(array) == offsets[-1], "the number of values")
        expect(not np.isnan(array).any(), "the values of codes")
    expect(low.dtype == high.dtype, "the values of codes")
    expect(exact.dtype == np.bool_ and exact.shape == (n_columns,), "which columns are exact")
    expect(units.dtype == np.uint8 and units.shape == (n_columns,), "the units")
    expect(int(units.max()) < len(UNITS), "the units")
    handle_unknown = document["handle_unknown"]
    expect(handle_unknown in HANDLE_UNKNOWN, "handle_unknown")
    takes_infinities = document.get("takes_infinities", False)  # not in older files
    expect(type(takes_infinities) is bool, "takes_infinities")
    names = document["feature_names"]
    if names is not None:
        names = decode(names, values)
        expect(is_names(names, n_columns), "the names of the columns")
    categories = {}
    for column, encoded in document["categories"]:
        expect(type(column) is int and 0 <= column < n_columns, "the columns with categories")
        found = decode(encoded, values)
        expect(isinstance(found, np.ndarray) and found.ndim == 1, "the categories")
        expect(len(found) == n_codes[column] - n_ordered[column] > 0, "the number of categories")
        expect(len(set(found.tolist())) == len(found), "the categories")
        categories[column] = found
    expect(
        set(categories) == set(np.flatnonzero(n_codes > n_ordered).tolist())
        and len(categories) == len(document["categories"]),
        "the columns with categories",
    )
    return CodeBook(
        n_columns=n_columns,
        feature_names=names,
        n_codes=n_codes,
        n_ordered=n_ordered,
        offsets=offsets,
        low=low,
        high=high,
        exact=exact,
        units=units,
        categories=categories,
        handle_unknown=handle_unknown,
        takes_infinities=takes_infinities,
    )


def is_names(names: Any, n_columns: int) -> bool:
    """Whether they are the names of so many columns."""
    return (
        isinstance(names, np.ndarray)
        and names.dtype == object
        and names.shape == (n_columns,)
        and all(type(name) is str for name in names)
    )


def expect(condition: bool, what: str) -> None:
    """Raise a ValueError that names what is wrong unless the condition holds."""
    if not condition:
        raise ValueError(f"{what} cannot be")
