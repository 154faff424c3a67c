"""Which models can be grown together, and which splits are sets of rows."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import load_iris
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline

from dtrees import (
    BaggingClassifier,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from dtrees.model_selection import (
    GridSearchCV,
    cost_complexity_cv,
    cross_validate,
    validation_surface,
)
from dtrees.model_selection.prepare import (
    Arguments,
    draw_splits,
    is_any_of_dtrees,
    prepare,
    prepare_shared,
    unsupported_reason,
    unsupported_splits,
)

TREE = DecisionTreeRegressor()


class Own(DecisionTreeRegressor):
    """May fit in its own way."""


def test_estimators():
    assert all(map(is_any_of_dtrees, (TREE, BaggingClassifier(), ExtraTreesClassifier())))
    assert not any(map(is_any_of_dtrees, (Own(), Ridge(), None)))


def test_reasons():
    assert unsupported_reason(TREE, [1], ["sample_weight"]) is None
    assert unsupported_reason(Ridge(), [1], []) == "Ridge is not an estimator of dtrees"
    assert unsupported_reason(IsolationForest(), [1], []).startswith("each IsolationForest draws")
    assert unsupported_reason(TREE, None, []) == "there is no y"
    assert unsupported_reason(TREE, [1], ["b", "a"]) == "fit is given a, b"
    with sklearn.config_context(enable_metadata_routing=True):
        assert unsupported_reason(TREE, [1], []) == "metadata routing is enabled"


@pytest.mark.parametrize(
    ("splits", "reason"),
    [
        ([([0, 1], [2])], None),
        ([(np.array([True, False, False]), [-1])], None),
        ([], "there are no splits"),
        ([[0, 1, 2]], "no pair"),
        ([([0, 3], [1])], "no rows of X"),
        ([([0.0], [1])], "no rows of X"),
        ([(np.zeros(3, dtype=bool), [1])], "empty"),
        ([([0, -3], [1])], "twice"),
    ],
)
def test_splits(splits, reason):
    found = unsupported_splits(splits, 3)
    assert found is reason is None or reason in found


X, Y = load_iris(return_X_y=True)
CLASSIFIER = DecisionTreeClassifier()
GROUPS = np.arange(150)[:, None]


def test_errors_are_reasons_where_scikit_learn_will_raise_them():
    arguments = Arguments("f", CLASSIFIER, KFold(200))
    with pytest.raises(ValueError, match="n_splits=200"):
        prepare(arguments, X, Y, reason=None)
    prepared = prepare(arguments, X, Y, reason=None, check=lambda: None)
    assert "n_splits=200" in prepared.reason
    with pytest.raises(ValueError, match="groups has 3 values"):
        prepare(Arguments("f", CLASSIFIER, 3, [1, 2, 3]), X, Y, reason=None, check=lambda: None)


@pytest.mark.parametrize(
    ("estimator", "how", "message"),
    [
        (Ridge(), {}, "f needs models that grow together: Ridge is not an estimator of dtrees"),
        (
            make_pipeline(CLASSIFIER),
            {},
            r"Give its last step, and X as the steps before it leave it\.",
        ),
        (RandomForestClassifier(), {"single": True}, "is not a single tree"),
    ],
)
def test_who_cannot_share(estimator, how, message):
    with pytest.raises(TypeError, match=message):
        prepare_shared(Arguments("f", estimator, 3), X, Y, **how)


def test_the_warning_of_a_column_of_groups_points_at_the_caller():
    with pytest.warns(DataConversionWarning, match="ravel") as warned:
        validation_surface(CLASSIFIER, X, Y, max_depth=[1], cv=GroupKFold(3), groups=GROUPS)
    assert warned[0].filename == __file__
    with pytest.warns(DataConversionWarning, match="ravel") as warned:
        cross_validate(CLASSIFIER, X, Y, cv=GroupKFold(3), groups=GROUPS)
    assert warned[0].filename == __file__
    with pytest.warns(DataConversionWarning, match="ravel") as warned:
        GridSearchCV(CLASSIFIER, {"max_depth": [1, 2]}, cv=GroupKFold(3)).fit(X, Y, groups=GROUPS)
    assert warned[0].filename == __file__


LAZY = {
    "array": lambda values: da.from_array(values, chunks=40),
    "series": lambda values: dd.from_pandas(pd.Series(values), npartitions=3),
    "array of a column": lambda values: da.from_array(values[:, None], chunks=(40, 1)),
    "frame of a column": lambda values: dd.from_pandas(pd.DataFrame({"v": values}), npartitions=3),
}
ASKED = {
    "cross_validate": lambda cv, **given: cross_validate(CLASSIFIER, X, Y, cv=cv, **given)[
        "test_score"
    ],
    "search": lambda cv, params=None: (
        GridSearchCV(CLASSIFIER, {"max_depth": [1, 3]}, cv=cv)
        .fit(X, Y, **(params or {}))
        .cv_results_["mean_test_score"]
    ),
    "path": lambda cv, **given: cost_complexity_cv(CLASSIFIER, X, Y, cv=cv, **given).errors,
    "surface": lambda cv, **given: (
        validation_surface(CLASSIFIER, X, Y, max_depth=[1, 3], cv=cv, **given).scores
    ),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.one_of(4)
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("kind", LAZY)
def test_weights_and_sides_may_be_collections(kind, asked):
    make, ask = LAZY[kind], ASKED[asked]
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    weight = np.arange(150) % 3.0
    expected = ask(splits, params={"sample_weight": weight})
    if kind != "array of a column":
        found = ask(splits, params={"sample_weight": make(weight)})
        np.testing.assert_array_equal(found, expected)
    expected = ask(splits)
    numbers = [(make(train), make(test)) for train, test in splits]
    masks = [tuple(make(np.isin(np.arange(150), side)) for side in split) for split in splits]
    for lazy in (numbers, masks, [*splits[:1], *numbers[1:]]):
        np.testing.assert_array_equal(ask(lazy), expected)


class Lazy:
    """A splitter of Dask arrays, which counts how often a side is computed."""

    def __init__(self, n_splits):
        self.n_splits, self.computed, self.asked = n_splits, [], 0

    def split(self, X, y=None, groups=None):
        self.asked += 1
        for number, split in enumerate(KFold(self.n_splits).split(np.zeros((len(y), 1)))):
            yield tuple(
                da.from_delayed(dask.delayed(self.side)(number, side), side.shape, side.dtype)
                for side in split
            )

    def side(self, number, side):
        self.computed.append(number)
        return side

    def get_n_splits(self, X=None, y=None, groups=None):
        return self.n_splits


@pytest.mark.parametrize("asked", ASKED)
def test_lazy_sides_are_computed_once(asked):
    cv = Lazy(4)
    with dask.config.set(scheduler="sync"):
        found = ASKED[asked](cv)
    assert cv.asked == 1
    assert sorted(cv.computed) == [0, 0, 1, 1, 2, 2, 3, 3]
    np.testing.assert_array_equal(found, ASKED[asked](KFold(4)))


def test_what_is_no_pair_is_refused_in_words():
    class Damaged(Lazy):
        def split(self, X, y=None, groups=None):
            return [next(super().split(X, y)), 7]

    prepared = prepare(Arguments("f", CLASSIFIER, Damaged(2)), X, Y, reason=None)
    assert prepared.reason == "a split is no pair of a training side and a test side"
    assert prepared.cv[1] == 7


def test_what_draws_in_memory_is_not_held():
    seen = []

    class Many:
        def split(self, X, y=None, groups=None):
            for number in range(3):
                seen.append(number)
                yield np.arange(1, 150), np.arange(1)

    splits = draw_splits(Many(), X, Y, None)
    assert (len(splits), seen) == (3, [0, 1, 2])


@pytest.mark.parametrize(
    "make", [pd.DataFrame, lambda column: dd.from_pandas(pd.DataFrame(column))]
)
def test_weights_of_a_frame_of_one_column_are_a_column(make):
    weight = np.arange(150) % 2.0
    expected = cross_validate(CLASSIFIER, X, Y, params={"sample_weight": weight})["test_score"]
    with pytest.warns(DataConversionWarning, match="column-vector sample_weight") as seen:
        found = cross_validate(CLASSIFIER, X, Y, params={"sample_weight": make(weight[:, None])})
    np.testing.assert_array_equal(found["test_score"], expected)
    assert seen[0].filename == __file__


@pytest.mark.parametrize("make", [np.ones, da.ones])
def test_weights_of_an_array_of_one_column_are_an_error(make):
    with pytest.raises(ValueError, match=r"sample_weight in params has shape \(150, 1\)"):
        cross_validate(CLASSIFIER, X, Y, params={"sample_weight": make((150, 1))})
