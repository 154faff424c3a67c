"""A tree as text, in the user's words.

The frame is scikit-learn's, so what reads its reports reads ours::

    |--- age <= 35.50
    |   |--- job in {clerk, sales} or missing
    |   |   |--- class: no
    |   |--- job not in {clerk, sales}
    |   |   |--- class: yes
    |--- age >  35.50 or missing
    |   |--- truncated branch of depth 4

What differs is what stands in a line. Thresholds have the unit of their column: numbers, dates,
durations. Numbers get as many decimals as it takes to tell the thresholds of a column from each
other and to be right to one in a hundred. Sets of categories are written out. ``or missing``
stands on the side that missing values take, in columns that had some at fit.

A test of a hybrid column is about its numbers or about its categories, never both: a category
passes neither ``<=`` nor ``>``, so the other side of a numeric test holds all categories.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtrees.core.model import ABOVE, IN_SUBSET, LEAF, Tree

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

MOST_CATEGORIES = 10
FIXED_DECIMALS = 8
NANOSECONDS = {"D": 86_400_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000}
SHORT = {"D": 10, "m": 16, "s": 19, "ms": 23, "us": 26, "ns": 29}


def export_text(
    decision_tree: Any,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    max_depth: int = 10,
    spacing: int = 3,
    decimals: int = 2,
    show_weights: bool = False,
) -> str:
    """Return the rules of a tree as text.

    Parameters
    ----------
    decision_tree : DecisionTreeClassifier, DecisionTreeRegressor, TreeView or Tree
        A fitted estimator, its ``tree_``, or a tree on codes (whose categories have no names).
    feature_names : sequence of str, default=None
        A name per column. None: the names at fit, or "feature_0", "feature_1", ...
    class_names : sequence of str, default=None
        A name per class, in the order of ``classes_``. None: the labels.
    max_depth : int, default=10
        Deepest tests that are printed; branches below are named by their depth.
    spacing : int, default=3
        Width of a level, at least 1.
    decimals : int, default=2
        Least number of decimals.
    show_weights : bool, default=False
        Whether leaves of a classifier show the weight of every class.

    Returns
    -------
    str
        A line per test and side, a line per leaf. O(printed nodes).

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    ValueError
        Too many or too few names, or a negative size.
    """
    for name, value, least in (
        ("max_depth", max_depth, 0),
        ("spacing", spacing, 1),
        ("decimals", decimals, 0),
    ):
        if value < least:
            raise ValueError(
                f"The {name!r} parameter of export_text must be an int in the range "
                f"[{least}, inf). Got {value!r} instead."
            )
    tree, view, classes = _parts(decision_tree)
    book = None if view is None else view.codebook
    words = Words(
        tree,
        book,
        None if view is None else view.saw_missing,
        names=_column_names(tree, book, feature_names),
        classes=_class_names(tree, classes, class_names),
        decimals=decimals,
        show_weights=show_weights,
    )
    height = _heights(tree)
    lines = []
    todo: list[tuple[int, int, str]] = [(0, 1, "")]  # node, level, the test that leads to it
    while todo:
        node, level, test = todo.pop()
        if test:
            lines.append(_indented(test, level - 1, spacing))
        if tree.test[node] == LEAF:
            lines.append(_indented(words.leaf(node), level, spacing))
        elif level > max_depth + 1:
            lines.append(_indented(f"truncated branch of depth {height[node]}", level, spacing))
        else:
            passed, failed = words.sides(node)
            todo.append((int(tree.children_right[node]), level + 1, failed))
            todo.append((int(tree.children_left[node]), level + 1, passed))
    return "\n".join(lines) + "\n"


@dataclass(eq=False)
class Words:
    """How the tests and leaves of one tree are put into words.

    Attributes
    ----------
    tree : Tree
    book : CodeBook or None
        None: categories are told by their codes, thresholds are numbers.
    saw_missing : bool (n_columns,) or None
        Columns for which the side of missing values is told.
    names, classes : list of str
        Of the columns; of the classes (empty for regression).
    decimals : int
    show_weights : bool
    formats : dict
        How the thresholds of a column (None: the values of leaves) are printed, once known.
    """

    tree: Tree
    book: CodeBook | None
    saw_missing: np.ndarray | None
    names: list[str]
    classes: list[str]
    decimals: int
    show_weights: bool
    formats: dict[int | None, Callable[[float], str]] = field(default_factory=dict, init=False)

    def leaf(self, node: int) -> str:
        """What a leaf predicts."""
        value = self.tree.value[node]
        if not self.classes:
            return f"value: [{self._value_format()(float(value[0]))}]"
        name = f"class: {self.classes[int(value.argmax())]}"
        if not self.show_weights:
            return name
        weights = value * self.tree.weighted_n_node_samples[node]
        return f"weights: [{', '.join(f'{w:.{self.decimals}f}' for w in weights)}] {name}"

    def sides(self, node: int) -> tuple[str, str]:
        """The test of a node and its contrary, with the side of missing values."""
        column = int(self.tree.feature[node])
        name = self.names[column]
        if self.tree.test[node] == IN_SUBSET:
            subset = self._subset(node, column)
            passed, failed = f"{name} in {subset}", f"{name} not in {subset}"
        else:
            passed, failed = self._numeric_sides(node, column, name)
        if self._has_missing(column) and failed != f"{name} is missing":
            if self.tree.missing_go_to_left[node]:
                passed += " or missing"
            else:
                failed += " or missing"
        return passed, failed

    def _numeric_sides(self, node: int, column: int, name: str) -> tuple[str, str]:
        threshold = float(self.tree.threshold[node])
        hybrid = self.book is not None and self.book.n_ordered[column] < self.book.n_codes[column]
        if np.isinf(threshold):
            return (
                (f"{name} is a number", f"{name} is a category")
                if hybrid
                else (f"{name} is not missing", f"{name} is missing")
            )
        if self._unit(column) == "bool":
            return f"{name} is False", f"{name} is True"
        value = self._threshold_format(column)(threshold)
        at_most, above = f"{name} <= {value}", f"{name} >  {value}"
        passed, failed = (above, at_most) if self.tree.test[node] == ABOVE else (at_most, above)
        return passed, f"{failed} or a category" if hybrid else failed

    def _has_missing(self, column: int) -> bool:
        return self.saw_missing is not None and bool(self.saw_missing[column])

    def _unit(self, column: int) -> str:
        return "number" if self.book is None else self.book.unit(column)

    def _threshold_format(self, column: int) -> Callable[[float], str]:
        if column not in self.formats:
            here = (self.tree.feature == column) & np.isfinite(self.tree.threshold)
            values = np.unique(self.tree.threshold[here])
            form = _FORMATS.get(self._unit(column), number_format)
            self.formats[column] = form(values, self.decimals)
        return self.formats[column]

    def _value_format(self) -> Callable[[float], str]:
        """Leaf values need not all differ in print, but the largest shows three digits."""
        if None not in self.formats:
            largest = float(np.abs(self.tree.value).max())
            digits = 2 - int(np.floor(np.log10(largest))) if 0.0 < largest < 1.0 else 0
            decimals = max(self.decimals, digits)
            self.formats[None] = (
                (lambda v: f"{v:.{decimals}f}")
                if decimals <= max(FIXED_DECIMALS, self.decimals)
                else (lambda v: f"{v:.3g}")
            )
        return self.formats[None]

    def _subset(self, node: int, column: int) -> str:
        codes = subset_codes(self.tree, node)
        shown = codes[:MOST_CATEGORIES] if len(codes) > MOST_CATEGORIES + 1 else codes
        if self.book is None:
            words = [f"code {c}" for c in shown]
        else:
            first = int(self.book.n_ordered[column]) + 1
            words = [category_word(self.book.categories[column][c - first]) for c in shown]
        if len(shown) < len(codes):
            words.append(f"... {len(codes) - len(shown)} more")
        return "{" + ", ".join(words) + "}"


def subset_codes(tree: Tree, node: int) -> np.ndarray:
    """Codes that go left at a node that tests a set, ascending, without 0 for missing."""
    starts = np.append(
        np.unique(tree.subset_offset[tree.subset_offset >= 0]), len(tree.subset_words)
    )
    begin = int(tree.subset_offset[node])
    end = int(starts[np.searchsorted(starts, begin, side="right")])
    words = tree.subset_words[begin:end].astype("<u8")
    codes = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    return codes[codes > 0]


def category_word(value: Any) -> str:
    """A category in a set: as it is, in quotes where the set would be misread."""
    word = str(value)
    if word != word.strip() or not word or any(mark in word for mark in ",{}\n"):
        return repr(word)
    return word


def number_format(values: np.ndarray, decimals: int) -> Callable[[float], str]:
    """How to print numbers so that the text can be trusted.

    Different numbers look different, and rounding changes none of them by more than one in a
    hundred.

    Parameters
    ----------
    values : float64 (n_values,)
        Distinct.
    decimals : int
        Least number of decimals. When more than eight would be needed, numbers are printed with
        significant digits instead.
    """
    for more in range(decimals, max(decimals, FIXED_DECIMALS) + 1):
        if _tells_apart([f"{v:.{more}f}" for v in values], values):
            return lambda v: f"{v + 0.0:.{more}f}"
    digits = next(
        (k for k in range(3, 18) if _tells_apart([f"{v:.{k}g}" for v in values], values)), 17
    )
    return lambda v: f"{v + 0.0:.{digits}g}"


def date_format(values: np.ndarray, decimals: int) -> Callable[[float], str]:
    """How to print nanoseconds since 1970 as dates: the coarsest unit that says enough.

    Days, minutes or seconds when that is exact; otherwise as fine as it takes to tell the dates
    apart. `decimals` is for numbers and not looked at.
    """
    whole = np.rint(values).astype(np.int64)
    unit = next((u for u, size in NANOSECONDS.items() if not np.any(whole % size)), None)
    if unit is None:
        unit = next(
            u
            for u in ("s", "ms", "us", "ns")
            if u == "ns" or len(np.unique(whole.astype("M8[ns]").astype(f"M8[{u}]"))) == len(whole)
        )

    def text(value: float) -> str:
        date = np.datetime64(round(value), "ns")
        return str(date)[: SHORT[unit]].replace("T", " ")

    return text


def duration_format(values: np.ndarray, decimals: int) -> Callable[[float], str]:
    """How to print nanoseconds as durations, to the microsecond: "1 day, 2:00:00"."""
    return lambda value: str(timedelta(microseconds=value / 1000))


_FORMATS = {"datetime64[ns]": date_format, "timedelta64[ns]": duration_format}


def _tells_apart(texts: list[str], values: np.ndarray) -> bool:
    shown = np.array([float(text) for text in texts])
    precise = np.all(np.abs(shown - values) <= 0.01 * np.abs(values))
    return bool(precise) and len(np.unique(shown)) == len(shown)


def _parts(decision_tree: Any) -> tuple[Tree, Any, Sequence | None]:
    """The tree on codes, its view (or None) and the class labels of whatever was given."""
    if isinstance(decision_tree, Tree):
        return decision_tree, None, None
    if hasattr(decision_tree, "codebook"):
        return decision_tree.model, decision_tree, None
    check_is_fitted(decision_tree)
    view = decision_tree.tree_
    return view.model, view, getattr(decision_tree, "classes_", None)


def _column_names(tree: Tree, book: CodeBook | None, given: Sequence[str] | None) -> list[str]:
    if given is not None:
        if len(given) != tree.n_columns:
            raise ValueError(
                f"feature_names must contain {tree.n_columns} elements, got {len(given)}"
            )
        return [str(name) for name in given]
    if book is not None and book.feature_names is not None:
        return [str(name) for name in book.feature_names]
    return [f"feature_{i}" for i in range(tree.n_columns)]


def _class_names(tree: Tree, classes: Sequence | None, given: Sequence[str] | None) -> list[str]:
    if tree.criterion not in ("gini", "entropy"):
        return []
    n_classes = tree.value.shape[1]
    if given is not None:
        if len(given) != n_classes:
            raise ValueError(
                "When `class_names` is an array, it should contain as many items as "
                f"`decision_tree.classes_`. Got {len(given)} while the tree was fitted with "
                f"{n_classes} classes."
            )
        return [str(name) for name in given]
    return [str(label) for label in (range(n_classes) if classes is None else classes)]


def _heights(tree: Tree) -> np.ndarray:
    """Levels from every node down to its deepest leaf, int64 (n_nodes,); 1 for a leaf."""
    height = np.ones(tree.node_count, dtype=np.int64)
    for node in range(tree.node_count - 1, -1, -1):  # children stand behind their parent
        if tree.test[node] != LEAF:
            below = height[tree.children_left[node]], height[tree.children_right[node]]
            height[node] = 1 + max(below)
    return height


def _indented(text: str, level: int, spacing: int) -> str:
    return ("|" + " " * spacing) * (level - 1) + "|" + "-" * spacing + " " + text
