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
(`balanced_multipliers`). A row that is held out does not show by them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from dtrees.coding._cells import distinct_rows
from dtrees.coding.coded import LockedArrays
from dtrees.coding.labels import is_missing, object_array
from dtrees.exceptions import StatisticsOverflowError

COUNTED_ROWS = 2**16  # at a time
MOST_CLASSES = 65_535
TARGET_BITS = 62  # of the sum of |weight * y|
ROUNDING = 2.0**-42  # of the weight of a class with few rows, more than it is off
PLAIN_WEIGHT = 8  # largest weights of 2**-8 .. 2**8 are used as they are in wy
PLAIN_TOTAL = 2**32  # and so are integer weights up to this total
LARGEST = 2**52
WEIGHT_BITS = 61  # of the sum of the weights, class weights included
CLASS_EXPONENT = 40
SCALE_BITS = 37  # by which a common multiple is below what balanced classes weigh
CLASS_BITS = 20  # of a total that fractions of rows leave to class weights
LEAST_BALANCED = 1_024  # rows whose fractions leave them to "balanced", which sets share then
LARGEST_SUM = 2.0**62  # of weights or weighted targets of a bag
MOST_EXACT = 2**53  # sums of float64 are exact up to here
MOST_DRAWN = 3_000.0  # of a row, on average: 20 times as many are in 16 bits


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights as float64 (n_rows,); None when all are one."""
    weights = real_numbers(sample_weight, "sample_weight")
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight has {len(weights)} values for {n_rows} rows of y "
            f"(sample_weight.shape == {weights.shape}, expected {(n_rows,)}). "
            "Give one weight per row."
        )
    check_finite(weights, "sample_weight")
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
    check_total(weights, "sample_weight")
    return weights


def fixed_point_weights(weights: np.ndarray, spare_bits: int = 0) -> tuple[np.ndarray, int]:
    """Weights as integers, int64 (n_rows,), and the exponent of their unit.

    weights : float64 (n_rows,), not negative, finite, not all zero. Integers are positive where the
    weight is. A weight is ``w / 2**exponent``; the exponent is 0, and exact, for integers with a
    total below 2**52. `spare_bits` are fewer bits for the total, where rows may count repeatedly.
    """
    largest = float(weights.max())
    if largest < LARGEST and np.all(weights == np.rint(weights)):
        w = weights.astype(np.int64)
        if exact_sum(w) < LARGEST:
            return w, 0
    exponent = largest_exponent(largest, LARGEST)
    while True:
        # exponent 0 says "exact", so fractions do without it
        exponent = exponent if exponent != 0 else -1
        w = np.rint(np.ldexp(weights, exponent)).astype(np.int64)
        w = np.maximum(w, (weights > 0).astype(np.int64))
        excess = exact_sum(w).bit_length() - (WEIGHT_BITS - spare_bits)
        if excess <= 0:
            return w, exponent
        exponent -= excess


def cut_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights of rows in fixed point, for columns that are cut at quantiles.

    A row of weight zero counts as much as the lightest of the others. A fit that leaves rows out by
    weights of zero then has the codes of a fit to all rows, which training sets share.

    Returns
    -------
    int64 (n_rows,) or None
        Positive, with a total below 2**61. None: all count the same.
    """
    weights = check_weights(sample_weight, n_rows)
    if weights is None:
        return None
    w, _ = fixed_point_weights(weights)
    least = int(w[w > 0].min())
    w[w == 0] = least
    if np.all(w == least):
        return None
    excess = exact_sum(w).bit_length() - WEIGHT_BITS
    return np.maximum(w >> excess, 1) if excess > 0 else w


def class_weights(
    class_weight: str | Mapping[Any, float], classes: np.ndarray, totals: list[int]
) -> np.ndarray:
    """The weight of every class, float64 (n_classes,).

    ``totals`` holds the summed weight of every class in any unit, so "balanced" is the same
    function of the rows in any order.
    """
    n_classes = len(classes)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(
                f"class_weight must be 'balanced', a dict or None, got {class_weight!r}."
            )
        n_present = sum(total > 0 for total in totals)
        balanced = [sum(totals) / (n_present * total) if total else 1.0 for total in totals]
        return np.array(balanced)
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


def exact_bincount(numbers: np.ndarray, w: np.ndarray | None, n: int) -> np.ndarray:
    """Summed integer weight of every number below n, exact; int64 (n,).

    Rows are counted when ``w`` is None.
    """
    if w is None:
        return np.bincount(numbers, minlength=n)
    if w.min(initial=0) >= 0 and w.sum(dtype=np.float64) < MOST_EXACT:  # much faster
        return np.bincount(numbers, weights=w, minlength=n).astype(np.int64)
    totals = np.zeros(n, dtype=np.int64)
    np.add.at(totals, numbers, w.astype(np.int64, copy=False))
    return totals


def class_integers(
    class_weight: str | Mapping[Any, float],
    classes: np.ndarray,
    totals: list[int],
    spare_bits: int = 0,
) -> tuple[np.ndarray | None, int]:
    """Class weights as integers, ``multiplier / 2**exponent`` each; None where all are one.

    ``totals`` holds the summed integer weight of every class; ``sum(totals * multiplier)`` stays
    within 2**61, and the exponent within 40.
    """
    weights = class_weights(class_weight, classes, totals)
    if np.all(weights == 1.0):
        return None, 0
    if isinstance(class_weight, str):
        return balanced_multipliers(totals, spare_bits)
    exponent = min(CLASS_EXPONENT, largest_exponent(float(weights.max()), LARGEST))
    while True:
        multiplier = np.rint(np.ldexp(weights, exponent)).astype(np.int64)
        multiplier = np.maximum(multiplier, (weights > 0).astype(np.int64))
        total = sum(t * m for t, m in zip(totals, multiplier.tolist(), strict=True))
        excess = total.bit_length() - (WEIGHT_BITS - spare_bits)
        if excess <= 0:
            return multiplier, exponent
        exponent -= excess


def balanced_multipliers(totals: list[int], spare_bits: int = 0) -> tuple[np.ndarray, int]:
    """The weights of "balanced" as integers, by which all classes weigh the same.

    ``totals * multiplier`` is the same number for all classes that have rows: a common multiple of
    the totals, where one of them differs little from what is asked for, and fits. Otherwise it does
    not increase from class to class. So of equally likely classes the first wins, at the root and
    in all nodes that have the same share of several classes. ``sum(totals * multiplier)`` stays
    within ``2**(61 - spare_bits)``.
    """
    present = [total for total in totals if total > 0] or [1]
    weight, n_present = sum(present), len(present)
    exponent = min(
        WEIGHT_BITS - spare_bits - weight.bit_length(),
        largest_exponent(weight / (n_present * min(present)), LARGEST),
    )
    of_class = math.floor(Fraction(2) ** exponent * weight / n_present)
    common = 1
    for total in present:
        common = math.lcm(common, total)
        if common << SCALE_BITS > of_class:  # and would grow without bound
            break
    else:
        of_class -= of_class % common
    multiplier = np.full(len(totals), 2 ** max(exponent, 0), dtype=np.int64)
    for number, total in enumerate(totals):
        if total > 0:
            multiplier[number] = max(1, of_class // total)
            of_class = min(of_class, int(multiplier[number]) * total)
    return multiplier, exponent


def balanced_fractions(
    weights: np.ndarray, codes: np.ndarray, n_classes: int, spare_bits: int = 0
) -> tuple[tuple[np.ndarray, int], tuple[np.ndarray, int]]:
    """Fractional weights of rows, and what balances the classes, each with an exponent.

    Training sets whose rows count in the same unit share sums; what balances them differs.
    """
    w, exponent = fixed_point_weights(weights, spare_bits + CLASS_BITS)
    totals = exact_bincount(codes, w, n_classes).tolist()
    return (w, exponent), balanced_multipliers(totals, spare_bits)


def largest_exponent(largest: float, limit: int) -> int:
    """The largest e, at most 1,074, with ``largest * 2**e <= limit``; 0 for a largest of zero."""
    if largest == 0.0:
        return 0
    mantissa, power = math.frexp(largest)  # largest = mantissa * 2**power, mantissa in [0.5, 1)
    return min(limit.bit_length() - 1 - power + (mantissa == 0.5), 1074)


def exact_sum(values: np.ndarray, weights: np.ndarray | None = None) -> int:
    """Sum of integers below 2**53, times weights of at least one if given.

    Exact, so it does not depend on the order of the rows; with fractional weights rounded up.
    """
    if weights is None or weights.max() <= 1.0:
        low = values & 0x3FFFFFF
        return (int((values >> 26).sum()) << 26) + int(low.sum())
    return math.ceil(math.fsum(np.maximum(weights, 1.0) * values))


def mean_draws(weights: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Mean numbers of draws of each row into a bag of as many rows as weigh anything.

    weights : int64 (n_rows,), not negative, not all zero, with a total of at most 2**61. Returns 1
    for rows that weigh anything, uint16 or None (all do), and the means, float64 or None (all of
    these weigh the same). Means are in proportion to the weights, and at most `MOST_DRAWN`: then
    all are less, and so is the bag.
    """
    live = weights > 0
    n_live = int(np.count_nonzero(live))
    counts = None if n_live == len(weights) else live.astype(np.uint16)
    if (weights[live] == weights.max()).all():
        return counts, None
    means: np.ndarray = weights / (exact_sum(weights) / n_live)  # exactly 1 where all are equal
    return counts, means * min(1.0, MOST_DRAWN / float(means.max()))


def bound_of_bag(sums: np.ndarray, times: np.ndarray) -> float:
    """The sum of ``abs(sums) * times``, or more where that is enough to know.

    Not as a product of vectors: the threads of a BLAS would wait on the cores that grow trees.
    """
    most = max(float(sums.max(initial=0)), -float(sums.min(initial=0))) * float(times.sum())
    if most < LARGEST_SUM:
        return most
    return float(np.sum(np.abs(sums) * times.astype(np.float64)))


def check_total(weights: np.ndarray, name: str) -> None:
    """Raise when the weights add up to more than a float64 holds."""
    with np.errstate(over="ignore"):
        total = float(np.sum(weights))
    if not math.isfinite(total):
        raise StatisticsOverflowError(
            f"{name}: the sum of the weights overflows a float64 (largest weight "
            f"{float(weights.max()):g}). Divide the weights by a constant."
        )


def one_dimensional(y: Any, name: str) -> np.ndarray:
    """``y`` as a 1-d array that is not empty."""
    if isinstance(y, np.ma.MaskedArray):
        refuse_masked(y, name)
    array = np.asarray(y)
    if array.ndim != 1:
        raise ValueError(
            f"{name} should be a 1d array, got an array of shape {array.shape} instead. "
            f"Give one value per row{f', for example {name}.ravel()' if array.ndim else ''}."
        )
    if len(array) == 0:
        raise ValueError(f"{name} is empty: Found array with 0 sample(s). Give at least one row.")
    return array


def refuse_masked(values: Any, name: str) -> None:
    """Raise when some values are masked: as an array they would be what lies below the mask."""
    if np.ma.is_masked(values):
        raise ValueError(
            f"Input {name} contains NaN: some values are masked. Drop these rows first."
        )


def real_numbers(values: Any, name: str) -> np.ndarray:
    """A 1-d array of numbers as float64."""
    array = one_dimensional(values, name)
    if array.dtype.kind == "c":
        raise ValueError(f"{name}: Complex data not supported. Give real numbers.")
    if array.dtype.kind in "mM":
        raise ValueError(
            f"{name} must be numbers, got {array.dtype}. Give dates and spans of time as numbers "
            "in a unit of your choice, as days since a date."
        )
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be numbers, got an array of dtype {array.dtype} that does not convert: "
            f"{error}."
        ) from error


def check_finite(values: np.ndarray, name: str) -> None:
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
        raise missing_label(labels[np.isnat(labels)][0])
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
    return classes, codes.astype(np.min_scalar_type(len(classes) - 1))


def _integer_classes(labels: np.ndarray, low: int, n_numbers: int) -> tuple[np.ndarray, np.ndarray]:
    """`class_codes` of whole numbers from `low` on, of a small range.

    They are counted a few at a time: what is made on the way stays in the cache, and takes no
    memory in proportion to the rows.
    """
    wide = np.dtype(np.int64 if labels.dtype.kind == "i" else np.uint64)
    lowest = wide.type(low)
    n_rows = len(labels)
    stretches = [slice(start, start + COUNTED_ROWS) for start in range(0, n_rows, COUNTED_ROWS)]
    present = np.zeros(n_numbers, dtype=bool)

    def numbers(rows: slice) -> np.ndarray:
        return (labels[rows].astype(wide, copy=False) - lowest).astype(np.intp)

    for rows in stretches:
        present[numbers(rows)] = True
    values = np.flatnonzero(present)
    position = (np.cumsum(present) - 1).astype(np.min_scalar_type(len(values) - 1))
    codes = np.empty(n_rows, dtype=position.dtype)
    for rows in stretches:
        codes[rows] = position[numbers(rows)]
    return (values.astype(wide) + lowest).astype(labels.dtype), codes


def _string_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`class_codes` of strings of a fixed width, of which only the distinct ones are sorted."""
    native = np.ascontiguousarray(labels, dtype=labels.dtype.newbyteorder("="))
    first, number = distinct_rows(native.view(np.uint32).reshape(len(labels), -1))
    classes, place = np.unique(labels[first], return_inverse=True)
    return classes, place.astype(np.min_scalar_type(len(classes) - 1))[number]


def _object_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`class_codes` of Python objects."""
    values = labels.tolist()
    try:
        distinct = set(values)
        missing = [v for v in distinct if is_missing(v)]
        if missing:
            raise missing_label(missing[0])
        ordered = sorted(distinct)
    except TypeError as error:
        kinds = sorted({type(v).__name__ for v in values})
        raise TypeError(
            f"y holds objects of the types {kinds}, which cannot be compared: labels must be all "
            "numbers or all strings. Convert y to one type."
        ) from error
    number = {value: i for i, value in enumerate(ordered)}
    kind = np.min_scalar_type(len(ordered) - 1)
    codes = np.fromiter(map(number.__getitem__, values), kind, len(values))
    return object_array(ordered), codes


def missing_label(label: Any) -> ValueError:
    """The error of a label that is None, NaN, NaT or pandas.NA."""
    return ValueError(f"Input y contains NaN: a missing label ({label!r}). Drop these rows first.")


@dataclass(frozen=True, eq=False)
class Target(LockedArrays):
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

    kind: Literal["classification", "regression"]
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

    def __sizeof__(self) -> int:
        """With the arrays: Dask asks for it, to know what to spill."""
        return object.__sizeof__(self) + sum(array.nbytes for array in self._of_rows().values())

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
        """One unit of the summed weight (times class multiplier) in user units."""
        return math.ldexp(1.0, -self.w_exponent - self.class_exponent)

    @property
    def value_unit(self) -> float:
        """One unit of y in user units."""
        return math.ldexp(1.0, -self.y_exponent)

    @property
    def wy_unit(self) -> float:
        """One unit of the summed weighted target in user units."""
        return math.ldexp(1.0, -self.wy_exponent)

    def to_value(self, statistics: np.ndarray) -> np.ndarray:
        """Statistics, int64 (..., n_statistics), in the user's units.

        Classification: weight per class, float64 (..., n_classes); a class multiplier has to be in
        the statistics. Regression: the mean, float64 (...); ``offset`` where the weight is zero.
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
        """Tell whether each row counts, bool (n_rows,); None: all do."""
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
            of_class = exact_bincount(self.y, self.w, self.n_classes).tolist()
            of_all = zip(of_class, self.class_multiplier.tolist(), strict=True)
            total = float(sum(weight * many for weight, many in of_all))
        else:
            total = float(self.n_rows if self.w is None else self.w.sum())
        return total * self.weight_unit

    def take(self, rows: np.ndarray | slice) -> Target:
        """The target of other rows (numbers, a mask, a stretch), in the same units."""
        taken: dict[str, Any] = {name: array[rows] for name, array in self._of_rows().items()}
        return replace(self, **taken)

    def _of_rows(self) -> dict[str, np.ndarray]:
        """Those of y, w, wy and means that there are."""
        arrays = {"y": self.y, "w": self.w, "wy": self.wy, "means": self.means}
        return {name: array for name, array in arrays.items() if array is not None}

    def bagged(self, times: np.ndarray) -> Target:
        """The target of a bag, which holds each row a number of times.

        times : integers (n_rows,); 0: the row does not count. Below 2**16 where nothing else
        weighs. StatisticsOverflowError: the sums of the bag could overflow an int64;
        `classification` and `regression` leave room for it with ``spare_bits``.
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
        """Times that each row counts, uint16 (n_rows,), where nothing else weighs; else None."""
        if self.w is None or self.w.dtype != np.uint16 or self.class_multiplier is not None:
            return None
        return self.w

    def only(self, rows: np.ndarray) -> Target:
        """The target in the same units, in which rows that are not chosen, bool, weigh nothing."""
        if self.w is None:
            return replace(self, w=rows.astype(np.uint16), wy=None)
        return replace(self, w=self.w * rows, wy=None if self.wy is None else self.wy * rows)

    @staticmethod
    def stack(parts: Sequence[Target]) -> Target:
        """The rows of several targets in the same units, one behind the other."""
        joined: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in parts[0]._of_rows()
        }
        return replace(parts[0], **joined)

    @classmethod
    def classification(
        cls,
        y: Any,
        sample_weight: Any = None,
        class_weight: str | Mapping[Any, float] | None = None,
        spare_bits: int = 0,
        drawn: bool = False,
    ) -> Target:
        """Class labels (numbers, booleans or strings) as codes.

        Weights of rows are not negative, finite, not all zero. `class_weight` is "balanced":
        ``total weight / (number of classes * weight of the class)``; or a dict of weights by label,
        those left out being one. `spare_bits` are room for rows that count more than once
        (`bagged`): bits taken from fractions. `drawn`: weights say how often rows are drawn into
        bags, and nothing else.

        ValueError: empty or missing labels, 65,536 classes or more, lengths that differ, weights
        out of range.
        """
        labels = one_dimensional(y, "y")
        classes, codes = class_codes(labels)
        if len(classes) > MOST_CLASSES:
            raise ValueError(
                f"y has {len(classes)} classes; a tree counts at most {MOST_CLASSES}. Is this a "
                "regression? Otherwise join rare classes."
            )
        weights = None if sample_weight is None else check_weights(sample_weight, len(codes))
        w, w_exponent = (None, 0) if weights is None else fixed_point_weights(weights, spare_bits)
        multiplier, class_exponent = None, 0
        if class_weight is not None:
            totals = exact_bincount(codes, w, len(classes)).tolist()
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

        With `center` the middle of the range is subtracted first, which keeps most digits; not for
        the poisson criterion, which needs sums that start at zero. Other arguments are as for
        `classification`.

        ValueError: empty, missing or infinite targets, lengths that differ, weights out of range.
        StatisticsOverflowError: the squares of the target overflow a float64.
        """
        values = real_numbers(y, "y")
        check_finite(values, "y")
        weights = None if sample_weight is None else check_weights(sample_weight, len(values))
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
            excess = exact_sum(np.abs(scaled), weights).bit_length() - (TARGET_BITS - spare_bits)
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
