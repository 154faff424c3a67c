"""SHAP values: what each column adds to the prediction of a row.

The value of a column is its mean effect over all orders in which columns become known [Lundberg and
Lee 2017]. Shares of classes add up to one, so their SHAP values add up to zero: the first class has
minus the sum of the others. The mathematics stands in `dtrees.core.predict._shap`::

    model ──ModelNodes──▶ Explainer ──┬──▶ shap_values ──▶ Explanation ──▶ pictures, shap's own
                                      └──▶ predict_contributions
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from numbers import Integral
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import issparse

from dtrees.coding.codebook import CodeBook
from dtrees.coding.labels import number_of as label_number
from dtrees.coding.tables import Table
from dtrees.constraints import ARRAY, ROWS, Boolean, Constraint, InstanceOf, checked
from dtrees.core.predict._shap import ShapTree
from dtrees.core.predict.contributions import contributions, outputs_of, prepare_trees
from dtrees.core.predict.raw import apply
from dtrees.export.model_nodes import ModelNodes
from dtrees.inspection.cells import Cells, cells_of, written
from dtrees.parallel import Answer, Model, computed, is_lazy, map_rows, threaded
from dtrees.typing import Runner, serial

OUTPUT = Constraint("an int", Integral, but=bool), InstanceOf(str, "str")


@dataclass(frozen=True, eq=False)
class Explanation:
    """SHAP values of the rows of a table.

    Of one output, arrays have no last axis. A Dask collection has lazy arrays of Dask.

    Attributes
    ----------
    values : float64 (n_rows, n_columns) or (n_rows, n_columns, n_outputs)
        What each column adds to the prediction.
    base_values : float64 (n_rows,) or (n_rows, n_outputs)
        Prediction where no column is known; of a Dask collection a number, or (n_outputs,).
    data : array (n_rows, n_columns)
        The table: a csr array if it is sparse, objects where types of columns differ, with None
        for missing. Dates are in UTC. Of a Dask collection the collection.
    feature_names : tuple of str
    output_names : tuple of str
        Labels of the classes; of one output its name or "prediction".
    unit : str
        Of values: "units of y", "logarithm of y", "probability", "log odds" or "raw prediction".
    kinds : tuple of str
        What trees read columns as: "number", "time", "category" or "hybrid".
    interactions : float64 (n_rows, n_columns, n_columns) or (..., n_outputs), or None
        What two columns add together, half of it at each of their two places. The diagonal has what
        a column adds alone. Sums over the second column are `values`.
    """

    values: Any
    base_values: Any
    data: Any
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    unit: str
    kinds: tuple[str, ...]
    interactions: Any = None

    def __repr__(self) -> str:
        n_rows, n_columns = self.values.shape[:2]
        return f"Explanation({n_rows} rows, {n_columns} columns, {len(self.output_names)} outputs)"

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.values)

    def __getitem__(self, rows: Any) -> Explanation:
        """The explanation of a row or some: a number, a slice, numbers or flags; in memory."""
        if isinstance(rows, tuple | str) or rows is ...:
            raise TypeError(
                "An explanation is indexed by rows alone. Take an output by of_output(...), a "
                "column from values; to_shap() has the indices of shap."
            )
        if is_lazy(self.values):
            return self.compute()[rows]
        rows = [rows] if isinstance(rows, Integral) else rows
        return self._at(rows, data=self.data[rows])

    def _at(self, index: Any, **changes: Any) -> Explanation:
        """The explanation with a part of its values."""
        pairs = None if self.interactions is None else self.interactions[index]
        values, base = self.values[index], self.base_values[index]
        return replace(self, values=values, base_values=base, interactions=pairs, **changes)

    @checked(output=OUTPUT)
    def of_output(self, output: int | str) -> Explanation:
        """Take one of several outputs, by its name or its number.

        Parameters
        ----------
        output : int or str
            Where all labels of classes are numbers, a number is a label.

        Returns
        -------
        Explanation
            Of one output.

        Raises
        ------
        ValueError
            There is no such output.
        """
        names: Sequence[Any] = self.output_names
        if not isinstance(output, str):
            labels = [label_number(name, "") for name in names]
            names = range(len(names)) if np.isnan(labels).any() else labels
        if output not in names:
            words = ", ".join(map(repr, self.output_names))
            raise ValueError(f"There is no output {output!r}. Give one of {words}.")
        number = names.index(output)
        name = self.output_names[number]
        return self if len(names) == 1 else self._at((..., number), output_names=(name,))

    def compute(self) -> Explanation:
        """Compute what is lazy; an explanation in memory is returned as it is."""
        if not is_lazy(self.values):
            return self
        values, data, pairs = computed(self.values, self.data, self.interactions)
        base = np.repeat(np.asarray(self.base_values)[None], len(values), axis=0)
        data = cells_of(data)
        return replace(self, values=values, base_values=base, data=data, interactions=pairs)

    def to_shap(self) -> Any:
        """The explanation as shap's functions take it.

        Dates, time spans, booleans and categories are numbers in its ``data``, and text in its
        ``display_data``.

        Returns
        -------
        shap.Explanation

        Raises
        ------
        ImportError
            shap is not installed.
        """
        try:
            shap = import_module("shap")
        except ImportError as error:
            raise ImportError(
                "Explanation.to_shap makes an object of shap, which is not installed: "
                "pip install shap"
            ) from error
        found, shown = self.compute(), None
        data = found.data.toarray() if issparse(found.data) else found.data
        if data.dtype.kind not in "biuf":
            shown, data = data.astype(object), np.empty(data.shape)
            for j, kind in enumerate(found.kinds):
                cells = cells_of_column(found, j)
                if kind == "number" and bool not in map(type, shown[:, j]):
                    data[:, j], shown[cells.is_missing, j] = cells.numbers, np.nan
                else:
                    data[:, j], shown[:, j] = cells.places, list(map(written, shown[:, j]))
        return shap.Explanation(
            found.values,
            base_values=found.base_values,
            data=data,
            display_data=shown,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if len(self.output_names) > 1 else None,
        )


def cells_of_column(explanation: Explanation, column: int) -> Cells:
    """The cells of a column by its number; of an explanation in memory."""
    cells = explanation.data[:, [column]]
    cells = (cells.toarray() if issparse(cells) else cells)[:, 0]
    return Cells.of(cells, is_category=explanation.kinds[column] == "category")


@checked(X=ARRAY, background=ROWS, interactions=(Boolean(),))
def shap_values(
    model: Any, X: Any, *, background: Any = None, interactions: bool = False
) -> Explanation:
    """Explain predictions: what each column adds to them.

    Parameters
    ----------
    model : tree, forest or boosted model of dtrees, or TreeView
        Fitted.
    X : table of shape (n_rows, n_columns)
        Columns as at fit. A Dask array or data frame is explained lazily, block by block.
    background : table of shape (n_background_rows, n_columns), default=None
        Rows that stand for what is not known. None: tests of columns that are not known take both
        sides, with the weights of the training rows.
    interactions : bool, default=False
        Tell what pairs of columns add together; without a background.

    Returns
    -------
    Explanation
        Of trees and forests in shares of the classes, or in the unit of the target. Of boosted
        models in raw predictions: log odds of the second of two classes, a number for each of more,
        or the number that the loss predicts or the logarithm of. Values and base value of a row sum
        to the prediction without `init_score`.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The estimator has not been fitted.
    TypeError
        `model` is no tree, forest or boosted model of dtrees, or it is a tree on codes. An
        `AdaBoostRegressor` predicts medians, which are no sums.
    ValueError
        `X` or `background` has other columns than the fit, there are both a background and
        interactions, or interactions do not fit into memory.

    Notes
    -----
    Exact; the same bits on any number of threads and in any blocks. Takes
    O(rows x nodes x columns of a path), with interactions that many times as long again. With a
    background, O(rows x background rows x nodes that two rows pass): a hundred rows or so say
    enough. Values take 8 bytes for each row, column and output, of sparse tables too: 4 GB for
    5,000 rows of 100,000 columns. Interactions take as much for each pair of columns. Trees are
    made ready once, and kept until the next fit: some 60 bytes for each node.

    Values are those of shap's ``TreeExplainer``, where a ``feature_perturbation`` says
    "tree_path_dependent" or "interventional", and of LightGBM's ``pred_contrib``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import GradientBoostingRegressor
    >>> from dtrees.inspection import shap_values
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = GradientBoostingRegressor(max_iter=20).fit(X, y)
    >>> found = shap_values(model, X)
    >>> found.values.shape
    (442, 10)
    >>> total = found.base_values + found.values.sum(axis=1)
    >>> bool(abs(total - model.predict(X)).max() < 1e-9)
    True
    """
    if background is not None and interactions:
        raise ValueError("interactions are those of path-dependent values: give no background.")
    explainer = Explainer.of(model, background)
    values: Any
    base: Any
    pairs: Any = None
    if is_lazy(X):
        values, base, data = map_rows(explainer, "values", X), explainer.base, X
        if interactions:
            pairs = map_rows(explainer, "interactions", X)
    else:
        run = _runner_of(model)
        values, pairs = explainer.explained(explainer.check(X, run), run, interactions)
        base, data = np.repeat(explainer.base[None], len(values), axis=0), cells_of(X)
    names = explainer.columns, explainer.outputs, explainer.unit, explainer.kinds
    return Explanation(values, explainer.squeezed(base)[()], data, *names, pairs)


@dataclass(frozen=True, eq=False)
class Explainer(Model):
    """What explains predictions of a fitted model, here or on a worker."""

    trees: tuple[ShapTree, ...]  # values of nodes: what a tree adds, without its mean
    base: np.ndarray  # (n_outputs,): prediction where nothing is known
    book: CodeBook
    columns: tuple[str, ...]  # names
    outputs: tuple[str, ...]
    unit: str
    kinds: tuple[str, ...]  # of columns
    are_shares: bool  # outputs sum to one: the first is not among the values
    estimator: str  # name for messages
    background: Table | None = None

    @classmethod
    def of(cls, model: Any, background: Any = None) -> Explainer:
        """What explains a model; errors as of `shap_values`.

        Trees are made ready at the first use, and remembered as long as the model has them.
        """
        view, book = ModelNodes.with_book(model)
        fit = getattr(model, "forest_", None) or getattr(model, "tree_", model)  # new at each fit
        made = _explainers.get(fit)
        if made is None or made.outputs != _output_names(view):  # a tree and its ``tree_``
            made = _explainers[fit] = cls._made(view, book, model)
        return made if background is None else made._against(computed(background)[0])

    @classmethod
    def _made(cls, view: ModelNodes, book: CodeBook, model: Any) -> Explainer:
        """What explains a model without a background."""
        n, adds = view.n_outputs, view.start is not None
        base = np.zeros(n) if view.start is None else view.start.astype(np.float64)
        are_shares, values = not adds and n > view.trees[0].coded_tree.n_outputs == 1, []
        for number, tree in enumerate(view.trees):
            value = tree.value if adds else 1 / len(view.trees) * tree.value
            weight = tree.weight[tree.is_leaf]
            mean = (weight / weight.sum()) @ value[tree.is_leaf]
            base[view.outputs_of(number)] += mean
            values.append((value - mean)[:, are_shares:])
        coded = [tree.coded_tree for tree in view.trees]
        trees = prepare_trees(coded, values, book, _runner_of(model))
        names = tuple(view.column_names), _output_names(view), _unit(view)
        kinds, name = tuple(view.kinds.tolist()), type(model).__name__
        return cls(trees, base, book, *names, kinds, are_shares, name)

    def _against(self, background: Any) -> Explainer:
        """What explains the same model with a background."""
        table = self.check(background)
        base = self.base.copy()
        for number, tree in enumerate(self.trees):
            outputs = outputs_of(tree, number, self.n_outputs - self.are_shares)
            leaves = apply(tree.tree, self.book, table)
            base[self.are_shares :][outputs] += tree.values[leaves].mean(axis=0)
        if self.are_shares:
            base[0] = 1 - base[1:].sum()
        return replace(self, base=base, background=table)

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.base)

    def answer(self, method: str) -> Answer:
        """Type, dtype and columns of what a method returns."""
        names = (*self.columns, "base value")
        if method == "predict_contributions":
            if self.n_outputs > 1:
                names = tuple(f"{out}: {name}" for out in self.outputs for name in names)
            return Answer(np.empty((0, len(names))), columns=names)
        shape = (0, *[len(self.columns)] * (2 if method == "interactions" else 1), self.n_outputs)
        return Answer(self.squeezed(np.empty(shape)))

    def squeezed(self, found: np.ndarray) -> np.ndarray:
        """Values by row without the axis of a single output."""
        return found[..., 0] if self.n_outputs == 1 else found

    def explained(
        self, table: Table, run: Runner, interactions: bool = False, phi: Any = None
    ) -> tuple[Any, Any]:
        """SHAP values and interactions, without the axis of a single output."""
        found = contributions(
            *(self.trees, self.book, table, run),
            n_outputs=self.n_outputs - self.are_shares,
            background=self.background,
            interactions=interactions,
            add_first=self.are_shares,
            phi=phi,
        )
        values, pairs = (None if each is None else self.squeezed(each) for each in found)
        return values, pairs

    def values(self, X: Any, run: Runner = serial) -> Any:
        """SHAP values, of a block of Dask."""
        return self.explained(self.check(X, run), run)[0]

    def interactions(self, X: Any, run: Runner = serial) -> Any:
        """Interactions, of a block of Dask."""
        return self.explained(self.check(X, run), run, interactions=True)[1]

    def predict_contributions(self, X: Any, run: Runner = serial) -> np.ndarray:
        """SHAP values and the base value behind them, output by output."""
        table = self.check(X, run)
        found = np.zeros((self.n_outputs, len(self.columns) + 1, table.n_rows))
        self.explained(table, run, phi=found[:, :-1].swapaxes(0, 1))
        found[:, -1] = self.base[:, None]
        return found.reshape(-1, table.n_rows).T


# By forests and views of trees, without a background. They keep no model alive.
_explainers: WeakKeyDictionary[Any, Explainer] = WeakKeyDictionary()


def _runner_of(model: Any) -> Runner:
    return threaded(getattr(model, "n_jobs", None))


def _output_names(view: ModelNodes) -> tuple[str, ...]:
    """Names of the outputs of a model: labels of classes, or numbers."""
    if view.n_outputs == 1 and view.classes is None:
        return ("prediction",)
    return tuple(map(str, view.value_labels))


def _unit(view: ModelNodes) -> str:
    """What outputs are measured in, in words for an axis."""
    if view.link != "identity":
        return {"log": "logarithm of y", "logit": "log odds"}.get(view.link, "raw prediction")
    is_number = view.classes is None and view.trees[0].is_regression
    return "units of y" if is_number else "probability"
