"""Rows that are given to a boosted fit to be scored: ``X_val``, ``y_val``, ``sample_weight_val``.

    X_val ──columns as at fit──▶ walks down each new tree, by its values ──┐
    y_val ──numbers of the classes, or numbers─────────────────────────────┴──▶ score ──▶ end?

They are no rows of the table: no cut point, category or class is theirs, and all rows of the table
are grown from. As in scikit-learn, class weights do not concern them. What is done with a score is
the business of `boosted_stopping`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.coding.codebook import CodeBook
from dtrees.coding.row_values import row_values
from dtrees.coding.tables import Table
from dtrees.coding.target import Target
from dtrees.coding.weights import check_weights
from dtrees.core.model.tree import Tree
from dtrees.core.predict.binned import Walked
from dtrees.core.predict.raw import apply
from dtrees.estimators.boosted_stopping import Held
from dtrees.estimators.fit_plan import one_target
from dtrees.estimators.trees import classification_target
from dtrees.parallel import computed, is_lazy

if TYPE_CHECKING:
    from dtrees.core.losses.losses import Loss
    from dtrees.core.losses.own import OwnLoss

SHOWN = 5  # labels in a message


@dataclass(frozen=True, eq=False)
class ValueRows(Walked):
    """All rows of a table that was not coded, walked by their values; may be sent elsewhere.

    Attributes
    ----------
    book : CodeBook
        Of the trees.
    table : Table
        What ``book.check`` returned.
    """

    book: CodeBook
    table: Table

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows, intp (n,). O(rows of the table x depth)."""
        found: np.ndarray = apply(tree, self.book, self.table)[rows]
        return found


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Rows to be scored, as the user has given them."""

    X: Any
    y: Any
    sample_weight: Any

    @classmethod
    def of(
        cls, X_val: Any, y_val: Any, sample_weight_val: Any, early_stopping: Any
    ) -> GivenRows | None:
        """What was given; None: nothing.

        Raises
        ------
        ValueError
            A part is missing, or the fit is not to stop early.
        TypeError
            `X_val` is a Dask collection.
        """
        if X_val is None and y_val is None:
            if sample_weight_val is not None:
                raise ValueError("sample_weight_val is provided without X_val and y_val.")
            return None
        for name, other, value in (("X_val", "y_val", y_val), ("y_val", "X_val", X_val)):
            if value is None:
                raise ValueError(f"{name} is provided, but {other} was not provided.")
        if early_stopping is False:
            raise ValueError(
                "X_val and y_val are for early stopping, and early_stopping is False. Set it to "
                "'auto' or True, or leave them out."
            )
        if is_lazy(X_val):
            raise TypeError(
                "X_val is a Dask collection, and its rows walk down each tree in this process. "
                "Give X_val.compute()."
            )
        return cls(X_val, *map(row_values, computed(y_val, sample_weight_val)))

    def read(
        self, book: CodeBook, classes: np.ndarray | None, loss: Loss | OwnLoss, owner: str
    ) -> tuple[Held, ValueRows]:
        """The rows as they are scored, and as they walk.

        Parameters
        ----------
        book : CodeBook
            Of the fit.
        classes : array (n_classes,) or None
            Labels of the fit; None: numbers.
        loss : Loss or OwnLoss
        owner : str
            Name of the estimator, for messages.

        Raises
        ------
        ValueError
            Columns are not those of the fit, lengths differ, a label is none of the fit, or the
            loss has no use for a target.
        """
        table = book.check(self.X, estimator=owner)
        try:
            y = one_target(self.y, owner)
            if len(y) != table.n_rows:
                raise ValueError(f"X_val has {table.n_rows} rows, y_val has {len(y)} values.")
            of_loss = _numbers(y) if classes is None else _numbers_of_classes(y, classes)
            loss.check(of_loss)
            weight = check_weights(self.sample_weight, len(y))
        except ValueError as error:
            raise ValueError(f"Rows to be scored (X_val, y_val): {error}") from error
        return Held(self.X, np.arange(len(y)), y, of_loss, weight), ValueRows(book, table)


def _numbers(y: np.ndarray) -> np.ndarray:
    """Targets as float64; ValueError: they are none, or not finite."""
    Target.regression(y)
    return np.ascontiguousarray(y, dtype=np.float64)


def _numbers_of_classes(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Labels as numbers of the classes of a fit, float64."""
    own = classification_target(y, None, None)
    assert own.classes is not None
    known = {label: number for number, label in enumerate(classes.tolist())}
    labels = own.classes.tolist()
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise ValueError(f"y_val has labels that are none of y: {unknown[:SHOWN]}.")
    return np.array([known[label] for label in labels], dtype=np.float64)[own.y]
