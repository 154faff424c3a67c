"""One boosted model, wherever it grows, and whatever happens to the workers."""

from __future__ import annotations

import _thread
from dataclasses import replace
from functools import partial

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.callbacks import Callback
from dtrees.exceptions import ClusterError, TableTooLargeError, WorkerLostError
from dtrees.parallel import boosted_members
from dtrees.parallel.boosted_members import boost_partitioned
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.regimes import TOO_LARGE
from tests.core.grow.boosted_cases import Squares
from tests.parallel.clusters import Deadly, connect, digest, make_small, ours

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")


RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 5)).round(2)
X[RNG.random(X.shape) < 0.1] = np.nan
F = np.nan_to_num(X[:, 0] + X[:, 1] ** 2)
WEIGHT = RNG.integers(0, 3, 600)
TARGETS = {
    "two classes": (GradientBoostingClassifier, F > 1),
    "three classes": (GradientBoostingClassifier, np.digitize(F, [0, 1])),
    "numbers": (GradientBoostingRegressor, F),
    "several classes": (
        partial(GradientBoostingClassifier, subsample=0.7, oob_score=True),
        np.c_[F > 1, np.digitize(F, [0, 1])].astype(int),
    ),
    "several numbers": (
        partial(GradientBoostingRegressor, "poisson"),
        np.c_[np.abs(F), np.exp(F)],
    ),
    "regularized": (
        partial(
            GradientBoostingRegressor,
            "tweedie",
            l1_regularization=0.3,
            max_delta_step=0.5,
            path_smooth=2.0,
            colsample_bytree=0.6,
            min_split_gain=0.1,
        ),
        F**2,
    ),
}


def model_of(name="two classes", **parameters):
    kind, y = TARGETS[name]
    few = {"max_iter": 4, "max_leaf_nodes": 12, "min_samples_leaf": 3, "random_state": 0}
    return kind(**few | parameters), y


def expected_of(name="two classes", **parameters):
    """The hash of the model that grows on threads, and its scores."""
    model, y = model_of(name, **parameters)
    return found(model.fit(X, y, sample_weight=WEIGHT))


def found(model):
    scores = model.validation_score_.tolist(), getattr(model, "oob_scores_", np.zeros(0)).tolist()
    return digest(model.forest_.trees), *scores


def boosted_with(thresholds, client, stats=None):
    """The trees of a model that a worker grows with other thresholds."""
    model, y = model_of(regime="replicated")

    def boost(models, _stats):
        own = [replace(each, thresholds=thresholds(each.thresholds)) for each in models]
        return boost_partitioned(own, stats or FitStatistics())

    with pytest.MonkeyPatch.context() as patch, client.as_current():
        patch.setattr("dtrees.estimators.boosting.boost_partitioned", boost)
        return model.fit(X, y, sample_weight=WEIGHT).forest_.trees


class Heard(Callback):
    """Iterations and their scores, up to one that ends the fit."""

    def __init__(self, last=99):
        self.last, self.numbers, self.scores = last, [], []

    def on_iteration_end(self, fit, number):
        self.numbers.append(number)
        self.scores.append(fit.training_score())
        return number == self.last


class TestOneHash:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("loss", ["squared_error", "huber"])
    def test_trees_of_all_targets(self, loss, processes):
        given = {"loss": loss, "multi_strategy": "multi_output_tree", "subsample": 0.7}
        table, y = da.from_array(X, chunks=(250, -1)), np.c_[F, 1 - F**2]
        model = model_of("numbers", **given)[0].fit(X, y, sample_weight=WEIGHT)
        with processes.as_current():
            other = clone(model).set_params(regime="replicated")
            other.fit(table, da.from_array(y, chunks=(250, -1)), sample_weight=WEIGHT)
            np.testing.assert_array_equal(other.predict(X), model.predict(X))
            other.set_params(regime="partitioned").fit(table, y, sample_weight=WEIGHT)
            np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert ours(processes) == []

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("name", TARGETS)
    def test_a_table_in_memory(self, name, processes):
        model, y = model_of(name, regime="replicated")
        with processes.as_current():
            model.fit(X, y, sample_weight=WEIGHT)
        assert found(model) == expected_of(name)
        report = model.fit_report_
        assert (report["regime"], report["reason"]) == ("replicated", "asked for")
        assert (report["epochs"], report["rounds"]) == (1, 0)  # nobody to be told of anything
        assert ours(processes) == []

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize(
        "parameters",
        [
            {"loss": "huber", "subsample": 0.6, "oob_score": True},
            {"loss": Squares(), "subsample": 0.5, "early_stopping": True, "n_iter_no_change": 1},
            {"monotonic_cst": [1, 0, 0, 0, -1], "interaction_cst": [{0, 1}], "max_features": 0.5}
            | {"feature_weights": [1, 1, 5, 2, 9]},
        ],
        ids=["huber", "own loss", "rules"],
    )
    def test_of_every_parameter_that_changes_trees(self, parameters, here):
        expected = expected_of("numbers", **parameters)
        model, y = model_of("numbers", regime="replicated", **parameters)
        with here.as_current():
            model.fit(X, y, sample_weight=WEIGHT)
        assert model.fit_report_["regime"] == "replicated"
        assert found(model) == expected

    @pytest.mark.parametrize("layout", [(1, 1), (1, 3), (2, 2)])
    def test_any_number_of_threads(self, layout):
        model, y = model_of()
        with connect(*layout, False) as cluster, Client(cluster) as client:
            model.fit(X, y, sample_weight=WEIGHT)
            assert ours(client) == []
        assert found(model) == expected_of()

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("regime", [None, "local", "replicated"])
    def test_collections_of_dask(self, regime, processes):
        model, y = model_of(regime=regime, early_stopping=True)
        table = da.from_array(X, chunks=(170, -1))
        columns = da.from_array(y, chunks=250), da.from_array(WEIGHT, chunks=100)
        with processes.as_current():
            model.fit(table, *columns)
        assert found(model) == expected_of(early_stopping=True)
        report = model.fit_report_
        assert report["regime"] == (regime or "replicated")
        assert set(report["seconds"]) >= {"reading", "coding", "growth"}
        assert ours(processes) == []

    def test_data_frames_with_categories(self, processes):
        frame = pd.DataFrame(X, columns=list("abcde"))
        frame["c"] = pd.Categorical(np.where(np.isnan(X[:, 2]), "none", np.where(F > 0, "u", "v")))
        model, y = model_of("numbers")
        alone = digest(model.fit(frame, y).forest_.trees)
        lazy = dd.from_pandas(frame, npartitions=3)
        for regime in ("local", "replicated"):
            with processes.as_current():
                model.set_params(regime=regime).fit(
                    lazy, dd.from_pandas(pd.Series(y), npartitions=2)
                )
            assert digest(model.forest_.trees) == alone
            assert model.feature_names_in_.tolist() == list("abcde")

    def test_without_a_cluster_and_sparse(self):
        model, y = model_of("three classes")
        table = np.where(np.abs(np.nan_to_num(X)) < 0.8, 0.0, np.nan_to_num(X))
        alone = digest(model.fit(table, y).forest_.trees)
        lazy = da.from_array(table, chunks=(200, -1)).map_blocks(sp.csr_array)
        with dask.config.set(scheduler="threads"):
            assert digest(model.fit(lazy, da.from_array(y, chunks=200)).forest_.trees) == alone
        assert model.fit_report_["regime"] == "local"


class TestPlaces:
    def test_a_client_is_used(self, processes, monkeypatch):
        """This process neither grows a tree nor sees a code of a collection."""
        expected = expected_of()
        monkeypatch.setattr("dtrees.estimators.boosting.boost", None)
        monkeypatch.setattr("dtrees.parallel.encoding.check_room", None)
        for table in (X, da.from_array(X, chunks=(170, -1))):
            model, y = model_of()
            with processes.as_current():
                model.fit(table, y, sample_weight=WEIGHT)
            assert found(model) == expected
            report = model.fit_report_
            assert report["regime"] == "replicated"
            assert report["reason"].startswith("client of tcp://")

    def test_other_places_are_refused(self):
        model, y = model_of(regime="elsewhere")
        with pytest.raises(ValueError, match=r"'replicated'.*'partitioned'.* or None\. Got"):
            model.fit(X, y)

    def test_workers_that_cannot_hold_the_table(self, monkeypatch):
        """They would be killed one after the other; one that has room gets the table."""
        expected = expected_of()
        with connect(2, 1, False) as cluster, Client(cluster) as client:
            workers, used = sorted(client.nthreads()), []
            begin = boosted_members.BlocksOfMembers._begin

            def see(blocks):
                halves, sent = begin(blocks)
                used.append([*halves])
                return halves, sent

            monkeypatch.setattr(boosted_members.BlocksOfMembers, "_begin", see)
            for small in ([], workers[:1]):
                make_small(monkeypatch, small)
                model, y = model_of()
                assert found(model.fit(X, y, sample_weight=WEIGHT)) == expected
            assert used == [[workers[0]], [workers[1]]]
            make_small(monkeypatch, workers)
            for table in (X, da.from_array(X, chunks=(170, -1))):
                with pytest.raises(TableTooLargeError, match="more than a worker can hold"):
                    model.set_params(regime="replicated").fit(table, y)
            model.set_params(regime=None).fit(X, y, sample_weight=WEIGHT)
            assert found(model) == expected
            report = model.fit_report_
            assert (report["regime"], report["reason"]) == ("local", TOO_LARGE)
            assert ours(client) == []

    def test_no_cluster(self):
        model, y = model_of(regime="replicated")
        with pytest.raises(ClusterError, match="needs a Dask cluster"):
            model.fit(X, y)


class TestEarlyStopping:
    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("scoring", ["loss", "accuracy", None])
    def test_ends_on_the_worker(self, scoring, here, monkeypatch):
        options = {"early_stopping": True, "max_iter": 60, "n_iter_no_change": 2, "tol": 0.01}
        alone = expected_of(scoring=scoring, **options)
        grown = []
        finished = boosted_members.pack
        monkeypatch.setattr(
            boosted_members, "pack", lambda trees: grown.append(len(trees)) or finished(trees)
        )
        model, y = model_of(scoring=scoring, regime="replicated", **options)
        model.fit(X, y, sample_weight=WEIGHT)
        assert found(model) == alone
        assert sum(grown) == len(model.validation_score_) - 1 < 60

    def test_by_a_function_is_decided_here(self, here):
        def score(model, X, y):
            return -abs(model.n_iter_ - 3)

        options = {"early_stopping": True, "max_iter": 9, "n_iter_no_change": 1, "scoring": score}
        model, y = model_of(regime="replicated", **options)
        model.fit(X, y, sample_weight=WEIGHT)
        assert found(model) == expected_of(**options)
        assert (model.n_iter_, len(model.validation_score_)) == (3, 5)

    def test_a_function_that_asks_for_rows_of_a_collection(self):
        model, y = model_of(early_stopping=True, scoring=lambda model, X, y: 0.0)
        with pytest.raises(TypeError, match="Rows of a Dask collection cannot be taken"):
            model.fit(da.from_array(X, chunks=(200, -1)), y)


class TestCallbacks:
    @pytest.mark.parametrize("early_stopping", [False, True])
    def test_hear_the_same_while_the_model_grows(self, early_stopping, here):
        heard = {}
        for regime in ("local", "replicated"):
            model, y = model_of("three classes", regime=regime, early_stopping=early_stopping)
            heard[regime] = Heard()
            model.fit(X, y, sample_weight=WEIGHT, callbacks=[heard[regime]])
        assert heard["replicated"].numbers == [0, 1, 2, 3]
        assert heard["replicated"].scores == heard["local"].scores

    def test_end_the_model(self, here):
        model, y = model_of(regime="replicated")
        model.fit(X, y, sample_weight=WEIGHT, callbacks=[Heard(last=1)])
        assert model.n_iter_ == 2
        assert found(model) == expected_of(max_iter=2)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("early_stopping", [False, True])
def test_warm_start_goes_on_anywhere(early_stopping, here):
    how = {"early_stopping": early_stopping}
    model, y = model_of(regime="replicated", warm_start=True, max_iter=2, **how)
    model.fit(X, y, sample_weight=WEIGHT)
    model.set_params(max_iter=4).fit(X, y, sample_weight=WEIGHT)
    assert found(model) == expected_of(**how)
    with pytest.raises(TypeError, match=r"warm_start=True walks the rows.*Give X.compute\(\)"):
        model.set_params(max_iter=5).fit(da.from_array(X, chunks=(200, -1)), y)


class TestFaults:
    def test_a_worker_that_dies(self, processes, tmp_path):
        path = tmp_path / "alive"
        path.touch()
        stats = FitStatistics()
        trees = boosted_with(lambda each: Deadly(each, str(path)), processes, stats)
        assert digest(trees) == expected_of()[0]
        assert not path.exists()
        assert stats.counts["lost_workers"] == 1
        assert ours(processes) == []

    @pytest.mark.chaos
    def test_a_model_that_kills_every_worker(self, processes):
        class Always(Deadly):
            def __call__(self, *args):
                import os

                os._exit(1)

        with pytest.raises(WorkerLostError, match="were lost"):
            boosted_with(lambda each: Always(each, ""), processes)
        assert ours(processes) == []

    def test_an_error_in_the_task(self, here):
        def fail(*args):
            raise OSError("of thresholds")

        with pytest.raises(OSError, match="of thresholds"):
            boosted_with(lambda each: fail, here)
        assert ours(here) == []

    def test_an_interrupt_leaves_nothing(self, here, monkeypatch):
        class Interrupts:
            def __call__(self, *args):
                _thread.interrupt_main()
                return False

        model, y = model_of(max_iter=100_000, regime="replicated", early_stopping=True)
        monkeypatch.setattr("dtrees.estimators.boosted_stopping.has_stopped", Interrupts())
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert not hasattr(model, "forest_")
        assert ours(here) == []


def test_predictions_stay_lazy(processes):
    model, y = model_of("three classes", regime="replicated")
    lazy = da.from_array(X, chunks=(200, -1))
    with processes.as_current():
        model.fit(lazy, y)
        for method in ("predict", "predict_proba", "decision_function", "apply"):
            answer = getattr(model, method)(lazy)
            assert isinstance(answer, da.Array)
            np.testing.assert_array_equal(answer.compute(), getattr(model, method)(X))
        for method in ("predict", "predict_proba", "decision_function"):
            stages = list(getattr(model, f"staged_{method}")(lazy))
            expected = list(getattr(model, f"staged_{method}")(X))
            assert all(isinstance(stage, da.Array) for stage in stages)
            assert len(stages) == len(expected) == 4
            for lazily, at_once in zip(dask.compute(*stages), expected, strict=True):
                np.testing.assert_array_equal(lazily, at_once)


def test_a_target_of_one_column_beside_a_frame():
    model, y = model_of()
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcde")), npartitions=3)
    column = da.from_array(y[:, np.newaxis], chunks=(200, 1))
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model.fit(frame, column)
    assert digest(model.forest_) == digest(clone(model).fit(frame, y).forest_)


def test_stages_of_a_data_frame_are_series():
    model, y = model_of("numbers")
    frame = pd.DataFrame(X, columns=list("abcde"))
    model.fit(frame, y)
    lazy = dd.from_pandas(frame, npartitions=2)
    with dask.config.set(scheduler="threads"):
        stages = [each.compute() for each in model.staged_predict(lazy)]
    assert all(isinstance(stage, pd.Series) for stage in stages)
    for stage, at_once in zip(stages, model.staged_predict(frame), strict=True):
        np.testing.assert_array_equal(stage, at_once)
    with pytest.raises(ValueError, match="feature names"):
        next(model.staged_predict(lazy[["a", "b"]]))
