"""Integers that float64 does not tell apart are categories of their own, in every form of table."""

import math

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dtrees
from dtrees.coding import CodeBook
from dtrees.export import load, save
from dtrees.parallel import admitted, encode_partitions

NEAR = {
    "greatest": ([2**64 - 1, 2**64 - 2, 0, 2**63], np.uint64),
    "both ends": ([2**63 - 1, -(2**63), 0, 2**63 - 2], np.int64),
    "one apart": ([2**53, 2**53 + 1, 2**53 + 2, -(2**53) - 1], np.int64),
    "at the end of the floats": ([2**53, 2**53 + 1, 7, 2**53 - 1], np.int64),
    "at the other end": ([-(2**53), -(2**53) - 1, 7, 1 - 2**53], np.int64),
    "unsigned": ([2**53, 2**53 + 1, 7, 2**53 - 1], np.uint64),
}
REPEATS = 30
NAMES = np.array(["max", "near", "zero", "other"])


def column(case):
    values, dtype = NEAR[case]
    return np.array(values * REPEATS, dtype=dtype)


def gap(values, cell=None):
    """With another cell in the fourth place from the end."""
    return [*values.tolist()[:-4], cell, *values.tolist()[-3:]]


def objects(values):
    found = np.empty((len(values), 1), dtype=object)
    found[:, 0] = values
    return found


FORMS = {
    "numpy": lambda values: values[:, None],
    "swapped": lambda values: values.astype(values.dtype.newbyteorder())[:, None],
    "list": lambda values: [[int(value)] for value in values],
    "objects": lambda values: objects(values.tolist()),
    "objects with None": lambda values: objects(gap(values)),
    "objects with a float": lambda values: objects(gap(values, 0.5)),
    "list with a float": lambda values: [[cell] for cell in gap(values, 0.5)],
    "list with None": lambda values: [[cell] for cell in gap(values)],
    "list with nan": lambda values: [[cell] for cell in gap(values, math.nan)],
    "pandas": lambda values: pd.DataFrame({"a": values}),
    "nullable": lambda values: pd.DataFrame({"a": pd.Series(values).convert_dtypes()}),
    "nullable with NA": lambda values: _with_missing(
        pd.DataFrame({"a": pd.Series(values).convert_dtypes()})
    ),
    "arrow-backed": lambda values: pd.DataFrame({"a": pd.Series(pa.array(values)).astype(
        pd.ArrowDtype(pa.from_numpy_dtype(values.dtype)))}),
    "arrow-backed with NA": lambda values: pd.DataFrame({"a": pd.Series(pa.array(
        gap(values), pa.from_numpy_dtype(values.dtype)), dtype=pd.ArrowDtype(
            pa.from_numpy_dtype(values.dtype)))}),
    "polars": lambda values: pl.DataFrame({"a": values}),
    "polars with null": lambda values: pl.DataFrame(
        {"a": pl.Series(gap(values), dtype=pl.UInt64 if values.dtype == "u8" else pl.Int64)}),
    "arrow": lambda values: pa.table({"a": values}),
    "arrow with null": lambda values: pa.table(
        {"a": pa.array(gap(values), type=pa.from_numpy_dtype(values.dtype))}),
    "masked": lambda values: np.ma.masked_array(
        values[:, None], mask=(np.arange(len(values)) == len(values) - 4)[:, None]),
}  # fmt: skip


def _with_missing(frame):
    frame.loc[len(frame) - 4, "a"] = pd.NA
    return frame


@pytest.mark.one_of(6)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", NEAR)
def test_every_integer_is_a_category_of_its_own(case, form, tmp_path):
    values = column(case)
    X, y = FORMS[form](values), np.tile(NAMES, REPEATS)
    tree = dtrees.DecisionTreeClassifier(categorical_features=[0], random_state=0).fit(X, y)
    seen = [row for row in range(len(y)) if row != len(y) - 4]
    assert (tree.predict(X)[seen] == y[seen]).all()
    save(tree, tmp_path / "tree")
    again = load(tmp_path / "tree")
    assert (again.predict(X) == tree.predict(X)).all()
    for other in ("numpy", "objects", "polars with null", "nullable"):
        given = FORMS[other](values)
        with_names = isinstance(given, pd.DataFrame | pl.DataFrame | pa.Table)
        if with_names == hasattr(tree, "feature_names_in_"):
            assert (again.predict(given)[seen] == y[seen]).all(), other


GAPS = ["objects with None", "objects with a float", "list with None", "list with nan",
        "list with a float", "nullable with NA", "arrow-backed with NA", "polars with null",
        "arrow with null", "masked"]  # fmt: skip


@pytest.mark.parametrize("form", GAPS)
@pytest.mark.parametrize("sign", [1, -1])
def test_neighbours_beside_a_gap_are_predicted_apart(form, sign):
    known = np.array([2**53, 2**53 + 1, 2**53 + 2] * 2) * sign
    tree = dtrees.DecisionTreeClassifier(categorical_features=[0], random_state=0)
    given = FORMS[form](np.array([2**53, 2**53 + 1, 0, 7, 7, 7]) * sign)
    with_names = isinstance(given, pd.DataFrame | pl.DataFrame | pa.Table)
    tree.fit(FORMS["pandas" if with_names else "numpy"](known), list("pqr") * 2)
    assert tree.predict(given)[:2].tolist() == ["p", "q"]
    # no more than these two and the gap: nothing longer beside them gives them away
    pair = FORMS[form](np.array([2**53, 2**53 + 1, 2**53, 2**53 + 1, 2**53, 2**53, 2**53]) * sign)
    assert tree.predict(pair)[:3].tolist() == ["p", "q", "p"]


def test_floats_are_not_taken_for_their_neighbours():
    X, y = column("greatest")[:, None], np.tile(NAMES, REPEATS)
    tree = dtrees.DecisionTreeClassifier(categorical_features=[0], handle_unknown="error").fit(X, y)
    assert tree.predict([[2.0**63]]) == ["other"]
    with pytest.raises(dtrees.exceptions.UnseenCategoryError, match="1\\.844"):
        tree.predict([[2.0**64]])


@pytest.mark.one_of(6)
@pytest.mark.parametrize("case", NEAR)
@pytest.mark.parametrize("form", ["numpy", "nullable", "nullable with NA"])
def test_partitions_give_the_same_book(case, form):
    X = FORMS[form](column(case))
    book, coded = CodeBook.fit_encode(X, categorical_features=[0])
    for chunk in (120, 50, 7):
        lazy = (
            da.from_array(X, (chunk, 1)) if form == "numpy" else dd.from_pandas(X, chunksize=chunk)
        )
        (table,) = admitted(lazy, {})
        found, codes = encode_partitions(table, categorical_features=[0])
        assert found.categories[0].dtype == book.categories[0].dtype
        assert found.categories[0].tolist() == book.categories[0].tolist()
        assert list(map(type, found.categories[0].tolist())) == [int] * 4
        assert (codes.column(0) == coded.column(0)).all()


def test_parts_of_which_only_some_hold_long_integers():
    cells = [1, 2.0, None, 2**60, 2**60 + 1, 5] * 4
    X = pd.DataFrame({"a": pd.Series(objects(cells)[:, 0])})
    book, coded = CodeBook.fit_encode(X, categorical_features=[0])
    with dask.config.set({"dataframe.convert-string": False}):
        (table,) = admitted(dd.from_pandas(X, chunksize=3), {})
        found, codes = encode_partitions(table, categorical_features=[0])
    assert (
        found.categories[0].tolist() == book.categories[0].tolist() == [1, 2, 5, 2**60, 2**60 + 1]
    )
    assert repr(found.categories[0].tolist()) == repr(book.categories[0].tolist())
    assert (codes.column(0) == coded.column(0)).all()


def test_long_doubles_are_the_nearest_float64(tmp_path):
    X = np.array([1, 1 + 2**-60, 2, 3], dtype=np.longdouble)[:, None]
    tree = dtrees.DecisionTreeClassifier(categorical_features=[0], category_penalty=0.0)
    tree.fit(X, [0, 0, 1, 2])
    assert tree.tree_.codebook.n_codes.tolist() == [3]
    assert tree.predict(X).tolist() == [0, 0, 1, 2]
    save(tree, tmp_path / "tree")
    assert load(tmp_path / "tree").predict(X).tolist() == [0, 0, 1, 2]
