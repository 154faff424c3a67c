"""A fit ends when its score does not get better; the model is the beginning of the whole one."""

import pickle

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, log_loss, mean_poisson_deviance, roc_auc_score
from sklearn.model_selection import train_test_split

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.estimators.boosted_stopping import best_iteration, has_stopped, is_wanted, split
from dtrees.export import load, save
from dtrees.inspection import export_text

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


def test_when_it_is_wanted():
    assert [is_wanted("auto", n) for n in (10_000, 10_001)] == [False, True]
    assert is_wanted(True, 3)
    assert not is_wanted(False, 10**6)


def test_sides_part_the_rows_and_keep_shares():
    counted = np.flatnonzero(RNG.random(400) < 0.8)
    labels = np.arange(len(counted)) % 4
    train, held = split(counted, labels, 0.25, 7)
    assert sorted([*train, *held]) == counted.tolist()
    assert np.ptp(np.bincount(labels[np.isin(counted, held)])) <= 1
    wanted = train_test_split(counted, test_size=0.25, stratify=labels, random_state=7)[1]
    assert held.tolist() == sorted(wanted)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile", "poisson"])
def test_the_model_is_a_fit_to_the_training_rows(loss):
    """And its scores are the loss of its stages on the held-out rows."""
    y = np.exp(SIGNAL).round(1) if loss == "poisson" else NOISY
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


@pytest.mark.usefixtures("one_openmp_thread")
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
            ({"validation_fraction": 400}, "test_size"),
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
