"""The records of grown trees: pieces put together, and arrays of them, without the interpreter."""
from functools import partial

import numpy as np

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy

from dtrees._random cimport hash64
from dtrees.core.data._structs cimport LEAF
from dtrees.core.search._open_node cimport key_of_child
from dtrees.core.search._parameters cimport SPLITS
from dtrees.core.grow._node_buffer cimport SUBTREE, Record

from dtrees.typing import serial

cdef enum:
    NO_FEATURE = -2
    FRACTIONS = -1          # of a draw in its gap: a number that no code has


def arrays_of(nodes):
    """Arrays of a tree from its records, in one pass: numpy takes seven, one for each field
    (measured: forests 1.03 to 1.04 times as long).

    Parameters
    ----------
    nodes : `dtrees.core.grow.node_record.RECORD` (n_nodes,), contiguous

    Returns
    -------
    dict of str to array (n_nodes,)
        feature, children_left, children_right : int32; test, missing_go_to_left : uint8;
        impurity, gain : float64.
    """
    cdef int64_t n = len(nodes)
    cdef const uint8_t[::1] raw = nodes.view(np.uint8)
    cdef const Record* records = <const Record*>&raw[0]
    cdef int32_t[::1] feature = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] left = np.empty(n, dtype=np.int32)
    cdef int32_t[::1] right = np.empty(n, dtype=np.int32)
    cdef uint8_t[::1] test = np.empty(n, dtype=np.uint8)
    cdef uint8_t[::1] missing = np.empty(n, dtype=np.uint8)
    cdef double[::1] impurity = np.empty(n, dtype=np.float64)
    cdef double[::1] gain = np.empty(n, dtype=np.float64)
    cdef int64_t i
    cdef const Record* record
    with nogil:
        for i in range(n):
            record = records + i
            feature[i] = NO_FEATURE if record.test == LEAF else record.column
            left[i] = <int32_t>record.left
            right[i] = <int32_t>record.right
            test[i] = record.test
            missing[i] = record.missing_left
            impurity[i] = record.impurity
            gain[i] = record.gain
    return {
        "feature": np.asarray(feature), "children_left": np.asarray(left),
        "children_right": np.asarray(right), "test": np.asarray(test),
        "missing_go_to_left": np.asarray(missing),
        "impurity": np.asarray(impurity), "gain": np.asarray(gain),
    }


def fractions_of(nodes, uint64_t seed, uint64_t tree):
    """Where between its two neighbours each random split of a tree is.

    The key is that of the node and the column, as for the other draws of a split (`_random_split`).

    Parameters
    ----------
    nodes : `dtrees.core.grow.node_record.RECORD` (n_nodes,), contiguous
        In preorder.
    seed, tree : int

    Returns
    -------
    float64 (n_nodes,)
        0 <= fraction < 1, in steps of 2**-53; 0 in leaves.
    """
    cdef int64_t n = len(nodes)
    cdef const uint8_t[::1] raw = nodes.view(np.uint8)
    cdef const Record* records = <const Record*>&raw[0]
    cdef uint64_t[::1] path = np.zeros(n, dtype=np.uint64)
    cdef double[::1] fraction = np.zeros(n, dtype=np.float64)
    cdef uint64_t of_tree = hash64(seed, tree)
    cdef uint64_t key
    cdef int64_t i
    with nogil:
        for i in range(n):
            if records[i].test == LEAF:
                continue
            path[records[i].left] = key_of_child(path[i], True)
            path[records[i].right] = key_of_child(path[i], False)
            key = hash64(hash64(of_tree, path[i]), SPLITS)
            key = hash64(hash64(key, <uint64_t>records[i].column), <uint64_t>FRACTIONS)
            fraction[i] = <double>(key >> 11) * 1.1102230246251565e-16
    return np.asarray(fraction)


def copy_piece(nodes, int64_t[:, ::1] sums, int64_t position, piece, const int64_t[:, ::1] of_piece,
               int64_t words):
    """Copy records and sums of a piece to `position`; so many words of subsets stand before it."""
    cdef int64_t length = len(piece)
    cdef uint8_t[::1] raw = nodes[position:position + length].view(np.uint8)
    cdef const uint8_t[::1] raw_piece = piece.view(np.uint8)
    cdef Record* record
    cdef int64_t k
    with nogil:
        memcpy(&raw[0], &raw_piece[0], length * sizeof(Record))
        memcpy(&sums[position, 0], &of_piece[0, 0],
               length * of_piece.shape[1] * sizeof(int64_t))
        for k in range(length):
            record = <Record*>&raw[0] + k
            record.left += position if record.left >= 0 else 0
            record.right += position if record.right >= 0 else 0
            record.subset += words if record.subset >= 0 else 0


def join_records(list pieces, list statistics, list n_words, run=serial):
    """The records of a tree in preorder, from those of its pieces. O(nodes).

    Parameters
    ----------
    pieces : list of `dtrees.core.grow.node_record.RECORD` (n_nodes,)
        As for `dtrees.core.grow.assembly.join`.
    statistics : list of int64 (n_nodes, n_statistics)
    n_words : list of int
        Of the subsets of each, which stand one behind the other.
    run : Runner, default=serial
        Of the copies.

    Returns
    -------
    nodes, statistics
    """
    cdef int64_t n_statistics = statistics[0].shape[1]
    cdef int64_t n_top = len(pieces[0])
    cdef int64_t[::1] start = np.empty(n_top, dtype=np.int64)
    cdef int64_t[::1] stack = np.empty(n_top + 1, dtype=np.int64)
    cdef int64_t[::1] first_word = np.cumsum([0] + n_words)
    cdef int64_t n = sum([len(piece) for piece in pieces]) - len(pieces) + 1
    if first_word[len(pieces)] > INT32_MAX or n > INT32_MAX:
        raise MemoryError("a tree has too many nodes, or subsets of too many categories")
    nodes = np.empty(n, dtype=pieces[0].dtype)
    sums = np.empty((n, n_statistics), dtype=np.int64)
    cdef uint8_t[::1] raw = nodes.view(np.uint8)
    cdef int64_t[:, ::1] of_node = sums
    cdef const uint8_t[::1] raw_top = pieces[0].view(np.uint8)
    cdef const int64_t[:, ::1] of_top = statistics[0]
    cdef const Record* top = <const Record*>&raw_top[0]
    cdef Record* out = <Record*>&raw[0]
    cdef size_t width = n_statistics * sizeof(int64_t)
    cdef int64_t position = 0
    cdef int64_t depth = 1
    cdef int64_t i, number
    cdef list copies = []
    stack[0] = 0
    while depth > 0:
        depth -= 1
        i = stack[depth]
        start[i] = position
        if top[i].column != SUBTREE:
            out[position] = top[i]
            memcpy(&of_node[position, 0], &of_top[i, 0], width)
            position += 1
            if top[i].left >= 0:
                stack[depth] = top[i].right
                stack[depth + 1] = top[i].left
                depth += 2
            continue
        number = top[i].left
        copies.append(partial(copy_piece, nodes, sums, position, pieces[number],
                              statistics[number], first_word[number]))
        position += len(pieces[number])
    run(copies)
    for i in range(n_top):
        if top[i].column != SUBTREE and top[i].left >= 0:
            out[start[i]].left = start[top[i].left]
            out[start[i]].right = start[top[i].right]
    assert position == n, (position, n)
    return nodes, sums
