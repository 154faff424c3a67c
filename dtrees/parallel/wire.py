"""What goes over the wire, in few large arrays.

A message of many small arrays costs a frame for each of them, and arrays may come out of a message
unaligned, which the kernels cannot read safely. So

    the table    UnitsOfGrowth ──▶ SharedGrowth: every array is a buffer of its own beside the
                 pickle; buffers that arrive unaligned are copied once, when a worker unpacks them
    the trees    list of Tree ──▶ one array per attribute, the trees one behind the other: integers
                 in the narrowest type that holds them, and nothing that the others imply

Both are lossless, bit for bit. Within one process nothing is pickled, and the table is shared.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dtrees.core.forest import UnitsOfGrowth
from dtrees.core.model import FACTS, LEAF, NO_CHILD, Tree

ALIGNMENT = 64  # bytes: a cache line, and more than any item needs
NARROW = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)
NOT_SENT = ("children_left",)  # implied by the other arrays


class SharedGrowth:
    """A growth that every worker has a copy of.

    Parameters
    ----------
    growth : UnitsOfGrowth
    """

    def __init__(self, growth: UnitsOfGrowth) -> None:
        self.growth = growth

    def __reduce__(self) -> tuple:
        buffers: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(self.growth, protocol=5, buffer_callback=buffers.append)
        return _unpickled, (rest, [np.asarray(buffer.raw()) for buffer in buffers])

    def __sizeof__(self) -> int:
        buffers: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(self.growth, protocol=5, buffer_callback=buffers.append)
        return len(rest) + sum(buffer.raw().nbytes for buffer in buffers)


def _unpickled(rest: bytes, buffers: Iterable[np.ndarray]) -> SharedGrowth:
    return SharedGrowth(pickle.loads(rest, buffers=[aligned(buffer) for buffer in buffers]))


def aligned(buffer: np.ndarray) -> np.ndarray:
    """The same bytes at an address that suits every type.

    Parameters
    ----------
    buffer : uint8 (n_bytes,), contiguous

    Returns
    -------
    uint8 (n_bytes,)
        `buffer` itself where possible.
    """
    if buffer.ctypes.data % ALIGNMENT == 0:
        return buffer
    room = np.empty(len(buffer) + ALIGNMENT, dtype=np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    out = room[start : start + len(buffer)]
    out[:] = buffer
    return out


def pack(trees: Sequence[Tree]) -> dict[str, Any]:
    """A few trees of one growth as one array per attribute.

    Returns
    -------
    dict of str to array, scalar or (array, dtype)
        For `unpack`.
    """
    arrays = [tree.arrays() for tree in trees]
    packed: dict[str, Any] = {
        **{name: [getattr(tree, name) for tree in trees] for name in FACTS},
        "n_nodes": np.array([tree.node_count for tree in trees]),
        "n_words": np.array([len(tree.subset_words) for tree in trees]),
    }
    for name in arrays[0]:
        if name in NOT_SENT:
            continue
        joined = np.concatenate([each[name] for each in arrays])
        packed[name] = (_narrowed(joined), joined.dtype.str)
    return packed


def packed_bytes(packed: dict[str, Any]) -> int:
    """Bytes of the arrays of `pack`."""
    arrays = (sent[0] if isinstance(sent, tuple) else sent for sent in packed.values())
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def unpack(packed: dict[str, Any]) -> list[Tree]:
    """The trees of `pack`; their arrays are copies, aligned and of their own."""
    ends = np.cumsum(packed["n_nodes"]).tolist()
    word_ends = np.cumsum(packed["n_words"]).tolist()
    trees = []
    counts = packed["n_nodes"].tolist(), packed["n_words"].tolist()
    for i, (end, n_nodes, word_end, n_words) in enumerate(
        zip(ends, counts[0], word_ends, counts[1], strict=True)
    ):
        nodes, words = slice(end - n_nodes, end), slice(word_end - n_words, word_end)
        arrays: dict[str, Any] = {
            name: np.array(sent[0][words if name == "subset_words" else nodes], dtype=sent[1])
            for name, sent in packed.items()
            if isinstance(sent, tuple)
        }
        is_leaf = arrays["test"] == LEAF
        following = np.arange(1, n_nodes + 1, dtype=np.int32)
        arrays["children_left"] = np.where(is_leaf, np.int32(NO_CHILD), following)
        trees.append(Tree(**arrays, **{name: packed[name][i] for name in FACTS}))
    return trees


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
