"""Workers of little memory: blocks, batches and spilling follow from it, the model does not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

from dtrees import GradientBoostingClassifier, RandomForestClassifier
from dtrees.parallel import boosted_members, memory, partitioned, placed_blocks
from dtrees.parallel.block_tasks import room_of_positions
from dtrees.parallel.boosted_members import MemberState
from dtrees.parallel.memory import BOOSTED_BYTES, MAPPED_BYTES, bytes_of_boosting
from dtrees.parallel.partitioned import BlocksOnWorkers, PartitionedGrowth
from tests.parallel import test_collections as collections
from tests.parallel.clusters import connect
from tests.parallel.faults import ROUNDS, assert_nothing_is_left, pids
from tests.parallel.test_collections import CASES, Folds, X, hash_of, in_memory, on

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

LIMIT = 400 * 2**20
# All but a few bytes go to the disk. dask-ml brings numba along, which Dask's arrays import with
# `sparse` and for which 400 MiB are too little: workers start from nothing, and without it.
OF_WORKERS = {
    "distributed.worker.memory.target": 20_000 / LIMIT,
    "distributed.worker.multiprocessing-method": "spawn",
    "distributed.worker.preload": ["import sys; sys.modules['sparse'] = None"],
}
N_FILES = 4
FOREST = RandomForestClassifier(3, random_state=0)


@pytest.fixture(scope="module")
def small():
    """A client of two worker processes of 400 MiB, whose results go to the disk."""
    with (
        dask.config.set(OF_WORKERS),
        connect(2, 1, True, LIMIT) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def on_disk(client):
    """How often workers have written to their disks and read from them."""

    def of_worker(dask_worker):
        counts = dask_worker.data.cumulative_metrics
        return [counts["disk-write", "count"], counts["disk-read", "count"]]

    return np.sum(list(client.run(of_worker).values()), axis=0)


@pytest.fixture
def done(monkeypatch):
    """Blocks and batches of a growth, and its rounds."""
    done = {"blocks": [], "tree_batches": [], "rounds": 0}
    make, tree_batches = BlocksOnWorkers.make, PartitionedGrowth.tree_batches
    hear = BlocksOnWorkers.hear

    def made(blocks):
        make(blocks)
        done["blocks"].append(len(blocks._kept.blocks))

    def noted_batches(*args):
        done["tree_batches"].append(tree_batches(*args))
        return done["tree_batches"][-1]

    def heard(blocks, what, depth):
        done["rounds"] += 1
        hear(blocks, what, depth)

    monkeypatch.setattr(BlocksOnWorkers, "make", made)
    monkeypatch.setattr(PartitionedGrowth, "tree_batches", noted_batches)
    monkeypatch.setattr(BlocksOnWorkers, "hear", heard)
    return done


@pytest.mark.chaos
@pytest.mark.parametrize(
    "case",
    [
        "forest",
        *(
            pytest.param(case, marks=pytest.mark.chaos)
            for case in ("folds of forest", "weights", "sparse", "mixed")
        ),
    ],
)
def test_blocks_and_waves_follow_from_memory(case, small, done, monkeypatch):
    """By the workers' own limit; of the shares of it small parts, as the table is small."""
    expected = in_memory(case)
    model = CASES[case][0]
    model = model.model if isinstance(model, Folds) else model
    n_workers, per_row = 2, 5
    monkeypatch.setattr(placed_blocks, "BLOCK_SHARE", 60 * per_row / LIMIT)  # 60 rows or fewer
    monkeypatch.setattr(partitioned, "bytes_of_portion", lambda *_: 90 * (per_row + 16))
    room = n_workers * room_of_positions(LIMIT, 1)
    monkeypatch.setattr(memory, "ROW_BYTES", int(room / (1.5 * 0.632 * len(X))))  # one tree
    before = pids(small, n_workers)
    with on(small), dask.config.set(ROUNDS):
        assert collections.fitted(case, "64") == expected
    (n_blocks,), (tree_batches,) = done["blocks"], done["tree_batches"]
    assert n_blocks >= len(X) / 60
    assert [list(batch) for batch in tree_batches] == [[i] for i in range(model.n_estimators)]
    assert done["rounds"] > 1
    assert pids(small) == before
    assert_nothing_is_left(small)


def note_reads(folder):
    """On a worker: leave a file for each time that columns of a Parquet file are read."""
    from dask.dataframe.io.parquet.arrow import ArrowDatasetEngine as Engine

    read = getattr(Engine, "plain", Engine._read_table)

    def noted(path, fs, row_groups, columns, *arguments, **options):
        name = f"{Path(path).name}:{''.join(columns)}:{uuid4().hex}"
        (Path(folder) / name).touch()
        return read(path, fs, row_groups, columns, *arguments, **options)

    Engine._read_table = noted
    Engine.plain = read


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(FOREST, id="fit"),
        pytest.param(Folds(FOREST), id="folds", marks=pytest.mark.chaos),
    ],
)
def test_files_are_read_as_often_as_is_said(model, small, tmp_path):
    """Lengths without a column, then the passes, though blocks are on the disk meanwhile.

    A pass for the codebook and one for the codes; folds make codes once more, of held-out rows.
    """
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(10_000, 8)), columns=list("abcdefgh"))
    frame["y"] = (frame["a"] + frame["b"] ** 2 + rng.normal(size=len(frame)) > 1).astype(int)
    data, noted = tmp_path / "data", tmp_path / "noted"
    data.mkdir()
    noted.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), N_FILES)):
        frame.iloc[rows].to_parquet(data / f"{number}.parquet", index=False)
    lazy = dd.read_parquet(data)
    expected = hash_of(model.fit(frame.drop(columns="y"), frame["y"]))
    small.run(note_reads, str(noted))
    before = on_disk(small)
    with on(small), dask.config.set({**ROUNDS, "dtrees.gather-rows": 500}):
        model.fit(lazy.drop(columns="y"), lazy["y"])
    assert hash_of(model) == expected
    assert model.fit_report_["rounds"] > 4
    written, read = on_disk(small) - before
    assert written > 0
    assert read <= written  # by members from where it is, and not back into memory in each round
    columns = {"": 1, "y": 1, "abcdefgh": 3 if isinstance(model, Folds) else 2}  # by pass
    found = Counter(tuple(path.name.split(":")[:2]) for path in noted.iterdir())
    assert found == {
        (f"{number}.parquet", some): times
        for number in range(N_FILES)
        for some, times in columns.items()
    }
    assert_nothing_is_left(small)


def bytes_now(name):
    """What the system says of the memory of this process: VmRSS, or VmHWM, the most of it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def note_peak(is_on_disk):
    """On a worker: note what members of boosting take from their beginning on, at most."""
    plain = getattr(boosted_members, "plain", None) or MemberState.begin_all.__func__

    def begin_all(cls, *arguments):
        Path("/proc/self/clear_refs").write_text("5")  # the most so far is what there is
        boosted_members.before = bytes_now("VmRSS")
        return plain(cls, *arguments)

    boosted_members.plain, MemberState.begin_all = plain, classmethod(begin_all)
    boosted_members.room_of_member = lambda limit: 0 if is_on_disk else 2**40


def noted_peak():
    return bytes_now("VmHWM") - boosted_members.before


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="nobody says what it is")
@pytest.mark.one_of(2)
@pytest.mark.parametrize("is_on_disk", [False, True])
def test_buffers_of_boosting_are_counted(is_on_disk, processes):
    """Estimates are good for a factor of two, of which a third is what reading leaves."""
    n_rows, n_columns, of_row = 2_400_000, 4, MAPPED_BYTES if is_on_disk else BOOSTED_BYTES
    X = da.random.default_rng(0).normal(size=(n_rows, n_columns), chunks=(100_000, n_columns))
    model = GradientBoostingClassifier(
        max_iter=2, early_stopping=False, regime="partitioned", max_bins=255
    )
    processes.run(note_peak, is_on_disk)
    with on(processes):
        model.fit(X, (X[:, 0] * X[:, 1] > 0).astype("int8"))
    assert model.fit_report_["lost_workers"] == 0
    expected = bytes_of_boosting(model, 1, n_rows // 2, n_columns * 255, of_row)
    expected += 0 if is_on_disk else n_rows // 2 * n_columns
    for found in processes.run(noted_peak).values():
        assert expected / 2 < found < 2 * expected
    assert_nothing_is_left(processes)
