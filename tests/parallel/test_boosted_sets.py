"""Boosted models of several training sets: one hash and the same scores, wherever they grow."""

from __future__ import annotations

import functools
from functools import partial
from itertools import count

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.exceptions import TableTooLargeError
from dtrees.model_selection import GridSearchCV, boosting_curve, cross_validate
from dtrees.parallel import boosted, boosted_members
from tests.parallel.clusters import Deadly, connect, digest, make_small, ours

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5)).round(2)
X[RNG.random(X.shape) < 0.1] = np.nan
F = np.nan_to_num(X[:, 0] + X[:, 1] ** 2)
WEIGHT = RNG.integers(1, 4, 400)
START = RNG.normal(size=400)
BOOSTED = {"max_iter": 4, "max_leaf_nodes": 6, "min_samples_leaf": 3, "random_state": 0}
STOPS = {"early_stopping": True, "n_iter_no_change": 1, "max_iter": 12, "tol": 0.01}
CASES = {  # a model, its target, and parameters of its fit
    "two classes": (GradientBoostingClassifier(**BOOSTED), F > 1, {}),
    "five classes": (GradientBoostingClassifier(**BOOSTED), np.digitize(F, [0, 0.5, 1, 2]), {}),
    "numbers": (GradientBoostingRegressor(subsample=0.7, **BOOSTED), F, {}),
    "weights": (GradientBoostingRegressor("huber", **BOOSTED), F, {"sample_weight": WEIGHT}),
    "balanced": (GradientBoostingClassifier(class_weight="balanced", **BOOSTED), F > 1, {}),
    "stopped": (GradientBoostingClassifier(**(BOOSTED | STOPS)), F > 1, {}),
    "stopped by weight": (
        GradientBoostingRegressor(**(BOOSTED | STOPS)),
        F,
        {"sample_weight": WEIGHT},
    ),
    "by training rows": (
        GradientBoostingRegressor(validation_fraction=None, **(BOOSTED | STOPS)),
        F,
        {},
    ),
    "begun": (GradientBoostingRegressor(**BOOSTED), F, {"init_score": START}),
}
FOLDS = [(np.setdiff1d(np.arange(400), rows), rows) for rows in np.split(np.arange(400), 4)]
TABLES = {"here": X, "spread": da.from_array(X, chunks=((90, 110, 200), (5,)))}


@pytest.fixture(scope="module")
def three():
    """A client of three workers in this process."""
    with connect(3, 1, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield client


def validated(name, table=X, **parameters):
    """Hashes of the models of the folds and of all rows, and scores of the folds."""
    model, y, params = CASES[name]
    found = cross_validate(
        model,
        table,
        y,
        cv=FOLDS,
        params=params,
        return_estimator=True,
        return_train_score=True,
        **parameters,
    )
    models = [*found["estimator"], found.final_estimator]
    scores = [found[f"{side}_score"].tolist() for side in ("test", "train")]
    return [digest(each.forest_.trees) for each in models], scores, models[0].fit_report_


@functools.cache
def expected_of(name):
    return validated(name)[:2]


def grown_on(client, regime, work, *args):
    """What a function says, whose models grow on a cluster."""
    with client.as_current(), dask.config.set({"dtrees.regime": regime}):
        return work(*args)


class TestOneHash:
    @pytest.mark.one_of(12)
    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("regime", [None, "partitioned"])
    @pytest.mark.parametrize("name", CASES)
    def test_of_folds(self, name, regime, table, three, monkeypatch):
        expected = expected_of(name)
        monkeypatch.setattr("dtrees.estimators.boosted_sets.boost_together", None)
        monkeypatch.setattr("dtrees.parallel.encoding.check_room", None)
        *found, report = grown_on(three, regime, validated, name, TABLES[table])
        assert found == list(expected)
        assert report["regime"] == (regime or "replicated")
        assert report["models_together"] == 5
        if regime is None:
            assert report["tasks"] == 3  # of workers, of one or two models each
        else:
            assert report["epochs"] == 1
        assert ours(three) == []

    def test_a_fold_adds_a_byte_to_what_workers_know_of_a_row(self, three, monkeypatch):
        asked, arrays_of = [], boosted_members.arrays_of

        def kept(models):
            asked.append(arrays_of(models))
            return asked[-1]

        monkeypatch.setattr(boosted_members, "arrays_of", kept)
        grown_on(three, "partitioned", validated, "numbers", TABLES["spread"])
        ((arrays, names),) = asked
        assert len(names) == 5
        assert sorted((each[:4], own.itemsize) for each, own in arrays.items()) == [
            *[("chos", 1)] * 4,  # of a model of all rows there is nothing to say
            ("y-0", 8),
        ]

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("regime", [None, "partitioned"])
    def test_on_processes(self, regime, processes):
        expected = expected_of("two classes")
        *found, _ = grown_on(processes, regime, validated, "two classes", TABLES["spread"])
        assert found == list(expected)
        assert ours(processes) == []

    @pytest.mark.one_of(4)
    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("regime", [None, "partitioned"])
    def test_of_searches(self, regime, table, three):
        grid = {"max_iter": [2, 4, 7], "learning_rate": [0.1, 0.5]}

        def search(table):
            found = GridSearchCV(CASES["two classes"][0], grid, cv=FOLDS, return_train_score=True)
            found.fit(table, F > 1)
            scores = [
                found.cv_results_[f"mean_{side}_score"].tolist() for side in ("test", "train")
            ]
            return found.best_params_, digest(found.best_estimator_.forest_.trees), scores

        assert grown_on(three, regime, search, TABLES[table]) == search(X)
        assert ours(three) == []

    @pytest.mark.one_of(8)
    @pytest.mark.parametrize("table", TABLES)
    @pytest.mark.parametrize("regime", [None, "partitioned"])
    @pytest.mark.parametrize("scoring", ["loss", "accuracy"])
    @pytest.mark.parametrize("name", ["two classes", "five classes"])
    def test_of_curves(self, name, scoring, regime, table, three):
        model, y, _ = CASES[name]

        def curve(table):
            found = boosting_curve(model, table, y, cv=FOLDS, scoring=scoring)
            shrunken = found.shrunken(0.5)
            final = digest(found.model(3).forest_.trees)
            return found.scores.tolist(), shrunken.scores.tolist(), final

        assert grown_on(three, regime, curve, TABLES[table]) == curve(X)

    def test_of_begun_folds_whose_epoch_ends(self, three, monkeypatch):
        """Each adds what its trees so far say to a start of its own."""
        monkeypatch.setattr(boosted_members, "slice_seconds", lambda n_members: 0)
        go_on, n_slices = boosted_members.BlocksOfMembers._go_on, count(1)

        def end(blocks, wanted):
            if next(n_slices) in (2, 3):
                blocks._epochs.end_epoch()
            return go_on(blocks, wanted)

        monkeypatch.setattr(boosted_members.BlocksOfMembers, "_go_on", end)
        found = grown_on(three, "partitioned", partial(validated, "begun"), TABLES["spread"])
        assert next(n_slices) > 4
        assert found[:2] == expected_of("begun")

    def test_of_begun_curves(self, three):
        model, y, params = CASES["begun"]

        def curve(table):
            return boosting_curve(model, table, y, cv=FOLDS, params=params).scores.tolist()

        assert grown_on(three, None, curve, TABLES["spread"]) == curve(X)


class TestPlaces:
    def test_a_worker_gets_some_of_the_models(self, three, monkeypatch):
        """As many as its threads say, and none where it cannot hold the codes."""
        seen = []
        calls = boosted.WholeTable.calls

        def see(table, models, bundles, left):
            for call in calls(table, models, bundles, left):
                seen.append(call.workers)
                yield call

        monkeypatch.setattr(boosted.WholeTable, "calls", see)
        workers = sorted(three.nthreads())
        expected = expected_of("two classes")
        for small in ([], workers[:1]):
            make_small(monkeypatch, small)
            *found, _ = grown_on(three, None, validated, "two classes")
            assert found == list(expected)
            assert sorted(seen) == [(each,) for each in workers if each not in small]
            seen.clear()
        make_small(monkeypatch, workers)
        with pytest.raises(TableTooLargeError, match="more than a worker can hold"):
            grown_on(three, "replicated", validated, "two classes", TABLES["spread"])
        *found, report = grown_on(three, None, validated, "two classes")
        assert found == list(expected)
        assert report["regime"] == "local"
        assert ours(three) == []

    def test_a_fit_that_fails_is_that_of_its_fold(self, three):
        """A training side of one class; the others are grown."""
        y = np.where(np.arange(400) < 100, 1, 0)  # the first fold holds out all of a class

        def scores(table):
            model = GradientBoostingRegressor("gamma", **BOOSTED)
            return cross_validate(model, table, y + 0.0, cv=FOLDS[:2], error_score=-1.0)

        for regime in (None, "partitioned"):
            with pytest.raises(ValueError, match="gamma"):
                grown_on(three, regime, scores, TABLES["spread"])
        assert ours(three) == []


@pytest.mark.long
@pytest.mark.rest
@pytest.mark.parametrize("regime", [None, "partitioned"])
def test_a_worker_that_dies(regime, processes, tmp_path, monkeypatch):
    """Its models are grown again on others, or go on with them."""
    path = tmp_path / "alive"
    path.touch()
    expected = expected_of("five classes")
    spread = boosted.SpreadModel

    def deadly(*args):
        coded, rows, growing, thresholds, *rest = args
        return spread(coded, rows, growing, Deadly(thresholds, str(path)), *rest)

    monkeypatch.setattr("dtrees.estimators.boosted_sets.SpreadModel", deadly)
    *found, report = grown_on(processes, regime, validated, "five classes", TABLES["spread"])
    assert found == list(expected)
    assert not path.exists()
    assert report["lost_workers"] == 1
    assert ours(processes) == []
