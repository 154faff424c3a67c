"""Which rows go down which trees: what is sent to the workers, and how much at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dtrees.core.model.tree import Tree
from dtrees.core.predict.binned import Asked

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
            answer = len(rows) * (0 if with_values and place > first else _width(tree, with_values))
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


def _width(tree: Tree, with_values: bool) -> int:
    """Bytes of an answer for a row."""
    return 8 * tree.n_values if with_values else narrow_type(tree).itemsize


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
