"""Weights as integers: of rows and of classes.

The rules are those of `dtrees.coding.target`: a power of two times the weight, rounded to nearest,
with an exponent that no sum over rows can overflow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dtrees.exceptions import StatisticsOverflowError

LARGEST = 2**52
TOTAL_BITS = 61  # of the sum of the weights, class weights included
CLASS_EXPONENT = 40
SCALE_BITS = 37  # by which a common multiple is below what balanced classes weigh
CLASS_BITS = 20  # of a total that fractions of rows leave to class weights
LEAST_BALANCED = 1_024  # rows whose fractions leave them to "balanced", which sets share then
LARGEST_SUM = 2.0**62  # of weights or weighted targets of a bag
MOST_EXACT = 2**53  # sums of float64 are exact up to here
MOST_DRAWN = 3_000.0  # of a row, on average: 20 times as many are in 16 bits


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights as float64 (n_rows,); None when there are none or all are one."""
    if sample_weight is None:
        return None
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
    """Weights as integers, and the exponent of their unit.

    Parameters
    ----------
    weights : float64 (n_rows,)
        Not negative, finite, not all zero.
    spare_bits : int, default=0
        Fewer bits for the total, where rows may count more than once.

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
        if exact_sum(w) < LARGEST:
            return w, 0
    exponent = largest_exponent(largest, LARGEST)
    while True:
        # exponent 0 says "exact", so fractions do without it
        exponent = exponent if exponent != 0 else -1
        w = np.rint(np.ldexp(weights, exponent)).astype(np.int64)
        w = np.maximum(w, (weights > 0).astype(np.int64))
        excess = exact_sum(w).bit_length() - (TOTAL_BITS - spare_bits)
        if excess <= 0:
            return w, exponent
        exponent -= excess


def cut_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """What each row counts for where columns are cut at quantiles: its weight, in fixed point.

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
    excess = exact_sum(w).bit_length() - TOTAL_BITS
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


def class_totals(codes: np.ndarray, w: np.ndarray | None, n_classes: int) -> list[int]:
    """Summed integer weight of every class, exact; rows are counted when ``w`` is None."""
    return exact_bincount(codes, w, n_classes).tolist()


def exact_bincount(numbers: np.ndarray, w: np.ndarray | None, n: int) -> np.ndarray:
    """Summed integer weight of every number below n, exact; int64 (n,)."""
    if w is None:
        return np.bincount(numbers, minlength=n)
    if w.min(initial=0) >= 0 and w.sum(dtype=np.float64) < MOST_EXACT:  # much faster
        return np.bincount(numbers, weights=w, minlength=n).astype(np.int64)
    totals = np.zeros(n, dtype=np.int64)
    np.add.at(totals, numbers, w.astype(np.int64, copy=False))
    return totals


def class_multipliers(
    weights: np.ndarray, totals: list[int], spare_bits: int = 0
) -> tuple[np.ndarray, int]:
    """Class weights as integers: ``class_weight = multiplier / 2**exponent``.

    ``totals`` holds the summed integer weight of every class; ``sum(totals * multiplier)`` stays
    within 2**61, and the exponent within 40.
    """
    exponent = min(CLASS_EXPONENT, largest_exponent(float(weights.max()), LARGEST))
    while True:
        multiplier = np.rint(np.ldexp(weights, exponent)).astype(np.int64)
        multiplier = np.maximum(multiplier, (weights > 0).astype(np.int64))
        total = sum(t * m for t, m in zip(totals, multiplier.tolist(), strict=True))
        excess = total.bit_length() - (TOTAL_BITS - spare_bits)
        if excess <= 0:
            return multiplier, exponent
        exponent -= excess


def class_integers(
    class_weight: str | Mapping[Any, float],
    classes: np.ndarray,
    totals: list[int],
    spare_bits: int = 0,
) -> tuple[np.ndarray | None, int]:
    """Class weights as integers, with their exponent; None where all are one."""
    weights = class_weights(class_weight, classes, totals)
    if np.all(weights == 1.0):
        return None, 0
    if isinstance(class_weight, str):
        return balanced_multipliers(totals, spare_bits)
    return class_multipliers(weights, totals, spare_bits)


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
        TOTAL_BITS - spare_bits - weight.bit_length(),
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
    totals = class_totals(codes, w, n_classes)
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
    """How often each row is drawn into a bag of as many rows as weigh anything, on average.

    Parameters
    ----------
    weights : int64 (n_rows,)
        Not negative, not all zero, with a total of at most 2**61.

    Returns
    -------
    counts : uint16 (n_rows,) or None
        1 for rows that weigh anything; None: all do.
    means : float64 (n_rows,) or None
        None: all of these weigh the same. In proportion to the weights, at most `MOST_DRAWN`: then
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
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise ValueError(
            f"Input {name} contains NaN: some values are masked. Drop these rows first."
        )
    array = np.asarray(y)
    if array.ndim != 1:
        raise ValueError(
            f"{name} should be a 1d array, got an array of shape {array.shape} instead. "
            f"Give one value per row{f', for example {name}.ravel()' if array.ndim else ''}."
        )
    if len(array) == 0:
        raise ValueError(f"{name} is empty: Found array with 0 sample(s). Give at least one row.")
    return array


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
