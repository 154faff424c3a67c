"""Where rows are: the protocol that the grower talks to.

A source holds rows in one or more places, its *shards*. The grower asks it for sums and histograms
of open nodes, tells it which split a node got, and gives away whole subtrees as soon as their rows
are in one place. It never sees a row.

    root        sums of all rows
    histogram   statistics by column and code, summed over the shards
    advance     route the rows of a node to its children; the sums of both
    gathers     are the rows of a node in one place, or few enough to be brought there?
    finish      the whole subtree of such a node, in one call
    sets        the trees of several training sets, which share what they can

A node is named by the key of its path from the root. Histograms of shards are integers and add up
in any order, so a model does not depend on how rows are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core._levels import Levels
from dtrees.core._pool import Pool
from dtrees.core._shard import Shard, child_path
from dtrees.core.assembly import Piece, join
from dtrees.core.frontier import FoundSplit, OpenNode, Sums
from dtrees.core.resampling import Resampling
from dtrees.core.rules import GrowthRules
from dtrees.core.scale import scale_of
from dtrees.core.shared import pieces_of_sets
from dtrees.core.tuning import Tuning
from dtrees.typing import Runner, serial

ROOT_PATH = 0
MOST_ROWS = 2**32  # cells count rows in 32 bits
DEFAULT_TUNING = Tuning()


class Source(Protocol):
    """What `dtrees.core.grower.grow` needs."""

    coded: CodedMatrix  # any part: its columns are those of all
    target: Target  # any part: its units are those of all

    @property
    def splitter(self) -> Shard:
        """Any shard: it searches the histograms of all."""

    def root(self) -> Sums:
        """Sums of all rows that count."""

    def histogram(self, nodes: Sequence[OpenNode]) -> list[np.ndarray]:
        """int64 histograms of the nodes, as `Shard.histogram`, over all shards."""

    def advance(self, node: OpenNode, found: FoundSplit) -> tuple[Sums, Sums]:
        """Route the rows of a node; sums of the left and the right child."""

    def gathers(self, node: OpenNode) -> bool:
        """Whether `finish` is the way to go on below this node."""

    def finish(self, node: OpenNode) -> Piece:
        """The whole subtree of a node, in preorder."""

    def sets(self, resampling: Resampling, rules: Sequence[GrowthRules]) -> list[Piece]:
        """The whole tree of each training set, in preorder, and by rules of its own."""


class ShardSource:
    """Rows in this process, in one or more shards.

    Parameters
    ----------
    parts : sequence of (CodedMatrix, Target)
        Of the same codebook and units.
    rules : GrowthRules
    run : Runner, default=serial
        May have an event ``cancelled``, which ends growth with `CancelledError`.
    n_threads : int, default=1
        How many threads the work is cut for. The model does not depend on it.
    gather_rows : int, default=65,536
        Nodes of at most so many rows are brought to one place and finished there.
    tuning : Tuning, default=Tuning()
    values : (float64, int64 (n_columns + 1,)) or None, default=None
        `CodeBook.code_values`, needed for random cuts.
    pool : Pool or None, default=None
        Shared by the growths of a forest.
    """

    def __init__(
        self,
        parts: Sequence[tuple[CodedMatrix, Target]],
        rules: GrowthRules,
        *,
        run: Runner = serial,
        n_threads: int = 1,
        gather_rows: int = 65_536,
        tuning: Tuning = DEFAULT_TUNING,
        values: tuple[np.ndarray, np.ndarray] | None = None,
        pool: Pool | None = None,
    ) -> None:
        assert sum(target.n_rows for _, target in parts) < MOST_ROWS
        self._parts = list(parts)
        self._rules = rules
        self._run = run
        self._n_threads = n_threads
        self._gather_rows = gather_rows
        self._tuning = tuning
        self._event = getattr(run, "cancelled", None)
        self._scale = scale_of([target for _, target in parts], rules)
        self._values = values
        self._pool = Pool() if pool is None else pool
        self._rows: dict[int, list[np.ndarray]] = {}
        self.coded, self.target = self._parts[0]

    @cached_property
    def _shards(self) -> list[Shard]:
        n_threads = self._n_threads if len(self._parts) == 1 else None
        return [
            Shard(coded, target, self._rules, self._scale, self._values, n_threads)
            for coded, target in self._parts
        ]

    @property
    def splitter(self) -> Shard:
        """Searches histograms, whatever shard they come from."""
        return self._shards[0]

    def _cancelled(self) -> bool:
        return self._event is not None and self._event.is_set()

    def root(self) -> Sums:
        """Sums of all rows that count."""
        if len(self._shards) == 1:  # all at once, below: nobody asks for the rows
            return self._shards[0].total()
        rows = [shard.rows() for shard in self._shards]
        self._rows = {ROOT_PATH: rows}
        return self._sums(rows)

    def sets(self, resampling: Resampling, rules: Sequence[GrowthRules]) -> list[Piece]:
        """Grow the tree of each training set; rows are in one shard."""
        assert len(self._parts) == 1, "sets of rows in several places are not grown yet"
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
        )

    def _sums(self, rows: list[np.ndarray]) -> Sums:
        sums = [shard.sums(mine) for shard, mine in zip(self._shards, rows, strict=True)]
        total = sums[0]
        for more in sums[1:]:
            total = total + more
        return total

    def histogram(self, nodes: Sequence[OpenNode]) -> list[np.ndarray]:
        """Histograms of the nodes, summed over the shards. O(rows of the nodes * columns)."""

        def of_node(node: OpenNode) -> np.ndarray:
            rows = self._rows[node.path]
            total = self._shards[0].histogram(rows[0])
            for shard, mine in zip(self._shards[1:], rows[1:], strict=True):
                total += shard.histogram(mine)
            return total

        return self._run([partial(of_node, node) for node in nodes])

    def advance(self, node: OpenNode, found: FoundSplit) -> tuple[Sums, Sums]:
        """Route the rows of a node, shard by shard."""
        parted = [
            shard.route(mine, found)
            for shard, mine in zip(self._shards, self._rows.pop(node.path), strict=True)
        ]
        left, right = [rows for rows, _ in parted], [rows for _, rows in parted]
        self._rows[child_path(node.path, True)] = left
        self._rows[child_path(node.path, False)] = right
        return self._sums(left), self._sums(right)

    def gathers(self, node: OpenNode) -> bool:
        """One shard holds everything; of several, nodes of few rows are gathered."""
        return len(self._shards) == 1 or node.sums.n <= self._gather_rows

    def finish(self, node: OpenNode) -> Piece:
        """Grow the whole subtree from the rows of the node."""
        shard = self._shards[0]
        if len(self._shards) > 1:
            rows = self._rows.pop(node.path)
            coded = CodedMatrix.stack(
                [part.take(mine) for (part, _), mine in zip(self._parts, rows, strict=True)]
            )
            target = Target.stack(
                [part.take(mine) for (_, part), mine in zip(self._parts, rows, strict=True)]
            )
            shard = Shard(coded, target, self._rules, self._scale, self._values, self._n_threads)
        pieces = Levels(shard, self._tuning, self._pool).grow(
            self._run, self._n_threads, self._cancelled, node.depth, node.path
        )
        if self._cancelled():
            raise CancelledError("growth was cancelled")
        return join([Piece(piece.nodes, piece.statistics, piece.words) for piece in pieces])
