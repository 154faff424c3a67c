"""What a growth has done, and what it has cost: the facts behind ``fit_report_``."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

SHARED = ("shared_nodes", "shared_rows", "bounded_columns", "alive_columns")


@dataclass
class FitStatistics:
    """Counts and seconds of a fit, as they come up.

    Attributes
    ----------
    regime, reason : str
        Where trees were grown, and why there.
    seconds : dict of str to float
        By phase: reading (of what belongs to rows of Dask collections, and of the lengths of their
        partitions), coding, growth. Parts of growth: table (until a worker has it, in the
        replicated regime; 0 where an earlier growth of a search has brought it), and blocks, bags,
        rounds, subtrees (in the partitioned one).
    counts : Counter
        lost_workers (that have gone, whatever the reason), retries (tasks that were submitted
        again), restarts (of all that is on the workers: codes that are learned, the table that was
        sent, blocks), bytes_moved, `SHARED` where several training sets grew (of boosted models
        models_together, those that grew side by side), and by regime:

        replicated: tasks (that trees were grown in); bytes_moved is the table, once for every
        worker, and the packed trees on their way back.

        partitioned: rounds, code_rounds (second requests, for the codes of some intervals),
        code_requests (nodes and columns of these), passes (over the codes), passes_saved (that
        trees one by one would have made beside these), cache_hits, rebuilds (places that were
        computed again), epochs, members of the last one, and messages between them, of which some
        may be relayed by the scheduler. bytes_moved is what members have told each other, the
        subtrees that came from them, and blocks that were moved to idle threads.
    """

    regime: str = "local"
    reason: str = ""
    seconds: defaultdict[str, float] = field(default_factory=partial(defaultdict, float))
    counts: Counter[str] = field(default_factory=Counter)
    _workers: frozenset[str] = field(default=frozenset(), init=False, repr=False)
    _n_gone: int | None = field(default=None, init=False, repr=False)
    _n_missed: int = field(default=0, init=False, repr=False)  # of them, since `_n_gone`

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds of a block to those of a phase."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - began

    def see(self, what: str) -> None:
        """Count one of the things that `grow_in_rounds` tells."""
        self.counts[what.replace(" ", "_") + "s"] += 1

    def see_pass(self, n_trees: int = 0) -> None:
        """Count a pass over the codes; the trees that it was for, unless a batch tells of them."""
        self.counts["passes"] += 1
        self.counts["passes_saved"] += n_trees - 1

    def see_workers(self, addresses: Iterable[str], n_gone: int | None = None) -> None:
        """Count the workers that have gone since the last time; those at `addresses` are there.

        `n_gone` is how many have gone since the scheduler began. It counts those, too, that came
        and went between two looks. None: only those are counted that were there at the last one.
        """
        now = frozenset(addresses)
        n_missed = len(self._workers - now)
        if n_gone is not None:
            if self._n_gone is not None:
                n_missed = max(n_missed, n_gone - self._n_gone - self._n_missed)
            self._n_gone, self._n_missed = n_gone, 0
        else:
            self._n_missed += n_missed
        self.counts["lost_workers"] += n_missed
        self._workers = now

    def continued(self) -> FitStatistics:
        """Another one, of a growth that goes on from here."""
        return replace(self, seconds=self.seconds.copy(), counts=self.counts.copy())

    def report(self) -> dict[str, Any]:
        """All of it, as plain numbers and strings."""
        return {
            "regime": self.regime,
            "reason": self.reason,
            "seconds": dict(self.seconds),
            **dict(self.counts),
        }
