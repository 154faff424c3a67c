"""Training sets as mixes of cells, and bags of rows.

Rows are counted once per *cell* (a fold, a bag); the statistics of a training set are a linear
combination of the statistics of the cells:

    plain fit            cells: one                 mix = [[1]]
    k folds + final      cells: the folds           mix = 1 - I, and a row of ones

so one grower serves all of them ([CV] 2.2.2: statistics that are sums subtract). A mix has one
row per *set* (a tree to grow) and one column per cell. Any splits of the rows are such a mix
(`of_sets`): rows that are in the same sets make a cell. Where each set lacks one cell at most, as
in k-fold and in leave-one-out, a number says which (`Lacking`), and no mix is written down.

The *bags* of a forest overlap ([CV] 2.2.1). A row is in the bag of a tree as often as a draw of
(seed, tree, row id) says: nobody has to know the other rows, so chunks and workers need not talk
to each other, and a row has the same bags wherever it lies. The number of times is Poisson
distributed, which is what a bootstrap's tends to with many rows; only its sum is not fixed.
Samples without replacement (*pasting*) hold a number of rows that is fixed, once each: those that a
keyed permutation of all row ids puts first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from functools import cache
from typing import Any, Protocol

import numpy as np

from dtrees._forks import cached_property
from dtrees._random import (
    BOOTSTRAP,
    PASTING,
    ROUNDING,
    keyed_counts,
    keyed_draws,
    keyed_largest,
    keyed_sample,
)
from dtrees.coding.coded import digest_of_arrays
from dtrees.coding.target import MeansElsewhere, Target, exact_bincount

MOST_BITS, LEAST_BITS = 12, 10  # sets that are looked at together
LARGEST_TABLE = 2**16  # keys that are numbered by a table
BLOCK_ROWS = 2**16  # whose keys are held
FEW_CELLS = 4  # that are added up one by one
MOST_TOTALS = 2**20  # of classes in cells, and some for each row
LARGEST_RATE = 2.0  # of bags: sums of the target have room for so many rows
MOST_OFTEN = 3  # times that a row is drawn, on average; from there on each draw counts more
STEPS = 32  # of a mean of 1


@dataclass(frozen=True, eq=False)
class Lacking:
    """The mix of sets that lack one cell or none: ``mix[number]`` is a row of it."""

    cell: np.ndarray  # int32 (n_sets,): the cell that a set lacks; -1: none
    shape: tuple[int, int]  # number of sets and of cells

    def __getitem__(self, numbers: Any) -> np.ndarray:
        """Rows of the mix as bool."""
        mix: np.ndarray = self.cell[numbers, ..., None] != np.arange(self.shape[1])
        return mix


@dataclass(frozen=True, eq=False)
class CellsElsewhere:
    """Cells of rows that are not here, but in parts."""

    sizes: np.ndarray  # int64 (n_cells,): rows of each
    each: Callable[[], list[Any]]  # those of the parts: tasks of Dask, made anew with each call
    column: Any  # of all rows, which comes here as an array

    def __len__(self) -> int:
        return int(self.sizes.sum())


Integers = Callable[[list[int]], tuple[np.ndarray | None, int]]


@dataclass(frozen=True, eq=False)
class ClassWeights:
    """Class weights of several sets, as integers.

    They multiply when sums are read: the sums themselves are of rows (and their own weights), and
    the same for all sets. So sets grow together, whatever their classes weigh::

        a cell of the shared node     |  12 |   3 |       rows of class 0 and 1, counted once
        set 0, weights 0.6, 2.9       | 7.2 | 8.7 |       as integers, in the unit of its own fit
        set 1, weights 0.7, 1.8       | 8.4 | 5.4 |

    The integers are those of `dtrees.coding.target`: of a fit in which the rows outside of the set
    weigh nothing.
    """

    # int64 (n_sets, n_classes): a class weighs nothing in all of the sets, or in none
    multiplier: np.ndarray
    exponent: np.ndarray  # int64 (n_sets,): ``class_weight = multiplier / 2**exponent``

    def __post_init__(self) -> None:
        weighs = self.multiplier > 0
        assert (weighs == weighs[:1]).all(), "a class weighs nothing in some sets only"

    def some(self, numbers: Sequence[int] | np.ndarray) -> ClassWeights:
        """The class weights of some of the sets."""
        return ClassWeights(self.multiplier[numbers], self.exponent[numbers])

    def with_those(self, others: ClassWeights) -> ClassWeights:
        """The class weights of these sets, and of others behind them."""
        multiplier = np.concatenate([self.multiplier, others.multiplier])
        return ClassWeights(multiplier, np.concatenate([self.exponent, others.exponent]))

    def of(self, target: Target, number: int) -> Target:
        """A target without class weights, with those of a set."""
        exponent = int(self.exponent[number])
        return replace(target, class_multiplier=self.multiplier[number], class_exponent=exponent)

    def unit(self, target: Target, number: int) -> float:
        """The unit of the weights of a set; that of the target is without class weights."""
        return math.ldexp(1.0, -target.w_exponent - int(self.exponent[number]))

    @classmethod
    def of_target(cls, target: Target, n_sets: int) -> ClassWeights | None:
        """The class weights of a target, if it has any, the same in all sets."""
        if target.class_multiplier is None:
            return None
        exponent = np.full(n_sets, target.class_exponent, dtype=np.int64)
        return cls(np.tile(target.class_multiplier, (n_sets, 1)), exponent)

    @classmethod
    def of_totals(cls, totals: np.ndarray, integers: Integers) -> ClassWeights:
        """Class weights as the fit of each set makes them.

        `totals`, int64 (n_sets, n_classes), are weights of rows. `integers` makes of those of a set
        multipliers, None for ones, and their exponent.
        """
        found = [integers(own) for own in totals.tolist()]
        ones = np.ones(totals.shape[1], dtype=np.int64)
        multiplier = np.stack([ones if own is None else own for own, _ in found])
        return cls(multiplier, np.array([exponent for _, exponent in found], dtype=np.int64))


def without_class_weights(target: Target) -> Target:
    """The target without class weights; rows of classes that weigh nothing do not count."""
    if target.class_multiplier is None:
        return target
    plain = replace(target, class_multiplier=None, class_exponent=0)
    counts = target.class_multiplier > 0
    return plain if counts.all() else plain.only(counts[target.y])


@dataclass(frozen=True)
class Resampling:
    """Which rows, how often, in which training set."""

    # uint16 or uint32 (n_rows,): cell of every row, or `CellsElsewhere`; None: there is one cell
    cells: Any
    # int64 or bool (n_sets, n_cells), or Lacking: how often a cell counts in a set
    mix: np.ndarray | Lacking
    # of each set, where they are not those of the target, which then has none
    class_weights: ClassWeights | None = None
    _apart: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def _here(self) -> np.ndarray:
        """The cell of every row."""
        assert isinstance(self.cells, np.ndarray), "there is one cell, or cells are elsewhere"
        return self.cells

    def here(self) -> Resampling:
        """The same, whose cells are here."""
        if not isinstance(self.cells, CellsElsewhere):
            return self
        return replace(self, cells=np.asarray(self.cells.column))

    def cells_of(self, sets: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """The cells that some of the sets tell apart; computed once for every tree of a forest.

        At most 64 `sets`, so that a word says which of them have a cell. Returns the cells, uint16
        (n_rows,), and where a set has the rows of one, uint8 (len(sets), n_cells).
        """
        found = self._apart.get(tuple(sets))
        if found is None:
            bits = np.packbits(self.mix[sets] > 0, axis=0)  # eight sets a byte, the first on top
            words = np.pad(bits, ((0, 8 - len(bits)), (0, 0))).T.copy().view(">u8")
            distinct, number = np.unique(words.astype(np.uint64), return_inverse=True)
            has = np.unpackbits(distinct.astype(">u8")[:, None].view(np.uint8), axis=1)
            cells = number.ravel().astype(np.uint16)[self._here]
            found = cells, np.ascontiguousarray(has[:, : len(sets)].T)
            self._apart[tuple(sets)] = found
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be found anew."""
        return {**self.__dict__, "_apart": {}}

    @property
    def n_sets(self) -> int:
        """Number of trees that are grown."""
        return self.mix.shape[0]

    @property
    def is_plain(self) -> bool:
        """True if this is one training set that holds every row once."""
        return self.mix.shape == (1, 1) and self.mix[0][0] == 1

    def some(self, numbers: Sequence[int] | np.ndarray) -> Resampling:
        """A resampling of some of the sets; this one, if these are all in their order."""
        given = np.asarray(numbers)
        if given.dtype != bool and np.array_equal(given, np.arange(self.n_sets)):
            return self
        own = None if self.class_weights is None else self.class_weights.some(numbers)
        if isinstance(self.mix, Lacking):
            cell = self.mix.cell[numbers]
            return Resampling(self.cells, Lacking(cell, (len(cell), self.mix.shape[1])), own)
        return Resampling(self.cells, self.mix[numbers], own)

    def weighing(self, class_weights: ClassWeights) -> Resampling:
        """A resampling of these sets with class weights; what is known of the cells stays known."""
        found = replace(self, class_weights=class_weights)
        object.__setattr__(found, "_apart", self._apart)
        return found

    def target_of(self, number: int, target: Target) -> Target:
        """The target of a set: other rows weigh nothing, and its classes what they weigh in it."""
        own = target.only(self.rows(number))
        return own if self.class_weights is None else self.class_weights.of(own, number)

    def class_totals(self, target: Target) -> np.ndarray:
        """Weight of the rows of each class in each set, without class weights.

        int64 (n_sets, n_classes)
        """
        n_cells = self.mix.shape[1]
        if n_cells * target.n_classes > MOST_TOTALS + 8 * target.n_rows:
            parts = [target.take(self.rows(number)) for number in range(self.n_sets)]
            return np.array([exact_bincount(part.y, part.w, part.n_classes) for part in parts])
        cell_and_class = self._here.astype(np.int64) * target.n_classes + target.y
        of_cell = exact_bincount(cell_and_class, target.w, n_cells * target.n_classes)
        of_cell = of_cell.reshape(n_cells, target.n_classes)
        if isinstance(self.mix, Lacking):
            return of_cell.sum(axis=0) - np.pad(of_cell, ((0, 1), (0, 0)))[self.mix.cell]
        return np.array([of_cell[self.has(number)].sum(axis=0) for number in range(self.n_sets)])

    def has(self, number: int) -> np.ndarray:
        """The cells that a set has; bool (n_cells,)."""
        return np.asarray(self.mix[number] > 0)

    def rows(self, number: int) -> np.ndarray:
        """Which rows a set has; bool (n_rows,)."""
        has = self.has(number)
        own, others = np.flatnonzero(has), np.flatnonzero(~has)
        if len(own) == 1:  # a comparison is many times as fast as looking up
            return self._here == int(own[0])
        return self._here != int(others[0]) if len(others) == 1 else has[self._here]

    def totals(self, numbers: np.ndarray | None = None) -> np.ndarray:
        """Sum up a number per row over the rows of each set; int64 (n_sets,).

        numbers : integers or bool (n_rows,); None: every row adds one
        """
        n_cells = self.mix.shape[1]
        if numbers is None and isinstance(self.cells, CellsElsewhere):
            of_cell = self.cells.sizes
        elif numbers is None or (numbers.dtype == bool and numbers.all()):
            of_cell = np.bincount(self._here, minlength=n_cells)
        elif n_cells <= FEW_CELLS:  # a bincount waits for the sum that it wrote last
            parts = [numbers * (self._here == cell) for cell in range(n_cells)]
            of_cell = np.array([part.sum(dtype=np.int64) for part in parts])
        else:
            of_cell = exact_bincount(self._here, numbers, n_cells)
        if isinstance(self.mix, Lacking):
            return of_cell.sum() - np.append(of_cell, 0)[self.mix.cell]
        if self.mix.dtype == bool:  # which a product would make eight times as large
            return np.array([of_cell[has].sum() for has in self.mix], dtype=np.int64)
        return np.asarray(self.mix @ of_cell)


class Rows(Protocol):
    """The rows of some sets, one set at a time: a matrix has them all at once."""

    def __len__(self) -> int:
        """Number of sets."""

    def __getitem__(self, number: int, /) -> np.ndarray:
        """Which rows a set has; bool (n_rows,)."""


def of_sets(rows: Rows) -> Resampling:
    """The resampling of given training sets, of which there is one at least.

    `rows` say which rows each set has: bool (n_sets, n_rows), or one set after the other. Cells are
    numbered in the order in which their rows come. O(n_sets x n_rows) steps, a few bytes per row
    and set; and a byte for each set and cell, where a set lacks several cells.
    """
    n_sets = len(rows)
    cells = np.zeros(len(rows[0]), dtype=np.uint16)
    first = np.zeros(1, dtype=np.int64)
    start = 0
    while start < n_sets:
        n_bits = (LARGEST_TABLE // len(first)).bit_length() - 1
        n_bits = min(max(n_bits, LEAST_BITS), MOST_BITS, n_sets - start)
        bits = np.zeros(len(cells), dtype=np.uint16)
        for bit in range(n_bits):
            bits |= np.left_shift(rows[start + bit], bit, dtype=np.uint16)
        cells, first = _by_first_row(cells, len(first), bits, n_bits)
        start += n_bits
    lacking = np.full(n_sets, -1, dtype=np.int32)
    for number in range(n_sets):
        lacks = np.flatnonzero(~rows[number][first])
        if len(lacks) > 1:
            return Resampling(cells, np.stack([rows[each][first] for each in range(n_sets)]))
        if len(lacks) == 1:
            lacking[number] = lacks[0]
    return Resampling(cells, Lacking(lacking, (n_sets, len(first))))


def _by_first_row(
    cells: np.ndarray, n_cells: int, bits: np.ndarray, n_bits: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cut cells by some sets, and number what is left in the order in which rows have it.

    `bits`, uint16 (n_rows,), are of the sets: 1 where one has the row. Returns the new cells,
    uint16 or uint32 (n_rows,), as those given, and the first row of each, int64 (n_cells,).
    """
    n_rows, n_keys = len(cells), n_cells << n_bits
    if n_keys > LARGEST_TABLE + 4 * n_rows:
        keys = (cells.astype(np.int64) << n_bits) | bits
        distinct, cells = np.unique(keys, return_inverse=True)
        n_keys, n_bits, bits = len(distinct), 0, np.zeros(n_rows, dtype=np.uint8)
    blocks = [slice(first, first + BLOCK_ROWS) for first in range(0, n_rows, BLOCK_ROWS)]
    row_of_key = np.full(n_keys, n_rows)
    for block in reversed(blocks):  # what is written last stays
        keys = (cells[block].astype(np.int64) << n_bits) | bits[block]
        row_of_key[keys[::-1]] = np.arange(block.start + len(keys) - 1, block.start - 1, -1)
    occurring = np.flatnonzero(row_of_key < n_rows)
    occurring = occurring[np.argsort(row_of_key[occurring])]
    number = np.zeros(n_keys, dtype=np.uint16 if len(occurring) <= 2**16 else np.uint32)
    number[occurring] = np.arange(len(occurring))
    found = np.empty(n_rows, dtype=number.dtype)
    for block in blocks:
        found[block] = number[(cells[block].astype(np.int64) << n_bits) | bits[block]]
    return found, row_of_key[occurring]


def plain() -> Resampling:
    """One training set with every row: the mix ``[[1]]``."""
    return Resampling(cells=None, mix=np.ones((1, 1), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class KeysElsewhere:
    """Keys of rows that are not here, but in parts."""

    n_rows: int
    digest: str  # of the bags
    by_row: bool  # as of the bags
    each: Callable[[], list[Any]]  # those of the parts: tasks of Dask, made anew with each call

    def __len__(self) -> int:
        return self.n_rows


@dataclass(frozen=True)
class Bags:
    """The number of times that each row is in the bag of each tree."""

    seed: int
    rate: float  # mean of the number of times, up to `LARGEST_RATE`; 1 is the size of a bootstrap
    # uint64 (n_rows,): key of every row. Rows with one key (a group) are in a bag together and
    # equally often, if they weigh the same. A number of rows: their numbers are their keys.
    keys: np.ndarray | int | KeysElsewhere
    # float64 (n_rows,): how often a row is in a bag of rate 1, where rows have weights; see
    # `counts_of_bag`. Or what is known of them, where rows are elsewhere.
    means: Any = None
    # keys in a bag and keys in all, which are 0, 1, ...: drawn without replacement; None: with it
    pasted: tuple[int, int] | None = None

    @cached_property
    def row_id(self) -> Any:
        """Key of every row, uint64 (n_rows,); or `KeysElsewhere`."""
        if isinstance(self.keys, int):
            return np.arange(self.keys, dtype=np.uint64)
        return self.keys

    @property
    def n_rows(self) -> int:
        """Rows that are drawn from."""
        return self.keys if isinstance(self.keys, int) else len(self.keys)

    @property
    def by_row(self) -> bool:
        """True if the keys are the numbers of the rows."""
        if isinstance(self.keys, int):
            return True
        if isinstance(self.keys, KeysElsewhere):
            return self.keys.by_row
        return bool((self.keys == np.arange(self.n_rows, dtype=np.uint64)).all())

    def digest(self) -> str:
        """A name of the bags of all trees: equal bags have equal names."""
        if isinstance(self.keys, KeysElsewhere):
            return self.keys.digest
        means, found = self.means, hashlib.blake2b(digest_size=16)
        for first in range(0, self.n_rows, BLOCK_ROWS):  # which may be numbers
            last = min(first + BLOCK_ROWS, self.n_rows)
            own = np.arange(first, last, dtype=np.uint64)
            own = own if isinstance(self.keys, int) else self.keys[first:last]
            found.update(np.ascontiguousarray(own).data)
        if isinstance(means, np.ndarray):
            means = MeansElsewhere(0.0, digest_of_arrays([means]))
        if means is not None:
            found.update(means.sum_of_digests.to_bytes(8, "little"))
        drawn = self.rate.hex() if self.pasted is None else f"{self.pasted[0]}/{self.pasted[1]}"
        return f"{self.seed} {drawn} {self.n_rows} {found.hexdigest()}"

    @classmethod
    def of_digest(
        cls, digest: str, row_id: np.ndarray | None = None, means: np.ndarray | None = None
    ) -> Bags:
        """The bags of this name, whose keys are `row_id`; None: the numbers of the rows.

        Raises ValueError where these are not the keys and means of bags of this name.
        """
        seed, drawn, n_rows, _ = digest.split()
        keys = int(n_rows) if row_id is None else row_id
        if "/" in drawn:
            size, n_keys = map(int, drawn.split("/"))
            found = cls(int(seed), size / n_keys, keys, means, (size, n_keys))
        else:
            found = cls(int(seed), float.fromhex(drawn), keys, means)
        if found.digest() != digest:
            raise ValueError("The keys or weights of the rows are not those of these bags.")
        return found

    def multiplicity(self, tree: int, counts: np.ndarray | None = None) -> np.ndarray:
        """Times that every row is in the bag of a tree; uint16 (n_rows,). O(n_rows).

        `counts`, bool (n_rows,), says which rows have a weight; None: all. A bag without a row that
        counts gets the one, or the group, that would be the first at a higher rate: the one of the
        largest draw, of those that weigh most.
        """
        times = counts_of_bag(self.seed, self.rate, tree, self.row_id, self.means, self.pasted)
        if (times if counts is None else times[counts]).any():
            return times
        if self.means is not None:
            counts = self.means == self.means.max()
        keys = self.row_id if counts is None else self.row_id[counts]
        if len(keys) == 0:  # nothing weighs anything: an error that is raised elsewhere
            return np.ones_like(times)
        first = keyed_largest(self.seed, BOOTSTRAP, tree, keys)
        return (self.row_id == np.uint64(first)).astype(np.uint16)

    def rows_out(self, times: np.ndarray) -> np.ndarray:
        """Rows that are not in a bag, nor is one of their group; int64 (n,), ascending."""
        if self.means is None or self.by_row:
            return np.flatnonzero(times == 0)
        return np.flatnonzero(~np.isin(self.row_id, self.row_id[(times > 0) & (self.means > 0)]))


def counts_of_bag(
    seed: int,
    rate: float,
    tree: int,
    keys: np.ndarray,
    means: np.ndarray | None,
    pasted: tuple[int, int] | None = None,
) -> np.ndarray:
    """Times that rows are in the bag of a tree; uint16 (n_rows,). O(n_rows).

    `keys` are uint64 (n_rows,). `means`, float64 (n_rows,), are of the times, at a rate of 1; None:
    each is 1, as it is for rows that weigh nothing. With `pasted`, as that of `Bags`, there are no
    means, and the rate is not looked at.

    A row is drawn as often as a Poisson variable says, whose mean is the next one in steps of
    1 / `STEPS`, up to `MOST_OFTEN`. Each of these draws counts ``mean / mean drawn`` times; what is
    left of a time is drawn, too. So the mean is exact, and heavy rows are out of some bags.
    """
    times: np.ndarray
    if pasted is not None:
        size, n_keys = pasted
        times = keyed_sample(seed, PASTING, tree, keys, n_keys, size).astype(np.uint16)
        return times
    if means is None:
        times = keyed_counts(seed, BOOTSTRAP, tree, keys, poisson_steps(rate)[np.newaxis])
        return times
    means = np.where(means > 0, means, 1.0)
    drawn = np.ceil(np.minimum(means, MOST_OFTEN) * STEPS)
    which = drawn.astype(np.uint8)
    times = keyed_counts(seed, BOOTSTRAP, tree, keys, _steps_of_means(rate), which)
    some = np.flatnonzero(times)
    ratio = means[some] / (drawn[some] / STEPS)
    left = keyed_draws(seed, ROUNDING, tree, keys[some]) >> np.uint64(11)
    times[some] = np.floor(times[some] * ratio + np.ldexp(left.astype(np.float64), -53))
    return times


@cache
def _steps_of_means(rate: float) -> np.ndarray:
    """The steps of every mean that rows with weights are drawn with; uint64 (n_means, n_steps)."""
    found = [poisson_steps(rate * mean / STEPS) for mean in range(MOST_OFTEN * STEPS + 1)]
    steps = np.full((len(found), max(map(len, found))), 2**64 - 1, dtype=np.uint64)
    for mean, own in enumerate(found):
        steps[mean, : len(own)] = own
    return steps


@cache
def poisson_steps(rate: float) -> np.ndarray:
    """2**64 times the distribution function of a Poisson variable, until it is one; uint64.

    In decimals, whose exponential function is rounded correctly: the same bits on every machine.
    """
    context = Context(prec=60)
    exact = Decimal(rate)
    term = context.exp(-exact)
    total, k, steps = term, 0, []
    while (step := int(context.multiply(total, Decimal(2**64)))) < 2**64 - 1:
        steps.append(step)
        k += 1
        term = context.divide(context.multiply(term, exact), Decimal(k))
        total = context.add(total, term)
    found = np.array(steps, dtype=np.uint64)
    found.flags.writeable = False
    return found
