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
from dtrees.core.grow._arena import Pool
from dtrees.core.grow._level_wise import Levels
from dtrees.core.grow.assembly import Piece, join
from dtrees.core.grow.shared import pieces_of, pieces_of_sets
from dtrees.core.membership.resampling import Resampling
from dtrees.core.stores._dataset import Shard
from dtrees.typing import Runner, serial

MOST_ROWS = 2**32  # cells count rows in 32 bits
DEFAULT_TUNING = Tuning()


class ShardSource:
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
        `CodeBook.code_values`, needed for random cuts.
    pool : Pool or None, default=None
        Shared by the growths of a forest.
    scale : Scale or None, default=None
        Of all rows of the tree, where these are the rows of one of its nodes; None: of the rows.
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
        pool: Pool | None = None,
        scale: Scale | None = None,
    ) -> None:
        assert target.n_rows < MOST_ROWS
        self.coded, self.target = coded, target
        self._rules = rules
        self._run = run
        self._n_threads = n_threads
        self._tuning = tuning
        self._event = getattr(run, "cancelled", None)
        self._values = values
        self._pool = Pool() if pool is None else pool
        self._scale = scale

    def _cancelled(self) -> bool:
        return self._event is not None and self._event.is_set()

    def finish(self, depth: int = 0, path: int = 0) -> Piece:
        """The whole subtree of a node that has all rows, in preorder.

        Parameters
        ----------
        depth, path : int, default=0
            Of the node; `path` is the key of its draws. A tree begins with 0.
        """
        scale = scale_of([self.target], self._rules) if self._scale is None else self._scale
        shard = Shard(
            self.coded, self.target, self._rules, scale, self._values, self._n_threads, alone=True
        )
        pieces = Levels(shard, self._tuning, self._pool).grow(
            self._run, self._n_threads, self._cancelled, depth, path
        )
        if self._cancelled():
            raise CancelledError("growth was cancelled")
        return join(pieces_of(pieces))

    def sets(
        self,
        resampling: Resampling,
        rules: Sequence[GrowthRules],
        depth: int = 0,
        path: int = 0,
        scales: Sequence[Scale] | None = None,
    ) -> Iterator[Piece]:
        """The subtree of each training set, in preorder, and by rules of its own.

        Parameters
        ----------
        resampling : Resampling
        rules : sequence of GrowthRules
        depth, path
            As for `finish`.
        scales : sequence of Scale or None, default=None
            Of each set; None: of its rows.
        """
        return pieces_of_sets(
            self.coded,
            self.target,
            rules,
            resampling,
            run=self._run,
            n_threads=self._n_threads,
            tuning=self._tuning,
            values=self._values,
            pool=self._pool,
            cancelled=self._cancelled,
            depth=depth,
            path=path,
            scales=scales,
        )
