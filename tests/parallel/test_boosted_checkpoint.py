"""Fits of boosted models that end before their end, and go on to the same model."""

from __future__ import annotations

import signal
import sys

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from distributed import Client

from dtrees import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    losses,
)
from dtrees.callbacks import Callback
from dtrees.exceptions import ClusterError, ModelFileError
from dtrees.export import load, save
from dtrees.parallel import SavedTrees
from tests.forked import run_forked
from tests.parallel.clusters import connect, digest, leave
from tests.parallel.conftest import scheduler  # noqa: F401

N_ROWS = 400
DRAWS = np.random.default_rng(36)
X = np.round(DRAWS.normal(size=(N_ROWS, 6)), 1)
X[DRAWS.random(X.shape) < 0.3] = 0
TWO = (X[:, 0] * X[:, 1] + DRAWS.normal(size=N_ROWS) > 0).astype(int)
THREE = DRAWS.integers(0, 3, N_ROWS) * (X[:, 2] > 0)
NUMBERS = X[:, 0] + X[:, 2] ** 2 + DRAWS.normal(size=N_ROWS)
WEIGHT = DRAWS.integers(0, 4, N_ROWS)
FRACTIONS = DRAWS.random(N_ROWS)


def frame():
    table = pd.DataFrame(X, columns=list("abcdef"))
    letters = np.array(list("uvwxyz"))[(np.abs(table["a"]) * 3).astype(int) % 6]
    return table.assign(a=pd.Categorical(letters), b=table["b"].where(table["b"] != 0))


TABLES = {
    "dense": lambda: X,
    "sparse": lambda: scipy.sparse.csr_array(X),
    "frame": frame,
    "dask": lambda: da.from_array(X, chunks=(90, 6)),
}
STOPS = {"early_stopping": True, "n_iter_no_change": 4, "max_iter": 30}
FITS = {
    "two classes": (GradientBoostingClassifier, {}, TWO, {}),
    "weights, draws of rows and columns": (
        GradientBoostingClassifier,
        {"subsample": 0.7, "colsample_bytree": 0.6, "class_weight": "balanced"},
        TWO,
        {"sample_weight": WEIGHT},
    ),
    "three classes that stop": (GradientBoostingClassifier, STOPS, THREE, {}),
    "numbers that stop by rows that are grown from": (
        GradientBoostingRegressor,
        STOPS | {"validation_fraction": None, "scoring": "loss"},
        NUMBERS,
        {"sample_weight": FRACTIONS},
    ),
    "quantiles, and curves of two sets": (
        GradientBoostingRegressor,
        {"loss": "quantile", "quantile": 0.8, "early_stopping": False}
        | {"subsample": 0.5, "oob_score": True},
        NUMBERS,
        {"eval_set": [(X[:90], NUMBERS[:90]), (X[90:], NUMBERS[90:])], "eval_metric": "r2"},
    ),
    "Huber's, with beginnings": (
        GradientBoostingRegressor,
        {"loss": "huber", "monotonic_cst": [0, 0, 1, 0, 0, 0]},
        NUMBERS,
        {"init_score": X[:, 3]},
    ),
}


class Ends(Callback):
    """Fails at an iteration, and notes all."""

    def __init__(self, number=None):
        self.number, self.heard = number, []

    def on_fit_begin(self, fit):
        assert fit.n_grown == 0

    def on_iteration_end(self, fit, number):
        assert len(fit.trees) == (number + 1) * fit.n_values
        self.heard.append(number)
        if number == self.number:
            raise KeyboardInterrupt


def model(name="two classes", **more):
    kind, parameters, *_ = FITS[name]
    return kind(**{"max_iter": 10, "random_state": 2, "max_leaf_nodes": 6} | parameters | more)


def state(fitted):
    """What a model is, without the report."""
    curves = fitted.train_score_, fitted.validation_score_
    return digest(fitted.forest_.trees), fitted.evals_result_, *(each.tolist() for each in curves)


def interrupted(made, table, y, number, folder, **given):
    with pytest.raises(KeyboardInterrupt):
        made.fit(table, y, **given, callbacks=[Ends(number)], checkpoint=folder)
    assert not hasattr(made, "forest_")


class TestTheSameModel:
    @pytest.mark.one_of(4)
    @pytest.mark.parametrize("fit", FITS)
    @pytest.mark.parametrize("table", TABLES)
    def test_that_was_never_interrupted(self, table, fit, tmp_path):
        *_, y, given = FITS[fit]
        if table == "frame" and "eval_set" in given:
            given = given | {"eval_set": [(frame()[:90], y[:90]), (frame()[90:], y[90:])]}
        if table == "dask":
            given = {name: each for name, each in given.items() if name != "eval_set"}
            given.pop("eval_metric", None)
        draws = np.random.default_rng([len(fit), len(table)])
        first, second = np.sort(draws.choice(8, 2, replace=False)).tolist()
        with dask.config.set(scheduler="synchronous"):
            X = TABLES[table]()
            whole = model(fit).fit(X, y, **given)
            n_grown = max(whole.n_iter_, len(whole._scores) - 1)
            for number in (first, second):
                if number < n_grown:
                    interrupted(model(fit), X, y, number, tmp_path, **given)
            heard = Ends()
            again = model(fit).fit(X, y, **given, callbacks=[heard], checkpoint=tmp_path)
            assert state(again) == state(whole)
            assert heard.heard == list(range(second + 1, n_grown))
            last = Ends()
            again = model(fit).fit(X, y, **given, callbacks=[last], checkpoint=tmp_path)
        assert state(again) == state(whole)
        assert last.heard == []

    def test_of_more_iterations_and_of_fewer(self, tmp_path):
        for n in (4, 10, 7):
            found = model(max_iter=n).fit(X, TWO, checkpoint=tmp_path)
            assert state(found) == state(model(max_iter=n).fit(X, TWO))

    def test_of_another_score(self, tmp_path):
        model("three classes that stop").fit(X, THREE, checkpoint=tmp_path)
        asked = {"scoring": "neg_log_loss", "n_iter_no_change": 9}
        found = model("three classes that stop", **asked).fit(X, THREE, checkpoint=tmp_path)
        assert state(found) == state(model("three classes that stop", **asked).fit(X, THREE))

    def test_of_the_seed_that_was_drawn(self, tmp_path):
        drawn = {"random_state": None, "subsample": 0.5}
        first = model(**drawn, max_iter=3).fit(X, TWO, checkpoint=tmp_path)
        more = model(**drawn).fit(X, TWO, checkpoint=tmp_path)
        assert digest(more.forest_.trees[:3]) == digest(first.forest_.trees)

    def test_of_a_warm_start(self, tmp_path):
        whole = model().fit(X, TWO)
        started = model(warm_start=True, max_iter=4).fit(X, TWO).set_params(max_iter=10)
        with pytest.raises(KeyboardInterrupt):
            started.fit(X, TWO, checkpoint=tmp_path, callbacks=[Ends(6)])
        heard = Ends()
        started.fit(X, TWO, checkpoint=tmp_path, callbacks=[heard])
        assert heard.heard == [7, 8, 9]
        assert state(started) == state(whole)
        with pytest.raises(ValueError, match="trees of a warm start"):
            model().fit(X, TWO, checkpoint=tmp_path)

    @pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
    @pytest.mark.parametrize("number", DRAWS.integers(1, 10, 2).tolist())
    def test_of_a_process_that_is_killed(self, number, tmp_path):
        np.savez(tmp_path / "table.npz", X=X, y=TWO)
        done = run_forked("-c", KILLED, tmp_path / "table.npz", tmp_path / "there", str(number))
        assert done.returncode == -signal.SIGKILL, done.stderr
        heard = Ends()
        own = GradientBoostingClassifier(losses_of_mine(), max_iter=10, random_state=2)
        again = own.fit(X, TWO, checkpoint=tmp_path / "there", callbacks=[heard])
        whole = GradientBoostingClassifier(losses_of_mine(), max_iter=10, random_state=2)
        assert state(again) == state(whole.fit(X, TWO))
        assert heard.heard == list(range(number, 10))


class Logistic(losses.Loss):
    """As the loss of two classes, with a state."""

    def __init__(self, scale):
        self.scale = scale

    def initial(self, y, sample_weight):
        """From even odds."""
        return 0.0

    def gradient_and_hessian(self, y, raw):
        """Those of the share of the second class."""
        share = 1 / (1 + np.exp(-raw))
        return self.scale * (share - y), self.scale * share * (1 - share)


def losses_of_mine():
    return Logistic(0.5)


KILLED = """
import os, signal, sys
import dask
import numpy as np
from dtrees import GradientBoostingClassifier
from dtrees.callbacks import Callback
from tests.parallel.test_boosted_checkpoint import losses_of_mine

class Killed(Callback):
    def on_iteration_end(self, fit, number):
        if number == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)

dask.config.set({"dtrees.checkpoint-every": "0s"})
import dtrees.parallel.checkpoint
dtrees.parallel.checkpoint.SHARE = 0
table = np.load(sys.argv[1])
model = GradientBoostingClassifier(losses_of_mine(), max_iter=10, random_state=2)
model.fit(table["X"], table["y"], checkpoint=sys.argv[2], callbacks=[Killed()])
"""


class TestOtherFits:
    @pytest.mark.parametrize(
        ("change", "given", "words"),
        [
            ({"learning_rate": 0.2}, {}, r"learning_rate was 0\.1 and is 0\.2\.$"),
            ({"early_stopping": True}, {}, r"early_stopping was 'auto' and is True; init_score, "),
            ({"random_state": 3}, {}, r"the seed, which random_state says"),
            ({}, {"sample_weight": WEIGHT}, r"differs: y, or sample_weight\.$"),
            ({}, {"init_score": X[:, 0]}, r"differs: init_score, rows that are held out"),
        ],
    )
    def test_are_refused(self, change, given, words, tmp_path):
        model().fit(X, TWO, checkpoint=tmp_path)
        with pytest.raises(ValueError, match=rf"holds trees of another fit.* {words}"):
            model(**change).fit(X, TWO, checkpoint=tmp_path, **given)

    def test_of_a_loss_with_another_state(self, tmp_path):
        model(loss=Logistic(0.5)).fit(X, TWO, checkpoint=tmp_path)
        model(loss=Logistic(0.5)).fit(X, TWO, checkpoint=tmp_path)
        with pytest.raises(ValueError, match="holds trees of another fit"):
            model(loss=Logistic(0.6)).fit(X, TWO, checkpoint=tmp_path)

    def test_a_file_that_is_torn(self, tmp_path):
        model().fit(X, TWO, checkpoint=tmp_path)
        (trees,) = tmp_path.glob("trees-*")
        trees.write_bytes(trees.read_bytes()[:-100])
        with pytest.raises(ModelFileError, match=trees.name):
            model().fit(X, TWO, checkpoint=tmp_path)


class TestAdaBoost:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize(
        ("kind", "y"), [(AdaBoostClassifier, THREE), (AdaBoostRegressor, NUMBERS)]
    )
    def test_the_same_model(self, kind, y, table, tmp_path, monkeypatch):
        def work(n=12, **how):
            made = kind(n, max_depth=2, random_state=2).fit(X, y, WEIGHT, **how)
            return digest(made.forest_.trees), made.estimator_weights_.tolist()

        add, came = SavedTrees.add, []

        def counted(saved, at, trees):
            if len(came) == 5:
                raise KeyboardInterrupt
            if saved.checkpoint is not None:
                came.append(at)
            add(saved, at, trees)

        with dask.config.set(scheduler="synchronous"):
            X = TABLES[table]()
            whole = work()
            monkeypatch.setattr(SavedTrees, "add", counted)
            with pytest.raises(KeyboardInterrupt):
                work(checkpoint=tmp_path)
            came[:] = [None] * 6  # beyond Ctrl-C
            assert work(checkpoint=tmp_path) == whole
            n_came = len(came)  # one more, where the last tree is no better than chance
            assert n_came - 6 - (len(whole[1]) - 5) in (0, 1)
            assert work(checkpoint=tmp_path) == whole
            assert work(4, checkpoint=tmp_path) == work(4)
            assert len(came) == n_came
            with pytest.raises(ValueError, match=r"differs: y, or sample_weight\.$"):
                kind(12, max_depth=2, random_state=2).fit(X, y, checkpoint=tmp_path)


class TestOnACluster:
    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("fit", list(FITS)[1:4])
    def test_a_fit_goes_on(self, fit, tmp_path):
        *_, y, given = FITS[fit]
        scoring = {"scoring": "loss"} if "early_stopping" in FITS[fit][1] else {}
        whole = model(fit, **scoring).fit(X, y, **given)
        table = da.from_array(X, chunks=(90, 6))
        with connect(2, 1, False) as cluster, Client(cluster):
            interrupted(model(fit, **scoring, regime="partitioned"), table, y, 1, tmp_path, **given)
            for regime in ("partitioned", "replicated"):
                again = model(fit, **scoring, regime=regime)
                again.fit(table, y, **given, checkpoint=tmp_path)
                assert state(again) == state(whole)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("regime", ["replicated", "partitioned"])
    def test_an_error_brings_along_what_is_there(self, regime, tmp_path):
        many = {"max_iter": 400, "early_stopping": True, "n_iter_no_change": 400}
        table = X if regime == "replicated" else da.from_array(X, chunks=(90, 6))
        with (
            dask.config.set({"dtrees.workers-timeout": "100ms"}),
            connect(2, 1, False) as cluster,
            Client(cluster) as client,
        ):

            class Lost(Callback):
                def on_iteration_end(self, fit, number):
                    if number == 4:
                        leave(cluster, client)

            with pytest.raises(ClusterError, match=r"iterations are complete, of 400") as caught:
                model(**many, regime=regime).fit(table, TWO, callbacks=[Lost()])
        there = caught.value.estimator
        assert 5 <= there.n_iter_ < 400
        save(there, tmp_path / "model")
        whole = model(**many).fit(X, TWO)
        with pytest.raises(ValueError, match=r"model holds trees of another fit.*y, or sample"):
            there.resume(X, 1 - TWO)
        for each in (there, load(tmp_path / "model")):
            each.set_params(regime="local")
            assert state(each.resume(X, TWO)) == state(whole)
        with pytest.raises(ValueError, match="nothing to resume"):
            there.resume(X, TWO)
