"""Tables of all kinds, drawn by a seed, with what a reader of the documentation expects of them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

POOL = 5  # different values of a column
MISSING = (None, np.nan, pd.NaT)


@dataclass(frozen=True)
class Drawn:
    """A table, and a column of it that tells the rows apart.

    Attributes
    ----------
    kind : str
    X : table
    keys : list of int, or None
        Of every row: what one of the columns, read as documented, says; None: the table is not to
        be read.
    categorical : list of int or "from_dtype"
    """

    kind: str
    X: Any
    keys: list[int] | None
    categorical: Any = "from_dtype"


def _pools(rng: np.random.Generator) -> dict[str, list[Any]]:
    """Values that are told apart as they are, or as float64."""
    far = float(rng.choice([1.0, 1e-300, 5e-324, 1e300, 1e150, 1e-160]))
    day = dt.date(2000, 1, 1) + dt.timedelta(days=int(rng.integers(0, 9999)))
    return {
        "floats": [far * k for k in (-3, -2, 1, 2, 5)],
        "small integers": [0, 1, 2, 3, 5],
        "booleans": [True, False],
        "strings": ["", "a", "nan", "ä" * 40, "=1+1"],
        "number strings": ["1", "2.5", "-3", "1e3", "7"],
        "mixed": ["1", "x", 2.5, "y", 4],
        "dates": [day + dt.timedelta(days=k) for k in range(POOL)],
        "times": [dt.datetime(2020, 1, 1, k) for k in range(POOL)],
        "spans": [dt.timedelta(seconds=k) for k in range(POOL)],
        "decimals": [Decimal(k) / 10 for k in range(POOL)],
        "fractions": [Fraction(k, 7) for k in range(POOL)],
        "with an integer beyond floats": [10**400, 1, 2],
        "bytes": [b"a", b"b"],
        "lists": [[1], [2]],
        "infinities": [1.0, np.inf, -np.inf],
        "complex": [1j, 2.0],
        "dates and numbers": [day, 3],
        "far dates": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
    }


REFUSED = (
    "with an integer beyond floats", "bytes", "lists", "infinities", "complex",
    "dates and numbers", "far dates",
)  # fmt: skip
LONG = [2**64 - 1, 2**64 - 2, 2**63, 2**53 + 1, 2**53, 7]
SIGNED = [2**63 - 1, 2**63 - 2, -(2**63), 2**53 + 1, 2**53, -(2**53) - 1]


def _objects(cells: list[Any]) -> np.ndarray:
    found = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        found[i] = cell
    return found


def _rows(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 2, 3, 8, 30, 60, 300], p=[0.04, 0.04, 0.04, 0.13, 0.35, 0.3, 0.1]))


def _noise(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    return rng.integers(0, 4, n_rows).astype(rng.choice(["f8", "f4", "i4", "u1"]))


def of_pool(rng: np.random.Generator) -> Drawn:
    """A column of Python objects of a kind, beside noise, in some form of table."""
    pools = _pools(rng)
    kind = str(rng.choice(list(pools)))
    pool = pools[kind]
    n_rows = max(_rows(rng), len(pool) if kind in REFUSED else 1)
    keys = rng.integers(0, len(pool), n_rows)
    cells = [pool[key] for key in keys]
    if rng.random() < 0.3 and kind != "lists":
        gaps = rng.random(n_rows) < 0.2
        gap = MISSING[rng.integers(len(MISSING))]
        cells = [gap if gone else cell for cell, gone in zip(cells, gaps, strict=True)]
        keys = np.where(gaps, -1, keys)
    if kind in REFUSED:
        cells[: len(pool)] = pool
    form = str(rng.choice(["array", "frame", "list", "polars"]))
    noise = _noise(rng, n_rows)
    expected = None if kind in REFUSED else keys.tolist()
    try:
        if form == "array":
            X: Any = np.column_stack([_objects(cells), noise.astype(object)])
        elif form == "frame":
            X = pd.DataFrame({"a": pd.Series(_objects(cells)), "b": noise})
        elif form == "list":
            X = [[cell, float(other)] for cell, other in zip(cells, noise, strict=True)]
        else:
            X = pl.DataFrame({"a": pl.Series(cells), "b": noise})
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        X = pd.DataFrame({"a": pd.Series(_objects(cells)), "b": noise})  # polars has no such column
    return Drawn(f"{kind} in a {form}", X, expected)


def of_long_integers(rng: np.random.Generator) -> Drawn:
    """Integers of 64 bits that are names."""
    pool, dtype = (LONG, np.uint64) if rng.random() < 0.5 else (SIGNED, np.int64)
    n_rows = _rows(rng)
    keys = rng.integers(0, len(pool), n_rows)
    values = np.array(pool, dtype=dtype)[keys]
    form = str(rng.choice(["array", "frame", "nullable", "polars", "list", "objects"]))
    noise = rng.integers(0, 3, n_rows)
    frame = {"a": values, "b": noise}
    X: Any = values[:, None]
    if form == "frame":
        X = pd.DataFrame(frame)
    elif form == "nullable":
        X = pd.DataFrame(frame).convert_dtypes()
        gone = rng.random(n_rows) < 0.2
        X.loc[gone, "a"] = pd.NA
        keys = np.where(gone, -1, keys)
    elif form == "polars":
        X = pl.DataFrame(frame)
    elif form == "list":
        X = [[int(value), 0] for value in values]
    elif form == "objects":
        X = _objects(values.tolist())[:, None]
    return Drawn(f"64-bit integers in a {form}", X, keys.tolist(), [0])


def of_numbers(rng: np.random.Generator) -> Drawn:
    """Plain arrays of all of numpy's types and memory layouts."""
    dtypes = "f2 f4 f8 g >f2 >f4 >f8 >i8 i1 i2 i8 u1 u2 u8 ? M8[D] M8[ns] m8[s] U3 S3 c16 V4 O"
    dtype = np.dtype(str(rng.choice(dtypes.split())))
    n_rows, n_columns = _rows(rng), int(rng.integers(1, 5))
    keys = rng.integers(0, 2 if dtype.kind == "b" else 4, n_rows)
    if dtype.kind == "V":
        return Drawn(f"numpy {dtype}", np.zeros((n_rows, n_columns), dtype), None)
    values = np.repeat(keys[:, None], n_columns, axis=1).astype(dtype)
    if rng.random() < 0.3:
        values = np.asfortranarray(values)[:, ::-1]
    if rng.random() < 0.3:
        values = np.repeat(values, 2, axis=0)[::2]
    expected = None if dtype.kind in "Sc" else keys.tolist()
    if dtype.kind == "f" and rng.random() < 0.3:
        with np.errstate(all="ignore"):
            values[rng.random(values.shape) < 0.2] = rng.choice([np.nan, np.inf])
        expected = [-2] * n_rows  # a row may be any: only invariants hold
        if np.isinf(values).any():
            expected = None
    return Drawn(f"numpy {dtype}", values, expected)


def of_sparse(rng: np.random.Generator) -> Drawn:
    """Sparse tables, some of them damaged."""
    n_rows, n_columns = _rows(rng), int(rng.integers(1, 6))
    keys = rng.integers(0, 3, n_rows)
    dense = rng.integers(0, 2, (n_rows, n_columns)).astype(float)
    dense[:, 0] = keys
    form = str(rng.choice(["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]))
    make = getattr(sp, f"{form}_{rng.choice(['array', 'matrix'])}")
    X = make(dense)
    if rng.random() < 0.5:
        return Drawn(f"sparse {form}", X, keys.tolist())
    name = str(rng.choice(["indices", "indptr"]))
    beyond = n_rows + n_columns if name == "indices" else X.nnz + 1
    bad = int(rng.choice([10**8, -1, 2**31 - 1, beyond]))
    places = getattr(X, name, None)
    if places is None or len(places) == 0:
        return Drawn(f"sparse {form}", X, keys.tolist())
    places = places.copy()
    places[int(rng.integers(len(places)))] = bad
    setattr(X, name, places)
    return Drawn(f"damaged sparse {form}: {name}", X, None)


def of_frames(rng: np.random.Generator) -> Drawn:
    """Data frames of many types of columns, of strange names."""
    n_rows = _rows(rng)
    keys = rng.integers(0, 3, n_rows)
    columns = {
        "category": pd.Categorical.from_codes(keys, ["u", "v", "w"]),
        "numbers as categories": pd.Categorical.from_codes(keys, [7, 8, 9]),
        "Int8": pd.array(keys, dtype="Int8"),
        "boolean": pd.array(keys > 1, dtype="boolean"),
        "string": pd.array(np.array(["p", "q", "r"])[keys], dtype="string"),
        "zone": pd.to_datetime(keys * 10**9, unit="ns", utc=True),
        "period": pd.PeriodIndex.from_ordinals(keys, freq="D"),
        "sparse": pd.arrays.SparseArray(keys.astype(float)),
        "float": rng.random(n_rows),
    }
    chosen = [str(c) for c in rng.choice(list(columns), int(rng.integers(1, 5)), replace=False)]
    X = pd.DataFrame({name: columns[name] for name in chosen})
    is_told = any(name not in ("boolean", "float") for name in chosen)
    expected = keys.tolist() if is_told else [-2] * n_rows
    if rng.random() < 0.1:
        X.columns = [0] * len(chosen)
    elif rng.random() < 0.1:
        X.columns = ["a"] * len(chosen)  # twice the same name
    elif rng.random() < 0.05 and len(chosen) > 1:
        X.columns = [1, *chosen[1:]]
        expected = None
    elif rng.random() < 0.05:
        X = X.iloc[:, :0]
        expected = None
    elif rng.random() < 0.05:
        X = X.iloc[:0]
        expected = None
    if "period" in chosen:
        expected = None
    return Drawn(f"frame of {', '.join(chosen)}", X, expected)


def of_others(rng: np.random.Generator) -> Drawn:
    """What is hardly a table."""
    n_rows = _rows(rng)
    cases: dict[str, Callable[[], Any]] = {
        "None": lambda: None,
        "a string": lambda: "abc",
        "one dimension": lambda: rng.random(n_rows),
        "three dimensions": lambda: rng.random((n_rows, 2, 2)),
        "ragged": lambda: [[1.0], [1.0, 2.0]],
        "no rows": lambda: np.empty((0, 2)),
        "no columns": lambda: np.empty((n_rows, 0)),
        "a dict": lambda: {"a": [1, 2]},
        "a LazyFrame": lambda: pl.LazyFrame({"a": [1, 2]}),
        "a matrix": lambda: np.matrix(rng.random((n_rows, 2))),
        "a set": lambda: {1, 2, 3},
        "a number": lambda: 3,
        "an object": object,
    }
    kind = str(rng.choice(list(cases)))
    return Drawn(kind, cases[kind](), None)


KINDS = (of_pool, of_long_integers, of_numbers, of_sparse, of_frames, of_others)
SHARES = (0.3, 0.15, 0.2, 0.15, 0.15, 0.05)


def draw(rng: np.random.Generator) -> Drawn:
    """Any of them."""
    return KINDS[rng.choice(len(KINDS), p=SHARES)](rng)
