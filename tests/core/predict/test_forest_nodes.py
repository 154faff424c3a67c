"""Packed nodes: forests in parts walk as those in one, and rows that are alone as many do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import CodeBook
from dtrees.core.model.tree import IN_SUBSET, Forest
from dtrees.core.predict import packed_forest, raw
from dtrees.parallel import threaded
from tests.core.predict.test_packed_forest import check, random_forest
from tests.core.predict.test_raw import SEEDS, mixed_frame


@pytest.mark.parametrize("unseen", ["missing", "majority"])
@given(seed=SEEDS, n_rows=st.integers(1, 30), n_trees=st.integers(1, 30))
def test_few_rows_and_many_trees(unseen, seed, n_rows, n_trees):
    """More trees than are in flight at a time, or fewer, down which one row walks."""
    frame, _ = mixed_frame(60, seed)
    book, _ = CodeBook.fit_encode(frame, handle_unknown=unseen)
    forest = random_forest(book, seed, n_trees, 1 + seed % 20)
    other, rows = mixed_frame(n_rows, seed + 1, new=True)
    check(forest, book, other, rows)


@pytest.mark.parametrize(("limit", "most"), [("MOST_SLOTS", 5), ("MOST_THRESHOLDS", 4)])
def test_forests_in_parts(limit, most, monkeypatch):
    frame, _ = mixed_frame(200, seed=1)
    book, _ = CodeBook.fit_encode(frame)
    forest = random_forest(book, seed=2, n_trees=9, n_leaves=4)
    assert len(packed_forest.pack_forest(forest, book)) == 1
    monkeypatch.setattr(packed_forest, limit, most)
    again = Forest(forest.trees)
    parts = packed_forest.pack_forest(again, book)
    assert len(parts) > 1
    assert sum(part.n_trees for part in parts) == len(forest)
    other, rows = mixed_frame(90, seed=3, new=True)
    check(again, book, other, rows)


def test_threads_pack_the_same():
    frame, rows = mixed_frame(300, seed=4)
    book, _ = CodeBook.fit_encode(frame)
    forest = random_forest(book, seed=5, n_trees=20, n_leaves=40)
    check(forest, book, frame, rows, threaded(2))


@pytest.mark.parametrize("offset", [-1, 10**12])
def test_a_subset_that_is_not_there(offset):
    frame, _ = mixed_frame(300, seed=6)
    book, _ = CodeBook.fit_encode(frame)
    tree = random_forest(book, seed=7, n_trees=1, n_leaves=40)[0]
    offsets = np.where(tree.test == IN_SUBSET, offset, -1)
    broken = Forest((tree, replace(tree, subset_offset=offsets)))
    with pytest.raises(ValueError, match=r"Tree 1 is broken: node \d+ has no subset"):
        raw.forest_values(broken, book, frame)
