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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import partial
from itertools import chain
from operator import attrgetter, methodcaller
from typing import Any, Literal

import numpy as np

from dtrees.coding._cells import distinct_rows
from dtrees.coding.coded import LockedArrays, digest_of_arrays
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
    rows = GivenRows(np.empty(0), None, weights_given(sample_weight, n_rows))
    return rows.weight if weights_differ(rows.ask) else None


def weights_given(sample_weight: Any, n_rows: int, first_row: int = 0) -> np.ndarray:
    """Weights of rows, float64 (n_rows,), none of which is wrong by itself."""
    weights = real_numbers(sample_weight, "sample_weight")
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight has {len(weights)} values for {n_rows} rows of y "
            f"(sample_weight.shape == {weights.shape}, expected {(n_rows,)}). "
            "Give one weight per row."
        )
    check_finite(weights, "sample_weight", first_row)
    if weights.min() < 0:
        at = int(np.argmin(weights))
        raise ValueError(
            f"sample_weight must not be negative, got {weights[at]:g} in row {first_row + at}. "
            "Use zero for rows that should not count."
        )
    return weights


def weights_differ(ask: Ask) -> bool:
    """Whether rows have weights, and not all are one; ValueError: all are zero."""
    found = ask(_largest_weight)
    if found[0] is None:
        return False
    if max(largest for largest, _ in found) == 0:
        raise ValueError(
            "sample_weight is zero for every row: nothing is left to learn from. "
            "Give at least one row a positive weight."
        )
    if all(are_one for _, are_one in found):
        return False
    check_total(ask, "sample_weight")
    return True


def _largest_weight(rows: GivenRows) -> tuple[float, bool] | None:
    """The largest weight, and whether all are one; None: there are none."""
    weight = rows.weight
    return None if weight is None else (float(weight.max()), bool(np.all(weight == 1.0)))


def exponent_of_weights(ask: Ask, spare_bits: int = 0) -> int:
    """The exponent of the unit of weights that are not all zero; see `fixed_point_weights`."""
    of_parts, totals = zip(*ask(_largest_and_total), strict=True)
    largest = max(of_parts)
    if None not in totals and sum(totals) < LARGEST:
        return 0
    exponent = largest_exponent(largest, LARGEST)
    while True:
        # exponent 0 says "exact", so fractions do without it
        exponent = exponent if exponent != 0 else -1
        excess = sum(ask(_total_weight, exponent)).bit_length() - (WEIGHT_BITS - spare_bits)
        if excess <= 0:
            return exponent
        exponent -= excess


def _largest_and_total(rows: GivenRows) -> tuple[float, int | None]:
    """The largest weight, and the sum; None: they are no whole numbers below 2**52."""
    assert rows.weight is not None
    largest = float(rows.weight.max())
    is_whole = largest < LARGEST and np.all(rows.weight == np.rint(rows.weight))
    return largest, exact_sum(rows.weight.astype(np.int64)) if is_whole else None


def _total_weight(rows: GivenRows, exponent: int) -> int:
    assert rows.weight is not None
    return exact_sum(weights_in_units(rows.weight, exponent))


def weights_in_units(weights: np.ndarray, exponent: int) -> np.ndarray:
    """Weights as multiples of ``2**-exponent``, int64 (n_rows,); none of which becomes zero."""
    if exponent == 0:
        return weights.astype(np.int64)
    w = np.rint(np.ldexp(weights, exponent)).astype(np.int64)
    return np.maximum(w, (weights > 0).astype(np.int64))


def fixed_point_weights(weights: np.ndarray, spare_bits: int = 0) -> tuple[np.ndarray, int]:
    """Weights as integers, int64 (n_rows,), and the exponent of their unit.

    weights : float64 (n_rows,), not negative, finite, not all zero. Integers are positive where the
    weight is. A weight is ``w / 2**exponent``; the exponent is 0, and exact, for integers with a
    total below 2**52. `spare_bits` are fewer bits for the total, where rows may count repeatedly.
    """
    exponent = exponent_of_weights(GivenRows(np.empty(0), None, weights).ask, spare_bits)
    return weights_in_units(weights, exponent), exponent


def exact_total(ask: Ask) -> float:
    """Sum of weights as integers, which does not depend on their order."""
    exponent = exponent_of_weights(ask)
    return math.ldexp(sum(ask(_total_weight, exponent)), -exponent)


def cut_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights of rows in fixed point, for columns that are cut at quantiles.

    A row of weight zero counts as much as the lightest of the others. A fit that leaves rows out by
    weights of zero then has the codes of a fit to all rows, which training sets share.

    Returns
    -------
    int64 (n_rows,) or None
        Positive, with a total below 2**61. None: all count the same.
    """
    rows = GivenRows(np.empty(0), None, weights_given(sample_weight, n_rows))
    units = units_of_cuts(rows.ask)
    return None if units is None else rows.weights_of_cuts(*units)


def units_of_cuts(ask: Ask) -> tuple[int, int, int] | None:
    """Exponent of the weights of `cut_weights`, the least of them, and bits that are too many.

    None: all count the same.
    """
    if not weights_differ(ask):
        return None
    exponent = exponent_of_weights(ask)
    bounds = [each for each in ask(_bounds_of_weights, exponent) if each is not None]
    least, most = min(low for low, _ in bounds), max(high for _, high in bounds)
    if least == most:
        return None
    total = sum(ask(GivenRows.total_of_cuts, exponent, least))
    return exponent, least, max(0, total.bit_length() - WEIGHT_BITS)


def _bounds_of_weights(rows: GivenRows, exponent: int) -> tuple[int, int] | None:
    """The least and the largest weight that is not zero; None: all are."""
    assert rows.weight is not None
    w = weights_in_units(rows.weight, exponent)
    live = w[w > 0]
    return (int(live.min()), int(live.max())) if len(live) > 0 else None


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


def largest_exponent(largest: float, limit: int) -> int:
    """The largest e, at most 1,074, with ``largest * 2**e <= limit``; 0 for a largest of zero."""
    if largest == 0.0:
        return 0
    mantissa, power = math.frexp(largest)  # largest = mantissa * 2**power, mantissa in [0.5, 1)
    return min(limit.bit_length() - 1 - power + (mantissa == 0.5), 1074)


def exact_sum(values: np.ndarray) -> int:
    """Sum of integers below 2**53; exact, so it does not depend on the order of the rows."""
    low = values & 0x3FFFFFF
    return (int((values >> 26).sum()) << 26) + int(low.sum())


def exact_terms(values: np.ndarray) -> list[float]:
    """A few numbers that add up to the sum of some others without any rounding."""
    terms: list[float] = []
    while (rest := math.fsum(chain(values, (-term for term in terms)))) != 0:
        terms.append(rest)
        if not math.isfinite(rest):
            break
    return terms


def bound_of_bag(sums: np.ndarray, times: np.ndarray) -> float:
    """The sum of ``abs(sums) * times``, or more where that is enough to know.

    Not as a product of vectors: the threads of a BLAS would wait on the cores that grow trees.
    """
    most = max(float(sums.max(initial=0)), -float(sums.min(initial=0))) * float(times.sum())
    if most < LARGEST_SUM:
        return most
    return float(np.sum(np.abs(sums) * times.astype(np.float64)))


def check_total(ask: Ask, name: str) -> None:
    """Raise when the weights add up to more than a float64 holds."""
    total = sum(ask(_sum_of_weights))
    if not math.isfinite(total):
        largest = max(largest for largest, _ in ask(_largest_weight))
        raise StatisticsOverflowError(
            f"{name}: the sum of the weights overflows a float64 (largest weight "
            f"{largest:g}). Divide the weights by a constant."
        )


def _sum_of_weights(rows: GivenRows) -> float:
    assert rows.weight is not None
    with np.errstate(over="ignore"):
        return float(np.sum(rows.weight))


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


def check_finite(values: np.ndarray, name: str, first_row: int = 0) -> None:
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
    raise ValueError(
        f"Input {name} contains {what}. (row {first_row + row}) Drop or repair these rows first."
    )


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


Ask = Callable[
    ..., list[Any]
]  # a function of `GivenRows`, and arguments: what it says of each part


@dataclass(frozen=True, eq=False)
class GivenRows:
    """y and weights of some rows, from which their target is made.

    Attributes
    ----------
    y : unsigned integers (n_rows,), numbers of `classes`; or float64 (n_rows,)
    classes : (n_classes,) or None
        Labels that these rows have, sorted.
    weight : float64 (n_rows,) or None
    first_row : int, default=0
        The number of the first one.
    """

    y: np.ndarray
    classes: np.ndarray | None
    weight: np.ndarray | None
    first_row: int = 0

    @classmethod
    def of(cls, y: Any, sample_weight: Any, of_classes: bool, first_row: int = 0) -> GivenRows:
        """Rows as users give them; ValueError: they cannot be fitted, whatever others are."""
        classes = None
        if of_classes:
            classes, values = class_codes(one_dimensional(y, "y"))
        else:
            values = real_numbers(y, "y")
            check_finite(values, "y", first_row)
        weight = None
        if sample_weight is not None:
            weight = weights_given(sample_weight, len(values), first_row)
        return cls(values, classes, weight, first_row)

    def ask(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The only part, where these are all rows."""
        return [function(self, *arguments)]

    def without_weights(self) -> GivenRows:
        """Rows that count once each."""
        return replace(self, weight=None)

    def numbers_of(self, classes: np.ndarray) -> np.ndarray:
        """Numbers of the labels of rows among those of all rows."""
        assert self.classes is not None
        if len(self.classes) == len(classes):
            return self.y
        place = np.searchsorted(classes, self.classes)
        return place.astype(np.min_scalar_type(len(classes) - 1))[self.y]

    def weighing(self, per_class: np.ndarray, classes: np.ndarray) -> GivenRows:
        """Rows whose weights are multiplied by those of their classes."""
        assert self.weight is not None
        return replace(self, weight=self.weight * per_class[self.numbers_of(classes)])

    def weights_of_cuts(self, exponent: int, least: int, excess: int) -> np.ndarray:
        """What `cut_weights` says of these rows."""
        assert self.weight is not None
        w = weights_in_units(self.weight, exponent)
        w[w == 0] = least
        return np.maximum(w >> excess, 1) if excess > 0 else w

    def total_of_cuts(self, exponent: int, least: int) -> int:
        """The sum of these, all of whose bits are there."""
        return exact_sum(self.weights_of_cuts(exponent, least, 0))


def _asked_after(
    rows: GivenRows, change: Callable[[GivenRows], GivenRows], function: Any, *arguments: Any
) -> Any:
    return function(change(rows), *arguments)


@dataclass(frozen=True, eq=False)
class MeanDraws:
    """Mean numbers of draws of each row into a bag of as many rows as weigh anything.

    Weights are in units of ``2**-exponent``, times the multipliers of classes, if there are such.
    Means are in proportion to them, and at most `MOST_DRAWN`: then all are less by `share`, and so
    is the bag.
    """

    exponent: int
    multiplier: np.ndarray | None
    classes: np.ndarray | None
    average: float = 1.0  # weight of the rows that weigh anything
    share: float = 1.0
    all_count: bool = True  # whether each row weighs anything
    are_alike: bool = True  # whether all of these weigh the same

    def weights(self, rows: GivenRows) -> np.ndarray:
        """Weights in these units, int64 (n_rows,)."""
        w = np.ones(len(rows.y), dtype=np.int64)
        if rows.weight is not None:
            w = weights_in_units(rows.weight, self.exponent)
        if self.multiplier is not None:
            assert self.classes is not None
            w = w * self.multiplier[rows.numbers_of(self.classes)]
        return w

    def sums(self, rows: GivenRows) -> tuple[int, int, int, int, int]:
        """How many rows there are and weigh anything, their total, the least and the largest."""
        weights = self.weights(rows)
        live = weights[weights > 0]
        most = int(live.max(initial=0))
        return len(weights), len(live), exact_sum(live), int(live.min(initial=most)), most

    @classmethod
    def of(cls, ask: Ask, *units: Any) -> MeanDraws:
        """Of weights in some units, which are not all zero."""
        known = cls(*units)
        n_rows, n_live, totals, least, most = zip(*ask(known.sums), strict=True)
        average, largest = sum(totals) / sum(n_live), max(most)
        return replace(
            known,
            average=average,
            share=min(1.0, MOST_DRAWN / (largest / average)),
            all_count=sum(n_live) == sum(n_rows),
            are_alike=min(filter(None, least)) == largest,
        )

    def draws(self, rows: GivenRows) -> tuple[np.ndarray | None, np.ndarray | None]:
        """1 for rows that weigh anything, uint16 or None (all do), and means, float64 or None."""
        weights = self.weights(rows)
        counts = None if self.all_count else (weights > 0).astype(np.uint16)
        # exactly 1 where all are equal
        return counts, None if self.are_alike else weights / self.average * self.share

    def drawn(self, rows: GivenRows) -> GivenRows:
        """Rows that have means in place of weights."""
        return replace(rows, weight=self.draws(rows)[1])


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
    def n_outputs(self) -> int:
        """Number of columns of y."""
        return 1

    @property
    def of_outputs(self) -> tuple[Target, ...]:
        """The target of each column of y."""
        return (self,)

    @property
    def units(self) -> tuple[Any, ...]:
        """What integers stand for: where units are equal, sums may be shared."""
        return self.offset, self.y_exponent, self.w_exponent, self.wy_exponent

    @property
    def labels(self) -> Any:
        """Labels, sorted: an array, of several columns of y a list of them; None of numbers."""
        return self.classes

    @property
    def most_classes(self) -> int:
        """Number of classes of the column that has most; 0: of numbers."""
        return self.n_classes

    @property
    def n_statistics(self) -> int:
        """Length of a row's or node's statistics: the classes, or weight and weighted target."""
        return self.n_classes if self.kind == "classification" else 2

    @property
    def n_values(self) -> int:
        """Values of a node: the classes, or 1; of all outputs."""
        return self.n_statistics - (self.kind == "regression")

    def by_output(self, shares: np.ndarray) -> list[np.ndarray]:
        """Shares of the classes of each output, float64 (n, n_classes)."""
        return [shares]

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
    def total_units(self) -> int:
        """Weight of all rows, class weights included, in units."""
        if self.class_multiplier is None:
            return self.n_rows if self.w is None else int(self.w.sum())
        of_class = exact_bincount(self.y, self.w, self.n_classes).tolist()
        of_all = zip(of_class, self.class_multiplier.tolist(), strict=True)
        return int(sum(weight * many for weight, many in of_all))

    @property
    def total_weight(self) -> float:
        """Weight of all rows in the user's units, class weights included."""
        return float(self.total_units) * self.weight_unit

    @property
    def sample(self) -> Target:
        """The target of a row, which has what all rows have."""
        return self.take(np.zeros(1, dtype=np.intp))

    def digest(self, first_row: int = 0) -> int:
        """A number that tells the rows apart from others; those of parts add up modulo 2**64."""
        columns = [np.atleast_2d(array.T) for array in self._of_rows().values()]
        return digest_of_arrays([each for own in columns for each in own], first_row)

    def facts(self) -> dict[str, Any]:
        """What tells a target from others: its units, and the digest of its rows."""
        rows = self._of_rows()
        units = {each.name: getattr(self, each.name) for each in fields(Target)}
        units.update(dict.fromkeys(rows, True))
        return {**units, "n_rows": self.n_rows, "rows": self.digest()}

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
            if sums is not None and any(
                bound_of_bag(each, times) >= LARGEST_SUM for each in np.atleast_2d(sums.T)
            ):
                raise StatisticsOverflowError(f"The {name} of a bag overflow an int64.")
        if self.w is None or (self.wy is None and self.times is not None):  # of a set: 0 and 1
            own = times.astype(np.uint16, copy=False)
            own = own if self.w is None else self.w * own
            return replace(self, w=own, wy=None, means=None)
        times = times.astype(np.int64)
        wy = None if self.wy is None else (self.wy.T * times).T
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
        wy = None if self.wy is None else (self.wy.T * rows).T
        return replace(self, w=self.w * rows, wy=wy)

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
        rows = GivenRows.of(y, sample_weight, of_classes=True)
        return TargetUnits.of_classes(rows.ask, class_weight, spare_bits, drawn).target(rows)

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
        rows = GivenRows.of(y, sample_weight, of_classes=False)
        return TargetUnits.of_numbers(rows.ask, center, spare_bits, drawn).target(rows)


@dataclass(frozen=True, eq=False)
class MeansElsewhere:
    """Means of draws of rows that are not here, as an array of them."""

    largest: float
    sum_of_digests: int

    def max(self) -> float:
        """The largest of them."""
        return self.largest


@dataclass(frozen=True, eq=False)
class SpreadTarget(Target):
    """The target of rows that are not here, but in parts.

    Its arrays are those of a row.

    Attributes
    ----------
    n_given, n_counted, n_units, sum_of_digests : int
        `n_rows`, `n_live` and `total_units` of all rows, and their `digest`.
    each : callable
        The targets of the parts: tasks of Dask, made anew with each call.
    """

    n_given: int = 0
    n_counted: int = 0
    n_units: int = 0
    sum_of_digests: int = 0
    each: Callable[[], list[Any]] = field(default=list, repr=False)

    n_rows = property(attrgetter("n_given"))
    n_live = property(attrgetter("n_counted"))
    total_units = property(attrgetter("n_units"))

    @property
    def has_weight(self) -> np.ndarray | None:
        """None where all rows count; TypeError: it is not known here which do."""
        if self.n_live == self.n_rows:
            return None
        raise TypeError("Which rows count is known where they are.")

    @property
    def sample(self) -> Target:
        """The target of a row, which has what all rows have."""
        own = {each.name: getattr(self, each.name) for each in fields(Target)}
        return Target(**own | {"means": None if self.means is None else np.ones(1)})

    def digest(self, first_row: int = 0) -> int:
        """A number that tells the rows apart from others."""
        return self.sum_of_digests

    def _of_rows(self) -> dict[str, np.ndarray]:
        return self.sample._of_rows()


@dataclass(frozen=True, eq=False)
class TargetUnits:
    """What targets of some rows have in common with that of all rows, which may be elsewhere.

    Attributes
    ----------
    empty : Target
        Of no rows, in these units.
    are_weighed : bool
        Whether rows have weights, and not all are one.
    per_class : float64 (n_classes,) or None
        What weights of rows are multiplied by before they are rounded.
    draws : MeanDraws or None
        How weights become means of draws.
    shift : int
        Bits by which weights are larger where they multiply a number.
    """

    empty: Target
    are_weighed: bool = False
    per_class: np.ndarray | None = None
    draws: MeanDraws | None = None
    shift: int = 0

    def are_those_of(self, other: TargetUnits) -> bool:
        """Whether rows of the same weight have the same integers, and classes do not weigh."""
        own, empty = self.empty, other.empty
        of_rows = self.draws, other.draws, self.per_class, other.per_class
        return (
            all(each is None for each in of_rows)
            and own.class_multiplier is None
            and empty.class_multiplier is None
            and own.units == empty.units
            and own.class_exponent == empty.class_exponent
        )

    def target(self, rows: GivenRows) -> Target:
        """The target of some rows."""
        empty, w, means, y, wy = self.empty, None, None, rows.y, None
        if not self.are_weighed:
            rows = rows.without_weights()
        if self.per_class is not None:
            assert empty.classes is not None
            rows = rows.weighing(self.per_class, empty.classes)
        if self.draws is not None:
            w, means = self.draws.draws(rows)
        elif rows.weight is not None:
            w = weights_in_units(rows.weight, empty.w_exponent)
        if empty.classes is not None:
            y = rows.numbers_of(empty.classes)
        else:
            y = self._in_units(rows)
            wy = None if w is not None and self.draws is not None else y
            if w is not None and self.draws is None:
                plain = empty.w_exponent == 0 and self.shift == 0
                kept = np.ldexp(w.astype(np.float64), self.shift - empty.w_exponent)
                wy = w * y if plain else np.rint(kept * y).astype(np.int64)
        return replace(empty, y=y, w=w, wy=wy, means=means)

    def counts(self, rows: GivenRows) -> np.ndarray:
        """How many of some rows of each class weigh anything, int64 (n_classes,); or all: (1,)."""
        target = self.target(rows)
        if target.n_classes == 0:
            return np.array([target.n_live])
        live = target.has_weight
        return np.bincount(target.y if live is None else target.y[live], minlength=target.n_classes)

    def elsewhere(self, ask: Ask, each: Callable[[], list[Any]]) -> SpreadTarget:
        """The target of all rows, which `ask` asks; `each` as for `SpreadTarget`."""
        sums = ask(self._sums)
        n_rows, n_live, n_units, digests, heaviest, of_means = zip(*sums, strict=True)
        classes = self.empty.classes
        y = np.zeros(1, dtype=self.empty.y.dtype) if classes is not None else np.zeros(1)
        row = GivenRows(y, classes, np.ones(1) if self.are_weighed else None)
        sample = self.target(row)
        own = {each.name: getattr(sample, each.name) for each in fields(Target)}
        if sample.means is not None:
            own["means"] = MeansElsewhere(max(heaviest), sum(of_means) % 2**64)
        return SpreadTarget(
            **own,
            n_given=sum(n_rows),
            n_counted=sum(n_live),
            n_units=sum(n_units),
            sum_of_digests=sum(digests) % 2**64,
            each=each,
        )

    def _sums(self, rows: GivenRows) -> tuple[int, int, int, int, float, int]:
        """What the target of some rows adds to that of all."""
        target, first = self.target(rows), rows.first_row
        heaviest, of_means = 0.0, 0
        if target.means is not None:
            heaviest = float(target.means.max())
            of_means = digest_of_arrays([target.means], first)
        sums = target.n_rows, target.n_live, target.total_units, target.digest(first)
        return (*sums, heaviest, of_means)

    def _in_units(self, rows: GivenRows) -> np.ndarray:
        """Numbers in fixed point, int64 (n_rows,)."""
        values = np.ldexp(rows.y - self.empty.offset, self.empty.y_exponent)
        return np.rint(values).astype(np.int64)

    @classmethod
    def of_classes(
        cls,
        ask: Ask,
        class_weight: str | Mapping[Any, float] | None = None,
        spare_bits: int = 0,
        drawn: bool = False,
    ) -> TargetUnits:
        """Those of `Target.classification`; `ask` asks all rows, wherever they are."""
        of_parts = ask(attrgetter("classes"))
        classes = of_parts[0] if len(of_parts) == 1 else class_codes(np.concatenate(of_parts))[0]
        if len(classes) > MOST_CLASSES:
            raise ValueError(
                f"y has {len(classes)} classes; a tree counts at most {MOST_CLASSES}. Is this a "
                "regression? Otherwise join rare classes."
            )
        are_weighed = weights_differ(ask)
        w_exponent = exponent_of_weights(ask, spare_bits) if are_weighed else 0

        def totals_of(exponent: int) -> list[int]:
            how = classes, exponent if are_weighed else None
            return sum(ask(_totals_of_classes, *how)).tolist()  # type: ignore[attr-defined]

        multiplier, class_exponent, per_class = None, 0, None
        if class_weight is not None:
            totals = totals_of(w_exponent)
            of_each = class_weights(class_weight, classes, totals)
            if not any(t > 0 and p > 0 for t, p in zip(totals, of_each, strict=True)):
                raise ValueError(
                    "sample_weight times class_weight is zero for every row: nothing is left to "
                    "learn from. Give a class that has rows a positive weight."
                )
            is_balanced = isinstance(class_weight, str)
            if w_exponent == 0:
                multiplier, class_exponent = class_integers(
                    class_weight, classes, totals, spare_bits
                )
            elif is_balanced and sum(ask(_n_weighed)) >= LEAST_BALANCED:
                # training sets whose rows count in the same unit share sums; what balances differs
                w_exponent = exponent_of_weights(ask, spare_bits + CLASS_BITS)
                multiplier, class_exponent = balanced_multipliers(totals_of(w_exponent), spare_bits)
            else:
                if is_balanced:  # up to roundings the classes weigh the same: the first one wins
                    of_each = of_each * (1.0 - np.arange(len(classes)) * ROUNDING)
                per_class = of_each
                weigh = methodcaller("weighing", per_class, classes)
                ask = partial(ask, _asked_after, weigh)
                check_total(ask, "sample_weight times class_weight")
                w_exponent = exponent_of_weights(ask, spare_bits)
        draws = None
        if drawn and (are_weighed or multiplier is not None):
            plain = None if are_weighed else methodcaller("without_weights")
            asked = ask if plain is None else partial(ask, _asked_after, plain)
            draws = MeanDraws.of(asked, w_exponent, multiplier, classes)
            w_exponent, multiplier, class_exponent = 0, None, 0
        empty = Target(
            kind="classification",
            y=np.zeros(0, dtype=np.min_scalar_type(len(classes) - 1)),
            n_classes=len(classes),
            classes=classes,
            w_exponent=w_exponent,
            class_multiplier=multiplier,
            class_exponent=class_exponent,
        )
        return cls(empty, are_weighed, per_class, draws)

    @classmethod
    def of_numbers(
        cls, ask: Ask, center: bool = True, spare_bits: int = 0, drawn: bool = False
    ) -> TargetUnits:
        """Those of `Target.regression`; `ask` asks all rows, wherever they are."""
        are_weighed = weights_differ(ask)
        draws = None
        if drawn and are_weighed:
            draws = MeanDraws.of(ask, exponent_of_weights(ask), None, None)
            ask = partial(ask, _asked_after, draws.drawn)
        weigh = are_weighed and not (draws is not None and draws.are_alike)
        n_rows, low, high = zip(*ask(_range_of_numbers), strict=True)
        lowest, highest = min(low), max(high)
        offset = 0.0
        if center:
            offset = lowest if lowest == highest else lowest / 2 + highest / 2
        largest = max(abs(lowest - offset), abs(highest - offset))
        total_weight = float(sum(n_rows))  # each row counts as one, at least
        heaviest = 1.0
        if weigh:
            heaviest = max(most for most, _ in ask(_largest_weight))
            if heaviest > 1.0:
                total_weight = sum(ask(_least_one))
        if not math.isfinite(largest * largest * total_weight):
            raise StatisticsOverflowError(
                f"y goes from {lowest:g} to {highest:g}: the squares of its distances from "
                f"{offset:g} overflow a float64. Divide y by a power of ten before the fit."
            )
        w_exponent, shift = 0, 0
        if weigh and draws is None:
            w_exponent = exponent_of_weights(ask, spare_bits)
            power = math.frexp(heaviest)[1] - 1
            if abs(power) > PLAIN_WEIGHT and (
                w_exponent != 0 or sum(ask(_total_weight, 0)) >= PLAIN_TOTAL
            ):
                shift = -power
        is_heavy = weigh and math.ldexp(heaviest, shift) > 1.0
        y_exponent = largest_exponent(largest, LARGEST)
        nothing = np.zeros(0, dtype=np.int64)
        while True:
            empty = Target("regression", nothing, offset=offset, y_exponent=y_exponent)
            units = cls(replace(empty, w_exponent=w_exponent), are_weighed, None, draws, shift)
            found = ask(units.total, len(n_rows) if is_heavy else 0)
            total = math.ceil(math.fsum(chain(*found))) if is_heavy else sum(found)
            excess = total.bit_length() - (TARGET_BITS - spare_bits)
            if excess <= 0:
                break
            y_exponent -= excess
        return replace(units, empty=replace(units.empty, wy_exponent=y_exponent + shift))

    def total(self, rows: GivenRows, n_parts: int) -> Any:
        """The sum of the distances of numbers in units; or terms of the weighted sum of `n_parts`.

        0: numbers have no weight above one. A weight counts as one, at least.
        """
        distances = np.abs(self._in_units(rows))
        if n_parts == 0:
            return exact_sum(distances)
        assert rows.weight is not None
        weighted = np.maximum(np.ldexp(rows.weight, self.shift), 1.0) * distances
        return [math.fsum(weighted)] if n_parts == 1 else exact_terms(weighted)


def _totals_of_classes(rows: GivenRows, classes: np.ndarray, exponent: int | None) -> np.ndarray:
    """Weight of each class in a unit; None: each row counts once."""
    w = None
    if exponent is not None:
        assert rows.weight is not None
        w = weights_in_units(rows.weight, exponent)
    return exact_bincount(rows.numbers_of(classes), w, len(classes))


def _n_weighed(rows: GivenRows) -> int:
    assert rows.weight is not None
    return int(np.count_nonzero(rows.weight))


def _range_of_numbers(rows: GivenRows) -> tuple[int, float, float]:
    """How many there are, the least and the largest."""
    return len(rows.y), float(rows.y.min()), float(rows.y.max())


def _least_one(rows: GivenRows) -> float:
    """The sum of weights, each of which counts as one, at least."""
    assert rows.weight is not None
    return math.fsum(np.maximum(rows.weight, 1.0))
