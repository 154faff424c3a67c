"""Which sets are together at which level, read from the finished trees ([CV] figures 5 and 10).

Sets share a node as long as their tests above are about the same columns in the same way ([CV]
3.4), or, as in the paper's first definition, the very same. A node that several sets share reads
its rows once; alone each of them would read them::

    level 0   {0 1 .. 10} age                          1 read of each row, 10 serially
    level 1   {0 1 .. 10} hours    {0 .. 8} job        2 reads in the node on the right
                                   {9 10} age

`Level.folds` is the paper's f: how often the rows of a level are read, in reads of one tree. It is
1 where all sets are together and the number of folds where each is alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dtrees.core.model.tree import IN_SUBSET, LEAF, Tree

MARKS = (0, 1, 2, 4, 6, 8, 12, 16)  # levels that are told


class Level(NamedTuple):
    """Rows that are read at a level, by all sets alone and together."""

    alone: int
    together: int

    def folds(self, n_folds: int) -> float:
        """How many folds are handled on their own: n folds and all rows read n times as much."""
        return self.together * n_folds / self.alone


def question(tree: Tree, node: int, exact: bool) -> tuple[object, ...]:
    """What a node asks: column and kind; exact: the very same test, in a common codebook."""
    asked: tuple[object, ...] = (int(tree.feature[node]), int(tree.test[node]))
    if not exact:
        return asked
    if tree.test[node] == IN_SUBSET:
        start = int(tree.subset_offset[node])
        later = tree.subset_offset[tree.subset_offset > start]
        end = int(later.min()) if len(later) else len(tree.subset_words)
        return (*asked, tree.subset_words[start:end].tobytes())
    return (*asked, int(tree.code[node]), int(tree.missing_go_to_left[node]))


def levels_of(trees: Sequence[Tree], exact: bool = False) -> list[Level]:
    """Reads by level of the trees of several sets; nodes that end in a leaf read nothing."""
    here = [tuple((s, 0) for s in range(len(trees)))]
    found = []
    while here:
        alone = together = 0
        below = []
        for members in here:
            asking = [(s, i) for s, i in members if trees[s].test[i] != LEAF]
            if not asking:
                continue
            rows = [int(trees[s].n_node_samples[i]) for s, i in asking]
            alone, together = alone + sum(rows), together + max(rows)
            parts: dict[tuple[object, ...], list[tuple[int, int]]] = {}
            for s, i in asking:
                parts.setdefault(question(trees[s], i, exact), []).append((s, i))
            for part in parts.values():
                below.append(tuple((s, int(trees[s].children_left[i])) for s, i in part))
                below.append(tuple((s, int(trees[s].children_right[i])) for s, i in part))
        if alone:
            found.append(Level(alone, together))
        here = below
    return found


def saved(levels: Sequence[Level]) -> float:
    """How many times as many rows are read alone as together."""
    alone = sum(level.alone for level in levels)
    return alone / sum(level.together for level in levels) if alone else 1.0
