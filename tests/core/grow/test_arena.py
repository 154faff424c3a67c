"""Memory of growths serves one tree after the other, and none that somebody still reads."""

import copy
import pickle

import numpy as np
import pytest

from dtrees.core.grow._arena import Arena
from dtrees.core.grow.shared import pieces_of_sets
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import of_sets
from tests.laws.tables import SEVEN_WAYS, coded, seeded

FIELDS = ("nodes", "statistics", "words")


@pytest.mark.parametrize("limits", [{}, {"max_features": 2, "seed": 1}], ids=["all", "drawn"])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_records_stay_while_other_trees_grow(case, limits):
    arena, pieces, copies = Arena(), [], []
    for n_rows in (60, 200, 20, 200):
        example = seeded(*case, n_rows=n_rows, **limits)
        matrix, target = coded(example.table), example.target
        piece = DatasetSource(matrix, target, example.rules, arena=arena).finish()
        pieces.append(piece)
        copies.append((piece.nodes.copy(), piece.statistics.copy(), piece.words.copy()))
    for piece, (nodes, statistics, words) in zip(pieces, copies, strict=True):
        np.testing.assert_array_equal(piece.nodes, nodes)
        np.testing.assert_array_equal(piece.statistics, statistics)
        np.testing.assert_array_equal(piece.words, words)
    np.testing.assert_array_equal(copies[1][0], copies[3][0])  # of the same rows


@pytest.mark.parametrize("lends", [True, False])
@pytest.mark.parametrize("case", SEVEN_WAYS, ids=str)
def test_records_of_sets_stay_while_others_grow(case, lends):
    arena, pieces, copies = Arena(lends_records=lends), [], []
    for n_rows in (60, 200, 20, 200):
        example = seeded(*case, n_rows=n_rows)
        rows = np.arange(n_rows) % 4 != np.arange(5)[:, None]
        source = DatasetSource(coded(example.table), example.target, example.rules, arena=arena)
        for piece in pieces_of_sets(source, [example.rules] * 5, of_sets(rows)):
            pieces.append(piece)
            copies.append([getattr(piece, name).copy() for name in FIELDS])
    for piece, copied in zip(pieces, copies, strict=True):
        for name, array in zip(FIELDS, copied, strict=True):
            np.testing.assert_array_equal(getattr(piece, name), array)
    for first, last in zip(copies[5:10], copies[15:], strict=True):  # of the same rows
        np.testing.assert_array_equal(first[0], last[0])


@pytest.mark.parametrize("lends", [True, False])
def test_copies_and_pickles_are_empty_pools(lends):
    arena = Arena(lends_records=lends)
    for other in (copy.copy(arena), copy.deepcopy(arena), pickle.loads(pickle.dumps(arena))):
        assert type(other) is Arena
        assert other is not arena
        assert other.lends_records == lends
