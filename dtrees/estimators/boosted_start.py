"""What a fit of a boosted model knows before its first tree.

    codebook, codes ─┬─▶ rules for columns ────────────────────────────────┐
    target, weights ─┴─▶ rows that are grown from, rows that are scored ───┴──▶ Start
    parameters ──▶ loss, where it begins ──────────────────────────────────┘

A fit by itself and the fits of several training sets (`boosted_sets`) begin here, with the same
steps. Rows without weight are not there: none of them is counted, held out or asked by the loss.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix, digest_of_arrays
from dtrees.coding.column_types import nearly_ids
from dtrees.coding.outputs import Outputs, raw_by_output
from dtrees.coding.target import SpreadTarget, Target
from dtrees.core.data.rules import BoostingRules
from dtrees.core.data.scale import units_of
from dtrees.core.grow.boosting import BoostedRows, Growing
from dtrees.core.losses.losses import Loss, OwnLoss
from dtrees.core.losses.outputs import AnyLoss, OutputLosses, losses_by_output
from dtrees.core.model.tree import Forest
from dtrees.core.predict.binned import CodedRows, LeafLookup
from dtrees.core.predict.raw import raw_before
from dtrees.estimators.boosted_stopping import (
    ByUndrawn,
    Held,
    HeldElsewhere,
    OthersElsewhere,
    ScoredElsewhere,
    ScoredRows,
    UndrawnElsewhere,
    Watch,
    scored,
    split,
)
from dtrees.estimators.column_rules import directions_of, interactions_of, units_of_weights
from dtrees.estimators.eval_sets import EvalSets, OtherTables, name_of
from dtrees.estimators.fit_plan import columns_per_split
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.estimators.boosting import BaseBoosting
    from dtrees.estimators.prediction import BoostedPredictor

NO_EVALS = EvalSets()
NOTHING_HERE = Held(None, np.empty(0, dtype=np.intp), np.empty(0), np.empty(0), None)
ONE_EACH, JOINT = "one_output_per_tree", "multi_output_tree"
UNDRAWN = "out_of_bag"  # rows, in evals_result_
ENOUGH_ROWS = 10_000  # more of them stop early by themselves, as in scikit-learn


@dataclass(frozen=True, eq=False)
class CodedTable:
    """A table that boosted models are fitted to: as given, and as codes.

    `y` is as read, `seed` is that of draws, and `offset`, float64 (n_rows, n_values), is what the
    raw predictions of rows begin with, if the user gives it.
    """

    X: Any
    y: np.ndarray
    book: CodeBook
    coded: Any  # CodedMatrix; or CodedPartitions, where rows stay where they are
    seed: int
    offset: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Sides:
    """What a loss learns from, and what it is scored on: known before the table is coded.

    `y` are targets of all rows, as the loss wants them. Rows of `train` are grown from, and rows of
    `held` are scored; None: none of the table.
    """

    loss: AnyLoss
    y: np.ndarray
    train: np.ndarray | slice
    held: np.ndarray | slice | None


@dataclass(frozen=True, eq=False)
class Beginning:
    """Where a fit begins: `units`, `chosen` and `raw` as for `BoostedRows`.

    Of a growth that is not here, `chosen` is bool (n_rows,), and so is `held`: the rows that are
    held out of it. Of rows that are `elsewhere` all these are not known here, but the `digests`
    that `Start.facts` tells.
    """

    loss: AnyLoss
    initial: np.ndarray
    units: np.ndarray | None = None
    chosen: np.ndarray | None = None
    raw: np.ndarray | None = None
    held: np.ndarray | None = None
    has_offset: bool = False
    elsewhere: Callable[[], list[Any]] | None = None
    digests: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Start:
    """What a fit of a boosted model knows before its first tree.

    `learned` are attributes of the fitted model, but for those that depend on its trees. `watch`
    scores rows, and `offset` is that of the table.
    """

    learned: dict[str, Any]
    rows: BoostedRows
    growing: Growing
    watch: Watch | None
    offset: np.ndarray | None
    begun: Beginning

    @property
    def facts(self) -> dict[str, Any]:
        """Digests of the rows that are grown from, and of what they begin with."""
        own, rows, chosen = self.begun, self.rows, None
        if own.elsewhere is not None:
            return own.digests
        if rows.chosen is not None:
            chosen = digest_of_arrays([_mask(rows.chosen, rows.coded.n_rows)])
        return {
            "chosen": chosen,
            "raw": None if rows.raw is None else digest_of_arrays(list(rows.raw)),
        }


def sides_of(
    model: BaseBoosting, y: np.ndarray, target: Target, seed: int, shown: bool = False
) -> Sides:
    """Rows that are grown from and rows that are scored, which are others with `shown`.

    Before the table is coded: what cannot be fitted is told at once, and a draw of held-out
    rows takes more memory than codes.
    """
    loss, units = loss_of_target(model, target), units_of(target)
    counted: np.ndarray | slice = slice(None)  # rows that have a weight
    if units is not None and not (units > 0).all():
        counted = np.flatnonzero(units > 0)
    of_loss = numbers_of_loss(loss, target, y)
    loss.check(of_loss[..., counted])  # before rows are held out: of the parts it is not asked
    n_counted = target.n_rows if isinstance(counted, slice) else len(counted)
    if shown or not stops_early(model, n_counted):
        return Sides(loss, of_loss, counted, None)
    if model.validation_fraction is None:
        return Sides(loss, of_loss, counted, counted)
    labels = None  # of several outputs, whose classes may all be rare together
    if target.kind == "classification" and target.n_outputs == 1:
        labels = target.y[counted]
    numbers = np.arange(target.n_rows)[counted]
    return Sides(loss, of_loss, *split(numbers, labels, model.validation_fraction, seed))


def loss_of_target(model: BaseBoosting, target: Target) -> AnyLoss:
    """The loss of a model of this target: of several outputs, one for each."""
    own, n_values = model._loss(), raw_by_output(target)
    return own if len(n_values) == 1 else OutputLosses((own,) * len(n_values), n_values)


def numbers_of_loss(loss: AnyLoss, target: Target, y: np.ndarray) -> np.ndarray:
    """Targets as the loss wants them: numbers, or codes of classes; (n_outputs, n_rows)."""
    if target.kind != "classification":
        return np.ascontiguousarray(y.T, dtype=np.float64)
    is_own = any(isinstance(own, OwnLoss) for own, _ in losses_by_output(loss, 1))
    if target.y.dtype == np.uint8 and not is_own:
        return np.ascontiguousarray(target.y.T)  # classes stay the bytes that they are
    return np.ascontiguousarray(target.y.T, dtype=np.float64)


def stops_early(model: BaseBoosting, n_counted: int) -> bool:
    """Whether rows of a table are scored, of which so many have a weight."""
    is_early = model.early_stopping
    return n_counted > ENOUGH_ROWS if isinstance(is_early, str) else is_early  # "auto"


def start_of(
    model: BaseBoosting,
    given: CodedTable,
    target: Target,
    sides: Sides,
    kept: tuple[np.ndarray, np.ndarray] | None = None,
    evals: EvalSets = NO_EVALS,
    run: Runner = serial,
    begun: Beginning | None = None,
) -> Start:
    """What a fit knows before its first tree; `kept` are raw predictions that it goes on from.

    A model of rows that have an offset begins with it, and with no constant. With `evals` these
    rows are scored on the threads of `run`, and all rows of the table are grown from. `begun` is
    known where rows are elsewhere.

    kept : float64 (n_values,), and (n_values, n_rows)
        Before the first tree of all, and by the trees that are there.
    """
    begun = _begin(model, given, target, sides) if begun is None else begun
    loss, initial, raw = begun.loss, begun.initial, begun.raw
    if kept is not None:
        initial, raw = kept
    rows = BoostedRows(given.coded, sides.y, begun.units, target.weight_unit, begun.chosen, raw)
    growing = Growing(
        loss,
        initial,
        _rules(model, given, target),
        float(model.learning_rate),
        int(model.max_iter),
        subsample=float(model.subsample),
        seed=given.seed,
        order=order_of_joint(model, target),
    )
    learned = {
        **model._learned_of(given.book, target),
        "n_trees_per_iteration_": growing.n_trees,
        "codebook_": given.book,
        "_initial": initial,
        "_fit_loss": loss,
        "_fit_seed": given.seed,
    }
    if begun.has_offset:
        learned["_has_offset"] = True
    watch = None
    if sides.held is not None or evals is not NO_EVALS or model.oob_score:
        watch = _watch(model, learned, given, target, sides, evals, run, rows, growing)
    learned["do_early_stopping_"] = watch is not None and watch.decides
    return Start(learned, rows, growing, watch, given.offset, begun)


def order_of_joint(model: BaseBoosting, target: Target) -> np.ndarray | None:
    """The order of values that have trees together; None: each has trees of its own.

    ValueError: something asks for what such trees do not do.
    """
    n_values = raw_by_output(target)
    if sum(n_values) == 1 or model.multi_strategy == ONE_EACH:
        return None
    asked = {
        "path_smooth": model.path_smooth > 0,
        "monotonic_cst": model.monotonic_cst is not None,
    }
    refused = [what for what, is_asked in asked.items() if is_asked]
    if refused:
        raise ValueError(
            f"multi_strategy={model.multi_strategy!r} does not support {refused[0]}. Set "
            f"multi_strategy={ONE_EACH!r}."
        )
    outputs = target.order_of_outputs() if isinstance(target, Outputs) else [0]
    of_outputs = np.split(np.arange(sum(n_values)), np.cumsum(n_values)[:-1])
    return np.concatenate([of_outputs[output] for output in outputs])


def _begin(model: BaseBoosting, given: CodedTable, target: Target, sides: Sides) -> Beginning:
    """Where a fit of these rows begins."""
    loss, of_loss, train = sides.loss, sides.y, sides.train
    units, weight, chosen, held = units_of(target), None, None, None
    is_here = isinstance(given.coded, CodedMatrix)
    if not isinstance(train, slice):
        chosen = train.astype(np.uint32) if is_here else _mask(train, target.n_rows)
    if sides.held is not None and not is_here and model.validation_fraction is not None:
        held = _mask(sides.held, target.n_rows)
    if units is not None:
        weight = units[train] * target.weight_unit
        if (weight == 1).all():
            units = weight = None  # rows without weight are not there
        else:
            units = np.ascontiguousarray(units, dtype=np.int64)
    own = target if chosen is None else target.take(train)
    y = of_loss[..., train]
    targets = own.each() if isinstance(own, Outputs) else [own]
    losses = losses_by_output(loss, sum(raw_by_output(own)))
    begins = [
        model._begin(one, each, of_output, weight)
        for (one, _), each, of_output in zip(losses, targets, np.atleast_2d(y), strict=True)
    ]
    initial = np.concatenate(begins)
    raw, offset = None, given.offset
    if offset is not None or model.init == "zero":
        initial = np.zeros(len(initial))
    if offset is not None:
        raw = np.ascontiguousarray(offset.T)
        check_begin(loss, y, offset[train])
    if losses[0][0].beyond is not None:
        begin = initial if offset is None else offset[train].T
        weighs = None if units is None else units[train]
        if isinstance(loss, OutputLosses):
            loss = loss.with_width(y, begin, weighs)
        elif isinstance(loss, Loss):
            loss = loss.with_width(y, begin[0], weighs)
    return Beginning(loss, initial, units, chosen, raw, held, offset is not None)


def _mask(rows: np.ndarray | slice, n_rows: int) -> np.ndarray:
    """Which rows these are, bool (n_rows,)."""
    found = np.zeros(n_rows, dtype=bool)
    found[rows] = True
    return found


def check_begin(loss: AnyLoss, y: np.ndarray, offset: np.ndarray) -> None:
    """Refuse (ValueError) raw predictions whose loss is not finite; derivatives were not, too."""
    first = losses_by_output(loss, 1)[0][0]
    if isinstance(first, OwnLoss):
        return  # whose derivatives are checked
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(loss.mean(y, offset, None))
    if not is_finite:
        unit = "logarithms of means" if first.is_log else "raw predictions"
        raise ValueError(
            f"Rows begin with an infinite loss {loss.name!r}: init_score has to be {unit}."
        )


def _held(given: CodedTable, of_loss: np.ndarray, target: Target, rows: np.ndarray | slice) -> Held:
    """The rows that are scored; nothing is kept here of those that others score."""
    if isinstance(target, SpreadTarget) or getattr(given.coded, "regime", None) == "partitioned":
        return NOTHING_HERE
    units = units_of(target)
    weight = None if units is None else units[rows] * target.weight_unit
    numbers = np.arange(target.n_rows)[rows]
    offset = None if given.offset is None else given.offset[rows]
    return Held(given.X, numbers, given.y[rows], of_loss[..., rows], weight, offset)


def _watch(
    model: BaseBoosting,
    learned: dict[str, Any],
    given: CodedTable,
    target: Target,
    sides: Sides,
    evals: EvalSets,
    run: Runner,
    grown: BoostedRows,
    growing: Growing,
) -> Watch | None:
    """What scores rows after each iteration; None: there are none.

    ValueError: two sets, or two measures, have one name; or there are measures, and no rows.
    """
    own = copy.copy(model)
    own.__dict__.update(learned, forest_=Forest(()))
    predictor, held = own._predictor(), sides.held
    sets: list[tuple[str, Held, LeafLookup | None, type[ScoredRows]]] = []
    is_here = isinstance(given.coded, CodedMatrix)
    others = [] if is_here else [each for each in evals.sets if each.columns is not None]
    for each in evals.sets:
        if each in others:
            sets.append((each.name, NOTHING_HERE, None, OthersElsewhere))
        else:
            sets.append((each.name, *each.here().read(predictor, run), ScoredRows))
    is_apart = held is None or model.validation_fraction is not None
    decides = held is not None or (len(sets) > 0 and bool(model.early_stopping))  # "auto" is True
    own.do_early_stopping_ = decides
    if held is not None:
        name = "validation" if is_apart else evals.training or "training"
        walked = CodedRows(given.coded) if is_here else None
        there = HeldElsewhere if is_apart else ScoredElsewhere
        held_rows = _held(given, sides.y, target, held)
        sets.append((name, held_rows, walked, ScoredRows if is_here else there))
    if evals.training is not None and is_apart:
        own_rows = _held(given, sides.y, target, sides.train)
        sets.append((evals.training, own_rows, None, ScoredRows if is_here else ScoredElsewhere))
    names = [name for name, *_ in sets] + [UNDRAWN] * model.oob_score
    if len(set(names)) < len(names):
        raise ValueError(f"Names of rows to be scored must differ. Got {names}.")
    if not sets and evals.metrics:
        raise ValueError("There are no rows to be scored by eval_metric. Give an eval_set.")
    if not names:
        return None
    first = "score" if model.scoring is None else name_of(model.scoring)
    if evals.metrics.get(first, model.scoring) != model.scoring:
        raise ValueError(f"eval_metric and scoring have two scorers by the name {first!r}.")
    asked = {first: model.scoring, **evals.metrics}
    found = []
    for name, rows, table, kind in sets:
        is_spread = kind is not ScoredRows and given.coded.regime == "partitioned"
        if is_spread and list(asked) != ["loss"]:
            raise ValueError(
                "Rows that stay on their workers are scored by the loss only. Give other rows as "
                "X_val and y_val or as eval_set for other scorers, or say regime='replicated'."
            )
        about = own, predictor, rows
        measures = {
            each: scored(*about, scorer, "scoring" if each == first else "eval_metric")
            for each, scorer in asked.items()
        }
        raw = raw_before(predictor.initial, len(rows.rows), rows.offset)
        found.append(kind(name, rows.rows, table, np.ascontiguousarray(raw), measures))
    if model.oob_score:
        found.append(_undrawn(predictor, grown, growing, given.offset))
    how = int(model.n_iter_no_change), float(model.tol), decides, is_apart
    return Watch(found, *how, OtherTables.of(others, predictor) if others else None)


def _undrawn(
    predictor: BoostedPredictor, grown: BoostedRows, growing: Growing, offset: np.ndarray | None
) -> ScoredRows:
    """Those rows of a fit that an iteration has not drawn."""
    if not isinstance(grown.coded, CodedMatrix):
        nothing = np.empty(0)
        raw = raw_before(predictor.initial, 0, None)
        measure = ByUndrawn(predictor.loss, nothing, None, None, growing)
        return UndrawnElsewhere(UNDRAWN, nothing, None, raw, {"loss": measure})
    own = np.arange(grown.n_rows) if grown.chosen is None else grown.chosen
    raw = raw_before(predictor.initial, len(own), None if offset is None else offset[own])
    measure = ByUndrawn.of(grown, growing, predictor.loss)
    return ScoredRows(UNDRAWN, own, None, np.ascontiguousarray(raw), {"loss": measure})


def _rules(model: BaseBoosting, given: CodedTable, target: Target) -> BoostingRules:
    """The rules of all trees."""
    book = given.book
    barred = nearly_ids(book, given.coded.n_rows) if book.categories else {}
    return BoostingRules(
        max_leaf_nodes=model.max_leaf_nodes,
        max_depth=model.max_depth,
        min_samples_split=int(model.min_samples_split),
        min_samples_leaf=int(model.min_samples_leaf),
        min_child_weight=float(model.min_child_weight),
        min_split_gain=float(model.min_split_gain),
        l2=float(model.l2_regularization),
        l1=float(model.l1_regularization),
        max_delta_step=float(model.max_delta_step),
        path_smooth=float(model.path_smooth),
        category_penalty=float(model.category_penalty),
        handle_unknown="majority" if model.handle_unknown == "majority" else "missing",
        monotonic=directions_of(model.monotonic_cst, book, target),
        interactions=interactions_of(model.interaction_cst, book, barred),
        column_weights=units_of_weights(model.feature_weights, book),
        max_features=_share_of_columns(model, given.coded.n_columns - len(barred)),
        columns_by_tree=float(model.colsample_bytree),
        seed=given.seed,
    )


def _share_of_columns(model: BaseBoosting, n_columns: int) -> float:
    """Share of a tree's columns that are drawn at each node, which takes the next whole number."""
    if isinstance(model.max_features, Real) and not isinstance(model.max_features, Integral):
        return float(model.max_features)
    of_tree, n_drawn = _columns_of_tree(model, n_columns), drawn_columns(model, n_columns)
    return 1.0 if n_drawn == of_tree else (n_drawn - 0.5) / of_tree


def drawn_columns(model: BaseBoosting, n_columns: int) -> int:
    """How many columns are drawn at each node, of a table of so many."""
    of_tree, asked = _columns_of_tree(model, n_columns), model.max_features
    if isinstance(asked, Real) and not isinstance(asked, Integral):
        return max(1, math.ceil(asked * of_tree))
    return columns_per_split(asked, of_tree)


def _columns_of_tree(model: BaseBoosting, n_columns: int) -> int:
    return max(1, math.ceil(model.colsample_bytree * n_columns))
