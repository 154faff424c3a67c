"""Persisted collections whose data are gone, or elsewhere: the error says so, and what to do."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, wait

from dtrees import DecisionTreeClassifier, GradientBoostingClassifier, RandomForestClassifier
from dtrees.exceptions import ClusterError
from dtrees.model_selection import cross_validate
from dtrees.parallel.persisted import check_persisted
from tests.parallel.clusters import connect, ours

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
    here.wait_for_workers(1, timeout=30)
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
        from dtrees.parallel.partitioned import BlocksOnWorkers

        patch.setattr(BlocksOnWorkers, "tree_batches", lambda self, numbers: [[0], [1]])
        begin = BlocksOnWorkers.begin

        def lose(blocks, common):
            if blocks._updates:
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
                other.cancel(table, force=True)
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
