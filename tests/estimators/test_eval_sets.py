"""Sets of rows that a boosted model is scored on: their curves are those of its stages."""

import pickle
import warnings
from functools import partial

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import get_scorer, make_scorer, mean_absolute_error, r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor, losses
from dtrees.callbacks import Callback
from dtrees.coding.codebook import CodeBook
from dtrees.core.predict.packed_forest import RawCells
from dtrees.core.predict.raw import apply
from dtrees.estimators import boosted_start
from dtrees.estimators.boosting import check_curves
from dtrees.estimators.eval_sets import EvalSets, ValueRows
from dtrees.export import load, save
from dtrees.model_selection import GridSearchCV, cross_validate
from dtrees.typing import serial
from tests.core.grow.boosted_cases import Squares
from tests.export.examples import COLUMNS, table
from tests.parallel.clusters import connect

RNG = np.random.default_rng(0)
N = 240
KINDS = ("missing", "category", "whole")
X, X1, X2 = table(KINDS, N, RNG), table(KINDS, 90, RNG, new=True), table(KINDS, 70, RNG, new=True)
NUMBERS = [each[["missing 0", "whole 2"]].to_numpy(dtype=float) for each in (X, X1, X2)]


def signal(rows):
    first = np.nan_to_num(rows["missing 0"].to_numpy(dtype=float))
    return first + rows["whole 2"].to_numpy() / 3 + RNG.normal(size=len(rows)) / 2


F = [signal(rows) for rows in (X, X1, X2)]
TARGETS = {
    "two": (GradientBoostingClassifier, [np.where(f > 1, "yes", "no") for f in F]),
    "three": (GradientBoostingClassifier, [np.digitize(f, [0, 1]) for f in F]),
    "numbers": (GradientBoostingRegressor, F),
}
METRICS = {
    "two": ["neg_log_loss", "roc_auc", "accuracy"],
    "three": ["accuracy", "roc_auc_ovr"],
    "numbers": ["neg_mean_absolute_error", "r2"],
}
FEW = {"max_iter": 8, "min_samples_leaf": 5, "max_leaf_nodes": 5, "random_state": 0}
PLAIN = {**FEW, "early_stopping": False}


def losses_of(model, rows, y, weight=None, start=None):
    """The loss of rows after 1, 2, ... iterations, from the model's own stages."""
    predictor, numbers = model._predictor(), np.asarray(y)
    if hasattr(model, "classes_"):
        numbers = np.searchsorted(model.classes_, numbers)
    checked = predictor.check(rows)
    if start is not None:
        start = np.asarray(start).reshape(len(numbers), -1)
    stages = predictor.staged(checked, offset=start)
    return [model._fit_loss.mean(numbers.astype(float), raw, weight) for raw in stages]


def scores_of(model, name, rows, y):
    return [get_scorer(name)(model[:n], rows, y) for n in range(1, model.n_iter_ + 1)]


def assert_same(model, other):
    pairs = zip(model.forest_.trees, other.forest_.trees, strict=True)
    assert all(a.equals(b) for a, b in pairs)
    assert str(model.evals_result_) == str(other.evals_result_)
    assert model.validation_score_.tobytes() == other.validation_score_.tobytes()


@settings(max_examples=25)
@given(
    kinds=st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3),
    target=st.sampled_from(sorted(TARGETS)),
    weighted=st.booleans(),
    begins=st.booleans(),
    n_jobs=st.sampled_from([1, 2]),
    seed=st.integers(0, 2**16),
)
def test_curves_are_those_of_the_stages(kinds, target, weighted, begins, n_jobs, seed):
    """And the trees are those of a fit that scores nothing."""
    rng = np.random.default_rng(seed)
    kind, ys = TARGETS[target]
    tables = [table(kinds, len(y), rng, new=number > 0) for number, y in enumerate(ys)]
    weights = [rng.integers(1, 4, len(y)).astype(float) if weighted else None for y in ys]
    shapes = [(len(y), 3) if target == "three" else len(y) for y in ys]
    starts = [rng.normal(size=shape) if begins else None for shape in shapes]
    model = kind(n_jobs=n_jobs, **PLAIN)
    model.fit(
        *(tables[0], ys[0], weights[0]),
        init_score=starts[0],
        eval_set=list(zip(tables, ys, strict=True)),
        eval_sample_weight=[None, *weights[1:]],
        eval_init_score=[None, *starts[1:]],
    )
    assert list(model.evals_result_) == ["training", "valid_1", "valid_2"]
    for number, name in enumerate(["training", "valid_1", "valid_2"]):
        found = losses_of(model, tables[number], ys[number], weights[number], starts[number])
        assert model.evals_result_[name] == {"loss": found}
    assert (model.best_iteration_, model.validation_score_.size) == (None, 0)
    assert not model.do_early_stopping_
    plain = kind(**PLAIN).fit(tables[0], ys[0], weights[0], init_score=starts[0])
    assert all(a.equals(b) for a, b in zip(plain.forest_, model.forest_, strict=True))
    assert plain.evals_result_ == {}


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", TARGETS)
def test_scorers_of_scikit_learn_by_name(target):
    kind, ys = TARGETS[target]
    names = METRICS[target]
    model = kind(**PLAIN)
    sets = [(X1, ys[1]), (X, ys[0]), (X2, ys[2])]
    model.fit(X, ys[0], eval_set=sets, eval_names=["a", "b", "c"], eval_metric=names)
    assert list(model.evals_result_["b"]) == ["loss", *names]
    for name, (rows, y) in zip("abc", sets, strict=True):
        for metric in names:
            found = scores_of(model, metric, rows, y)
            np.testing.assert_allclose(model.evals_result_[name][metric], found, rtol=1e-12)
    one = kind(**PLAIN).fit(X, ys[0], eval_set=(X1, ys[1]), eval_metric=names[0])
    assert one.evals_result_["valid_0"] == {
        name: model.evals_result_["a"][name] for name in ("loss", names[0])
    }


def test_scorers_of_ones_own_see_the_rows_of_their_set():
    measures = {
        "rows": lambda model, rows, y: len(rows) + model.n_iter_,
        "r2": "r2",
        "mae": get_scorer("neg_mean_absolute_error"),
        "loss": "loss",
    }
    model = GradientBoostingRegressor(Squares(), **PLAIN)
    model.fit(X, F[0], eval_set=[(X, F[0]), (X1, F[1])], eval_metric=measures)
    found = model.evals_result_
    assert found["valid_1"]["rows"] == [90 + n for n in range(1, 9)]
    assert found["training"]["rows"] == [N + n for n in range(1, 9)]
    assert found["valid_1"]["loss"] == losses_of(model, X1, F[1])
    np.testing.assert_allclose(found["valid_1"]["r2"], scores_of(model, "r2", X1, F[1]))


def test_scorers_have_names_of_their_own():
    """In a list or alone, of scikit-learn or of one's own, and also the one that stops the fit."""
    error = make_scorer(mean_absolute_error, greater_is_better=False)

    def depth(model, rows, y):
        return float(model.n_iter_)

    model = GradientBoostingRegressor(**{**FEW, "scoring": error}, early_stopping=True)
    model.fit(X, F[0], X_val=X1, y_val=F[1], eval_metric=[depth, "r2", error, partial(depth)])
    found = model.evals_result_["validation"]
    assert list(found) == ["neg_mean_absolute_error", "depth", "r2", "partial"]
    expected = scores_of(model, "neg_mean_absolute_error", X1, F[1])
    np.testing.assert_allclose(found["neg_mean_absolute_error"][: model.n_iter_], expected)
    for one in (depth, error):
        one_by_one = GradientBoostingRegressor(**PLAIN).fit(
            X, F[0], eval_set=(X1, F[1]), eval_metric=one
        )
        assert len(one_by_one.evals_result_["valid_0"]) == 2
    with pytest.raises(ValueError, match="looks like it is a metric function"):
        model.fit(X, F[0], eval_metric=mean_absolute_error)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("fraction", [0.2, None])
def test_the_best_score_is_that_of_the_best_iteration(target, fraction, tmp_path):
    kind, ys = TARGETS[target]
    for scoring in ("loss", METRICS[target][0], None):
        how = {**FEW, "early_stopping": True, "validation_fraction": fraction, "scoring": scoring}
        model = kind(**how).fit(X, ys[0], eval_metric="loss")
        curves = model.evals_result_["training" if fraction is None else "validation"]
        curve = curves[scoring or "score"]
        best = min(curve) if scoring == "loss" else max(curve)
        assert model.best_score_ == curve[model.best_iteration_ - 1] == best
        save(model, tmp_path / "model.dtrees")
        assert load(tmp_path / "model.dtrees").best_score_ == model.best_score_
        assert model[:2].best_score_ == curve[model[:2].best_iteration_ - 1]
    assert kind(**PLAIN).fit(X, ys[0], eval_set=[(X1, ys[1])]).best_score_ is None


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", TARGETS)
def test_the_first_set_and_the_score_decide(target):
    """As the same rows that are given as X_val; further curves change nothing."""
    kind, ys = TARGETS[target]
    for scoring in ("loss", METRICS[target][0]):
        how = {**FEW, "max_iter": 60, "n_iter_no_change": 2, "scoring": scoring}
        model = kind(**how).fit(
            X, ys[0], eval_set=[(X, ys[0]), (X2, ys[2]), (X1, ys[1])], eval_metric=METRICS[target]
        )
        other = kind(**how).fit(X, ys[0], X_val=X2, y_val=ys[2])
        np.testing.assert_array_equal(model.validation_score_, other.validation_score_)
        assert model.n_iter_ == model.best_iteration_ == other.n_iter_ < 60
        assert model.do_early_stopping_
        n_grown = len(model.validation_score_) - 1
        assert {len(c) for of in model.evals_result_.values() for c in of.values()} == {n_grown}
        sign = -1.0 if scoring == "loss" else 1.0
        assert (
            model.evals_result_["valid_1"][scoring] == (sign * model.validation_score_[1:]).tolist()
        )
        assert other.evals_result_ == {
            "validation": {scoring: model.evals_result_["valid_1"][scoring]}
        }
        both = kind(**how).fit(X, ys[0], X_val=X2, y_val=ys[2], eval_set=[(X1, ys[1])])
        assert list(both.evals_result_) == ["validation", "valid_0"]
        np.testing.assert_array_equal(both.validation_score_, other.validation_score_)


@pytest.mark.parametrize("fraction", [0.2, None])
def test_held_out_rows_have_a_curve_and_those_that_are_grown_from_have_another(fraction):
    kind, ys = TARGETS["three"]
    how = {**FEW, "early_stopping": True, "validation_fraction": fraction, "use_best_model": False}
    weight = RNG.integers(0, 3, N).astype(float)
    model = kind(**how).fit(X, ys[0], weight, eval_set=[(X, ys[0])], eval_metric="accuracy")
    names = ["training"] if fraction is None else ["training", "validation"]
    assert list(model.evals_result_) == names
    scores = model.train_score_ if fraction is None else model.validation_score_
    assert model.evals_result_[names[-1]]["loss"] == (-scores[1:]).tolist()
    if fraction is not None:
        heard = []

        class Hears(Callback):
            def on_iteration_end(self, fit, number):
                heard.append(-fit.training_score())

        kind(**how).fit(X, ys[0], weight, callbacks=[Hears()])
        assert model.evals_result_["training"]["loss"] == heard


def test_sparse_tables_and_other_storage():
    tables = [np.nan_to_num(each) for each in NUMBERS]
    kind, ys = TARGETS["two"]
    models = []
    for make in (np.asarray, sp.csr_array, sp.csc_matrix, np.asfortranarray):
        made = [make(each) for each in tables]
        sets = [(made[1], ys[1]), (made[0], ys[0]), (made[2], list(ys[2]))]
        models.append(kind(**PLAIN).fit(made[0], ys[0], eval_set=sets, eval_metric="roc_auc"))
    for model in models[1:]:
        assert model.evals_result_ == models[0].evals_result_


def test_dask_collections_and_a_worker():
    kind, ys = TARGETS["two"]
    how = {**FEW, "max_iter": 30, "n_iter_no_change": 2}
    weight, start = np.arange(90) % 3.0 + 1, np.linspace(-1, 1, 90)

    def fit(X, y, sets, weight, start, **more):
        return kind(**how, **more).fit(
            X,
            y,
            init_score=np.zeros(N),
            eval_set=sets,
            eval_sample_weight=[None, None, weight],
            eval_init_score=[None, np.ones(70), start],
            eval_metric=["accuracy"],
        )

    y = ys[0]
    expected = fit(X, y, [(X, y), (X2, ys[2]), (X1, ys[1])], weight, start)
    lazy = [dd.from_pandas(each, npartitions=3) for each in (X1, X2)]
    targets = [da.from_array(ys[k], chunks=40) for k in (1, 2)]
    sets = [(X, y), (lazy[1], targets[1]), (lazy[0], targets[0])]
    more = da.from_array(weight, chunks=50), da.from_array(start, chunks=20)
    assert_same(fit(X, y, sets, *more), expected)
    with connect(2, 1, False) as cluster, Client(cluster, set_as_default=True):
        found = fit(X, y, sets, *more, regime="replicated")
        assert found.fit_report_["regime"] == "replicated"
        assert_same(found, expected)
        for early in (False, True):  # nothing that is sent decides, or a function does
            plain = {"early_stopping": early, "max_iter": 3, "random_state": 0}
            plain |= {"scoring": lambda model, X, y: model.score(X, y)} if early else {}
            sets = [(X, y), (X1, ys[1])]
            here, there = (
                kind(regime=regime, **plain).fit(X, y, eval_set=sets)
                for regime in ("local", "replicated")
            )
            assert_same(here, there)
    rows, blocks = NUMBERS[0], da.from_array(NUMBERS[0], chunks=(100, -1))
    whole = kind(**PLAIN).fit(rows, y, eval_set=[(rows, y), (NUMBERS[1], ys[1])])
    for same in blocks, da.from_array(NUMBERS[0], chunks=(100, -1)):  # made in the same way
        assert_same(kind(**PLAIN).fit(blocks, y, eval_set=[(same, y), (NUMBERS[1], ys[1])]), whole)
    frame = dd.from_pandas(X1.assign(target=ys[1]), npartitions=3)
    pairs = [(frame[[*X1.columns]], frame.target) for _ in "ab"]
    model = kind(**PLAIN).fit(*pairs[0], eval_set=pairs[1:])
    assert list(model.evals_result_) == ["training"]


@pytest.mark.one_of(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("begins", [False, True])
def test_a_fit_that_goes_on_has_the_curves_of_one_fit(target, begins, tmp_path):
    kind, ys = TARGETS[target]
    shapes = [(len(y), 3) if target == "three" else len(y) for y in ys]
    starts = [np.random.default_rng(1).normal(size=shape) if begins else None for shape in shapes]
    given = {"eval_set": [(X, ys[0]), (X1, ys[1])], "eval_metric": METRICS[target]}
    given |= {"init_score": starts[0], "eval_init_score": [None, starts[1]]}
    own = {"X_val": X2, "y_val": ys[2], "init_score_val": starts[2]}
    for how, more in ((PLAIN, {}), ({**FEW, "n_iter_no_change": 3}, own)):
        whole = kind(**{**how, "max_iter": 7}).fit(X, ys[0], **given, **more)
        model = kind(**{**how, "max_iter": 3}).fit(X, ys[0], **given, **more)
        save(model, tmp_path / "model.dtrees")
        for each in (model, load(tmp_path / "model.dtrees")):
            each.set_params(max_iter=7, warm_start=True).fit(X, ys[0], **given, **more)
            assert_same(each, whole)


def test_callbacks_hear_the_curves():
    heard = []

    class Hears(Callback):
        def on_iteration_end(self, fit, number):
            heard.append(fit.evals_result())
            return number == 4

    kind, ys = TARGETS["two"]
    sets = [(X1, ys[1]), (X, ys[0])]
    model = kind(**PLAIN).fit(X, ys[0], eval_set=sets, callbacks=[Hears()])
    assert heard[-1] == model.evals_result_
    assert [len(each["training"]["loss"]) for each in heard] == [1, 2, 3, 4, 5]
    quiet = []

    class Quiet(Callback):
        def on_iteration_end(self, fit, number):
            quiet.append(fit.evals_result())

    kind(**PLAIN).fit(X, ys[0], callbacks=[Quiet()])
    assert quiet == [{}] * 8


def test_a_cross_validation_hands_them_to_each_fit():
    model = GradientBoostingRegressor(**FEW)
    params = {"eval_set": [(X1, F[1]), (X2, F[2])], "eval_metric": ["r2"]}
    found = cross_validate(model, X, F[0], cv=3, params=params, return_estimator=True)
    for each in found["estimator"]:
        assert list(each.evals_result_) == ["valid_0", "valid_1"]


@pytest.mark.parametrize("n", [N - 1, N])
def test_a_cross_validation_scores_all_rows_of_ones_own(n):
    """Also where they are as many as those of the table."""
    rows, y = NUMBERS[0], F[0]
    model = GradientBoostingRegressor(**FEW)
    own = {
        "X_val": rows[::-1][:n],
        "y_val": y[::-1][:n],
        "sample_weight_val": np.arange(1.0, n + 1),
    }
    cv = KFold(3)
    expected = [
        clone(model).fit(rows[train], y[train], **own).validation_score_
        for train, _ in cv.split(rows)
    ]
    steps = make_pipeline("passthrough", model)
    named = {f"gradientboostingregressor__{name}": value for name, value in own.items()}
    for estimator, params in ((model, own), (steps, named)):
        found = cross_validate(estimator, rows, y, cv=cv, params=params, return_estimator=True)
        for each, scores in zip(found["estimator"], expected, strict=True):
            last = each[-1] if estimator is steps else each
            np.testing.assert_array_equal(last.validation_score_, scores)
    search = GridSearchCV(model, {"max_iter": [2]}, cv=cv).fit(rows, y, **own)
    other = clone(model).set_params(max_iter=2).fit(rows, y, **own)
    assert_same(search.best_estimator_, other)
    inner = GridSearchCV(model, {"max_iter": [8]}, cv=2)
    nested = cross_validate(inner, rows, y, cv=cv, params=own, return_estimator=True)
    for each, scores in zip(nested["estimator"], expected, strict=True):
        np.testing.assert_array_equal(each.best_estimator_.validation_score_, scores)


def test_files_and_shorter_models_have_the_curves(tmp_path):
    y = F[0]
    model = GradientBoostingRegressor(**PLAIN).fit(X, y, eval_set=[(X1, F[1])], eval_metric="r2")
    few = X1[:1], F[1][:1]
    with warnings.catch_warnings(action="ignore"):  # of one row there is no R squared
        odd = GradientBoostingRegressor(**PLAIN).fit(X, y, eval_set=[few], eval_metric="r2")
    for each in (model, odd):
        save(each, tmp_path / "model.dtrees")
        assert str(load(tmp_path / "model.dtrees").evals_result_) == str(each.evals_result_)
    assert np.isnan(odd.evals_result_["valid_0"]["r2"]).all()
    for n in (1, 5):
        first = model.first_iterations(n).evals_result_["valid_0"]
        assert first == {k: v[:n] for k, v in model.evals_result_["valid_0"].items()}
    model.evals_result_["valid_0"]["r2"].clear()
    assert len(model.evals_result_["valid_0"]["r2"]) == 8


@pytest.mark.parametrize(
    "curves",
    [{1: {}}, {"a": []}, {"a": {1: [1.0]}}, {"a": {"b": 3}}, {"a": {"b": [1]}}, {"a": {"b": []}}],
)
def test_curves_of_a_damaged_file_are_refused(curves):
    check_curves({"a": {"b": [1.0, np.nan]}}, 2)
    with pytest.raises(ValueError, match="_curves cannot be"):
        check_curves(curves, 1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"eval_set": X1}, TypeError, r"eval_set must be a list of pairs \(X, y\)"),
        ({"eval_set": [X1, F[1]]}, TypeError, r"eval_set must be a list of pairs"),
        ({"eval_set": (X1, F[1], F[1])}, TypeError, r"eval_set must be a list of pairs"),
        ({"eval_set": {"a": (X1, F[1])}}, TypeError, r"given as eval_names. Got a dict\.$"),
        ({"eval_names": ["a"]}, ValueError, "eval_names is provided without eval_set"),
        ({"eval_init_score": [F[1]]}, ValueError, "eval_init_score is provided without eval_set"),
        ({"eval_set": [(X1, F[1])], "eval_names": ["a", "b"]}, ValueError, "an entry for each"),
        ({"eval_set": [(X1, F[1])], "eval_names": "a"}, ValueError, "eval_names must be a list"),
        ({"eval_set": [(X1, F[1])], "eval_names": [1]}, TypeError, "eval_names must be strings"),
        ({"eval_set": [(X1, F[1])], "eval_sample_weight": F[1]}, ValueError, "must be a list with"),
        (
            {"eval_set": [(X1, F[1]), (X2, F[2])], "eval_names": ["a", "a"]},
            ValueError,
            r"must differ. Got \['a', 'a'\]",
        ),
        ({"eval_set": [(X, F[0])], "eval_sample_weight": [F[0]]}, ValueError, "have its weights"),
        ({"eval_set": [(X1, F[0])]}, ValueError, r"eval_set\[0\]\[0\] has 90 rows, eval_set\[0\]"),
        ({"eval_set": [(X1[["whole 2"]], F[1])]}, ValueError, r"\(eval_set\[0\].*feature names"),
        ({"eval_set": [(X1[:0], F[1][:0])]}, ValueError, r"\(eval_set\[0\].* 0 sample"),
        (
            {"eval_set": [(X, F[0])] * 2},
            ValueError,
            r"eval_set\[1\] are .*, and so is a pair before",
        ),
        (
            {"eval_set": [(X1, F[1])], "eval_metric": "rmse"},
            ValueError,
            "no scorer .* Did you mean 'neg_root_mean_sq",
        ),
        ({"eval_set": [(X1, F[1])], "eval_metric": 3}, TypeError, "eval_metric must be a name"),
        ({"eval_set": [(X1, F[1])], "eval_metric": "roc_auc"}, ValueError, "is of classes"),
        ({"eval_set": [(X1, F[1])], "eval_metric": {"a": "roc_auc"}}, ValueError, "is of classes"),
        ({"eval_set": [(X1, F[1])], "eval_metric": {1: "r2"}}, TypeError, "eval_metric must be"),
        ({"eval_set": [(X1, F[1])], "eval_metric": {"loss": "r2"}}, ValueError, "name 'loss'"),
        ({"eval_metric": "r2"}, ValueError, "no rows to be scored by eval_metric"),
        ({"eval_set": [(X1, F[1])], "init_score": F[0]}, ValueError, "Give init_score and, for"),
        (
            {"eval_set": [(X1, F[1])], "eval_init_score": [F[1]]},
            ValueError,
            "Give init_score and, for",
        ),
        ({"init_score_val": F[1]}, ValueError, "init_score_val is provided without X_val"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_is_refused_leaves_the_estimator_as_it_was(arguments, error, message):
    model = GradientBoostingRegressor(**FEW)
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        model.fit(X, F[0], **arguments)
    assert vars(model) == before


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize(
    "make", [pd.DataFrame, pa.Table.from_pandas, partial(dd.from_pandas, npartitions=2)]
)
def test_targets_in_another_order_are_refused(make, is_list):
    y = pd.DataFrame(RNG.normal(size=(N, 2)), columns=["a", "b"])
    model = GradientBoostingRegressor(max_iter=2)
    for names in ["a", "b"], ["b", "a"]:
        of_set = make(y[names].head(len(X1)))
        sets = {"eval_set": [(X1, of_set)]} if is_list else {"X_val": X1, "y_val": of_set}
        if names == ["b", "a"]:
            with pytest.raises(ValueError, match=r"targets a, b, and .* has b, a\. Give"):
                model.fit(X, y, **sets)
        else:
            assert model.fit(X, y, **sets).evals_result_


def test_names_that_are_taken_are_refused():
    """Also those that are known late: of held-out rows, and of the parameter scoring."""
    model = GradientBoostingRegressor(**FEW, early_stopping=True)
    with pytest.raises(ValueError, match=r"must differ. Got \['validation', 'validation'\]"):
        model.fit(X, F[0], eval_set=[(X, F[0])], eval_names=["validation"])
    model.set_params(scoring=lambda model, X, y: 0.5)
    for metric in ({"<lambda>": "r2"}, lambda model, X, y: 0.5):
        with pytest.raises(ValueError, match="two scorers by the name '<lambda>'"):
            model.fit(X, F[0], eval_metric=metric)
    with pytest.raises(ValueError, match="eval_metric has two scorers by the name 'r2_score'"):
        model.fit(X, F[0], eval_metric=[make_scorer(r2_score), make_scorer(r2_score)])
    model.set_params(scoring="r2")
    with pytest.raises(ValueError, match="two scorers by the name 'r2'"):
        model.fit(X, F[0], eval_metric={"r2": "neg_mean_absolute_error"})
    found = model.fit(X, F[0], eval_metric=["r2"]).evals_result_
    assert list(found["validation"]) == ["r2"]


def test_rows_without_weight_are_not_there():
    """No range of a loss and no label of the fit concerns them."""
    keeps = np.arange(90) % 3 > 0
    weight = keeps * 2.0
    kind, ys = TARGETS["two"]
    cases = [
        (kind(**PLAIN), ys[0], ys[1], "maybe"),
        (GradientBoostingRegressor("gamma", **PLAIN), np.exp(F[0]), np.exp(F[1]), 0.0),
        (GradientBoostingRegressor(**PLAIN), F[0], F[1], np.nan),
    ]
    for model, y, shown, other in cases:
        start = {"init_score": np.zeros(N), "eval_init_score": [np.linspace(-1, 1, 90)]}
        few = {"init_score": np.zeros(N), "eval_init_score": [np.linspace(-1, 1, 90)[keeps]]}
        target = np.where(keeps, shown.astype(object), other)
        target = target.astype(str if y.dtype.kind == "U" else float)
        model.fit(X, y, eval_set=[(X1, target)], eval_sample_weight=[weight], **start)
        found = model.evals_result_
        sets = [(X1[keeps], shown[keeps])]
        assert model.fit(X, y, eval_set=sets, eval_sample_weight=[weight[keeps]], **few)
        assert found == model.evals_result_


@pytest.mark.parametrize("loss", ["poisson", "tweedie"])
def test_targets_of_a_set_may_all_be_zero(loss):
    model = GradientBoostingRegressor(loss, **PLAIN)
    model.fit(X, np.exp(F[0]), eval_set=[(X1, np.zeros(90))])
    assert model.evals_result_["valid_0"] == {"loss": losses_of(model, X1, np.zeros(90))}


def test_a_loss_that_says_no_loss_of_rows_is_scored_otherwise():
    class Plain(losses.Loss):
        def gradient_and_hessian(self, y, raw):
            return raw - y, np.ones_like(y)

    model = GradientBoostingRegressor(Plain(), **PLAIN)
    with pytest.raises(NotImplementedError, match=r"something else \(scoring='r2'"):
        model.fit(X, F[0], eval_set=[(X1, F[1])])
    model.set_params(scoring="r2").fit(X, F[0], eval_set=[(X1, F[1])])
    assert list(model.evals_result_["valid_0"]) == ["r2"]


def test_a_plain_fit_watches_nothing(monkeypatch):
    monkeypatch.setattr(boosted_start, "_watch", None)
    monkeypatch.setattr(EvalSets, "of", None)
    assert GradientBoostingRegressor(**PLAIN).fit(X, F[0]).evals_result_ == {}


def test_a_scorer_of_ones_own_gets_the_table_and_no_copy():
    seen = []
    model = GradientBoostingRegressor(**{**PLAIN, "max_iter": 1})
    sets, weights = [(X1, F[1]), (X2, F[2])], [None, np.arange(70) % 2]

    def own(model, rows, y):
        seen.append(rows)
        return 0.0

    model.fit(X, F[0], eval_set=sets, eval_sample_weight=weights, eval_metric={"own": own})
    assert seen[0] is seen[2] is X1
    assert len(seen[1]) == len(seen[3]) == 35


def test_rows_walk_on_the_threads_of_the_fit_and_their_labels_are_read_once(monkeypatch):
    n, tasks = 40_000, []
    rows = table(("category", "whole"), n, RNG)
    y = rows["whole 1"].to_numpy(dtype=float) + (rows["category 0"] == rows["category 0"].iloc[0])
    model = GradientBoostingRegressor(**PLAIN).fit(rows[:500], y[:500])

    def run(some):
        tasks.append(len(some))
        return [task() for task in some]

    checked = model.codebook_.check(rows)
    expected = [apply(tree, model.codebook_, checked) for tree in model.forest_]
    asked, read = [], CodeBook.read_labels
    monkeypatch.setattr(CodeBook, "read_labels", lambda *args: asked.append(1) or read(*args))
    walked = ValueRows([RawCells(model.codebook_, checked)], run)
    everywhere = np.arange(n)
    for tree, leaves in zip(model.forest_, expected, strict=True):
        np.testing.assert_array_equal(walked.leaves(tree, everywhere), leaves)
        np.testing.assert_array_equal(walked.leaves(tree, everywhere[3::7]), leaves[3::7])
    assert (set(tasks), len(asked)) == ({2}, 1)
    sent = pickle.loads(pickle.dumps(walked))
    assert sent.run is serial
    np.testing.assert_array_equal(sent.leaves(model.forest_[0], everywhere), expected[0])


def test_labels_that_are_none_of_the_fit_are_refused():
    kind, ys = TARGETS["two"]
    y = np.where(F[1] > 2, "maybe", ys[1])
    with pytest.raises(ValueError, match=r"eval_set\[0\]\[1\] has labels .* \['maybe'\]"):
        kind().fit(X, ys[0], eval_set=[(X1, y)])


def test_curves_are_those_of_lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    rows, shown = (np.nan_to_num(each) for each in NUMBERS[:2])
    sets = [(rows, F[0]), (shown, F[1])]
    model = GradientBoostingRegressor(
        max_iter=10, early_stopping=False, max_bins=None, l2_regularization=0
    ).fit(rows, F[0], eval_set=sets, eval_metric="neg_mean_absolute_error")
    other = lightgbm.LGBMRegressor(n_estimators=10, max_bin=1000, min_data_in_bin=1, verbose=-1)
    with warnings.catch_warnings(action="ignore"):
        other.fit(rows, F[0], eval_set=sets, eval_metric=["l1", "l2"])
    assert list(model.evals_result_) == list(other.evals_result_)
    for name, found in model.evals_result_.items():
        expected = other.evals_result_[name]
        np.testing.assert_allclose(np.array(found["loss"]) * 2, expected["l2"], rtol=1e-5)
        minus = -np.array(found["neg_mean_absolute_error"])
        np.testing.assert_allclose(minus, expected["l1"], rtol=1e-5)


def test_a_frame_with_other_columns_of_text():
    """Categories of a set are read by their labels, whatever their own codes are."""
    rows = pd.DataFrame({"c": pd.Categorical(list("abc") * 40)})
    y = np.tile([0.0, 5.0, 9.0], 40)
    shown = pd.DataFrame({"c": pd.Categorical(["c", "a"], categories=["c", "a", "z"])})
    model = GradientBoostingRegressor(max_iter=50, max_leaf_nodes=3, min_samples_leaf=1)
    model.fit(rows, y, eval_set=[(shown, [9.0, 0.0])])
    assert model.evals_result_["valid_0"]["loss"][-1] < 0.1


def frame_of(n):
    """Each kind of column, with missing cells."""
    rng = np.random.default_rng(n)
    found = pd.DataFrame({"x": rng.random(n).round(2), "i": rng.integers(0, 9, n)})
    found["b"], found["s"] = rng.random(n) > 0.5, rng.choice(["u", "v"], n)
    found["c"] = pd.Categorical(rng.choice(["a", "b", None], n))
    found["d"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, n), unit="D")
    found.loc[::7, ["x", "s", "d"]] = None
    return found


FORMS = {
    "copy": pd.DataFrame.copy,
    "another index": lambda rows: rows.set_index(np.arange(5, len(rows) + 5)),
    "numpy": pd.DataFrame.to_numpy,
    "objects": lambda rows: rows.astype(object),
    "pandas.NA": lambda rows: rows.astype(object).where(rows.notna(), pd.NA),
    "nullable": pd.DataFrame.convert_dtypes,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}
NUMERIC = {
    "list": lambda rows: rows.to_numpy(dtype=float).tolist(),
    "array": lambda rows: rows.to_numpy(dtype=float),
    "csr": lambda rows: sp.csr_array(rows.to_numpy(dtype=float)),
    "csc": lambda rows: sp.csc_matrix(rows.to_numpy(dtype=float)),
}
TARGET_FORMS = [np.asarray, list, pd.Series, pl.Series, pd.DataFrame, lambda y: y[:, None]]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", [*FORMS, *NUMERIC])
@pytest.mark.filterwarnings("ignore:A column-vector y was passed", "ignore:X .* feature names")
def test_copies_of_the_rows_of_the_fit_are_known_in_any_form(name):
    """And other rows are not taken for them: none of them ends a fit."""
    rows, y = frame_of(90), np.random.default_rng(1).random(90)
    rows = rows[["x", "i"]] if name in NUMERIC else rows
    form = {**FORMS, **NUMERIC}[name](rows)
    how = {"max_iter": 3, "n_iter_no_change": 1}
    of_target = [*FORMS, *NUMERIC].index(name) % len(TARGET_FORMS)  # each with two of the tables
    make = TARGET_FORMS[of_target]
    for X, other in ((rows, form), (form, rows)):
        model = GradientBoostingRegressor(**how).fit(X, y, eval_set=[(other, make(y))])
        assert set(model.evals_result_) == {"training"}
        assert not model.do_early_stopping_
        model.fit(X, make(y), eval_set=[(other, y)])
        assert set(model.evals_result_) == {"training"}
        changed = rows.assign(i=rows["i"] + (np.arange(90) == 80))
        for pair in ((other, y + 1), (changed, y), (rows[:30], y[:30])):
            model.fit(X, y, eval_set=[pair])
            assert set(model.evals_result_) == {"valid_0"}


def test_labels_and_weights_of_copies_are_known_in_any_form():
    kind, ys = TARGETS["two"]
    weight = np.arange(N) % 3
    for y in (list(ys[0]), pd.Series(ys[0]), pd.Series(ys[0], dtype="category"), pl.Series(ys[0])):
        for w in (list(weight), weight.astype(float), pd.Series(weight), None):
            given = {"eval_set": [(X.to_numpy(), y)], "eval_sample_weight": [w]}
            model = kind(**PLAIN).fit(X, ys[0], weight, **given)
            assert set(model.evals_result_) == {"training"}
    with pytest.raises(ValueError, match="which have its weights"):
        model.fit(X, ys[0], weight, eval_set=[(X, y)], eval_sample_weight=[weight + 1])


def test_pairs_may_be_in_a_tuple():
    model = GradientBoostingRegressor(**PLAIN)
    names = {"eval_names": ["a", "b"]}
    expected = model.fit(X, F[0], eval_set=[(X1, F[1]), (X2, F[2])], **names).evals_result_
    assert model.fit(X, F[0], eval_set=((X1, F[1]), (X2, F[2])), **names).evals_result_ == expected


def test_scores_that_are_never_numbers_are_refused():
    """Those that are some numbers are not: the others are lower."""
    few = {"X_val": X1[:1], "y_val": F[1][:1]}
    model = GradientBoostingRegressor(**FEW, scoring="r2")
    with (
        pytest.raises(ValueError, match="The score 'r2' of the rows 'validation' is nan after"),
        warnings.catch_warnings(action="ignore"),
    ):
        model.fit(X, F[0], **few)
    assert not hasattr(model, "forest_")
    how = {**FEW, "n_iter_no_change": 3, "early_stopping": True}
    for numbers, best in (([np.nan, 1.0, 2.0, 1.0, 1.0, 1.0], 2), ([np.nan] * 3 + [1.0], None)):

        def own(model, X, y, numbers=numbers):
            return numbers[min(model.n_iter_, len(numbers) - 1)]

        model = GradientBoostingRegressor(**how, scoring=own)
        if best is None:  # no score of the first three iterations is better than none
            model.set_params(n_iter_no_change=2)
            with pytest.raises(ValueError, match="The score 'own' of the rows 'validation' is nan"):
                model.fit(X, F[0])
        else:
            assert model.fit(X, F[0]).best_iteration_ == best


@pytest.mark.parametrize("parameter", ["scoring", "eval_metric"])
@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda y_true, y_pred: 0.0, "takes a model, X and y, and .* make a scorer: .*make_scorer"),
        (lambda y_true, y_pred, w: ("a", 0.0, True), r"by \('a', 0.0, True\), .* make a scorer"),
    ],
)
def test_functions_that_are_no_scorers_are_told_what_to_do(parameter, function, message):
    scoring = {"scoring": function} if parameter == "scoring" else {}
    metric = {"eval_metric": function} if parameter == "eval_metric" else {}
    with pytest.raises(TypeError, match=message):
        GradientBoostingRegressor(**FEW, **scoring).fit(X, F[0], eval_set=[(X1, F[1])], **metric)


def test_a_scorer_that_is_called_loss_is_no_loss():
    def loss(model, X, y):
        return model.score(X, y)

    model = GradientBoostingRegressor(**FEW, scoring=loss).fit(X, F[0], X_val=X1, y_val=F[1])
    (curve,) = model.evals_result_["validation"].values()
    assert model.best_score_ == max(curve) > 0


def test_words_for_losses_are_for_that_of_the_model():
    cases = {
        "poisson": ("loss", "neg_mean_poisson_deviance"),
        "gamma-deviance": ("loss", "neg_mean_gamma_deviance"),
        "tweedie-nloglik": ("loss", ""),
        "quantile": ("loss", ""),
        "rmse": ("neg_root_mean_squared_error", "neg_root_mean_squared_error"),
    }
    shown = {"eval_set": [(X1, np.exp(F[1]))]}
    for word, (own, other) in cases.items():
        kinds = "poisson" if word == "rmse" else word.partition("-")[0], "squared_error"
        for loss, meant in zip(kinds, (own, other), strict=True):
            said = rf" Did you mean '{meant}'\?$" if meant else r"get_scorer_names\(\)\)\.$"
            with pytest.raises(ValueError, match=said):
                GradientBoostingRegressor(loss).fit(X, np.exp(F[0]), eval_metric=word, **shown)
    kind, ys = TARGETS["two"]
    with pytest.raises(ValueError, match="Did you mean 'loss'"):
        kind().fit(X, ys[0], eval_set=[(X1, ys[1])], eval_metric="logloss")


def test_scorers_of_two_classes_say_which_parameter_to_change():
    kind, ys = TARGETS["three"]
    with pytest.raises(ValueError, match="Take eval_metric='f1_macro'"):
        kind().fit(X, ys[0], eval_set=[(X1, ys[1])], eval_metric="f1")
