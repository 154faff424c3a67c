"""Rows in one place, from which trees are grown by one call each.

    finish    the tree of all rows that count
    sets      the trees of several training sets, which share what they can

Rows in several places are `dtrees.core.stores.blocks.block`, and grow in rounds
(`dtrees.core.grow.rounds`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError

import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import Scale, scale_of
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow._arena import Arena
from dtrees.core.grow._level_wise import LevelWiseBuilder
from dtrees.core.grow._shared import grow_together
from dtrees.core.grow._training_sets import TrainingSets
from dtrees.core.grow.assembly import join
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.grow.shared import Sets, can_share, numbers_of
from dtrees.core.membership.resampling import Resampling
from dtrees.core.stores._dataset import Dataset
from dtrees.typing import Runner, serial

MOST_ROWS = 2**32  # cells count rows in 32 bits
DEFAULT_TUNING = Tuning()


class DatasetSource:
    """Rows in this process.

    Parameters
    ----------
    coded : CodedMatrix
    target : Target
    rules : GrowthRules
    run : Runner, default=serial
        May have an event ``cancelled``, which ends growth with `CancelledError`.
    n_threads : int, default=1
        How many threads the work is cut for. The model does not depend on it.
    tuning : Tuning, default=Tuning()
    values : (float64, int64 (n_columns + 1,)) or None, default=None
        `CodeBook.code_values`, needed for random splits.
    pool : Arena or None, default=None
        Shared by the growths of a forest.
    """

    def __init__(
        self,
        coded: CodedMatrix,
        target: Target,
        rules: GrowthRules,
        *,
        run: Runner = serial,
        n_threads: int = 1,
        tuning: Tuning = DEFAULT_TUNING,
        values: tuple[np.ndarray, np.ndarray] | None = None,
        pool: Arena | None = None,
    ) -> None:
        assert target.n_rows < MOST_ROWS
        self.coded, self.target = coded, target
        self._rules = rules
        self._run = run
        self._n_threads = n_threads
        self._tuning = tuning
        self._event = getattr(run, "cancelled", None)
        self._values = values
        self._pool = Arena() if pool is None else pool

    def _cancelled(self) -> bool:
        return self._event is not None and self._event.is_set()

    def _raise_if_cancelled(self) -> None:
        if self._cancelled():
            raise CancelledError("growth was cancelled")

    def _piece(
        self, target: Target, rules: GrowthRules, scale: Scale, depth: int, path: int
    ) -> PartialTree:
        dataset = Dataset(
            self.coded, target, rules, scale, self._values, self._n_threads, alone=True
        )
        levels = LevelWiseBuilder(dataset, self._tuning, self._pool)
        found = levels.grow(self._run, self._n_threads, self._cancelled, depth, path)
        self._raise_if_cancelled()
        return join(found)

    def finish(self, depth: int = 0, path: int = 0, scale: Scale | None = None) -> PartialTree:
        """The whole subtree of a node that has all rows, in preorder.

        Parameters
        ----------
        depth, path : int, default=0
            Of the node; `path` is the key of its draws. A tree begins with 0.
        scale : Scale or None, default=None
            Of all rows of the tree, where these are the rows of one of its nodes; None: of the
            rows.
        """
        scale = scale_of([self.target], self._rules) if scale is None else scale
        return self._piece(self.target, self._rules, scale, depth, path)

    def sets(
        self,
        resampling: Resampling,
        rules: Sequence[GrowthRules],
        depth: int = 0,
        path: int = 0,
        scales: Sequence[Scale] | None = None,
    ) -> Iterator[PartialTree]:
        """The subtree of each training set in turn, in preorder, and by rules of its own.

        What grows together has grown before the first tree is handed over. The others grow when it
        is their turn, in the memory of those that are done with.

        Parameters
        ----------
        resampling : Resampling
            Every set has a cell once or not at all, and some weight.
        rules : sequence of GrowthRules
            They differ in `min_samples_split`, `min_samples_leaf` and `min_weight_leaf`.
        depth, path
            As for `finish`.
        scales : sequence of Scale or None, default=None
            Of each set; None: of its rows.
        """
        sets = Sets(self.target, rules, resampling, scales)
        pieces: dict[int, PartialTree] = {}
        if can_share(self.coded, rules[0]):
            for group in sets.groups(numbers_of(self.coded, self.target)):
                pieces.update(self._together(sets, group, depth, path))
        for number in range(resampling.n_sets):
            if number not in pieces:
                own = sets.target(number), rules[number], sets.scales[number]
                pieces[number] = self._piece(*own, depth, path)
            yield pieces.pop(number)  # nothing is left of it here

    def _together(
        self, sets: Sets, group: list[int], depth: int, path: int
    ) -> Iterator[tuple[int, PartialTree]]:
        """The numbers and trees of sets that share a growth."""
        rules = sets.rules[0]
        dataset = Dataset(self.coded, self.target, rules, sets.scales[group[0]], alone=True)
        most_columns = rules.max_features
        draws = most_columns is not None and most_columns < self.coded.n_columns
        times = self.target.times if draws and dataset.is_weighted else None
        cells, has = sets.resampling.cells_of(group)
        tuned = self._tuning.counted_rows, self._tuning.shared_rows
        shared = TrainingSets(dataset, cells, has, *sets.limits_of(group), times, *tuned)
        threads = self._run, self._n_threads, self._cancelled, self._tuning
        grown = grow_together(shared, self._pool, *threads, depth, path)
        self._raise_if_cancelled()
        for place, number in enumerate(group):
            found = grown[place]
            grown[place] = []  # records are there twice for one set at a time
            yield number, found[0] if len(found) == 1 else join(found)  # one is in preorder
