"""Columns whose categories are not those that were fitted, and columns of ids."""

import warnings
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
from distributed import Client
from sklearn.base import clone
from sklearn.model_selection import KFold

from dtrees import (
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.coding.column_types import nearly_ids
from dtrees.exceptions import UnseenCategoryError
from dtrees.export import load, save
from dtrees.model_selection import cross_validate
from tests.parallel.clusters import connect, digest

Y = np.tile([0, 1, 2], 20)
CODES = np.tile([7, 8, 9], 20)
TEXT = pd.DataFrame({"a": pd.Series(CODES.astype(str), dtype="category"), "b": np.arange(60.0)})
DRIFTED = pd.DataFrame({"a": pd.Series(CODES, dtype="category"), "b": np.arange(60.0)})
WARNED = (
    r"'a' of X: none of its values was there at fit, such as '7' of type int; .*'7' of type str"
)
NUMBERS = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 4)).round(2), columns=[*"abcd"])
NAMED = NUMBERS.assign(
    id=[f"row {i}" for i in range(200)],
    **{f"id {j}": [f"row {i}" for i in np.random.default_rng(j).permutation(200)] for j in (1, 2)},
)
IDS = {4, 5, 6}
TARGET = (NUMBERS.sum(axis=1) > 0).to_numpy().astype(int) + np.arange(200) % 2
IDS_ARE_THERE = pytest.mark.filterwarnings("ignore:Columns? .* an id")
BOOSTED = {"max_iter": 4, "min_samples_leaf": 1}
MADE = {
    "tree": partial(DecisionTreeRegressor, category_penalty=0),
    "bagging": partial(BaggingClassifier, 4, category_penalty=0),
    "forest": partial(RandomForestRegressor, 4, max_features=None, category_penalty=0),
    "extra trees": partial(ExtraTreesClassifier, 4, max_features=None, max_depth=4),
    "boosting": partial(GradientBoostingClassifier, category_penalty=0, **BOOSTED),
    "medians": partial(GradientBoostingRegressor, loss="absolute_error", **BOOSTED),
}
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


def trees_of(model):
    return model.forest_.trees if hasattr(model, "forest_") else (model.tree_.model,)


def used_by(model):
    return {j for tree in trees_of(model) for j in tree.feature[tree.test > 0].tolist()}


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


def names_of_rows(n_columns):
    return np.array([[f"{j}-{i}" for j in range(n_columns)] for i in range(60)], dtype=object)


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
class TestIds:
    def test_they_are_said_not_to_be_used(self, make):
        for n, said in ((2, "at least 60 .* They are"), (1, "X: 60 .* It is")):
            with pytest.warns(UserWarning, match=f"{said} not used. An id tells"):
                make().fit(names_of_rows(n), Y)

    @IDS_ARE_THERE
    def test_no_split_uses_them(self, make):
        model = make(random_state=0).fit(NAMED, TARGET)
        alone = make(random_state=0).fit(NUMBERS, TARGET)
        assert used_by(model) == {0, 1, 2, 3}
        np.testing.assert_array_equal(model.predict(NAMED), alone.predict(NUMBERS))
        assert used_by(make().fit(NAMED[["id", "id 1"]], TARGET)) == set()

    @IDS_ARE_THERE
    def test_nor_does_one_of_a_fold(self, make):
        """Though other columns of its rows name each of them as well."""
        often = NAMED.assign(often=[f"name {i % 120}" for i in range(200)])
        splits = list(KFold(3).split(often))
        made = make(random_state=0)
        found = cross_validate(made, often, TARGET, cv=splits, return_estimator=True)
        for model, (train, _) in zip(found["estimator"], splits, strict=True):
            weights = np.isin(np.arange(200), train).astype(float)
            alone = clone(made).fit(often, TARGET, sample_weight=weights)
            assert digest(trees_of(model)) == digest(trees_of(alone))
            assert not used_by(model) & IDS


@IDS_ARE_THERE
@pytest.mark.parametrize("kind", [ExtraTreesRegressor, RandomForestClassifier])
class TestIdsOfForests:
    def test_they_are_not_counted(self, kind):
        for share, drawn in {"sqrt": 2, "log2": 2, 0.5: 2, 0.75: 3, None: 4}.items():
            own = kind(4, max_features=share, random_state=0).fit(NAMED, TARGET)
            same = kind(4, max_features=drawn, random_state=0).fit(NAMED, TARGET)
            assert own.max_features_ == drawn
            assert used_by(own) == {0, 1, 2, 3}
            assert digest(own.forest_.trees) == digest(same.forest_.trees)

    @pytest.mark.one_of(2)
    def test_every_regime_grows_the_same_trees(self, kind):
        made = kind(4, random_state=0)
        expected = digest(made.fit(NAMED, TARGET).forest_.trees)
        rows = dd.from_pandas(NAMED, npartitions=3)
        with connect(2, 1, False) as cluster, Client(cluster):
            for regime in ("local", "replicated", "partitioned"):
                made.set_params(regime=regime).fit(rows, TARGET)
                assert made.fit_report_["regime"] == regime
                assert digest(made.forest_.trees) == expected


@IDS_ARE_THERE
def test_trees_that_are_added_use_no_ids():
    for make in (MADE["forest"], MADE["medians"]):
        size = "max_iter" if make is MADE["medians"] else "n_estimators"
        model = make(warm_start=True, random_state=0).fit(NAMED, TARGET)
        model.set_params(**{size: 8}).fit(NAMED, TARGET)
        assert used_by(model) == {0, 1, 2, 3}
        whole = make(random_state=0).set_params(**{size: 8}).fit(NAMED, TARGET)
        assert digest(model.forest_.trees) == digest(whole.forest_.trees)


def test_dates_in_text_are_named_once():
    days = pd.date_range("2024-01-01", periods=12).strftime("%d.%m.%Y").tolist() * 5
    X = pd.DataFrame({"day": days, "size": np.arange(60.0)})
    with pytest.warns(UserWarning, match="Values of column 'day' look like dates") as got:
        cross_validate(DecisionTreeClassifier(), X, Y, cv=3)
    assert len(got) == 1
    DecisionTreeClassifier().fit(X.assign(day=pd.to_datetime(days, dayfirst=True)), Y)
