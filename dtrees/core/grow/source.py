"""Rows in one place, from which trees are grown by one call each.

Rows in several places are `dtrees.core.stores.blocks.block`, and grow in rounds
(`dtrees.core.grow.rounds`).
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import CancelledError
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.data.scale import Scale, scale_of
from dtrees.core.data.tuning import Tuning
from dtrees.core.grow._single_tree import Arena, grow_piece
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.stores._dataset import Dataset
from dtrees.typing import Runner, serial

# Bounds of the values of a node's leaves, and the bits of the sets of columns that are left.
Above = tuple[float | None, float | None, bytes | None]
FREE: Above = (None, None, None)
CANCELLED = "growth was cancelled"


@dataclass(frozen=True, eq=False)
class DatasetSource:
    """Rows in this process.

    `run` may have an event ``cancelled``, which ends growth with `CancelledError`. The work is
    divided for `n_threads`, on which the model does not depend. `values` is `CodeBook.code_values`,
    needed for random splits. The arena is shared by the growths of a forest. `scale` is that of all
    rows of the tree, where these are the rows of one of its nodes. `work` is told, by this thread,
    what several training sets share (`dtrees.core.grow.shared`).
    """

    coded: CodedMatrix
    target: Target
    rules: GrowthRules
    _: KW_ONLY
    run: Runner = serial
    n_threads: int = 1
    tuning: Tuning = field(default_factory=Tuning)
    values: tuple[np.ndarray, np.ndarray] | None = None
    arena: Arena = field(default_factory=Arena)
    scale: Scale | None = None
    work: Counter[str] | None = None

    def cancelled(self) -> bool:
        """Whether nobody waits for the growth any more."""
        event = getattr(self.run, "cancelled", None)
        return event is not None and event.is_set()

    def finish(self, depth: int = 0, path: int = 0, above: Above = FREE) -> PartialTree:
        """The whole subtree, in preorder, of a node at some `depth` that has all rows.

        `path` is the key of its draws; a tree begins with 0. `above` is what its ancestors allow
        it.
        """
        scale = scale_of(self.target, self.rules) if self.scale is None else self.scale
        rows = self.coded, self.target, self.rules, scale, self.values
        dataset = Dataset(*rows, single=True, alone=True)
        how = self.tuning, self.arena, self.run, self.n_threads, self.cancelled
        piece: PartialTree | None = grow_piece(dataset, *how, depth, path, above)
        if piece is None:
            raise CancelledError(CANCELLED)
        dataset.raise_error()
        return piece
