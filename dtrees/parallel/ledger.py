"""What a growth has done, and what it has cost: the facts behind ``fit_report_``."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Ledger:
    """Counts and seconds of a fit, as they come up.

    Attributes
    ----------
    regime, reason : str
        Where trees were grown, and why there.
    seconds : dict of str to float
        By phase.
    counts : Counter
        rounds, passes (over the codes), bytes_moved (counts and rows that left a block),
        cache_hits, rebuilds (places that had to be computed again), retries (tasks that were
        submitted again), restarts (of all blocks), lost_workers.
    """

    regime: str = "local"
    reason: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds of a block to those of a phase."""
        began = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - began
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def report(self) -> dict[str, Any]:
        """All of it, as plain numbers and strings."""
        return {
            "regime": self.regime,
            "reason": self.reason,
            "seconds": dict(self.seconds),
            **dict(self.counts),
        }
