"""How seconds and bytes are measured.

Seconds: both sides take turns in one process, ours first, so that a busy or slow spell of the
machine meets both. Each turn is timed by the wall clock with the garbage collector off; our first
turn is not counted, and theirs is not where the work is short. The ratio is the median of theirs
over the median of ours, its spread the least and greatest ratio of two turns that stood side by
side.

Opponents that take minutes run once, in a forked process that sees the same table, and are stopped
when they take longer than the best opponent so far: only the best one counts.

Bytes: a child process loads the table, fits a small one (what importing and starting threads needs
is not the fit's), asks the kernel to forget the peak of its resident memory, fits, and reads the
peak. The table is in memory before and not counted; the fitted tree is.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.cases import THREADS, Contest, Fit

SHORT = 0.2  # seconds; opponents of shorter work have a first turn that does not count, too
MB = 1e6
FEW_ITERATIONS = 3  # of a boosted model whose memory is measured


@dataclass
class Times:
    """What a contest took.

    Attributes
    ----------
    ours : list of float
        Seconds of every turn.
    theirs : dict of name to list of float
        Infinite for an opponent that was stopped.
    remark, fault : str
    """

    ours: list[float] = field(default_factory=list)
    theirs: dict[str, list[float]] = field(default_factory=dict)
    remark: str = ""
    fault: str = ""

    @property
    def seconds(self) -> float:
        """Median of ours."""
        return statistics.median(self.ours)

    @property
    def opponent(self) -> str | None:
        """Name of the fastest opponent."""
        if not self.theirs:
            return None
        return min(self.theirs, key=lambda name: statistics.median(self.theirs[name]))

    @property
    def opponent_seconds(self) -> float | None:
        """Median of the fastest opponent."""
        name = self.opponent
        return None if name is None else statistics.median(self.theirs[name])

    @property
    def ratio(self) -> float | None:
        """How many times faster we are."""
        theirs = self.opponent_seconds
        return None if theirs is None else theirs / self.seconds

    @property
    def spread(self) -> tuple[float, float] | None:
        """Least and greatest ratio of neighbouring turns."""
        name = self.opponent
        if name is None:
            return None
        theirs = self.theirs[name]
        # An opponent may have had fewer turns; its last one stands for those it did not have.
        ratios = [theirs[min(k, len(theirs) - 1)] / ours for k, ours in enumerate(self.ours)]
        return min(ratios), max(ratios)


@dataclass(frozen=True)
class Memory:
    """Peak memory of a fit above its table, in MB of 10**6 bytes, and its seconds."""

    peak_mb: float
    table_mb: float
    seconds: float
    how: str
    remark: str


def timed(
    work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """Seconds by a clock, that on the wall unless another one is given, and the result."""
    gc.collect()
    gc.disable()
    try:
        start = clock()
        result = work()
        return clock() - start, result
    finally:
        gc.enable()


def in_turns(
    works: Sequence[Callable[[], Any]],
    turns: int,
    budget: float,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[list[float], list[Any]]:
    """Median seconds of several works that take turns, and what they returned last.

    Parameters
    ----------
    works : sequence of callables
        Each has one more turn before, that does not count.
    turns : int
    budget : float
        Seconds of all turns that count, after which no further one is begun. Each has one.
    clock : callable () -> float
        `time.process_time` for work on one thread: another process does not slow it down.
    """
    results = [timed(work)[1] for work in works]
    found: list[list[float]] = [[] for _ in works]
    while len(found[0]) < turns and (not found[0] or sum(map(sum, found)) < budget):
        for place, work in enumerate(works):
            seconds, results[place] = timed(work, clock)
            found[place].append(seconds)
    return [statistics.median(seconds) for seconds in found], results


def contest(case: Contest, repeats: int, budget: float) -> Times:
    """Take turns.

    Parameters
    ----------
    case : Contest
    repeats : int
        Turns of each side.
    budget : float
        Seconds after which no further turn is begun; the first is always finished.
    """
    times = Times(theirs={name: [] for name in case.theirs})
    begin = time.perf_counter()
    first, ours = timed(case.ours)
    if case.race:
        race(case, times, budget)
        while len(times.ours) < repeats:
            times.ours.append(timed(case.ours)[0])
        times.remark, times.fault = case.remark(ours, None), case.fault(ours, None)
        if times.opponent_seconds == float("inf"):
            times.fault = f"no opponent was ready after {budget:.0f} s"
        return times
    results: dict[str, Any] = {}
    if first < SHORT:
        for work in case.theirs.values():
            timed(work)
    while True:
        seconds, ours = timed(case.ours)
        times.ours.append(seconds)
        for name, work in case.theirs.items():
            seconds, results[name] = timed(work)
            times.theirs[name].append(seconds * case.parts.get(name, 1.0))
        if len(times.ours) >= repeats or time.perf_counter() - begin > budget:
            break
    best = results.get(times.opponent) if times.opponent else None
    times.remark, times.fault = case.remark(ours, best), case.fault(ours, best)
    return times


def race(case: Contest, times: Times, budget: float) -> None:
    """One turn of every opponent, none longer than the best so far."""
    best = budget
    for name, work in case.theirs.items():
        seconds = in_a_fork(work, best)
        times.theirs[name].append(seconds)
        best = min(best, seconds)


def in_a_fork(work: Callable[[], Any], limit: float) -> float:
    """Seconds of work in a forked process; infinite when it was stopped at the limit."""
    context = multiprocessing.get_context("fork")
    receive, send = context.Pipe(duplex=False)

    def child() -> None:
        send.send(timed(work)[0])

    process = context.Process(target=child)
    process.start()
    done = receive.poll(limit + 1.0)
    seconds = receive.recv() if done else float("inf")
    if not done:
        process.terminate()
    process.join()
    return seconds


def memory(fit: Fit) -> Memory:
    """Peak memory of a fit in a process of its own."""
    X, y = data.classification(fit.n_rows)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", np.ascontiguousarray(X[:, : fit.n_columns]))
        np.save(Path(folder) / "y.npy", y)
        data.classification.cache_clear()
        del X, y
        words = in_a_child("benchmarks.measure", folder, str(fit.max_bins), fit.model)
    peak, table, seconds, how, nodes = words
    return Memory(float(peak), float(table), float(seconds), how, f"{int(nodes):,} nodes")


def in_a_child(module: str, *arguments: str, **environment: str) -> list[str]:
    """Run a module in a process of its own; the words that it prints."""
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    done = subprocess.run(
        command,
        cwd=data.ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{module} failed in its process:\n{done.stderr}")
    return done.stdout.split()


def resident() -> int:
    """Bytes of resident memory of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def forget_peak() -> bool:
    """Start the kernel's record of the peak anew; whether it could be done."""
    try:
        with open("/proc/self/clear_refs", "w") as refs:
            refs.write("5")
    except OSError:
        return False
    return True


def recorded_peak() -> int:
    """Greatest resident memory since `forget_peak`, bytes."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


class Sampler(threading.Thread):
    """Looks at the resident memory every millisecond: for kernels that forget no peak."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = resident()
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.001):
            self.peak = max(self.peak, resident())


def fit_in_this_process(folder: str, max_bins: int | None, name: str) -> str:
    """The child's side of `memory`: loads, fits, and prints what it needed."""
    import dtrees

    X, y = np.load(Path(folder) / "X.npy"), np.load(Path(folder) / "y.npy")
    model = getattr(dtrees, name)(max_bins=max_bins, random_state=0, n_jobs=THREADS)
    if hasattr(model, "max_iter"):
        model.set_params(max_iter=FEW_ITERATIONS, early_stopping=False)
    model.fit(X[:20_000], y[:20_000])
    gc.collect()
    before = resident()
    exact = forget_peak()
    sampler = Sampler()
    if not exact:
        sampler.start()
    seconds, _ = timed(lambda: model.fit(X, y))
    sampler.done.set()
    peak = recorded_peak() if exact else sampler.peak
    how = "VmHWM" if exact else "sampled"
    trees = model.forest_.trees if hasattr(model, "forest_") else [model.tree_]
    nodes = sum(tree.node_count for tree in trees)
    return f"{(peak - before) / MB:.1f} {X.nbytes / MB:.1f} {seconds:.2f} {how} {nodes}"


if __name__ == "__main__":
    chosen = None if sys.argv[2] == "None" else int(sys.argv[2])
    print(fit_in_this_process(sys.argv[1], chosen, sys.argv[3]))
