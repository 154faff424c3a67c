"""What fits into memory: batches, histograms, partitions of Dask collections and their codes."""

import math

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client
from hypothesis import given as any_of
from hypothesis import strategies as st
from sklearn.base import clone

import dtrees
from dtrees import (
    DecisionTreeClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from dtrees.exceptions import TableTooLargeError
from dtrees.model_selection import GridSearchCV, cross_validate
from dtrees.parallel import memory
from dtrees.parallel.block_tasks import room_of_positions
from dtrees.parallel.cost import CostModel, GrowthSize
from dtrees.parallel.memory import (
    PROCESS_BYTES,
    check_growth,
    check_partitions,
    check_room,
)
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
    "estimate": lambda X, y: dtrees.estimate_cost(TREE, X),
    "estimate of boosting": lambda X, y: dtrees.estimate_cost(GradientBoostingRegressor(), X),
}


def never(block):
    """A partition that nobody must ask for."""
    raise AssertionError("it is computed")


def is_admitted(least, shape, code_bytes, n_codes=None):
    """Whether a worker of 400 MB may grow from such a table."""
    try:
        check_growth(least, shape, code_bytes, n_codes, {"a": (400 * MB, 1)})
    except TableTooLargeError:
        return False
    return True


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
    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("entry", MODELS)
    def test_nothing_is_computed(self, entry, small):
        zeros = da.zeros((2_000_000, 20), chunks=(1_900_000, 20))
        X = zeros.map_blocks(never, dtype=float, meta=np.empty((0, 0)))
        with pytest.raises(ValueError, match=r"takes 289\.92 MiB.*X\.rechunk\(\{0: \d+\}\)"):
            MODELS[entry](X, np.zeros(2_000_000, dtype=int))
        assert ours(small) == []

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("n_rows", [120_000, 240_000])
    def test_values_that_one_worker_puts_together(self, n_rows, small):
        """Of 400 MB, of which 38 are the values of the larger table; few values are no matter."""
        measured = da.random.default_rng(0).normal(size=(n_rows, 20), chunks=(60_000, 20))
        y = np.arange(n_rows) % 2
        for X, max_bins in ((measured, 255), (measured.round(1), None)):
            clone(TREE).set_params(max_bins=max_bins).fit(X, y)
        if n_rows == 120_000:
            TREE.fit(measured, y)
            return
        with pytest.raises(TableTooLargeError, match="Fit with max_bins=255"):
            TREE.fit(measured, y)
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


class TestGrowth:
    """Rows that are dealt out to workers have to fit them, which is known before they are read."""

    BOOSTING = GradientBoostingRegressor(max_leaf_nodes=7, max_bins=32)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("is_lazy", [False, True])
    def test_nothing_is_computed(self, is_lazy, small, monkeypatch):
        """Neither of X nor of y; `estimate_cost` says the same."""
        monkeypatch.setattr("dtrees.parallel.row_columns.FEW_ROWS", 0)
        n_rows, chunks = 11_000_000, 100_000
        X = da.zeros((n_rows, 8), chunks=(chunks, 8))
        X = X.map_blocks(never, dtype=float, meta=np.empty((0, 0)))
        y = da.zeros(n_rows, chunks=chunks).map_blocks(never, dtype=float, meta=np.empty(0))
        y = y if is_lazy else np.zeros(n_rows)
        model = clone(self.BOOSTING).set_params(regime="partitioned")
        said = []
        for call in (model.fit, lambda X, y: dtrees.estimate_cost(model, X)):
            with pytest.raises(TableTooLargeError, match=r"A worker .* 11000000 x 8 cells") as told:
                call(X, y)
            said.append(str(told.value))
        assert said[0] == said[1]
        assert "Start more workers" in said[0]
        assert ours(small) == []

    def test_of_codes_that_turn_out_to_be_many(self, small, monkeypatch):
        """Histograms are what does not fit; codes are not made."""
        rows = "dtrees.parallel.encoding.Coding.encode"
        monkeypatch.setattr(rows, lambda *_: pytest.fail("coded"))
        X = da.random.default_rng(0).normal(size=(900, 2_000), chunks=(300, 2_000))
        model = GradientBoostingRegressor(max_bins=255, regime="partitioned")
        with pytest.raises(TableTooLargeError, match=r"Start workers .* smaller max_bins"):
            model.fit(X, np.arange(900.0))  # more of them would not help
        assert ours(small) == []

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("is_lazy", [False, True])
    def test_of_classes(self, is_lazy, small, monkeypatch):
        """Each has histograms: ten are too many for what two have room for."""
        monkeypatch.setattr("dtrees.parallel.row_columns.FEW_ROWS", 0)
        rows = "dtrees.parallel.encoding.Coding.encode"
        monkeypatch.setattr(rows, lambda *_: pytest.fail("coded"))
        X = da.random.default_rng(0).normal(size=(3_000, 200), chunks=(1_000, 200))
        y = np.arange(3_000) % 10
        model = GradientBoostingClassifier(max_bins=255, regime="partitioned", early_stopping=False)
        with pytest.raises(TableTooLargeError, match="max_bins"):
            model.fit(X, da.from_array(y, chunks=1_000) if is_lazy else y)
        least = memory.Least(model)  # of two
        assert is_admitted(least, (3_000, 200), 600_000, 200 * 255)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("is_sparse", [False, True])
    def test_wide_tables_of_few_rows_fit(self, is_sparse, small):
        """65,536 such rows would not."""
        X = np.random.default_rng(0).integers(0, 2, (200, 3_000)).astype(np.int8)
        if is_sparse:
            parts = [sp.csr_matrix(X[:100]), sp.csr_matrix(X[100:])]
            parts = [da.from_delayed(dask.delayed(each), each.shape, meta=each) for each in parts]
        table = da.concatenate(parts) if is_sparse else da.from_array(X, chunks=(100, 3_000))
        tree = clone(TREE)
        with dask.config.set({"dtrees.regime": "partitioned"}):
            tree.fit(table, X[:, 0] & X[:, 1])
        assert tree.fit_report_["regime"] == "partitioned"
        np.testing.assert_array_equal(tree.predict(X), X[:, 0] & X[:, 1])

    def test_codes_of_sparse_columns_have_no_histograms(self, small):
        """As many of dense ones would be too many."""
        X = sp.random(2_000, 5_000, 0.03, format="csr", random_state=0)
        parts = [
            da.from_delayed(dask.delayed(each), each.shape, meta=each)
            for each in (X[:1_000], X[1_000:])
        ]
        model = GradientBoostingRegressor(max_iter=2, regime="partitioned")
        model.fit(da.concatenate(parts), X[:, :40].sum(axis=1).A1)
        assert model.fit_report_["regime"] == "partitioned"
        n_codes = int(model.codebook_.n_codes.sum())
        assert is_admitted(memory.Least(model), X.shape, 12 * X.nnz, 0)
        assert not is_admitted(memory.Least(model), X.shape, X.shape[0] * X.shape[1], n_codes)

    def test_rows_that_a_worker_cannot_gather(self, small):
        """Nothing is computed; what the message says helps."""
        shape = 70_000, 20_000
        X = da.zeros(shape, chunks=(200, 20_000))
        X = X.map_blocks(never, dtype=float, meta=np.empty((0, 0)))
        forest = RandomForestRegressor(2, regime="partitioned")
        for call in (forest.fit, lambda X, y: dtrees.estimate_cost(forest, X)):
            with pytest.raises(TableTooLargeError, match=r"fewer rows.*'dtrees\.gather-rows'"):
                call(X, np.zeros(shape[0]))
        assert ours(small) == []
        least = memory.Least(forest)
        assert not is_admitted(least, shape, math.prod(shape))
        with dask.config.set({"dtrees.gather-rows": 4_000}):
            assert is_admitted(least, shape, math.prod(shape))

    @pytest.mark.parametrize(("depth", "fits"), [(2, True), (20, False), (None, False)])
    def test_trees_without_small_nodes(self, depth, fits):
        """Of a billion rows, four nodes are not gathered."""
        least = memory.Least(RandomForestRegressor(2, max_depth=depth))
        assert is_admitted(least, (10**9, 1_000), 10**12) == fits

    @pytest.mark.parametrize("depth", [2, None])
    def test_rows_of_a_tree_of_medians_come_to_one_worker(self, depth):
        shape = 10**7, 1_000
        how = {"criterion": "absolute_error", "max_depth": depth}
        assert is_admitted(memory.Least(RandomForestRegressor(2, max_depth=2)), shape, 10**10)
        least = memory.Least(RandomForestRegressor(2, **how))
        assert not is_admitted(least, shape, 10**10)
        assert least.word == "max_bins"
        assert is_admitted(memory.Least(RandomForestRegressor(2, **how)), (10**4, 1_000), 10**7)

    @pytest.mark.parametrize(("n_rows", "fits"), [(20_000, True), (1_000_000, False)])
    def test_only_leaves_that_can_be_split_have_histograms(self, n_rows, fits):
        model = GradientBoostingRegressor(max_leaf_nodes=10_000, max_depth=None)
        assert is_admitted(memory.Least(model), (n_rows, 60), 60 * n_rows, 60 * 255) == fits
        model.set_params(min_samples_leaf=1_000)
        assert is_admitted(memory.Least(model), (n_rows, 60), 60 * n_rows, 60 * 255)

    @any_of(
        st.integers(1, 64), st.sampled_from([None, 7, 31]), st.sampled_from([8, 500, 10**6])
    )  # fmt: skip
    def test_more_workers_are_asked_for_where_they_help(self, n_threads, leaves, n_columns):
        least = memory.Least(clone(self.BOOSTING).set_params(max_leaf_nodes=leaves))
        shape = 10**8, n_columns

        def check(n_workers):
            workers = {f"w{i}": (400 * MB, n_threads) for i in range(n_workers)}
            check_growth(least, shape, math.prod(shape), None, workers)

        with pytest.raises(TableTooLargeError) as told:
            check(1)
        if "more workers" in str(told.value):
            check(1_000)
        else:
            with pytest.raises(TableTooLargeError, match="Start workers"):
                check(1_000)

    def test_who_is_not_asked(self):
        """Workers without a limit, and all where the user says which of them work."""
        least, shape = memory.Least(self.BOOSTING), (10**8, 8)
        of_table = least, shape, math.prod(shape), None
        check_growth(*of_table, {"no limit": (None, 1), "none": (PROCESS_BYTES, 1)})
        assert not is_admitted(*of_table)
        with dask.annotate(workers=["large"]):
            assert is_admitted(*of_table)


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


@pytest.mark.usefixtures("here")  # who has no workers does not ask how many are members
@pytest.mark.parametrize(
    ("key", "given", "words"),
    [
        ("dtrees.gather-rows", -5, "a number, 0 or more"),
        ("dtrees.gather-rows", "abc", "a number, 0 or more"),
        ("dtrees.gather-rows", 1.5, "a number, 0 or more"),
        ("dtrees.members", True, "a number, 0 or more"),
        ("dtrees.histogram-budget", -5, "0 bytes or more"),
        ("dtrees.histogram-budget", "abc", "Could not interpret 'abc'"),
    ],
)
def test_settings_that_say_nothing(key, given, words):
    X = np.arange(60.0).reshape(30, 2)
    forest = dtrees.RandomForestClassifier(2, regime="partitioned")
    with (
        dask.config.set({key: given, "scheduler": "synchronous"}),
        pytest.raises(ValueError, match=rf"'{key}' = .*{words}"),
    ):
        forest.fit(X, X[:, 0] > 9)


SIZE = GrowthSize(n_rows=10**6, n_columns=3, n_trees=1, depth=3, n_workers=2)


@pytest.mark.parametrize(
    ("key", "ask"),
    [
        ("dtrees.histogram-budget", lambda: CostModel().of(SIZE)),
        ("dtrees.client-memory", lambda: check_room(1, (1, 1))),
        ("dtrees.position-cache", lambda: room_of_positions(2**30, 1)),
    ],
)
@pytest.mark.parametrize(
    ("given", "words"), [("-1 MB", "0 bytes or more"), ("much", "Could not interpret 'much'")]
)
def test_numbers_of_bytes_that_are_none(key, ask, given, words):
    with dask.config.set({key: given}), pytest.raises(ValueError, match=rf"'{key}' = .*{words}"):
        ask()


@pytest.mark.parametrize("given", [0, 7, "7", np.int64(7)])
def test_rows_that_are_gathered(given):
    with dask.config.set({"dtrees.gather-rows": given}):
        assert memory.gather_rows_of(10**9) == int(given)
    assert memory.gather_rows_of(10**9) == 10**9 // memory.SPREAD_NODES


def test_portions():
    """As large as is worth a message to each member, and as memory allows."""
    assert memory.bytes_of_portion(2, 1, None) == memory.PORTION_BYTES
    assert memory.bytes_of_portion(2, 8, 2**40) == 8 * memory.PORTION_BYTES
    assert memory.bytes_of_portion(1024, 8, 2**40) == 2**31
    assert memory.bytes_of_portion(1024, 8, 24 * 2**30) == 2**30
    assert memory.bytes_of_portion(2, 1, 2**20) == memory.LEAST_BYTES


@any_of(
    st.floats(0, 1e9), st.integers(1, 500), st.floats(0, 1e12), st.integers(1, 8),
    st.integers(1, 64),
)  # fmt: skip
def test_trees_of_a_wave_fit_and_are_not_too_much_work(n_rows, n_drawn, room, row_bytes, n_threads):
    n_trees = memory.trees_at_once(n_rows, n_drawn, room, row_bytes, n_threads)
    assert n_trees >= 1
    if n_trees > 1:
        assert n_trees * n_rows * row_bytes <= room
        assert n_trees * n_rows * n_drawn <= memory.WAVE_CELLS * n_threads
    elif n_rows >= 1:  # one more would be too many
        assert 2 * n_rows * row_bytes > room or 2 * n_rows * n_drawn > memory.WAVE_CELLS * n_threads
