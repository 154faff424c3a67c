"""Prediction intervals from models that have not seen the rows that they are judged by.

A row i *calibrates*: its error R_i is known, of a prediction by models that were grown without it.
The same models predict the new row x, and the two ends are order statistics over all such rows::

    values of the models for x        v_1 ... v_T
    row i, not seen by models 2, 5:   m_i(x) = (v_2 + v_5) / 2          one product of matrices
    lower end                         rank n + 1 - h of all m_i(x) - R_i
    upper end                         rank h of all m_i(x) + R_i,   h = ceil(confidence (n + 1))

Where models say how sure they are, errors count in units of that, and have signs. A forest is as
sure as its trees agree, a tree as the targets in a leaf do (Gupta, Kuchibhotla, Ramdas 2022: any
score has the guarantee)::

    row i                             E_i = (y_i - m_i) / s_i, s_i the spread of the same trees
    upper end                         rank h of all m_i(x) + E_i s_i(x)
    lower end                         rank n + 1 - h of them, h = ceil((1 + confidence) / 2 (n + 1))

The spread is the standard deviation of the trees' values, and a tenth of that of their leaves. So
trees that agree by chance do not make an error count for ever. Of a single tree it is the standard
deviation of the targets in the leaf, which are few, and .3 of that of the leaves.

This is the jackknife+ where each row has a model of its own, CV+ where it has that of its fold
(Barber, Candès, Ramdas, Tibshirani 2021), and the jackknife+ after bootstrap where it has the trees
out of whose bags it is (Kim, Xu, Barber 2020). Each end has its own order statistic, so the
interval need not lie evenly about a prediction.

Means over models are taken in fixed point, in a unit that depends on the values of the row only.
Their sums are exact in float64, in any order and on any number of threads, so the bits do not
depend on how rows are cut into blocks. Memory above the answer: a few blocks of `CELLS` numbers.

NumPy hands a product to BLAS, which takes all cores whatever ``n_jobs`` says. Products here are of
blocks of rows, and blocks are tasks of a `Runner`. So each product gets one thread::

    n_jobs=2     thread 1   block 0: product   block 2: product
                 thread 2   block 1: product   block 3: product

The limit is one of the process, and is set by the thread that hands out the blocks. Only one
thread at a time is within, so that each finds the limit that was there before, and leaves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from math import ceil
from threading import RLock
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from dtrees._forks import cached_property, lock_of_process
from dtrees.core.model.tree import LEAF, Tree
from dtrees.typing import Runner, serial

CELLS = 2**20  # rows that are asked about times rows that calibrate, of a block
BITS = 51  # of a sum in fixed point
FLOOR, FLOOR_OF_TREE = 0.1, 0.3  # of the spread of a forest and of a tree, of that of the leaves

_turn = lock_of_process(RLock)


@cache
def _controller() -> ThreadpoolController:
    """The BLAS of this process; libraries are searched once, which takes 0.3 ms."""
    return ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within it, a product is computed on the thread that asks for it; costs 0.1 ms."""
    with _turn, _controller().limit(limits=1, user_api="blas"):
        yield


def ranks(confidence: float, n: int, apart: bool = False) -> tuple[int, int]:
    """Which of n values, from 1, are the lower and the upper end; 0 and n + 1: there is none.

    The share is the decimal that the user has written: 0.9 of 10 is 9. `apart`: half of the rows
    that are not in their intervals are to be on either side.
    """
    high = ceil(_share(confidence, apart) * (n + 1))
    return n + 1 - high, high


def least_rows(confidence: float, apart: bool = False) -> int:
    """The least n of which `ranks` finds both ends."""
    share = _share(confidence, apart)
    return ceil(share / (1 - share))


def _share(confidence: float, apart: bool) -> Fraction:
    """Of the values, up to the upper end."""
    share = Fraction(str(confidence))
    return (1 + share) / 2 if apart else share


def floor_of(tree: Tree, share: float = FLOOR, output: int = 0) -> float:
    """What a tree adds to the spread of a forest: a share of the deviation of its leaves."""
    leaves = tree.test == LEAF
    value, weight = tree.value[:, output], tree.weighted_n_node_samples[leaves]
    away = np.abs(value[leaves] - value[0])
    largest = float(away.max())
    if not 0 < largest < np.inf:
        return 0.0
    return share * largest * float(np.sqrt(np.sum(weight * (away / largest) ** 2) / weight.sum()))


def spread_in_nodes(tree: Tree) -> np.ndarray:
    """Spread of the targets in every node of a tree of numbers, float64 (n_nodes,).

    Of several targets (n_nodes, n_outputs). A tree knows the mean of their variances, of which each
    has a part in proportion to the variance of its leaves.
    """
    variance = tree.impurity
    if tree.criterion == "absolute_error":
        variance = variance**2
    if tree.criterion == "poisson":  # half of the deviance: about the variance by twice the mean
        variance = 2.0 * variance * tree.value.mean(axis=1)
    floors = np.array([floor_of(tree, FLOOR_OF_TREE, k) for k in range(tree.n_outputs)])
    parts = floors / (floors.max() or 1.0)
    parts = parts / np.sqrt(np.mean(parts**2)) if parts.any() else parts + 1.0
    found = np.outer(np.sqrt(np.maximum(variance, 0.0)), parts) + floors
    found[found == 0.0] = 1.0
    return found if tree.n_outputs > 1 else found[:, 0]


def spread_of(mean: Any, square: Any, exponent: Any, floor: Any) -> np.ndarray:
    """Spread of models by the means of their values and of the squares of these; float64.

    Values are in a unit of 2**exponent, and `floor` is the least spread. One where it would be 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found: np.ndarray = np.ldexp(np.sqrt(np.maximum(square - mean * mean, 0.0)), exponent)
        found += floor
    found[found == 0.0] = 1.0
    return found


@dataclass(frozen=True, eq=False)
class Calibration:
    """The rows that calibrate, and which models have not seen them."""

    # float64 (n,): not negative; signed and in units of the spread where `is_scaled` or with
    # `floor`. inf: the row has no prediction, and makes the interval wider.
    errors: np.ndarray
    # bool (n_patterns, n_models): which models have not seen a row. None: there is one pattern for
    # each model, which is the only one that has not.
    unseen: np.ndarray | None
    # int (n,): the line of `unseen` of each row; None: its own number
    pattern: np.ndarray | None = None
    # float64 (n_patterns,): the least spread of the models that have not seen a row, which is that
    # of their values
    floor: np.ndarray | None = None
    # each model tells a spread of its own; that of several models is their mean
    is_scaled: bool = False

    @cached_property
    def _counts(self) -> np.ndarray:
        """Number of models that have not seen a row; int64 (n_patterns,)."""
        assert self.unseen is not None
        return np.count_nonzero(self.unseen, axis=1)

    @cached_property
    def _only(self) -> np.ndarray:
        """Patterns of one model, and which one that is; int64 (2, n)."""
        assert self.unseen is not None
        single = np.flatnonzero(self._counts == 1)
        return np.stack([single, self.unseen[single].argmax(axis=1)])

    def means(self, values: np.ndarray) -> np.ndarray:
        """Mean of the models that have not seen a row, for other rows; 0 where there is no model.

        `values`, float64 (n_rows, n_models), are what the models say of the other rows. Returns
        float64 (n_rows, n_patterns).
        """
        if self.unseen is None:
            return values
        n_patterns, n_models = self.unseen.shape
        single, model = self._only
        if len(single) == n_patterns:
            return values.take(model, axis=1)
        base, exponent, bits, fixed = _fixed_point(values)
        found = np.empty((len(values), n_patterns))
        step = max(1, CELLS // n_models)
        for first in range(0, n_patterns, step):
            part = self.unseen[first : first + step].astype(np.float64)
            found[:, first : first + step] = fixed @ part.T
        found /= np.maximum(self._counts, 1)
        np.ldexp(found, exponent - bits, out=found)
        found += base
        found *= 4.0
        found[:, self._counts == 0] = 0.0
        found[:, single] = values.take(model, axis=1)
        return found

    def spreads(self, values: np.ndarray) -> np.ndarray:
        """Spread of the models that have not seen a row, for other rows; as `means`.

        Sums of squares are exact, too, in fixed point of half as many bits.
        """
        assert self.unseen is not None
        assert self.floor is not None
        n_models = self.unseen.shape[1]
        _, exponent, bits, fixed = _fixed_point(values)
        lost = bits - (BITS - n_models.bit_length()) // 2
        fixed = np.rint(np.ldexp(fixed, -lost))
        counts = np.maximum(self._counts, 1)
        found = np.empty((len(values), len(self.unseen)))
        step = max(1, CELLS // n_models)
        for first in range(0, len(self.unseen), step):
            part = self.unseen[first : first + step].astype(np.float64).T
            mean = fixed @ part / counts[first : first + step]
            square = (fixed * fixed) @ part / counts[first : first + step]
            found[:, first : first + step] = spread_of(
                mean, square, exponent - bits + lost + 2, self.floor[first : first + step]
            )
        return found

    def ends(
        self,
        values: np.ndarray,
        confidence: float,
        run: Runner = serial,
        spreads: np.ndarray | None = None,
    ) -> np.ndarray:
        """Lower and upper ends for rows, float64 (n_rows, 2); `values` are as for `means`.

        `spreads` are what each model tells of its own, as `values`, where `is_scaled`. A block of
        rows is a task of `run`. Products of matrices run on all threads of BLAS, unless these are
        limited (`one_blas_thread`). Ends are infinite where there are too few rows that calibrate.
        """
        n = len(self.errors)
        low, high = ranks(confidence, n, self.is_scaled or self.floor is not None)
        found = np.empty((len(values), 2))
        if high > n:
            found[:] = -np.inf, np.inf
            return found
        n_patterns = 0 if self.unseen is None else len(self.unseen)
        step = max(1, CELLS // max(n, n_patterns))

        def block(first: int) -> None:
            rows = slice(first, first + step)
            means = self._by_row(self.means(values[rows]))
            missing = np.isinf(self.errors)
            away = [-self.errors, self.errors]
            if self.is_scaled or self.floor is not None:
                own = self.spreads(values[rows]) if spreads is None else self.means(spreads[rows])
                away = [self._by_row(own) * np.where(missing, 0.0, self.errors)] * 2
            for side, rank in ((0, low), (1, high)):
                ends = means + away[side]
                ends[:, missing] = np.inf if side else -np.inf
                ends.partition(rank - 1, axis=1)
                found[rows, side] = ends[:, rank - 1]

        run([partial(block, first) for first in range(0, len(values), step)])
        return found

    def _by_row(self, of_patterns: np.ndarray) -> np.ndarray:
        """What is known of patterns, for the rows that calibrate; (n_rows, n)."""
        return of_patterns if self.pattern is None else of_patterns.take(self.pattern, axis=1)


def _fixed_point(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, int, np.ndarray]:
    """Rows of numbers as whole numbers whose sums are exact: (base, exponent, bits, numbers).

    ``4 * (base + ldexp(numbers, exponent - bits))`` are the values, up to the last bits of the
    largest distance from the first. A quarter of them is taken, as distances of values near the
    largest float64 would overflow.
    """
    quarter = values * 0.25
    base = quarter[:, :1]
    away = quarter - base
    _, exponent = np.frexp(np.abs(away).max(axis=1, initial=0.0, keepdims=True))
    bits = BITS - values.shape[1].bit_length()
    return base, exponent, bits, np.rint(np.ldexp(away, bits - exponent))
