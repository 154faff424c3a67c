"""Faults at random moments, by the hundred: ``python -m tests.parallel.soak --hits 200``.

A model is fitted again and again on a cluster of four processes; each time something happens at a
random moment. It is the same model, or an error of `dtrees.exceptions`, and nothing is left on the
cluster. A table says how often each fault has hit a fit that was under way, and the most seconds
that were spent after it, and until nothing was left.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass

import dask
import dask.dataframe as dd
import pandas as pd
from distributed import Client
from rich.console import Console
from rich.table import Table

from dtrees.exceptions import ClusterError
from dtrees.parallel import boosted_members, partitioned
from tests.parallel.clusters import connect, paused
from tests.parallel.faults import BOOSTED, FOLDS, FOREST, assert_nothing_is_left, expected, fitted
from tests.parallel.test_collections import Folds, hash_of

N_WORKERS = 4
STOPPED_SECONDS = 12.0  # then a worker that hangs goes on, if it is still there
MODELS = {"forest": FOREST, "folds": FOLDS, "boosted": BOOSTED, "boosted folds": Folds(BOOSTED)}


@dataclass
class Place:
    """A cluster, and what may happen to it."""

    cluster: object
    client: Client
    random: random.Random

    def pids(self):
        """Processes of the workers that answer."""
        return sorted(self.client.run(os.getpid, on_error="ignore").values())

    def recover(self):
        """Let all workers be there again."""
        self.cluster.scale(N_WORKERS)
        self.client.wait_for_workers(N_WORKERS, timeout=120)
        while any(each.status.name == "starting" for each in self.cluster.workers.values()):
            time.sleep(0.02)

    def signal_one(self, number):
        pid = self.random.choice(self.pids())
        os.kill(pid, number)
        return pid

    def kill_one(self):
        self.signal_one(signal.SIGKILL)

    def kill_all(self):
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)

    def end_one(self):
        self.signal_one(signal.SIGTERM)

    def stop_one(self):
        pid = self.signal_one(signal.SIGSTOP)

        def go_on():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

        threading.Timer(STOPPED_SECONDS, go_on).start()

    def pause_one(self):
        worker = self.random.choice(sorted(self.client.nthreads()))
        paused(self.client, [worker])
        time.sleep(self.random.uniform(0, 2))
        with suppress(Exception):  # it may have gone
            paused(self.client, [worker], "running")

    def retire_one(self):
        self.cluster.scale(N_WORKERS - 1)  # the scheduler retires one

    def scale(self):
        self.cluster.scale(1)
        time.sleep(self.random.uniform(0, 1))
        self.cluster.scale(N_WORKERS)

    def adapt(self):
        adaptive = self.cluster.adapt(minimum=1, maximum=N_WORKERS, interval="100ms")
        time.sleep(self.random.uniform(0, 2))
        adaptive.stop()

    def restart(self):
        self.client.restart(timeout=120)

    def second_client(self):
        with Client(self.cluster.scheduler_address, set_as_default=False) as other:
            assert hash_of(fitted(other, FOREST)) == expected(FOREST)

    def shuffle(self):
        with self.client.as_current(), dask.config.set({"dataframe.shuffle.method": "p2p"}):
            frame = pd.DataFrame({"key": range(4000), "value": 1.0})
            lazy = dd.from_pandas(frame, npartitions=8).shuffle("key")
            assert len(lazy.compute(scheduler=self.client)) == 4000


FAULTS = {
    name: getattr(Place, name)
    for name in (
        *("kill_one", "kill_all", "end_one", "stop_one", "pause_one", "retire_one", "scale"),
        *("adapt", "restart", "second_client", "shuffle"),
    )
}


def strike(place, fault, model, seconds):
    """A fit, and a fault at a random moment of so many seconds.

    Whether it has hit, what has become of the fit, and seconds after the fault, and until nothing
    is left.
    """
    is_over, late, errors = threading.Event(), [], []
    at = [0.0]

    def happen():
        late.append(is_over.is_set())
        at[0] = time.monotonic()
        try:
            fault(place)
        except Exception as error:  # told by the main thread
            errors.append(error)

    timer = threading.Timer(place.random.uniform(0, seconds), happen)
    timer.start()
    verdict = "same model"
    try:
        found = hash_of(fitted(place.client, model))
        if found != expected(model):
            verdict = "ANOTHER MODEL"
    except ClusterError as error:
        verdict = type(error).__name__
    is_over.set()
    ended = time.monotonic()
    timer.join()
    if errors:
        raise errors[0]
    began = time.monotonic()
    assert_nothing_is_left(place.client)
    return not late[0], verdict, ended - at[0], time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--faults", nargs="*", default=[*FAULTS])
    options = parser.parse_args()
    partitioned.slice_seconds = boosted_members.slice_seconds = lambda n_members: 0.05
    hits, most = defaultdict(lambda: defaultdict(int)), defaultdict(lambda: [0.0, 0.0])
    # a worker tries to reach one that is gone for so long; Dask's default is 30 seconds
    dask.config.set({"distributed.comm.timeouts.connect": "5s"})
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour", "dtrees.members": 1000})
    with (
        connect(N_WORKERS, 1, True) as cluster,
        Client(cluster.scheduler_address, set_as_default=False) as client,
    ):
        place = Place(cluster, client, random.Random(options.seed))
        plain = {}
        for name, model in MODELS.items():
            fitted(client, model)
            began = time.monotonic()
            fitted(client, model)
            plain[name] = time.monotonic() - began
        n = number = 0
        while n < options.hits:
            fault = options.faults[number % len(options.faults)]
            name = [*MODELS][number // len(options.faults) % len(MODELS)]
            number += 1
            place.recover()
            has_hit, verdict, after, left = strike(
                place, FAULTS[fault], MODELS[name], 0.8 * plain[name]
            )
            if has_hit:
                n += 1
                hits[fault][verdict] += 1
                most[fault] = [max(most[fault][0], after), max(most[fault][1], left)]
                print(
                    f"{n:4} {fault:13} {name:13} {verdict:16} {after:6.1f} s {left:5.1f} s",
                    flush=True,
                )
    table = Table(
        "fault", "hits", "what became of the fit", "most s after it", "until nothing is left"
    )
    for fault, verdicts in hits.items():
        told = ", ".join(f"{n} {verdict}" for verdict, n in sorted(verdicts.items()))
        table.add_row(fault, str(sum(verdicts.values())), told, *(f"{s:.1f}" for s in most[fault]))
    Console(width=120).print(table)
    if any("ANOTHER MODEL" in verdicts for verdicts in hits.values()):
        raise SystemExit("a fault has changed a model")


if __name__ == "__main__":
    main()
