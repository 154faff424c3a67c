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
other and to be right to one in a hundred.

A line speaks of the values that can come to its node: of those that no test of the same column
further up has sent elsewhere. Of the two sets of categories that a test tells apart the smaller is
written out, on both sides: ``in`` where its categories go, ``not in`` where the others do, so that
a complete set says where each of them goes. ``or missing`` stands on the side that missing values
take, in columns that had some at fit. Where categories go that were not there at fit is a matter of
the codebook's `handle_unknown` and is not told.

A test of a hybrid column is about its numbers or about its categories, never both: a category
passes neither ``<=`` nor ``>``, so the other side of a numeric test holds all categories.

A long line is broken between the members of its set, and goes on below the first of them::

    |   |--- country in {Argentina, Belgium, Brazil, Chile,
    |   |                Denmark, Finland} or missing
    |   |   |--- class: no
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtrees.core.model.tree import ABOVE, IN_SUBSET, LEAF, Tree

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

LEAST_ROOM = 30  # columns for the members of a set, even where a line then gets too long
FIXED_DECIMALS = 8
SAFE_DIGITS = 15  # significant: with more of them 0.49 may become 0.48999999999999999
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
    max_categories: int | None = 20,
    max_width: int | None = 100,
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
    max_categories : int, default=20
        Longest set of categories that is written out; longer ones end with the number of those
        that are left out. None: no limit.
    max_width : int, default=100
        Lines longer than this are broken between categories and between weights, and only there:
        names, numbers and single categories stay whole. None: one line per test and leaf.

    Returns
    -------
    str
        A line per test and side, a line per leaf, if need be broken. O(printed nodes), and for
        tests of categories O(categories) each.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    ValueError
        Too many or too few names, or a negative size.
    """
    check_sizes(
        "export_text", max_depth=(max_depth, 0), spacing=(spacing, 1), decimals=(decimals, 0)
    )
    check_sizes(
        "export_text",
        or_none=True,
        max_categories=(max_categories, 1),
        max_width=(max_width, 1),
    )
    words = words_of(
        decision_tree,
        feature_names,
        class_names,
        decimals=decimals,
        show_weights=show_weights,
        max_categories=max_categories,
    )
    tree = words.tree
    height = _heights(tree)
    lines: list[str] = []

    def write(line: Line, level: int) -> None:
        lines.extend(line.broken(level, spacing, max_width))

    # node, level, the side of a test that leads to it, what tests above have left of their columns
    todo: list[tuple[int, int, Line | None, dict[int, Reach]]] = [(0, 1, None, {})]
    while todo:
        node, level, side, reaches = todo.pop()
        if side is not None:
            write(side, level - 1)
        if tree.test[node] == LEAF:
            write(words.leaf(node), level)
        elif level > max_depth + 1:
            write(Line(f"truncated branch of depth {height[node]}"), level)
        else:
            column = int(tree.feature[node])
            left, right = words.parts(node, reaches.get(column) or words.reach(column))
            passed, failed = words.sides(node, left, right)
            todo.append(
                (int(tree.children_right[node]), level + 1, failed, reaches | {column: right})
            )
            todo.append(
                (int(tree.children_left[node]), level + 1, passed, reaches | {column: left})
            )
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Line:
    """One side of a test, or a leaf: the members of a set, and what stands around them.

    Attributes
    ----------
    head : str
        Up to the opening bracket.
    members : tuple of str
        Of the set; a line may have none.
    tail : str
        From the closing bracket.
    """

    head: str
    members: tuple[str, ...] = ()
    tail: str = ""

    def broken(self, level: int, spacing: int, max_width: int | None) -> list[str]:
        """The line behind the frame of its level, in as many lines as its width asks for."""
        frame = ("|" + " " * spacing) * (level - 1) + "|"
        start = f"{frame}{'-' * spacing} {self.head}"
        whole = start + ", ".join(self.members) + self.tail
        if max_width is None or len(whole) <= max_width or not self.members:
            return [whole]
        indent = len(start)
        if indent + LEAST_ROOM > max_width:  # a long name: below its beginning
            indent = min(indent, len(frame) + spacing + 1 + 4)
        width = max(max_width, indent + LEAST_ROOM)
        margin = frame.ljust(indent)
        lines, line, blank = [], start, ""
        for i, member in enumerate(self.members, start=1):
            piece = member + ("," if i < len(self.members) else self.tail)
            if len(line + blank + piece) > width and len(line) > indent:
                lines.append(line)
                line, blank = margin, ""
            line += blank + piece
            blank = " "
        return [*lines, line]


@dataclass(frozen=True, eq=False)
class Reach:
    """What of a column can come to a node, as far as tests of this column decide.

    Attributes
    ----------
    categories : int (n,) or None
        Codes, ascending; None: all, of a tree on codes that does not know how many there are.
    numbers : bool
    missing : bool
        False also where there were none at fit.
    """

    categories: np.ndarray | None
    numbers: bool
    missing: bool

    @property
    def has_categories(self) -> bool:
        """Whether there is any."""
        return self.categories is None or len(self.categories) > 0

    @property
    def is_missing_only(self) -> bool:
        """Whether nothing but missing values comes."""
        return self.missing and not self.numbers and not self.has_categories


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
        Of the columns; of the classes (empty for regression). Without them nothing can be put into
        words, but `reach` and `parts` work.
    decimals : int
    show_weights : bool
    max_categories : int or None
    formats : dict
        How the thresholds of a column (None: the values of leaves) are printed, once known.
    subset_starts : int64
        Where the subsets of the tree begin, and where the last one ends; ascending.
    """

    tree: Tree
    book: CodeBook | None
    saw_missing: np.ndarray | None
    names: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    decimals: int = 2
    show_weights: bool = False
    max_categories: int | None = 20
    formats: dict[int | None, Callable[[float], str]] = field(default_factory=dict, init=False)
    subset_starts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        offsets = self.tree.subset_offset
        starts = np.unique(offsets[offsets >= 0])
        self.subset_starts = np.append(starts, len(self.tree.subset_words))

    def leaf(self, node: int) -> Line:
        """What a leaf predicts."""
        (value,) = self.tree.value_of([node])
        if not self.classes:
            return Line(f"value: [{self.value_format()(float(value[0]))}]")
        name = f"class: {self.classes[int(value.argmax())]}"
        if not self.show_weights:
            return Line(name)
        weights = self.tree.statistics[node] * self.tree.weight_unit
        return Line("weights: [", tuple(f"{w:.{self.decimals}f}" for w in weights), f"] {name}")

    def reach(self, column: int) -> Reach:
        """All that a column may hold."""
        if self.book is None:
            return Reach(None, numbers=True, missing=False)
        n_ordered, n_codes = int(self.book.n_ordered[column]), int(self.book.n_codes[column])
        return Reach(
            np.arange(n_ordered + 1, n_codes + 1),
            numbers=n_ordered > 0,
            missing=self.saw_missing is not None and bool(self.saw_missing[column]),
        )

    def parts(self, node: int, reach: Reach) -> tuple[Reach, Reach]:
        """What the test of a node sends left and right of what comes to it."""
        missing_left = bool(self.tree.missing_go_to_left[node])
        if self.tree.test[node] == IN_SUBSET:
            goes_left = self._subset(node)
            codes = np.arange(1, len(goes_left)) if reach.categories is None else reach.categories
            inside, outside = codes[goes_left[codes]], codes[~goes_left[codes]]
            numbers = False, reach.numbers
        else:
            inside, outside = np.empty(0, dtype=np.intp), reach.categories
            numbers = reach.numbers, reach.numbers and not np.isinf(self.tree.threshold[node])
        return (
            Reach(inside, numbers[0], reach.missing and missing_left),
            Reach(outside, numbers[1], reach.missing and not missing_left),
        )

    def sides(self, node: int, left: Reach, right: Reach) -> tuple[Line, Line]:
        """The test of a node and its contrary, from what they let through."""
        column = int(self.tree.feature[node])
        name = self.names[column]
        if right.is_missing_only:
            return Line(f"{name} is not missing"), Line(f"{name} is missing")
        if left.is_missing_only:
            return Line(f"{name} is missing"), Line(f"{name} is not missing")
        if self.tree.test[node] == IN_SUBSET:
            passed, failed = self._sides_of_set(column, left, right)
        else:
            passed, failed = self._sides_of_number(node, column, right.has_categories)
        if left.missing:
            passed = replace(passed, tail=passed.tail + " or missing")
        if right.missing:
            failed = replace(failed, tail=failed.tail + " or missing")
        return passed, failed

    def _sides_of_number(self, node: int, column: int, or_category: bool) -> tuple[Line, Line]:
        name, threshold = self.names[column], float(self.tree.threshold[node])
        hybrid = self.book is not None and or_category
        if np.isinf(threshold):
            return (
                (Line(f"{name} is a number"), Line(f"{name} is a category"))
                if hybrid
                else (Line(f"{name} is not missing"), Line(f"{name} is missing"))
            )
        if self.unit(column) == "bool":
            return Line(f"{name} is False"), Line(f"{name} is True")
        value = self._threshold_format(column)(threshold)
        at_most, above = f"{name} <= {value}", f"{name} >  {value}"
        passed, failed = (above, at_most) if self.tree.test[node] == ABOVE else (at_most, above)
        return Line(passed), Line(failed, tail=" or a category" if hybrid else "")

    def _sides_of_set(self, column: int, left: Reach, right: Reach) -> tuple[Line, Line]:
        """The smaller set of the two, unless its side has numbers beside it."""
        name, inside, outside = self.names[column], left.categories, right.categories
        assert inside is not None
        assert outside is not None
        if right.numbers or len(inside) <= len(outside):
            members = self._members(column, inside)
            return Line(f"{name} in {{", members, "}"), Line(f"{name} not in {{", members, "}")
        members = self._members(column, outside)
        return Line(f"{name} not in {{", members, "}"), Line(f"{name} in {{", members, "}")

    def unit(self, column: int) -> str:
        """Unit of a column's numbers."""
        return "number" if self.book is None else self.book.unit(column)

    def _threshold_format(self, column: int) -> Callable[[float], str]:
        if column not in self.formats:
            here = (self.tree.feature == column) & np.isfinite(self.tree.threshold)
            values = np.unique(self.tree.threshold[here])
            form = FORMATS.get(self.unit(column), number_format)
            self.formats[column] = form(values, self.decimals)
        return self.formats[column]

    def value_format(self) -> Callable[[float], str]:
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

    def _members(self, column: int, codes: np.ndarray) -> tuple[str, ...]:
        """The categories of some codes; of a long list the first, and how many there are more."""
        most = len(codes) if self.max_categories is None else self.max_categories
        shown = codes[:most] if len(codes) > most + 1 else codes
        if self.book is None:
            words = [f"code {c}" for c in shown]
        else:
            first = int(self.book.n_ordered[column]) + 1
            words = [category_word(self.book.categories[column][c - first]) for c in shown]
        if len(shown) < len(codes):
            words.append(f"... {len(codes) - len(shown)} more")
        return tuple(words)

    def _subset(self, node: int) -> np.ndarray:
        """Whether a code goes left at a node that tests a set: bool, a multiple of 64 of them."""
        begin = self.tree.subset_offset[node]
        end = self.subset_starts[np.searchsorted(self.subset_starts, begin, side="right")]
        words = self.tree.subset_words[begin:end].astype("<u8")
        return np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)


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
        significant digits instead, and where fifteen of them are not enough, each in the shortest
        form that gives it back.
    """
    for more in range(decimals, max(decimals, FIXED_DECIMALS) + 1):
        if _tells_apart([f"{v:.{more}f}" for v in values], values):
            return lambda v: f"{v + 0.0:.{more}f}"
    for digits in range(3, SAFE_DIGITS + 1):
        if _tells_apart([f"{v:.{digits}g}" for v in values], values):
            return lambda v: f"{v + 0.0:.{digits}g}"
    return lambda v: repr(float(v) + 0.0)


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


FORMATS = {"datetime64[ns]": date_format, "timedelta64[ns]": duration_format}


def _tells_apart(texts: list[str], values: np.ndarray) -> bool:
    shown = np.array([float(text) for text in texts])
    precise = np.all(np.abs(shown - values) <= 0.01 * np.abs(values))
    return bool(precise) and len(np.unique(shown)) == len(shown)


def check_sizes(who: str, *, or_none: bool = False, **sizes: tuple[Any, int]) -> None:
    """Refuse sizes that are no integers, or too small.

    Parameters
    ----------
    who : str
        Asks; for the message.
    or_none : bool, default=False
        Whether they may be None.
    **sizes : tuple of (object, int)
        What is given for a parameter, and what it has to be at least.

    Raises
    ------
    ValueError
    """
    for name, (value, least) in sizes.items():
        is_right = isinstance(value, Integral) and int(value) >= least
        if not (is_right or (or_none and value is None)):
            raise ValueError(
                f"The {name!r} parameter of {who} must be an int in the range [{least}, inf)"
                f"{' or None' if or_none else ''}. Got {value!r} instead."
            )


def parts_of(decision_tree: Any) -> tuple[Tree, Any, Sequence | None]:
    """The tree on codes, its view (or None) and the class labels of whatever was given."""
    if isinstance(decision_tree, Tree):
        return decision_tree, None, None
    if hasattr(decision_tree, "codebook"):
        return decision_tree.model, decision_tree, None
    check_is_fitted(decision_tree)
    view = decision_tree.tree_
    return view.model, view, getattr(decision_tree, "classes_", None)


def words_of(
    decision_tree: Any,
    feature_names: Sequence[str] | None,
    class_names: Sequence[str] | None,
    **options: Any,
) -> Words:
    """What is said of a tree, of whatever was given, by these names and options of `Words`."""
    tree, view, labels = parts_of(decision_tree)
    return Words(
        tree,
        None if view is None else view.codebook,
        None if view is None else view.saw_missing,
        names=column_names(tree, view, feature_names),
        classes=class_names_of(tree, labels, class_names),
        **options,
    )


def column_names(tree: Tree, view: Any, given: Sequence[str] | None) -> list[str]:
    """A name for every column: the given ones, those at fit, or numbers."""
    if given is not None:
        if len(given) != tree.n_columns:
            raise ValueError(
                f"feature_names must contain {tree.n_columns} elements, got {len(given)}"
            )
        return [str(name) for name in given]
    if view is not None and view.codebook.feature_names is not None:
        return [str(name) for name in view.codebook.feature_names]
    return [f"feature_{i}" for i in range(tree.n_columns)]


def class_names_of(tree: Tree, labels: Sequence | None, given: Sequence[str] | None) -> list[str]:
    """A name for every class: the given ones, the labels, or numbers; none for regression."""
    if tree.is_regression:
        return []
    n_classes = tree.n_values
    if given is not None:
        if len(given) != n_classes:
            raise ValueError(
                "When `class_names` is an array, it should contain as many items as "
                f"`decision_tree.classes_`. Got {len(given)} while the tree was fitted with "
                f"{n_classes} classes."
            )
        return [str(name) for name in given]
    return [str(label) for label in (range(n_classes) if labels is None else labels)]


def _heights(tree: Tree) -> np.ndarray:
    """Levels from every node down to its deepest leaf, int64 (n_nodes,); 1 for a leaf."""
    height = np.ones(tree.node_count, dtype=np.int64)
    for node in range(tree.node_count - 1, -1, -1):  # children stand behind their parent
        if tree.test[node] != LEAF:
            below = height[tree.children_left[node]], height[tree.children_right[node]]
            height[node] = 1 + max(below)
    return height
