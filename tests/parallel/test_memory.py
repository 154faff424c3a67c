"""A partition that is more than a worker can hold is told before a worker dies of it."""

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client

from dtrees import DecisionTreeClassifier, RandomForestRegressor
from dtrees.model_selection import GridSearchCV, cross_validate
from dtrees.parallel.limits import PROCESS_BYTES
from dtrees.parallel.memory import check_partitions
from dtrees.parallel.partitions import PartitionedTable, admitted
from tests.parallel.clusters import connect, ours

dd = pytest.importorskip("dask.dataframe")

MB = 10**6
TREE = DecisionTreeClassifier(max_depth=2)
MODELS = {
    "fit": lambda X, y: TREE.fit(X, y),
    "forest": lambda X, y: RandomForestRegressor(2, regime="partitioned").fit(X, y),
    "cross_validate": lambda X, y: cross_validate(TREE, X, y, cv=2),
    "search": lambda X, y: GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=2).fit(X, y),
}


def never(block):
    """A partition that nobody must ask for."""
    raise AssertionError("it is computed")


def table(X, n_rows):
    return PartitionedTable(X, np.array([n_rows, 10]), X.shape[1], None)


@pytest.fixture(scope="module")
def small():
    """A worker in this process, which may have more: it is not paused for that."""
    with (
        dask.config.set({"distributed.worker.memory.pause": False}),
        connect(1, 1, False, memory_limit="400MB") as cluster,
        Client(cluster) as client,
    ):
        yield client


class TestOnACluster:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("entry", MODELS)
    def test_nothing_is_computed(self, entry, small):
        zeros = da.zeros((2_000_000, 20), chunks=(1_900_000, 20))
        X = zeros.map_blocks(never, dtype=float, meta=np.empty((0, 0)))
        with pytest.raises(ValueError, match=r"takes 289\.92 MiB.*X\.rechunk\(\{0: \d+\}\)"):
            MODELS[entry](X, np.zeros(2_000_000, dtype=int))
        assert ours(small) == []

    def test_what_the_message_says_helps(self, small):
        X = da.zeros((2_000_000, 20), chunks=(1_900_000, 20))
        y = np.zeros(2_000_000, dtype=int)
        with pytest.raises(ValueError, match="A partition of X") as told:
            TREE.fit(X, y)
        n_rows = int(str(told.value).split("rechunk({0: ")[1].split("}")[0])
        assert 10_000 < n_rows < 1_000_000
        (parts,) = admitted(X.rechunk({0: n_rows}), {})
        check_partitions(parts, 400 * MB)


@pytest.mark.parametrize(
    "n_rows", [None, pytest.param(350_000, marks=pytest.mark.chaos)], ids=["advised", "admitted"]
)
def test_what_is_admitted_fits(n_rows):
    """No worker of 400 MB dies of it: partitions as the message says, and as large as may be."""
    if n_rows is None:
        with pytest.raises(ValueError, match="rechunk") as told:
            check_partitions(table(da.zeros((4 * 10**6 + 10, 20)), 4 * 10**6), 400 * MB)
        n_rows = int(str(told.value).split("rechunk({0: ")[1].split("}")[0])
    else:
        with pytest.raises(ValueError, match="rechunk"):
            check_partitions(table(da.zeros((400_010, 20)), 400_000), 400 * MB)
    X = da.random.default_rng(0).normal(size=(2 * n_rows, 20), chunks=(n_rows, 20))
    forest = RandomForestRegressor(2, max_depth=3, max_bins=255, regime="partitioned")
    with connect(2, 1, True, memory_limit="400MB") as cluster, Client(cluster):
        forest.fit(X, (X[:, 0] > 0).astype(float))
    assert forest.fit_report_["lost_workers"] == 0


class TestSizes:
    """The largest partition counts, with what its process takes."""

    @pytest.mark.parametrize(
        ("n_rows", "room", "fits"),
        [
            (1_000_000, None, True),  # no limit
            (1_000_000, PROCESS_BYTES, True),  # none that somebody keeps to
            (350_000, 400 * MB, True),  # 56 MB
            (1_000_000, 400 * MB, False),  # 160 MB
            (1_300_000, 500 * MB, False),  # 208 MB
            (1_300_000, 900 * MB, True),
            (10, 400 * MB, True),
        ],
    )
    def test_arrays(self, n_rows, room, fits):
        X = da.zeros((n_rows + 10, 20), chunks=((n_rows, 10), 20))
        if fits:
            check_partitions(table(X, n_rows), room)
        else:
            with pytest.raises(ValueError, match=r"X\.rechunk"):
                check_partitions(table(X, n_rows), room)

    def test_types(self):
        small = da.zeros((10_000_010, 20), chunks=((10_000_000, 10), 20), dtype=np.int8)
        with pytest.raises(ValueError, match=r"190\.73 MiB"):
            check_partitions(table(small, 10_000_000), 400 * MB)
        check_partitions(table(small, 10_000_000), 900 * MB)

    def test_frames(self):
        frame = dd.from_pandas(
            pd.DataFrame({"a": np.zeros(20), "b": np.zeros(20, np.int8), "c": ["x"] * 20}),
            npartitions=2,
        )
        check_partitions(table(frame, 1_000_000), 400 * MB)
        with pytest.raises(ValueError, match=r"X\.repartition\(npartitions=\d+\)"):
            check_partitions(table(frame, 100_000_000), 400 * MB)

    def test_sparse_blocks_may_be_small(self):
        """A dense table of this shape is refused; of sparse blocks nobody knows the bytes."""
        X = da.zeros((10_000_010, 20), chunks=((10_000_000, 10), 20))
        sparse = X.map_blocks(sp.csr_matrix, meta=sp.csr_matrix((0, 0)))
        with pytest.raises(ValueError, match=r"X\.rechunk"):
            check_partitions(table(X, 10_000_000), 400 * MB)
        assert check_partitions(table(sparse, 10_000_000), 400 * MB) is None
