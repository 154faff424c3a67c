"""The losses by name: which derivatives, where a model begins, what its raw predictions mean.

    loss              raw prediction    begins with         steps of leaves
    log_loss          log odds          log odds            Newton
      three classes   one for each      log of the shares   Newton
    squared_error     number            mean                Newton: the mean of the residuals
    absolute_error    number            median              median of the residuals
    quantile          number            quantile            quantile of the residuals
    huber             number            median              median, and the mean of what is beyond
    poisson           log of the mean   log of the mean     Newton
    gamma             log of the mean   log of the mean     Newton
    tweedie           log of the mean   log of the mean     Newton

A Newton step is ``- sum of gradients / (sum of hessians + l2)``. One of a logarithm is at most
`LARGEST_STEP`, before the learning rate::

    a leaf of 20 rows       20 rows that say 0.001, of which one is of the class
    sum of gradients        20 x 0.001 - 1 = -0.98
    sum of hessians         20 x 0.001 x 0.999 = 0.02
    step                    49, so 8: from 0.001 to 0.74

The parabola that the step is the end of holds nearby only. Where shares are small, the quotient
grows without a limit, and a few iterations are sure of a rare class where it is not.

The losses of medians and quantiles have no second derivative. So their trees are grown by gradients
alone and get their steps afterwards, as in scikit-learn. So do those of Huber's loss: the square of
residuals up to a width, and beyond it a line. The width is a quantile of the absolute residuals
before each iteration. Where iterations are compared (early stopping), it is the one before the
first, for all of them.

Sources: Friedman, Hastie, Tibshirani 2000 (Additive Logistic Regression, section 5), who bound the
response of a row by 2 to 4 of half a log odds; Friedman 2001, Algorithm 4 for Huber's loss;
scikit-learn's ``HistGradientBoosting*`` and ``GradientBoostingRegressor``, whose losses these are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dtrees.core.data._logarithm import log
from dtrees.core.losses._derivatives import (
    KINDS,
    exponential,
    mean_in_any_order,
    shares_of_two,
    softmax,
    sums_of_members,
)
from dtrees.typing import Members

MEDIAN = 0.5
ONE, SIGN = np.uint64(1), np.uint64(63)
BYTES = np.arange(0, 64, 8, dtype=np.uint64)  # bits below each byte
LEAST_SHARE = 2.0**-53  # of a class that has next to no weight
LARGEST_STEP = 8.0  # in log odds or logarithms; 4 to 16 predict alike (docs/algorithms/boosting.md)


@dataclass(frozen=True)
class Loss:
    """A loss of numbers or of classes."""

    name: str  # as users know it
    # the quantile that leaves take of their residuals; None: a Newton step
    level: float | None = None
    # largest_gradient, largest_hessian: of a row of weight one; None: not known, so the rows are
    # asked before each tree
    largest_gradient: float | None = None
    largest_hessian: float | None = None
    is_log: bool = False  # whether a raw prediction is the logarithm of a number
    # "", "y >= 0" or "y > 0": what targets have to be; of "y >= 0", not all may be zero
    positive: str = ""
    # of Huber's loss: the quantile of absolute residuals that is its width
    beyond: float | None = None
    # of Huber's loss, where iterations are compared
    width: float = field(default=math.inf, compare=False)
    # of a leaf, before the learning rate; the name says it
    largest_step: float = field(default=math.inf, compare=False)
    power: float | None = None  # of Tweedie's loss: the variance is the mean to this power

    @property
    def kind(self) -> int:
        """Number of its derivatives."""
        number: int = KINDS[self.name]
        return number

    def with_width(
        self,
        y: np.ndarray,
        raw: float | np.ndarray,
        weight: np.ndarray | None,
        members: Members | None = None,
    ) -> Loss:
        """A copy of Huber's loss with the width of residuals; weight : int64 (n_rows,) or None."""
        above = np.abs(y - raw)

        def quantile(only_beyond: bool) -> float:
            own = above > 0 if only_beyond else slice(None)
            weights = None if weight is None else weight[own]
            assert self.beyond is not None
            return float(quantiles([above[own]], [weights], self.beyond, members)[0])

        return self.with_quantile(quantile)

    def with_quantile(self, quantile: Callable[[bool], float]) -> Loss:
        """The same by the quantile of absolute residuals; True: of those that are not zero."""
        # those at the prediction do not say, or no row would have a slope
        return replace(self, width=quantile(False) or quantile(True))

    def steps(
        self,
        residuals: Sequence[np.ndarray],
        weights: Sequence[np.ndarray | None],
        members: Members | None = None,
    ) -> np.ndarray:
        """The step of each of some leaves, of a loss with a `level`; arguments as `quantiles`."""
        assert self.level is not None
        found = quantiles(residuals, weights, self.level, members)
        if self.beyond is None:
            return found
        rests = [
            np.clip(own - middle, -self.width, self.width)
            for own, middle in zip(residuals, found, strict=True)
        ]
        return found + means(rests, weights, members)

    def check(self, y: np.ndarray) -> None:
        """Refuse (ValueError) targets that the loss has no use for."""
        if self.positive == "y > 0" and y.min() <= 0:
            raise ValueError(
                f"Some value(s) of y are out of the valid range of the loss {self.name!r}: y must "
                f"be positive. The least is {y.min():g}."
            )
        if self.positive == "y >= 0" and y.min() < 0:
            raise ValueError(
                f"Some value(s) of y are out of the valid range of the loss {self.name!r}: y must "
                "not be negative."
            )

    def initial(self, y: np.ndarray, weight: np.ndarray | None, mean: float) -> float:
        """The raw prediction of numbers that a model begins with; `mean` is that of y, weighted.

        y : float64 (n_rows,); weight : int64 (n_rows,) or None. Raises ValueError where all of y is
        zero, which has no logarithm.
        """
        if self.level is not None:
            return float(quantiles([y], [weight], self.level)[0])
        if self.is_log and mean == 0:
            raise ValueError(
                f"Some value(s) of y are out of the valid range of the loss {self.name!r}: not all "
                "of it may be zero."
            )
        return float(log(mean)) if self.is_log else mean

    def mean(
        self,
        y: np.ndarray,
        raw: np.ndarray,
        weight: np.ndarray | None,
        members: Members | None = None,
    ) -> float:
        """The mean loss of rows; with a logarithm, without what does not depend on `raw`.

        y : float64 (n_rows,), numbers or codes of classes; raw : float64 (n_rows, n_values);
        weight : float64 (n_rows,) or None. `members` have other rows. The same in any order.
        """
        return float(mean_in_any_order(self._of_rows(y, raw), weight, members))

    def means(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The mean losses of several raw predictions of the same rows: float64 (n,).

        raw : float64 (n, n_values, n_rows); the others as for `mean`
        """
        if raw.shape[1] > 1:
            return np.array([self.mean(y, np.ascontiguousarray(one.T), weight) for one in raw])
        found: np.ndarray = mean_in_any_order(self._of_one(y, raw[:, 0]), weight)
        return found

    def _of_rows(self, y: np.ndarray, raw: np.ndarray) -> np.ndarray:
        """The loss of each row, float64 (n_rows,)."""
        if raw.shape[1] > 1:
            most = raw.max(axis=1)
            shares = exponential(raw - most[:, None])
            own = raw[np.arange(len(y)), y.astype(np.intp)]
            found: np.ndarray = most + log(shares.sum(axis=1)) - own
            return found
        return self._of_one(y, np.ascontiguousarray(raw[:, 0]))

    def _of_one(self, y: np.ndarray, one: np.ndarray) -> np.ndarray:
        """The losses of one raw prediction for each row, or of several of them, one a line.

        one : float64 (n_rows,) or (n, n_rows), contiguous
        """
        if self.name == "log_loss":
            return np.maximum(one, 0) + log(1.0 + exponential(-np.abs(one))) - y * one
        if self.name == "poisson":
            return exponential(one) - y * one
        if self.name == "gamma":
            return one + y * exponential(-one)
        if self.power is not None:
            up, down = 2.0 - self.power, 1.0 - self.power
            return less_one(up * one) / up - y * (less_one(down * one) / down)
        above = y - one
        if self.level is None:
            return 0.5 * above * above
        if self.name == "absolute_error":
            return np.abs(above)
        if self.name == "huber":
            bounded = np.minimum(np.abs(above), self.width)
            return bounded * (np.abs(above) - 0.5 * bounded)
        return np.maximum(self.level * above, (self.level - 1.0) * above)

    def predictions(self, raw: np.ndarray) -> np.ndarray:
        """Numbers of raw predictions, both float64 (n_rows,)."""
        return exponential(raw) if self.is_log else raw

    def shares(self, raw: np.ndarray) -> np.ndarray:
        """Shares of classes; see `shares_of_classes`."""
        return shares_of_classes(raw)


def less_one(x: np.ndarray) -> np.ndarray:
    """exp(x) - 1 to a few units in the last place, the same bits everywhere.

    Source: Higham 2002 (Accuracy and Stability of Numerical Algorithms, section 1.14.1).
    """
    x = np.maximum(x, -40.0)  # from which on it is -1
    power = exponential(x)
    less = power - 1.0
    return x * np.divide(less, log(power), out=np.ones_like(x), where=less != 0)


def initial_of_classes(shares: np.ndarray) -> np.ndarray:
    """Raw predictions that a model of classes begins with: float64, one, or one for each class.

    shares : float64 (n_classes,)
        Of the weight.
    """
    bounded = np.clip(shares, LEAST_SHARE, 1.0 - LEAST_SHARE)
    if len(shares) <= 2:
        share = bounded[1] if len(shares) == 2 else LEAST_SHARE
        return np.array([log(share) - log(1.0 - share)])
    logarithms = np.array([log(share) for share in bounded])
    return logarithms - math.fsum(logarithms) / len(shares)


def shares_of_classes(raw: np.ndarray) -> np.ndarray:
    """Shares of classes from raw predictions, float64 (n_rows, n_classes).

    raw : float64 (n_rows, 1) of two classes, (n_rows, n_classes) of more
    """
    if raw.shape[1] == 1:
        of_two: np.ndarray = shares_of_two(raw)
        return of_two
    return np.ascontiguousarray(softmax(np.ascontiguousarray(raw.T)).T)


def quantiles(
    values: Sequence[np.ndarray],
    weights: Sequence[np.ndarray | None],
    level: float,
    members: Members | None = None,
) -> np.ndarray:
    """Of each of some groups: the least value with a share `level` of the weight at or below it.

    Where it has just that share, the middle between it and the next value; so level 1/2 is the
    median. A row of weight two is a row given twice. O(n log n); O(n) without weights, or with
    `members`, who have other values of the groups. 0 for a group without values.

    values : list of float64 (n_rows,); weights : list of int64 (n_rows,) or None
    """
    if members is not None:
        return _quantiles_of_all(values, weights, level, members)
    pairs = zip(values, weights, strict=True)
    return np.array([_quantile(own, weight, level) if len(own) else 0.0 for own, weight in pairs])


def means(
    values: Sequence[np.ndarray],
    weights: Sequence[np.ndarray | None],
    members: Members | None = None,
) -> np.ndarray:
    """The mean of each of some groups, the same in any order; arguments as for `quantiles`."""
    units = [
        np.ones(len(own)) if weight is None else weight.astype(np.float64)
        for own, weight in zip(values, weights, strict=True)
    ]
    if members is None:
        return np.array([mean_in_any_order(*each) for each in zip(values, units, strict=True)])
    weighted = [own * unit for own, unit in zip(values, units, strict=True)]
    above, below = np.split(sums_of_members(weighted + units, members), 2)
    return above / np.where(below == 0, 1.0, below)  # nodes that were split in vain have no row


def _quantiles_of_all(
    values: Sequence[np.ndarray],
    weights: Sequence[np.ndarray | None],
    level: float,
    members: Members,
) -> np.ndarray:
    """Quantiles of values that members have some of each."""
    keys = [ordered(own) for own in values]

    def count(found: np.ndarray, byte: int) -> np.ndarray:
        counts = counts_of_bytes(keys, weights, found, byte)
        members.sum(counts.reshape(-1))
        return counts

    def above(found: np.ndarray) -> np.ndarray:
        least = least_above(values, keys, found)
        members.largest(least)
        return least

    return quantiles_by_bytes(len(values), level, count, above)


def quantiles_by_bytes(
    n_groups: int,
    level: float,
    count: Callable[[np.ndarray, int], np.ndarray],
    above: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Quantiles of values in several places: found byte by byte, all groups together.

    A float64 is an integer of eight bytes in the same order. Of values that begin like the
    quantile, weights are added up by the next byte: a histogram of 256 numbers. `count` is the sum
    of all `counts_of_bytes`, and `above` the largest of all `least_above`.
    """
    groups = np.arange(n_groups)
    found = np.zeros(n_groups, dtype=np.uint64)
    before = np.zeros(n_groups, dtype=np.int64)  # weight of values that begin with less
    wanted = np.zeros(n_groups)
    for byte in range(7, -1, -1):
        counts = count(found, byte)
        if byte == 7:
            wanted = level * counts.sum(axis=1)
        up_to = before[:, np.newaxis] + np.cumsum(counts, axis=1)
        which = np.argmax((up_to >= wanted[:, np.newaxis]) & (counts > 0), axis=1)
        found |= which.astype(np.uint64) << BYTES[byte]
        before = up_to[groups, which] - counts[groups, which]
    middle = np.where(found >> SIGN, found ^ (ONE << SIGN), ~found).view(np.float64)
    beyond = above(found)
    is_between = (up_to[groups, which] == wanted) & np.isfinite(beyond)
    middle = np.where(is_between, middle / 2 - beyond / 2, middle)
    return np.where(before + counts[groups, which] > 0, middle, 0.0)


def counts_of_bytes(
    keys: Sequence[np.ndarray],
    weights: Sequence[np.ndarray | None],
    found: np.ndarray,
    byte: int,
) -> np.ndarray:
    """Weight of the keys of groups that begin as is `found`, by the next byte; (n_groups, 256).

    keys : list of uint64 (n_rows,), as `ordered`; found : uint64 (n_groups,)
    """
    counts = np.zeros((len(keys), 256), dtype=np.int64)
    for own, weight, beginning, to in zip(keys, weights, found, counts, strict=True):
        begins = own >> BYTES[byte] >> BYTES[1] == beginning >> BYTES[byte] >> BYTES[1]
        next_byte = (own[begins] >> BYTES[byte] & np.uint64(255)).astype(np.intp)
        np.add.at(to, next_byte, 1 if weight is None else weight[begins])
    return counts


def least_above(
    values: Sequence[np.ndarray], keys: Sequence[np.ndarray], found: np.ndarray
) -> np.ndarray:
    """Minus the least value of each group beyond what is `found`; float64 (n_groups,)."""
    of_groups = zip(values, keys, found, strict=True)
    return np.array([-own[key > one].min(initial=math.inf) for own, key, one in of_groups])


def ordered(values: np.ndarray) -> np.ndarray:
    """Integers in the order of float64 numbers, uint64."""
    bits = (values + 0.0).view(np.uint64)  # there is no negative zero
    return np.where(bits >> SIGN, ~bits, bits | (ONE << SIGN))


def _quantile(values: np.ndarray, weight: np.ndarray | None, level: float) -> float:
    """The quantile of one group."""
    if weight is None:
        return _plain_quantile(values, level)
    order = np.argsort(values)
    ascending = values[order]
    up_to = np.cumsum(weight[order])  # integers, so the order of rows does not matter
    wanted = level * up_to[-1]
    at = min(int(np.searchsorted(up_to, wanted)), len(values) - 1)
    if up_to[at] == wanted and at + 1 < len(values):
        return float(ascending[at] / 2 + ascending[at + 1] / 2)
    return float(ascending[at])


def _plain_quantile(values: np.ndarray, level: float) -> float:
    """The quantile of values without weights."""
    n = len(values)
    wanted = level * n
    at = min(max(math.ceil(wanted) - 1, 0), n - 1)
    if at + 1 == wanted and at + 1 < n:
        below, above = np.partition(values, (at, at + 1))[at : at + 2]
        return float(below / 2 + above / 2)
    return float(np.partition(values, at)[at])


CLASSES = {"log_loss": Loss("log_loss", None, 1.0, 0.25, largest_step=LARGEST_STEP)}
NUMBERS = {
    "squared_error": Loss("squared_error", None, None, 1.0),
    "absolute_error": Loss("absolute_error", MEDIAN, 1.0, 1.0),
    "quantile": Loss("quantile", MEDIAN, 1.0, 1.0),
    "huber": Loss("huber", MEDIAN, None, 1.0, beyond=0.9),
    "poisson": Loss("poisson", largest_step=LARGEST_STEP, is_log=True, positive="y >= 0"),
    "gamma": Loss("gamma", largest_step=LARGEST_STEP, is_log=True, positive="y > 0"),
    "tweedie": Loss(
        "tweedie", largest_step=LARGEST_STEP, is_log=True, positive="y >= 0", power=1.5
    ),
}


@dataclass(frozen=True)
class OwnLoss:
    """A loss that has methods instead of a name; these are not asked of no rows."""

    own: Any = field(compare=False)  # equal ones are of one class
    # largest_gradient, largest_hessian: of all rows, before an iteration
    largest_gradient: float = field(default=0.0, compare=False)
    largest_hessian: float = field(default=0.0, compare=False)
    kind_of_own: type = field(init=False)
    level: ClassVar[None] = None
    beyond: ClassVar[None] = None
    power: ClassVar[None] = None
    largest_step: ClassVar[float] = math.inf
    kind: ClassVar[int] = KINDS["given"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind_of_own", type(self.own))

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self.own).__name__

    def check(self, y: np.ndarray) -> None:
        """Let the loss refuse targets."""
        if len(y) > 0:
            self.own.check_target(_read_only(y))

    def initial(self, y: np.ndarray, weight: np.ndarray | None, n_values: int) -> np.ndarray:
        """Raw predictions that a model begins with, float64 (n_values,)."""
        found = np.asarray(self.own.initial(_read_only(y), weight), dtype=np.float64)
        if found.shape not in ((), (n_values,)) or not np.isfinite(found).all():
            raise ValueError(
                f"{self.name}.initial must return a finite number"
                + (f", or {n_values} of them" if n_values > 1 else "")
                + f". Got {found!r}."
            )
        return np.broadcast_to(found, (n_values,)).copy()

    def derivatives(self, y: np.ndarray, raw: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and hessians, both float64 (n_values, n_rows), as `raw`."""
        if len(y) == 0:
            return np.empty(raw.shape), np.empty(raw.shape)
        asked = _as_asked(raw.T)
        found = self.own.gradient_and_hessian(_read_only(y), asked)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ValueError(
                f"{self.name}.gradient_and_hessian must return two arrays, gradients and hessians. "
                f"Got {type(found).__name__}."
            )
        gradient, hessian = (
            self._checked(part, asked.shape, what)
            for part, what in zip(found, ("gradients", "hessians"), strict=True)
        )
        if hessian.min() < 0:
            raise ValueError(
                f"{self.name}.gradient_and_hessian must return hessians that are not negative. "
                f"The least is {hessian.min():g}."
            )
        rows_first = (len(y), len(raw))
        return (
            np.ascontiguousarray(gradient.reshape(rows_first).T),
            np.ascontiguousarray(hessian.reshape(rows_first).T),
        )

    def _checked(self, part: Any, shape: tuple[int, ...], what: str) -> np.ndarray:
        found = np.asarray(part)
        if found.shape != shape or found.dtype.kind not in "fiu":
            raise ValueError(
                f"{self.name} must return {what} as numbers of shape {shape}. "
                f"Got {found.dtype} of shape {found.shape}."
            )
        if not np.isfinite(found).all():
            raise ValueError(
                f"{self.name} must return finite {what}. "
                f"{int((~np.isfinite(found)).sum())} of them are NaN or infinite."
            )
        return found.astype(np.float64)

    def measured(
        self,
        gradient: np.ndarray,
        hessian: np.ndarray,
        weight: float,
        largest_of: Callable[[float, float], tuple[float, ...]] = lambda *own: own,
    ) -> OwnLoss:
        """A copy with the largest derivatives; ValueError where weights overflow them.

        `largest_of` says what those of all rows are, where these are some.
        """
        own = float(np.abs(gradient).max(initial=0)), float(hessian.max(initial=0))
        largest = largest_of(*own)
        if not math.isfinite(max(largest) * weight):
            raise ValueError(f"Derivatives of {self.name} times the weights are infinite.")
        return replace(self, largest_gradient=largest[0], largest_hessian=largest[1])

    def mean(
        self,
        y: np.ndarray,
        raw: np.ndarray,
        weight: np.ndarray | None,
        members: Members | None = None,
    ) -> float:
        """The mean loss of rows; see `Loss.mean`."""
        losses = self.own.of_rows(_read_only(y), _as_asked(raw)) if len(y) > 0 else np.empty(0)
        values = self._checked(losses, y.shape, "losses")
        return float(mean_in_any_order(values, weight, members))

    def means(self, y: np.ndarray, raw: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The mean losses of several raw predictions of the same rows, as of `Loss.means`."""
        return np.array([self.mean(y, one.T, weight) for one in raw])

    def predictions(self, raw: np.ndarray) -> np.ndarray:
        """Numbers of raw predictions, both float64 (n_rows,)."""
        found = self.own.inverse_link(_read_only(raw)) if len(raw) > 0 else None
        return self._checked(raw if found is None else found, raw.shape, "predictions")

    def shares(self, raw: np.ndarray) -> np.ndarray:
        """Shares of classes; see `shares_of_classes`."""
        asked = _as_asked(raw)
        found = self.own.inverse_link(asked) if len(raw) > 0 else None
        if found is None:
            return shares_of_classes(raw)
        shares = self._checked(found, asked.shape, "shares")
        return np.column_stack([1.0 - shares, shares]) if shares.ndim == 1 else shares


def _read_only(values: np.ndarray) -> np.ndarray:
    view = values.view()
    view.flags.writeable = False
    return view


def _as_asked(raw: np.ndarray) -> np.ndarray:
    """Raw predictions (n_rows, n_values) as users get them: one value is no column."""
    return _read_only(np.ascontiguousarray(raw[:, 0] if raw.shape[1] == 1 else raw))
