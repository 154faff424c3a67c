"""Several boosted models of one table, side by side.

The models of a cross-validation have the same codes and different rows. Each thread takes a model,
and grows it to its end. Where the number of models is no multiple of that of the threads, the last
ones take turns, a few iterations each, so that all threads are busy to the end::

    thread 0   model 0 ──────▶ 2  4  3  2  4  3 ...
    thread 1   model 1 ──────▶ 3  2  4  3  2  4 ...     never two of a model at a time

A thread that finds no model left helps with the trees and nodes of those that still grow. One model
has all threads from the beginning, laid out for them as in a fit of its own.

A model of some rows copies their codes. So its rows lie side by side, as in a fit to them alone:
nothing is gathered for their derivatives, and its roots are read in order. The codes of sparse
tables stay in one place for several models, and so do those of models whose iterations draw rows.

Models that grow apart never wait for each other, as the threads of a node do. Their arrays are made
when their turn comes, so there are at most twice as many at a time as there are threads. Each model
has the bits that it would have alone: nobody else writes to what it reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import partial

from dtrees.coding.coded import CodedMatrix
from dtrees.core.grow._team import Team
from dtrees.core.grow.assembly import Thresholds
from dtrees.core.grow.boosting import (
    TAKEN_BYTES,
    BoostedRows,
    Booster,
    Growing,
    Watch,
    grow_model,
)
from dtrees.core.model.tree import Tree
from dtrees.core.stores.boosted._column_blocks import ColumnBlocks
from dtrees.typing import Runner


@dataclass(frozen=True, eq=False)
class Model:
    """A model that is to be grown; arguments as for `dtrees.core.grow.boosting.boost`."""

    rows: BoostedRows  # of the common table
    growing: Growing
    watch: Watch | None = None  # told of raw predictions of the model's rows, where it copies them


Turns = Generator[None, None, None]
Grow = Callable[[Model], Generator[None, None, list[Tree]]]


def boost_together(
    coded: CodedMatrix,
    models: Sequence[Callable[[Grow], Turns]],
    thresholds: Thresholds,
    run: Runner,
    n_threads: int = 1,
    cancelled: Callable[[], bool] = lambda: False,
    min_rows: int = 1,
) -> None:
    """Grow several models from the codes of one table.

    Each of `models` is called once, on any thread, in their order. It makes a `Model`, and asks
    ``yield from grow(model)`` for its trees, iteration by iteration. Its turns may be those of
    different threads. `run` gets one task for each thread, and begins them in their order without
    waiting for one to end. The first one leads where there is one model; the others end when it
    has. `cancelled` is asked before each iteration; True ends all growth. All models have
    `min_rows` on each side of a split, at least: sparse columns that store fewer are left out.

    Costs what the models cost one by one. Memory: all of `boost` for each model that grows, of
    which there are fewer than twice the threads.
    """
    team = Team()
    of_a_model = max(1, n_threads // max(1, len(models)))
    common = CommonBlocks(coded, min_rows, of_a_model, is_of_one=len(models) == 1)

    def begin(number: int) -> Turns:
        def grow(model: Model) -> Generator[None, None, list[Tree]]:
            rows, blocks = common.of_model(model)
            booster = Booster(rows, model.growing, team, blocks)
            made: list[Tree] = []
            yield from grow_model(booster, thresholds, made, cancelled, model.watch)
            return made

        return models[number](grow)

    turns = TurnTaking(len(models), n_threads, begin, team)
    try:
        run([turns.lead, *[team.help] * (n_threads - 1)])
    finally:
        team.dismiss()  # whoever helps a model that nobody leads any more


class CommonBlocks:
    """The codes by row of a table, which are made when the first model asks for them.

    `min_rows` is as for `boost_together`. Each model has `n_threads`: those of a tree have a block
    each. Where there `is_of_one` model, it copies its rows of sparse columns, too.
    """

    def __init__(
        self, coded: CodedMatrix, min_rows: int, n_threads: int = 1, is_of_one: bool = False
    ) -> None:
        self._coded, self._min_rows, self._n_threads = coded, min_rows, n_threads
        self._copies = is_of_one or len(coded.sparse_rows) == 0
        self._blocks: ColumnBlocks | None = None
        self._lock = threading.Lock()

    def of_model(self, model: Model) -> tuple[BoostedRows, ColumnBlocks]:
        """The rows and the codes that a model is grown from: its own, or those of all models."""
        rows = model.rows
        of_a_tree = max(1, self._n_threads // model.growing.n_trees)
        if rows.chosen is not None and self._copies and model.growing.subsample == 1.0:
            rows = rows.alone()
            is_large = rows.coded.u8.nbytes >= TAKEN_BYTES
            return rows, ColumnBlocks(rows.coded, self._min_rows, of_a_tree, is_large)
        with self._lock:
            if self._blocks is None:
                self._blocks = ColumnBlocks(self._coded, self._min_rows, of_a_tree)
            return rows, self._blocks


class TurnTaking:
    """Models that the members of a team grow to their end, the last ones in turns.

    The last ``n_threads + n_models % n_threads`` models take turns. ``begin(number)`` begins a
    model, whose turns the generator takes. The team is closed when all models are grown.
    """

    def __init__(
        self, n_models: int, n_threads: int, begin: Callable[[int], Turns], team: Team
    ) -> None:
        self._most_begun = n_threads + n_models % n_threads
        self._first_of_turns = n_models - self._most_begun
        self._begin, self._team = begin, team
        self._begun: dict[int, Turns] = {}
        self._n_new = self._n_left = n_models  # of the former, nobody has begun any
        self._lock = threading.Lock()
        if n_models == 0:
            team.close()
        for number in range(1, n_models):
            team.put(partial(self._go_on, number))

    def lead(self) -> None:
        """Grow the first model, then help with what there is; the others only help."""
        try:
            if self._n_left > 0:
                self._go_on(0)
        except BaseException:
            self._team.dismiss()
            raise
        self._team.help()

    def _go_on(self, number: int) -> None:
        """Grow a model to the end of its turn, or to its own."""
        with self._lock:
            if number not in self._begun:
                self._begun[number] = self._begin(number)
                self._n_new -= 1
            turns = self._begun[number]
        for _turn in turns:
            if self._makes_room(number):
                self._team.put(partial(self._go_on, number))
                return
        with self._lock:
            del self._begun[number]
            self._n_left -= 1
            if self._n_left == 0:
                self._team.close()

    def _makes_room(self, number: int) -> bool:
        """Whether a model waits for its next turn, because another one waits for a thread."""
        with self._lock:
            if number < self._first_of_turns or self._team.n_waiting == 0:
                return False
            return self._n_new == 0 or len(self._begun) < self._most_begun
