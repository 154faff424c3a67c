"""A boosted model: trees that follow each other, each grown to what the others leave.

    raw predictions ──derive──▶ gradient and hessian of each row, as integers
                                     │ grow, leaf by leaf
    raw predictions ◀──step of the leaf of each row── tree

A tree is a regression tree of *steps*: the mean that its leaf has is what the leaf adds to the raw
predictions of its rows. So everything that reads trees reads these. A node's statistics are
integers, weight and weighted step, and those of a parent are the sums of its children; rows are
moved by the very number that the stored tree gives.

Fixed point. With n rows, the sum of all hessians has ``64 - bits of n`` bits of a word, and the
number of rows the others (`dtrees.core.histogram._layout`). Scales are powers of two, the largest
with which nothing overflows: a gradient has 26 bits or more; a hessian 26 with up to 500,000 rows,
and two bits less for each doubling of their number. They follow from bounds of the loss, or from
the largest derivative, which is the same in any order. Whole weights up to 7 multiply what is
rounded already, so a row of weight two adds what two rows add. Where others are among them, weights
multiply before anything is rounded, so the heaviest rows keep all bits, however heavy they are.

Rows may be in several places, each with a `Booster` of its own that grows the same model. Where
something depends on all rows, members add up what theirs say (`dtrees.typing.Members`): counts,
sums of derivatives, histograms of nodes, weights of leaves. All of these are integers, so the model
is that of one place, bit for bit. A member adds up and searches the histograms of some columns, and
hears of the best splits of the others; of all columns where these have few codes. Trees of all
classes are grown round by round, so that their nodes are in the same messages
(`grow_with_others`)::

    member 0    rows ── derive ──┐          ┌── histograms ──┬── splits ──┐          ┌── steps
    member 1    rows ── derive ──┴── sums ──┴── histograms ──┴── splits ──┴── sums ──┴── steps
                                             └────── again and again ──────┘

The runner gets a task for each thread of a team (`_team`). One of them leads a model, and the
others help with the columns of its nodes. Several classes, and several outputs, have a tree each in
an iteration, and a thread takes a whole one, or what there is to do for one in a round.

Of several outputs, each has a loss that sees its own column of `y` and its own raw predictions. So
its trees are those of a model of it alone. Or a tree has a step for each output in each leaf; its
splits have the sum of what they gain (`dtrees.core.search._gradient_scan`).

Steps. A step is stored as the quotient of two integers, and rows are moved by that quotient.

Steps keep the order of monotonic columns, to the last bit. The kernel splits nodes as the bounds of
their steps allow (`dtrees.core.search._open_node`), and steps of leaves are moved to these bounds
here::

    node            bounds          step
    0               -inf .. inf
    +- 1 (x <= 3)   -inf .. 0.25     0.1
    +- 2 (x > 3)    0.25 .. inf      0.4
       +- 3         0.25 .. inf      0.25, moved from 0.2
       +- 4         0.25 .. inf      0.5

A stored tree has weights and weighted steps, so its steps are quotients of integers. Bounds have
few bits, and so have weights: then a bound times a weight is a whole number of units, and the
quotient is the bound again. All other roundings keep the order of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dtrees.coding.coded import CodedMatrix
from dtrees.coding.mapped import let_go
from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow._boosted_rows import RowDerivatives, RowDraws, RowSquares
from dtrees.core.grow._leaf_wise import (
    GrownRecords,
    LeafWiseGrower,
    add_leaf_steps,
    keep_best,
    newton_steps,
    sums_of_drawn,
    weights_of_leaves,
)
from dtrees.core.grow._team import Team
from dtrees.core.grow.assembly import Thresholds, trees_of_records
from dtrees.core.grow.node_record import PartialTree
from dtrees.core.losses.losses import Loss, OwnLoss
from dtrees.core.losses.outputs import AnyLoss, losses_by_output
from dtrees.core.model.tree import Tree
from dtrees.core.search._categories import FREE_CATEGORIES
from dtrees.core.stores.boosted._column_blocks import ColumnBlocks
from dtrees.typing import Members, Runner, T

GRADIENT_BITS = 30  # a row's gradient is below 2**30
HESSIAN_BITS = 31
PLAIN_WEIGHT = 7.0  # whole weights up to it are counts of rows, and change no scale
MOST_EXPONENT = 1000  # of a power of two that anything is multiplied by
TAKEN_BYTES = 2**23  # of codes of 8 bits: those of smaller tables stay, as columns are read faster
WHOLE_CODES = 2**11  # of all trees of an iteration: to search them takes less than a message
BOUND_BITS = 24  # of a bound, from the first bit of the largest step on
WEIGHT_BITS = 29  # of the weight of all rows; a product of the two is a double
TURNS = 25  # in which a model grows that others take turns with

Watch = Callable[[list[Tree], np.ndarray], bool]


@dataclass(frozen=True, eq=False)
class BoostedRows:
    """The rows of a table, and those of them that a fit has; all of these have a weight.

    `y` are numbers, or codes of classes; of a loss of the user's always float64. Of several outputs
    it is (n_outputs, n_rows). `weight` is in units of `weight_unit`. `chosen` are the rows of the
    fit, uint32, ascending; None: all. `raw`, float64 (n_values, n_rows), are raw predictions by
    trees that are there; None: those that a model begins with. `numbers`, uint64 (n_rows,), are
    those of the rows in a table of which these are some; None: 0, 1, 2, ...
    """

    coded: CodedMatrix
    y: np.ndarray
    weight: np.ndarray | None = None
    weight_unit: float = 1.0
    chosen: np.ndarray | None = None
    raw: np.ndarray | None = None
    numbers: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        n: int = self.y.shape[-1]
        return n

    def alone(self) -> BoostedRows:
        """The rows of the fit, some of the table, as a table of their own. O(cells)."""
        own = self.chosen
        assert own is not None
        return BoostedRows(
            self.coded.take(own),
            np.ascontiguousarray(self.y[..., own]),
            None if self.weight is None else self.weight[own],
            self.weight_unit,
            None,
            None if self.raw is None else np.ascontiguousarray(self.raw[:, own]),
        )


@dataclass(frozen=True, eq=False)
class Growing:
    """What is grown: a loss, its beginning, and how many trees of which kind.

    `initial`, float64 (n_values,), has a raw prediction for each tree of an iteration. `first` is
    the number of the first iteration. `subsample` says how likely a row is among those that an
    iteration is grown from, by draws of `seed`. Draws of columns depend on the number of a tree
    among those of its output: they are those of a model of this output alone. With an `order`,
    int64 (n_values,), a tree has all values, those of each output side by side, whose scores are
    added up in it.
    """

    loss: AnyLoss
    initial: np.ndarray
    rules: BoostingRules
    learning_rate: float
    n_iterations: int
    first: int = 0
    subsample: float = 1.0
    seed: int = 0
    order: np.ndarray | None = None

    @property
    def n_trees(self) -> int:
        """Trees of an iteration."""
        return len(self.initial) if self.order is None else 1

    @property
    def are_alike(self) -> bool:
        """Whether all values have the same second derivatives, and no step is regularized."""
        first, _ = losses_by_output(self.loss, len(self.initial))[0]
        return first.largest_hessian == 1.0 and not self.rules.has_regularized_steps


def boost(
    rows: BoostedRows,
    growing: Growing,
    thresholds: Thresholds,
    run: Runner,
    n_threads: int = 1,
    cancelled: Callable[[], bool] = lambda: False,
    watch: Watch | None = None,
    takes_codes: bool = False,
) -> list[Tree]:
    """Grow a boosted model, iteration by iteration.

    `run` gets one task for each thread; their number changes nothing but the time. `cancelled` is
    asked before each iteration; True ends the growth. `watch` is told of the trees of each
    iteration, and of the raw predictions of the rows by all so far; True: it was the last one. It
    is called by the task that leads. With `takes_codes` the codes of 8 bits are taken from the
    table, which has them no more.

    O(rows x columns) for each level of a balanced tree. Memory: a byte for each cell of columns of
    8 bits unless they are taken, 8 bytes a row for each value of raw predictions and for its
    derivatives, 8 for the order of the rows, and 16 bytes for each code of a column and open leaf.
    Of several values, the last two are there for each thread.
    """
    team = Team()
    made: list[Tree] = []

    def grow() -> None:
        of_a_tree = max(1, n_threads // growing.n_trees)
        about = growing.rules.min_samples_leaf, of_a_tree, takes_codes
        booster = Booster(rows, growing, team, ColumnBlocks(rows.coded, *about))
        for _turn in grow_model(booster, thresholds, made, cancelled, watch):
            pass

    lead(team, grow, run, n_threads)
    return made


def lead(team: Team, grow: Callable[[], None], run: Runner, n_threads: int) -> None:
    """Let a task of `run` grow something, and the others help."""
    try:
        run([partial(team.lead, grow), *[team.help] * (n_threads - 1)])
    finally:
        team.dismiss()  # where nobody has come to lead


def grow_model(
    booster: Booster,
    thresholds: Thresholds,
    made: list[Tree],
    cancelled: Callable[[], bool],
    watch: Watch | None,
    n_iterations: int | None = None,
) -> Iterator[None]:
    """Grow all iterations of a model, or as many as are wanted, in `TURNS` turns.

    The trees are added to `made`; other arguments as for `boost`. The turns may be those of
    different threads.
    """
    if n_iterations is None:
        n_iterations = booster.growing.n_iterations
    of_a_turn = max(1, n_iterations // TURNS)
    for number in range(n_iterations):
        if cancelled():
            break
        booster.iterate()
        if watch is not None:
            trees = booster.finished(thresholds)
            made.extend(trees)
            if watch(trees, booster.raw):
                break
        if (number + 1) % of_a_turn == 0:
            yield
    made.extend(booster.finished(thresholds))


@dataclass(eq=False)
class OutputRows:
    """What the loss of an output says of the rows.

    `values` are the places of its raw predictions among those of all outputs, `y` are its targets,
    and `measured` are its largest derivatives, where they are not known.
    """

    loss: Loss | OwnLoss
    values: slice
    y: np.ndarray
    derivatives: RowDerivatives
    measured: tuple[float, ...] = (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class TreeRows:
    """What a tree is grown from: the rows of an output, and derivatives by one value.

    `number` is that of the tree, `packed` are the derivatives of rows, whose sums are `hessian` and
    `gradient`, and `raw` are raw predictions that the tree moves. Of powers of two see
    `Booster._exponents`.
    """

    loss: Loss | OwnLoss  # as it is in this iteration
    y: np.ndarray
    raw: np.ndarray
    packed: np.ndarray
    number: int
    hessian: int
    gradient: int
    gradient_exponent: int
    hessian_exponent: int

    @property
    def shift(self) -> int:
        """Bits of a unit of gradients, in those of a unit of hessians."""
        return self.gradient_exponent - self.hessian_exponent


class Booster:
    """Grows the trees of one model, iteration by iteration; this thread is a member of `team`.

    `raw`, float64 (n_values, n_rows), are raw predictions of the rows of the table; of those that
    are not chosen, the first ones. `members` have other rows; None: all are here.
    """

    def __init__(
        self,
        rows: BoostedRows,
        growing: Growing,
        team: Team,
        blocks: ColumnBlocks,
        members: Members | None = None,
    ) -> None:
        self.members = members
        self._chosen = chosen = slice(None) if rows.chosen is None else rows.chosen
        n_rows = rows.coded.n_rows if rows.chosen is None else len(rows.chosen)
        self.rows = replace(rows, raw=None)
        self.growing = growing
        weight = own = None
        if rows.weight is not None:
            weight = rows.weight * rows.weight_unit
            own = weight[chosen]
        n_units = n_rows
        heaviest, are_counts = 1.0, True  # a row of weight two has the gradients of two rows
        if own is not None:
            assert rows.weight is not None
            is_broken = float((own != np.rint(own)).any())
            heaviest, is_broken = self._largest(float(own.max(initial=0)), is_broken)
            are_counts = heaviest <= PLAIN_WEIGHT and not is_broken
            n_units = int(rows.weight[chosen].astype(np.float64).astype(np.int64).sum())
        self._n_rows, total = self._sum(np.array([n_rows, n_units], dtype=np.int64)).tolist()
        self._total_weight = total * rows.weight_unit
        self._are_counts = are_counts
        self._largest_weight = PLAIN_WEIGHT if are_counts else heaviest
        shape = len(growing.initial), rows.coded.n_rows
        self.raw: np.ndarray = blocks.empty(shape, dtype=np.float64)
        self._packed = blocks.empty(shape, dtype=np.uint64)
        how = weight, team, are_counts, rows.chosen
        losses = losses_by_output(growing.loss, len(growing.initial))
        self._outputs = []
        places = np.arange(shape[0]) if growing.order is None else np.argsort(growing.order)
        for (loss, values), y in zip(losses, np.atleast_2d(rows.y), strict=True):
            at, end = places[values.start], places[values.stop - 1] + 1
            to = self.raw[values], self._packed[at:end]
            derivatives = RowDerivatives(loss, growing.initial[values], y, *how, *to)
            self._outputs.append(OutputRows(loss, values, y, derivatives))
        of_many = (rows.coded.n_ordered == 0) & (rows.coded.n_codes > FREE_CATEGORIES)
        has_many = growing.rules.category_penalty > 0 and bool(of_many.any())
        squares = RowSquares(weight, heaviest, are_counts) if has_many else None
        if rows.raw is not None:
            self.raw[:] = rows.raw
        self._hessian_bits = 64 - self._n_rows.bit_length()
        self._number = growing.first
        self._draws = None
        if growing.subsample < 1.0:
            numbers = None if rows.numbers is None else rows.numbers[chosen]
            self._draws = RowDraws(n_rows, rows.chosen, numbers)
        self._team = team
        part = None
        if members is not None:
            n_codes = len(growing.initial) * int(rows.coded.n_codes.sum())
            is_whole = n_codes <= WHOLE_CODES or members.n_parts == 1
            part = (0, 1) if is_whole else (members.rank, members.n_parts)
        about = growing.rules, self._hessian_bits, team, rows.chosen, squares, part
        outputs = growing.order, growing.are_alike
        self._new_grower = partial(LeafWiseGrower, blocks, *about, *outputs)
        self._growers = [self._new_grower()]  # those that grow no tree
        self._counts = np.empty(0, dtype=np.int64)  # room for those of nodes
        n_outputs = len(growing.initial) // growing.n_trees  # of a tree
        self._records = [GrownRecords(n_outputs) for _ in range(growing.n_trees)]

    def iterate(self) -> None:
        """Grow the trees of one iteration, of a value each or of all, and move raw predictions."""
        growing = self.growing
        if self._draws is not None:
            self._draws.draw(growing.seed, self._number, growing.subsample, self.members)
        values = [tree for output in self._outputs for tree in self._derive(output)]
        trees = [[tree] for tree in values]
        if growing.order is not None:
            trees = [[values[output] for output in growing.order.tolist()]]
        self._number += 1
        self.let_go()

        def of_tree(tree: Sequence[TreeRows]) -> tuple[Any, ...]:
            first = tree[0]
            exponents = [own.hessian_exponent for own in tree]
            units = [2.0**-own for own in exponents], [2.0**-own.gradient_exponent for own in tree]
            sums = [own.hessian for own in tree], [own.gradient for own in tree], units
            packed = first.packed if len(tree) == 1 else self._packed
            coarsest = [own.hessian >> own.hessian_exponent - min(exponents) for own in tree]
            of_row = sum(coarsest) // len(tree) / self._total_weight
            return packed, *sums, first.number, self._draws, of_row

        def grow(k: int) -> None:
            try:
                grower = self._growers.pop()
            except IndexError:  # others use them all
                grower = self._new_grower()
            grower.grow(*of_tree(trees[k]))
            self._records[k].append(grower, self._add_steps(grower, trees[k]))
            self._growers.append(grower)

        if self.members is None:
            self._team.share(grow, len(trees))
        else:
            self._growers += [self._new_grower() for _ in trees[len(self._growers) :]]
            drawn = self._drawn_of_all()
            for k, grower in enumerate(self._growers):
                grower.begin(*of_tree(trees[k]), drawn[k], self._n_rows)
            about = self._growers, self.members, self._team, self._counts, self.let_go
            self._counts = grow_with_others(*about)
            self.let_go()
            weights = self._weights_of_leaves(self._growers)
            for k, grower in enumerate(self._growers):
                self._records[k].append(grower, self._add_steps(grower, trees[k], weights[k]))
        self.let_go()

    def let_go(self) -> None:
        """Let go of the pages of arrays that are in files (`dtrees.coding.mapped`)."""
        own = self.raw, self._packed, self.rows.y, self.rows.weight
        for array in (*own, *(each for grower in self._growers for each in grower.arrays)):
            let_go(array)

    def _drawn_of_all(self) -> list[Any]:
        """What `sums_of_drawn` says of each value, over all members; of a tree of all, a list."""
        if self._draws is None:
            return [None] * len(self._records)
        drawn = np.array([sums_of_drawn(self._draws, own) for own in self._packed])
        found: list[list[int]] = self._sum(drawn).tolist()
        return found if self.growing.order is None else [found]

    def finished(self, thresholds: Thresholds) -> list[Tree]:
        """The trees that were grown since the last call, as trees of numbers."""
        n_codes, unit = self.rows.coded.n_codes, self.rows.weight_unit
        of_values = [
            trees_of_records(records.take(), n_codes, thresholds, "squared_error", unit)
            for records in self._records
        ]
        return [tree for trees in zip(*of_values, strict=True) for tree in trees]

    def _derive(self, output: OutputRows) -> list[TreeRows]:
        """Derive all rows by the loss of an output: what its trees are grown from.

        Where the largest derivatives are not known, they are those of the last iteration. If they
        turn out to have another power of two, rows are derived once more.
        """
        derivatives, own, raw = output.derivatives, self._chosen, self.raw[output.values]
        loss = output.loss
        if isinstance(loss, OwnLoss):  # or what else a loss has to know of all rows
            gradient, hessian = loss.derivatives(output.y[own], raw[:, own])
            derivatives.give(gradient, hessian)
            loss = loss.measured(gradient, hessian, self._largest_weight, self._largest)
        elif loss.beyond is not None:
            weight = None if self.rows.weight is None else self.rows.weight[own]
            loss = loss.with_width(output.y[own], raw[0][own], weight, self.members)
            derivatives.bound(loss.width)
        known = loss.largest_gradient, loss.largest_hessian
        measures = None in known
        exponents = self._exponents(*(output.measured if measures else known))
        while True:
            sums = derivatives.derive(2.0 ** exponents[0], 2.0 ** exponents[1], measures)
            found = exponents
            if measures:
                output.measured = self._largest(*derivatives.largest)
                found = self._exponents(*output.measured)
            if found == exponents:
                break
            exponents = found
        of_rows = zip(raw, derivatives.packed, self._sum(sums).tolist(), strict=True)
        first = self._number * (len(raw) if self.growing.order is None else 1)
        return [
            TreeRows(loss, output.y, own_raw, packed, first + k, hessian, gradient, *exponents)
            for k, (own_raw, packed, (gradient, hessian)) in enumerate(of_rows)
        ]

    def _sum(self, numbers: np.ndarray) -> np.ndarray:
        """The numbers, int64, contiguous, made the sums over all members."""
        if self.members is not None:
            self.members.sum(numbers.reshape(-1))
        return numbers

    def _largest(self, *numbers: float) -> tuple[float, ...]:
        """The largest of each number over all members."""
        if self.members is None:
            return numbers
        found = np.array(numbers)
        self.members.largest(found)
        return tuple(found.tolist())

    def _exponents(self, gradient: float, hessian: float) -> tuple[int, int]:
        """Powers of two that gradients and hessians are multiplied by, so that none overflows."""
        weight = self._largest_weight
        largest = gradient * weight, hessian * weight, hessian * self._total_weight
        of_gradient, of_hessian, of_sum = (math.frexp(value)[1] for value in largest)
        return (
            min(GRADIENT_BITS - of_gradient, MOST_EXPONENT),
            min(HESSIAN_BITS - of_hessian, self._hessian_bits - 1 - of_sum, MOST_EXPONENT),
        )

    def _add_steps(
        self, grower: LeafWiseGrower, tree: Sequence[TreeRows], weights: np.ndarray | None = None
    ) -> Any:
        """Give the records of a tree steps instead of derivatives, and move its rows.

        `grower` has grown the tree last, of one value or of several. `weights` are those of all
        rows of the leaves; None: all rows are here. Returns the unit of the weighted steps, or
        those of several.
        """
        rate, rules, first = self.growing.learning_rate, self.growing.rules, tree[0]
        newton, steps = None, None
        if rules.monotonic is not None or rules.path_smooth > 0:
            own, weights = self._steps_of_paths(grower, first, weights)
            steps = own[np.newaxis]
        elif first.loss.level is not None:
            leaves = grower.leaves_of_tree()
            steps = rate * np.array([self._quantiles_of(grower, leaves, own) for own in tree])
        else:
            shifts = [own.shift for own in tree]
            newton = shifts, self._most(first.loss), rate, self._are_counts
        rows, raw = self.rows, first.raw[np.newaxis] if len(tree) == 1 else self.raw
        about = rows.weight, rows.weight_unit, raw, newton, steps, weights
        units = add_leaf_steps(grower, *about)
        return units[0] if len(tree) == 1 else units

    def _weights_of_leaves(self, growers: Sequence[LeafWiseGrower]) -> list[np.ndarray]:
        """Weight of the rows of each leaf of trees, wherever they are; int64 (n_leaves,) each."""
        weights = [weights_of_leaves(grower, self.rows.weight) for grower in growers]
        if self.members is None or self.rows.weight is None:
            return weights
        of_all = self._sum(np.concatenate(weights))
        return np.split(of_all, np.cumsum([len(each) for each in weights])[:-1])

    def _most(self, loss: Loss | OwnLoss) -> float:
        """The largest step of a leaf, before the learning rate."""
        return min(loss.largest_step, self.growing.rules.max_delta_step or math.inf)

    def _steps_of_paths(
        self, grower: LeafWiseGrower, tree: TreeRows, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Steps of leaves that depend on the nodes above them, and weights, as for `_add_steps`.

        They are smoothed, and kept within bounds, which take weights of few bits.
        """
        piece, leaves = grower.piece(), grower.leaves_of_tree()
        rows, monotonic = self.rows, self.growing.rules.monotonic
        nodes = np.column_stack([np.arange(len(piece.nodes)), *stretches(piece, leaves)])
        if tree.loss.level is not None:
            values = self._quantiles_of(grower, nodes, tree)
        else:
            counts, unit = nodes[:, 2].copy(), 1.0
            if self._are_counts and rows.weight is not None:
                up_to = np.cumsum(np.append(0, rows.weight[grower.rows_of_leaves]))
                counts = up_to[nodes[:, 1] + nodes[:, 2]] - up_to[nodes[:, 1]]
                unit = rows.weight_unit
            counts = self._sum(counts) * unit
            how = grower.l2, tree.shift, self._most(tree.loss), grower.l1
            values = newton_steps(piece.statistics, counts, *how)
        if grower.path_smooth > 0:
            values = smoothed(piece, values, grower.path_smooth)
        values *= self.growing.learning_rate
        own = leaves[:, 0]
        if monotonic is None:
            return values[own], weights
        lower, upper = bounds_of_nodes(piece, values, monotonic)
        if weights is None:
            (weights,) = self._weights_of_leaves([grower])
        weights = few_bits(weights)
        return within(values[own], lower[own], upper[own]), weights

    def _quantiles_of(
        self, grower: LeafWiseGrower, leaves: np.ndarray, tree: TreeRows
    ) -> np.ndarray:
        """The quantile of the residuals of each leaf, or what else a loss says of them."""
        loss, weight = tree.loss, self.rows.weight
        assert isinstance(loss, Loss)
        of_rows = grower.rows_of_leaves
        parts = [of_rows[first : first + n] for _, first, n in leaves.tolist()]
        residuals = [tree.y[own] - tree.raw[own] for own in parts]
        weights = [None if weight is None else weight[own] for own in parts]
        most = self._most(loss)
        return np.clip(loss.steps(residuals, weights, self.members), -most, most)


def grow_with_others(
    growers: Sequence[LeafWiseGrower],
    members: Members,
    team: Team,
    room: np.ndarray,
    let_go: Callable[[], None],
) -> np.ndarray:
    """Grow the trees that growers have begun, with members who have other rows.

    All trees take part in each round: what is counted of their nodes is in the same message, and so
    are the splits that are found. Growers have the same columns; their rows may be different ones.
    `room`, int64 (n,), is used for messages, and returned, or a longer one. `let_go` is called once
    the rows of a round are partitioned, and once they are counted.
    """

    def each(method: Callable[..., T], *arguments: Sequence[object]) -> list[T]:
        """What a method of each grower returns."""
        given = list(zip(growers, *arguments, strict=True))
        return team.share(lambda k: method(*given[k]), len(given))

    n, ends = len(growers), growers[0].ends_of_parts
    is_whole = len(ends) == 1
    while sum(n_nodes := each(LeafWiseGrower.expand)) > 0:
        let_go()
        last = np.cumsum(n_nodes)
        first, total = last - n_nodes, int(last[-1])
        if len(room) < total * ends[-1]:
            room = np.empty(total * ends[-1], dtype=np.int64)
        counts = room[: total * ends[-1]]
        each(LeafWiseGrower.put_counts, [counts] * n, first, [total] * n)
        let_go()
        if is_whole:
            members.sum(sums := counts)
        else:
            sums = members.scatter(counts, [total * end for end in ends])
        found = np.concatenate(each(LeafWiseGrower.search_part, [sums] * n, first))
        if not is_whole:
            members.join(found, keep_best)
        each(LeafWiseGrower.take, np.split(found, 2 * last[:-1]))
    return room


def smoothed(piece: PartialTree, values: np.ndarray, weight_above: float) -> np.ndarray:
    """Steps of nodes, smoothed towards those of the nodes above; float64 (n_nodes,).

    A step counts as much as the hessian of its node, and the one above as `weight_above`.
    """
    weight = piece.statistics[:, 0].astype(np.float64)
    found = weight * values
    found[0] = values[0]
    for above, left, right in levels(piece):
        for own in (left, right):
            found[own] += weight_above * found[above]
            found[own] /= weight[own] + weight_above
    return found


def bounds_of_nodes(
    piece: PartialTree, values: np.ndarray, monotonic: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Least and greatest step of the leaves below each node, float64 (n_nodes,) each.

    `values` are the steps of nodes, if they were leaves.
    """
    lower = np.full(len(values), -math.inf)
    upper = np.full(len(values), math.inf)
    for above, left, right in levels(piece):
        low, high = lower[above], upper[above]
        lower[left] = lower[right] = low
        upper[left] = upper[right] = high
        middle = 0.5 * np.clip(values[left], low, high) + 0.5 * np.clip(values[right], low, high)
        direction = np.asarray(monotonic)[piece.nodes["column"][above]]
        for rises, lesser, greater in ((1, left, right), (-1, right, left)):
            own = direction == rises
            upper[lesser[own]] = lower[greater[own]] = middle[own]
    return lower, upper


def within(steps: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Steps, moved to bounds that are rounded to few bits; float64 (n,)."""
    largest = np.abs(np.clip(steps, lower, upper)).max(initial=0)
    quantum = math.ldexp(1.0, math.frexp(largest)[1] - BOUND_BITS)
    moved: np.ndarray = np.clip(
        steps, np.rint(lower / quantum) * quantum, np.rint(upper / quantum) * quantum
    )
    return moved


def few_bits(weights: np.ndarray) -> np.ndarray:
    """Weights of leaves, rounded where their sum has more than `WEIGHT_BITS`; int64 (n,)."""
    beyond = max(0, int(weights.sum()).bit_length() - WEIGHT_BITS)
    if beyond == 0:
        return weights
    rounded: np.ndarray = np.maximum((weights + (1 << beyond - 1)) >> beyond, 1) << beyond
    return rounded


def stretches(piece: PartialTree, leaves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First row and number of rows of each node, int64 (n_nodes,); rows lie leaf after leaf.

    leaves : int64 (n_leaves, 3), of node, first row, rows
    """
    first = np.zeros(len(piece.nodes), dtype=np.int64)
    n = np.zeros(len(piece.nodes), dtype=np.int64)
    first[leaves[:, 0]], n[leaves[:, 0]] = leaves[:, 1], leaves[:, 2]
    for above, left, right in reversed(levels(piece)):
        first[above] = np.minimum(first[left], first[right])
        n[above] = n[left] + n[right]
    return first, n


def levels(piece: PartialTree) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Nodes that are split, with their left and right children, by depth; all are int32."""
    left, right = piece.nodes["left"], piece.nodes["right"]
    found = []
    level = np.zeros(1, dtype=np.int32)
    while len(level := level[left[level] >= 0]) > 0:
        found.append((level, left[level], right[level]))
        level = np.concatenate(found[-1][1:])
    return found
