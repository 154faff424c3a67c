"""Columns whose categories are not those that were fitted, and columns of ids."""

import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest

from dtrees import (
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from dtrees.coding.category_warnings import nearly_ids
from dtrees.exceptions import UnseenCategoryError
from dtrees.export import load, save
from dtrees.model_selection import cross_validate

Y = np.tile([0, 1, 2], 20)
CODES = np.tile([7, 8, 9], 20)
TEXT = pd.DataFrame({"a": pd.Series(CODES.astype(str), dtype="category"), "b": np.arange(60.0)})
DRIFTED = pd.DataFrame({"a": pd.Series(CODES, dtype="category"), "b": np.arange(60.0)})
WARNED = (
    r"'a' of X: none of its values was there at fit, such as '7' of type int; .*'7' of type str"
)
MODELS = [DecisionTreeClassifier(random_state=0), RandomForestClassifier(3, random_state=0)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
class TestPredictions:
    @pytest.mark.parametrize("method", ["predict", "predict_proba", "apply", "decision_path"])
    def test_warns_once_per_call(self, model, method):
        model.fit(TEXT, Y)
        with pytest.warns(UserWarning, match=WARNED) as caught:
            getattr(model, method)(DRIFTED)
        assert len(caught) == 1
        with pytest.warns(UserWarning, match=WARNED):
            model.score(DRIFTED, Y)

    def test_after_a_file(self, model, tmp_path):
        save(model.fit(TEXT, Y), tmp_path / "model")
        with pytest.warns(UserWarning, match=WARNED):
            load(tmp_path / "model").predict(DRIFTED)

    def test_error(self, model):
        strict = model.__class__(random_state=0, handle_unknown="error").fit(TEXT.assign(b=0.0), Y)
        with pytest.raises(UnseenCategoryError, match=WARNED):
            strict.predict(DRIFTED)
        constant = strict.fit(TEXT, np.zeros(60))  # no tree asks about the column
        with pytest.raises(UnseenCategoryError, match=WARNED):
            constant.predict(DRIFTED)

    def test_one_value_that_is_known_is_enough(self, model):
        model.fit(TEXT, Y)
        some = TEXT.astype({"a": object}).assign(a=["7", *CODES[1:]])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.predict(some.astype({"a": "category"}))
            model.predict(TEXT.assign(a=pd.Series([None] * 60, dtype="category")))
        assert told == []

    def test_few_rows_do_not_warn(self, model):
        model.fit(TEXT, Y)
        gaps = DRIFTED.assign(a=pd.Series([7] * 9 + [None] * 51, dtype="category"))
        for few in (DRIFTED[:1], DRIFTED[:9], gaps):
            model.predict(few)
        blocks = dd.from_pandas(DRIFTED, npartitions=30)
        with dask.config.set(scheduler="synchronous"):
            model.predict(blocks).compute()
        with pytest.warns(UserWarning, match=WARNED):
            model.predict(DRIFTED[:10])
        with pytest.warns(UserWarning, match=WARNED):
            model.predict(gaps.assign(a=pd.Series([7] * 10 + [None] * 50, dtype="category")))

    def test_one_row_is_an_error(self, model):
        strict = model.__class__(random_state=0, handle_unknown="error").fit(TEXT, np.zeros(60))
        with pytest.raises(UnseenCategoryError, match=WARNED):
            strict.predict(DRIFTED[:1])  # though no tree asks about the column

    def test_blocks_warn_one_by_one(self, model):
        model.fit(TEXT, Y)
        lazy = dd.from_pandas(DRIFTED, npartitions=3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            answer = model.predict(lazy)
        with dask.config.set(scheduler="synchronous"), warnings.catch_warnings(record=True) as got:
            warnings.simplefilter("always")
            answer.compute()
        assert [str(each.message)[:20] for each in got] == ["Column 'a' of X: non"] * 3


def test_numbers_that_are_names():
    X = np.tile([[1], [2], [3]], (20, 1))
    tree = DecisionTreeClassifier(categorical_features=[0]).fit(X, Y)
    with pytest.warns(UserWarning, match=r"column 0 of X: none|Column 0 of X: none"):
        tree.predict(X + 10)
    assert (tree.predict(X.astype(float)) == Y).all()
    text = DecisionTreeClassifier().fit(X.astype(str).astype(object) + "x", Y)
    with pytest.warns(UserWarning, match="Column 0 of X: none"):
        text.predict(np.full((10, 1), "y", dtype=object))


def test_hybrid_columns():
    column = np.array([["a"], ["b"], [1.0]] * 20, dtype=object)
    tree = DecisionTreeClassifier().fit(column, Y)
    tree.predict(np.array([[5.0], ["c"]] * 10, dtype=object))
    with pytest.warns(UserWarning, match="Column 0 of X: none"):
        tree.predict(np.array([["c"], [None]] * 10, dtype=object))


def test_polars():
    X = pl.DataFrame({"a": CODES.astype(str)}).cast({"a": pl.Categorical})
    tree = DecisionTreeClassifier().fit(X, Y)
    with pytest.warns(UserWarning, match="'a' of X: none of its values"):
        tree.predict(pl.DataFrame({"a": ["x", "y"] * 5}).cast({"a": pl.Categorical}))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    "model", [DecisionTreeClassifier(), GradientBoostingClassifier(max_iter=2)]
)
def test_ids_are_named_once(lazy, model):
    names = np.array([[f"name {i}", "ab"[i % 2]] for i in range(60)], dtype=object)
    X = da.from_array(names, (20, 2)) if lazy else names
    with pytest.warns(UserWarning, match="Column 0 of X: 60 .* in 60 rows. Is this an id") as got:
        model.fit(X, Y)
    assert len(got) == 1
    with pytest.warns(UserWarning, match="Column 0 of X: 60") as got:
        cross_validate(model, names, Y, cv=3)
    assert len(got) == 1


def test_several_ids_are_one_warning():
    names = np.array([[f"{j}-{i}" for j in range(7)] for i in range(60)], dtype=object)
    with pytest.warns(UserWarning, match="Columns 0, 1, 2, 3, 4 and 2 more of X: .*") as got:
        tree = DecisionTreeClassifier().fit(names, Y)
    assert len(got) == 1
    assert nearly_ids(tree.tree_.codebook, 60) == dict.fromkeys(range(7), 60)
    assert nearly_ids(tree.tree_.codebook, 67) == {}


def test_extra_trees_say_that_ids_are_not_used():
    names = np.array([[f"{j}-{i}" for j in range(2)] for i in range(60)], dtype=object)
    for X, said in ((names, r"each an id\? They are"), (names[:, :1], r"this an id\? It is")):
        with pytest.warns(UserWarning, match=f"{said} not used. An id tells"):
            ExtraTreesClassifier(2).fit(X, Y)
