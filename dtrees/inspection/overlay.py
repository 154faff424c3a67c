"""The trees of several models as one: who is at a node, what they ask there, where they part.

What a cross-validation has grown ([CV] 2-3), read back from the grown trees: nodes of several trees
that `dtrees.inspection.alignment` finds to be one become a `SharedNode`. A node has two sides, and
on each side as many nodes as there are columns that its models go on to ask about::

    nodes[0]  age <= 37 .. 38       10 of 10
      left      nodes[1]  hours <= 40       7 of 10     }  these two
                nodes[4]  job in {a, b}     3 of 10     }  have parted
      right     nodes[7]  a leaf           10 of 10

Nodes are numbered in preorder and name each other by number, as in a `Tree`, so depth is no matter.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtrees._html import html_table
from dtrees.constraints import NAMES, IntegerIn, ListLike, Nothing, checked
from dtrees.export.model_nodes import TESTS, ModelNodes
from dtrees.inspection.alignment import LEFT, NO_GROUP, RIGHT, Group, NodeTest, Visit, walk
from dtrees.inspection.tree_formatter import (
    FORMATS,
    TreeFormatter,
    formatter_of,
    number_format,
)

MOST_NODES = 30  # that a notebook shows


@dataclass(frozen=True, eq=False)
class SharedNode:
    """A node of several models.

    Attributes
    ----------
    models : tuple of int
        Numbers of the models that are here, ascending.
    share : float
        Their share in all models, in (0, 1].
    depth : int
        The root has 0.
    column : int or None
        Column of the test; None: nothing is asked here.
    tests : tuple of (NodeTest, tuple of int)
        The different tests of the column, each with its models; the one of most models first.
        Empty for a leaf.
    interval : (float, float) or None
        Lowest and highest threshold; None for leaves and for sets of categories.
    n_rows : float
        Training rows, mean over the models.
    value : float64 (n_values,)
        Class shares, or the mean of the target; mean over the models.
    text : str
        What is asked: the range of thresholds, or the set of categories of most models. Or what a
        leaf predicts.
    is_cut : bool
        Whether some model goes on here, but `max_depth` ends the tree.
    left, right : tuple of int
        Nodes on the side of the rows that pass, and of those that fail. More than one where the
        models part; the one of most models first. Empty for a leaf.
    """

    models: tuple[int, ...]
    share: float
    depth: int
    column: int | None
    tests: tuple[tuple[NodeTest, tuple[int, ...]], ...]
    interval: tuple[float, float] | None
    n_rows: float
    value: np.ndarray
    text: str
    is_cut: bool
    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def is_leaf(self) -> bool:
        """Tell whether the node is a leaf."""
        return self.column is None


@dataclass(frozen=True, eq=False)
class SharedForest:
    """The trees of several models, laid upon each other.

    Attributes
    ----------
    n_models : int
    roots : tuple of int
        More than one where the models part at the root.
    nodes : tuple of SharedNode
        In preorder.
    """

    n_models: int
    roots: tuple[int, ...]
    nodes: tuple[SharedNode, ...]

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.nodes)

    def __getitem__(self, i: int) -> SharedNode:
        return self.nodes[i]

    def __repr__(self) -> str:
        return f"<SharedForest of {self.n_models} models: {len(self)} nodes>"

    def _repr_html_(self) -> str:
        n = self.n_models
        rows = [
            ["    " * node.depth + node.text, f"{len(node.models)} of {n}", f"{node.n_rows:,.0f}"]
            for node in self.nodes[:MOST_NODES]
        ]
        more = len(self) - len(rows)
        foot = f"... {more} more" if more else ""
        return html_table(f"Shared forest of {n} models", ["node", "models", "rows"], rows, foot)


@checked(
    models=(ListLike(),),
    max_depth=(IntegerIn(0), Nothing()),
    feature_names=NAMES,
    class_names=NAMES,
    max_categories=(IntegerIn(1), Nothing()),
)
def shared_forest(
    models: Sequence[Any],
    *,
    max_depth: int | None = None,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_categories: int | None = 5,
) -> SharedForest:
    """Lay the trees of several models upon each other.

    Parameters
    ----------
    models : sequence of DecisionTreeClassifier, DecisionTreeRegressor, TreeView or Tree
        Of one table, such as ``cross_validate(..., return_estimator=True)["estimator"]``.
    max_depth : int or None, default=None
        Depth of the deepest nodes, which are written as leaves. None: all.
    feature_names : sequence of str, default=None
        A name per column. None: the names at fit, or "feature_0", "feature_1", ...
    class_names : sequence of str, default=None
        A name per class, in the order of ``classes_``. None: the labels.
    max_categories : int or None, default=5
        Longest set of categories that is written out. None: no limit.

    Returns
    -------
    SharedForest

    Raises
    ------
    ValueError
        No model, models of different columns or classes, a forest, too many or too few names, or
        a size out of its range.
    TypeError
        One of the models is no tree of dtrees.
    sklearn.exceptions.NotFittedError
        A model has not been fitted.

    Notes
    -----
    O(nodes of all trees above `max_depth`): some 50 microseconds for each shared node, which is
    seconds where ten trees of thousands of leaves have little in common.
    """
    formatters = formatters_of(models, feature_names, class_names, max_categories)
    groups = list(walk(formatters, max_depth=max_depth))
    below = defaultdict[tuple[int, int], list[int]](list)
    for group in groups:
        below[group.above, group.side].append(group.number)
    return SharedForest(
        n_models=len(formatters),
        roots=tuple(below[NO_GROUP, LEFT]),
        nodes=tuple(
            _node(formatters, group, tuple(below[i, LEFT]), tuple(below[i, RIGHT]))
            for i, group in enumerate(groups)
        ),
    )


def formatters_of(
    models: Sequence[Any],
    feature_names: Sequence[str] | None,
    class_names: Sequence[str] | None,
    max_categories: int | None,
) -> list[TreeFormatter]:
    """The formatters of models that are trees."""
    found = []
    for number, model in enumerate(models):
        view = ModelNodes.of(model, f"models[{number}]")
        if hasattr(model, "forest_"):
            first = "[0, 0]" if model._adds_steps else "[0]"
            raise ValueError(
                f"{type(model).__name__} has many trees, of which one each can be laid upon each "
                f"other: [model.estimators_{first} for model in models]."
            )
        options: dict[str, Any] = {"decimals": 1, "max_categories": max_categories}
        found.append(formatter_of(view, 0, feature_names, class_names, **options))
    check_together([(each.nodes.n_columns, each.names) for each in found], "columns")
    check_together([(each.nodes.is_regression, each.classes) for each in found], "classes")
    return found


def check_together(values: Sequence[Any], what: str) -> None:
    """Refuse models that differ in these values, their columns or classes."""
    if not values:
        raise ValueError("at least one fitted model is needed, got none.")
    for i, value in enumerate(values):
        if value != values[0]:
            raise ValueError(
                f"model {i} has other {what} than model 0; only models of one table, with the same "
                f"{what}, can be compared."
            )


def _node(
    formatters: Sequence[TreeFormatter], group: Group, left: tuple[int, ...], right: tuple[int, ...]
) -> SharedNode:
    trees = [(formatters[visit.model].nodes, visit.node) for visit in group.visits]
    value = np.mean([tree.value_of([node])[0] for tree, node in trees], axis=0)
    value.flags.writeable = False
    tests = () if group.is_leaf else tests_of(group.visits)
    thresholds = [test.threshold for test, _ in tests if test.threshold is not None]
    return SharedNode(
        models=group.models,
        share=len(group.visits) / len(formatters),
        depth=group.depth,
        column=tests[0][0].column if tests else None,
        tests=tests,
        interval=(min(thresholds), max(thresholds)) if thresholds else None,
        n_rows=float(np.mean([tree.n_samples[node] for tree, node in trees])),
        value=value,
        text=_question(formatters, group, tests) if tests else formatters[0].answer(value),
        is_cut=group.is_cut,
        left=left,
        right=right,
    )


def tests_of(visits: Sequence[Visit]) -> tuple[tuple[NodeTest, tuple[int, ...]], ...]:
    """The different tests of a group with their models, the one of most models first."""
    found: dict[NodeTest, list[int]] = {}
    for visit in visits:
        assert visit.test is not None
        found.setdefault(visit.test, []).append(visit.model)
    # dicts keep their order: of equally many models the first one leads
    return tuple((test, tuple(found[test])) for test in sorted(found, key=lambda t: -len(found[t])))


def _question(
    formatters: Sequence[TreeFormatter],
    group: Group,
    tests: tuple[tuple[NodeTest, tuple[int, ...]], ...],
) -> str:
    """The test of a group: one, or what its tests have in common."""
    test, who = tests[0]
    visit = next(visit for visit in group.visits if visit.model == who[0])
    formatter = formatters[visit.model]
    thresholds = [t.threshold for t, _ in tests if t.threshold is not None]
    if not thresholds or math.isinf(max(thresholds)):
        assert visit.left is not None
        assert visit.right is not None
        return formatter.sides(visit.node, visit.left, visit.right)[0].text
    name = formatter.names[test.column]
    sign = TESTS[test.kind]
    if formatter.unit(test.column) == "bool":
        text = f"{name} is {sign == '>'}"
    else:
        text = f"{name} {sign} {_range(formatter, test.column, thresholds)}"
    sides = Counter[bool | None]()
    for other, models in tests:
        sides[other.missing_left] += len(models)
    return text + " or missing" * bool(sides[True] > sides[False] + sides[None])


def _range(formatter: TreeFormatter, column: int, thresholds: Sequence[float]) -> str:
    """One threshold, or the lowest and the highest."""
    ends = np.unique([min(thresholds), max(thresholds)])
    form = FORMATS.get(formatter.unit(column), number_format)(ends, formatter.decimals)
    return " .. ".join(form(end) for end in ends.tolist())
