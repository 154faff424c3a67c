"""Rows that begin with raw predictions of the user's: the model is what is added to them."""

import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.estimators.boosted_stopping import Stage
from dtrees.export import load, save
from dtrees.model_selection import (
    GridSearchCV,
    boosting_curve,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    nested_standard_error,
)
from tests.core.grow.boosted_cases import Squares
from tests.export.examples import COLUMNS, table
from tests.parallel.clusters import connect

RNG = np.random.default_rng(0)
N = 200
X = RNG.normal(size=(N, 3)).round(1)
F = X[:, 0] + X[:, 1] ** 2 + RNG.normal(size=N) / 2
START, OF_THREE = RNG.normal(size=N), RNG.normal(size=(N, 3))
LOSSES = ("squared_error", "absolute_error", "quantile", "huber", "poisson", "gamma", "tweedie")
LOGS = ("poisson", "gamma", "tweedie")
CASES = ("two", "three", "own", *LOSSES)


def estimator(case, **parameters):
    parameters = {"max_iter": 6, "min_samples_leaf": 5, "random_state": 0, **parameters}
    if case in ("two", "three"):
        return GradientBoostingClassifier(**parameters)
    if case == "quantile":
        parameters["quantile"] = 0.7
    return GradientBoostingRegressor(Squares() if case == "own" else case, **parameters)


def target(case, f):
    if case in ("two", "three"):
        return np.digitize(f, [0.5] if case == "two" else [0, 1])
    return np.exp(f / 2) if case in LOGS else f


def same_trees(model, other):
    return all(a.equals(b) for a, b in zip(model.forest_, other.forest_, strict=True))


@settings(max_examples=40)
@given(
    case=st.sampled_from(CASES),
    kinds=st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3),
    weighted=st.booleans(),
    early=st.booleans(),
    n_jobs=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**16),
)
def test_the_best_constant_is_a_start_like_others(case, kinds, weighted, early, n_jobs, seed):
    rng = np.random.default_rng(seed)
    rows, y = table(kinds, N, rng), target(case, F)
    weight = rng.integers(0, 4, N).astype(float) if weighted else None
    made = estimator(case, early_stopping=early, n_jobs=n_jobs)
    plain = estimator(case, early_stopping=early).fit(rows, y, weight)
    start = np.repeat(plain._initial[None], N, axis=0)
    start = start if case == "three" else start[:, 0]
    model = made.fit(rows, y, weight, init_score=start)
    assert same_trees(model, plain)
    assert model._initial.tolist() == [0.0] * len(plain._initial)
    assert model.evals_result_ == plain.evals_result_
    np.testing.assert_array_equal(model.validation_score_, plain.validation_score_)
    np.testing.assert_array_equal(model.predict(rows, init_score=start), plain.predict(rows))


def test_squares_are_those_of_residuals():
    y, start = np.arange(40) % 9, np.arange(40) % 5
    y[0] += start.sum() - y.sum()  # the mean of the residuals is zero
    how = {"min_samples_leaf": 2, "max_iter": 5}
    rows = X[:40]
    model = GradientBoostingRegressor(**how).fit(rows, y, init_score=start)
    other = GradientBoostingRegressor(**how).fit(rows, y - start)
    assert same_trees(model, other)
    np.testing.assert_array_equal(model.predict(rows), other.predict(rows))
    np.testing.assert_allclose(model.predict(rows, init_score=start), other.predict(rows) + start)


def test_a_logarithm_of_exposure_is_a_weight_of_rates():
    years = RNG.uniform(0.1, 3, N)
    claims = RNG.poisson(years * np.exp(F / 3)).astype(float)
    rate = np.log(claims.sum() / years.sum())
    how = {"max_iter": 20, "min_child_weight": 5, "min_samples_leaf": 1}
    model = GradientBoostingRegressor("poisson", **how)
    model.fit(X, claims, init_score=np.log(years) + rate)
    other = GradientBoostingRegressor("poisson", **how).fit(X, claims / years, years)
    found = model.predict(X, init_score=np.log(years) + rate)
    np.testing.assert_allclose(found, years * other.predict(X), rtol=1e-5)
    assert found.sum() == pytest.approx(claims.sum(), rel=0.05)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("case", ["squared_error", "two"])
def test_models_are_those_of_lightgbm(case):
    """Of three classes LightGBM has other second derivatives."""
    lightgbm = pytest.importorskip("lightgbm")
    rows, y = np.random.default_rng(1).normal(size=(N, 3)), target(case, F)
    least = {"min_child_weight": 6, "max_depth": 3}
    model = estimator(case, max_bins=None, l2_regularization=0, min_samples_leaf=1, **least)
    model.fit(rows, y, init_score=START)
    kind = lightgbm.LGBMRegressor if case == "squared_error" else lightgbm.LGBMClassifier
    other = kind(n_estimators=6, min_child_samples=1, verbose=-1, max_bin=1000, **least)
    other.set_params(min_data_in_bin=1).fit(rows, y, init_score=START)
    with warnings.catch_warnings(action="ignore"):
        raw = other.predict(rows, raw_score=True)
    own = model.predict(rows) if case == "squared_error" else model.decision_function(rows)
    np.testing.assert_allclose(own, raw, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_all_answers_begin_with_it(case, tmp_path):
    y, start = target(case, F), OF_THREE if case == "three" else START
    model = estimator(case).fit(X, y, init_score=start)
    if case != "own":
        save(model, tmp_path / "model.dtrees")
        again = load(tmp_path / "model.dtrees").predict(X, init_score=start)
        np.testing.assert_array_equal(again, model.predict(X, init_score=start))
    predicted = model.predict(X, start)
    np.testing.assert_array_equal(list(model.staged_predict(X, start))[-1], predicted)
    zeros = np.zeros_like(start)
    np.testing.assert_array_equal(model.predict(X, zeros), model.predict(X))
    one_by_one = [model.predict(X[i : i + 1], start[i : i + 1])[0] for i in range(20)]
    np.testing.assert_array_equal(one_by_one, predicted[:20])
    if case not in ("two", "three"):
        both = model.predict(X), predicted
        logs = case in LOGS
        alone, begun = (np.log(each) for each in both) if logs else both
        np.testing.assert_allclose(begun, alone + start, rtol=1e-9, atol=1e-12)
        return
    raw = model.decision_function(X, start)
    np.testing.assert_allclose(raw, model.decision_function(X) + start)
    np.testing.assert_array_equal(list(model.staged_decision_function(X, start))[-1], raw)
    wide = raw if case == "three" else np.column_stack([np.zeros(N), raw])
    shares = model.predict_proba(X, init_score=start)
    np.testing.assert_allclose(shares, softmax(wide, axis=1))
    np.testing.assert_allclose(
        model.predict_log_proba(X, init_score=start), log_softmax(wide, axis=1)
    )
    np.testing.assert_array_equal(list(model.staged_predict_proba(X, start))[-1], shares)
    np.testing.assert_array_equal(predicted, model.classes_[shares.argmax(axis=1)])


@pytest.mark.parametrize("fraction", [0.3, None])
def test_held_out_rows_begin_with_theirs(fraction):
    model = estimator("squared_error", early_stopping=True, validation_fraction=fraction)
    model.set_params(use_best_model=False).fit(X, F, init_score=START)
    scores = model.train_score_ if fraction is None else model.validation_score_
    if fraction is None:
        loss = np.mean((F - START) ** 2) / 2
        assert scores[0] == pytest.approx(-loss)
        last = np.mean((F - model.predict(X, init_score=START)) ** 2) / 2
        assert scores[-1] == pytest.approx(-last)
    sent = estimator("squared_error", use_best_model=False)
    sent.fit(X, F, init_score=START, X_val=X, y_val=F, init_score_val=START)
    last = np.mean((F - sent.predict(X, init_score=START)) ** 2) / 2
    assert sent.validation_score_[-1] == pytest.approx(-last)


def test_all_kinds_of_columns_of_numbers():
    y, frame = target("three", F), pd.DataFrame(OF_THREE)
    expected = estimator("three").fit(X, y, init_score=OF_THREE)
    for each in (frame, OF_THREE.tolist(), np.asfortranarray(OF_THREE)):
        model = estimator("three").fit(X, y, init_score=each)
        assert same_trees(model, expected)
        found = model.predict_proba(X, init_score=each)
        np.testing.assert_array_equal(found, expected.predict_proba(X, init_score=OF_THREE))
    one = estimator("poisson").fit(X, target("poisson", F), init_score=START)
    for each in (pd.Series(START, index=RNG.permutation(N)), pl.Series(START), START[:, None]):
        assert same_trees(estimator("poisson").fit(X, target("poisson", F), init_score=each), one)
        np.testing.assert_array_equal(one.predict(X, each), one.predict(X, START))
    whole = estimator("two").fit(X, F > 0, init_score=np.arange(N) % 3)
    exact = estimator("two").fit(X, F > 0, init_score=np.arange(N) % 3.0)
    assert same_trees(whole, exact)


def test_sparse_tables_and_dask_collections():
    rows, y = np.where(np.abs(X) < 0.7, 0.0, X), F
    expected = estimator("squared_error").fit(rows, y, init_score=START)
    sparse = estimator("squared_error").fit(sp.csr_array(rows), y, init_score=START)
    assert same_trees(sparse, expected)
    predicted = expected.predict(rows, START)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(rows), START), predicted)
    lazy = da.from_array(rows, chunks=(60, -1))
    start = da.from_array(START, chunks=60)
    found = estimator("squared_error").fit(lazy, y, init_score=start)
    assert same_trees(found, expected)
    np.testing.assert_array_equal(found.predict(rows, start), predicted)
    with connect(2, 1, False) as cluster, Client(cluster, set_as_default=True):
        there = estimator("squared_error", regime="replicated").fit(lazy, y, init_score=start)
    assert same_trees(there, expected)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("case", ["two", "three", "poisson"])
def test_answers_of_collections_are_lazy(case):
    """Bit for bit those of the rows in memory, however the collections are cut."""
    y, start = target(case, F), OF_THREE if case == "three" else START
    model = estimator(case).fit(X, y, init_score=start)
    methods = (
        ["predict"] if case == "poisson" else ["predict", "predict_proba", "decision_function"]
    )
    index = RNG.permutation(N)
    names = ["begin"] if start.ndim == 1 else ["a", "b", "c"]
    frame = pd.DataFrame(X, index=index).assign(
        **dict(zip(names, start.reshape(N, -1).T, strict=True))
    )
    frame = dd.from_pandas(frame, npartitions=3, sort=False)
    blocks, dense = da.from_array(X, chunks=(70, 2)), frame[[0, 1, 2]]
    column = frame["begin"] if case != "three" else frame[names]
    cut = da.from_array(start, chunks=40)
    unknown = dense.to_dask_array()
    sparse = blocks.rechunk((70, 3)).map_blocks(sp.csr_array)
    same = column.to_dask_array()
    pairs = [(blocks, cut), (blocks, start), (sparse, cut), (blocks, start.tolist())]
    pairs += [(unknown, column), (unknown, same), (dense, column), (dense, same)]
    for method in methods:
        expected = getattr(model, method)(X, start)
        for rows, begin in pairs:
            found = getattr(model, method)(rows, init_score=begin)
            assert type(found) is type(getattr(model, method)(rows))
            np.testing.assert_array_equal(np.asarray(found.compute()), expected)
    for rows, begin in ((dense, start), (unknown, start)):
        kind = type(begin).__name__
        with pytest.raises(TypeError, match=f"array or a data frame of Dask.* Got {kind}"):
            model.predict(rows, init_score=begin)
    with pytest.raises(ValueError, match=r"must have the shape \(\d+,\). Got \(\) instead"):
        model.predict(da.from_array(np.zeros((9, 2)), chunks=3), 0.5)
    with pytest.raises(ValueError, match="X has 3 partitions, and init_score has 2"):
        model.predict(dense, init_score=da.from_array(start, chunks=(100, -1)[: start.ndim]))
    with pytest.raises(ValueError, match="init_score"):
        model.predict(blocks, init_score=start[1:])
    other = dd.from_pandas(pd.DataFrame(start).iloc[:-1], npartitions=3)
    with pytest.raises(ValueError, match="init_score must have the shape"):
        model.predict(dense, init_score=other[0] if case != "three" else other).compute()
    stages = [
        [np.asarray(each) for each in model.staged_predict(*given)]
        for given in ((X, start), (blocks, cut), (dense, column))
    ]
    np.testing.assert_array_equal(stages[0], stages[1])
    np.testing.assert_array_equal(stages[0], stages[2])


def test_a_fit_goes_on_from_both(tmp_path):
    """From its own trees, and from what rows begin with; never where one fit alone had that."""
    y = target("two", F)
    whole = estimator("two", max_iter=9).fit(X, y, init_score=START)
    model = estimator("two", max_iter=4, warm_start=True).fit(X, y, init_score=START)
    assert same_trees(model.set_params(max_iter=9).fit(X, y, init_score=START), whole)
    starts = {"init_score": START}, {}
    for first, then in (starts, starts[::-1]):
        model = estimator("two", max_iter=4, warm_start=True).fit(X, y, **first)
        save(model, tmp_path / "model.dtrees")
        for each in (model, load(tmp_path / "model.dtrees"), model[:2]):
            each.set_params(max_iter=9, warm_start=True)
            with pytest.raises(ValueError, match="give init_score, or init, if the first fit had"):
                each.fit(X, y, **then)
            assert each.fit(X, y, **first).n_iter_ == 9
    again = model.set_params(warm_start=False).fit(X, y, **then)
    assert again.set_params(warm_start=True, max_iter=10).fit(X, y, **then).n_iter_ == 10


@pytest.mark.parametrize(
    ("case", "early"), [("two", True), ("three", False), ("poisson", False), ("poisson", True)]
)
def test_a_cross_validation_scores_held_out_rows_that_begin_with_theirs(case, early):
    """As a loop over the splits does, with models that have their codes in common."""
    y, start = target(case, F), OF_THREE if case == "three" else START
    metric = "neg_mean_poisson_deviance" if case == "poisson" else "neg_log_loss"
    model, cv, weight = estimator(case, early_stopping=early), KFold(2), np.arange(N) % 3 + 1.0
    params = {"init_score": start, "sample_weight": weight}
    scoring = {"a": metric, "b": "r2" if case == "poisson" else "accuracy"}
    with warnings.catch_warnings(action="error"):
        found = cross_validate(
            model, X, y, cv=cv, params=params, scoring=scoring, return_estimator=True
        )
        own = cross_val_predict(model, X, y, cv=cv, params=params)
        curve = boosting_curve(model, X, y, cv=cv, params=params, scoring=metric)
        search = GridSearchCV(model, {"max_iter": [2, 6]}, cv=cv, scoring=metric).fit(
            X, y, **params
        )
        whole = cross_val_score(model, X, y, cv=cv, params=params, scoring=metric)
    assert same_trees(found.final_estimator, clone(model).fit(X, y, weight, init_score=start))
    np.testing.assert_array_equal(whole, found["test_a"])
    for number, (train, test) in enumerate(cv.split(X)):
        inside = np.where(np.isin(np.arange(N), train), weight, 0.0)
        each = clone(model).fit(X, y, inside, init_score=start)
        assert same_trees(found["estimator"][number], each)
        stage = Stage(each, each._predictor(), predicted_raw(each, X[test], start[test]))
        for name, each_metric in scoring.items():
            expected = get_scorer(each_metric)(stage, X[test], y[test])
            assert found[f"test_{name}"][number] == pytest.approx(expected, rel=1e-12)
        np.testing.assert_array_equal(own[test], each.predict(X[test], start[test]))
        if not early:
            assert curve.scores[-1, number] == pytest.approx(found["test_a"][number], rel=1e-12)
            place = search.cv_results_[f"split{number}_test_score"][1]
            if metric == "neg_log_loss":  # its scores are weighted
                expected = get_scorer(metric)(stage, X[test], y[test], sample_weight=weight[test])
                assert place == pytest.approx(expected, rel=1e-12)
    best = clone(model).set_params(**search.best_params_).fit(X, y, weight, init_score=start)
    assert same_trees(search.best_estimator_, best)


def test_nested_validations_and_collections_take_it():
    params = {"init_score": START, "sample_weight": np.arange(N) % 3 + 1.0}
    model = estimator("squared_error", max_iter=2)
    search = GridSearchCV(model, {"max_iter": [1, 2]}, cv=2)
    expected = cross_val_score(search, X, F, cv=3, params=params)
    assert np.isfinite(expected).all()
    assert nested_standard_error(model, X, F, cv=3, params=params).standard_error > 0
    lazy = {name: da.from_array(values) for name, values in params.items()}
    blocks = da.from_array(X, chunks=(90, -1))
    np.testing.assert_array_equal(cross_val_score(search, blocks, F, cv=3, params=lazy), expected)


def predicted_raw(model, rows, start):
    predictor = model._predictor()
    return predictor.raw(predictor.check(rows), offset=start.reshape(len(rows), -1))


def test_what_predicts_by_a_model_of_a_cross_validation_knows_none():
    params, model = {"init_score": START}, GradientBoostingRegressor(max_iter=3)

    def own(model, X, y):
        return 0.0

    search = GridSearchCV(model, {"max_iter": [2]}, cv=3, scoring=own)
    for ask in (
        lambda: cross_validate(model, X, F, cv=3, params=params, scoring=own),
        lambda: cross_validate(model, X, F, cv=3, params=params, scoring={"a": own}),
        lambda: cross_validate(search, X, F, cv=3, params=params),
        lambda: search.fit(X, F, **params),
        lambda: nested_standard_error(search, X, F, cv=3, params=params),
        lambda: boosting_curve(model, X, F, cv=3, params=params, scoring=own),
    ):
        with pytest.raises(ValueError, match="predicts by the model, which knows no init_score"):
            ask()
    found = cross_validate(model, X, F, cv=3, params=params, return_estimator=True)
    with pytest.raises(ValueError, match="rows that are to be predicted have no init_score"):
        found.prediction_interval(X)
    with pytest.raises(ValueError, match="init_score"):
        cross_validate(model, X, F, cv=3, params={"init_score": START[:-1]})


def test_models_that_do_not_grow_together_have_no_scores():
    params, model = {"init_score": START}, GradientBoostingRegressor(max_iter=3)
    steps = make_pipeline("passthrough", model)
    named = {"gradientboostingregressor__init_score": START}
    search = GridSearchCV(steps, {"gradientboostingregressor__max_iter": [2]}, cv=3)
    shown = {**params, "X_val": X[:9], "y_val": F[:9], "init_score_val": START[:9]}
    for who, why, ask in (
        ("cross_validate", "Pipeline", lambda: cross_validate(steps, X, F, params=named)),
        ("cross_validate", "Pipeline", lambda: cross_validate(search, X, F, params=named)),
        ("cross_val_score", "fit is given", lambda: cross_val_score(model, X, F, params=shown)),
        (
            "cross_val_predict",
            "method='decision_function'",
            lambda: cross_val_predict(
                estimator("two"), X, F > 0, params=params, method="decision_function"
            ),
        ),
        ("nested_standard_error", "", lambda: nested_standard_error(steps, X, F, params=named)),
        ("GridSearchCV", "Pipeline is not", lambda: search.fit(X, F, **named)),
        ("GridSearchCV", "fit is", lambda: GridSearchCV(model, {}, cv=3).fit(X, F, **shown)),
    ):
        with pytest.raises(ValueError, match=f"^{who} cannot begin held-out rows .*{why}"):
            ask()
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match="grow together: metadata routing is enabled"),
    ):
        cross_validate(model.set_fit_request(init_score=True), X, F, params=params)
    with pytest.raises(ValueError, match="Or give the last step, and X as the steps"):
        search.fit(X, F, **named)


@pytest.mark.parametrize(("case", "metric"), [("squared_error", "r2"), ("two", "accuracy")])
def test_a_score_has_no_place_for_it(case, metric):
    y = target(case, F)
    model = estimator(case).fit(X, y, init_score=START)
    for rows in X, da.from_array(X):
        with pytest.raises(ValueError, match=f"init_score, and score has no.* {metric}_score of"):
            model.score(rows, y)
    assert np.isfinite(model.fit(X, y).score(X, y))


@pytest.mark.parametrize(
    ("case", "start", "message"),
    [
        ("two", OF_THREE, r"init_score must have the shape \(200,\). Got \(200, 3\)"),
        ("three", START, r"init_score must have the shape \(200, 3\). Got \(200,\)"),
        ("squared_error", START[:9], r"inconsistent|shape \(200,\). Got \(9,\)"),
        ("squared_error", 1.0, r"must have the shape \(200,\). Got \(\)"),
        ("squared_error", np.where(START > 1, np.nan, START), "init_score contains NaN"),
        ("squared_error", np.full(N, np.inf), "init_score contains NaN or infinity"),
        ("squared_error", np.full(N, "a"), "init_score must be numbers"),
    ],
    ids=range(7),
)
def test_what_is_refused(case, start, message):
    y = target(case, F)
    model = estimator(case)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, init_score=start)
    assert vars(model) == before
    fitted = model.fit(X, y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(X, init_score=start)


def test_a_function_knows_no_start():
    model = estimator("squared_error", early_stopping=True)
    model.set_params(scoring=lambda model, X, y: 0.0)
    with pytest.raises(ValueError, match=r"knows no init_score of the rows\. Name a scorer"):
        model.fit(X, F, init_score=START)
    model.set_params(scoring="r2").fit(X, F, init_score=START)
    assert model.do_early_stopping_


@pytest.mark.parametrize("case", ["poisson", "gamma", "tweedie", "squared_error"])
def test_what_has_no_finite_loss_is_refused(case):
    """Counts in the place of their logarithms, say."""
    size = {"gamma": -1000.0, "squared_error": 1e200}.get(case, 2000.0)
    start = np.where(np.arange(N) == 7, size, START)
    said = "raw predictions" if case == "squared_error" else "logarithms of means"
    with pytest.raises(ValueError, match=f"infinite loss '{case}': init_score has to be {said}"):
        estimator(case).fit(X, target(case, F), init_score=start)
    weight = (np.arange(N) != 7).astype(float)  # a row that is not there is not asked
    estimator(case).fit(X, target(case, F), weight, init_score=start)
