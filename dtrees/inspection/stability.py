"""Stability of a tree: what the folds of a cross-validation have in common, in numbers.

The models of the folds are compared node by node with a reference: the final model, or the first of
them. The report shows how far down the tree would look the same on other rows of the same kind. A
score does not show it::

    reference             fold 0                fold 1
    age <= 37             age <= 37             age <= 38
     +- hours <= 40        +- hours <= 40        +- hours <= 40
     +- job in {a}         +- sex in {m}         +- job in {a}

    level 0   2 of 2 still ask about the same column, 1 of 2 asks the very same
    level 1   1.5 of 2 (2 at hours, 1 at job, weighted by rows), and 0.5 of 2

`dtrees.inspection.alignment` says which nodes are one, and which tests are the very same.

A model *still* agrees at a node of the reference when it does so there and at every node above.
Below the first node at which a model is alone, its nodes need not be looked at one by one: nodes of
a tree are in preorder, so a subtree is a slice, and counts by depth are sums over it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, astuple, dataclass, field
from html import escape
from typing import Any

import numpy as np

from dtrees._html import html_table
from dtrees.constraints import ListLike, checked
from dtrees.export.model_nodes import ModelNodes, TreeNodes
from dtrees.inspection.alignment import NO_GROUP, Group, walk
from dtrees.inspection.importance import importances_of, split_counts
from dtrees.inspection.overlay import check_together
from dtrees.inspection.tree_formatter import TreeFormatter

MOST_LEVELS, MOST_COLUMNS = 12, 20  # that are printed
Table = tuple[list[str], list[list[str]], str]  # head, rows, and how many there are more
SINGLE_LEAF = "The reference asks nothing: it is a single leaf."


@dataclass(frozen=True)
class LevelStability:
    """One level of depth. For forests, what is said is a mean over the trees.

    Attributes
    ----------
    depth : int
        Of the level; that of the root is 0.
    n_tests : float
        Nodes of the reference at this depth that ask something.
    row_share : float
        Share of the reference's training rows that come to one of them, in (0, 1].
    n_shared_nodes : float
        Nodes of the shared forest of the models at this depth, leaves included, the final model
        left out. As many as one tree has where all agree, and the number of models times that
        where none do.
    same_column : float
        Number of models that still ask about the same column as the reference, in
        [0, n_models]: a mean over its tests at this depth, weighted by rows.
    least_same_column : int
        The least over these tests.
    same_test, least_same_test : float, int
        As above, of models that still ask the very same: column, threshold or set, and the side
        of missing values.
    """

    depth: int
    n_tests: float
    row_share: float
    n_shared_nodes: float
    same_column: float
    least_same_column: int
    same_test: float
    least_same_test: int


@dataclass(eq=False)
class LevelCounts:
    """Sums by depth, over the trees of forests.

    `n_models` are counted; `reference` is the number of the one they are compared with, which may
    be one of them or stand behind them. `n_trees` of the reference are counted so far, with
    `n_rows` in their roots. `shared` has the shared nodes by depth; `tests` of the reference by
    depth: int64 (n, 3) of (rows, same column, same test).
    """

    n_models: int
    reference: int
    n_trees: int = 0
    n_rows: int = 0
    shared: Counter[int] = field(default_factory=Counter)
    tests: dict[int, list[np.ndarray]] = field(default_factory=lambda: defaultdict(list))

    def add(self, formatters: list[TreeFormatter]) -> None:
        """Count one tree of every model."""
        self.n_trees += 1
        self.n_rows += int(formatters[self.reference].nodes.n_samples[0])
        depths = [each.nodes.depth for each in formatters]
        still: dict[int, set[int]] = {NO_GROUP: set(range(self.n_models))}
        for group in walk(formatters, least=2):
            if len(group.visits) == 1:
                self._add_subtree(group, formatters, depths)
                continue
            here = {visit.model: visit for visit in group.visits}
            self.shared[group.depth] += 1  # of two models one at least is not the final one
            test = here[self.reference].test if self.reference in here else None
            if test is None:
                continue
            same = {m for m in still[group.above] if m in here and here[m].test == test}
            still[group.number] = same
            rows = formatters[self.reference].nodes.n_samples[here[self.reference].node]
            together = sum(m < self.n_models for m in here)
            self.tests[group.depth].append(np.array([[rows, together, len(same)]]))

    def levels(self) -> Iterator[LevelStability]:
        """Counts, level by level."""
        for depth in sorted(self.tests):
            rows, column, test = np.concatenate(self.tests[depth]).T
            yield LevelStability(
                depth=depth,
                n_tests=len(rows) / self.n_trees,
                row_share=float(rows.sum() / self.n_rows),
                n_shared_nodes=self.shared[depth] / self.n_trees,
                same_column=float(rows @ column / rows.sum()),
                least_same_column=int(column.min()),
                same_test=float(rows @ test / rows.sum()),
                least_same_test=int(test.min()),
            )

    def _add_subtree(
        self, group: Group, formatters: list[TreeFormatter], depths: list[np.ndarray]
    ) -> None:
        """All nodes of a model from where it is alone."""
        (visit,) = group.visits
        model, tree = visit.model, formatters[visit.model].nodes
        part = slice(visit.node, end_of_subtree(tree, visit.node))
        depth = depths[model][part]
        if model < self.n_models:
            for level, n in enumerate(np.bincount(depth)[group.depth :], start=group.depth):
                self.shared[level] += int(n)
        if model != self.reference:
            return
        agree = int(model < self.n_models)  # one of the models: with itself
        asks = ~tree.is_leaf[part]
        rows = tree.n_samples[part].astype(np.int64)
        for level in np.unique(depth[asks]).tolist():
            here = rows[asks & (depth == level)]
            both = np.full((len(here), 2), agree)
            self.tests[level].append(np.column_stack([here, both]))


def end_of_subtree(tree: TreeNodes, node: int) -> int:
    """The number behind the last node below a node: preorder, so its rightmost leaf."""
    while not tree.is_leaf[node]:
        node = int(tree.right[node])
    return node + 1


@dataclass(frozen=True, eq=False)
class ImportanceStability:
    """Importances by column, over the models.

    Attributes
    ----------
    names : tuple of str
        Of the columns, in their order.
    mean : float64 (n_columns,)
        Of the share of a column in the impurity decrease of a model.
    deviation : float64 (n_columns,)
        Its standard deviation (n_models - 1 in the denominator; 0 for a single model).
    final : float64 (n_columns,) or None
        Of the final model, where there is one.
    n_models : int64 (n_columns,)
        Models that ask about the column.
    """

    names: tuple[str, ...]
    mean: np.ndarray
    deviation: np.ndarray
    final: np.ndarray | None
    n_models: np.ndarray

    def __len__(self) -> int:
        """Number of columns."""
        return len(self.names)

    def order(self) -> np.ndarray:
        """Numbers of the columns that any model asks about, by falling mean; int64 (n,)."""
        order = np.argsort(-self.mean, kind="stable")
        return order[self.n_models[order] > 0]


@dataclass(frozen=True, eq=False)
class StabilityReport:
    """A comparison of models with each other and with a reference.

    ``print(report)`` shows two tables: the first levels, and the columns of the largest shares.

    Attributes
    ----------
    n_models : int
        The final one left out.
    n_trees : int
        That are compared of each model.
    has_final : bool
        Whether the reference is the final model; otherwise it is the first model, which then
        agrees with itself in all numbers.
    levels : tuple of LevelStability
        Of all depths at which the reference asks something; none if it is a single leaf.
    importances : ImportanceStability
    """

    n_models: int
    n_trees: int
    has_final: bool
    levels: tuple[LevelStability, ...]
    importances: ImportanceStability

    def to_dict(self) -> dict[str, Any]:
        """The report as dicts, lists, strings and numbers, ready for JSON."""
        shares = self.importances
        columns = [
            {
                "name": name,
                "mean": float(shares.mean[j]),
                "deviation": float(shares.deviation[j]),
                "final": None if shares.final is None else float(shares.final[j]),
                "n_models": int(shares.n_models[j]),
            }
            for j, name in enumerate(shares.names)
        ]
        return {
            "n_models": self.n_models,
            "n_trees": self.n_trees,
            "has_final": self.has_final,
            "levels": [asdict(level) for level in self.levels],
            "importances": columns,
        }

    def __str__(self) -> str:
        levels = ["", SINGLE_LEAF] if not self.levels else ["", *_lines(*_level_table(self))]
        if not self.importances.n_models.any():
            return "\n".join([_title(self), *levels, "", "No model asks about a column."])
        return "\n".join([_title(self), *levels, "", *_lines(*_importance_table(self))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        importances = html_table("Importances", *_importance_table(self))
        if not self.levels:
            return f"<p>{escape(_title(self))}. {SINGLE_LEAF}</p>" + importances
        return html_table(_title(self), *_level_table(self)) + importances


@checked(models=(ListLike(),))
def stability_report(models: Sequence[Any], final: Any = None) -> StabilityReport:
    """Compare the models of a cross-validation with each other and with the final model.

    Parameters
    ----------
    models : sequence of trees, forests or boosted models of dtrees
        Fitted to the same columns, such as
        ``cross_validate(..., return_estimator=True)["estimator"]``. Of many trees tree t of each
        model is compared with tree t of the others, as far as all have so many.
    final : tree, forest or boosted model of dtrees, default=None
        The reference, ``cross_validate(...).final_estimator``. None: the first model.

    Returns
    -------
    StabilityReport

    Raises
    ------
    ValueError
        No model, trees and forests mixed, or models of different columns.
    TypeError
        A model is no tree, forest or boosted model of dtrees.
    sklearn.exceptions.NotFittedError
        A model has not been fitted.

    Notes
    -----
    Rows are counted as in ``n_node_samples``. O(nodes), of which those that models share take
    some ten microseconds for each model, and the others next to nothing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.inspection import stability_report
    >>> from dtrees.model_selection import cross_validate
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = cross_validate(
    ...     DecisionTreeClassifier(max_depth=2), X, y, cv=5, return_estimator=True
    ... )
    >>> report = stability_report(found["estimator"], found.final_estimator)
    >>> report.levels[0].same_column, report.levels[0].n_shared_nodes
    (5.0, 1.0)
    """
    given = [*models] if final is None else [*models, final]
    where = [*(f"models[{number}]" for number in range(len(models))), "final"]
    views = [ModelNodes.of(model, name) for model, name in zip(given, where, strict=False)]
    if len({hasattr(model, "forest_") for model in given}) > 1:
        raise ValueError(
            "models and final must be all trees, or all forests: trees and forests cannot be "
            "compared with each other."
        )
    names = [view.column_names for view in views]
    check_together([(len(mine), mine) for mine in names], "columns")
    n_models = len(models)
    compared = min(len(view.trees) for view in views)
    reference = 0 if final is None else n_models
    counts = LevelCounts(n_models, reference)
    for t in range(compared):
        counts.add([TreeFormatter(view.trees[t]) for view in views])
    return StabilityReport(
        n_models=n_models,
        n_trees=compared,
        has_final=final is not None,
        levels=tuple(counts.levels()),
        importances=_importances(given, views, names[0], final is not None),
    )


def _importances(
    given: Sequence[Any], views: Sequence[ModelNodes], names: list[str], has_final: bool
) -> ImportanceStability:
    """Stability of the importances; the final model is the last of the models."""
    found = np.array([importances_of(view) for view in views])
    n_models = len(given) - has_final
    shares, asked = found[:n_models], np.zeros(len(names), dtype=np.int64)
    for model in given[:n_models]:
        asked += split_counts(model) > 0
    return ImportanceStability(
        names=tuple(names),
        mean=shares.mean(axis=0),
        deviation=shares.std(axis=0, ddof=1) if n_models > 1 else np.zeros(len(names)),
        final=found[-1] if has_final else None,
        n_models=asked,
    )


def _title(report: StabilityReport) -> str:
    reference = "the final one" if report.has_final else "the first of them"
    trees = "" if report.n_trees == 1 else f" of {report.n_trees} trees"
    return f"{report.n_models} models{trees} against {reference}"


def _level_table(report: StabilityReport) -> Table:
    """The first levels."""
    head = ["level", "tests", "rows", "shared nodes", "same column", "least", "same test", "least"]
    forms = ["", ".4g", ".0%", ".4g", ".1f", "", ".1f", ""]  # of the attributes, in their order
    rows = [
        [format(value, form) for value, form in zip(astuple(level), forms, strict=True)]
        for level in report.levels[:MOST_LEVELS]
    ]
    return head, rows, _more(len(report.levels) - len(rows))


def _importance_table(report: StabilityReport) -> Table:
    """The columns of the largest shares."""
    shares = report.importances
    order = shares.order()
    rows = []
    for j in order[:MOST_COLUMNS].tolist():
        final = [] if shares.final is None else [f"{shares.final[j]:.4f}"]
        mean, deviation = f"{shares.mean[j]:.4f}", f"± {shares.deviation[j]:.4f}"
        rows.append([shares.names[j], *final, mean, deviation, str(shares.n_models[j])])
    head = ["importance", *(["final"] if shares.final is not None else []), "mean", "", "models"]
    return head, rows, _more(len(order) - len(rows))


def _more(n: int) -> str:
    return f"... {n} more" if n else ""


def _lines(head: list[str], rows: list[list[str]], foot: str) -> list[str]:
    """A table as text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in [head, *rows]
    ]
    return [*lines, foot] if foot else lines
