"""Tests and leaves of one tree in the user's words, for text, Graphviz and shared trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.core.data.criteria import CRITERIA
from dtrees.export.model_nodes import ModelNodes, TreeNodes

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

FIXED_DECIMALS = 8
SAFE_DIGITS = 15  # significant: with more of them 0.49 may become 0.48999999999999999
NANOSECONDS = {"D": 86_400_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000}
SHORT = {"D": 10, "m": 16, "s": 19, "ms": 23, "us": 26, "ns": 29}
LEAST_ROOM = 30  # columns for the members of a set, even where a line then gets too long


def category_word(value: Any) -> str:
    """A category in a set: as it is, in quotes where the set would be misread."""
    word = str(value)
    if word != word.strip() or not word or any(mark in word for mark in ",{}\n"):
        return repr(word)
    return word


def number_format(values: np.ndarray, decimals: int) -> Callable[[float], str]:
    """A format of numbers whose text can be trusted.

    Distinct numbers look different, and rounding changes none of them by more than one in a
    hundred. Where more than eight decimals would be needed, or twenty digits before the point,
    numbers have significant digits, and where fifteen of these are not enough, the shortest form
    that gives them back.
    """
    is_fixed = np.abs(values).max(initial=0.0) < 1e20
    for more in range(decimals, max(decimals, FIXED_DECIMALS) + 1) if is_fixed else ():
        if _tells_apart([f"{v:.{more}f}" for v in values], values):
            return lambda v: f"{v + 0.0:.{more}f}"
    for digits in range(3, SAFE_DIGITS + 1):
        if _tells_apart([f"{v:.{digits}g}" for v in values], values):
            return lambda v: f"{v + 0.0:.{digits}g}"
    return lambda v: repr(float(v) + 0.0)


def date_format(values: np.ndarray, decimals: int) -> Callable[[float], str]:
    """A format of nanoseconds since 1970 as dates: the coarsest unit that says enough.

    Days, minutes or seconds when that is exact; otherwise as fine as it takes to tell the dates
    apart.
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
    """A format of nanoseconds as durations, to the microsecond: "1 day, 2:00:00"."""
    return lambda value: str(timedelta(microseconds=value / 1000))


FORMATS = {"datetime64[ns]": date_format, "timedelta64[ns]": duration_format}


def _tells_apart(texts: list[str], values: np.ndarray) -> bool:
    shown = np.array([float(text) for text in texts])
    precise = np.all(np.abs(shown - values) <= 0.01 * np.abs(values))
    return bool(precise) and len(np.unique(shown)) == len(shown)


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

    @property
    def text(self) -> str:
        """The line as one text, with single blanks."""
        return (self.head + ", ".join(self.members) + self.tail).replace(" >  ", " > ")

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
    """The values of a column that can come to a node, as far as tests of the column decide.

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
        """Tell whether a category can come."""
        return self.categories is None or len(self.categories) > 0

    @property
    def is_missing_only(self) -> bool:
        """Tell whether nothing but missing values comes."""
        return self.missing and not self.numbers and not self.has_categories


@dataclass(eq=False)
class TreeFormatter:
    """Writes the tests and leaves of one tree.

    Attributes
    ----------
    nodes : TreeNodes
        The tree. Without a codebook, categories are written as codes, thresholds as numbers. The
        side of missing values is written for columns that had some at fit.
    names, classes : list of str
        Of the columns; of the classes (empty for regression). `reach` and `parts` work without.
    decimals : int
    show_weights : bool
    max_categories : int or None
    formats : dict
        How the thresholds of a column (None: the values of leaves) are printed, once known.
    """

    nodes: TreeNodes
    names: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    decimals: int = 2
    show_weights: bool = False
    max_categories: int | None = 20
    formats: dict[int | None, Callable[[float], str]] = field(default_factory=dict, init=False)

    @property
    def book(self) -> CodeBook | None:
        """The codebook; None of a tree on codes."""
        return self.nodes.book

    def leaf(self, node: int) -> Line:
        """The line of a leaf: its class or its value."""
        (value,) = self.nodes.value_of([node])
        if not self.classes:
            return Line(f"value: [{self.answer(value)}]")
        name = f"class: {self.answer(value)}"
        if not self.show_weights:
            return Line(name)
        weights = self.nodes.class_weights(node)
        return Line("weights: [", tuple(f"{w:.{self.decimals}f}" for w in weights), f"] {name}")

    def answer(self, value: np.ndarray) -> str:
        """The class of the largest share, or the number; of each target."""
        if not self.classes:
            return ", ".join(map(self.value_format(), value.tolist()))
        ends = np.cumsum(self.nodes.coded_tree.n_classes or [len(value)])
        shares = np.split(value, ends[:-1])
        each = [end - len(own) + int(own.argmax()) for own, end in zip(shares, ends, strict=True)]
        return ", ".join(self.classes[number] for number in each)

    def reach(self, column: int) -> Reach:
        """All that a column may hold."""
        if self.book is None:
            return Reach(None, numbers=True, missing=False)
        n_ordered, n_codes = int(self.book.n_ordered[column]), int(self.book.n_codes[column])
        return Reach(
            np.arange(n_ordered + 1, n_codes + 1),
            numbers=n_ordered > 0,
            missing=bool(self.nodes.saw_missing is not None and self.nodes.saw_missing[column]),
        )

    def parts(self, node: int, reach: Reach) -> tuple[Reach, Reach]:
        """The values that the test of a node sends left, and those that it sends right."""
        missing_left = bool(self.nodes.missing_left[node])
        if self.nodes.is_set[node]:
            goes_left = self.nodes.codes_left(node)
            codes = np.arange(1, len(goes_left)) if reach.categories is None else reach.categories
            inside, outside = codes[goes_left[codes]], codes[~goes_left[codes]]
            numbers = False, reach.numbers
        else:
            inside, outside = np.empty(0, dtype=np.intp), reach.categories
            numbers = reach.numbers, reach.numbers and not np.isinf(self.nodes.threshold[node])
        return (
            Reach(inside, numbers[0], reach.missing and missing_left),
            Reach(outside, numbers[1], reach.missing and not missing_left),
        )

    def children(
        self, node: int, reaches: dict[int, Reach]
    ) -> tuple[tuple[int, dict[int, Reach], Line], tuple[int, dict[int, Reach], Line]]:
        """Both children of a node: number, what comes to it by column, and what leads to it."""
        column = int(self.nodes.column[node])
        left, right = self.parts(node, reaches.get(column) or self.reach(column))
        passed, failed = self.sides(node, left, right)
        return (
            (int(self.nodes.left[node]), reaches | {column: left}, passed),
            (int(self.nodes.right[node]), reaches | {column: right}, failed),
        )

    def sides(self, node: int, left: Reach, right: Reach) -> tuple[Line, Line]:
        """The test of a node and its negation, from what they let through."""
        column = int(self.nodes.column[node])
        name = self.names[column]
        if right.is_missing_only:
            return Line(f"{name} is not missing"), Line(f"{name} is missing")
        if left.is_missing_only:
            return Line(f"{name} is missing"), Line(f"{name} is not missing")
        if self.nodes.is_set[node]:
            passed, failed = self._sides_of_set(column, left, right)
        else:
            passed, failed = self._sides_of_number(node, column, right.has_categories)
        if left.missing:
            passed = replace(passed, tail=passed.tail + " or missing")
        if right.missing:
            failed = replace(failed, tail=failed.tail + " or missing")
        return passed, failed

    def _sides_of_number(self, node: int, column: int, or_category: bool) -> tuple[Line, Line]:
        name, threshold = self.names[column], float(self.nodes.threshold[node])
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
        passed, failed = (above, at_most) if self.nodes.is_above[node] else (at_most, above)
        return Line(passed), Line(failed, tail=" or a category" if hybrid else "")

    def _sides_of_set(self, column: int, left: Reach, right: Reach) -> tuple[Line, Line]:
        """The smaller set of the two, unless its side has numbers beside it."""
        name, inside, outside = self.names[column], left.categories, right.categories
        assert inside is not None
        assert outside is not None
        is_left = right.numbers or len(inside) <= len(outside)
        members = self._members(column, inside if is_left else outside)
        has, has_not = Line(f"{name} in {{", members, "}"), Line(f"{name} not in {{", members, "}")
        return (has, has_not) if is_left else (has_not, has)

    def unit(self, column: int) -> str:
        """Unit of a column's numbers."""
        return "number" if self.book is None else self.book.unit(column)

    def _threshold_format(self, column: int) -> Callable[[float], str]:
        if column not in self.formats:
            here = (self.nodes.column == column) & np.isfinite(self.nodes.threshold)
            values = np.unique(self.nodes.threshold[here])
            form = FORMATS.get(self.unit(column), number_format)
            self.formats[column] = form(values, self.decimals)
        return self.formats[column]

    def value_format(self) -> Callable[[float], str]:
        """Leaf values need not all differ in print, but the largest shows three digits."""
        if None not in self.formats:
            largest = float(np.abs(self.nodes.value).max())
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


def impurity_name(tree: TreeNodes) -> str:
    """Name of the impurity of nodes: Gini's or squared errors, where a criterion has none."""
    row = CRITERIA.get(tree.criterion)
    if row is None or not row.is_function:
        return tree.criterion
    return "squared_error" if row.of_numbers else "gini"


def formatter_of(
    view: ModelNodes,
    number: int,
    feature_names: Sequence[str] | None,
    class_names: Sequence[str] | None,
    **options: Any,
) -> TreeFormatter:
    """The formatter of a tree of a model, with these names and options."""
    nodes = view.tree(number)
    return TreeFormatter(
        nodes,
        names=column_names(view, feature_names),
        classes=[] if nodes.is_regression else label_names(view.labels, class_names),
        **options,
    )


def column_names(view: ModelNodes, given: Sequence[str] | None) -> list[str]:
    """A name for every column: the given ones, or those of the view."""
    if given is None:
        return view.column_names
    if len(given) != view.n_columns:
        raise ValueError(f"feature_names must contain {view.n_columns} elements, got {len(given)}")
    return [str(name) for name in given]


def column_number(column: int | str, names: Sequence[str], argument: str) -> int:
    """The number of a column, given by it or by its name; `argument` is in messages.

    Raises ValueError where there is none, or several of the name.
    """
    found = (
        [column]
        if isinstance(column, Integral)
        else [j for j, name in enumerate(names) if name == column]
    )
    if len(found) > 1:
        raise ValueError(
            f"{argument}: there are {len(found)} columns {column!r}. Give the number of one: "
            f"{', '.join(map(str, found))}."
        )
    if not found or not 0 <= found[0] < len(names):
        raise ValueError(
            f"{argument}: there is no column {column!r} among the {len(names)} of the fit."
        )
    return int(found[0])


def label_names(labels: list, given: Sequence[str] | None) -> list[str]:
    """A name for every class: the given ones, or the labels."""
    if given is not None:
        if len(given) != len(labels):
            raise ValueError(
                "When `class_names` is an array, it should contain as many items as "
                f"`decision_tree.classes_`. Got {len(given)} while the tree was fitted with "
                f"{len(labels)} classes."
            )
        return [str(name) for name in given]
    return [str(label) for label in labels]
