"""Targets of several outputs: a number, or a class, of each for every row.

What a row weighs is one number, whatever its outputs are, so class weights are multiplied into it,
as scikit-learn does. Each output of numbers has its own unit, as if it were fitted alone
(`dtrees.coding.target`)::

    y[:, 0]  prices, 1e6    ──▶ units of 2**-22 ─┐
    y[:, 1]  shares, 1e-3   ──▶ units of 2**-52  ├──▶ y (n_rows, n_outputs), one weight per row
    y[:, 2]  ...            ──▶ ...             ─┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from dtrees.coding.labels import is_missing, object_array
from dtrees.coding.target import (
    MOST_CLASSES,
    Ask,
    GivenRows,
    Target,
    TargetUnits,
    class_weights,
    exact_bincount,
    exponent_of_weights,
    refuse_masked,
    weights_differ,
    weights_in_units,
)
from dtrees.core.data._logarithm import log

MOST_OUTPUTS = 4_096  # of numbers: sums of so many moments do not overflow


class Columns(list[Any]):
    """The columns of a target of several outputs."""

    names: np.ndarray | None = None  # object (n_outputs,): different strings, if all are


def columns_of_outputs(y: Any) -> Columns | None:
    """The columns of a target of several outputs; None: it is no table of several columns.

    ValueError: values are masked, or NumPy would make words of missing ones.
    """
    if isinstance(y, list | tuple):
        shape = (len(y), *np.shape(y[0])) if len(y) > 0 else ()
    else:
        shape = getattr(y, "shape", ())
    if not isinstance(shape, tuple) or len(shape) != 2 or shape[1] < 2:
        return None
    if scipy.sparse.issparse(y):
        y = y.toarray()
    if hasattr(y, "iloc"):
        return _named(y, [y.iloc[:, output].to_numpy() for output in range(shape[1])])
    if hasattr(y, "get_columns"):
        return _named(y, [column.to_numpy() for column in y.get_columns()])
    refuse_masked(y, "y")
    values = np.asarray(y)
    if values.dtype.kind == "U" and isinstance(y, list | tuple):
        for output, column in enumerate(zip(*y, strict=True)):
            _refuse_missing(output, column)
    return Columns(np.ascontiguousarray(values.T))


def _named(y: Any, columns: list[np.ndarray]) -> Columns:
    """Columns of a data frame."""
    found, names = Columns(columns), names_of_targets(y)
    found.names = object_array(names) if names else None
    return found


def names_of_targets(y: Any) -> list[str]:
    """Columns of a data frame or an Arrow table, if they are different strings; else none."""
    names = list(getattr(y, "column_names", getattr(y, "columns", ())))
    are_names = all(type(name) is str for name in names) and len(set(names)) == len(names)
    return names if are_names else []


@dataclass(frozen=True, eq=False)
class Outputs(Target):
    """y of several outputs and the weights; y and wy are (n_rows, n_outputs).

    Attributes
    ----------
    of_outputs : tuple of Target
        The target of each output alone, of no rows: its classes, or its units.
    order : int64 (n_outputs,)
        Outputs of numbers, or of two classes each, as `order_of_outputs` has them, of all rows of
        the table; of others empty.
    log_bits : int64 (n_outputs,)
        Exponents of the largest logarithms of numbers, of all rows of the table; of classes empty.
    names : object (n_outputs,) or None
        As `Columns` has them.
    """

    of_outputs: tuple[Target, ...] = ()
    order: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    log_bits: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    names: np.ndarray | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return len(self.of_outputs)

    @property
    def n_statistics(self) -> int:
        """Length of a node's statistics: all classes, or the weight and a sum of each output."""
        return self.n_classes if self.kind == "classification" else 1 + self.n_outputs

    @property
    def units(self) -> tuple[Any, ...]:
        """Those of all outputs together, and of each."""
        return super().units + tuple(own.units for own in self.of_outputs)

    @property
    def labels(self) -> list[Any] | None:
        """Labels of each output; None: these are numbers."""
        of_outputs = [own.classes for own in self.of_outputs]
        return of_outputs if self.kind == "classification" else None

    @property
    def most_classes(self) -> int:
        """Number of classes of the output that has most; 0: of numbers."""
        return max(own.n_classes for own in self.of_outputs)

    @property
    def fields(self) -> np.ndarray:
        """Of each row and output, the number of its class among those of all outputs; uint16."""
        n_classes = [own.n_classes for own in self.of_outputs]
        return (self.y + (np.cumsum(n_classes) - n_classes)).astype(np.uint16)

    @property
    def wy_units(self) -> np.ndarray:
        """One unit of the summed weighted target of each output, float64 (n_outputs,)."""
        return np.array([own.wy_unit for own in self.of_outputs])

    def by_output(self, shares: np.ndarray) -> list[np.ndarray]:
        """Shares of the classes of each output, float64 (n, n_classes)."""
        return shares_by_output(shares, [own.n_classes for own in self.of_outputs])

    def as_numbers(self) -> Outputs:
        """Outputs of two classes at most as numbers: 1 for the last class of each, else 0."""
        last = np.array([own.n_classes - 1 for own in self.of_outputs])
        return replace(self, kind="regression", y=(self.y == last).astype(np.int64))

    def order_of_outputs(self) -> np.ndarray:
        """Outputs in an order that depends on their numbers alone, int64 (n_outputs,).

        Rows count by their weights: a row of weight 2 is as good as two. One of weight 0 counts
        once, so that the order of a training set is that of all rows, where none has a weight.
        Outputs that this does not tell apart are the same, or there is a collision of 128 bits.
        """
        wy, y = self.wy, self.y.astype(np.int64, copy=False)
        if wy is None:
            wy = y if self.w is None else self.w[:, None].astype(np.int64) * y
        if self.w is not None:
            wy = wy + y * (self.w == 0)[:, None]
        sums = wy.view(np.uint64).sum(axis=0)
        mixed = y.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        second = (wy.view(np.uint64) * mixed).sum(axis=0)
        keys = [
            (own.y_exponent, own.offset, int(one), int(other))
            for own, one, other in zip(self.of_outputs, sums, second, strict=True)
        ]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)

    def facts(self) -> dict[str, Any]:
        """What tells a target from others: units of all outputs, and the digest of the rows."""
        found = super().facts()
        for output, own in enumerate(self.of_outputs):
            found |= {f"{name} of output {output}": fact for name, fact in own.facts().items()}
        return found

    def each(self) -> list[Target]:
        """The target of each output, with its rows."""
        wy = [None] * self.n_outputs if self.wy is None else list(self.wy.T)
        of_outputs = zip(self.of_outputs, self.y.T, wy, strict=True)
        return [replace(own, y=y, w=self.w, wy=sums) for own, y, sums in of_outputs]

    def facts_of_trees(self) -> dict[str, Any]:
        """What trees have to know of the outputs, as attributes of `core.model.tree.Tree`."""
        if self.kind == "classification":
            return {"n_classes": tuple(own.n_classes for own in self.of_outputs)}
        return {
            "unit": tuple(self.wy_units.tolist()),
            "offset": tuple(own.offset for own in self.of_outputs),
        }

    @classmethod
    def of(
        cls,
        columns: Sequence[Any],
        sample_weight: Any,
        of_classes: bool,
        class_weight: Any = None,
        spare_bits: int = 0,
        drawn: bool = False,
        apart: bool = False,
        units: Callable[[Ask], TargetUnits] | None = None,
    ) -> Outputs:
        """Several targets; arguments as for `Target.classification` and `Target.regression`.

        `apart`: each output has trees of its own, so weights have the unit of one of them.
        `units` makes those of an output of numbers, whose middle is its offset otherwise.

        ValueError: an output cannot be fitted alone, class weights are not of these outputs, or
        there are too many classes or outputs.
        """
        rows = list(_rows_of(columns, sample_weight, of_classes))
        if class_weight is not None:
            weight = _weight_of_classes(rows, class_weight)
            rows = [replace(each, weight=weight) for each in rows]
        # squares of weights are added up, over outputs
        how = spare_bits + (len(rows).bit_length() if of_classes and not apart else 0), drawn
        targets = [
            TargetUnits.of_classes(each.ask, None, *how).target(each)
            if of_classes
            else (units or partial(TargetUnits.of_numbers, spare_bits=spare_bits, drawn=drawn))(
                each.ask
            ).target(each)
            for each in rows
        ]
        if not of_classes:
            targets = _units_of_constants(targets)
        first, n_classes = targets[0], sum(target.n_classes for target in targets)
        if n_classes > MOST_CLASSES or len(targets) > MOST_OUTPUTS:
            raise ValueError(
                f"y has {len(targets)} outputs of {n_classes} classes; a tree counts at most "
                f"{MOST_OUTPUTS} outputs and {MOST_CLASSES} classes. Fit some outputs at a time."
            )
        y = np.stack([target.y for target in targets]).T
        wy = None if first.wy is None else y
        if first.wy is not None and first.wy is not first.y:
            wy = np.stack([target.wy for target in targets if target.wy is not None]).T
        coarsest = min(each.y_exponent for each in targets)
        made = cls(
            first.kind,
            y,
            n_classes=n_classes,
            y_exponent=coarsest,
            w=first.w,
            w_exponent=first.w_exponent,
            wy=wy,
            wy_exponent=coarsest + first.wy_exponent - first.y_exponent,
            means=first.means,
            of_outputs=tuple(
                replace(each, y=each.y[:0], w=None, wy=None, means=None) for each in targets
            ),
            names=getattr(columns, "names", None),
        )
        if made.most_classes > 2:
            return made
        numbers = made.as_numbers() if of_classes else made
        bits = made.log_bits if of_classes else np.array(list(map(_log_bits, targets)))
        return replace(made, order=numbers.order_of_outputs(), log_bits=bits)


def _log_bits(target: Target) -> int:
    """The exponent of the largest logarithm of a number above zero."""
    numbers = target.y[target.y > 0]
    ends = [numbers.min(), numbers.max()] if len(numbers) > 0 else [1]
    return int(np.frexp(np.abs(log(np.multiply(ends, target.value_unit))).max())[1])


def shares_by_output(shares: np.ndarray, n_classes: Sequence[int]) -> list[np.ndarray]:
    """Shares of classes that stand side by side, by output."""
    return np.split(shares, np.cumsum(n_classes)[:-1], axis=1)


def raw_by_output(target: Target) -> tuple[int, ...]:
    """How many raw predictions a boosted model has of each output: of two classes one log odds."""
    of_outputs = target.of_outputs if isinstance(target, Outputs) else (target,)
    return tuple(own.n_classes if own.n_classes > 2 else 1 for own in of_outputs)


def _rows_of(columns: Sequence[Any], sample_weight: Any, of_classes: bool) -> Iterator[GivenRows]:
    """The rows of each output; ValueError: one has no value, which the error names."""
    for output, column in enumerate(columns):
        if np.asarray(column).dtype.kind == "O":
            _refuse_missing(output, column)
        yield GivenRows.of(column, sample_weight, of_classes)


def _refuse_missing(output: int, column: Sequence[Any]) -> None:
    missing = [row for row, value in enumerate(column) if is_missing(value)]
    if missing:
        raise ValueError(
            f"Input y contains NaN: output {output} of row {missing[0]} is missing. Drop these "
            "rows first, or fit a model per output."
        )


def _units_of_constants(targets: list[Target]) -> list[Target]:
    """Let an output of one number, whose unit is any, have the finest one of the others."""
    varies = [bool(target.y.any()) for target in targets]
    finest = max((t.y_exponent for t, own in zip(targets, varies, strict=True) if own), default=0)
    return [
        target
        if own
        else replace(
            target,
            y_exponent=finest,
            wy_exponent=finest + target.wy_exponent - target.y_exponent,
        )
        for target, own in zip(targets, varies, strict=True)
    ]


def _weight_of_classes(rows: Sequence[GivenRows], class_weight: Any) -> np.ndarray:
    """Weights of rows times those of their classes, of all outputs; float64 (n_rows,)."""
    if isinstance(class_weight, Mapping):
        raise ValueError(
            "For multi-output, class_weight should be a list of dicts, or the string 'balanced'."
        )
    of_outputs = [class_weight] * len(rows) if isinstance(class_weight, str) else class_weight
    if len(of_outputs) != len(rows):
        raise ValueError(
            "For multi-output, number of elements in class_weight should match number of outputs: "
            f"there are {len(of_outputs)} and {len(rows)}."
        )
    first = rows[0]
    w = None
    if weights_differ(first.ask):
        assert first.weight is not None
        w = weights_in_units(first.weight, exponent_of_weights(first.ask))
    found = np.ones(len(first.y)) if first.weight is None else first.weight
    factors = [np.ones(len(first.y))]
    for each, own in zip(rows, of_outputs, strict=True):
        if own is not None:
            assert each.classes is not None
            totals = exact_bincount(each.y, w, len(each.classes)).tolist()
            factors.append(class_weights(own, each.classes, totals)[each.y])
    for factor in np.sort(factors, axis=0):  # roundings are those of any order of the outputs
        found = found * factor
    return found
