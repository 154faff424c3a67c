"""Dask collections of several kinds at once, and persisted ones whose data cannot be had."""

from __future__ import annotations

import ast
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster, futures_of, wait
from numpy.testing import assert_array_equal

import dtrees
from dtrees import DecisionTreeClassifier, GradientBoostingClassifier, RandomForestClassifier
from dtrees.exceptions import ClusterError
from dtrees.model_selection import cross_validate
from dtrees.parallel.executors import computed
from dtrees.parallel.lazy_collections import check_persisted, is_lazy, one_kind_at_a_time
from tests.parallel.clusters import connect, ours
from tests.parallel.test_mixes import N_ROWS, VALUES, given
from tests.parallel.test_replicated import until

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")


def test_one_place_asks_dask_for_several_results():
    """Another call may get several kinds one day; there, the order of results is Dask's."""
    names = "compute", "persist", "optimize"
    calls = {
        (file.stem, ast.unparse(node.func))
        for file in Path(dtrees.__file__).parent.rglob("*.py")
        if file.parent.name != "inspection"  # explanations have a `compute`, by way of these
        if any(f".{name}(" in (text := file.read_text(encoding="utf-8")) for name in names)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in names
    }
    assert calls == {
        ("executors", "dask.compute"),  # given to `one_kind_at_a_time`, as the next one
        ("tasks", "self.client.compute"),
        ("row_columns", "client.persist"),  # of one kind
    }


class TestOneKindAtATime:
    def test_no_call_gets_two_kinds(self):
        asked = []

        def compute(same):
            asked.append({type(value).__name__.replace("DelayedLeaf", "Delayed") for value in same})
            return dask.compute(*same)

        kinds = ["array", "delayed", "series", "array", "numpy", "one", "delayed", "series"]
        values = [given("y" if i % 2 else "groups", kind) for i, kind in enumerate(kinds)]
        values.append(dask.delayed(np.add)(1, 2))  # of another type than a delayed value
        found = one_kind_at_a_time(values, compute)
        assert sorted(map(sorted, asked)) == [["Array"], ["DataFrame"], ["Delayed"], ["Series"]]
        for value, result in zip(values, found, strict=True):
            expected = value.compute() if hasattr(value, "compute") else value
            assert_array_equal(result, expected)

    def test_what_a_kind_shares_is_computed_once(self):
        counted = []

        def read():
            counted.append(1)
            return VALUES["y"]

        source = dask.delayed(read)()
        y = da.from_delayed(source, (N_ROWS,), int)
        with dask.config.set(scheduler="synchronous"):
            found = computed(y, "between", y + 1)
        assert len(counted) == 1
        assert_array_equal(found[2] - found[0], 1)
        assert found[1] == "between"


def test_what_is_no_collection_is_its_own_result():
    value = [1, 2]
    found = computed(value, da.arange(3, chunks=2), None, dask.delayed(sum)(value))
    assert found[0] is value
    np.testing.assert_array_equal(found[1], [0, 1, 2])
    assert found[2:] == [None, 3]
    assert one_kind_at_a_time([1, "a"], None) == [1, "a"]  # nobody is asked


def test_what_is_lazy():
    assert is_lazy(da.zeros(3))
    assert is_lazy(dask.delayed(1))
    for value in (np.zeros(3), [da.zeros(3)], None, "x", da.Array):
        assert not is_lazy(value)


def test_too_few_results_are_an_error():
    with pytest.raises(ValueError, match="zip"):
        one_kind_at_a_time([da.zeros(2), da.zeros(3)], lambda same: same[:1])


X = np.random.default_rng(0).normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
GONE = r"persisted, and its data are gone: client\.restart\(\).* Persist it again, or give the"


def array():
    return da.from_array(X, chunks=(20, -1))


def frame():
    return dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3)


FITS = {
    "tree": lambda X, y=Y: DecisionTreeClassifier().fit(X, y),
    "forest": lambda X, y=Y: RandomForestClassifier(2).fit(X, y),
    "partitioned": lambda X, y=Y: RandomForestClassifier(2, regime="partitioned").fit(X, y),
    "boosting": lambda X, y=Y: GradientBoostingClassifier(max_iter=2).fit(X, y),
    "cross_validate": lambda X, y=Y: cross_validate(RandomForestClassifier(2), X, y, cv=2),
}


@pytest.mark.parametrize(("make", "fit"), [(frame, "forest"), *((array, fit) for fit in FITS)])
def test_cancelled(make, fit, here):
    table = make().persist()
    here.cancel(table, force=True)
    with pytest.raises(ClusterError, match=GONE):
        FITS[fit](table)
    assert ours(here) == []


def test_restarted(here):
    table = array().persist()
    wait(table)
    here.restart(wait_for_workers=False)
    here.cluster.scale(2)  # as there is no nanny who starts the worker again
    here.wait_for_workers(1, timeout=60)
    with pytest.raises(ClusterError, match=GONE):
        FITS["forest"](table)
    assert len(FITS["forest"](array())) == 2


def test_targets(here):
    y = da.from_array(Y, chunks=20).persist()
    here.cancel(y, force=True)
    for table in X, array():
        with pytest.raises(ClusterError, match=GONE):
            FITS["forest"](table, y)


def test_what_is_made_of_it(here):
    table = array().persist()
    here.cancel(table, force=True)
    with pytest.raises(ClusterError, match=GONE):
        FITS["forest"](2 * table)


def test_in_the_midst_of_a_growth(here):
    """Trees that are complete are not lost."""
    table = array().persist()
    forest = RandomForestClassifier(2, regime="partitioned")
    with pytest.MonkeyPatch.context() as patch:
        from dtrees.parallel.partitioned import BlocksOnWorkers, PartitionedGrowth

        patch.setattr(PartitionedGrowth, "tree_batches", lambda self, numbers, *_: [[0], [1]])
        begin, begun = BlocksOnWorkers.begin, []

        def lose(blocks, common):
            begun.append(common)
            if len(begun) == 2:  # of the second tree
                here.cancel([*table.__dask_graph__().values()], force=True)
                here.cancel(blocks._kept.blocks, force=True)
            begin(blocks, common)

        patch.setattr(BlocksOnWorkers, "begin", lose)
        with pytest.raises(ClusterError, match=GONE) as caught:
            forest.fit(table, Y)
    assert caught.value.estimator.n_estimators_ == 1
    assert len(caught.value.estimator.resume(array(), Y)) == 2


class TestElsewhere:
    @pytest.fixture
    def table(self, here):
        return array().persist()

    @pytest.mark.parametrize("fit", ["forest", "partitioned"])
    def test_on_another_cluster(self, fit, table, here):
        told = rf"at {here.scheduler.address}, and .* on the cluster at inproc.*as_current"
        with (
            connect(1, 1, False) as cluster,
            Client(cluster),
            pytest.raises(ClusterError, match=told),
        ):
            FITS[fit](table)

    @pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
    def test_in_this_process(self, scheduler, table):
        with (
            dask.config.set(scheduler=scheduler),
            pytest.raises(ClusterError, match="is to be computed in this process"),
        ):
            FITS["forest"](table)

    def test_another_client_of_the_same_cluster(self, table, here):
        with Client(here.scheduler.address) as other:
            assert FITS["forest"](table).fit_report_["restarts"] == 0
            other.close()

    def test_another_address_of_the_same_scheduler(self, monkeypatch):
        """Its data are not said to be elsewhere. Each client is asked once."""
        with (
            LocalCluster(1, processes=False, protocol="tcp://", dashboard_address=":0") as cluster,
            Client(cluster) as one,
        ):
            table = array().persist()
            with Client(one.scheduler.address.replace("127.0.0.1", "localhost")) as other:
                assert other.scheduler.address != one.scheduler.address
                asked, ask = [], Client.scheduler_info
                monkeypatch.setattr(
                    Client, "scheduler_info", lambda *a, **more: asked.append(a) or ask(*a, **more)
                )
                check_persisted([table, table + 1], other)
                assert asked == [(one,), (other,)]
                wait(table)  # what the scheduler has not heard of is not cancelled
                other.cancel(table, force=True)
                until(lambda: futures_of(table)[0].status == "cancelled")
                with pytest.raises(ClusterError, match=GONE):
                    FITS["forest"](table)

    def test_other_errors_are_as_they_are(self, table):
        with pytest.raises(ZeroDivisionError):
            FITS["forest"](table.map_blocks(lambda block: 1 // 0, dtype=float, meta=X[:0]))


def test_a_cluster_that_has_ended():
    with connect(1, 1, False) as cluster, Client(cluster):
        table = array().persist()
    with pytest.raises(ClusterError, match=GONE):
        FITS["forest"](table)
