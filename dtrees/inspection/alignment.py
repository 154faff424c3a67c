"""Nodes of several trees that are one node, as in the shared forest of a cross-validation.

Trees that have been grown from nearly the same rows mostly ask the same questions. Laid upon each
other they are one tree with several models in each node, and where models ask about different
columns they part [CV 2-3]::

    {0 1 2 3 4}  age                        thresholds 37, 37, 38, 37, 37: one node
     |       |
     |       +- right: {0 1 2 3 4}  hours
     |
     +- left: {0 1 3}  hours                two nodes, which are walked apart from here on
              {2 4}    job in {a, b}

Models stay together while they are at the same node and their tests are about the same column in
the same way (at most, above, one of a set); with thresholds and sets as they like, as in [CV 3.4].
Left goes with left: a set and its complement, with the sides exchanged, are different tests. (That
is rare: of 1,589 pairs of sets in trees of depth 8 of seven tables one was such a pair.) Models
whose tree ends there are a node of their own, a leaf, beside those that go on.

Two tests are the very same when they also send the same values left: an equal threshold, or equal
sets of those categories that tests further up let through, and the same side for missing values in
columns that had some at fit. Nothing is said of values that cannot come, as a tree sends them
somewhere, too, but by chance. Thresholds and categories are the user's, not codes, so models may
have codebooks of their own. Trees on codes have codes for categories, and do not know whether there
were missing values: their sides are not compared.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dtrees.inspection.tree_formatter import Reach, TreeFormatter

LEFT, RIGHT = 0, 1
NO_GROUP = -1


@dataclass(frozen=True)
class NodeTest:
    """The test of a node in the user's units; equal tests ask the very same.

    Attributes
    ----------
    column : int
    kind : int
        1 at most, 2 above, 3 one of a set (`TESTS` of `dtrees.export.model_nodes`).
    threshold : float or None
        None for sets; inf where all numbers pass.
    categories : frozenset or None
        Labels (codes, of a tree on codes) that go left, of those that can come. None for numbers.
    missing_left : bool or None
        None where no missing values can come.
    """

    column: int
    kind: int
    threshold: float | None
    categories: frozenset[Hashable] | None
    missing_left: bool | None


@dataclass(frozen=True, eq=False)
class Visit:
    """A model at a node of its tree.

    `reaches` is what tests above have left of the columns that they are about. The test is None
    where the tree ends. `left` and `right` are what it sends to its sides.
    """

    model: int
    node: int
    reaches: dict[int, Reach]
    test: NodeTest | None
    left: Reach | None = None
    right: Reach | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Column and kind of the test, by which models stay together; leaves come last."""
        return (2**31, 0) if self.test is None else (self.test.column, self.test.kind)


@dataclass(frozen=True, eq=False)
class Group:
    """Models that share a node.

    `number` is that of this group, and `above` that of the one above it, in the order of the walk;
    -1 above a root. The `side` is 0 left of the group above, 1 right; 0 for a root, which has depth
    0. Visits are by model; all have the same key, but for groups that are cut: some tree goes on
    here, but the walk ends.
    """

    number: int
    above: int
    side: int
    depth: int
    visits: tuple[Visit, ...]
    is_cut: bool = False

    @property
    def models(self) -> tuple[int, ...]:
        """The models that are here, ascending."""
        return tuple(visit.model for visit in self.visits)

    @property
    def is_leaf(self) -> bool:
        """Tell whether the group is a leaf."""
        return self.is_cut or self.visits[0].test is None


def walk(
    formatters: Sequence[TreeFormatter], *, max_depth: int | None = None, least: int = 1
) -> Iterator[Group]:
    """The groups of several trees, in preorder.

    Trees, one for each of `formatters`, are of tables with the same columns. The walk ends at
    `max_depth`: models that get there are one group, whatever is asked. Groups of less than `least`
    models are yielded, but not what is below them. Of groups side by side the one of most models
    comes first, then the one of the lowest column.

    O(nodes of all trees that are walked), and O(categories) for each test of a set.
    """
    start = [visit_of(formatters, model, 0, {}) for model in range(len(formatters))]
    todo = _grouped(start, NO_GROUP, LEFT, 0, max_depth)
    number = 0
    while todo:
        above, side, depth, visits, is_cut = todo.pop()
        group = Group(number, above, side, depth, visits, is_cut)
        yield group
        number += 1
        if group.is_leaf or len(visits) < least:
            continue
        for to in (RIGHT, LEFT):
            below = [_child(formatters, visit, to) for visit in visits]
            todo += _grouped(below, group.number, to, depth + 1, max_depth)


def _grouped(
    visits: list[Visit], above: int, side: int, depth: int, max_depth: int | None
) -> list[tuple[int, int, int, tuple[Visit, ...], bool]]:
    """The groups of the models at one node; the first one is last, as `walk` pops them."""
    if max_depth is not None and depth >= max_depth:
        goes_on = any(visit.test is not None for visit in visits)
        return [(above, side, depth, tuple(visits), goes_on)]
    parts: dict[tuple[int, int], list[Visit]] = {}
    for visit in visits:
        parts.setdefault(visit.key, []).append(visit)
    order = sorted(parts, key=lambda key: (-len(parts[key]), key), reverse=True)
    return [(above, side, depth, tuple(parts[key]), False) for key in order]


def _child(formatters: Sequence[TreeFormatter], visit: Visit, side: int) -> Visit:
    """The visit of a model to a child of its node."""
    assert visit.test is not None
    tree = formatters[visit.model].nodes
    children = tree.left if side == LEFT else tree.right
    reach = visit.left if side == LEFT else visit.right
    assert reach is not None
    reaches = visit.reaches | {visit.test.column: reach}
    return visit_of(formatters, visit.model, int(children[visit.node]), reaches)


def visit_of(
    formatters: Sequence[TreeFormatter], model: int, node: int, reaches: dict[int, Reach]
) -> Visit:
    """A model at a node, with what is asked there."""
    formatter = formatters[model]
    tree = formatter.nodes
    if tree.is_leaf[node]:
        return Visit(model, node, reaches, None)
    column = int(tree.column[node])
    reach = reaches.get(column) or formatter.reach(column)
    left, right = formatter.parts(node, reach)
    is_set = bool(tree.is_set[node])
    test = NodeTest(
        column,
        int(tree.test[node]),
        threshold=None if is_set else float(tree.threshold[node]),
        categories=_labels(formatter, column, left.categories) if is_set else None,
        missing_left=left.missing if reach.missing else None,
    )
    return Visit(model, node, reaches, test, left, right)


def _labels(formatter: TreeFormatter, column: int, codes: np.ndarray | None) -> frozenset[Hashable]:
    """Categories by what they are for the user."""
    assert codes is not None
    if formatter.book is None:
        return frozenset(codes.tolist())
    first = int(formatter.book.n_ordered[column]) + 1
    return frozenset(formatter.book.categories[column][codes - first].tolist())
