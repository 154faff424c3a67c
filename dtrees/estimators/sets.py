"""Estimators for several training sets of one table, from one coding and one growth.

What `dtrees.model_selection` asks of an estimator: models that are those of separate fits in which
the rows outside of a set weigh nothing, and what they say of rows of the table, read from the codes
that are there::

    TrainingTable(X, y, weights) --once--> codes, target
    sets of rows ----------------------------+--> _grow_sets --> trees by set --> models
                                             |                                      |
                                             +---------- codes of any rows ------> answers

Weights of a set are integers in the unit that its own fit would choose. Where units differ between
sets (class weights, fractional weights), and where each forest ends at a tree of its own
(``oob_tol``), each set grows on its own, from the same codes; so it does where the growth of a
table cannot be shared (`dtrees.core.shared`). The log says so, and why, once for a table.
Out-of-bag results come from the same codes, too, when the trees have grown.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import joblib
import numpy as np

from dtrees.callbacks import Bar
from dtrees.coding.codebook import SAMPLE_ROWS, CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.tables import Table
from dtrees.coding.target import Target
from dtrees.core.coded_walk import WalkedRows
from dtrees.core.means import mean_of_sums, offsets_of
from dtrees.core.model import Tree
from dtrees.core.resampling import Resampling, of_sets
from dtrees.estimators.base import BaseTrees, Encoded, Training, rows_of
from dtrees.parallel import (
    CodedPartitions,
    Ledger,
    LocalRunner,
    PartitionedTable,
    admitted,
    threaded,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class FittedSets:
    """Models of several training sets.

    Attributes
    ----------
    models : list
        A fitted estimator for each set, or the error that its fit would raise.
    encoded : Encoded
        The table, and its target with all rows.
    coded_rows : WalkedRows
        The table, ready to be walked.
    y : int64 or float64 (n_rows,)
        Numbers of classes, or the target as it was given.
    n_live : int64 (n_sets,)
        Rows of positive weight in each set.
    """

    models: list[Any]
    encoded: Encoded
    coded_rows: WalkedRows
    y: np.ndarray
    n_live: np.ndarray
    _known: dict[int, tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, init=False, repr=False
    )

    _values: dict[int, tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, init=False, repr=False
    )

    @property
    def classes(self) -> np.ndarray | None:
        """Labels of the classes, sorted; None for regression."""
        target = self.encoded.target
        return target.classes if target.kind == "classification" else None

    def leaves(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Leaves of some rows in the tree of a set; of those that were asked for last, at hand."""
        if not self._has_leaves(number, rows):
            found = self.coded_rows.leaves(trees_of(self.models[number])[0], rows)
            self._known[number] = rows, found
        return self._known[number][1]

    @property
    def has_forests(self) -> bool:
        """Whether a model is made of several trees."""
        return any(hasattr(model, "forest_") for model in self.models)

    def depth(self, number: int) -> int:
        """Depth of a model's deepest tree."""
        return max(tree.max_depth for tree in trees_of(self.models[number]))

    def values(self, number: int, rows: np.ndarray) -> np.ndarray:
        """What a model says of some rows: float64 (n, n_classes), or (n, 1) for regression.

        What was asked last of a model is at hand, where codes are on workers.

        Parameters
        ----------
        number : int
            Of the set.
        rows : int64 (n,)
            Row numbers of the table.
        """
        if self.coded_rows.is_here:
            return self.values_of(self.models[number], rows)
        known = self._values.get(number)
        if known is None or not np.array_equal(known[0], rows):
            found = self.values_of(self.models[number], rows)
            known = self._values[number] = rows, found
        return known[1]

    def values_of(self, model: Any, rows: np.ndarray) -> np.ndarray:
        """The same for any model that was grown from these codes."""
        trees = trees_of(model)
        if len(trees) == 1:
            return trees[0].value_of(self.coded_rows.leaves(trees[0], rows))
        total = self.coded_rows.sums(trees, rows, threaded(model.n_jobs))
        return mean_of_sums(total, len(trees), offsets_of(trees))

    def bring_leaves(self, rows: Mapping[int, np.ndarray], keeps: bool = True) -> None:
        """Get leaves ready, all at once, that will be asked for.

        Codes that are on workers are passed once for all of them; without it, once for each.

        Parameters
        ----------
        rows : mapping of int to int64 (n,)
            By set, whose model is there: rows that go down each of its trees.
        keeps : bool, default=True
            Whether leaves that are at hand need not be fetched again.
        """
        if self.coded_rows.is_here:
            return
        self.coded_rows.bring(
            [
                (trees_of(self.models[number]), mine)
                for number, mine in rows.items()
                if not (keeps and self._has_leaves(number, mine))
            ]
        )

    def bring_values(self, sides: Iterable[tuple[int, np.ndarray]]) -> None:
        """The same for `values`: sets, whose models are there, and rows; a set may come again."""
        if self.coded_rows.is_here:
            return
        asked = [(trees_of(self.models[number]), mine) for number, mine in sides]
        alone = [one for one in asked if len(one[0]) == 1]
        if alone:
            self.coded_rows.bring(alone)
        if len(alone) < len(asked):
            self.coded_rows.bring_values([one for one in asked if len(one[0]) > 1])

    def _has_leaves(self, number: int, rows: np.ndarray) -> bool:
        known = self._known.get(number)
        return known is not None and np.array_equal(known[0], rows)


def trees_of(model: Any) -> tuple[Tree, ...]:
    """The trees of a fitted estimator."""
    return model.forest_.trees if hasattr(model, "forest_") else (model.tree_.model,)


@dataclass(frozen=True, eq=False)
class Codes:
    """A table as one way of coding has it.

    Attributes
    ----------
    book : CodeBook
    coded : CodedMatrix or CodedPartitions
    rows : WalkedRows
        The same codes, ready to be walked.
    ledger : Ledger
        What was done to make them.
    """

    book: CodeBook
    coded: CodedMatrix | CodedPartitions
    rows: WalkedRows
    ledger: Ledger


class TrainingTable:
    """A table, its target and weights, read once, and coded once for each way of coding.

    Estimators with other parameters share the codes, unless they ask for other ones (``max_codes``,
    ``categorical_features``, ``unseen``, and the seed, where values are sampled).

    Parameters
    ----------
    X, y, sample_weight
        As for an estimator's ``fit``.
    ledger : Ledger or None, default=None
        Where it is written down what has been done for the table so far.
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any, ledger: Ledger | None = None) -> None:
        self._ledger = Ledger() if ledger is None else ledger
        columns = {"y": y, "sample_weight": sample_weight}
        self.X, self.y, self.sample_weight = admitted(X, columns, self._ledger)
        self._read: tuple[Table | PartitionedTable, np.ndarray] | None = None
        self._seed: int | None = None
        self._codes: dict[str, Codes] = {}
        self._told: set[str] = set()

    def tell(self, alone: Mapping[str, int], n_sets: int) -> None:
        """Log how many models of several sets share nothing, by reason; once for a table."""
        for reason, count in alone.items():
            many = f"{count} of {n_sets} " if count < n_sets else ""
            said = f"{many}models are fitted one by one: {reason}"
            if count > 0 and n_sets > 1 and said not in self._told:
                self._told.add(said)
                logger.info(said)

    def encoded(self, estimator: BaseTrees, seed: int, run: LocalRunner) -> Encoded:
        """What a fit of an estimator to all rows grows from.

        Raises
        ------
        ValueError
            `X`, `y` or `sample_weight` is not what it should be.
        """
        estimator._check_supported()
        if self._read is None:
            self._read = estimator._read(self.X, self.y)
        table, values = self._read
        target = estimator._encode_target(values, self.sample_weight)
        key = self._key(estimator, seed)
        if key not in self._codes:
            ledger = self._ledger.continued()
            with ledger.phase("coding"):
                book, coded = estimator._code(table, seed, run, ledger)
            self._codes[key] = Codes(book, coded, rows_of(coded), ledger)
        codes = self._codes[key]
        return estimator._resolve(codes.book, codes.coded, target, seed)

    @property
    def n_rows(self) -> int:
        """Rows of the table, which has been read."""
        assert self._read is not None
        return self._read[0].n_rows

    def seed_of(self, estimator: BaseTrees) -> int:
        """A seed for an estimator; without a random state, the same for all of this table."""
        if estimator.random_state is not None:
            return estimator._seed()
        if self._seed is None:
            self._seed = estimator._seed()
        return self._seed

    def coded_rows(self, estimator: BaseTrees, seed: int) -> WalkedRows:
        """The codes that were made for an estimator, ready to be walked."""
        return self._codes[self._key(estimator, seed)].rows

    def ledger(self, estimator: BaseTrees, seed: int) -> Ledger:
        """What was done to code the table for an estimator, for a growth to go on with."""
        return self._codes[self._key(estimator, seed)].ledger.continued()

    def values_of_y(self) -> np.ndarray:
        """The target, as it was read."""
        assert self._read is not None
        return self._read[1]

    def _key(self, estimator: BaseTrees, seed: int) -> str:
        """What codes depend on."""
        samples = estimator.max_codes is not None and self.n_rows > SAMPLE_ROWS
        of_sample = seed if samples else None
        how = (estimator.max_codes, estimator.categorical_features, estimator.unseen, of_sample)
        return joblib.hash(how)


def fit_sets(
    estimator: BaseTrees,
    X: Any,
    y: Any,
    sample_weight: Any,
    rows: np.ndarray,
    *,
    bar: Bar | None = None,
) -> FittedSets:
    """Fit a clone of an estimator to each training set of a table that nobody else needs.

    Parameters
    ----------
    estimator, bar
        As for `fit_table`.
    X, y, sample_weight
        As for ``fit``.
    rows : bool (n_sets, n_rows)
        Training rows of each set.

    Raises
    ------
    ClusterError, ValueError
        As `fit_table` does.
    """
    return fit_table(estimator, TrainingTable(X, y, sample_weight), of_sets(rows), bar=bar)


def fit_table(
    estimator: BaseTrees, table: TrainingTable, sets: Resampling, *, bar: Bar | None = None
) -> FittedSets:
    """Fit a clone of an estimator to each training set.

    Parameters
    ----------
    estimator : tree or forest
        Never fitted itself.
    table : TrainingTable
    sets : Resampling
        The training sets, as `of_sets` makes them.
    bar : Bar or None, default=None
        Counts the trees of all sets as they come.

    Raises
    ------
    ClusterError
        A Dask cluster is in force, or asked for, and cannot be used.
    ValueError
        A parameter or the table is not what it should be.
    """
    estimator._check_parameters()
    estimator = estimator._unfitted()
    run = threaded(estimator.n_jobs)
    seed = table.seed_of(estimator)  # the same draws for all sets, and all growths of a search
    encoded = table.encoded(estimator, seed, run)
    n_rows = encoded.coded.n_rows
    assert sets.cells is not None
    if len(sets.cells) != n_rows:
        raise ValueError(f"X has {n_rows} rows, but the sets are of {len(sets.cells)}.")
    if encoded.target.kind == "classification":
        values = encoded.target.y.astype(np.int64)
    else:
        values = table.values_of_y().astype(np.float64)
    coded_rows = table.coded_rows(estimator, seed)
    advance = _counting(bar, estimator._n_trees * sets.n_sets)
    ledger = table.ledger(estimator, seed)
    # rows out of bags walk within the growth, those that are scored do not
    own_rows = coded_rows if coded_rows.is_here else rows_of(encoded.coded, ledger)
    training = Training(encoded, own_rows, table.y, run, advance, ledger)
    apart = estimator._fits_apart()
    models: list[Any] = [None] * sets.n_sets
    targets = _targets(estimator, encoded, table.values_of_y(), table.sample_weight, sets)
    alone: Counter[str] = Counter()
    for number, target in enumerate(targets):
        if isinstance(target, Target):
            models[number] = _fitted(estimator, training, target)
            alone[apart or _why_own_units(estimator, table.sample_weight)] += 1
        elif target is not None:
            models[number] = target
            advance(estimator._n_trees)
        elif apart is not None:
            own = encoded.target.only(sets.rows(number))
            models[number] = _fitted(estimator, training, own)
            alone[apart] += 1
    together = [number for number, model in enumerate(models) if model is None]
    some = sets.some(together)
    if len(together) > 1:
        n_alone, reason = estimator._n_alone(encoded, some)
        alone[reason] += n_alone
    table.tell(alone, sets.n_sets)
    if together:
        with ledger.phase("growth"):
            grown = estimator._fit_sets(training, some)
        for number, model in zip(together, grown, strict=True):
            models[number] = model
    n_live = sets.totals(encoded.target.has_weight)
    _report(models, ledger)
    return FittedSets(models, encoded, coded_rows, values, n_live)


def _why_own_units(estimator: BaseTrees, sample_weight: Any) -> str:
    """Why the integers of a set are not those of all rows."""
    name = "y" if sample_weight is None else "sample_weight"
    if getattr(estimator, "class_weight", None) is not None:
        name = "class_weight"
    return f"{name} is counted in other units for each training side"


def _counting(bar: Bar | None, n_trees: int) -> Callable[[int], object]:
    """What hears of trees that have come, where so many are expected."""
    if bar is None:
        return lambda n_trees: None
    bar.expect(n_trees)
    return bar.advance


def _report(models: list[Any], ledger: Ledger) -> None:
    """Give the models the report of all that was done."""
    report = ledger.report()
    for model in models:
        if not isinstance(model, Exception):
            model._fit_report = report


def _fitted(estimator: BaseTrees, training: Training, target: Target) -> Any:
    """An estimator, fitted to the same codes with another target; or the error of its fit."""
    encoded = training.encoded
    rules = estimator._shares().rules(encoded.rules, target)
    own = replace(
        training,
        encoded=replace(encoded, target=target, rules=rules),
        run=threaded(estimator.n_jobs),  # which a forest that ends early cancels
    )
    try:
        return estimator._unfitted()._fit_coded(own)
    except ValueError as error:
        return error


def _targets(
    estimator: BaseTrees, encoded: Encoded, y: np.ndarray, sample_weight: Any, sets: Resampling
) -> Iterator[Target | Exception | None]:
    """For each set None where its target is that of all rows, less the rows outside; else its own.

    The target of a set is what `fit` makes of the weights times 0 and 1.
    """
    whole = encoded.target
    weight = np.ones(whole.n_rows) if sample_weight is None else np.asarray(sample_weight, float)
    counts = sets.totals(whole.has_weight) > 0
    same_units = (
        getattr(estimator, "class_weight", None) is None
        and (whole.w is None or (whole.kind == "classification" and whole.w_exponent == 0))
        and encoded.rules.criterion != "poisson"  # whose targets are looked at set by set
    )
    for number, has_rows in enumerate(counts.tolist()):
        if same_units and has_rows:
            yield None
            continue
        mine = sets.rows(number)
        try:
            own = estimator._encode_target(y, weight * mine)
        except ValueError as error:
            yield error
            continue
        yield None if _is_part(own, whole, mine) else own


def _is_part(own: Target, whole: Target, rows: np.ndarray) -> bool:
    """Whether a target is another one whose other rows weigh nothing, in the same units."""
    units = ("offset", "y_exponent", "w_exponent", "wy_exponent", "class_exponent")
    if any(getattr(own, unit) != getattr(whole, unit) for unit in units):
        return False
    expected = whole if rows.all() else whole.only(rows)
    if expected.wy is None and own.wy is not None and expected.w is not None:
        expected = replace(expected, wy=expected.w.astype(np.int64) * expected.y)
    names = ("y", "w", "wy", "class_multiplier")
    return all(_same(getattr(own, name), getattr(expected, name)) for name in names)


def _same(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)
