"""Rows that a boosted model is scored on while it grows, as the user gives them to `fit`.

    X_val, y_val          ──▶ "validation"           ─┐ columns as at fit
    eval_set[0], [1], ... ──▶ "valid_0", "valid_1"   ─┴──▶ walk down each new tree, by their values
    a pair of the fit's rows ▶ "training", whose raw predictions the growth has

They are no rows of the table: no cut point, category or class is theirs, and all rows of the table
are grown from. As in scikit-learn, class weights do not concern them. Rows of weight zero are not
there. The first set that is not the training rows may end the fit, by the parameter `scoring`; what
`eval_metric` names is only told.

Sets that are Dask collections stay on the workers of a cluster where the model grows there, and is
scored by the loss. Their partitions are dealt out to the blocks of the fit (`OtherTables`)::

    X_val, y_val, ...  ──▶ a `PartOfSet` of each partition ──▶ with a block, to its member
    members            ──▶ walk down each new tree, and add up losses
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from sys import getsizeof
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees._other_words import did_you_mean
from dtrees.coding.codebook import CodeBook
from dtrees.coding.outputs import columns_of_outputs, names_of_targets
from dtrees.coding.tables import Table, read_table, row_values
from dtrees.coding.target import GivenRows, check_weights, weights_differ, weights_given
from dtrees.core.model.tree import Tree
from dtrees.core.predict.binned import LeafLookup
from dtrees.core.predict.packed_forest import RawCells
from dtrees.core.predict.raw import leaves_of_cells, raw_before
from dtrees.estimators.boosted_stopping import Held, ScoredParts
from dtrees.estimators.fit_plan import one_target
from dtrees.estimators.prediction import BoostedPredictor, offsets_of, side_by_side
from dtrees.parallel import FitStatistics, RowColumns, are_alike, computed, is_lazy
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from dtrees.estimators.boosting import BaseBoosting

SHOWN = 5  # labels in a message


@dataclass(frozen=True, eq=False)
class Whole:
    """Rows that scikit-learn's validations take none of: it looks like no array."""

    rows: Any


@dataclass(frozen=True, eq=False)
class ValueRows(LeafLookup):
    """Rows of tables that were not coded, walked by their values, each label of which is read once.

    May be sent elsewhere, where they walk on one thread.
    """

    cells: Sequence[RawCells]
    run: Runner = serial

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueRows, ([RawCells(own.book, own.table) for own in self.cells],)

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows, int32 (n,). O(rows of the tables x depth)."""
        parts = [leaves_of_cells(tree, own, self.run)[0] for own in self.cells]
        found = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int32), *parts])
        return found if len(rows) == len(found) else found[rows]


@dataclass(frozen=True, eq=False)
class EvalSet:
    """Rows to be scored; `words` are what their table and target are called.

    In memory; or collections, whose `columns` stay where they are: `y`, weights and `init_score`.
    """

    name: str
    X: Any
    y: Any
    sample_weight: Any
    init_score: Any
    words: tuple[str, str]
    columns: RowColumns | None = None

    @classmethod
    def of(
        cls,
        name: str,
        given: Sequence[Any],
        words: tuple[str, str],
        admit: Callable[..., tuple[Any, ...]] | None = None,
    ) -> EvalSet:
        """The four parts as they are given; Dask collections are computed.

        `admit`, as `admitted_where_they_are`, is there where they may stay instead. ValueError:
        those that stay have other lengths, or weights that cannot be.
        """
        X, y, weight, start = given
        if admit is not None and is_lazy(X) and hasattr(type(X), "ndim"):
            with _named(words):
                of_rows = {"y": y, "sample_weight": weight, "init_score": start}
                table, y, weight, start = admit(X, of_rows)
                if is_lazy(y):
                    of_rows = {"y": y, "sample_weight": weight, "init_score": start}
                    stats = FitStatistics()
                    columns = RowColumns.of(table, of_rows, stats)
                    if weight is not None:
                        columns.asked(_weights_of, weights_differ, stats)
                    return cls(name, X, y, weight, start, words, columns)
        return cls(name, X, y, weight, start, words).here()

    def here(self) -> EvalSet:
        """Those in memory."""
        X, *others = computed(self.X, self.y, self.sample_weight, self.init_score)
        y, weight, start = map(row_values, others)
        return EvalSet(self.name, X, y, weight, start, self.words)

    def parts(self, predictor: BoostedPredictor) -> Callable[[], list[Any]]:
        """Makes a `PartOfSet` of each partition: tasks of Dask, anew with each call."""
        assert self.columns is not None
        table, own = self.columns.table, EvalSet(self.name, None, None, None, None, self.words)
        with _named(self.words):
            predictor.check_columns(table.names, table.n_columns)
        read = partial(PartOfSet.of, own, predictor)
        given = read, "scored-part", [part for part, *_ in table.parts()]
        return partial(self.columns.each, *given)

    def read(
        self, predictor: BoostedPredictor, run: Runner, first_row: int | None = None
    ) -> tuple[Held, ValueRows]:
        """The rows as they are scored, and as they walk down the trees of a fit.

        `first_row` is the number of the first of these rows, where there are others.

        ValueError: columns are not those of the fit, lengths differ, or a row of positive weight
        has a label that is none of the fit, or a target for which the loss has no use.
        """
        X_word, y_word = self.words
        n_values, n_outputs = len(predictor.initial), getattr(predictor.loss, "n_outputs", 1)
        known = predictor.classes
        classes = known if isinstance(known, list) else [known] * n_outputs
        with _named(self.words):
            table = predictor.check(self.X, run)
            columns = columns_of_outputs(self.y) or [one_target(self.y, predictor.estimator)]
            if len(columns) != n_outputs:
                raise ValueError(f"y has {n_outputs} columns, {y_word} has {len(columns)}.")
            y = columns[0] if n_outputs == 1 else side_by_side(columns)
            if len(y) != table.n_rows:
                raise ValueError(f"{X_word} has {table.n_rows} rows, {y_word} has {len(y)} values.")
            weight, start = self.sample_weight, self.init_score
            if weight is not None:
                is_part = first_row is not None
                weight = (weights_given if is_part else check_weights)(weight, len(y))
            start = None if start is None else offsets_of(start, len(y), n_values)
            rows = np.arange(len(y))
            if weight is not None:
                rows = np.flatnonzero(weight)
                y, weight = y[rows], weight[rows]
                columns = [column[rows] for column in columns]
                start = None if start is None else start[rows]
            of_loss = np.empty(0)
            if len(rows) > 0:  # of a part that weighs something
                found = [
                    _of_loss(column, labels, y_word, first_row or 0)
                    for column, labels in zip(columns, classes, strict=True)
                ]
                of_loss = found[0] if n_outputs == 1 else np.stack(found)
                predictor.loss.check(of_loss)
        walked = ValueRows([RawCells(predictor.book, table)], run)
        return Held(self.X, rows, y, of_loss, weight, start), walked


@contextmanager
def _named(words: tuple[str, str]) -> Iterator[None]:
    """What is wrong with rows to be scored is said of them (ValueError)."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"Rows to be scored ({', '.join(words)}): {error}") from error


def _weights_of(y: Any, sample_weight: Any, init_score: Any, first_row: int) -> GivenRows:
    """Weights of some rows, which are what is asked about."""
    weight = weights_given(sample_weight, len(y), first_row)
    return GivenRows(np.empty(0), None, weight, first_row)


@dataclass(frozen=True, eq=False)
class PartOfSet:
    """Rows of a partition of a set, without those that weigh nothing.

    Attributes
    ----------
    name : str
        Of the set.
    table : Table
        With all rows.
    rows : intp (n,)
        Numbers of the rows.
    of_loss, weight, raw : float64 (n,) or (n, n_values)
        Targets as the loss wants them, weights or None, and what raw predictions begin with.
    """

    name: str
    table: Table
    rows: np.ndarray
    of_loss: np.ndarray
    weight: np.ndarray | None
    raw: np.ndarray

    @classmethod
    def of(
        cls,
        own: EvalSet,
        predictor: BoostedPredictor,
        y: Any,
        weight: Any,
        start: Any,
        first_row: int,
        X: Any,
    ) -> PartOfSet:
        """Those of a set, from the columns of a partition `X`; ValueError as `EvalSet.read`."""
        table = predictor.table_of(X)
        own = replace(own, X=table, y=y, sample_weight=weight, init_score=start)
        held, walked = own.read(predictor, serial, first_row)
        raw = raw_before(predictor.initial, len(held.rows), held.offset)
        (cells,) = walked.cells
        return cls(own.name, cells.table, held.rows, held.of_loss, held.weight, raw)

    def __sizeof__(self) -> int:
        """Bytes, for Dask."""
        arrays = [each for each in vars(self).values() if isinstance(each, np.ndarray)]
        return object.__sizeof__(self) + sum(each.nbytes for each in arrays) + getsizeof(self.table)


@dataclass(frozen=True, eq=False)
class OtherTables:
    """Sets that stay on the workers of a cluster, as a model reads them.

    Attributes
    ----------
    makers : list of callable
        `EvalSet.parts` of each.
    join : callable
        What a member does with parts that it has, as `SpreadScores.join`; picklable.
    """

    makers: Sequence[Callable[[], list[Any]]]
    join: Callable[[str, Sequence[PartOfSet]], ScoredParts]

    @classmethod
    def of(cls, sets: Sequence[EvalSet], predictor: BoostedPredictor) -> OtherTables:
        """Those of some sets."""
        join = partial(_joined, predictor.book, len(predictor.initial))
        return cls([each.parts(predictor) for each in sets], join)

    def parts(self) -> list[Any]:
        """Parts of all sets, as tasks of Dask."""
        return [part for make in self.makers for part in make()]


def _joined(book: CodeBook, n_values: int, name: str, parts: Sequence[PartOfSet]) -> ScoredParts:
    """Rows of a set, how they walk, targets, weights, and raw predictions; there may be none."""
    own = [part for part in parts if part.name == name]
    firsts = np.cumsum([0, *(part.table.n_rows for part in own)])
    rows = [part.rows + first for part, first in zip(own, firsts[:-1], strict=True)]
    weights = [part.weight for part in own if part.weight is not None]
    raws = [part.raw for part in own]
    return (
        np.concatenate([np.empty(0, dtype=np.intp), *rows]),
        ValueRows([RawCells(book, part.table) for part in own]),
        np.concatenate([np.empty(0), *(part.of_loss for part in own)]),
        np.concatenate(weights) if weights else None,
        np.concatenate([np.empty((0, n_values)), *raws]),  # which steps are added to
    )


@dataclass(frozen=True, eq=False)
class EvalSets:
    """All rows to be scored, and by what.

    Attributes
    ----------
    sets : tuple of EvalSet
        Those that are no rows of the fit.
    training : str or None
        The name of the rows of the fit; None: they are not scored.
    metrics : dict of str to scorer
        By name, beside the one of the parameter `scoring`.
    """

    sets: tuple[EvalSet, ...] = ()
    training: str | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def may_be_elsewhere(self, model: BaseBoosting) -> bool:
        """Whether rows of the fit may be where nobody asks them but for sums.

        Scorers but the loss have predictions of all.
        """
        is_scored = self.training is not None
        is_scored |= not self.sets and model.early_stopping is not False
        return not is_scored or _are_losses([model.scoring, *self.metrics.values()])

    @classmethod
    def of(
        cls,
        fitted: tuple[Any, Any, Any, Any],
        own: tuple[Any, Any, Any, Any],
        listed: tuple[Any, Any, Any, Any],
        eval_metric: Any,
        model: BaseBoosting,
        admit: Callable[..., tuple[Any, ...]] | None = None,
    ) -> EvalSets:
        """What was given to `fit`; Dask collections come to this process, or stay.

        fitted, own
            Table, target, weights and ``init_score``: of the fit, and as ``X_val`` and its like.
        listed
            ``eval_set``, ``eval_names``, ``eval_sample_weight`` and ``eval_init_score``.
        model
            That is to be fitted.
        admit
            As for `EvalSet.of`, if the model may grow where collections are.

        ValueError: parts are missing or too many. TypeError: something is no list of pairs.
        """
        sets, training = [], None
        metrics = {} if eval_metric is None else _metrics(eval_metric, model.loss)
        if not _are_losses([model.scoring, *metrics.values()]):
            admit = None
        if any(each is not None for each in own):
            _check_names("y_val", own[1], fitted[1])
            sets.append(_own_set(own, model.early_stopping, admit))
        for number, (name, given) in enumerate(_pairs(*listed)):
            _check_names(f"eval_set[{number}][1]", given[1], fitted[1])
            is_training = _are_equal(given[1], fitted[1], _table_of_rows)
            if is_training and _are_equal(given[0], fitted[0], read_table):
                if training is not None:
                    raise ValueError(
                        f"eval_set[{number}] are the rows of the fit, and so is a pair before it. "
                        "Leave one of them out."
                    )
                training = "training" if name is None else name
                pairs = zip(given[2:], fitted[2:], strict=True)
                if any(a is not None and not _are_equal(a, b, _table_of_rows) for a, b in pairs):
                    raise ValueError(
                        f"eval_set[{number}] are the rows of the fit, which have its weights and "
                        "its init_score. Give None for them."
                    )
            else:
                words = f"eval_set[{number}][0]", f"eval_set[{number}][1]"
                name = f"valid_{number}" if name is None else name
                sets.append(EvalSet.of(name, given, words, admit))
        for each in sets:
            if (each.init_score is None) != (fitted[3] is None):
                start = "init_score_val" if each.words[0] == "X_val" else "eval_init_score"
                raise ValueError(
                    f"Rows that are scored begin as the rows of the fit do. Give init_score and, "
                    f"for {each.words[0]}, {start}; or none of both."
                )
        return cls(tuple(sets), training, metrics)


def _are_losses(measures: Sequence[Any]) -> bool:
    return all(isinstance(each, str) and each == "loss" for each in measures)


def _own_set(
    own: tuple[Any, ...], early_stopping: Any, admit: Callable[..., tuple[Any, ...]] | None
) -> EvalSet:
    """The rows that are given as ``X_val`` and its like; some of them are not None."""
    own = tuple(each.rows if isinstance(each, Whole) else each for each in own)
    X_val, y_val = own[:2]
    if X_val is None and y_val is None:
        name = "sample_weight_val" if own[2] is not None else "init_score_val"
        raise ValueError(f"{name} is provided without X_val and y_val.")
    for name, other, value in (("X_val", "y_val", y_val), ("y_val", "X_val", X_val)):
        if value is None:
            raise ValueError(f"{name} is provided, but {other} was not provided.")
    if early_stopping is False:
        raise ValueError(
            "X_val and y_val are for early stopping, and early_stopping is False. Set it to "
            "'auto' or True, leave them out, or give them as eval_set, which is scored only."
        )
    return EvalSet.of("validation", own, ("X_val", "y_val"), admit)


def _check_names(word: str, y: Any, of_fit: Any) -> None:
    """Refuse several targets of other names than those of the fit, or in another order."""
    found, names = (
        names_of_targets(each.rows if isinstance(each, Whole) else each) for each in (y, of_fit)
    )
    if min(len(found), len(names)) > 1 and found != names:
        raise ValueError(
            f"y has the targets {', '.join(names)}, and {word} has {', '.join(found)}. Give {word} "
            "the same columns in the same order."
        )


def _are_equal(one: Any, other: Any, read: Callable[[Any], Table]) -> bool:
    """Whether two tables or targets hold the same, in whatever form they are given.

    Dask collections are equal if they are made in the same way. `read` makes a Table.
    """
    if one is None or other is None or is_lazy(one) != is_lazy(other):
        return one is other
    if is_lazy(one):
        return are_alike(one, other)
    try:
        return read(one).equals(read(other))
    except (TypeError, ValueError):
        return False  # what is wrong is told where it is read to be fitted, or scored


def _table_of_rows(values: Any) -> Table:
    """A target, or what else has a value or more for each row, as a table."""
    array = np.asarray(row_values(values))
    return read_table(array.reshape(len(array), -1))


def _pairs(eval_set: Any, names: Any, weights: Any, starts: Any) -> list[tuple[str | None, tuple]]:
    """Name and parts of each pair of ``eval_set``; no name: None."""
    lists = {"eval_names": names, "eval_sample_weight": weights, "eval_init_score": starts}
    given = {name: value for name, value in lists.items() if value is not None}
    if eval_set is None:
        if given:
            raise ValueError(f"{min(given)} is provided without eval_set.")
        return []
    is_pair = isinstance(eval_set, tuple) and not all(isinstance(own, tuple) for own in eval_set)
    pairs = [eval_set] if is_pair else eval_set
    if not isinstance(pairs, list | tuple) or any(
        not isinstance(pair, tuple | list) or len(pair) != 2 for pair in pairs
    ):
        others = " of something else" if isinstance(pairs, list | tuple) else ""
        raise TypeError(
            "eval_set must be a list of pairs (X, y), whose names are given as eval_names. "
            f"Got a {type(eval_set).__name__}{others}."
        )
    for name, value in given.items():
        if not isinstance(value, list | tuple) or len(value) != len(pairs):
            raise ValueError(f"{name} must be a list with an entry for each pair of eval_set.")
    for name in names or ():
        if not isinstance(name, str):
            raise TypeError(f"eval_names must be strings. Got {name!r}.")
    nothing = [None] * len(pairs)
    parts = zip(names or nothing, pairs, weights or nothing, starts or nothing, strict=True)
    return [(name, (*pair, weight, start)) for name, pair, weight, start in parts]


def name_of(scorer: Any) -> str:
    """What a scorer is called in curves: its own name, or that of its function.

    Only the loss of a model is called "loss": of losses, lower is better.
    """
    if isinstance(scorer, str):
        return scorer
    function = getattr(scorer, "_score_func", scorer)
    name = getattr(function, "__name__", type(function).__name__)
    if getattr(scorer, "_sign", 1) < 0:
        return f"neg_{name}"
    return "score" if name == "loss" else name


def _metrics(eval_metric: Any, loss: Any) -> dict[str, Any]:
    """Scorers by name, of which those of scikit-learn are known; `loss` is that of the model."""
    from sklearn.metrics import get_scorer_names

    if isinstance(eval_metric, Mapping):
        named = list(eval_metric.items())
    else:
        listed = eval_metric if isinstance(eval_metric, list | tuple) else [eval_metric]
        named = [(name_of(one), one) for one in listed]
    found = dict(named)
    for name, one in named:
        if not isinstance(name, str) or not (isinstance(one, str) or callable(one)):
            raise TypeError(
                "eval_metric must be a name, a scorer, a list of these, or a dict of scorers by "
                f"name. Got {eval_metric!r}."
            )
        if name == "loss" and one != "loss":
            raise ValueError("eval_metric has a scorer by the name 'loss'. Give it another name.")
        if found[name] != one:
            raise ValueError(f"eval_metric has two scorers by the name {name!r}. Give a dict.")
        if isinstance(one, str) and one not in ("loss", *get_scorer_names()):
            hint = did_you_mean(one, ["loss", *get_scorer_names()], loss)
            raise ValueError(
                f"The eval_metric {one!r} is not 'loss' and no scorer of scikit-learn "
                f"(sklearn.metrics.get_scorer_names()).{hint}"
            )
    return found


def _of_loss(y: np.ndarray, classes: np.ndarray | None, word: str, first_row: int) -> np.ndarray:
    """A target as its loss wants it: numbers, or those of the classes of a fit; float64."""
    own = GivenRows.of(y, None, classes is not None, first_row)
    if classes is None or own.classes is None:
        return own.y
    known = {label: number for number, label in enumerate(classes.tolist())}
    labels = own.classes.tolist()
    unknown = [label for label in labels if label not in known]
    if unknown:
        raise ValueError(f"{word} has labels that are none of y: {unknown[:SHOWN]}.")
    return np.array([known[label] for label in labels], dtype=np.float64)[own.y]
