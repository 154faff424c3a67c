"""Cells of tables of all libraries, and of columns as numbers and words."""

import datetime

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from dtrees.inspection.cells import LETTERS, Cells, cells_of, written

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

FRAME = pd.DataFrame(
    {
        "number": [1, 2, 3],
        "day": pd.to_datetime(["2024-05-01", None, "2024-05-03 12:00"], format="ISO8601"),
        "span": pd.to_timedelta([1, 2, None], unit="h"),
        "flag": [True, False, True],
        "word": ["a", None, "b"],
    }
)
EXPECTED = [
    [1, datetime.datetime(2024, 5, 1), datetime.timedelta(hours=1), True, "a"],
    [2, None, datetime.timedelta(hours=2), False, None],
    [3, datetime.datetime(2024, 5, 3, 12), None, True, "b"],
]


class TestTables:
    @pytest.mark.parametrize(
        "made", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas, pd.DataFrame.to_numpy]
    )
    def test_cells_are_those_of_the_table(self, made):
        assert cells_of(made(FRAME)).tolist() == EXPECTED
        for name, kind in ("day", "M"), ("span", "m"), ("flag", "b"):
            alone = cells_of(made(FRAME[[name]]))
            assert alone.dtype.kind == kind

    def test_numbers_have_one_type(self):
        frame = pd.DataFrame({"whole": [1, 2], "real": [0.5, np.nan]})
        assert cells_of(frame).dtype == cells_of(pl.from_pandas(frame)).dtype == np.float64
        array = np.arange(6).reshape(3, 2)
        assert cells_of(array) is array
        assert np.shares_memory(cells_of(pd.DataFrame(array, copy=False)), array)
        assert cells_of([[1, "a"]]).tolist() == [[1, "a"]]

    def test_missing_booleans(self):
        frame = pd.DataFrame({"flag": pd.array([True, None], dtype="boolean")})
        assert cells_of(frame).tolist() == [[True], [None]]

    def test_sparse_tables_stay_sparse(self):
        table = scipy.sparse.csc_array([[0, 1], [2, 0]])
        found = cells_of(table)
        assert found.format == "csr"
        assert found.toarray().tolist() == [[0, 1], [2, 0]]


class TestCells:
    def test_numbers(self):
        assert Cells.of(np.array([1, 5])).numbers.tolist() == [1, 5]
        mixed = Cells.of(np.array([1.5, None, True], dtype=object))
        np.testing.assert_array_equal(mixed.numbers, [1.5, np.nan, 1])
        assert mixed.words == []
        assert mixed.is_missing.tolist() == [False, True, False]

    def test_dates_and_spans(self):
        days = np.array(["1970-01-03", "NaT"], dtype="M8[D]")
        for cells in days, pd.Series(days.astype("M8[ns]")).astype(object).to_numpy():
            found = Cells.of(cells)
            np.testing.assert_array_equal(found.numbers, [2, np.nan])
            assert found.unit == "dates"

    @pytest.mark.parametrize("unit", ["days", "hours", "minutes", "seconds"])
    def test_the_unit_of_spans_is_that_of_the_longest(self, unit):
        longest = pd.Timedelta(1.5, unit)
        found = Cells.of(np.array([longest, pd.NaT, -longest / 3], dtype=object))
        np.testing.assert_allclose(found.numbers, [1.5, np.nan, -0.5])
        assert found.unit == unit

    def test_words(self):
        found = Cells.of(np.array(["b", None, "a", "b"], dtype=object))
        assert found.words == ["a", "b"]
        assert found.codes.tolist() == [1, -1, 0, 1]
        np.testing.assert_array_equal(found.places, [1, -1, 0, 1])

    def test_words_stand_behind_numbers(self):
        found = Cells.of(np.array(["10", "never", None, "0", "often"], dtype=object))
        np.testing.assert_array_equal(found.numbers, [10, np.nan, np.nan, 0, np.nan])
        assert found.words == ["never", "often"]
        np.testing.assert_allclose(found.places, [10, 11.2, -1.2, 0, 12.4])

    def test_categories_are_words_whatever_they_are(self):
        found = Cells.of(np.array([10.0, 9.0, np.nan]), is_category=True)
        assert found.words == ["9", "10"]
        assert found.codes.tolist() == [1, 0, -1]
        assert np.isnan(found.numbers).all()


def test_long_cells_are_cut():
    assert written("x" * LETTERS) == "x" * LETTERS
    assert written("x" * (LETTERS + 1)) == "x" * (LETTERS - 1) + "…"
