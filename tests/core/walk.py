"""Grown trees against their tables: rows of every node, and the best of the drawn columns."""

from __future__ import annotations

import numpy as np
import pytest

from dtrees.core.model.tree import AT_MOST, LEAF
from dtrees.core.stores._dataset import Dataset
from dtrees.core.stores.sampled._sampled_columns import drawn_columns as draws_of
from tests.laws.tables import coded, codes_of
from tests.oracle.candidates import candidates
from tests.oracle.criterion import RowStatistics
from tests.oracle.ties import ROOT, child


def goes_left(tree, node: int, codes: np.ndarray, n_ordered: int) -> np.ndarray:
    """The test of a node on codes, by its definition."""
    code, test = tree.code[node], tree.test[node]
    if tree.subset_offset[node] >= 0:
        words = tree.subset_words[tree.subset_offset[node] :]
        found = np.array([bool(int(words[c >> 6]) >> int(c & 63) & 1) for c in codes], dtype=bool)
    elif test == AT_MOST:
        found = codes <= code
    else:
        found = (codes > code) & (codes <= n_ordered)
    return np.where(codes == 0, bool(tree.missing_go_to_left[node]), found)


def rows_of_nodes(tree, example) -> dict[int, np.ndarray]:
    """Rows of positive weight in every node, as the written tests send them."""
    rows = {0: np.array(RowStatistics(example.target, example.criterion).rows())}
    for node in np.flatnonzero(tree.test != LEAF).tolist():
        codes, _, n_ordered = codes_of(example.table[tree.feature[node]])
        is_left = goes_left(tree, node, codes[rows[node]], n_ordered)
        rows[int(tree.children_left[node])] = rows[node][is_left]
        rows[int(tree.children_right[node])] = rows[node][~is_left]
    return rows


def drawn_columns(example, path: int) -> list[int]:
    """All columns in the order in which a node draws them."""
    dataset = Dataset(coded(example.table), example.target, example.rules)
    return draws_of(dataset, path, 0, len(example.table)).tolist()


def assert_drawn_tree_is_greedy(tree, example) -> None:
    """Each split is the best of the columns that its node draws, and no leaf could be split.

    A node that draws no column that can be split goes on to draw, one by one.
    """
    statistics = RowStatistics(example.target, example.criterion)
    rules = example.rules
    rows = rows_of_nodes(tree, example)
    paths, depths = {0: ROOT}, {0: 0}
    for node in range(tree.node_count):
        mine = rows[node].tolist()
        assert len(mine) == tree.n_node_samples[node]
        whole = statistics.sums(mine)
        best: dict[int, float] = {}
        for each in candidates(example.table, mine, statistics, rules):
            gain = float(statistics.gain(whole, each.sums))
            best[each.column] = max(gain, best.get(each.column, gain))
        drawn = drawn_columns(example, paths[node])
        first = [column for column in drawn[: rules.max_features] if column in best]
        first = first or [column for column in drawn if column in best][:1]
        if tree.test[node] == LEAF:
            is_full = rules.max_depth is not None and depths[node] >= rules.max_depth
            assert is_full or not first or statistics.is_pure(mine)
            continue
        column = int(tree.feature[node])
        assert column in first
        assert tree.gain[node] == pytest.approx(best[column], rel=1e-6, abs=1e-9)
        assert best[column] >= max(best[each] for each in first) * (1 - 1e-6) - 1e-9
        for is_left, children in ((True, tree.children_left), (False, tree.children_right)):
            paths[int(children[node])] = child(paths[node], is_left)
            depths[int(children[node])] = depths[node] + 1
