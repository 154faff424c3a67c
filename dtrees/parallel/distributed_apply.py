"""Rows of a table whose codes are not here, walked down trees where their codes are.

Who validates asks which leaves the held-out rows of a model are in, or what the model says of them.
In this process that is read from the codes (`dtrees.core.predict.binned.CodedRows`). Codes that
stay in their partitions (`dtrees.parallel.coded_partitions.CodedPartitions`) are those of the
blocks that a growth has left on the workers, while they are kept, or are made once more.
All models are answered in one pass over them::

    client    trees of all models ──▶ one result, sent from worker to worker
              rows of each model  ──▶ a bit per row of a partition, or a few numbers

    worker    codes of a partition, rows ──▶ walk ──▶ leaves, in one to four bytes each
                                             ──▶ or sums of the values of the leaves, tree by tree

    client    answers, in the order in which the rows were asked for

Values of a forest are added up on the workers, in the order of the trees: the bits of a prediction.
What is large goes in *loads*: some trees at a time, so that neither messages nor what workers hold
grows with the forest. Sums that are not complete wait on the workers for the next trees.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import uuid4

import dask
import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.core.model.tree import Tree
from dtrees.core.predict.binned import Asked, CodedRows, LeafLookup
from dtrees.parallel.block_tasks import StoredCodes
from dtrees.parallel.coded_partitions import CodedPartitions, blocks_at_hand
from dtrees.parallel.executors import Executor, run_with_retries
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.replicated import pack, unpack
from dtrees.parallel.tasks import identity
from dtrees.typing import Runner, serial

NODE_BYTES = 40  # of a node on the wire, about
LOAD_BYTES = 64 * 2**20  # of trees that are on the way at a time
ANSWER_BYTES = 256 * 2**20  # of answers that come at a time


@dataclass(frozen=True, eq=False)
class TreeRange:
    """Trees ``first:last`` of a request, by its number; its rows in a partition walk down them."""

    number: int
    first: int
    last: int


def loads(asked: Sequence[Asked], with_values: bool) -> Iterator[list[TreeRange]]:
    """Trees that are on the way together."""
    load: list[TreeRange] = []
    n_bytes = n_answers = 0
    for number, (trees, rows) in enumerate(asked):
        first = 0
        for place, tree in enumerate(trees):
            size = NODE_BYTES * tree.node_count
            width = 8 * tree.n_values if with_values else narrow_type(tree).itemsize
            answer = len(rows) * (0 if with_values and place > first else width)
            is_full = n_bytes + size > LOAD_BYTES or n_answers + answer > ANSWER_BYTES
            if is_full and (load or place > first):
                if place > first:
                    load.append(TreeRange(number, first, place))
                yield load
                load, first, n_bytes, n_answers = [], place, 0, 0
            n_bytes += size
            n_answers += answer
        if len(trees) > first:
            load.append(TreeRange(number, first, len(trees)))
    if load:
        yield load


def narrow_type(tree: Tree) -> np.dtype:
    """The narrowest type of the numbers of its leaves."""
    return np.min_scalar_type(tree.node_count - 1)


class RequestedRows:
    """Rows in any order, int64 (n,), that walk partition by partition."""

    def __init__(self, rows: np.ndarray) -> None:
        rows = np.asarray(rows, dtype=np.int64)
        self._order = None
        if len(rows) > 1 and (rows[1:] <= rows[:-1]).any():
            rows, self._order = np.unique(rows, return_inverse=True)
        self._rows = rows

    def of_part(self, first: int, length: int) -> np.ndarray:
        """The rows of a partition, as `named`."""
        start, end = np.searchsorted(self._rows, (first, first + length))
        return named(self._rows[start:end] - first, length)

    def in_order(self, answers: np.ndarray) -> np.ndarray:
        """Answers of ascending rows, as they were asked for."""
        return answers if self._order is None else answers[self._order]


def named(rows: np.ndarray, length: int) -> np.ndarray:
    """Ascending rows of a partition, as they are sent: numbers, or bits where these are less.

    uint32 (n,); or uint8 (ceil(length / 8),), with a bit for each row of the partition.
    """
    if 4 * len(rows) <= length // 8:
        return rows.astype(np.uint32)
    is_asked = np.zeros(length, dtype=bool)
    is_asked[rows] = True
    return np.packbits(is_asked)


def numbers_of(sent: np.ndarray, length: int) -> np.ndarray:
    """The rows that `named` has named, int64 (n,)."""
    if sent.dtype == np.uint32:
        return sent.astype(np.int64)
    return np.flatnonzero(np.unpackbits(sent, count=length))


BLOCK_BYTES = 32 * 2**20  # of codes that a task walks, at most, where partitions are not larger
MOST_TASKS = 64  # or so, where partitions are many and small
PIECE_BYTES = 4 * 2**20  # of trees in a graph
ROWS_BYTES = 4 * 2**20  # of rows that a graph names


class PartitionedRows(LeafLookup):
    """The rows of a coded table that stays in its partitions, as `CodedRows`.

    `stats` are told what was lost on the way.
    """

    is_here = False

    def __init__(self, parts: CodedPartitions, stats: FitStatistics | None = None) -> None:
        self.parts = parts
        self._stats = stats
        self._at_hand: dict[tuple[str, int], list[tuple[Asked, Any]]] = {}

    def bring(self, asked: Sequence[Asked]) -> None:
        """Fetch the leaves that will be asked for, of all of these rows in one pass.

        Each of the rows goes down each of its trees. An answer is kept until it is taken.
        """
        answers = walk_parts(self.parts, asked, stats=self._stats)
        for (trees, rows), found in zip(asked, answers, strict=True):
            for tree, leaves in zip(trees, found, strict=True):
                self._keep("leaves", ((tree,), rows), leaves)

    def bring_values(self, asked: Sequence[Asked], starts: Sequence[float] | None = None) -> None:
        """The same for what models say of rows."""
        starts = [0.0] * len(asked) if starts is None else starts
        answers = walk_parts(self.parts, asked, starts=starts, stats=self._stats)
        for one, (total,) in zip(asked, answers, strict=True):
            self._keep("values", one, total)

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows, as `CodedRows.leaves`; a pass over the codes, if it is not at hand."""
        leaves: np.ndarray = self._taken("leaves", ((tree,), rows), self.bring)
        return leaves.astype(np.intp)

    def sums(
        self, trees: Sequence[Tree], rows: np.ndarray, run: Runner, start: float = 0.0
    ) -> np.ndarray:
        """Values of the leaves of some rows, added up, as `CodedRows.sums`."""
        bring = partial(self.bring_values, starts=[start])
        total: np.ndarray = self._taken("values", (trees, rows), bring)
        return total

    def means(self, trees: Sequence[Tree], rows: np.ndarray) -> np.ndarray:
        """Means of the leaves of some rows, as `CodedRows.means`; a pass for all trees, at most."""
        if len(trees) > 0 and self._found("leaves", ((trees[0],), rows)) is None:
            self.bring([(trees, rows)])
        return super().means(trees, rows)

    def _keep(self, what: str, asked: Asked, answer: Any) -> None:
        self._at_hand.setdefault((what, id(asked[0][0])), []).append((asked, answer))

    def _taken(self, what: str, asked: Asked, bring: Callable[[Sequence[Asked]], None]) -> Any:
        while (place := self._found(what, asked)) is None:
            bring([asked])
        _, answer = self._at_hand[what, id(asked[0][0])].pop(place)
        return answer

    def _found(self, what: str, asked: Asked) -> int | None:
        """Where an answer is at hand."""
        trees, rows = asked
        for place, ((of, those), _) in enumerate(self._at_hand.get((what, id(trees[0])), [])):
            if len(of) == len(trees) and np.array_equal(those, rows):
                return place
        return None


def walk_parts(
    parts: CodedPartitions,
    asked: Sequence[Asked],
    *,
    starts: Sequence[float] | None = None,
    stats: FitStatistics | None = None,
) -> list[list[np.ndarray]]:
    """Let rows walk down trees, in one pass over the codes; answers for each that was asked for.

    These are the leaves of each tree, unsigned integers (n,) in the narrowest type; or, with what
    sums start from, the sum over all trees alone, float64 (n, n_values). Raises ClusterError where
    a Dask cluster is in force and cannot be used, or loses results too often.
    """
    with_values = starts is not None
    sides = [RequestedRows(rows) for _, rows in asked]
    per_row = max(1, parts.n_bytes // max(1, parts.n_rows))
    n_rows = max(1, min(BLOCK_BYTES // per_row, -(-parts.n_rows // MOST_TASKS)))
    if not any(trees for trees, _ in asked):
        return [[] for _ in asked]

    def work(executor: Executor) -> list[list[np.ndarray]]:
        pass_ = _PassOverCodes(parts, n_rows, executor, starts)
        found: list[list[np.ndarray]] = [[] for _ in asked]
        for load in loads(asked, with_values):
            for item, answers in zip(load, pass_.walk(load, asked, sides), strict=True):
                before = [] if with_values else found[item.number]  # or the sum so far
                found[item.number] = before + answers
        return found

    found = run_with_retries(parts.collections, work, stats)
    return [[side.in_order(each) for each in of] for side, of in zip(sides, found, strict=True)]


class _PassOverCodes:
    """Codes that are made once, and walked load by load."""

    def __init__(
        self,
        parts: CodedPartitions,
        n_rows: int,
        executor: Executor,
        starts: Sequence[float] | None,
    ) -> None:
        self._executor, self._starts = executor, starts
        self._name, self._numbers = uuid4().hex, itertools.count()
        blocks: list[tuple[Any, int]] = blocks_at_hand(parts, getattr(executor, "client", None))
        groups = blocks or parts.groups(n_rows)
        ends = np.cumsum([length for _, length in groups]).tolist()
        self._parts = [
            (end - length, length) for (_, length), end in zip(groups, ends, strict=True)
        ]
        hold = dask.delayed(identity, pure=False)
        self._codes = [block for block, _ in blocks] or executor.hold(
            [hold(codes, dask_key_name=self._key("held-codes")) for codes, _ in groups]
        )
        self._before: list[Any] = [None] * len(groups)

    def walk(
        self,
        load: Sequence[TreeRange],
        asked: Sequence[Asked],
        sides: Sequence[RequestedRows],
    ) -> list[list[np.ndarray]]:
        """Answers to a load, with those of all partitions one behind the other."""
        trees = [asked[item.number][0][item.first : item.last] for item in load]
        held = self._sent([tree for some in trees for tree in some])
        places = range(len(self._parts))
        sent: list[tuple[int, list[np.ndarray]]] = []
        found: list[list[list[np.ndarray]]] = []
        n_bytes = 0
        for place in places:
            rows = [sides[item.number].of_part(*self._parts[place]) for item in load]
            sent.append((place, rows))
            n_bytes += sum(each.nbytes for each in rows)
            if n_bytes > ROWS_BYTES or place == places[-1]:
                found += self._walk(load, sent, held)
                sent, n_bytes = [], 0
        of_items = [zip(*of_parts, strict=True) for of_parts in zip(*found, strict=True)]
        return [[np.concatenate(each) for each in of_parts] for of_parts in of_items]

    def _sent(self, trees: Sequence[Tree]) -> list[Any]:
        """Trees as bytes on the workers, in pieces that a graph may have."""
        whole = pickle.dumps(pack(trees), protocol=5)
        pieces = [whole[i : i + PIECE_BYTES] for i in range(0, len(whole), PIECE_BYTES)]
        held = []
        for piece in pieces:
            key = self._key("trees-to-walk")
            held += self._executor.hold([dask.delayed(piece, name=key, traverse=False)])
        return held

    def _walk(
        self,
        load: Sequence[TreeRange],
        sent: Sequence[tuple[int, list[np.ndarray]]],
        trees: Sequence[Any],
    ) -> list[list[list[np.ndarray]]]:
        """Answers of some partitions, each of which has one for each item."""
        executor, starts = self._executor, self._starts
        own = None if starts is None else [starts[item.number] for item in load]
        n_trees = [item.last - item.first for item in load]
        walk = dask.delayed(walk_codes_of_part, pure=False)
        tasks = []
        for place, rows in sent:
            before = None
            if starts is not None and load[0].first > 0:
                before = executor.as_argument(self._before[place])
            named = dask.delayed(rows, name=self._key("rows-of-part"), traverse=False)
            tasks.append(
                walk(
                    executor.as_argument(self._codes[place]),
                    named,
                    [executor.as_argument(piece) for piece in trees],
                    n_trees,
                    own,
                    before,
                    dask_key_name=self._key("walk-rows"),
                )
            )
        held = executor.hold(tasks)
        for (place, _), answer in zip(sent, held, strict=True):
            self._before[place] = answer
        return executor.fetch(held)

    def _key(self, name: str) -> tuple[str, int]:
        """A new key, of few groups."""
        return f"{name}-{self._name}", next(self._numbers)


def walk_codes_of_part(
    codes: StoredCodes | Sequence[CodedMatrix],
    named: Sequence[np.ndarray],
    pieces: Sequence[bytes],
    n_trees: Sequence[int],
    starts: Sequence[float] | None,
    before: Sequence[list[np.ndarray]] | None,
) -> list[list[np.ndarray]]:
    """What a task does: rows of a partition go down the trees of some models.

    `codes` and `named` are those of the partition, the latter for each model. `pieces` joined are
    the pickle of all packed trees, `n_trees` of each model. `starts` is what sums begin with; None:
    leaves are asked for. `before` is what the task before has returned: its last sum is that of the
    first model's trees before these. Returns for each model a list of leaves, by tree, or of the
    sum of its values, float64 (n, n_values).
    """
    codes = [codes.coded] if isinstance(codes, StoredCodes) else codes
    walked = [CodedRows(aligned(each)) for each in codes]
    ends = np.cumsum([each.n_rows for each in codes])
    trees = iter(unpack(pickle.loads(b"".join(pieces))))
    answers: list[list[np.ndarray]] = []
    for number, (rows, n) in enumerate(zip(named, n_trees, strict=True)):
        some = list(itertools.islice(trees, n))
        asked = numbers_of(rows, int(ends[-1]))
        bounds = [0, *np.searchsorted(asked, ends).tolist()]
        of_codes = [
            (coded, asked[begin:end] - first, slice(begin, end))
            for coded, first, (begin, end) in zip(
                walked, [0, *ends[:-1]], itertools.pairwise(bounds), strict=True
            )
        ]
        if starts is not None:
            total = np.full((len(asked), some[0].n_values), starts[number])
            if number == 0 and before is not None:
                total[:] = before[-1][0]
            for coded, local, place in of_codes:
                coded.add_values(some, local, total[place], serial)
            answers.append([total])
        else:
            answers.append(
                [
                    np.concatenate(
                        [coded.leaves(tree, local) for coded, local, _ in of_codes]
                    ).astype(narrow_type(tree))
                    for tree in some
                ]
            )
    return answers


def aligned(coded: CodedMatrix) -> CodedMatrix:
    """Codes whose arrays the kernels can read: those off the wire may start anywhere."""
    arrays = {name: each for name, each in vars(coded).items() if isinstance(each, np.ndarray)}
    if all(array.flags.aligned for array in arrays.values()):
        return coded
    fit: dict[str, Any] = {
        name: np.require(array, requirements=["A"]) for name, array in arrays.items()
    }
    return replace(coded, **fit)
