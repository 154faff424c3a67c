"""Partial dependence: mean predictions of a model when a column has a given value.

A row that comes to a test of the column goes where the value says. At any other test it goes both
ways, with the shares of the training rows [Friedman 2001, 8.2]::

    age <= 40 ─┬─ left   hours <= 35 ─┬─ 30 % of its rows: 0.2
               │                      └─ 70 %            : 0.6
               └─ right  0.9

    at age 30: 0.3 x 0.2 + 0.7 x 0.6 = 0.48        at age 50: 0.9

Of two columns, a leaf has a share of the rows by tests of other columns, and a value of either
column comes to it or does not. So the pairs of values are a product of two matrices.

No row is predicted: it takes trees alone. scikit-learn calls it ``method="recursion"``, for its
own trees. Brute force asks all rows instead, each with the value in its column. The two differ
where columns depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from dtrees._warnings import warn
from dtrees.coding.labels import is_missing, object_array
from dtrees.constraints import ArrayLike, InstanceOf, IntegerIn, Nothing, checked
from dtrees.export.model_nodes import ModelNodes, TreeNodes
from dtrees.inspection.tree_formatter import column_number

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

TIMES = ("datetime64[ns]", "timedelta64[ns]")  # units whose numbers are nanoseconds
SECOND, DAY = 10**9, 86_400 * 10**9
LAST_TIME = 2**63 - 2**10  # the last float64 that is a time


@dataclass(frozen=True, eq=False)
class Points:
    """Values of a column as tests see them; a missing value has neither number nor code.

    Attributes
    ----------
    numbers : float64 (n,)
        NaN where there is none; dates and durations in nanoseconds.
    codes : int64 (n,)
        Of categories; 0 where there is none.
    """

    numbers: np.ndarray
    codes: np.ndarray

    def __len__(self) -> int:
        return len(self.numbers)

    def with_missing(self) -> Points:
        """The points, and a missing value behind them."""
        return Points(np.append(self.numbers, np.nan), np.append(self.codes, 0))

    def go_left(self, tree: TreeNodes, nodes: np.ndarray) -> np.ndarray:
        """Tell which points the tests of nodes send left, bool (n_nodes, n)."""
        cuts = tree.threshold[nodes][:, None]
        is_above = tree.is_above[nodes][:, None]
        left = np.where(is_above, self.numbers > cuts, self.numbers <= cuts)
        for i in np.flatnonzero(tree.is_set[nodes]).tolist():
            left[i] = tree.codes_left(int(nodes[i]))[self.codes] & (self.codes > 0)
        gaps = np.isnan(self.numbers) & (self.codes == 0)
        left[:, gaps] = tree.missing_left[nodes][:, None]
        return left


def _asked_for(
    trees: Sequence[TreeNodes], book: CodeBook, column: int, values: Any, resolution: int
) -> np.ndarray:
    """The values of a column that are asked for, as the user has them.

    None: those where answers of trees change, a number above, and all categories.
    """
    if values is not None:
        is_mixed = column in book.categories and not isinstance(values, np.ndarray)
        return object_array(list(values)) if is_mixed else np.asarray(values)
    numbers, unit = np.empty(0), book.unit(column)
    if book.n_ordered[column] > 0:
        numbers = np.array([0.0, 1.0]) if unit == "bool" else _steps(trees, book, column)
    if len(numbers) > resolution:
        numbers = numbers[np.linspace(0, len(numbers) - 1, resolution).astype(np.int64)]
    if unit in TIMES:
        return np.floor(numbers).astype(np.int64).astype(unit)
    if column not in book.categories:
        return numbers
    return object_array([*numbers.tolist(), *book.categories[column].tolist()])


def _steps(trees: Sequence[TreeNodes], book: CodeBook, column: int) -> np.ndarray:
    """Thresholds of a column, and a number above the last; 0 where there is none."""
    found = np.concatenate([tree.threshold[tree.column == column] for tree in trees])
    found = np.unique(found[np.isfinite(found)])
    if len(found) == 0:
        return np.zeros(1)
    last, reach = float(found[-1]), float(found[-1] - found[0])
    beyond = min(last + (max(reach, abs(last)) / 10 or 1.0), np.finfo(np.float64).max)
    if book.unit(column) in TIMES:
        beyond = _whole_time_after(last, reach)
    elif book.n_ordered[column] == 2 and reach == 0 and last % 0.5 == 0 and abs(last) < 2**52:
        beyond = np.floor(last) + 1.0  # halfway between 0 and 1, 1 and 2, -1 and 1
    return np.append(found, beyond) if beyond > last else found


def _whole_time_after(last: float, reach: float) -> float:
    """The next whole day after a number of nanoseconds; the next second where times are close."""
    is_of_days = reach >= DAY or last % (DAY // 2) == 0  # halfway between two days
    unit = DAY if is_of_days else SECOND
    return float(min((int(last) // unit + 1) * unit, LAST_TIME))


def _points_of(book: CodeBook, column: int, values: np.ndarray) -> Points:
    """Points of values that the user has given; raises ValueError for a category never seen."""
    unit = book.unit(column)
    if unit in TIMES:
        times = values.astype(unit)
        nanoseconds = np.where(np.isnat(times), np.nan, times.astype(np.int64))
        return Points(nanoseconds, np.zeros(len(values), dtype=np.int64))
    known = book.numbers_of_categories(column)
    numbers, codes = np.full(len(values), np.nan), np.zeros(len(values), dtype=np.int64)
    for i, value in enumerate(values.tolist()):
        if is_missing(value):
            continue
        if value in known:
            codes[i] = known[value]
        elif isinstance(value, bool | int | float) and book.n_ordered[column] > 0:
            numbers[i] = value
        else:
            raise ValueError(f"{value!r} was not in column {book.name(column)} at fit.")
    return Points(numbers, codes)


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """Mean predictions by the value of a column.

    Attributes
    ----------
    name : str
        Of the column.
    values : array (n,)
        As the user has them: numbers, dates, categories.
    average : float64 (n_outputs, n)
        Of a classifier the shares of the classes, of a regressor one number. Of a boosted model raw
        predictions: log odds of the second of two classes, a number for each of more, or the
        number that the loss predicts or the logarithm of.
    missing : float64 (n_outputs,) or None
        Of a missing value; None where there was none at fit, or no tree asks for the column.
    """

    name: str
    values: np.ndarray
    average: np.ndarray
    missing: np.ndarray | None


@dataclass(frozen=True, eq=False)
class JointDependence:
    """Mean predictions by the values of two columns.

    Attributes
    ----------
    names : tuple of two str
        Of the columns.
    values : tuple of two arrays, (n,) and (m,)
        As the user has them. NaN is a missing value.
    average : float64 (n_outputs, n, m)
        As of one column.
    missing : tuple of two, float64 (n_outputs, m) or None, and float64 (n_outputs, n) or None
        Of a missing value in the first column, by the values of the second; and of one in the
        second, by the values of the first. None as of one column. Both at once can be asked for by
        `values`.
    """

    names: tuple[str, str]
    values: tuple[np.ndarray, np.ndarray]
    average: np.ndarray
    missing: tuple[np.ndarray | None, np.ndarray | None]


@overload
def partial_dependence(
    model: Any, column: int | str, *, values: Sequence | None = None, resolution: int = 100
) -> PartialDependence: ...


@overload
def partial_dependence(
    model: Any,
    column: Sequence[int | str],
    *,
    values: Sequence | None = None,
    resolution: int = 100,
) -> JointDependence: ...


@checked(
    column=(IntegerIn(0), InstanceOf(str, "str"), ArrayLike()),
    values=(ArrayLike(), Nothing()),
    resolution=(IntegerIn(2),),
)
def partial_dependence(
    model: Any, column: Any, *, values: Sequence | None = None, resolution: int = 100
) -> PartialDependence | JointDependence:
    """Compute the partial dependence of a model on a column or two, from its trees alone.

    Parameters
    ----------
    model : tree, forest or boosted model of dtrees, or TreeView
        Fitted.
    column : int, str, or array-like of one or two of these
        Its number, or its name at fit.
    values : sequence, default=None
        Numbers, dates or categories, and None, NaN or NaT for a missing value; of two columns a
        pair of sequences, or of None. None: the thresholds of the column, up to each of which a
        step goes, with one number above them (of dates a whole day or second, of two whole numbers
        the larger one); and all categories.
    resolution : int, default=100
        Most numbers that are taken of these.

    Returns
    -------
    PartialDependence, or JointDependence of two columns
        O(nodes x values), and O(leaves x pairs of values).

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    TypeError
        `model` is no tree, forest or boosted model of dtrees, or it is a tree on codes.
    ValueError
        There is no such column, a category was not there at fit, or columns are more than two.

    Notes
    -----
    Trees of a boosted model grow to gradients, but know how many rows come to each node. With
    weights, these are sums of weights.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import GradientBoostingRegressor
    >>> from dtrees.inspection import partial_dependence
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = GradientBoostingRegressor(max_iter=20).fit(X, y)
    >>> found = partial_dependence(model, "bmi", values=[-0.05, 0.05])
    >>> bool(found.average[0, 0] < found.average[0, 1])
    True
    >>> partial_dependence(model, ["bmi", "bp"], resolution=5).average.shape
    (1, 5, 5)
    """
    (view, book), asked = ModelNodes.with_book(model), {}
    columns: list[Any] = [column] if isinstance(column, str | Integral) else list(column)
    numbers = [column_number(each, view.column_names, "column") for each in columns]
    if len(set(numbers)) != len(numbers) or len(numbers) not in (1, 2):
        raise ValueError(f"Partial dependence is on one column or on two. Got {column!r}.")
    given = [values] * len(numbers) if len(numbers) == 1 or values is None else values
    if len(given) != len(numbers):
        raise ValueError(f"values of two columns are two sequences. Got {len(given)}.")
    shown, saw_missing = [], view.saw_missing
    for number, own in zip(numbers, given, strict=True):
        shown.append(_asked_for(view.trees, book, number, own, resolution))
        points = _points_of(book, number, shown[-1])
        asked[number] = points.with_missing() if saw_missing[number] else points
    average = mean_of_model(view, asked)
    missing = [
        average.take(-1, axis).copy() if saw_missing[number] else None
        for axis, number in enumerate(numbers, start=1)
    ]
    names = [view.column_names[number] for number in numbers]
    n = len(shown[0])
    if len(numbers) == 1:
        return PartialDependence(names[0], shown[0], average[:, :n], missing[0])
    (first, second), m = missing, len(shown[1])
    return JointDependence(
        (names[0], names[1]),
        (shown[0], shown[1]),
        average[:, :n, :m],
        (None if first is None else first[:, :m], None if second is None else second[:, :n]),
    )


def recursion(model: Any, grid: Any, target_features: Any) -> np.ndarray:
    """Mean predictions at points of some columns, for scikit-learn's ``method="recursion"``.

    grid : array (n_points, n_target_features), target_features : integers (n_target_features,)

    Returns float64 (n_outputs, n_points). What a boosted model begins with is in it, so these are
    means of its raw predictions, as of ``method="brute"``. A category that was not there at fit is
    missing.
    """
    if "init_" in vars(model):
        warn(
            "Using recursion method with a non-constant init predictor will lead to incorrect "
            "partial dependence values: it says nothing of init. Use method='brute'."
        )
        model = copy(model)
        del model.init_
    (view, book), grid = ModelNodes.with_book(model), np.asarray(grid)
    asked = {}
    for values, number in zip(grid.T, map(int, target_features), strict=True):
        if number in book.categories:
            known, has_numbers = book.numbers_of_categories(number), book.n_ordered[number] > 0
            values = object_array(
                [
                    each if each in known or (has_numbers and isinstance(each, Real)) else None
                    for each in values.tolist()
                ]
            )
        asked[number] = _points_of(book, number, values)
    return mean_of_model(view, asked, at_points=True)


def mean_of_tree(
    tree: TreeNodes, asked: Mapping[int, Points], at_points: bool = False
) -> np.ndarray:
    """Mean values of a tree for points of one column or two.

    Returns float64 (n_values, n_points), or (n_values, n_points, n_points of the second column).
    O(nodes x points of a column + leaves x all of them). With `at_points`, columns have as many
    points, one for each of the answers.
    """
    weight, leaves = tree.weight, tree.is_leaf
    share = np.ones(tree.n_nodes)  # of the rows, by tests of other columns
    comes = {j: np.ones((tree.n_nodes, len(own)), dtype=bool) for j, own in asked.items()}
    for nodes in _levels(tree):
        left, right = tree.left[nodes], tree.right[nodes]
        tested = tree.column[nodes]
        ratio = weight[left] / weight[nodes]
        is_asked = np.isin(tested, list(asked))
        share[left] = share[nodes] * np.where(is_asked, 1.0, ratio)
        share[right] = share[nodes] * np.where(is_asked, 1.0, 1.0 - ratio)
        for j, reached in comes.items():
            reached[left] = reached[right] = reached[nodes]
            here = tested == j
            goes_left = asked[j].go_left(tree, nodes[here])
            reached[left[here]] &= goes_left
            reached[right[here]] &= ~goes_left
    parts = tree.value[leaves].T * share[leaves]
    if at_points:
        comes = {0: np.logical_and.reduce([*comes.values()])}
    first, *others = (reached[leaves].astype(np.float64) for reached in comes.values())
    if not others:
        return np.stack([part @ first for part in parts])  # bits of a value alone
    return np.stack([(first.T * part) @ others[0] for part in parts])


def _levels(tree: TreeNodes) -> Iterator[np.ndarray]:
    """Inner nodes of a tree, level by level."""
    depth, inner = tree.depth, ~tree.is_leaf
    ends = np.cumsum(np.bincount(depth[inner]))
    yield from np.split(np.flatnonzero(inner)[np.argsort(depth[inner], kind="stable")], ends)[:-1]


def mean_of_model(
    view: ModelNodes, asked: Mapping[int, Points], at_points: bool = False
) -> np.ndarray:
    """Mean predictions of a model, or raw predictions; shaped as of a tree."""
    lengths = [len(points) for points in asked.values()][: 1 if at_points else None]
    total = np.zeros((view.n_outputs, *lengths))
    for number, tree in enumerate(view.trees):
        total[view.outputs_of(number)] += mean_of_tree(tree, asked, at_points)
    if view.start is not None:
        return view.start.reshape(-1, *[1] * len(lengths)) + total
    return total / len(view.trees)
