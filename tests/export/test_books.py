"""Codebooks in a model file: categories of any type."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier
from dtrees.exceptions import ModelFileError
from dtrees.export import load, save
from dtrees.export.archive import Archive, write
from dtrees.export.books import decode_book, encode_book
from dtrees.export.values import Encoder
from tests.export.test_models import assert_same, assert_same_book, made, noisy, there_and_back


def day(i):
    return datetime.date(2024, 1, 1) + datetime.timedelta(days=i)


UTC = datetime.UTC
CATEGORIES = {
    "strings": ["a", "b", ""],
    "integers": [3, 1, 2**60],
    "floats": [0.5, 1.5, float("inf")],
    "bools": [True, False],
    "numpy": [np.str_("a"), np.str_("b")],
    "mixed": ["a", 1, 2.5, False],
    "dates": [day(i) for i in range(3)],
    "datetimes": [datetime.datetime(2024, 1, i + 1, 3, 4, 5, 6) for i in range(3)],
    "with a zone": [datetime.datetime(2024, 1, i + 1, tzinfo=UTC) for i in range(3)],
    "with a distance": [
        datetime.datetime(2024, 1, i + 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
        for i in range(3)
    ],
    "times": [datetime.time(i, 5) for i in range(3)],
    "time spans": [datetime.timedelta(days=-i, microseconds=5) for i in range(3)],
    "timestamps": [pd.Timestamp("2024-01-01 00:00:00.000000001"), pd.Timestamp("2024-01-02")],
    "timestamps with a zone": list(pd.date_range("2024-03-31", periods=3, tz="Europe/Berlin")),
    "seconds": list(pd.to_datetime(["2024-01-01", "2024-01-02"]).as_unit("s")),
    "pandas time spans": list(pd.to_timedelta([1, 2, 3], unit="h")),
    "intervals": list(pd.interval_range(0, 3)),
    "periods": list(pd.period_range("2024-01", periods=3, freq="M")),
    "tuples": [("a", 1), ("b", 2)],
    "bytes": [b"a", b"\xff"],
    "decimals": [Decimal("1.10"), Decimal("2.0")],
    "fractions": [Fraction(1, 3), Fraction(2, 3)],
}


@pytest.mark.filterwarnings("ignore:.*")
@pytest.mark.parametrize("name", CATEGORIES)
def test_categories_of_any_type(name, tmp_path):
    values = np.empty(len(CATEGORIES[name]), dtype=object)
    values[:] = CATEGORIES[name]
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, len(values), 80)
    column = pd.Categorical.from_codes(codes, categories=pd.Index(values, dtype=object))
    X = pd.DataFrame({"c": column, "x": rng.normal(size=80)})
    model = DecisionTreeClassifier(random_state=0).fit(X, codes > 0)
    again = there_and_back(model, tmp_path)
    assert_same(model, again)
    np.testing.assert_array_equal(model.predict(X), again.predict(X))
    assert (model.predict(X) == (codes > 0)).all()


@pytest.mark.filterwarnings("ignore:.*")
def test_numbers_as_categories(tmp_path):
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64, np.int16, bool):
        X = rng.integers(0, 2 if dtype is bool else 200, (300, 2)).astype(dtype)
        model = DecisionTreeRegressor(categorical_features=[True, False]).fit(X, rng.random(300))
        again = there_and_back(model, tmp_path)
        assert_same(model, again)
        np.testing.assert_array_equal(model.predict(X), again.predict(X))


def test_a_category_that_no_file_can_hold(tmp_path):
    class Colour:
        def __lt__(self, other):
            return id(self) < id(other)

    values = np.empty(2, dtype=object)
    values[:] = [Colour(), Colour()]
    column = pd.Categorical.from_codes([0, 1, 0, 1], categories=pd.Index(values, dtype=object))
    model = DecisionTreeClassifier().fit(pd.DataFrame({"c": column}), [0, 1, 0, 1])
    with pytest.raises(TypeError, match=r"column 'c' of X, among its categories, holds a .*Colour"):
        save(model, tmp_path / "model.dtrees")
    assert list(tmp_path.iterdir()) == []


def test_hybrid_columns_need_their_values(tmp_path):
    X, y = noisy()
    save(made(RandomForestClassifier).fit(X, y), tmp_path / "model")
    archive = Archive(tmp_path / "model", False)
    arrays = archive.arrays()
    for name, wrong in {
        "codebook/n_values": arrays["codebook/n_values"] * 0,
        "codebook/low": arrays["codebook/low"] * np.nan,
        "codebook/n_ordered": arrays["codebook/n_ordered"] + np.uint8(1),
    }.items():
        write(tmp_path / "bad", archive.document, arrays | {name: wrong})
        with pytest.raises(ModelFileError, match=r"values|codes|categories"):
            load(tmp_path / "bad")


def encoded(frame):
    """The codebook of a table, and what a file holds of it."""
    book = DecisionTreeClassifier(max_bins=None).fit(frame, [0, 1, 0, 1]).tree_.codebook
    encoder = Encoder()
    document, arrays = encode_book(book, encoder)
    return book, json.loads(json.dumps(document)), arrays, encoder.arrays


TABLE = pd.DataFrame(
    {
        "n": [0.5, 1.5, np.nan, 2.5],
        "c": pd.Categorical(["a", "b", "a", None]),
        "h": [1, "x", 2, "y"],
        "d": pd.to_datetime(["2024-01-01", "2024-01-02", None, "2024-01-04"]),
        "e": [np.nan] * 4,
    }
)


def test_a_book_comes_back():
    book, *parts = encoded(TABLE)
    assert_same_book(decode_book(*parts), book)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_columns", 4),
        ("n_columns", True),
        ("handle_unknown", "ignore"),
        ("feature_names", {"objects": [[1], ["n"]]}),
        ("categories", []),
        ("exact", None),
    ],
)
def test_documents_of_no_book(name, value):
    _, document, arrays, values = encoded(TABLE)
    document = document | {name: value}
    with pytest.raises((ValueError, TypeError, KeyError)):
        decode_book(document, arrays, values)


@pytest.mark.parametrize("name", ["low", "exact", "units"])
@pytest.mark.parametrize("change", ["shorter", "another type"])
def test_arrays_of_no_book(name, change):
    _, document, arrays, values = encoded(TABLE)
    array = arrays[name]
    arrays[name] = array[:-1] if change == "shorter" else array.astype(np.int64)
    with pytest.raises(ValueError, match="cannot be"):
        decode_book(document, arrays, values)
