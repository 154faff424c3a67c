"""Several boosted models of one table, side by side.

The models of a cross-validation have the same codes and different rows. The codes by row are made
once, and each thread takes a model. A thread that finds none left helps with those that still
grow, so that all threads are busy to the end::

    thread 0   model 0 ──────▶ model 2 ──────▶ model 4 ──────────────▶
    thread 1   model 1 ────────▶ model 3 ──────▶ helps with model 4 ─▶

Models that grow apart never wait for each other, as the threads of a node do. Their arrays are made
when their turn comes, so there are as many at a time as there are threads. Each model has the bits
that it would have alone: nobody else writes to what it reads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dtrees.coding.coded import CodedMatrix
from dtrees.core.grow._team import Helpers
from dtrees.core.grow.assembly import Thresholds
from dtrees.core.grow.boosting import (
    BoostedRows,
    Booster,
    Growing,
    Watch,
    trees_of_model,
)
from dtrees.core.model.tree import Tree
from dtrees.core.stores.boosted._column_blocks import ColumnBlocks
from dtrees.typing import Runner


@dataclass(frozen=True, eq=False)
class Model:
    """A model that is to be grown; arguments as for `dtrees.core.grow.boosting.boost`.

    Attributes
    ----------
    rows : BoostedRows
        Of the common table.
    growing : Growing
    watch : callable (trees, raw) -> bool, or None
    """

    rows: BoostedRows
    growing: Growing
    watch: Watch | None = None


def boost_together(
    coded: CodedMatrix,
    models: Sequence[Callable[[Callable[[Model], list[Tree]]], None]],
    thresholds: Thresholds,
    run: Runner,
    n_threads: int = 1,
    cancelled: Callable[[], bool] = lambda: False,
    min_rows: int = 1,
) -> None:
    """Grow several models from the codes of one table.

    Parameters
    ----------
    coded : CodedMatrix
    models : sequence of callables (grow) -> None
        Called once each, on any thread and in any order, but begun in theirs. It makes a `Model`,
        and asks ``grow(model)`` for its trees, iteration by iteration.
    thresholds : callable
        `dtrees.coding.CodeBook.thresholds`.
    run : Runner
        Gets one task for each thread.
    n_threads : int, default=1
        Changes nothing but the time.
    cancelled : callable () -> bool
        Asked before each iteration; True ends all growth.
    min_rows : int, default=1
        Which all models have on each side of a split, at least: sparse columns that store fewer
        are left out.

    Notes
    -----
    Costs what the models cost one by one, less the codes by row of all but one. Memory: the codes
    by row once; all else of `boost` for each thread.
    """
    crew = Crew(len(models))
    blocks = ColumnBlocks(coded, min_rows)

    def lead(number: int, helpers: Helpers) -> None:
        def grow(model: Model) -> list[Tree]:
            booster = Booster(model.rows, model.growing, helpers, blocks)
            return trees_of_model(booster, thresholds, cancelled, model.watch)

        models[number](grow)

    try:
        run([lambda: crew.work(lead)] * n_threads)
    finally:
        crew.dismiss()  # whoever helps a model that nobody leads any more


class Crew:
    """Threads that take jobs, each with a team that those may join who find no job left.

    Parameters
    ----------
    n_jobs : int
    """

    def __init__(self, n_jobs: int) -> None:
        self._waiting = deque(range(n_jobs))
        self._teams: dict[int, Helpers] = {}
        self._n_helpers: dict[int, int] = {}
        self._lock = threading.Lock()
        self.n_helped = 0  # times that a thread has joined a team

    def work(self, lead: Callable[[int, Helpers], None]) -> None:
        """Do jobs until all are done; callable from any number of threads."""
        while (job := self._next()) is not None:
            number, team = job
            try:
                lead(number, team)
            finally:
                with self._lock:
                    del self._teams[number]
                team.close()
        while (busy := self._busy()) is not None:
            busy.help()

    def dismiss(self) -> None:
        """Send all helpers away, and give out no job any more."""
        with self._lock:
            self._waiting.clear()
            teams = list(self._teams.values())
        for team in teams:
            team.close()

    def _next(self) -> tuple[int, Helpers] | None:
        with self._lock:
            if not self._waiting:
                return None
            number = self._waiting.popleft()
            self._teams[number] = Helpers()
            self._n_helpers[number] = 0
            return number, self._teams[number]

    def _busy(self) -> Helpers | None:
        """The team with the fewest helpers."""
        with self._lock:
            if not self._teams:
                return None
            number = min(self._teams, key=self._n_helpers.__getitem__)
            self._n_helpers[number] += 1
            self.n_helped += 1
            return self._teams[number]
