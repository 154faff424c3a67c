"""Rows in one place: a call grows a whole tree, however the work is cut."""

from concurrent.futures import CancelledError
from threading import Event

import numpy as np
import pytest

from dtrees.core.grow._single_tree import Arena
from dtrees.core.grow.shared import pieces_of_sets
from dtrees.core.grow.source import DatasetSource
from dtrees.core.membership.resampling import of_sets
from dtrees.typing import serial
from tests.laws.tables import coded, seeded
from tests.laws.test_shared import folds

EXAMPLE = seeded("gini", 3, "none", max_features=2, seed=5)
MATRIX, TARGET, RULES = coded(EXAMPLE.table), EXAMPLE.target, EXAMPLE.rules


def source(target=TARGET, **how):
    return DatasetSource(MATRIX, target, RULES, **how)


def assert_same(piece, other):
    for name in ("nodes", "statistics", "words"):
        np.testing.assert_array_equal(getattr(piece, name), getattr(other, name))


def test_threads_and_lent_memory_do_not_matter():
    expected, arena = source().finish(), Arena()
    for n_threads in (1, 2, 2):
        assert_same(source(n_threads=n_threads, arena=arena).finish(), expected)


def test_draws_depend_on_the_path():
    whole, elsewhere = source().finish(), source().finish(path=12)
    assert whole.nodes["n"][0] == elsewhere.nodes["n"][0]
    assert whole.nodes["column"].tolist() != elsewhere.nodes["column"].tolist()


def test_the_pieces_of_sets_are_those_of_their_rows():
    rows = folds(EXAMPLE.n_rows, 3, 0)
    pieces = list(pieces_of_sets(source(), [RULES] * len(rows), of_sets(rows)))
    assert len(pieces) == len(rows)
    for own, piece in zip(rows, pieces, strict=True):
        assert_same(piece, source(TARGET.only(own)).finish())


def test_cancelled():
    def run(tasks):
        return serial(tasks)

    run.cancelled = Event()
    run.cancelled.set()
    with pytest.raises(CancelledError):
        source(run=run).finish()
    rows = folds(EXAMPLE.n_rows, 3, 0)
    with pytest.raises(CancelledError):
        list(pieces_of_sets(source(run=run), [RULES] * len(rows), of_sets(rows)))
