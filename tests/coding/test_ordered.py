"""Numbers to codes: infinities are refused, and memory is given back."""

import weakref

import numpy as np
import pytest
import scipy.sparse as sp

from dtrees import DecisionTreeRegressor
from dtrees.coding import CodeBook, ordered
from dtrees.coding.code_store import CodeStore
from dtrees.coding.ordered import OrderedValues
from dtrees.coding.sampling import CutRules
from dtrees.coding.tables import Numbers
from dtrees.typing import serial

rng = np.random.default_rng(0)


@pytest.mark.parametrize("max_bins", [None, 20])
def test_memory_of_values_is_given_back_block_by_block(max_bins, monkeypatch):
    blocks = [Numbers(np.array([j]), rng.normal(size=(100, 1))) for j in range(3)]
    arrays, alive = [], []

    def lazy_array(size, dtype):
        array = np.empty(size, dtype=dtype)
        arrays.append(weakref.ref(array))
        return array

    def values_of_block(*fields):
        alive.append(sum(array() is not None for array in arrays))
        return OrderedValues(*fields)

    monkeypatch.setattr(ordered, "lazy_array", lazy_array)
    monkeypatch.setattr(ordered, "OrderedValues", values_of_block)
    store = CodeStore(100, 3, largest=100)
    ordered.code_numbers(blocks, store, CutRules(max_bins=max_bins), serial)
    assert alive == ([2, 1, 0] if max_bins is None else [4, 2, 0])


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64, "csc", "cuts", "sparse cuts"])
def test_infinity_is_refused_and_named(value, kind):
    X = rng.normal(size=(400, 3))
    X[7, 1] = value
    options = {"max_bins": 20} if "cuts" in str(kind) else {}
    X = sp.csc_array(X) if kind in ("csc", "sparse cuts") else X
    X = X.astype(kind) if isinstance(kind, type) else X
    message = r"Input X contains infinity or a value too large for dtype\('float64'\).*column 1"
    with pytest.raises(ValueError, match=message):
        CodeBook.fit_encode(X, **options)


@pytest.mark.parametrize("kind", [np.float64, "missing", "hybrid"])
def test_rows_of_wide_columns_that_are_cut_are_in_order(kind):
    x = rng.permutation(70_000).astype(object if kind == "hybrid" else np.float64)
    x[:100] = {"missing": np.nan, "hybrid": "none"}.get(kind, x[:100])
    _, coded = CodeBook.fit_encode(np.column_stack([x, x]), max_bins=65_600)
    assert coded.order32.shape == (70_000, 2)
    for j in range(2):
        assert np.array_equal(coded.order32[:, j], np.argsort(coded.column(j), kind="stable"))


def test_trees_on_more_cuts_than_65535():
    x = rng.permutation(70_000).astype(float)
    y = np.sin(x / 3000)
    models = [
        DecisionTreeRegressor(max_bins=max_bins, max_depth=8).fit(x[:, None], y)
        for max_bins in (65_600, None)
    ]
    scores = [model.score(x[:, None], y) for model in models]
    assert scores[0] == pytest.approx(scores[1], abs=1e-3)
