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

Who scores the rows of a side of a split need not see them. One worker gets the answers of the side,
with what else belongs to its rows, and says what a function makes of them::

    codes, y, fold of each partition ──▶ answers, y of the side ──┐
                                         ...                      ├─▶ one worker ──▶ a score
                                         answers, y of the side ──┘
"""

from __future__ import annotations

import itertools
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import uuid4

import cloudpickle
import dask
import numpy as np

from dtrees._forks import LockOfObject
from dtrees._warnings import warn
from dtrees.coding.coded import CodedMatrix
from dtrees.core.model.tree import Tree
from dtrees.core.predict.binned import Asked, CodedRows, LeafLookup
from dtrees.parallel.block_tasks import StoredCodes
from dtrees.parallel.coded_partitions import CodedPartitions, blocks_at_hand
from dtrees.parallel.executors import Executor, run_with_retries
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.replicated import pack, unpack
from dtrees.parallel.row_columns import RowColumns, as_they_are
from dtrees.parallel.tasks import identity
from dtrees.typing import Runner, serial

NODE_BYTES = 40  # of a node on the wire, about
LOAD_BYTES = 64 * 2**20  # of trees that are on the way at a time
ANSWER_BYTES = 256 * 2**20  # of answers that come at a time
ALL = slice(None)  # answers are in the order in which rows were asked for


@dataclass(frozen=True, eq=False)
class TreeRange:
    """Trees ``first:last`` of a request, by its number; its rows in a partition walk down them."""

    number: int
    first: int
    last: int


def loads(walks: Sequence[Walk]) -> Iterator[list[TreeRange]]:
    """Trees that are on the way together."""
    load: list[TreeRange] = []
    n_bytes = n_answers = 0
    for number, walk in enumerate(walks):
        first, trees = 0, walk.trees
        for place, tree in enumerate(trees):
            size = NODE_BYTES * tree.node_count
            answer = walk.rows.n_rows * walk.width(tree, place == first)
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
        self.n_rows = len(rows)
        self.order: slice | np.ndarray = ALL  # of answers, which ascend
        if len(rows) > 1 and (rows[1:] <= rows[:-1]).any():
            rows, self.order = np.unique(rows, return_inverse=True)
        self._rows = rows

    def of_part(self, first: int, length: int) -> np.ndarray:
        """Those of a partition, as they are sent: numbers, or bits where these are less.

        uint32 (n,); or uint8 (ceil(length / 8),), with a bit for each row of the partition.
        """
        start, end = np.searchsorted(self._rows, (first, first + length))
        rows = self._rows[start:end] - first
        if 4 * len(rows) <= length // 8:
            return rows.astype(np.uint32)
        is_asked = np.zeros(length, dtype=bool)
        is_asked[rows] = True
        return np.packbits(is_asked)


@dataclass(frozen=True)
class RowsOfFold:
    """The rows of a fold, or all others (`is_in`), which are found where the rows are."""

    number: int
    is_in: bool
    n_rows: int  # about
    order = ALL

    def of_part(self, first: int, length: int) -> RowsOfFold:
        """What finds the rows of a partition."""
        return self


@dataclass(frozen=True, eq=False)
class Walk:
    """Rows that walk down trees."""

    trees: Sequence[Tree]
    rows: RequestedRows | RowsOfFold
    start: float | None = None  # what sums of values begin with; None: leaves are asked for

    def width(self, tree: Tree, is_first: bool) -> int:
        """Bytes of the answer of a row for one more tree."""
        if self.start is None:
            return narrow_type(tree).itemsize
        return 8 * tree.n_values if is_first else 0


def numbers_of(sent: Any, length: int, fold: np.ndarray | None = None) -> np.ndarray:
    """The rows of a partition that `RequestedRows` or `RowsOfFold` say, int64 (n,)."""
    if isinstance(sent, RowsOfFold):
        return np.flatnonzero((fold == sent.number) == sent.is_in)
    if sent.dtype == np.uint32:
        return sent.astype(np.int64)
    return np.flatnonzero(np.unpackbits(sent, count=length))


BLOCK_BYTES = 32 * 2**20  # of codes that a task walks, at most, where partitions are not larger
MOST_TASKS = 64  # or so, where partitions are many and small
PIECE_BYTES = 4 * 2**20  # of trees in a graph, one behind the other
GRAPH_BYTES = 4 * 2**20  # or so, of a graph: of rows that it names, and the like
MOST_JOINS = 16  # tasks that join sides, one after the other where these are more


class PartitionedRows(LeafLookup):
    """The rows of a coded table that stays in its partitions, as `CodedRows`.

    `parts` are `CodedPartitions`; None: all answers are at hand. `stats` are told what was lost on
    the way.
    """

    is_here = False

    def __init__(self, parts: Any, stats: FitStatistics | None = None) -> None:
        self.parts = parts
        self._stats = stats
        # by whether they are leaves, and the first tree: trees, rows and the answer
        self._at_hand: dict[tuple[bool, int], list[tuple[Sequence[Tree], np.ndarray, Any]]] = {}

    def bring(self, asked: Sequence[Asked], starts: Sequence[float | None] | None = None) -> None:
        """Fetch what will be asked for and is not at hand, of all rows in one pass.

        Each of the rows goes down each of its trees. An answer is kept until it is taken.
        """
        starts = [None] * len(asked) if starts is None else starts
        left = [
            (trees, rows, start)
            for (trees, rows), start in zip(asked, starts, strict=True)
            if trees and self._place(trees if start is not None else trees[:1], rows, start) is None
        ]
        walks = [Walk(trees, RequestedRows(rows), start) for trees, rows, start in left]
        found = walk_parts(self.parts, walks, stats=self._stats)
        for own, answers in zip(left, found, strict=True):
            self.keep(*own, answers)

    def keep(
        self, trees: Sequence[Tree], rows: np.ndarray, start: float | None, answers: Sequence[Any]
    ) -> None:
        """Have answers to a walk at hand, until they are taken."""
        asked = [(tree,) for tree in trees] if start is None else [trees]
        for some, answer in zip(asked, answers, strict=True):
            key = start is None, id(some[0])
            self._at_hand.setdefault(key, []).append((some, rows, answer))

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows, as `CodedRows.leaves`; a pass over the codes, if it is not at hand."""
        return self._taken((tree,), rows, None).astype(np.intp)

    def sums(
        self, trees: Sequence[Tree], rows: np.ndarray, run: Runner, start: float = 0.0
    ) -> np.ndarray:
        """Values of the leaves of some rows, added up, as `CodedRows.sums`."""
        return self._taken(trees, rows, start)

    def means(self, trees: Sequence[Tree], rows: np.ndarray) -> np.ndarray:
        """Means of the leaves of some rows, as `CodedRows.means`; a pass for all trees, at most."""
        self.bring([(trees, rows)])
        return super().means(trees, rows)

    def on_sides(self, sides: Sequence[Side], fold: Any, columns: Mapping[str, Any]) -> list[Any]:
        """What functions say of sides, each on one worker for it; in one pass over the codes.

        `columns` have a value for each row of the table, or are None: whatever `RowColumns` takes.
        So is `fold`, where rows are those of folds. Functions get the columns, of the rows of their
        side. What they say is small; their warnings are issued here. Raises what they raise, and
        ClusterError as `walk_parts`.
        """

        def work(executor: Executor) -> list[Any]:
            pass_ = _PassOverCodes(self.parts, executor)
            pass_.hold_columns({"fold": fold, **columns}, self._stats)
            joins: list[Any] = []
            held: list[Any] = []
            step = -(-len(sides) // MOST_JOINS)
            for first in range(0, len(sides), step):
                joins.append(pass_.join(sides[first : first + step]))
                if pass_.is_full:
                    held += executor.hold(joins)
                    joins, pass_.n_bytes = [], 0
            told = executor.fetch([*held, *executor.hold(joins)])
            return [said for of_group in told for said in of_group]

        found = []
        for said, error, heard in run_with_retries(self.parts.collections, work, self._stats):
            found.append(said)
            for text, category in heard:
                warn(text, category)
            if error is not None:
                raise pickle.loads(error)
        return found

    def _taken(self, trees: Sequence[Tree], rows: np.ndarray, start: float | None) -> np.ndarray:
        while (place := self._place(trees, rows, start)) is None:
            self.bring([(trees, rows)], [start])
        found: np.ndarray = self._at_hand[start is None, id(trees[0])].pop(place)[-1]
        return found

    def _place(self, trees: Sequence[Tree], rows: np.ndarray, start: float | None) -> int | None:
        """Where an answer is at hand; None: it is not."""
        at_hand = self._at_hand.get((start is None, id(trees[0])), [])
        for place, (of, those, _) in enumerate(at_hand):
            if len(of) == len(trees) and (those is rows or np.array_equal(those, rows)):
                return place
        return None


def walk_parts(
    parts: CodedPartitions, walks: Sequence[Walk], stats: FitStatistics | None = None
) -> list[list[np.ndarray]]:
    """Let rows walk down trees, in one pass over the codes; answers for each of the walks.

    These are the leaves of each tree, unsigned integers (n,) in the narrowest type; or, with what
    sums start from, the sum over all trees alone, float64 (n, n_values). Raises ClusterError where
    a Dask cluster is in force and cannot be used, or loses results too often.
    """
    if not any(walk.trees for walk in walks):
        return [[] for _ in walks]

    def work(executor: Executor) -> list[list[np.ndarray]]:
        pass_ = _PassOverCodes(parts, executor)
        found: list[list[np.ndarray]] = [[] for _ in walks]
        for load in loads(walks):
            told = executor.fetch(pass_.hold(pass_.walk(load, walks)))
            join_load(found, load, [answers for answers, _ in told], [w.start for w in walks])
        return found

    found = run_with_retries(parts.collections, work, stats)
    return [[each[walk.rows.order] for each in of] for walk, of in zip(walks, found, strict=True)]


@dataclass(frozen=True, eq=False)
class Side:
    """Rows of a side of a split, which walk, and a function of them.

    The function gets answers by walk, as `walk_parts` has them, and columns.
    """

    walks: Sequence[Walk]  # of the same rows; one at least
    function: Callable[[list[list[np.ndarray]], list[Any]], Any]


class _PassOverCodes:
    """Codes that are made once, and walked load by load."""

    def __init__(self, parts: CodedPartitions, executor: Executor) -> None:
        self._executor, self.n_rows = executor, parts.n_rows
        self._name, self._numbers = uuid4().hex, itertools.count()
        per_row = max(1, parts.n_bytes // max(1, parts.n_rows))
        n_rows = max(1, min(BLOCK_BYTES // per_row, -(-parts.n_rows // MOST_TASKS)))
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
        self._columns: list[Any] = [None] * len(groups)
        self.n_bytes = 0  # of a graph that is not sent yet
        self.is_full = False  # answers had better be joined before others walk

    def parts(self) -> list[tuple[Any, int, int]]:
        """Codes of each part, the number of its first row, and of its rows."""
        return [(codes, *own) for codes, own in zip(self._codes, self._parts, strict=True)]

    def hold_columns(self, columns: Mapping[str, Any], stats: FitStatistics | None) -> None:
        """Have what belongs to the rows where the parts are asked for it."""
        stats, cut_alike = FitStatistics() if stats is None else stats, cast(Any, self)
        own = RowColumns.of(cut_alike, columns, stats).each(as_they_are, "columns-of-part")
        n_bytes = sum(each.nbytes for each in columns.values() if isinstance(each, np.ndarray))
        step = max(1, GRAPH_BYTES * len(own) // max(1, n_bytes))
        some = [own[first : first + step] for first in range(0, len(own), step)]
        self._columns = [each for tasks in some for each in self._executor.hold(tasks)]

    def walk(
        self, load: Sequence[TreeRange], walks: Sequence[Walk], firsts: Sequence[int] = ()
    ) -> list[Any]:
        """Tasks that answer to a load, one for each part.

        `firsts` are places of the load, of whose rows the columns come along.
        """
        trees = [walks[item.number].trees[item.first : item.last] for item in load]
        sent = self._sent(pickle.dumps(pack([tree for some in trees for tree in some]), protocol=5))
        goes_on = load[0].first > 0 and walks[load[0].number].start is not None
        starts = [walks[item.number].start for item in load]
        n_trees = [item.last - item.first for item in load]
        walk = dask.delayed(walk_codes_of_part, pure=False)
        tasks = []
        for place, part in enumerate(self._parts):
            rows = [walks[item.number].rows.of_part(*part) for item in load]
            self.n_bytes += sum(getattr(each, "nbytes", 0) for each in rows)
            tasks.append(
                walk(
                    self._executor.as_argument(self._codes[place]),
                    dask.delayed(rows, name=self._key("rows-of-part"), traverse=False),
                    sent,
                    n_trees,
                    starts,
                    self._before[place] if goes_on else None,
                    self._executor.as_argument(self._columns[place]),
                    firsts,
                    dask_key_name=self._key("walk-rows"),
                )
            )
        return tasks

    def hold(self, tasks: Sequence[Any]) -> list[Any]:
        """Results of a load, where they are, some parts after the other if these are many."""
        step = max(1, GRAPH_BYTES * len(tasks) // max(1, self.n_bytes))
        self.n_bytes, found = 0, []
        for first in range(0, len(tasks), step):
            found += self._executor.hold(tasks[first : first + step])
        self._before = [self._executor.as_argument(each) for each in found]
        return found

    def join(self, sides: Sequence[Side]) -> Any:
        """A task that joins what is said of sides; what is large has walked before."""
        walks = [walk for side in sides for walk in side.walks]
        begins = set(np.cumsum([0, *(len(side.walks) for side in sides)]).tolist())
        functions = self._sent(cloudpickle.dumps([side.function for side in sides]))
        told: list[Any] = []
        own = list(loads(walks))
        for load in own:
            are_first = [item.first == 0 and item.number in begins for item in load]
            self._before = self.walk(load, walks, np.flatnonzero(are_first).tolist())
            if len(own) > 1 or self.n_bytes > GRAPH_BYTES:
                self.hold(self._before)
            told += self._before
        self.is_full = len(own) > 1 or self.n_bytes > GRAPH_BYTES
        join = dask.delayed(join_sides, pure=False)
        return join(
            functions,
            [len(side.walks) for side in sides],
            [walk.start for walk in walks],
            [side.walks[0].rows.order for side in sides],
            own,
            told,
            dask_key_name=self._key("join-sides"),
        )

    def _sent(self, whole: bytes) -> list[Any]:
        """Bytes as arguments of tasks, in pieces that a graph may have; several are there first."""
        pieces = [whole[i : i + PIECE_BYTES] for i in range(0, len(whole), PIECE_BYTES)]
        sent = [
            dask.delayed(piece, name=self._key("sent-to-walk"), traverse=False) for piece in pieces
        ]
        if len(sent) == 1:
            self.n_bytes += len(whole)
            return sent
        held = [each for one in sent for each in self._executor.hold([one])]
        return [self._executor.as_argument(each) for each in held]

    def _key(self, name: str) -> tuple[str, int]:
        """A new key, of few groups."""
        return f"{name}-{self._name}", next(self._numbers)


def walk_codes_of_part(
    codes: StoredCodes | Sequence[CodedMatrix],
    named: Sequence[Any],
    pieces: Sequence[bytes],
    n_trees: Sequence[int],
    starts: Sequence[float | None],
    before: tuple[list[list[np.ndarray]], Any] | None,
    columns: Sequence[np.ndarray | None] | None,
    firsts: Sequence[int],
) -> tuple[list[list[np.ndarray]], list[list[Any]]]:
    """What a task does: rows of a partition go down the trees of some models.

    `codes` and `named` are those of the partition, the latter for each model. `pieces` joined are
    the pickle of all packed trees, `n_trees` of each model. `starts` are what sums begin with, or
    None: leaves are asked for. `before` is what the task before has returned: its last sum is that
    of the first model's trees before these.

    Returns for each model a list of leaves, by tree, or of the sum of its values, float64 (n,
    n_values); and for those at `firsts` the `columns` of their rows, but for the first column,
    which is the fold of each row.
    """
    codes = [codes.coded] if isinstance(codes, StoredCodes) else codes
    fold, *others = columns or [None]
    walked = [CodedRows(aligned(each)) for each in codes]
    ends = np.cumsum([each.n_rows for each in codes])
    trees = iter(unpack(pickle.loads(b"".join(pieces))))
    answers: list[list[np.ndarray]] = []
    of_rows: list[list[Any]] = []
    for number, (rows, n, start) in enumerate(zip(named, n_trees, starts, strict=True)):
        some = list(itertools.islice(trees, n))
        asked = numbers_of(rows, int(ends[-1]), fold)
        bounds = [0, *np.searchsorted(asked, ends).tolist()]
        of_codes = [
            (coded, asked[begin:end] - first, slice(begin, end))
            for coded, first, (begin, end) in zip(
                walked, [0, *ends[:-1]], itertools.pairwise(bounds), strict=True
            )
        ]
        if number in firsts:
            of_rows.append([None if each is None else np.asarray(each)[asked] for each in others])
        if start is not None:
            total = np.full((len(asked), some[0].n_values), start)
            if number == 0 and before is not None:
                total[:] = before[0][-1][0]
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
    return answers, of_rows


def join_load(
    found: list[list[np.ndarray]],
    load: Sequence[TreeRange],
    told: Sequence[list[list[np.ndarray]]],
    starts: Sequence[float | None],
) -> None:
    """Add what all parts have told of a load to what is known of each walk; sums take its place."""
    for item, *own in zip(load, *told, strict=True):
        whole = [np.concatenate(each) for each in zip(*own, strict=True)]
        before = found[item.number] if starts[item.number] is None else []
        found[item.number] = before + whole


ONE_AT_A_TIME = LockOfObject()  # warnings are recorded for a process


def join_sides(
    functions: Sequence[bytes],
    n_walks: Sequence[int],
    starts: Sequence[float | None],
    orders: Sequence[slice | np.ndarray],
    loads_of: Sequence[Sequence[TreeRange]],
    told: Sequence[tuple[list[list[np.ndarray]], list[list[Any]]]],
) -> list[tuple[Any, bytes | None, list[Any]]]:
    """What a task does: sides of splits are put together from their parts, and asked.

    `functions` joined are the pickle of one for each side, `told` is what the parts say of the
    first load, of the second, and so on. Returns what each function says, or None and the pickle of
    what it has raised (no task fails, which Dask would log and remember), and its warnings.
    """
    answers: list[list[np.ndarray]] = [[] for _ in starts]
    columns: list[tuple[list[Any], ...]] = []  # of each side, by part
    n_parts = len(told) // len(loads_of)
    for number, load in enumerate(loads_of):
        of_parts = told[number * n_parts : (number + 1) * n_parts]
        join_load(answers, load, [own for own, _ in of_parts], starts)
        columns += zip(*(of_rows for _, of_rows in of_parts), strict=True)
    walks, found = iter(answers), []
    with ONE_AT_A_TIME.of_process():
        for function, n, order, own in zip(
            pickle.loads(b"".join(functions)), n_walks, orders, columns, strict=True
        ):
            mine = [[each[order] for each in of] for of in itertools.islice(walks, n)]
            of_rows = [
                None if each[0] is None else np.concatenate(each)[order]
                for each in zip(*own, strict=True)
            ]
            said = error = None
            with warnings.catch_warnings(record=True, action="always") as heard:
                try:
                    said = function(mine, of_rows)
                except Exception as raised:
                    raised.add_note(traceback.format_exc())
                    error = cloudpickle.dumps(raised)
            told_of = [(str(each.message), each.category) for each in heard]
            found.append((said, error, told_of))
    return found


def aligned(coded: CodedMatrix) -> CodedMatrix:
    """Codes whose arrays the kernels can read: those off the wire may start anywhere."""
    arrays = {name: each for name, each in vars(coded).items() if isinstance(each, np.ndarray)}
    if all(array.flags.aligned for array in arrays.values()):
        return coded
    fit: dict[str, Any] = {
        name: np.require(array, requirements=["A"]) for name, array in arrays.items()
    }
    return replace(coded, **fit)
