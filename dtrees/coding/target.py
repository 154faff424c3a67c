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
integer weights are exact; a fractional weight is off by at most 2**-50 of the largest weight
(2**-60 of the total, if that is more), and a positive one never becomes zero. `wy_exponent` differs
from `y_exponent` only when the largest weight is below 2**-8 or (unless the weights are integers
with a total below 2**32) from 2**9 on: then weights count in the products as multiples of a power
of two near the largest, so that neither small nor large weights lose digits. What remains is the
ratio: the mean of rows whose weight is r times the largest is off by up to
``2**-y_exponent / (2 r)``.

Class weights multiply when a gain is read, so the sums themselves stay plain. With fractional
sample weights they are multiplied into w, where they keep more digits; but those of "balanced"
differ between training sets, which would share nothing. So 1,024 rows or more leave 20 bits to
them: a row is off by at most 2**-40 of the total, a class weight by 2**-20 times the number of
classes.

"balanced" makes all classes of a table weigh the same, and so do their integers, where the totals
of the classes have a common multiple that fits; otherwise roundings leave the first one ahead
(`dtrees.coding.weights.balanced_multipliers`). A row that is held out does not show by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dtrees._pickling import SmallArraysInside
from dtrees.coding._cells import distinct_rows
from dtrees.coding.labels import is_missing, object_array
from dtrees.coding.weights import (
    LARGEST,
    LARGEST_SUM,
    LEAST_BALANCED,
    balanced_fractions,
    bound_of_bag,
    check_finite,
    check_total,
    check_weights,
    class_integers,
    class_totals,
    class_weights,
    exact_sum,
    fixed_point_weights,
    largest_exponent,
    mean_draws,
    one_dimensional,
    real_numbers,
)
from dtrees.exceptions import StatisticsOverflowError

COUNTED_ROWS = 2**16  # at a time
MOST_CLASSES = 65_535
TOTAL_BITS = 62  # of the sum of |weight * y|
ROUNDING = 2.0**-42  # of the weight of a class with few rows, more than it is off
PLAIN_WEIGHT = 8  # largest weights of 2**-8 .. 2**8 are used as they are in wy
PLAIN_TOTAL = 2**32  # and so are integer weights up to this total


def class_codes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct labels and the number of every row's label.

    Whole numbers of a small range are counted instead of sorted; of strings and objects, only the
    distinct ones are.

    Returns
    -------
    classes : (n_classes,), dtype of the labels
    codes : uint8, uint16 or uint32 (n_rows,)
    """
    kind = labels.dtype.kind
    if kind == "c":
        raise ValueError("y: Complex data not supported. Give y as real numbers or labels.")
    if kind == "f":
        check_finite(labels, "y")
    if kind in ("O", "T"):
        return _object_classes(labels)
    if kind in "Mm" and np.isnat(labels).any():
        raise _missing_label(labels[np.isnat(labels)][0])
    if kind == "b":
        labels = labels.view(np.uint8)
    if kind in "iub":
        low, high = int(labels.min()), int(labels.max())
        if high - low <= max(1024, 4 * len(labels)):
            classes, codes = _integer_classes(labels, low, high - low + 1)
            return classes.view(np.bool_) if kind == "b" else classes, codes
    if kind == "U" and labels.dtype.itemsize > 0:
        return _string_classes(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes.astype(_code_type(len(classes)))


def _integer_classes(labels: np.ndarray, low: int, n_numbers: int) -> tuple[np.ndarray, np.ndarray]:
    """`class_codes` of whole numbers from `low` on, of a small range.

    They are counted a few at a time: what is made on the way stays in the cache, and takes no
    memory in proportion to the rows.
    """
    wide = np.dtype(np.int64 if labels.dtype.kind == "i" else np.uint64)
    lowest = wide.type(low)

    def numbers(rows: slice) -> np.ndarray:
        return (labels[rows].astype(wide, copy=False) - lowest).astype(np.intp)

    n_rows = len(labels)
    stretches = [slice(start, start + COUNTED_ROWS) for start in range(0, n_rows, COUNTED_ROWS)]
    present = np.zeros(n_numbers, dtype=bool)
    for rows in stretches:
        present[numbers(rows)] = True
    values = np.flatnonzero(present)
    position: np.ndarray = (np.cumsum(present) - 1).astype(_code_type(len(values)))
    codes = np.empty(n_rows, dtype=position.dtype)
    for rows in stretches:
        codes[rows] = position[numbers(rows)]
    return (values.astype(wide) + lowest).astype(labels.dtype), codes


def _string_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`class_codes` of strings of a fixed width, of which only the distinct ones are sorted."""
    native = np.ascontiguousarray(labels, dtype=labels.dtype.newbyteorder("="))
    first, number = distinct_rows(native.view(np.uint32).reshape(len(labels), -1))
    classes, place = np.unique(labels[first], return_inverse=True)
    return classes, place.astype(_code_type(len(classes)))[number]


def _object_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`class_codes` of Python objects."""
    values = labels.tolist()
    try:
        distinct = set(values)
        missing = [v for v in distinct if is_missing(v)]
        if missing:
            raise _missing_label(missing[0])
        ordered = sorted(distinct)
    except TypeError as error:
        kinds = sorted({type(v).__name__ for v in values})
        raise TypeError(
            f"y holds objects of the types {kinds}, which cannot be compared: labels must be all "
            "numbers or all strings. Convert y to one type."
        ) from error
    number = {value: i for i, value in enumerate(ordered)}
    kind = np.dtype(_code_type(len(ordered)))
    codes = np.fromiter(map(number.__getitem__, values), kind, len(values))
    return object_array(ordered), codes


def _missing_label(label: Any) -> ValueError:
    return ValueError(f"Input y contains NaN: a missing label ({label!r}). Drop these rows first.")


def _code_type(n_classes: int) -> type:
    """The narrowest unsigned integer for so many classes."""
    if n_classes <= 256:
        return np.uint8
    return np.uint16 if n_classes <= 65_536 else np.uint32


@dataclass(frozen=True, eq=False)
class Target(SmallArraysInside):
    """y and the weights; every array is read only.

    Attributes
    ----------
    kind : {"classification", "regression"}
    y : uint8 or uint16 (n_rows,), classification; int64 (n_rows,), regression
    n_rows : int
    n_classes : int
        0 for regression.
    classes : (n_classes,) or None
        Labels as given, sorted.
    offset : float
    y_exponent, w_exponent, wy_exponent, class_exponent : int
    w : int64 or uint16 (n_rows,), or None
        None: every weight is one. Rows of weight zero never count. Two bytes where all that weighs
        is how often a row is in a bag.
    wy : int64 (n_rows,) or None
        Regression only; ``y`` itself when there are no weights, None where it is ``w * y``.
    class_multiplier : int64 (n_classes,) or None
    means : float64 (n_rows,) or None
        How often a row is drawn into a bag of rate one, on average, where bags are drawn by weight;
        None: once. Otherwise `w` says no more than which rows count.
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
    means: np.ndarray | None = None

    def __post_init__(self) -> None:
        assert self.kind in ("classification", "regression")
        self._lock_arrays()

    def __sizeof__(self) -> int:
        """With the arrays: Dask asks for it, to know what to spill."""
        arrays = (self.y, self.w, self.wy, self.means)
        return object.__sizeof__(self) + sum(each.nbytes for each in arrays if each is not None)

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

    @property
    def has_weight(self) -> np.ndarray | None:
        """Whether each row counts, bool (n_rows,); None: all do."""
        if self.w is None and self.class_multiplier is None:
            return None
        live = np.ones(self.n_rows, dtype=bool) if self.w is None else self.w > 0
        if self.class_multiplier is not None:
            live &= self.class_multiplier[self.y] > 0
        return live

    @property
    def n_live(self) -> int:
        """Number of rows that count."""
        live = self.has_weight
        return self.n_rows if live is None else int(np.count_nonzero(live))

    @property
    def total_weight(self) -> float:
        """Weight of all rows in the user's units, class weights included."""
        if self.class_multiplier is not None:
            of_class = class_totals(self.y, self.w, self.n_classes)
            of_all = zip(of_class, self.class_multiplier.tolist(), strict=True)
            total = float(sum(weight * many for weight, many in of_all))
        else:
            total = float(self.n_rows if self.w is None else self.w.sum())
        return total * self.weight_unit

    def take(self, rows: np.ndarray | slice) -> Target:
        """The same target, in the same units, for other rows (numbers, a mask, a stretch)."""
        return self._with_arrays(lambda name: getattr(self, name)[rows])

    def _with_arrays(self, array: Callable[[str], np.ndarray]) -> Target:
        """The same target with other arrays where it has y, w, wy and means."""
        names = [name for name in ("y", "w", "wy", "means") if getattr(self, name) is not None]
        changed: dict[str, Any] = {name: array(name) for name in names}
        return replace(self, **changed)

    def bagged(self, times: np.ndarray) -> Target:
        """The same target for a bag, which holds each row a number of times.

        Parameters
        ----------
        times : integers (n_rows,)
            0: the row does not count. Below 2**16 where nothing else weighs.

        Raises
        ------
        StatisticsOverflowError
            The sums of the bag could overflow an int64; `classification` and `regression` leave
            room for it with ``spare_bits``.
        """
        for name, sums in (("weights", self.w), ("weighted targets", self.wy)):
            if sums is not None and bound_of_bag(sums, times) >= LARGEST_SUM:
                raise StatisticsOverflowError(f"The {name} of a bag overflow an int64.")
        if self.w is None or (self.wy is None and self.times is not None):  # of a set: 0 and 1
            own = times.astype(np.uint16, copy=False)
            own = own if self.w is None else self.w * own
            return replace(self, w=own, wy=None, means=None)
        times = times.astype(np.int64)
        wy = None if self.wy is None else self.wy * times
        return replace(self, w=self.w * times, wy=wy)

    @property
    def times(self) -> np.ndarray | None:
        """How often each row counts, uint16 (n_rows,), where nothing else weighs; else None."""
        if self.w is None or self.w.dtype != np.uint16 or self.class_multiplier is not None:
            return None
        return self.w

    def only(self, rows: np.ndarray) -> Target:
        """The same target, in the same units: rows that are not chosen, bool, weigh nothing."""
        if self.w is None:
            return replace(self, w=rows.astype(np.uint16), wy=None)
        return replace(self, w=self.w * rows, wy=None if self.wy is None else self.wy * rows)

    @staticmethod
    def stack(parts: Sequence[Target]) -> Target:
        """The rows of several targets in the same units, one behind the other."""
        return parts[0]._with_arrays(
            lambda name: np.concatenate([getattr(part, name) for part in parts])
        )

    @classmethod
    def classification(
        cls,
        y: Any,
        sample_weight: Any = None,
        class_weight: str | Mapping[Any, float] | None = None,
        spare_bits: int = 0,
        drawn: bool = False,
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
        spare_bits : int, default=0
            Room for rows that count more than once (`bagged`): bits taken from fractions.
        drawn : bool, default=False
            Whether weights say how often rows are drawn into bags, and nothing else.

        Raises
        ------
        ValueError
            Empty or missing labels, 65,536 classes or more, lengths that differ, weights out of
            range.
        """
        labels = one_dimensional(y, "y")
        classes, codes = class_codes(labels)
        if len(classes) > MOST_CLASSES:
            raise ValueError(
                f"y has {len(classes)} classes; a tree counts at most {MOST_CLASSES}. Is this a "
                "regression? Otherwise join rare classes."
            )
        weights = check_weights(sample_weight, len(codes))
        w, w_exponent = (None, 0) if weights is None else fixed_point_weights(weights, spare_bits)
        multiplier, class_exponent = None, 0
        if class_weight is not None:
            totals = class_totals(codes, w, len(classes))
            per_class = class_weights(class_weight, classes, totals)
            if not any(t > 0 and p > 0 for t, p in zip(totals, per_class, strict=True)):
                raise ValueError(
                    "sample_weight times class_weight is zero for every row: nothing is left to "
                    "learn from. Give a class that has rows a positive weight."
                )
            is_balanced = isinstance(class_weight, str)
            if weights is None or w_exponent == 0:
                multiplier, class_exponent = class_integers(
                    class_weight, classes, totals, spare_bits
                )
            elif is_balanced and np.count_nonzero(weights) >= LEAST_BALANCED:
                of_rows, of_classes = balanced_fractions(weights, codes, len(classes), spare_bits)
                (w, w_exponent), (multiplier, class_exponent) = of_rows, of_classes
            else:
                if is_balanced:  # up to roundings the classes weigh the same: the first one wins
                    per_class = per_class * (1.0 - np.arange(len(classes)) * ROUNDING)
                weights = weights * per_class[codes]
                check_total(weights, "sample_weight times class_weight")
                w, w_exponent = fixed_point_weights(weights, spare_bits)
        means = None
        if drawn and not (w is None and multiplier is None):
            each = np.ones(len(codes), dtype=np.int64) if w is None else w
            w, means = mean_draws(each if multiplier is None else each * multiplier[codes])
            w_exponent, multiplier, class_exponent = 0, None, 0
        return cls(
            kind="classification",
            y=codes,
            n_classes=len(classes),
            classes=classes,
            means=means,
            w=w,
            w_exponent=w_exponent,
            class_multiplier=multiplier,
            class_exponent=class_exponent,
        )

    @classmethod
    def regression(
        cls,
        y: Any,
        sample_weight: Any = None,
        center: bool = True,
        spare_bits: int = 0,
        drawn: bool = False,
    ) -> Target:
        """A real target in fixed point.

        Parameters
        ----------
        y : array-like of numbers (n_rows,)
        sample_weight : array-like (n_rows,), default=None
        center : bool, default=True
            Subtract the middle of the range first, which keeps most digits. False for the poisson
            criterion, which needs sums that start at zero.
        spare_bits : int, default=0
            Room for rows that count more than once (`bagged`): bits taken from fractions.
        drawn : bool, default=False
            As for `classification`.

        Raises
        ------
        ValueError
            Empty, missing or infinite targets, lengths that differ, weights out of range.
        StatisticsOverflowError
            The squares of the target overflow a float64.
        """
        values = real_numbers(y, "y")
        check_finite(values, "y")
        weights = check_weights(sample_weight, len(values))
        w, means = None, None
        if drawn and weights is not None:
            w, means = mean_draws(fixed_point_weights(weights)[0])
            weights = means
        lowest, highest = float(values.min()), float(values.max())
        offset = 0.0
        if center:
            offset = lowest if lowest == highest else lowest / 2 + highest / 2
        values = values - offset
        largest = float(np.abs(values).max())
        total_weight = float(len(values))  # each row counts as one, at least
        if weights is not None and weights.max() > 1.0:
            total_weight = math.fsum(np.maximum(weights, 1.0))
        if not math.isfinite(largest * largest * total_weight):
            raise StatisticsOverflowError(
                f"y goes from {lowest:g} to {highest:g}: the squares of its distances from "
                f"{offset:g} overflow a float64. Divide y by a power of ten before the fit."
            )
        w_exponent, shift = 0, 0
        if weights is not None and not drawn:
            w, w_exponent = fixed_point_weights(weights, spare_bits)
            power = math.frexp(float(weights.max()))[1] - 1
            if abs(power) > PLAIN_WEIGHT and (w_exponent != 0 or exact_sum(w) >= PLAIN_TOTAL):
                shift = -power
            weights = np.ldexp(weights, shift)
        y_exponent = largest_exponent(largest, LARGEST)
        while True:
            scaled = np.rint(np.ldexp(values, y_exponent)).astype(np.int64)
            excess = exact_sum(np.abs(scaled), weights).bit_length() - (TOTAL_BITS - spare_bits)
            if excess <= 0:
                break
            y_exponent -= excess
        wy = None if w is not None and drawn else scaled
        if weights is not None and w is not None and not drawn:
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
            means=means,
        )
