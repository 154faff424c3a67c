"""A fit ends when its score does not get better; the model is the beginning of the whole one."""

import logging
import math
import pickle
import threading

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, log_loss, mean_poisson_deviance, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.callbacks import BoostingFit, Callback
from dtrees.core.grow._boosted_rows import RowDraws
from dtrees.core.predict.raw import raw_before
from dtrees.estimators.boosted_stopping import (
    best_iteration,
    drawn_held,
    has_stopped,
    sizes_held,
    split,
)
from dtrees.export import load, save
from dtrees.inspection import export_text
from dtrees.model_selection import cross_validate
from dtrees.parallel import threaded
from tests.core.grow.boosted_cases import Squares, random_columns, table_of
from tests.parallel.clusters import connect

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 4)).round(1)
X[RNG.random(X.shape) < 0.1] = np.nan
SIGNAL = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2
NOISY = SIGNAL + RNG.normal(size=len(X))
LABELS = np.where(NOISY > 1, "yes", "no")
EARLY = {"early_stopping": True, "min_samples_leaf": 5, "max_leaf_nodes": 6, "random_state": 3}

WHOLE = {**EARLY, "use_best_model": False}


def sides(y, labels=None, seed=3):
    """Rows as a fit draws them: its seed is the first number of its random state."""
    drawn = int(np.random.RandomState(seed).randint(np.iinfo(np.int32).max))
    return split(np.arange(len(y)), labels, 0.1, drawn)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(1, 5), st.integers(0, 2))
def test_the_rule_is_scikit_learns(scores, n_iter_no_change, tol):
    other = HistGradientBoostingRegressor(n_iter_no_change=n_iter_no_change, tol=tol)
    floats = [float(score) for score in scores]
    assert has_stopped(floats, n_iter_no_change, tol) == other._should_stop(floats)


def test_many_rows_stop_early_by_themselves():
    for n in (10_000, 10_001):
        model = GradientBoostingRegressor(max_iter=1).fit(np.arange(n)[:, None], np.arange(n))
        assert model.do_early_stopping_ == (n > 10_000)


def test_sides_part_the_rows_and_keep_shares():
    counted = np.flatnonzero(RNG.random(400) < 0.8)
    labels = np.arange(len(counted)) % 4
    train, held = split(counted, labels, 0.25, 7)
    assert sorted([*train, *held]) == counted.tolist()
    assert np.ptp(np.bincount(labels[np.isin(counted, held)])) <= 1
    wanted = train_test_split(counted, test_size=0.25, stratify=labels, random_state=7)[1]
    assert len(held) == len(wanted)
    other = split(counted, labels, 0.25, 8)[1]
    assert 0 < len(np.intersect1d(held, other)) < len(held)


@given(
    st.lists(st.integers(0, 3), min_size=20, max_size=60), st.floats(0.2, 0.7), st.integers(0, 99)
)
def test_rows_draw_for_themselves_whether_they_are_held_out(labels, share, seed):
    """Wherever the table is cut: who knows how many rows of its class stand before."""
    labels = np.array([*labels, 0, 0, 1, 1, 2, 2, 3, 3])
    _, held = split(np.arange(len(labels)), labels, share, seed)
    totals = np.bincount(labels, minlength=4)
    sizes = sizes_held(totals, True, share)
    assert sizes.sum() == math.ceil(share * len(labels))
    assert (abs(sizes - share * totals) < 1.5).all()
    at = seed % len(labels)
    before = np.bincount(labels[:at], minlength=4)
    parts = (labels[:at], np.zeros(4, dtype=int)), (labels[at:], before)
    of_parts = [drawn_held(len(own), own, first, totals, sizes, seed) for own, first in parts]
    assert np.flatnonzero(np.concatenate(of_parts)).tolist() == held.tolist()


@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "quantile", "poisson", "tweedie"]
)
def test_the_model_is_a_fit_to_the_training_rows(loss):
    """And its scores are the loss of its stages on the held-out rows."""
    y = np.exp(SIGNAL).round(1) if loss in ("poisson", "tweedie") else NOISY
    own = {"quantile": 0.8} if loss == "quantile" else {"l2_regularization": 0}
    model = GradientBoostingRegressor(loss, n_iter_no_change=2, **own, **WHOLE).fit(X, y)
    train, held = sides(y)
    weight = np.isin(np.arange(len(y)), train).astype(float)
    plain = {**EARLY, "early_stopping": False, "max_iter": model.n_iter_}
    other = GradientBoostingRegressor(loss, **own, **plain).fit(X, y, weight)
    assert model.n_iter_ < 100
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    assert len(model.validation_score_) == model.n_iter_ + 1
    assert model.train_score_.size == 0
    measures = {
        "squared_error": lambda y, found: np.mean((y - found) ** 2) / 2,
        "absolute_error": lambda y, found: np.mean(np.abs(y - found)),
        "quantile": lambda y, f: np.mean(np.maximum(0.8 * (y - f), -0.2 * (y - f))),
        "poisson": lambda y, found: np.mean(found - y * np.log(found)),
        "tweedie": lambda y, found: 2 * np.mean(np.sqrt(found) - 1 + y * (found**-0.5 - 1)),
    }
    losses = [measures[loss](y[held], found[held]) for found in model.staged_predict(X)]
    np.testing.assert_allclose(-model.validation_score_[1:], losses, rtol=1e-9)


@pytest.mark.parametrize("cuts", [[1], [0, 2]])
def test_losses_of_classes(cuts):
    y = np.digitize(NOISY, cuts)
    model = GradientBoostingClassifier(**WHOLE).fit(X, y)
    _, held = sides(y, y)
    losses = [log_loss(y[held], shares[held]) for shares in model.staged_predict_proba(X)]
    np.testing.assert_allclose(-model.validation_score_[1:], losses, rtol=1e-9)
    assert len(model.forest_) == model.n_iter_ * model.n_trees_per_iteration_


@pytest.mark.parametrize(
    ("scoring", "measure"),
    [
        ("roc_auc", lambda y, shares: roc_auc_score(y == "yes", shares[:, 1])),
        (None, lambda y, shares: accuracy_score(y, np.where(shares[:, 1] > 0.5, "yes", "no"))),
        (
            lambda model, rows, y: model.score(rows, y),
            lambda y, shares: accuracy_score(y, np.where(shares[:, 1] > 0.5, "yes", "no")),
        ),
    ],
    ids=["name", "none", "function"],
)
def test_scorers_see_the_held_out_rows(scoring, measure):
    model = GradientBoostingClassifier(scoring=scoring, **WHOLE).fit(X, LABELS)
    _, held = sides(LABELS, LABELS == "yes")
    scores = [measure(LABELS[held], shares[held]) for shares in model.staged_predict_proba(X)]
    np.testing.assert_allclose(model.validation_score_[1:], scores, rtol=1e-12)


def test_training_rows_are_scored_without_others():
    weight = RNG.integers(0, 3, len(X)).astype(float)
    model = GradientBoostingRegressor(validation_fraction=None, max_iter=5, **EARLY)
    model.fit(X, NOISY, weight)
    found = [np.average((NOISY - f) ** 2, weights=weight) / 2 for f in model.staged_predict(X)]
    np.testing.assert_allclose(-model.train_score_[1:], found, rtol=1e-9)
    assert model.validation_score_.size == 0
    again = GradientBoostingRegressor(max_iter=5, **{**EARLY, "early_stopping": False})
    np.testing.assert_array_equal(again.fit(X, NOISY, weight).predict(X), model.predict(X))
    assert again.train_score_.size == 0
    assert not again.do_early_stopping_


def test_threads_storage_and_order_of_the_score_change_nothing():
    table = np.where(np.abs(np.nan_to_num(X)) < 0.7, 0.0, np.nan_to_num(X))
    models = [
        GradientBoostingClassifier(n_jobs=n_jobs, **EARLY).fit(given_as, LABELS)
        for n_jobs, given_as in ((1, table), (2, table), (1, sp.csr_array(table)))
    ]
    for model in models[1:]:
        assert model.validation_score_.tobytes() == models[0].validation_score_.tobytes()
        np.testing.assert_array_equal(model.predict_proba(table), models[0].predict_proba(table))


def test_a_whole_number_of_rows_is_held_out():
    sizes = []

    def scoring(model, rows, y):
        sizes.append((len(rows), len(y)))
        return 0.0

    model = GradientBoostingRegressor(scoring=scoring, validation_fraction=37, **WHOLE)
    model.fit(X, NOISY)
    assert set(sizes) == {(37, 37)}
    assert model.n_iter_ == 10


def test_iterations_are_counted_from_one():
    assert best_iteration([3.0, 1.0, 2.0, 2.0]) == 2
    assert best_iteration([0.0, np.nan, -np.inf, -1.0]) == 3
    assert best_iteration([0.0, np.nan, np.nan]) == 1


MODELS = {
    "two": (GradientBoostingClassifier, LABELS),
    "three": (GradientBoostingClassifier, np.digitize(NOISY, [0, 2])),
    "numbers": (GradientBoostingRegressor, NOISY),
}


class TestBestIteration:
    @pytest.mark.parametrize("name", MODELS)
    def test_all_answers_are_those_of_a_fit_that_ends_there(self, name, tmp_path):
        kind, y = MODELS[name]
        model, whole = kind(**EARLY).fit(X, y), kind(**WHOLE).fit(X, y)
        n_scores = len(model.validation_score_)
        assert model.best_iteration_ == model.n_iter_ == whole.best_iteration_
        assert model.n_iter_ == model.validation_score_[1:].argmax() + 1 < whole.n_iter_
        assert n_scores == len(whole.validation_score_) == whole.n_iter_ + 1
        ends = kind(**{**WHOLE, "max_iter": model.n_iter_}).fit(X, y)
        assert ends.best_iteration_ == model.n_iter_
        save(model, tmp_path / "model.dtrees")
        blocks = da.from_array(X, chunks=(100, -1))
        for other in (ends, load(tmp_path / "model.dtrees"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(other.predict(X), model.predict(X))
            np.testing.assert_array_equal(other.predict(X), model.predict(blocks).compute())
            stages = list(other.staged_predict(X))
            assert len(stages) == model.n_iter_ == other.best_iteration_
            np.testing.assert_array_equal(stages[-1], model.predict(X))
            assert export_text(other) == export_text(model)
            np.testing.assert_array_equal(other.feature_importances_, model.feature_importances_)
            np.testing.assert_array_equal(other._saw_missing, model._saw_missing)

    @pytest.mark.parametrize("name", MODELS)
    def test_a_warm_start_ends_at_the_same(self, name):
        kind, y = MODELS[name]
        at_once = kind(**EARLY).fit(X, y)
        for first in (2, at_once.n_iter_ + 3, 100):
            model = kind(warm_start=True, max_iter=first, **EARLY).fit(X, y)
            model.set_params(max_iter=100).fit(X, y)
            assert model.n_iter_ == at_once.n_iter_
            np.testing.assert_array_equal(model.predict(X), at_once.predict(X))
            np.testing.assert_array_equal(model.validation_score_, at_once.validation_score_)

    def test_a_warm_start_ends_before_what_was_there(self):
        """Columns of which only trees that are left out had seen missing values are none."""
        y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) / 2
        model = GradientBoostingRegressor(max_iter=20, max_depth=1, warm_start=True)
        model.set_params(early_stopping=True, n_iter_no_change=99, use_best_model=False)
        model.fit(X, y, X_val=X[:99], y_val=y[:99])
        assert model._saw_missing.tolist() == [True, True, False, False]
        model.set_params(max_iter=21, use_best_model=True)
        model.fit(X, y, X_val=X[:99], y_val=-100 * y[:99])
        assert model.n_iter_ == 1
        assert model._saw_missing.tolist() == [True, False, False, False]

    def test_without_early_stopping_there_is_none(self):
        model = GradientBoostingRegressor(max_iter=3).fit(X, NOISY)
        assert model.best_iteration_ is None
        assert model.n_iter_ == 3


def test_targets_of_held_out_rows_are_checked():
    y = np.exp(SIGNAL).round(1)
    _, held = sides(y)
    y[held[3]] = -1.0
    with pytest.raises(ValueError, match="out of the valid range of the loss 'poisson'"):
        GradientBoostingRegressor("poisson", **EARLY).fit(X, y)
    weight = np.where(y < 0, 0.0, 1.0)  # of a row that is not there, nothing is asked
    assert GradientBoostingRegressor("poisson", **EARLY).fit(X, y, weight).do_early_stopping_


def test_training_rows_that_are_all_zero_are_refused():
    y = np.zeros(len(X))
    _, held = sides(y)
    y[held] = 2.0
    with pytest.raises(ValueError, match="not all of it may be zero"):
        GradientBoostingRegressor("poisson", **EARLY).fit(X, y)


def test_a_class_of_one_row_cannot_be_held_out():
    X, y = np.arange(60.0)[:, None], np.array([0, 1] * 29 + [0, 2])
    model = GradientBoostingClassifier(max_iter=2, early_stopping=True)
    with pytest.raises(
        ValueError, match=r"a class has one row of positive weight only\. .* early_stopping=False"
    ):
        model.fit(X, y)
    assert model.fit(X, y, X_val=X, y_val=y).n_iter_ == 2


@pytest.mark.parametrize(
    ("model", "n_rows"), [(GradientBoostingClassifier, 4), (GradientBoostingRegressor, 1)]
)
def test_rows_of_positive_weight_are_too_few_to_be_held_out(model, n_rows):
    weight = np.zeros(len(X))
    weight[:n_rows] = 1.0
    said = rf"validation_fraction=0\.1 of {n_rows} rows of positive weight: .* early_stopping=False"
    with pytest.raises(ValueError, match=said):
        model(early_stopping=True, validation_fraction=0.1).fit(X, np.arange(len(X)) % 2, weight)


def test_poisson_beside_scikit_learn():
    y = RNG.poisson(np.exp(SIGNAL / 2)).astype(float)
    deviances = [
        mean_poisson_deviance(y, model.fit(X, y).predict(X))
        for model in (
            GradientBoostingRegressor("poisson", l2_regularization=0, **WHOLE),
            HistGradientBoostingRegressor(loss="poisson", **EARLY),
        )
    ]
    assert deviances[0] < 1.25 * deviances[1]


class TestErrors:
    @pytest.mark.parametrize(
        ("parameters", "message"),
        [
            ({"early_stopping": "yes"}, "'early_stopping' parameter"),
            ({"validation_fraction": 1.0}, "'validation_fraction' parameter"),
            ({"validation_fraction": 0}, "'validation_fraction' parameter"),
            ({"n_iter_no_change": 0}, "'n_iter_no_change' parameter"),
            ({"tol": -1.0}, "'tol' parameter"),
            ({"scoring": "no_such_score"}, "no_such_score"),
            ({"validation_fraction": 400}, "400 would be held out and 0 grown from"),
        ],
    )
    def test_parameters(self, parameters, message):
        with pytest.raises(ValueError, match=message):
            GradientBoostingRegressor(**{**EARLY, **parameters}).fit(X, NOISY)

    def test_a_scorer_that_fails_leaves_the_estimator_as_it_was(self):
        def scoring(model, rows, y):
            raise RuntimeError("no score")

        model = GradientBoostingRegressor(scoring=scoring, **EARLY)
        before = dict(vars(model))
        with pytest.raises(RuntimeError, match="no score"):
            model.fit(X, NOISY)
        assert vars(model) == before


RNG = np.random.default_rng(0)
N = 300
WORDS = RNG.choice(["a", "b", "c", None], 2 * N, p=[0.4, 0.3, 0.2, 0.1])
TABLE = pd.DataFrame({"x": RNG.normal(size=2 * N), "z": RNG.normal(size=2 * N).round(1)}).assign(
    word=pd.Categorical(WORDS)
)
TABLE.loc[RNG.random(2 * N) < 0.1, "x"] = np.nan
F = np.nan_to_num(TABLE["x"].to_numpy()) + (WORDS == "a") + RNG.normal(size=2 * N) / 2
ROWS, X_VAL = TABLE[:N], TABLE[N:].reset_index(drop=True)
TABLES = {
    "frames": (ROWS, X_VAL),
    "numbers": (ROWS[["x", "z"]].to_numpy(), X_VAL[["x", "z"]].to_numpy()),
    "sparse": tuple(sp.csr_array(np.nan_to_num(t[["x", "z"]].to_numpy())) for t in (ROWS, X_VAL)),
    "other storage": (ROWS[["x", "z"]].to_numpy(), X_VAL[["x", "z"]]),
    "words": tuple(t[["word", "z"]].astype(object) for t in (ROWS, X_VAL)),
}
TARGETS = {
    "two": (GradientBoostingClassifier, np.where(F > 0, "yes", "no")),
    "three": (GradientBoostingClassifier, np.digitize(F, [0, 1])),
    "numbers": (GradientBoostingRegressor, F),
}
FEW = {"max_iter": 12, "min_samples_leaf": 5, "max_leaf_nodes": 5, "random_state": 0}


def losses_of(model, X, y, weight=None):
    """Minus the loss of rows after 0, 1, ... iterations, from the model's own stages."""
    predictor, numbers = model._predictor(), np.asarray(y)
    if hasattr(model, "classes_"):
        numbers = np.searchsorted(model.classes_, numbers)
    table = predictor.check(X)
    start = np.repeat(model._initial[None, :], len(numbers), axis=0)
    stages = [start, *predictor.staged(table)]
    return [-model._fit_loss.mean(numbers.astype(float), raw, weight) for raw in stages]


@settings(max_examples=30)
@given(
    table=st.sampled_from(sorted(TABLES)),
    target=st.sampled_from(sorted(TARGETS)),
    weighted=st.booleans(),
    patience=st.integers(1, 4),
    n_jobs=st.sampled_from([1, 2]),
    early=st.sampled_from(["auto", True]),
)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_scores_are_those_of_the_stages_and_trees_those_of_all_rows(
    table, target, weighted, patience, n_jobs, early
):
    (rows, shown), (kind, y) = TABLES[table], TARGETS[target]
    weight = np.arange(N) % 4.0 if weighted else None
    how = {"early_stopping": early, "use_best_model": False, **FEW}
    model = kind(n_iter_no_change=patience, n_jobs=n_jobs, **how)
    model.fit(rows, y[:N], X_val=shown, y_val=y[N:], sample_weight_val=weight)
    found = losses_of(model, shown, y[N:], weight)
    np.testing.assert_array_equal(model.validation_score_, found)
    assert model.do_early_stopping_
    assert model.train_score_.size == 0
    plain = kind(**{**FEW, "max_iter": model.n_iter_}, early_stopping=False).fit(rows, y[:N])
    pairs = zip(model.forest_.trees, plain.forest_.trees, strict=True)
    assert all(a.equals(b) for a, b in pairs)
    ends = [n for n in range(1, model.n_iter_ + 1) if has_stopped(found[: n + 1], patience, 1e-7)]
    assert model.n_iter_ == (ends[0] if ends else 12)


@pytest.mark.parametrize("fraction", [0.1, None])
def test_beside_scikit_learn(fraction):
    how = {**FEW, "validation_fraction": fraction, "n_iter_no_change": 3, "max_iter": 60}
    how |= {"early_stopping": True}  # "auto" of scikit-learn looks at the number of rows
    rows, shown = TABLES["numbers"]
    for ours, theirs, y in (
        (GradientBoostingClassifier, HistGradientBoostingClassifier, TARGETS["two"][1]),
        (GradientBoostingRegressor, HistGradientBoostingRegressor, F),
    ):
        found, expected = (
            kind(**how).fit(rows, y[:N], X_val=shown, y_val=y[N:]) for kind in (ours, theirs)
        )
        assert found.n_iter_ < 60
        best = [model.validation_score_.max() for model in (found, expected)]
        assert best[0] == pytest.approx(best[1], rel=0.05)
        assert (found.train_score_.size == 0) == (found.validation_score_.size > 0)


@pytest.mark.parametrize(
    ("scoring", "measure"),
    [
        ("roc_auc", lambda y, shares: roc_auc_score(y == "yes", shares[:, 1])),
        (None, lambda y, shares: accuracy_score(y, np.where(shares[:, 1] > 0.5, "yes", "no"))),
        (lambda model, rows, y: model.score(rows, y), None),
    ],
    ids=["name", "none", "function"],
)
def test_scorers_see_the_given_rows(scoring, measure):
    kind, y = TARGETS["two"]
    model = kind(scoring=scoring, use_best_model=False, **FEW)
    model.fit(ROWS, y[:N], X_val=X_VAL, y_val=y[N:])
    measure = measure or (lambda y, s: accuracy_score(y, np.where(s[:, 1] > 0.5, "yes", "no")))
    scores = [measure(y[N:], shares) for shares in model.staged_predict_proba(X_VAL)]
    np.testing.assert_allclose(model.validation_score_[1:], scores, rtol=1e-12)


def test_a_loss_of_ones_own_and_a_pickle():
    model = GradientBoostingRegressor(Squares(), **FEW).fit(ROWS, F[:N], X_val=X_VAL, y_val=F[N:])
    found = [-np.mean((F[N:] - f) ** 2) for f in model.staged_predict(X_VAL)]
    np.testing.assert_allclose(model.validation_score_[1:], found)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X_VAL), model.predict(X_VAL))


def test_class_weights_do_not_concern_them():
    kind, y = TARGETS["two"]
    model = kind(class_weight={"yes": 5, "no": 1}, **FEW)
    model.fit(ROWS, y[:N], X_val=X_VAL, y_val=y[N:])
    np.testing.assert_array_equal(model.validation_score_, losses_of(model, X_VAL, y[N:]))


def test_a_class_that_is_not_among_them():
    kind, y = TARGETS["three"]
    few = y[N:] < 2
    model = kind(**FEW).fit(ROWS, y[:N], X_val=X_VAL[few], y_val=y[N:][few])
    found = losses_of(model, X_VAL[few], y[N:][few])
    np.testing.assert_array_equal(model.validation_score_, found)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("target", TARGETS)
def test_a_fit_that_goes_on_is_one_fit(target):
    kind, y = TARGETS[target]
    shown = {"X_val": X_VAL, "y_val": y[N:]}
    model = kind(n_iter_no_change=3, warm_start=True, **{**FEW, "max_iter": 4})
    model.fit(ROWS, y[:N], **shown).set_params(max_iter=40).fit(ROWS, y[:N], **shown)
    whole = kind(n_iter_no_change=3, **{**FEW, "max_iter": 40}).fit(ROWS, y[:N], **shown)
    np.testing.assert_array_equal(model.validation_score_, whole.validation_score_)
    assert len(model.forest_) == len(whole.forest_)
    again = clone(model).fit(ROWS, y[:N], **shown).fit(ROWS, y[:N], **shown)
    assert again.n_iter_ == whole.n_iter_


def test_callbacks_hear_the_scores():
    heard = []

    class Hears(Callback):
        def on_iteration_end(self, fit, number):
            heard.append(fit.scores[-1])

    model = GradientBoostingRegressor(**FEW)
    model.fit(ROWS, F[:N], X_val=X_VAL, y_val=F[N:], callbacks=[Hears()])
    assert heard == model.validation_score_[1:].tolist()


def test_on_a_worker_and_of_dask_collections():
    kind, y = TARGETS["two"]
    rows, shown = TABLES["numbers"]
    how = {"n_iter_no_change": 2, **FEW}
    expected = kind(**how).fit(rows, y[:N], X_val=shown, y_val=y[N:])
    lazy = da.from_array(rows, chunks=(100, -1))
    with connect(2, 1, False) as cluster, Client(cluster, set_as_default=True):
        found = kind(regime="replicated", **how).fit(lazy, y[:N], X_val=shown, y_val=y[N:])
        assert found.fit_report_["regime"] == "replicated"
        blocks = {"X_val": da.from_array(shown, chunks=(70, -1)), "y_val": da.from_array(y[N:])}
        of_blocks = kind(**how).fit(lazy, y[:N], **blocks)
    np.testing.assert_array_equal(of_blocks.validation_score_, expected.validation_score_)
    for model in (found, kind(**how).fit(lazy, y[:N], X_val=shown, y_val=da.from_array(y[N:]))):
        np.testing.assert_array_equal(model.validation_score_, expected.validation_score_)
        np.testing.assert_array_equal(model.predict_proba(shown), expected.predict_proba(shown))


def test_a_cross_validation_hands_them_to_each_fit():
    model = GradientBoostingRegressor(**FEW)
    shown = {"X_val": X_VAL, "y_val": F[N:]}
    found = cross_validate(model, ROWS, F[:N], cv=3, params=shown, return_estimator=True)
    assert all(len(each.validation_score_) == each.n_iter_ + 1 for each in found["estimator"])
    assert found["final_estimator"].validation_score_.size > 0


def test_a_pipeline_transforms_them():
    rows, shown = (np.nan_to_num(table) for table in TABLES["numbers"])
    with config_context(enable_metadata_routing=True):
        last = GradientBoostingRegressor(**FEW).set_fit_request(X_val=True, y_val=True)
        made = Pipeline([("scaled", StandardScaler()), ("last", last)], transform_input=["X_val"])
        made.fit(rows, F[:N], X_val=shown, y_val=F[N:])
    scaler = StandardScaler().fit(rows)
    alone = GradientBoostingRegressor(**FEW).fit(
        scaler.transform(rows), F[:N], X_val=scaler.transform(shown), y_val=F[N:]
    )
    np.testing.assert_array_equal(made["last"].validation_score_, alone.validation_score_)


@pytest.mark.parametrize(
    ("given_rows", "error", "message"),
    [
        ({"X_val": X_VAL}, ValueError, "X_val is provided, but y_val was not provided"),
        ({"y_val": F[N:]}, ValueError, "y_val is provided, but X_val was not provided"),
        ({"sample_weight_val": F[N:]}, ValueError, "without X_val and y_val"),
        ({"X_val": X_VAL, "y_val": F[:9]}, ValueError, "X_val has 300 rows, y_val has 9 values"),
        ({"X_val": X_VAL[["x"]], "y_val": F[N:]}, ValueError, "feature names"),
        ({"X_val": X_VAL, "y_val": F[N:] * np.nan}, ValueError, "y_val.*NaN"),
        ({"X_val": X_VAL, "y_val": np.where(F[N:] > 0, "a", "b")}, ValueError, "X_val, y_val"),
        (
            {"X_val": X_VAL, "y_val": F[N:], "sample_weight_val": -np.ones(N)},
            ValueError,
            "sample_weight must not be negative",
        ),
        (
            {"X_val": X_VAL, "y_val": F[N:], "sample_weight_val": np.ones(3)},
            ValueError,
            "sample_weight has 3 values",
        ),
    ],
    ids=str,
)
def test_what_is_refused_leaves_the_estimator_as_it_was(given_rows, error, message):
    model = GradientBoostingRegressor(**FEW)
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        model.fit(ROWS, F[:N], **given_rows)
    assert vars(model) == before


def test_more_that_is_refused():
    shown = {"X_val": X_VAL, "y_val": F[N:]}
    with pytest.raises(ValueError, match="early_stopping is False"):
        GradientBoostingRegressor(early_stopping=False).fit(ROWS, F[:N], **shown)
    with pytest.raises(ValueError, match="out of the valid range of the loss 'poisson'"):
        GradientBoostingRegressor("poisson").fit(ROWS, np.exp(F[:N]), X_val=X_VAL, y_val=F[N:])
    kind, y = TARGETS["two"]
    with pytest.raises(ValueError, match=r"labels that are none of y: \['maybe'\]"):
        kind().fit(ROWS, y[:N], X_val=X_VAL, y_val=np.where(F[N:] > 2, "maybe", y[N:]))


RNG = np.random.default_rng(0)
X[RNG.random(X.shape) < 0.1] = np.nan
PATIENT = {
    "early_stopping": True,
    "min_samples_leaf": 5,
    "max_leaf_nodes": 6,
    "n_iter_no_change": 4,
}


def assert_same(model, other):
    assert len(model.forest_) == len(other.forest_)
    assert all(a.equals(b) for a, b in zip(model.forest_.trees, other.forest_.trees, strict=True))
    assert model.validation_score_.tobytes() == other.validation_score_.tobytes()
    assert model.train_score_.tobytes() == other.train_score_.tobytes()
    assert model.evals_result_ == other.evals_result_


def of_loss(loss, **parameters):
    if loss == "log_loss":
        return GradientBoostingClassifier(random_state=1, **parameters)
    return GradientBoostingRegressor(loss, random_state=1, **parameters)


class Listener(Callback):
    """Writes down what it hears; stops at an iteration, or raises there."""

    def __init__(self, stop=None, fail=None):
        self.stop, self.fail = stop, fail
        self.heard, self.threads, self.scores = [], set(), []

    def on_fit_begin(self, fit):
        assert isinstance(fit, BoostingFit)
        self.fit, self.was_fitted = fit, hasattr(fit.estimator, "forest_")
        self.scores.append(fit.training_score())

    def on_tree_end(self, fit, number):
        raise AssertionError("a boosted model has iterations")

    def on_iteration_end(self, fit, number):
        assert len(fit.trees) == (number + 1) * fit.n_values
        assert fit.n_grown == number + 1 - fit.numbers.start
        self.heard.append(number)
        self.threads.add(threading.get_ident())
        self.scores.append(fit.training_score())
        if number == self.fail:
            raise ZeroDivisionError
        return number == self.stop

    def on_fit_end(self, fit):
        self.error, self.is_fitted = fit.error, hasattr(fit.estimator, "forest_")


class TestCallbacks:
    @pytest.mark.parametrize("n_jobs", [1, 3])
    @pytest.mark.parametrize("cuts", [[1], [0, 2]])
    def test_iterations_in_order_in_the_calling_thread(self, n_jobs, cuts):
        listener, y = Listener(), np.digitize(NOISY, cuts)
        model = GradientBoostingClassifier(max_iter=5, n_jobs=n_jobs)
        model.fit(X, y, callbacks=[listener])
        assert listener.heard == [0, 1, 2, 3, 4]
        assert listener.threads == {threading.get_ident()}
        assert (listener.was_fitted, listener.is_fitted, listener.error) == (False, True, None)
        assert_same(model, GradientBoostingClassifier(max_iter=5).fit(X, y))

    @pytest.mark.parametrize("weighted", [False, True])
    def test_training_scores_are_those_of_the_stages(self, weighted):
        weight = RNG.integers(1, 4, len(X)).astype(float) if weighted else None
        listener = Listener()
        model = GradientBoostingRegressor(max_iter=4).fit(X, NOISY, weight, callbacks=[listener])
        found = [np.average((NOISY - f) ** 2, weights=weight) / 2 for f in model.staged_predict(X)]
        np.testing.assert_allclose(listener.scores[1:], [-loss for loss in found], rtol=1e-9)
        mean = np.average(NOISY, weights=weight)
        begins = np.average((NOISY - mean) ** 2, weights=weight) / 2
        assert listener.scores[0] == pytest.approx(-begins, rel=1e-6)

    def test_held_out_scores(self):
        found = []

        class Scores(Callback):
            def on_iteration_end(self, fit, number):
                found.append(list(fit.scores))

        model = GradientBoostingRegressor(random_state=0, use_best_model=False, **PATIENT)
        model.fit(X, NOISY, callbacks=[Scores()])
        assert [len(scores) for scores in found] == list(range(2, model.n_iter_ + 2))
        assert found[-1] == model.validation_score_.tolist()

    def test_one_of_several_stops_and_all_hear(self):
        first, second = Listener(stop=2), Listener()
        model = GradientBoostingRegressor(max_iter=9).fit(X, NOISY, callbacks=[first, second])
        assert first.heard == second.heard == [0, 1, 2]
        assert_same(model, GradientBoostingRegressor(max_iter=3).fit(X, NOISY))

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_what_fails_leaves_the_model_as_it_was(self, n_jobs):
        model = GradientBoostingRegressor(max_iter=3, n_jobs=n_jobs).fit(X, NOISY)
        before, listener = dict(vars(model)), Listener(fail=1)
        with pytest.raises(ZeroDivisionError):
            model.fit(X, NOISY, callbacks=[listener])
        assert vars(model) == before
        assert isinstance(listener.error, ZeroDivisionError)

    def test_a_bar_counts_iterations(self, monkeypatch, caplog):
        monkeypatch.setattr("dtrees.callbacks.find_spec", lambda name: None)
        with caplog.at_level(logging.INFO, "dtrees.callbacks"):
            GradientBoostingRegressor(max_iter=20, verbose=1, random_state=0, **PATIENT).fit(
                X, NOISY
            )
        assert "2 of 20 trees grown score -" in caplog.text


class TestOutOfBag:
    """Each iteration is scored by the loss of the rows that it has not drawn."""

    @pytest.mark.parametrize("early", [False, True])
    @pytest.mark.parametrize("name", ["three classes", "numbers", "several numbers", "own"])
    def test_scores_are_those_of_the_stages(self, name, early):
        weight = RNG.integers(0, 3, len(X)) * 0.5
        begin = None
        how = {"loss": Squares()} if name == "own" else {}
        y = np.c_[NOISY, NOISY**2] if name == "several numbers" else NOISY
        model = GradientBoostingRegressor(**how)
        if name == "three classes":
            y, model = np.digitize(NOISY, [0, 1]), GradientBoostingClassifier()
            begin = RNG.normal(size=(len(X), 3))
        how = {"early_stopping": early, "max_iter": 6, "subsample": 0.7, "oob_score": True}
        model.set_params(**(WHOLE | how)).fit(X, y, weight, init_score=begin)
        rows = np.flatnonzero(weight)
        if early:
            labels = y[rows] if name == "three classes" else None
            rows, _ = split(rows, labels, 0.1, model._fit_seed)
        draws = RowDraws(len(rows), rows.astype(np.uint32))
        raw = raw_before(model._initial, len(X), begin)
        table = model._predictor().check(X, threaded(1))
        stages = [raw, *model._predictor().staged(table, threaded(1), begin)]
        expected = []
        for number, raw in enumerate(stages):
            draws.draw(model._fit_seed, max(0, number - 1), 0.7)
            own = draws.others
            assert 0 < len(own) < len(rows)
            y_of_own = np.asarray(y.T, dtype=float)[..., own]
            expected.append(model._fit_loss.mean(y_of_own, raw[own], weight[own]))
        np.testing.assert_allclose(model.oob_scores_, expected[1:], rtol=1e-12)
        np.testing.assert_allclose(model.oob_improvement_, -np.diff(expected), rtol=1e-9)
        assert model.oob_score_ == model.oob_scores_[-1]
        assert model.evals_result_["out_of_bag"]["loss"] == model.oob_scores_.tolist()
        assert model[:3].oob_scores_.tolist() == model.oob_scores_[:3].tolist()

    def test_other_scores_stay_as_they_are(self):
        """Also the one that ends the fit; and callbacks hear of all."""

        class Ends(Callback):
            def on_iteration_end(self, fit, number):
                return len(fit.evals_result()["out_of_bag"]["loss"]) == 4

        how = {**EARLY, "scoring": "accuracy", "subsample": 0.5}
        plain = GradientBoostingClassifier(**how).fit(X, LABELS)
        model = GradientBoostingClassifier(oob_score=True, **how).fit(X, LABELS)
        assert (model.n_iter_, model.best_score_) == (plain.n_iter_, plain.best_score_)
        np.testing.assert_array_equal(model.validation_score_, plain.validation_score_)
        assert model.oob_scores_.shape == model.oob_improvement_.shape == (model.n_iter_,)
        model.set_params(early_stopping=False).fit(X, LABELS, callbacks=[Ends()])
        assert model.n_iter_ == 4

    def test_is_not_there_where_it_is_not_asked_for(self, tmp_path):
        model = GradientBoostingRegressor(max_iter=3, subsample=0.5, warm_start=True)
        model.fit(X, NOISY)
        assert not hasattr(model, "oob_scores_")
        model.set_params(max_iter=5, oob_score=True).fit(X, NOISY)
        assert (model.oob_scores_[:3] == 0).all()
        assert (model.oob_scores_[3:] > 0).all()
        save(model, tmp_path / "model.dtrees")
        there = load(tmp_path / "model.dtrees")
        np.testing.assert_array_equal(there.oob_improvement_, model.oob_improvement_)
        all_drawn = GradientBoostingRegressor(max_iter=2, subsample=1 - 1e-12, oob_score=True)
        assert np.isnan(all_drawn.fit(X, NOISY).oob_scores_).all()
        with pytest.raises(ValueError, match="Set subsample below 1"):
            all_drawn.set_params(subsample=1.0).fit(X, NOISY)


class TestWarmStart:
    @given(
        seed=st.integers(0, 100),
        loss=st.sampled_from(["log_loss", "squared_error", "absolute_error", "huber", "poisson"]),
        early=st.booleans(),
        apart=st.booleans(),
        weighted=st.booleans(),
        sparse=st.booleans(),
        subsample=st.sampled_from([1.0, 0.6]),
    )
    def test_the_model_is_the_one_of_a_single_fit(
        self, seed, loss, early, apart, weighted, sparse, subsample
    ):
        pytest.importorskip("pandas")
        rng = np.random.default_rng(seed)
        columns = random_columns(rng, 60, 3, ("numbers",) if sparse else ("missing", "categories"))
        table = sp.csr_array(np.array(columns, dtype=float).T) if sparse else table_of(columns)
        y = np.arange(60) % 3 if loss == "log_loss" else rng.integers(0, 9, 60).astype(float)
        weight = rng.integers(0, 3, 60).astype(float) if weighted else None
        how = {
            "early_stopping": early,
            "n_iter_no_change": 2,
            "min_samples_leaf": 3,
            "subsample": subsample,
            "oob_score": subsample < 1,
            "validation_fraction": 0.2 if apart else None,
        }
        model = of_loss(loss, max_iter=2, warm_start=True, **how).fit(table, y, weight)
        few = model.forest_.trees
        model.set_params(max_iter=5).fit(table, y, weight)
        whole = of_loss(loss, max_iter=5, **how).fit(table, y, weight)
        assert_same(model, whole)
        assert all(a is b for a, b in zip(few, model.forest_.trees, strict=False))
        np.testing.assert_array_equal(model.predict(table), whole.predict(table))

    def test_a_fit_that_has_stopped_early_stays(self):
        model = of_loss("squared_error", warm_start=True, **PATIENT).fit(X, NOISY)
        before = model.n_iter_
        assert before < 100
        assert_same(model, of_loss("squared_error", **PATIENT).fit(X, NOISY))
        trees = model.forest_.trees
        model.set_params(max_iter=200).fit(X, NOISY)
        assert all(a.equals(b) for a, b in zip(model.forest_.trees, trees, strict=True))
        model.set_params(n_iter_no_change=1000).fit(X, NOISY)
        assert len(model.validation_score_) == 201

    @pytest.mark.parametrize("name", MODELS)
    def test_a_file_goes_on_as_its_model(self, name, tmp_path):
        kind, y = MODELS[name]
        for early in (False, True):
            how = {**EARLY, "early_stopping": early, "n_iter_no_change": 3}
            save(kind(max_iter=4, **how).fit(X, y), tmp_path / "model.dtrees")
            model = load(tmp_path / "model.dtrees").set_params(warm_start=True, max_iter=12)
            assert_same(model.fit(X, y), kind(max_iter=12, **how).fit(X, y))

    @pytest.mark.parametrize("loss", ["quantile", "huber", "gamma"])
    def test_a_file_knows_its_loss(self, loss, tmp_path):
        y, how = np.exp(NOISY / 4), {"quantile": 0.8 if loss == "quantile" else None}
        model = of_loss(loss, max_iter=2, **how).fit(X, y)
        save(model, tmp_path / "model.dtrees")
        model = load(tmp_path / "model.dtrees").set_params(warm_start=True, max_iter=5).fit(X, y)
        assert_same(model, of_loss(loss, max_iter=5, **how).fit(X, y))

    def test_what_has_stopped_early_goes_on_where_early_stopping_is_off(self, tmp_path):
        """With all rows, from the best iteration; also from a file, and on other rows."""
        stopped = of_loss("squared_error", **PATIENT).fit(X, NOISY)
        save(stopped, tmp_path / "model.dtrees")
        for model in (stopped, load(tmp_path / "model.dtrees")):
            n, trees = model.n_iter_, model.forest_.trees
            model.set_params(warm_start=True, early_stopping=False, max_iter=n + 5)
            model.fit(X[::2], NOISY[::2])
            assert model.n_iter_ == n + 5
            pairs = zip(model.forest_.trees, trees, strict=False)
            assert all(a.equals(b) for a, b in pairs)
            assert not model.do_early_stopping_

    def test_early_stopping_that_comes_later_knows_all_scores(self):
        model = of_loss("squared_error", max_iter=3, warm_start=True, early_stopping=False)
        model.fit(X, NOISY)
        assert model.validation_score_.size == 0
        model.set_params(max_iter=6, early_stopping=True).fit(X, NOISY)
        assert len(model.validation_score_) == 7

    def test_callbacks_hear_of_what_is_added(self):
        listener = Listener()
        model = of_loss("squared_error", max_iter=3, warm_start=True).fit(X, NOISY)
        model.set_params(max_iter=5).fit(X, NOISY, callbacks=[listener])
        assert (listener.heard, listener.fit.numbers) == ([3, 4], range(3, 5))
        again = Listener()
        model.fit(X, NOISY, callbacks=[again])
        assert (again.heard, len(again.fit.numbers)) == ([], 0)
        assert again.scores[0] == listener.scores[-1]

    def test_rows_and_learning_rate_may_be_others(self):
        model = of_loss("squared_error", max_iter=3, warm_start=True).fit(X, NOISY)
        trees = model.forest_.trees
        model.set_params(max_iter=5, learning_rate=0.5).fit(X[::2], NOISY[::2])
        assert model.forest_.trees[:3] == trees
        assert model.n_iter_ == 5

    def test_what_cannot_go_on(self):
        y = np.digitize(NOISY, [0])
        model = of_loss("log_loss", max_iter=3, warm_start=True).fit(X, y)
        for table, target, message in (
            (X[:, :3], y, "columns and categories"),
            (X, y + 1, "its classes"),
        ):
            with pytest.raises(ValueError, match=message):
                model.fit(table, target)
        with pytest.raises(ValueError, match=r"max_iter=2 must be larger than or equal to n_iter_"):
            model.set_params(max_iter=2).fit(X, y)
        other = of_loss("squared_error", max_iter=3, warm_start=True).fit(X, NOISY)
        with pytest.raises(ValueError, match="the loss must be that of the first"):
            other.set_params(loss="absolute_error").fit(X, NOISY)


def test_a_scorer_of_classes_is_refused_for_numbers():
    X = np.arange(40.0)[:, None]
    model = GradientBoostingRegressor(scoring="roc_auc", early_stopping=True)
    with pytest.raises(ValueError, match="'roc_auc' is of classes, and the model predicts numbers"):
        model.fit(X, X[:, 0])
