"""Quantiles of trees and forests of numbers: from the rows of the fit, kept leaf by leaf.

The fit keeps them where it is asked to (``keep_rows``), when its trees stand. They are found by a
walk of the coded table, and each tree's bag is drawn once more from the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtrees.constraints import ArrayLike, ArrayOf, Constraint, RealIn, checked
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.membership.resampling import Resampling
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.leaf_rows import LeafRows
from dtrees.estimators.fit_plan import Training
from dtrees.estimators.prediction import ForestPredictor, Predictor
from dtrees.parallel import Answer
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.export.parts import Parts

LEARNS_ROWS: Mapping[str, tuple[Constraint, ...]] = {
    "_row_targets": (ArrayOf(1, np.dtype(np.float64)),),
    "_row_ranks": (ArrayOf(1, np.dtype(np.uint32)),),
    "_row_weights": (ArrayOf(1, np.dtype(np.uint16)), ArrayOf(1, np.dtype(np.int64))),
    "_row_starts": (ArrayOf(1, np.dtype(np.int64)),),  # of several targets
}
FIELDS = dict(zip(LEARNS_ROWS, ("targets", "ranks", "weights", "starts"), strict=True))


def learned_rows(
    growth: ForestGrowth,
    training: Training,
    trees: Sequence[Tree],
    known: Callable[[], Iterator[np.ndarray]] = lambda: iter(()),
) -> dict[str, Any]:
    """What a fit learns of the rows of its trees; `known` are leaves of all rows in the first."""
    y = np.asarray(training.y, dtype=np.float64)
    y = y.ravel() if y.size == len(y) else y
    return _learned(LeafRows.of(growth, y, trees, training.coded_rows, training.run, known()))


def _learned(rows: LeafRows) -> dict[str, Any]:
    found = {name: getattr(rows, own) for name, own in FIELDS.items()}
    return {name: own for name, own in found.items() if own is not None}


def rows_of(learned: Mapping[str, Any]) -> LeafRows:
    """Rows that attributes of a model hold."""
    return LeafRows(*(learned.get(name) for name in LEARNS_ROWS))  # type: ignore[arg-type]


def only_of_target(learned: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Attributes of a model of several targets, with the rows of one of them, if there are some."""
    others = {name: own for name, own in learned.items() if name not in LEARNS_ROWS}
    return others | (_learned(rows_of(learned).each()[number]) if "_row_ranks" in learned else {})


def learned_rows_of_sets(
    growth: ForestGrowth, training: Training, resampling: Resampling, trees: Sequence[Any]
) -> list[dict[str, Any]]:
    """The same for each training set, whose trees are given."""
    if resampling.cells is None:
        return [learned_rows(growth, training, own) for own in trees]
    growths = [growth.of_set(resampling, number) for number in range(resampling.n_sets)]
    return [learned_rows(own, training, mine) for own, mine in zip(growths, trees, strict=True)]


@dataclass(eq=False)
class QuantilePredictor(ForestPredictor):
    """What a forest says of the targets of a row by the rows in its leaves."""

    rows: list[LeafRows]  # of each target
    asked: np.ndarray  # float64 (n,): shares, or values
    is_one: bool  # and not an array

    @classmethod
    def of(cls, model: Any, asked: Any, name: str) -> QuantilePredictor:
        """What a fitted model answers with.

        Raises ValueError where its fit has kept no rows, or `asked` are no numbers.
        """
        learned = vars(model)
        if "_row_ranks" not in learned:
            raise ValueError(
                f"This {type(model).__name__} has kept no rows of its fit. Fit it with "
                "keep_rows=True; if it is of a forest, ask the forest."
            )
        values = np.asarray(asked, dtype=np.float64)
        if values.ndim > 1 or np.isnan(values).any():
            raise ValueError(f"{name} must be a number, or a list of numbers. Got {asked!r}.")
        found: Predictor = model._predictor()
        forest: Forest = model.forest_ if hasattr(model, "forest_") else model.tree_.as_forest
        return cls(
            *(found.book, None, found.estimator, forest),
            rows_of(learned).each(),
            values.ravel(),
            values.ndim == 0,
        )

    def answer(self, method: str) -> Answer:
        """Type, dtype and columns of what a method returns."""
        n_outputs = len(self.rows)
        if n_outputs > 1:
            return Answer(
                np.empty((0, n_outputs) if self.is_one else (0, n_outputs, len(self.asked)))
            )
        if self.is_one:
            return Answer(np.empty(0))
        return Answer(np.empty((0, len(self.asked))), columns=self.asked.tolist())

    def predict_quantiles(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Quantiles of the rows, float64 (n_rows,) or (n_rows, n_quantiles)."""
        return self._answered(LeafRows.quantiles, X, run)

    def predict_cdf(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Shares up to values, float64 (n_rows,) or (n_rows, n_values)."""
        return self._answered(LeafRows.distribution, X, run)

    def _answered(self, ask: Callable[..., np.ndarray], X: Any, run: Runner) -> np.ndarray:
        about = self.forest, self.book, self.check(X, run), run, self.asked
        of_each = [ask(rows, *about) for rows in self.rows]
        found = of_each[0] if len(of_each) == 1 else np.stack(of_each, axis=1)
        return found[..., 0] if self.is_one else found


def check_rows(parts: Parts) -> None:
    """Refuse rows that are not those of the leaves; ValueError."""
    learned = parts.attributes
    if LEARNS_ROWS.keys() & learned.keys():
        if missing := {"_row_targets", "_row_ranks"} - learned.keys():
            raise ValueError(f"there is no attribute {min(missing)!r}")
        forest, each = Forest(parts.trees), rows_of(learned).each()
        if len(each) != parts.trees[0].n_outputs:
            raise ValueError("the rows that are kept are not those of the outputs")
        for rows in each:
            rows.table(forest)


# Methods of trees and forests of numbers, which name them.


@checked(X=(ArrayLike(),), q=(RealIn(0, 1, "[]"), ArrayLike()))
def predict_quantiles(self: Any, X: Any, q: Any = 0.5) -> np.ndarray:
    """Predict quantiles of the target of every row, by the rows of the fit in its leaves.

    A row of the fit weighs its share in the leaf, and the mean of that over the trees (Meinshausen
    2006). A quantile is the least target up to which rows weigh `q` or more: a target of the fit,
    and nothing between two. Rows of a tree are those of its bag, as often as they are in it. So
    what the forest predicts is the mean of the same distribution.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        Columns as at fit. A Dask array or data frame is answered lazily, block by block.
    q : float or array-like of shape (n_quantiles,), default=0.5
        Which quantiles, each from 0 to 1.

    Returns
    -------
    quantiles : float64 array of shape (n_rows,) or (n_rows, n_quantiles)
        A column for each of `q`, in this order; one dimension if `q` is a number. Of several
        targets (n_rows, n_targets) or (n_rows, n_targets, n_quantiles).

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before `fit`.
    ValueError
        The fit kept no rows (``keep_rows=False``), or `q` is not in its range.

    See Also
    --------
    predict_cdf : The distribution that quantiles are of.

    Notes
    -----
    Exact: weights are sums of integers, so quantiles do not depend on the order of rows or on the
    number of threads, and a row of weight 2 is the same as two rows. Costs O(trees x rows of a
    leaf) for each row, in blocks of a few MB.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = RandomForestRegressor(min_samples_leaf=5, keep_rows=True, random_state=0)
    >>> forest.fit(X, y).predict_quantiles(X[:2], [0.1, 0.5, 0.9]).shape
    (2, 3)
    """
    check_is_fitted(self)
    found = QuantilePredictor.of(self, q, "q")
    if ((found.asked < 0) | (found.asked > 1)).any():
        raise ValueError(f"q must be from 0 to 1. Got {q!r}.")
    return self._answer("predict_quantiles", X, found)


@checked(X=(ArrayLike(),))
def predict_cdf(self: Any, X: Any, values: Any) -> np.ndarray:
    """Predict how likely the target of every row is at most some values.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        Columns as at fit. A Dask array or data frame is answered lazily, block by block.
    values : float or array-like of shape (n_values,)
        Where the distribution function is asked for.

    Returns
    -------
    shares : float64 array of shape (n_rows,) or (n_rows, n_values)
        Weight of the rows of the fit whose target is at most the value, as for
        `predict_quantiles`; from 0 to 1. One dimension if `values` is a number. Of several targets
        (n_rows, n_targets) or (n_rows, n_targets, n_values).

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before `fit`.
    ValueError
        The fit kept no rows (``keep_rows=False``), or `values` are no numbers.
    """
    check_is_fitted(self)
    return self._answer("predict_cdf", X, QuantilePredictor.of(self, values, "values"))
