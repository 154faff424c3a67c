"""Rows that are given to be scored: as scikit-learn's, of any kind, and on a worker."""

import pickle

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
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.callbacks import Callback
from dtrees.estimators.boosted_stopping import has_stopped
from dtrees.losses import Loss
from dtrees.model_selection import cross_validate
from tests.parallel.clusters import connect

RNG = np.random.default_rng(0)
N = 300
WORDS = RNG.choice(["a", "b", "c", None], 2 * N, p=[0.4, 0.3, 0.2, 0.1])
TABLE = pd.DataFrame({"x": RNG.normal(size=2 * N), "z": RNG.normal(size=2 * N).round(1)}).assign(
    word=pd.Categorical(WORDS)
)
TABLE.loc[RNG.random(2 * N) < 0.1, "x"] = np.nan
F = np.nan_to_num(TABLE["x"].to_numpy()) + (WORDS == "a") + RNG.normal(size=2 * N) / 2
X, X_VAL = TABLE[:N], TABLE[N:].reset_index(drop=True)
TABLES = {
    "frames": (X, X_VAL),
    "numbers": (X[["x", "z"]].to_numpy(), X_VAL[["x", "z"]].to_numpy()),
    "sparse": tuple(sp.csr_array(np.nan_to_num(t[["x", "z"]].to_numpy())) for t in (X, X_VAL)),
    "other storage": (X[["x", "z"]].to_numpy(), X_VAL[["x", "z"]]),
    "words": tuple(t[["word", "z"]].astype(object) for t in (X, X_VAL)),
}
TARGETS = {
    "two": (GradientBoostingClassifier, np.where(F > 0, "yes", "no")),
    "three": (GradientBoostingClassifier, np.digitize(F, [0, 1])),
    "numbers": (GradientBoostingRegressor, F),
}
FEW = {"max_iter": 12, "min_samples_leaf": 5, "max_leaf_nodes": 5, "random_state": 0}


class Squares(Loss):
    """A loss of one's own."""

    def gradient_and_hessian(self, y, raw):
        return raw - y, np.ones(len(y))

    def of_rows(self, y, raw):
        return (raw - y) ** 2


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


@pytest.mark.usefixtures("one_openmp_thread")
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
    model.fit(X, y[:N], X_val=X_VAL, y_val=y[N:])
    measure = measure or (lambda y, s: accuracy_score(y, np.where(s[:, 1] > 0.5, "yes", "no")))
    scores = [measure(y[N:], shares) for shares in model.staged_predict_proba(X_VAL)]
    np.testing.assert_allclose(model.validation_score_[1:], scores, rtol=1e-12)


def test_a_loss_of_ones_own_and_a_pickle():
    model = GradientBoostingRegressor(Squares(), **FEW).fit(X, F[:N], X_val=X_VAL, y_val=F[N:])
    found = [-np.mean((F[N:] - f) ** 2) for f in model.staged_predict(X_VAL)]
    np.testing.assert_allclose(model.validation_score_[1:], found)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X_VAL), model.predict(X_VAL))


def test_class_weights_do_not_concern_them():
    kind, y = TARGETS["two"]
    model = kind(class_weight={"yes": 5, "no": 1}, **FEW)
    model.fit(X, y[:N], X_val=X_VAL, y_val=y[N:])
    np.testing.assert_array_equal(model.validation_score_, losses_of(model, X_VAL, y[N:]))


def test_a_class_that_is_not_among_them():
    kind, y = TARGETS["three"]
    few = y[N:] < 2
    model = kind(**FEW).fit(X, y[:N], X_val=X_VAL[few], y_val=y[N:][few])
    found = losses_of(model, X_VAL[few], y[N:][few])
    np.testing.assert_array_equal(model.validation_score_, found)


@pytest.mark.parametrize("target", TARGETS)
def test_a_fit_that_goes_on_is_one_fit(target):
    kind, y = TARGETS[target]
    shown = {"X_val": X_VAL, "y_val": y[N:]}
    model = kind(n_iter_no_change=3, warm_start=True, **{**FEW, "max_iter": 4})
    model.fit(X, y[:N], **shown).set_params(max_iter=40).fit(X, y[:N], **shown)
    whole = kind(n_iter_no_change=3, **{**FEW, "max_iter": 40}).fit(X, y[:N], **shown)
    np.testing.assert_array_equal(model.validation_score_, whole.validation_score_)
    assert len(model.forest_) == len(whole.forest_)
    again = clone(model).fit(X, y[:N], **shown).fit(X, y[:N], **shown)
    assert again.n_iter_ == whole.n_iter_


def test_callbacks_hear_the_scores():
    heard = []

    class Hears(Callback):
        def on_iteration_end(self, fit, number):
            heard.append(fit.scores[-1])

    model = GradientBoostingRegressor(**FEW)
    model.fit(X, F[:N], X_val=X_VAL, y_val=F[N:], callbacks=[Hears()])
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
        with pytest.raises(TypeError, match="X_val is a Dask collection"):
            kind(**how).fit(lazy, y[:N], X_val=lazy, y_val=y[N:])
    for model in (found, kind(**how).fit(lazy, y[:N], X_val=shown, y_val=da.from_array(y[N:]))):
        np.testing.assert_array_equal(model.validation_score_, expected.validation_score_)
        np.testing.assert_array_equal(model.predict_proba(shown), expected.predict_proba(shown))


def test_a_cross_validation_hands_them_to_each_fit():
    model = GradientBoostingRegressor(**FEW)
    shown = {"X_val": X_VAL, "y_val": F[N:]}
    found = cross_validate(model, X, F[:N], cv=3, params=shown, return_estimator=True)
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
        model.fit(X, F[:N], **given_rows)
    assert vars(model) == before


def test_more_that_is_refused():
    shown = {"X_val": X_VAL, "y_val": F[N:]}
    with pytest.raises(ValueError, match="early_stopping is False"):
        GradientBoostingRegressor(early_stopping=False).fit(X, F[:N], **shown)
    with pytest.raises(ValueError, match="out of the valid range of the loss 'poisson'"):
        GradientBoostingRegressor("poisson").fit(X, np.exp(F[:N]), X_val=X_VAL, y_val=F[N:])
    kind, y = TARGETS["two"]
    with pytest.raises(ValueError, match=r"labels that are none of y: \['maybe'\]"):
        kind().fit(X, y[:N], X_val=X_VAL, y_val=np.where(F[N:] > 2, "maybe", y[N:]))
