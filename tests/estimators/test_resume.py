"""A fit that has lost its cluster goes on with the trees that were complete."""

from __future__ import annotations

import pickle
import threading
from functools import partial
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

from dtrees import GradientBoostingClassifier, RandomForestClassifier
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.model.tree import Forest
from dtrees.estimators.resume import bring_along, check_same, in_words, seed_of
from dtrees.exceptions import (
    ClusterError,
    ModelFileError,
    SchedulerLostError,
    WorkerLostError,
)
from dtrees.export import load, save
from dtrees.parallel import tasks
from dtrees.parallel.partitioned import PartitionedGrowth
from tests.parallel.clusters import connect, digest, leave
from tests.parallel.conftest import scheduler  # noqa: F401
from tests.parallel.test_checkpoint import WHOLE, Ends, N, X, Y, forest

MANY = 300  # of which some are not there when a scheduler is closed

OTHER = SimpleNamespace(__version__="0.0.7")
TOLD = {
    "another version": r"has dtrees 0\.0\.7.* trees are complete, of 300: error\.estimator",
    # whoever is the first to find out: the scheduler, or the fit, which looks for lost results
    "no workers": r"(no-workers-timeout'|has had no worker for 0\.1 seconds).*error\.estimator",
    "an error of a task": r"cluster has ended early: MemoryError\('there'\)\. .* trees are",
}


def fail(runner):
    raise MemoryError("there")


class TestResume:
    def unfinished(self, regime, error=SchedulerLostError, **more):
        """What an error brings along, of a cluster whose scheduler is closed at a tree."""
        cluster = connect(1, 1, False)
        client = Client(cluster)

        def close():
            cluster.close()

        try:
            model = forest(regime=regime, n_estimators=MANY)
            with pytest.raises(error) as caught:
                model.fit(X, Y, callbacks=[Ends(4, close)], **more)
            assert not hasattr(model, "forest_")
        finally:
            client.close()
            cluster.close()
        return caught.value.estimator

    @pytest.fixture
    def so_far(self, monkeypatch):
        """The same without a cluster."""
        from dtrees.estimators import forest_growth

        grow = forest_growth.grow_trees

        def lost(growth, numbers, *others, **more):
            yield from grow(growth, numbers[:5], *others, **more)
            raise WorkerLostError("all are gone")

        monkeypatch.setattr(forest_growth, "grow_trees", lost)
        with pytest.raises(WorkerLostError) as caught:
            forest().fit(X, Y)
        monkeypatch.undo()
        return caught.value.estimator

    @pytest.mark.parametrize(("trees", "are"), [(5, "5 trees are"), (1, "1 tree is")])
    def test_the_error_says_how_to_go_on(self, trees, are):
        model = forest(n_estimators=9).fit(X, Y)
        model.forest_ = Forest(model.forest_.trees[:trees])
        error = WorkerLostError("all are gone.")
        bring_along(error, model, trees, 9)
        on = f" {are} complete, of 9: error.estimator.resume(X, y) goes on with them."
        assert str(error) == f"all are gone.{on}"
        assert error.estimator is model

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("regime", ["replicated", "partitioned"])
    def test_the_scheduler_is_closed(self, regime, monkeypatch):
        monkeypatch.setattr("dtrees.parallel.replicated.ROWS_PER_BATCH", 1)
        monkeypatch.setattr(
            PartitionedGrowth, "tree_batches", lambda self, numbers, *_: [[i] for i in numbers]
        )
        with dask.config.set({"distributed.comm.timeouts.connect": "1 hour"}):
            so_far = self.unfinished(regime)  # its cluster is closed, so it is not waited for
        assert type(so_far) is RandomForestClassifier
        assert 5 <= so_far.n_estimators_ < MANY
        few = forest(n_estimators=so_far.n_estimators_).fit(X, Y)
        np.testing.assert_array_equal(so_far.predict_proba(X), few.predict_proba(X))
        model = so_far.resume(X, Y)
        assert model is so_far
        whole = forest(n_estimators=MANY).fit(X, Y)
        assert digest(model.forest_.trees) == digest(whole.forest_.trees)

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("how", ["another version", "no workers", "an error of a task"])
    def test_whatever_the_error_is(self, how, monkeypatch):
        """The trees that were complete are not lost, and need no cluster any more."""
        monkeypatch.setattr("dtrees.parallel.replicated.ROWS_PER_BATCH", 1)
        acts = {
            "another version": lambda _: monkeypatch.setattr(tasks, "dtrees", OTHER),
            "no workers": lambda cluster: cluster.scale(0),
            "an error of a task": lambda _: monkeypatch.setattr(tasks.TaskRunner, "__init__", fail),
        }
        grow, has_happened = ForestGrowth.trees, threading.Event()

        def held(growth, unit, *others, **more):
            """The trees of the worker, in this process: half of them are grown after the act."""
            assert unit.number < MANY // 2 or has_happened.wait(60)
            return grow(growth, unit, *others, **more)

        monkeypatch.setattr(ForestGrowth, "trees", held)

        def act(cluster, client):
            acts[how](cluster)
            has_happened.set()
            if how == "no workers":  # what it has grown meanwhile is lost
                leave(cluster, client)

        timeouts = dict.fromkeys(
            ("distributed.scheduler.no-workers-timeout", "dtrees.workers-timeout"), "100ms"
        )
        with dask.config.set(timeouts), connect(1, 1, False) as cluster, Client(cluster) as client:
            model = forest(regime="replicated", n_estimators=MANY)
            with pytest.raises(ClusterError, match=TOLD[how]) as caught:
                model.fit(X, Y, callbacks=[Ends(4, partial(act, cluster, client))])
        monkeypatch.undo()
        so_far = caught.value.estimator
        assert 5 <= so_far.n_estimators_ < MANY
        whole = forest(n_estimators=MANY).fit(X, Y)
        assert digest(so_far.resume(X, Y).forest_.trees) == digest(whole.forest_.trees)
        assert so_far.fit_report_["regime"] == "local"

    def test_rows_on_workers(self, monkeypatch):
        """They are told by what the growth saw of them."""
        from dtrees.estimators import forest_growth

        grow = forest_growth.grow_trees

        def lost(growth, numbers, *others, **more):
            yield from grow(growth, numbers[:5], *others, **more)
            raise WorkerLostError("all are gone")

        lazy = da.from_array(X, chunks=(90, 5))
        with dask.config.set(scheduler="synchronous"):
            monkeypatch.setattr(forest_growth, "grow_trees", lost)
            with pytest.raises(WorkerLostError) as caught:
                forest(regime="partitioned").fit(lazy, Y)
            monkeypatch.undo()
            so_far = caught.value.estimator
            with pytest.raises(ValueError, match=r"differs: the rows of X\.$"):
                so_far.resume(lazy[::-1], Y)
            assert so_far.n_estimators_ == 5
            assert digest(so_far.resume(lazy, Y).forest_.trees) == WHOLE

    @pytest.mark.parametrize("n_estimators", [5, 8])
    def test_warm_starts_that_do_not_grow(self, n_estimators, monkeypatch):
        """As there is nothing to grow, or no worker is left before the first block is there."""
        from dtrees.estimators import forest_growth

        def lost(*_, **__):
            raise WorkerLostError("all are gone")
            yield

        lazy = da.from_array(X, chunks=(90, 5))
        model = forest(n_estimators=5, regime="partitioned", warm_start=True)
        with dask.config.set(scheduler="synchronous"):
            whole = digest(model.fit(lazy, Y).forest_.trees)
            model.set_params(n_estimators=n_estimators)
            if n_estimators == 5:
                with pytest.warns(UserWarning, match="n_estimators"):
                    model.fit(lazy, Y)
            else:
                monkeypatch.setattr(forest_growth, "grow_trees", lost)
                with pytest.raises(WorkerLostError) as caught:
                    model.fit(lazy, Y)
                assert caught.value.estimator is None  # which has them itself
        assert digest(model.forest_.trees) == whole

    def test_of_a_warm_start_on_new_rows(self, monkeypatch):
        from dtrees.estimators import forest_growth

        grow = forest_growth.grow_trees

        def lost(growth, numbers, *others, **more):
            yield from grow(growth, numbers[:2], *others, **more)
            raise WorkerLostError("all are gone")

        model = forest(n_estimators=5, warm_start=True).fit(X[::-1].copy(), Y)
        whole = pickle.loads(pickle.dumps(model.set_params(n_estimators=N))).fit(X, Y)
        monkeypatch.setattr(forest_growth, "grow_trees", lost)
        with pytest.raises(WorkerLostError) as caught:
            model.fit(X, Y)
        monkeypatch.undo()
        so_far = caught.value.estimator
        assert so_far.n_estimators_ == 7
        assert digest(so_far.resume(X, Y).forest_.trees) == digest(whole.forest_.trees)

    def test_on_another_cluster(self, so_far):
        with connect(1, 1, False) as cluster, Client(cluster):
            model = so_far.resume(X, Y)
        assert digest(model.forest_.trees) == WHOLE
        assert model.fit_report_["regime"] == "replicated"

    def test_once_only(self, so_far):
        so_far.resume(X, Y)
        with pytest.raises(ValueError, match="nothing to resume"):
            so_far.resume(X, Y)
        with pytest.raises(ValueError, match="nothing to resume"):
            forest().fit(X, Y).resume(X, Y)

    def test_saved_and_pickled(self, so_far, tmp_path):
        save(so_far, tmp_path / "so_far.dtrees")
        for copy in load(tmp_path / "so_far.dtrees"), pickle.loads(pickle.dumps(so_far)):
            assert copy.n_estimators_ == 5
            assert digest(copy.resume(X, Y).forest_.trees) == WHOLE

    def test_other_data_and_parameters(self, so_far):
        with pytest.raises(ValueError, match=r"model holds trees of another fit.*y, or sample"):
            so_far.resume(X, 1 - Y)
        with pytest.raises(ValueError, match="max_depth was None and is 4"):
            so_far.set_params(max_depth=4).resume(X, Y)
        assert so_far.n_estimators_ == 5
        assert digest(so_far.set_params(max_depth=None).resume(X, Y).forest_.trees) == WHOLE

    def test_with_a_checkpoint(self, so_far, tmp_path):
        forest(n_estimators=8).fit(X, Y, checkpoint=tmp_path)
        heard = Ends()
        model = so_far.resume(X, Y, checkpoint=tmp_path, callbacks=[heard])
        assert digest(model.forest_.trees) == WHOLE
        assert heard.heard == list(range(8, N))

    def test_lost_once_more_before_anything_has_grown(self, so_far, monkeypatch):
        def lost(*_, **__):
            raise WorkerLostError("all are gone")

        boosted = GradientBoostingClassifier(max_iter=2).fit(X, Y)
        boosted._fit_facts = {}  # as if its fit had ended early
        for model in so_far, boosted:
            monkeypatch.setattr(type(model), "_fit", lost)
            with pytest.raises(WorkerLostError) as caught:
                model.resume(X, Y)
            assert caught.value.estimator is model
        monkeypatch.undo()
        assert digest(so_far.resume(X, Y).forest_.trees) == WHOLE

    def test_nothing_was_grown(self, monkeypatch):
        from dtrees.estimators import forest_growth

        def lost(*_, **__):
            raise WorkerLostError("all are gone")
            yield

        monkeypatch.setattr(forest_growth, "grow_trees", lost)
        with pytest.raises(WorkerLostError) as caught:
            forest().fit(X, Y)
        assert caught.value.estimator is None


@pytest.mark.parametrize(
    ("same", "other"),
    [
        ([2, np.int64(2), np.uint8(2)], 2.0),
        ([{"a": 1, "b": 2}, {"b": np.int8(2), "a": 1}], {"a": 1}),
        ([[1, 2], (1, 2), np.array([1, 2])], [1, 2.0]),
        ([None], "None"),
        ([np.str_("sqrt"), "sqrt"], "log2"),
    ],
)
def test_equal_parameters_have_equal_words(same, other):
    assert len({in_words(value) for value in same}) == 1
    assert in_words(other) != in_words(same[0])


FACTS = {
    "dtrees": "1", "estimator": "a", "parameters": {"max_depth": "3"}, "seed": 1, "shape": [2, 3],
    "codebook": "b", "codes": "c", "target": "d", "bags": None,
}  # fmt: skip


def test_everything_that_differs_is_named():
    check_same(FACTS, dict(FACTS), "It")
    for name in FACTS.keys() - {"parameters"}:
        with pytest.raises(ValueError, match=r"^It holds trees of another fit"):
            check_same(FACTS, FACTS | {name: "another"}, "It")
    with pytest.raises(ValueError, match="max_bins was None and is 4; max_depth was 3 and is None"):
        check_same(FACTS, FACTS | {"parameters": {"max_bins": "4"}}, "It")


@pytest.mark.parametrize(
    ("new", "named"),
    [
        ({"seed": 8, "bags": "c"}, "the seed"),
        ({"shape": [9, 9], "codebook": "c", "codes": "c", "target": "c", "bags": "c"}, "the shape"),
        ({"parameters": {"max_bins": "4"}, "codebook": "c", "codes": "c"}, "max_bins was"),
        ({"parameters": {"bootstrap": "False"}, "bags": None}, "bootstrap was"),
    ],
)
def test_what_follows_from_another_difference_is_not_named(new, named):
    there = FACTS | {"parameters": dict.fromkeys(new.get("parameters", {}), "None")}
    with pytest.raises(ValueError, match=rf"differs: {named}[^;]*$"):
        check_same(there, there | new, "It")


@pytest.mark.parametrize("seed", [None, -1, 2**31, 1.0, True, "7"])
def test_a_seed_that_is_none(seed):
    saved = SimpleNamespace(path="there", facts={"seed": seed})
    with pytest.raises(ModelFileError, match="'there' is damaged: its seed is"):
        seed_of(RandomForestClassifier(), saved)
