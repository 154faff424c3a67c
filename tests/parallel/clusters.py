"""Clusters on this machine, what is left on them, and one hash of many trees."""

import hashlib
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from distributed import LocalCluster

from dtrees.parallel import exchange


def digest(trees):
    """One hash of all arrays of all trees."""
    found = hashlib.sha256()
    for tree in trees:
        for name, array in tree.arrays().items():
            found.update(f"{name} {array.dtype} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()


def connect(n_workers, threads, processes, memory_limit=0):
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads,
        processes=processes,
        dashboard_address=":0",
        memory_limit=memory_limit,
    )


def make_small(monkeypatch, small):
    """Let some workers have too little memory for any table, by what they say; others have all."""

    def limits_of(client):
        return {each: 250 * 2**20 if each in small else None for each in client.nthreads()}

    monkeypatch.setattr("dtrees.parallel.memory.limits_of", limits_of)
    monkeypatch.setattr("dtrees.parallel.memory.PROCESS_BYTES", 237.5 * 2**20)


def paused(client, workers=None, to="paused"):
    """Pause workers, as Dask does above 80 % of their memory, or let them go on; None: all.

    Returns when the scheduler knows.
    """

    def pause(dask_worker):
        from distributed.core import Status

        dask_worker.memory_manager.memory_pause_fraction = False
        dask_worker.status = Status[to]

    def statuses(dask_scheduler):
        return {each.address: each.status.name for each in dask_scheduler.workers.values()}

    told = client.run(pause, workers=workers)
    while any(client.run_on_scheduler(statuses)[address] != to for address in told):
        time.sleep(0.01)


def leave(cluster, client):
    """Let all workers go; returns when the scheduler knows."""
    cluster.scale(0)
    while client.nthreads():
        time.sleep(0.01)


def epochs_of(client):
    """Names of the epochs that workers in this process know; others may have gone in one."""
    return {epoch for address, epoch in list(exchange._boxes) if address in client.nthreads()}


def ours(client):
    """Keys of ours that the scheduler knows, once it has had time to forget them."""

    def keys(dask_scheduler):
        return [str(key) for key in dask_scheduler.tasks]

    limit = time.monotonic() + 60
    while (found := client.run_on_scheduler(keys)) and time.monotonic() < limit:
        time.sleep(0.05)
    return found


def noted(path):
    """Note in a folder that something is done; how often it was done before, in any process."""
    seen = len(os.listdir(path))
    while True:
        try:
            (Path(path) / str(seen)).touch(exist_ok=False)
        except FileExistsError:  # another process was faster
            seen += 1
        else:
            return seen


@dataclass
class Deadly:
    """Thresholds that end the process when they are first asked for."""

    thresholds: object
    path: str

    def __call__(self, *args):
        with suppress(FileNotFoundError):  # another process may be faster
            os.remove(self.path)
            os._exit(1)
        return self.thresholds(*args)
