"""Lazy predictions: the same bits as in memory, block by block, with the model sent once."""

from __future__ import annotations

import copy
import pickle
import sys
import threading

import cloudpickle
import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from numpy.testing import assert_array_equal

from dtrees import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.parallel import dask_predict
from dtrees.parallel.dask_predict import Sealed

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")


CLASSIFIERS = [
    DecisionTreeClassifier(max_depth=4),
    RandomForestClassifier(6, random_state=0),
    ExtraTreesClassifier(3, random_state=0, n_jobs=2),
    AdaBoostClassifier(4, max_depth=3, n_jobs=2),
]
REGRESSORS = [
    DecisionTreeRegressor(max_depth=4),
    RandomForestRegressor(6, random_state=0, n_jobs=-1),
    ExtraTreesRegressor(3, random_state=0),
    BaggingRegressor(3, random_state=0),
    AdaBoostRegressor(4, random_state=0),
]
METHODS = ["predict", "predict_proba", "predict_log_proba", "apply"]


def rows(n_rows=100):
    """Numbers with missing values, and three classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 4)).round(1)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def mixed(n_rows=100):
    """A frame of numbers, a categorical, strings and dates."""
    X, y = rows(n_rows)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"], index=np.arange(n_rows) * 2 + 7)
    frame["kind"] = pd.Categorical(np.where(np.arange(n_rows) < 50, "early", "late"))
    frame["word"] = np.array(["x", "y", "z"])[np.arange(n_rows) % 3]
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(n_rows), unit="D")
    return frame, y


def never(*_, **__):
    raise AssertionError("something is computed")


def name_of(model):
    return type(model).__name__


X, Y = rows()
LAZY = da.from_array(X, chunks=(30, 4))


class TestArrays:
    @pytest.mark.one_of(5)
    @pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=name_of)
    @pytest.mark.parametrize("method", [*METHODS, "decision_function"])
    def test_the_same_as_in_memory(self, model, method):
        if not hasattr(model, method):
            return
        model.fit(X, Y)
        expected = getattr(model, method)(X)
        with dask.config.set(scheduler=never):
            found = getattr(model, method)(LAZY)
        assert isinstance(found, da.Array)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
        assert found.chunks[0] == LAZY.chunks[0]
        assert found.name.startswith(f"{method.replace('_', '-')}-")
        for scheduler in ("synchronous", "threads"):
            assert_array_equal(found.compute(scheduler=scheduler), expected, strict=True)

    def test_first_iterations_and_raw_predictions(self):
        model = GradientBoostingRegressor("poisson", max_iter=6, min_samples_leaf=5).fit(X, Y)
        for n in (1, 4):
            for method in ("predict", "predict_raw"):
                with dask.config.set(scheduler=never):
                    found = getattr(model[:n], method)(LAZY)
                expected = getattr(model.first_iterations(n), method)(X)
                assert_array_equal(found.compute(), expected, strict=True)

    def test_a_model_without_a_split(self):
        model = GradientBoostingRegressor(max_iter=3, min_samples_leaf=90).fit(X, Y)
        for method in ("predict", "apply", "predict_contributions"):
            expected = getattr(model, method)(X)
            assert_array_equal(getattr(model, method)(LAZY).compute(), expected, strict=True)
        assert model.predict(X) == pytest.approx(Y.mean())

    @pytest.mark.parametrize("chunks", [(100, 4), (30, 2), (7, 1), ((0, 60, 0, 40), (3, 1))])
    def test_any_chunks(self, chunks):
        model = CLASSIFIERS[1].fit(X, Y)
        lazy = da.from_array(X, chunks=100).rechunk(chunks)
        found = model.predict_proba(lazy)
        assert found.chunks == (lazy.chunks[0], (3,))
        assert_array_equal(found.compute(), model.predict_proba(X))

    @pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array])
    @pytest.mark.parametrize("columns", [4, 2])
    def test_sparse_blocks(self, kind, columns):
        dense = np.nan_to_num(X)
        model = CLASSIFIERS[1].fit(kind(dense), Y)
        lazy = da.from_array(dense, chunks=(30, columns)).map_blocks(kind)
        with dask.config.set(scheduler=never):
            found = [getattr(model, method)(lazy) for method in METHODS]
        for method, answer in zip(METHODS, found, strict=True):
            assert_array_equal(answer.compute(), getattr(model, method)(dense))

    def test_rows_of_unknown_number(self):
        model = CLASSIFIERS[1].fit(X, Y)
        some = LAZY[LAZY[:, 0] > 0]
        assert np.isnan(some.shape[0])
        found = model.predict(some)
        assert np.isnan(found.chunks[0]).all()
        assert_array_equal(found.compute(), model.predict(X[X[:, 0] > 0]))
        none = LAZY[LAZY[:, 0] > 1e9]
        assert model.predict(none).compute().shape == (0,)
        assert model.predict_proba(none.rechunk({1: 2})).compute().shape == (0, 3)

    @pytest.mark.parametrize(
        "labels",
        [
            ["a", "bcd", "ef"],
            np.array(["a", "bcd", "ef"], dtype=object),
            [1.0, 2.0, 7.0],
            [-1, 0, 4],
        ],
    )
    def test_labels_of_any_type(self, labels):
        y = np.asarray(labels).take(Y)
        model = RandomForestClassifier(3, random_state=0).fit(X, y)
        found = model.predict(LAZY)
        assert found.dtype == y.dtype
        assert_array_equal(found.compute(), model.predict(X), strict=True)

    @pytest.mark.parametrize("model", [CLASSIFIERS[0], CLASSIFIERS[1]], ids=name_of)
    def test_paths(self, model):
        model.fit(X, Y)
        with dask.config.set(scheduler=never):
            found = model.decision_path(LAZY)
        expected = model.decision_path(X)
        if isinstance(expected, tuple):
            assert_array_equal(found[1], expected[1])
            found, expected = found[0], expected[0]
        assert found.shape == expected.shape
        assert (found.compute() != expected).nnz == 0


class TestFrames:
    @pytest.mark.one_of(4)
    @pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS], ids=name_of)
    @pytest.mark.parametrize("method", METHODS)
    def test_the_index_is_kept(self, model, method):
        if not hasattr(model, method):
            return
        frame, y = mixed()
        model.fit(frame, y)
        lazy = dd.from_pandas(frame, npartitions=4)
        with dask.config.set(scheduler=never):
            found = getattr(model, method)(lazy)
        in_memory = getattr(model, method)(frame)
        assert found.npartitions == 4
        assert found.divisions == lazy.divisions
        if in_memory.ndim == 1:
            expected = pd.Series(in_memory, index=frame.index)
            assert isinstance(found, dd.Series)
            assert found.dtype == expected.dtype
            pd.testing.assert_series_equal(found.compute(), expected)
        else:
            columns = range(len(model)) if method == "apply" else model.classes_
            expected = pd.DataFrame(in_memory, index=frame.index, columns=columns)
            assert isinstance(found, dd.DataFrame)
            assert list(found.columns) == list(expected.columns)
            assert (found.dtypes == expected.dtypes).all()
            pd.testing.assert_frame_equal(found.compute(), expected)

    @pytest.mark.parametrize("kind", ["<U5", object, "category", "string"])
    def test_labels_are_told_by_their_type(self, kind):
        frame, y = mixed()
        labels = pd.Series(np.array(["one", "two", "three"])[y]).astype(kind)
        model = CLASSIFIERS[1].fit(frame, labels.to_numpy() if kind in ("<U5", object) else labels)
        lazy = dd.from_pandas(frame, npartitions=3)
        found = model.predict(lazy)
        computed = found.compute()
        assert computed.dtype == found.dtype == pd.Series(model.classes_).dtype
        assert_array_equal(computed.to_numpy(), model.predict(frame))
        assert list(model.predict_proba(lazy).columns) == ["one", "three", "two"]
        assert (found == "one").sum().compute() == (model.predict(frame) == "one").sum()

    def test_partitions_with_categories_of_their_own(self):
        # Known categories are those of the whole; unknown ones differ from partition to partition.
        frame, y = mixed()
        model = CLASSIFIERS[1].fit(frame, y)
        expected = model.predict_proba(frame)
        lazy = dd.from_pandas(frame.assign(kind=frame["kind"].astype(str)), npartitions=4)
        lazy["kind"] = lazy["kind"].astype("category")
        assert not lazy["kind"].cat.known
        assert_array_equal(model.predict_proba(lazy).compute().to_numpy(), expected)
        parts = lazy.to_delayed()
        assert list(parts[0].compute()["kind"].cat.categories) == ["early"]

    def test_empty_partitions(self):
        frame, y = mixed()
        model = CLASSIFIERS[1].fit(frame, y)
        lazy = dd.from_pandas(frame, npartitions=4)
        few = lazy[lazy["b"] > 1.5]
        kept = frame[frame["b"] > 1.5]
        assert_array_equal(model.predict(few).compute().to_numpy(), model.predict(kept))
        none = lazy[lazy["b"] > 1e9]
        assert model.predict(none).compute().shape == (0,)
        found = model.predict_proba(none).compute()
        assert found.shape == (0, 3)
        assert (found.dtypes == np.float64).all()

    def test_paths_are_an_array(self):
        frame, y = mixed()
        model = CLASSIFIERS[0].fit(frame, y)
        found = model.decision_path(dd.from_pandas(frame, npartitions=3))
        assert isinstance(found, da.Array)
        assert (found.compute() != model.decision_path(frame)).nnz == 0


class TestScore:
    @pytest.mark.parametrize("model", [CLASSIFIERS[0], CLASSIFIERS[1], REGRESSORS[1]], ids=name_of)
    def test_of_lazy_and_of_plain_arguments(self, model):
        model.fit(X, Y)
        weight = np.linspace(0, 1, len(Y))
        truth = (Y + (np.arange(len(Y)) % 5 == 0)) % 3
        expected = model.score(X, truth, weight)
        lazy_y, lazy_weight = da.from_array(truth, chunks=50), da.from_array(weight, chunks=20)
        assert model.score(LAZY, lazy_y, lazy_weight) == expected
        assert model.score(LAZY, truth, sample_weight=weight) == expected
        assert model.score(X, lazy_y, weight) == expected
        frame = pd.DataFrame(X)
        assert model.score(dd.from_pandas(frame, npartitions=2), truth) == model.score(X, truth)

    def test_lengths(self):
        model = CLASSIFIERS[1].fit(X, Y)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.score(LAZY, Y[:-1])


class TestTheModel:
    @pytest.mark.parametrize("fit", [CLASSIFIERS[0], CLASSIFIERS[1]], ids=name_of)
    def test_a_later_fit_changes_nothing(self, fit):
        model = copy.copy(fit).fit(X, Y)
        expected = model.predict_proba(X)
        found = model.predict_proba(LAZY)
        model.set_params(max_depth=1).fit(X[:, ::-1], 1 - np.minimum(Y, 1))
        assert not np.array_equal(model.predict_proba(X), expected)
        assert_array_equal(found.compute(), expected)

    def test_it_is_in_the_graph_once(self):
        model = RandomForestClassifier(100, random_state=0).fit(X, Y)
        size = len(pickle.dumps(model._predictor()))

        def graph(n_blocks):
            lazy = da.zeros((n_blocks * 10, 4), chunks=(10, 4))
            (best,) = dask.optimize(model.predict(lazy))
            return dict(best.__dask_graph__())

        for n_blocks in (2, 200):
            keys = [key for key in graph(n_blocks) if "dtrees-model" in str(key)]
            assert len(keys) == 1
        small, large = (len(cloudpickle.dumps(graph(n_blocks))) for n_blocks in (2, 200))
        assert small < 2 * size
        assert (large - small) / 198 < 1_000 < size / 5  # bytes per block

    def test_keys_follow_from_what_is_asked(self):
        model = RandomForestClassifier(5, random_state=0).fit(X, Y)
        again = RandomForestClassifier(5, random_state=0).fit(X, Y)
        other = RandomForestClassifier(5, random_state=1).fit(X, Y)
        assert model.predict(LAZY).name == model.predict(LAZY).name == again.predict(LAZY).name
        assert model.predict(LAZY).name != other.predict(LAZY).name
        assert model.predict(LAZY).name != model.predict(LAZY + 1).name
        # questions to one model share it
        both = dask.optimize(model.predict(LAZY), model.apply(LAZY))
        keys = {key for one in both for key in one.__dask_graph__() if "dtrees-model" in str(key)}
        assert len(keys) == 1

    def test_nothing_is_sent_but_what_was_learned(self):
        # neither what was left out of bags nor parameters, which may not be fit for a journey
        model = RandomForestClassifier(50, random_state=0, oob_score=lambda y, p: 0.5)
        model.set_params(verbose=threading.Lock())
        with pytest.raises(ValueError, match="verbose"):
            model.fit(X, Y)
        model.set_params(verbose=0).fit(X, Y).set_params(verbose=threading.Lock())
        found = model.predict(LAZY)
        pickle.dumps(dict(found.__dask_graph__())[model_key(found)])

    def test_it_is_opened_once_in_a_process(self):
        sealed = Sealed(CLASSIFIERS[1].fit(X, Y)._predictor())
        assert "bytes" in repr(sealed)
        assert sys.getsizeof(sealed) > len(sealed.pickled)
        there = pickle.loads(pickle.dumps(sealed))
        assert there.pickled == sealed.pickled
        assert there.open() is there.open()
        assert_array_equal(there.open().predict(X), CLASSIFIERS[1].predict(X))

    def test_one_thread_per_task(self, monkeypatch):
        model = RandomForestClassifier(5, random_state=0, n_jobs=4).fit(X, Y)
        lazy = da.from_array(np.tile(X, (200, 1)), chunks=(10_000, 4))
        found = model.predict(lazy)
        used = []
        monkeypatch.setattr(dask_predict.Sealed, "open", seen(dask_predict.Sealed.open, used))
        before = threading.active_count()
        found.compute(scheduler="synchronous")
        assert threading.active_count() == before
        assert set(used) == {threading.get_ident()}


def model_key(collection):
    (key,) = (key for key in collection.__dask_graph__() if "dtrees-model" in str(key))
    return key


def seen(function, used):
    def wrapped(*arguments):
        used.append(threading.get_ident())
        return function(*arguments)

    return wrapped


class TestSchedulers:
    def test_processes(self):
        model = CLASSIFIERS[1].fit(X, Y)
        with dask.config.set({"multiprocessing.context": "forkserver"}):  # has the package loaded
            found = model.predict_proba(LAZY).compute(scheduler="processes", num_workers=1)
        assert_array_equal(found, model.predict_proba(X))

    def test_workers_get_the_model_once(self):
        model = RandomForestClassifier(20, random_state=0).fit(X, Y)
        frame = pd.DataFrame(X)
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
            ) as cluster,
            Client(cluster) as client,
        ):
            lazy = da.from_array(np.tile(X, (20, 1)), chunks=(50, 4))
            found = model.predict_proba(lazy)
            assert_array_equal(found.compute(), np.tile(model.predict_proba(X), (20, 1)))
            series = model.predict(dd.from_pandas(frame, npartitions=8)).compute()
            assert_array_equal(series.to_numpy(), model.predict(X))

            def transfers(dask_worker):
                log = dask_worker.transfer_incoming_log
                return [key for entry in log for key in entry["keys"] if "dtrees-model" in str(key)]

            arrived = client.run(transfers)
            assert sum(map(len, arrived.values())) > 0  # one worker has got it from the other
            assert all(len(keys) == len(set(map(str, keys))) for keys in arrived.values())
            prefixes = client.run_on_scheduler(
                lambda dask_scheduler: set(dask_scheduler.task_prefixes)
            )
            assert {"predict", "predict-proba", "dtrees-model"} <= prefixes


class TestBadInput:
    @pytest.fixture
    def model(self):
        return RandomForestClassifier(2, random_state=0).fit(X, Y)

    def test_columns_that_are_told_at_once(self, model):
        with dask.config.set(scheduler=never):
            with pytest.raises(ValueError, match="X has 3 features, but RandomForestClassifier"):
                model.predict(LAZY[:, :3])
            with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
                model.predict(LAZY[:, 0])
            with pytest.raises(ValueError, match="Complex data not supported"):
                model.predict(LAZY.astype(complex))
            with pytest.raises(TypeError, match=r"of type Delayed\w*\. Give a Dask array"):
                model.predict(dask.delayed(X))

    def test_names_that_are_told_at_once(self):
        frame, y = mixed()
        model = RandomForestClassifier(2, random_state=0).fit(frame, y)
        lazy = dd.from_pandas(frame, npartitions=2)
        with dask.config.set(scheduler=never):
            with pytest.raises(ValueError, match="yet now missing:\n- word"):
                model.predict(lazy.drop(columns="word"))
            with pytest.raises(ValueError, match="unseen at fit time:\n- c"):
                model.predict_proba(lazy.rename(columns={"a": "c"}))
            with pytest.raises(ValueError, match="must be in the same order"):
                model.apply(lazy[["b", "a", "kind", "word", "day"]])
            with pytest.raises(TypeError, match="type Series"):
                model.predict(lazy["a"])

    def test_names_on_one_side_are_one_warning(self, model):
        frame = pd.DataFrame(X, columns=list("abcd"))
        lazy = dd.from_pandas(frame, npartitions=4)
        with pytest.warns(UserWarning, match="was fitted without feature names") as caught:
            found = model.predict(lazy)
        assert len(caught) == 1
        assert_array_equal(found.compute().to_numpy(), model.predict(X))
        named = RandomForestClassifier(2, random_state=0).fit(frame, Y)
        with pytest.warns(UserWarning, match="does not have valid feature names") as caught:
            found = named.predict(LAZY)
        assert len(caught) == 1
        assert_array_equal(found.compute(), named.predict(frame))

    def test_columns_that_only_a_task_sees(self, model):
        lazy = da.from_array(X, chunks=(50, 4)).map_blocks(
            lambda block: block[:, :2], chunks=((50, 50), (np.nan,)), dtype=float
        )
        with pytest.raises(ValueError, match="X has 2 features, but RandomForestClassifier"):
            model.predict(lazy).compute()
        lying = LAZY.map_blocks(lambda block: block.astype(object) + 1j, dtype=float)
        with pytest.raises(ValueError, match="Complex data not supported"):
            model.predict(lying).compute()

    def test_values_that_only_a_task_sees(self):
        frame, y = mixed()
        model = RandomForestClassifier(2, random_state=0, handle_unknown="error").fit(frame, y)
        lazy = dd.from_pandas(frame.assign(word="new"), npartitions=2)
        with pytest.raises(
            ValueError,
            match="Column 'word' of X: none of its values was there at fit, such as 'new'",
        ):
            model.predict(lazy).compute()
        lazy = dd.from_pandas(frame.assign(a=np.inf), npartitions=2)
        with pytest.raises(ValueError, match="infinity"):
            model.predict(lazy).compute()
