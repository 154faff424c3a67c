"""What goes over the wire, in few large arrays.

A message costs a frame for each of its arrays. Arrays may come out of it unaligned, which the
kernels cannot read safely. So

    the table    codes, and all else of a growth, ──▶ SharedArrays: every array is a buffer of its
                 own beside the pickle; buffers that arrive unaligned are copied once, when a worker
                 unpacks them
    the trees    trees ──▶ one array per attribute (`dtrees.core.model.flat`), integers in the
                 narrowest type that holds them, and nothing that the others imply

Both are lossless, bit for bit. Within one process nothing is pickled, and the table is shared.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dtrees.core.model.flat import flatten, split_trees
from dtrees.core.model.tree import LEAF, NO_CHILD, UNITS, Tree

ALIGNMENT = 64  # bytes: a cache line, and more than any item needs
NARROW = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)


class SharedArrays:
    """A value of many arrays that every worker has a copy of."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __reduce__(self) -> tuple:
        from distributed.protocol.pickle import dumps  # by value, what no module has

        buffers: list[pickle.PickleBuffer] = []
        rest = dumps(self.value, protocol=5, buffer_callback=buffers.append)
        return _unpickled, (rest, [np.asarray(buffer.raw()) for buffer in buffers])

    def __sizeof__(self) -> int:
        _, (rest, buffers) = self.__reduce__()
        return len(rest) + sum(buffer.nbytes for buffer in buffers)


def _unpickled(rest: bytes, buffers: Iterable[np.ndarray]) -> SharedArrays:
    return SharedArrays(pickle.loads(rest, buffers=[aligned(buffer) for buffer in buffers]))


def aligned(buffer: np.ndarray) -> np.ndarray:
    """The same bytes, uint8 (n,), at an address that suits every type; `buffer` where possible."""
    if buffer.ctypes.data % ALIGNMENT == 0:
        return buffer
    room = np.empty(len(buffer) + ALIGNMENT, dtype=np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    out = room[start : start + len(buffer)]
    out[:] = buffer
    return out


def pack(trees: Sequence[Tree]) -> dict[str, Any]:
    """A few trees of one growth as `flatten` has them, integers in the narrowest type that does.

    `dtrees.core.model.packing` takes an eighth of the bytes, but too much time: the client unpacks
    what all threads of a cluster grow.

    measured (forests of 100,000 rows, 10^6 nodes; share of the time that a thread grows them):
    packed here 2%, unpacked 2%, 52 MB; by `packing` 39%, 34%, 7 MB
    """
    arrays, facts = flatten(trees)
    del arrays["children_left"]  # implied by the others
    return facts | {name: (_narrowed(array), array.dtype.str) for name, array in arrays.items()}


def packed_bytes(packed: dict[str, Any]) -> int:
    """Bytes of the arrays of `pack`."""
    return sum(sent[0].nbytes for sent in packed.values() if isinstance(sent, tuple))


def unpack(packed: dict[str, Any]) -> tuple[Tree, ...]:
    """The trees of `pack`; their arrays are aligned stretches of copies."""
    all_of: dict[str, Any] = {
        name: np.array(sent[0], dtype=sent[1])
        for name, sent in packed.items()
        if isinstance(sent, tuple)
    }
    n_nodes, n_words, words = (all_of.pop(name) for name in ("n_nodes", "n_words", "subset_words"))
    units = {name: all_of.pop(name) for name in UNITS}
    starts = np.repeat(np.cumsum(n_nodes) - n_nodes, n_nodes)
    following = np.arange(1, len(starts) + 1) - starts
    is_leaf = all_of["test"] == LEAF
    all_of["children_left"] = np.where(is_leaf, NO_CHILD, following).astype(np.int32)
    facts = {name: packed[name] for name in ("n_columns", "criterion")}
    return split_trees(all_of, words, n_nodes, n_words, units=units, **facts)


def _narrowed(array: np.ndarray) -> np.ndarray:
    """The same integers in the narrowest type that holds them; other arrays as they are."""
    if array.dtype.kind not in "iu" or array.size == 0:
        return array
    low, high = int(array.min()), int(array.max())
    for kind in NARROW:
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return array.astype(kind, copy=False)
    return array
