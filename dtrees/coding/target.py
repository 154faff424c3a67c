"""The target and the weights as integers: every statistic is an exact sum.

Sums of integers do not depend on the order of their terms, so folds subtract, chunks merge and a
row of weight 2 is the same as the row given twice. What is not an integer becomes one in *fixed
point*: a power of two times the value, rounded to nearest.

    weights          w      = round(weight * 2**w_exponent)
    target           y      = round((target - offset) * 2**y_exponent)
    weighted target  wy     = round(weight * y * 2**(wy_exponent - y_exponent))
    class weights    class_multiplier = round(class_weight * 2**class_exponent)

Integer weights with a total below 2**52 are kept as they are (w_exponent 0).

The exponents are the largest for which nothing can overflow an int64, whatever rows a node holds:

    w <= 2**52,  sum(w) <= 2**61            |y| <= 2**52,  sum(max(weight, 1) * |y|) <= 2**62
    sum(w * class_multiplier) <= 2**61

The scale of y is chosen over all rows given, rows of weight zero included and weights below one
counted as one, so a fit on a part of the rows by weights 0 and 1 has the same scale for every part.

Error bound. Let h be half the range of the target and n the number of rows, all of weight one. Then
``2**-y_exponent <= h * max(2**-51, n * 2**-61)``, and a mean is off by at most half of that: with
100,000 rows about 2e-14 h. Integer targets and binary fractions of a small range are exact. Sums of
integer weights are exact; a fractional weight is off by at most 2**-51 of the largest weight
(2**-60 of the total, if that is more), and a positive one never becomes zero. `wy_exponent` differs
from `y_exponent` only when the largest weight is below 2**-8 or (unless the weights are integers
with a total below 2**32) from 2**9 on: then weights count in the products as multiples of a power
of two near the largest, so that neither small nor large weights lose digits. What remains is the
ratio: the mean of rows whose weight is r times the largest is off by up to
``2**-y_exponent / (2 r)``.

Class weights multiply when a gain is read, so the sums themselves stay plain; with fractional
sample weights they are multiplied into w, where they keep more digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dtrees.exceptions import StatisticsOverflowError

LARGEST = 2**52
TOTAL_WEIGHT = 2**61
TOTAL_TARGET = 2**62
PLAIN_WEIGHT = 8  # largest weights of 2**-8 .. 2**8 are used as they are in wy
PLAIN_TOTAL = 2**32  # and so are integer weights up to this total
CLASS_EXPONENT = 40


@dataclass(frozen=True, eq=False)
class Target:
    """y and the weights; every array is read only.

    Attributes
    ----------
    kind : {"classification", "regression"}
    y : uint8, uint16 or uint32 (n_rows,), classification; int64 (n_rows,), regression
    n_rows : int
    n_classes : int
        0 for regression.
    classes : (n_classes,) or None
        Labels as given, sorted.
    offset : float
    y_exponent, w_exponent, wy_exponent, class_exponent : int
    w : int64 (n_rows,) or None
        None: every weight is one. Rows of weight zero never count.
    wy : int64 (n_rows,) or None
        Regression only; ``y`` itself when there are no weights.
    class_multiplier : int64 (n_classes,) or None
    """

    kind: str
    y: np.ndarray
    n_classes: int = 0
    classes: np.ndarray | None = None
    offset: float = 0.0
    y_exponent: int = 0
    w: np.ndarray | None = None
    w_exponent: int = 0
    wy: np.ndarray | None = None
    wy_exponent: int = 0
    class_multiplier: np.ndarray | None = None
    class_exponent: int = 0

    def __post_init__(self) -> None:
        assert self.kind in ("classification", "regression")
        for field in fields(self):
            array = getattr(self, field.name)
            if isinstance(array, np.ndarray):
                array = array.view()
                array.flags.writeable = False
                object.__setattr__(self, field.name, array)

    @property
    def n_rows(self) -> int:
        """Number of rows, those of weight zero included."""
        return len(self.y)

    @property
    def n_statistics(self) -> int:
        """Length of a row's or node's statistics: the classes, or weight and weighted target."""
        return self.n_classes if self.kind == "classification" else 2

    @property
    def weight_unit(self) -> float:
        """What one unit of the summed weight (times class multiplier) is in user units."""
        return math.ldexp(1.0, -self.w_exponent - self.class_exponent)

    @property
    def value_unit(self) -> float:
        """What one unit of y is in user units."""
        return math.ldexp(1.0, -self.y_exponent)

    @property
    def wy_unit(self) -> float:
        """What one unit of the summed weighted target is in user units."""
        return math.ldexp(1.0, -self.wy_exponent)

    def to_value(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics in the user's units.

        Parameters
        ----------
        statistics : int64 (..., n_statistics)

        Returns
        -------
        float64 (..., n_classes)
            Classification: weight per class; a class multiplier has to be in the statistics.
        float64 (...)
            Regression: the mean; ``offset`` where the weight is zero.
        """
        statistics = np.asarray(statistics, dtype=np.int64)
        if self.kind == "classification":
            return statistics * self.weight_unit
        weight = statistics[..., 0] * self.weight_unit
        total = statistics[..., 1] * self.wy_unit
        mean = np.divide(total, weight, out=np.zeros(weight.shape), where=weight > 0)
        return mean + self.offset

    def take(self, rows: np.ndarray) -> Target:
        """The same target, in the same units, for other rows (numbers or a boolean mask)."""
        changed = dict(vars(self))
        for name in ("y", "w", "wy"):
            if changed[name] is not None:
                changed[name] = changed[name][rows]
        return Target(**changed)

    @staticmethod
    def stack(parts: Sequence[Target]) -> Target:
        """The rows of several targets in the same units, one behind the other."""
        changed = dict(vars(parts[0]))
        for name in ("y", "w", "wy"):
            if changed[name] is not None:
                changed[name] = np.concatenate([getattr(part, name) for part in parts])
        return Target(**changed)

    @classmethod
    def classification(
        cls,
        y: Any,
        sample_weight: Any = None,
        class_weight: str | Mapping[Any, float] | None = None,
    ) -> Target:
        """Class labels as codes.

        Parameters
        ----------
        y : array-like (n_rows,)
            Labels: numbers, booleans or strings.
        sample_weight : array-like (n_rows,), default=None
            Not negative, finite, not all zero.
        class_weight : {"balanced"}, dict or None, default=None
            "balanced": ``total weight / (number of classes * weight of the class)``. A dict gives
            weights by label; labels left out have weight one.

        Raises
        ------
        ValueError
            Empty or missing labels, lengths that differ, weights out of range.
        """
        labels = _one_dimensional(y, "y")
        classes, codes = class_codes(labels)
        weights = check_weights(sample_weight, len(codes))
        per_class = None
        if class_weight is not None:
            per_class = class_weights(class_weight, classes, codes, weights)
            if np.all(per_class == 1.0):
                per_class = None
        w, w_exponent = (None, 0) if weights is None else fixed_point_weights(weights)
        multiplier, class_exponent = None, 0
        if per_class is not None and w_exponent != 0:
            assert weights is not None
            weights = weights * per_class[codes]
            _check_total(weights, "sample_weight times class_weight")
            w, w_exponent = fixed_point_weights(weights)
        elif per_class is not None:
            total = np.bincount(codes, minlength=len(classes)) if w is None else _sums(w, codes)
            multiplier, class_exponent = class_multipliers(per_class, [int(t) for t in total])
        return cls(
            kind="classification",
            y=codes,
            n_classes=len(classes),
            classes=classes,
            w=w,
            w_exponent=w_exponent,
            class_multiplier=multiplier,
            class_exponent=class_exponent,
        )

    @classmethod
    def regression(cls, y: Any, sample_weight: Any = None, center: bool = True) -> Target:
        """A real target in fixed point.

        Parameters
        ----------
        y : array-like of numbers (n_rows,)
        sample_weight : array-like (n_rows,), default=None
        center : bool, default=True
            Subtract the middle of the range first, which keeps most digits. False for the poisson
            criterion, which needs sums that start at zero.

        Raises
        ------
        ValueError
            Empty, missing or infinite targets, lengths that differ, weights out of range.
        StatisticsOverflowError
            The squares of the target overflow a float64.
        """
        values = _real(y, "y")
        _check_finite(values, "y")
        weights = check_weights(sample_weight, len(values))
        lowest, highest = float(values.min()), float(values.max())
        offset = 0.0
        if center:
            offset = lowest if lowest == highest else lowest / 2 + highest / 2
        values = values - offset
        largest = float(np.abs(values).max())
        total_weight = len(values) if weights is None else math.fsum(np.maximum(weights, 1.0))
        if not math.isfinite(largest * largest * total_weight):
            raise StatisticsOverflowError(
                f"y goes from {lowest:g} to {highest:g}: the squares of its distances from "
                f"{offset:g} overflow a float64. Divide y by a power of ten before the fit."
            )
        w, w_exponent, shift = None, 0, 0
        if weights is not None:
            w, w_exponent = fixed_point_weights(weights)
            power = math.frexp(float(weights.max()))[1] - 1
            if abs(power) > PLAIN_WEIGHT and (w_exponent != 0 or _exact_sum(w) >= PLAIN_TOTAL):
                shift = -power
            weights = np.ldexp(weights, shift)
        y_exponent = _exponent(largest, LARGEST)
        while True:
            scaled = np.rint(np.ldexp(values, y_exponent)).astype(np.int64)
            excess = _exact_sum(np.abs(scaled), weights).bit_length() - 62
            if excess <= 0:
                break
            y_exponent -= excess
        wy = scaled
        if weights is not None and w is not None:
            plain = w_exponent == 0 and shift == 0
            kept = np.ldexp(w.astype(np.float64), shift - w_exponent)
            wy = w * scaled if plain else np.rint(kept * scaled).astype(np.int64)
        return cls(
            kind="regression",
            y=scaled,
            offset=offset,
            y_exponent=y_exponent,
            w=w,
            w_exponent=w_exponent,
            wy=wy,
            wy_exponent=y_exponent + shift,
        )


def class_codes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct labels and the number of every row's label.

    Whole numbers of a small range are counted instead of sorted; objects go through a dict, so
    that only the distinct ones are compared.

    Returns
    -------
    classes : (n_classes,), dtype of the labels
    codes : uint8, uint16 or uint32 (n_rows,)
    """
    kind = labels.dtype.kind
    if kind == "c":
        raise ValueError("y: Complex data not supported. Give y as real numbers or labels.")
    if kind == "f":
        _check_finite(labels, "y")
    if kind == "O":
        return _object_classes(labels)
    if kind == "b":
        labels = labels.view(np.uint8)
    if kind in "iub":
        low, high = int(labels.min()), int(labels.max())
        if high - low <= max(1024, 4 * len(labels)):
            wide = labels if labels.dtype == np.uint64 else labels.astype(np.int64, copy=False)
            place = (wide - wide.dtype.type(low)).astype(np.intp)
            present = np.bincount(place, minlength=high - low + 1) > 0
            values = np.flatnonzero(present)
            number = np.cumsum(present) - 1
            classes = (values + low).astype(labels.dtype)
            if kind == "b":
                classes = classes.view(np.bool_)
            return classes, number.astype(_code_type(len(classes)))[place]
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes.astype(_code_type(len(classes)))


def _object_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`class_codes` of Python objects."""
    values = labels.tolist()
    try:
        distinct = set(values)
        missing = [v for v in distinct if v is None or v != v]
        if missing:
            raise ValueError(
                f"Input y contains NaN: a missing label ({missing[0]!r}). Drop these rows first."
            )
        ordered = sorted(distinct)
    except TypeError as error:
        kinds = sorted({type(v).__name__ for v in values})
        raise TypeError(
            f"y holds objects of the types {kinds}, which cannot be compared: labels must be all "
            "numbers or all strings. Convert y to one type."
        ) from error
    number = {value: i for i, value in enumerate(ordered)}
    codes = np.fromiter((number[v] for v in values), _code_type(len(ordered)), len(values))
    classes = np.empty(len(ordered), dtype=object)
    classes[:] = ordered
    return classes, codes


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights as float64 (n_rows,); None when there are none or all are one."""
    if sample_weight is None:
        return None
    weights = _real(sample_weight, "sample_weight")
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight has {len(weights)} values for {n_rows} rows of y "
            f"(sample_weight.shape == {weights.shape}, expected {(n_rows,)}). "
            "Give one weight per row."
        )
    _check_finite(weights, "sample_weight")
    if weights.min() < 0:
        at = int(np.argmin(weights))
        raise ValueError(
            f"sample_weight must not be negative, got {weights[at]:g} in row {at}. "
            "Use zero for rows that should not count."
        )
    if weights.max() == 0:
        raise ValueError(
            "sample_weight is zero for every row: nothing is left to learn from. "
            "Give at least one row a positive weight."
        )
    if np.all(weights == 1.0):
        return None
    _check_total(weights, "sample_weight")
    return weights


def fixed_point_weights(weights: np.ndarray) -> tuple[np.ndarray, int]:
    """Weights as integers, and the exponent of their unit.

    Parameters
    ----------
    weights : float64 (n_rows,)
        Not negative, finite, not all zero.

    Returns
    -------
    w : int64 (n_rows,)
        Positive where the weight is.
    exponent : int
        ``weight = w / 2**exponent``; 0, and exact, for integers with a total below 2**52.
    """
    largest = float(weights.max())
    if largest < LARGEST and np.all(weights == np.rint(weights)):
        w = weights.astype(np.int64)
        if _exact_sum(w) < LARGEST:
            return w, 0
    exponent = _exponent(largest, LARGEST)
    while True:
        # exponent 0 says "exact", so fractions do without it
        exponent = exponent if exponent != 0 else -1
        w = np.rint(np.ldexp(weights, exponent)).astype(np.int64)
        w = np.maximum(w, (weights > 0).astype(np.int64))
        excess = _exact_sum(w).bit_length() - 61
        if excess <= 0:
            return w, exponent
        exponent -= excess


def class_weights(
    class_weight: str | Mapping[Any, float],
    classes: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
) -> np.ndarray:
    """The weight of every class, float64 (n_classes,)."""
    n_classes = len(classes)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                f"class_weight must be 'balanced', a dict or None, got {class_weight!r}."
            )
        if weights is None:
            counts = np.bincount(codes, minlength=n_classes).astype(np.float64)
        else:
            counts = np.bincount(codes, weights=weights, minlength=n_classes)
        present = counts > 0
        share = counts.sum() / np.count_nonzero(present)
        return np.divide(share, counts, out=np.ones(n_classes), where=present)
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight must be 'balanced', a dict or None, got {class_weight!r} "
            f"({type(class_weight).__name__})."
        )
    result = np.ones(n_classes)
    left_out = []
    for i, label in enumerate(classes.tolist()):
        if label in class_weight:
            result[i] = class_weight[label]
        else:
            left_out.append(label)
    if left_out and n_classes - len(left_out) != len(class_weight):
        raise ValueError(
            f"The classes, {left_out}, are not in class_weight, which has keys "
            f"{list(class_weight)} that are no classes of y. Use the labels of y as keys."
        )
    if not np.all(np.isfinite(result)) or result.min() < 0:
        raise ValueError(
            f"class_weight must be finite and not negative, got {dict(class_weight)!r}."
        )
    if result.max() == 0:
        raise ValueError("class_weight is zero for every class: nothing is left to learn from.")
    return result


def class_multipliers(weights: np.ndarray, totals: list[int]) -> tuple[np.ndarray, int]:
    """Class weights as integers: ``class_weight = multiplier / 2**exponent``.

    ``totals`` holds the summed integer weight of every class; ``sum(totals * multiplier)`` stays
    within 2**61, and the exponent within 40.
    """
    exponent = min(CLASS_EXPONENT, _exponent(float(weights.max()), LARGEST))
    while True:
        multiplier = np.rint(np.ldexp(weights, exponent)).astype(np.int64)
        multiplier = np.maximum(multiplier, (weights > 0).astype(np.int64))
        total = sum(t * m for t, m in zip(totals, multiplier.tolist(), strict=True))
        excess = total.bit_length() - 61
        if excess <= 0:
            return multiplier, exponent
        exponent -= excess


def _code_type(n_classes: int) -> type:
    """The narrowest unsigned integer for so many classes."""
    if n_classes <= 256:
        return np.uint8
    return np.uint16 if n_classes <= 65_536 else np.uint32


def _exponent(largest: float, limit: int) -> int:
    """The largest e, at most 1,074, with ``largest * 2**e <= limit``; 0 for a largest of zero."""
    if largest == 0.0:
        return 0
    mantissa, power = math.frexp(largest)  # largest = mantissa * 2**power, mantissa in [0.5, 1)
    return min(limit.bit_length() - 1 - power + (mantissa == 0.5), 1074)


def _exact_sum(values: np.ndarray, weights: np.ndarray | None = None) -> int:
    """Sum of integers below 2**53, times weights of at least one if given.

    Exact, so it does not depend on the order of the rows; with fractional weights rounded up.
    """
    if weights is None or weights.max() <= 1.0:
        low = values & 0x3FFFFFF
        return (int((values >> 26).sum()) << 26) + int(low.sum())
    return math.ceil(math.fsum(np.maximum(weights, 1.0) * values))


def _sums(w: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Summed integer weight of every class, exact below 2**53 in total."""
    return np.bincount(codes, weights=w.astype(np.float64))


def _check_total(weights: np.ndarray, name: str) -> None:
    """Raise when the weights add up to more than a float64 holds."""
    with np.errstate(over="ignore"):
        total = float(np.sum(weights))
    if not math.isfinite(total):
        raise StatisticsOverflowError(
            f"{name}: the sum of the weights overflows a float64 (largest weight "
            f"{float(weights.max()):g}). Divide the weights by a constant."
        )


def _one_dimensional(y: Any, name: str) -> np.ndarray:
    """``y`` as a 1-d array that is not empty."""
    array = np.asarray(y)
    if array.ndim != 1:
        raise ValueError(
            f"{name} should be a 1d array, got an array of shape {array.shape} instead. "
            f"Give one value per row, for example {name}.ravel()."
        )
    if len(array) == 0:
        raise ValueError(f"{name} is empty: Found array with 0 sample(s). Give at least one row.")
    return array


def _real(values: Any, name: str) -> np.ndarray:
    """A 1-d array of numbers as float64."""
    array = _one_dimensional(values, name)
    if array.dtype.kind == "c":
        raise ValueError(f"{name}: Complex data not supported. Give real numbers.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be numbers, got an array of dtype {array.dtype} that does not convert: "
            f"{error}."
        ) from error


def _check_finite(values: np.ndarray, name: str) -> None:
    """Raise in scikit-learn's words when a value is missing or infinite."""
    finite = np.isfinite(values)
    if np.all(finite):
        return
    row = int(np.argmin(finite))
    what = (
        "NaN"
        if np.isnan(values[row])
        else f"infinity or a value too large for dtype('{values.dtype}')"
    )
    raise ValueError(f"Input {name} contains {what}. (row {row}) Drop or repair these rows first.")
