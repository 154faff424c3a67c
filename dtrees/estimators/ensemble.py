"""What every forest does: many trees of one coded table.

The table is coded once. A tree is a task, and a function of the codes, the rules, the seed and its
number (`dtrees.core.forest`), so it does not matter which thread or worker grows it, or when::

    parameters, X, y --BaseTrees._encode--> codes, target, rules       once for many sets of rows
                                                 |
                bags: (seed, tree, row) -> times |
                                                 v
                          tree 0   tree 1   tree 2   ...        tasks
                                                 |  one by one, in this order
                       out-of-bag sums, callbacks: go on? or stop
                                                 |
                            estimators_, out-of-bag predictions

Adding trees (``warm_start``) therefore gives the forest that would have been grown at once.
"""

from __future__ import annotations

import logging
import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtrees.callbacks import Callback, ForestFit, ProgressBar, check_callbacks, listening
from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.forest import ForestGrowth
from dtrees.core.model import Forest, Tree
from dtrees.core.out_of_bag import OutOfBag, Votes, sums_of_sets
from dtrees.core.predict import leaves_by_tree
from dtrees.core.resampling import Bags, Resampling
from dtrees.estimators.base import (
    LARGEST_SEED,
    BaseDecisionTree,
    BaseTrees,
    Encoded,
    Training,
    rows_of,
)
from dtrees.estimators.constraints import (
    ArrayOf,
    CallableObject,
    InstanceOf,
    IntegerIn,
    Nothing,
    NumberOf,
    OneOf,
    RealIn,
)
from dtrees.estimators.early_stopping import OobStopping
from dtrees.estimators.prediction import ForestPredictor, Predictor
from dtrees.estimators.unfinished import (
    Saving,
    SoFar,
    brought_along,
    earlier_trees,
    facts_of,
    seed_of,
)
from dtrees.estimators.view import TreeView, columns_with_missing, missing_by_model
from dtrees.export.parts import Parts
from dtrees.export.trees import trees_to_bytes
from dtrees.inspection.importance import mean_importances
from dtrees.parallel import (
    REGIMES,
    Checkpoint,
    Ledger,
    LocalRunner,
    PartitionedTable,
    admitted,
    are_known,
    computed,
    grow_sets,
    grow_trees,
    learn_rows,
    threaded,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SPARE_BITS = 5  # a row is in a bag at most 20 times
OF_SOME_FITS = (  # what a fit may leave and another one not
    "feature_names_in_",
    "oob_score_",
    "oob_scores_",
    "oob_decision_function_",
    "oob_prediction_",
    "_estimators",
    "_fit_facts",
)

logger = logging.getLogger(__name__)


def _no_leaves() -> Iterator[np.ndarray]:
    return iter(())


@dataclass(frozen=True, eq=False)
class Kept:
    """Trees that are there before a fit, and stay.

    Attributes
    ----------
    trees : tuple of Tree
    leaves : callable () -> iterator of intp (n_rows,)
        Of all rows of the fit, tree by tree.
    earlier : tuple of Tree
        Those that this fit has grown before, from number 0 on. They are taken behind `trees`, as if
        they were grown now.
    """

    trees: tuple[Tree, ...] = ()
    leaves: Callable[[], Iterator[np.ndarray]] = _no_leaves
    earlier: tuple[Tree, ...] = ()


class TreeCounter(Callback):
    """Says of each tree that it has come.

    Parameters
    ----------
    advance : callable (int) -> object
    """

    def __init__(self, advance: Callable[[int], object]) -> None:
        self._advance = advance

    def on_tree_end(self, fit: ForestFit, number: int) -> None:
        """One tree more."""
        self._advance(1)


class BaseForest(BaseTrees):
    """What forests of classifiers and of regressors share; not meant to be used itself."""

    _tree_class: ClassVar[type[BaseDecisionTree]]
    _constraints: ClassVar = {
        **BaseTrees._constraints,
        "n_estimators": (IntegerIn(1),),
        "bootstrap": (InstanceOf(bool, "bool"),),
        "max_samples": (IntegerIn(1), RealIn(0, 1, "(]", integers=False), Nothing()),
        "oob_score": (InstanceOf(bool, "bool"), CallableObject()),
        "oob_tol": (RealIn(0, math.inf, "[)"), Nothing()),
        "warm_start": (InstanceOf(bool, "bool"),),
        "verbose": (InstanceOf(Integral, "int"),),
        "regime": (OneOf(REGIMES), Nothing()),
    }
    _learns: ClassVar = {
        **BaseTrees._learns,
        "oob_score_": (InstanceOf(float, "float"),),
        "oob_scores_": (ArrayOf(1, np.dtype(np.float64)),),
        "_fit_seed": (NumberOf(0, LARGEST_SEED),),
        "_fit_bags": (InstanceOf(str, "str"), Nothing()),
        "_fit_facts": (InstanceOf(dict, "dict"),),
    }
    _learns_at_times = (
        BaseTrees._learns_at_times
        | {"oob_score_", "oob_scores_", "oob_decision_function_", "oob_prediction_"}
        | {"_fit_bags", "_fit_facts"}  # not in models of older versions; in unfinished ones
    )

    n_estimators: int
    bootstrap: bool
    max_samples: int | float | None
    oob_score: Any
    oob_tol: float | None
    warm_start: bool
    verbose: int
    regime: str | None

    @abstractmethod
    def _oob_score(self, mean: np.ndarray, y: np.ndarray, target: Target) -> float:
        """Score of out-of-bag predictions, of rows that have one; nan where there are too few."""

    @abstractmethod
    def _oob_predictions(self, mean: np.ndarray) -> dict[str, Any]:
        """The attribute that holds out-of-bag predictions."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        bootstrap_groups: Any = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: Any = None,
    ) -> Any:
        """Grow the forest.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `DecisionTreeClassifier.fit`.
        y : array-like of shape (n_rows,)
            The target.
        sample_weight : array-like of shape (n_rows,), default=None
            Not negative, not all zero. How often a row is in a bag does not depend on its weight,
            which then counts that often.
        bootstrap_groups : array-like of shape (n_rows,), default=None
            Rows of one group are in a bag together, or not at all: patients, days, machines.
            None: every row is a group of its own.
        callbacks : sequence of dtrees.callbacks.Callback, default=None
            Hear of every tree, in the order of the trees, and may stop the fit; the trees so far
            are then the forest.
        checkpoint : str or path, default=None
            A folder, or the URL of one that fsspec knows (``s3://...``), to which complete trees
            are written as they come. A fit that is given the same one, the same table and the same
            parameters goes on with the trees that are there, and makes the forest that would have
            been grown at once; ``n_estimators``, ``n_jobs`` and ``regime`` may be others, and
            ``random_state=None`` takes the seed of the trees that are there. One fit at a time.

        Returns
        -------
        self : object
            The fitted forest.

        Raises
        ------
        ValueError
            A parameter or an input is not what it should be, or `checkpoint` holds trees of
            another fit (the message says what differs); the estimator is then as it was before.
        TypeError
            `callbacks` are no callbacks.
        dtrees.exceptions.ClusterError
            A Dask cluster is in force, or asked for by ``regime``, and cannot be used.
        dtrees.exceptions.WorkerLostError, dtrees.exceptions.SchedulerLostError
            The cluster is gone. The error's ``estimator`` is a forest of the trees that were
            complete, if there are any, and its `resume` goes on.
        dtrees.exceptions.ModelFileError
            `checkpoint` is damaged.
        BaseException
            What a callback raises; the estimator is then as it was before.

        Notes
        -----
        Costs one coding of the table and, for each tree, O(rows of the bag x max_features x
        depth). A forest of the same seed has the same first trees whatever ``n_estimators`` is.
        """
        self._check_parameters()
        kept, seed = self._kept()
        given = {"sample_weight": sample_weight, "bootstrap_groups": bootstrap_groups}
        return self._fit(X, {"y": y, **given}, callbacks, checkpoint, kept, seed)

    def resume(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        bootstrap_groups: Any = None,
        callbacks: Sequence[Callback] | None = None,
        checkpoint: Any = None,
    ) -> Any:
        """Go on with a fit that has lost its cluster.

        For the forest that `dtrees.exceptions.WorkerLostError` and
        `dtrees.exceptions.SchedulerLostError` bring along as ``estimator``. It has the trees that
        were complete and no data, so these are given again; the rest is grown wherever a fit would
        grow it now: on another cluster, or on threads.

        Parameters
        ----------
        X, y, sample_weight, bootstrap_groups
            Those of the fit that ended early.
        callbacks, checkpoint
            As for `fit`.

        Returns
        -------
        self : object
            The forest that the fit would have made, bit for bit.

        Raises
        ------
        ValueError
            This is no forest that a fit left unfinished, or the data or parameters are others than
            in that fit; the message says what differs. The estimator is then as it was before.
        dtrees.exceptions.ClusterError
            As for `fit`, with the trees that there are now.

        Examples
        --------
        ::

            try:
                forest.fit(X, y)
            except (WorkerLostError, SchedulerLostError) as error:
                if error.estimator is None:  # no tree was complete
                    raise
                forest = error.estimator.set_params(regime="local").resume(X, y)
        """
        check_is_fitted(self)
        if "_fit_facts" not in self.__dict__:
            raise ValueError(
                f"This {type(self).__name__} is not of a fit that lost its cluster, so there is "
                "nothing to resume. To add trees to a forest, fit it with warm_start=True."
            )
        self._check_parameters()
        given = {"sample_weight": sample_weight, "bootstrap_groups": bootstrap_groups}
        so_far = SoFar(self.forest_.trees, self._fit_facts)
        return self._fit(X, {"y": y, **given}, callbacks, checkpoint, (), self._fit_seed, so_far)

    def _fit(
        self,
        X: Any,
        columns: Mapping[str, Any],
        callbacks: Sequence[Callback] | None,
        checkpoint: Any,
        kept: tuple[Tree, ...],
        seed: int,
        so_far: SoFar | None = None,
    ) -> Any:
        """Grow the trees that are missing, and become the forest."""
        callbacks = check_callbacks(callbacks)
        self._check_bootstrap()
        saved = None
        if checkpoint is not None:
            saved = Checkpoint(checkpoint, trees_to_bytes)
            if saved.facts is not None and self.random_state is None and not (kept or so_far):
                seed = seed_of(saved)
        run = threaded(self.n_jobs)
        ledger = Ledger()
        X, y, sample_weight, bootstrap_groups = admitted(X, columns, ledger)
        with ledger.phase("coding"):
            encoded = self._encode(X, y, sample_weight, seed, run, ledger)
        self._check_max_features(encoded)
        bags = self._bags(seed, encoded.coded.n_rows, bootstrap_groups)
        facts = partial(
            facts_of, self, encoded.book, encoded.coded, encoded.target, bags, encoded.seed
        )
        if kept:
            self._check_same_labels(encoded)
            self._check_same_bags(bags)
        if self.verbose > 0:
            callbacks = [ProgressBar(), *callbacks]
        if saved is not None or so_far is not None:
            with ledger.phase("coding"):
                learn_rows(encoded.coded, ledger)
        earlier = earlier_trees(so_far, saved, facts, encoded.book)[: self.n_estimators]
        if saved is not None:
            callbacks = [*callbacks, Saving(saved)]
        training = Training(encoded, rows_of(encoded.coded, ledger), y, run, ledger=ledger)
        there = Kept(kept, partial(self._leaves_of, kept, encoded.book, X, run), earlier)
        return self._fit_forest(training, bags, callbacks, there, facts)

    def _fit_coded(self, training: Training) -> Any:
        self._check_bootstrap()
        self._check_max_features(training.encoded)
        self._fit_forest(training, self._bags_of(training.encoded), [TreeCounter(training.advance)])
        if self.n_estimators_ < self.n_estimators:
            training.advance(self.n_estimators - self.n_estimators_)  # that are not wanted
        return self

    def _fit_forest(
        self,
        training: Training,
        bags: Bags | None,
        callbacks: Sequence[Callback],
        kept: Kept | None = None,
        facts: Callable[[], dict[str, Any]] | None = None,
    ) -> Any:
        """Grow the trees of these bags, beyond those that are kept, and learn what a fit learns.

        With `facts`, an error of a lost cluster brings along a forest that can be resumed.
        """
        encoded, run, ledger = training.encoded, training.run, training.ledger
        kept = Kept() if kept is None else kept
        growth = self._growth_of(encoded, bags)
        learned = self._facts_of(encoded, bags)

        def estimator_of(tree: Tree) -> Any:
            missing = columns_with_missing([tree], encoded.coded)
            return self._estimator(tree, {**learned, "_saw_missing": missing})

        numbers = range(len(kept.trees), self.n_estimators)
        fit = ForestFit(self, numbers, list(kept.trees), estimator_of)
        oob = stopping = None
        if self.oob_score or self.oob_tol is not None:
            oob = OutOfBag(growth, training.coded_rows)
            score = partial(self._score_out_of_bag, oob, training)
            stopping = None if self.oob_tol is None else OobStopping(self.oob_tol, score)
            if stopping is not None:
                callbacks = [stopping, *callbacks]  # first, so that the others see its scores
            self._add_kept(fit, oob, stopping, kept)
        _add_earlier(fit, oob, stopping, kept.earlier)
        unfinished = partial(self._so_far, fit.trees, learned, training, facts)
        with all_or_nothing(self), listening(fit, callbacks), brought_along(unfinished):
            with ledger.phase("growth"):
                self._grow_trees(growth, fit, oob, callbacks, run, ledger)
            if oob is not None:
                learned |= self._learned_out_of_bag(oob, training)
            if self.oob_tol is not None:
                learned["oob_scores_"] = np.array(fit.oob_scores)
            learned["forest_"] = Forest(tuple(fit.trees))
            learn_rows(encoded.coded, ledger)  # known, unless there was nothing to grow
            learned["_saw_missing"] = columns_with_missing(fit.trees, encoded.coded)
            learned["_fit_report"] = ledger.report()
            for name in OF_SOME_FITS:
                self.__dict__.pop(name, None)
            self.__dict__.update(learned)
        return self

    def _so_far(
        self,
        trees: Sequence[Tree],
        learned: Mapping[str, Any],
        training: Training,
        facts: Callable[[], dict[str, Any]] | None,
    ) -> Any:
        """A forest of the trees that are complete, which can be resumed; None where none are.

        Nor where the cluster was lost before the growth began: trees that were kept are in the
        forest that was to have more of them.
        """
        if not trees or facts is None or not are_known(training.encoded.coded):
            return None
        made = self._unfitted()
        made.__dict__.update(
            learned,
            forest_=Forest(tuple(trees)),
            _saw_missing=columns_with_missing(trees, training.encoded.coded),
            _fit_facts=facts(),
            _fit_report=training.ledger.report(),
        )
        return made

    def _growth_of(self, encoded: Encoded, bags: Bags | None) -> ForestGrowth:
        """What the trees are grown from."""
        return ForestGrowth(
            encoded.coded,
            encoded.target,
            encoded.rules,
            bags,
            encoded.book.thresholds,
            values=encoded.book.code_values() if self._random_cuts else None,
            balanced=bags is not None
            and getattr(self, "class_weight", None) == "balanced_subsample",
            shares=self._shares(),
            max_leaf_nodes=self.max_leaf_nodes,
            ccp_alpha=self.ccp_alpha,
        )

    def _facts_of(self, encoded: Encoded, bags: Bags | None) -> dict[str, Any]:
        """What a fit learns beside its trees."""
        facts = {
            "n_features_in_": encoded.book.n_columns,
            "n_outputs_": 1,
            "max_features_": encoded.max_features,
            "codebook_": encoded.book.without_values(),
            "_fit_seed": encoded.seed,
            "_fit_bags": None if bags is None else bags.digest(),
            **self._learned(encoded.target),
        }
        if encoded.book.feature_names is not None:
            facts["feature_names_in_"] = encoded.book.feature_names
        return facts

    def _fits_apart(self) -> str | None:
        return None if self.oob_tol is None else "oob_tol ends each forest at a tree of its own"

    def _n_alone(self, encoded: Encoded, resampling: Resampling) -> tuple[int, str]:
        weight = getattr(self, "class_weight", None)
        if weight == "balanced_subsample" and isinstance(encoded.coded, CodedMatrix):
            return resampling.n_sets, "class_weight is another one in each bag"
        return super()._n_alone(encoded, resampling)

    @property
    def _n_trees(self) -> int:
        return self.n_estimators

    def _grow_sets(self, training: Training, resampling: Resampling) -> list[tuple[Tree, ...]]:
        encoded = training.encoded
        self._check_bootstrap()
        self._check_max_features(encoded)
        return grow_sets(
            self._growth_of(encoded, self._bags_of(encoded)),
            self._n_trees,
            resampling,
            training.run,
            regime=self.regime,
            advance=training.advance,
            ledger=training.ledger,
        )

    def _models_of(self, encoded: Encoded, grown: Sequence[tuple[Tree, ...]]) -> list[Any]:
        facts = self._facts_of(encoded, self._bags_of(encoded))
        missing = missing_by_model(grown, encoded.coded)
        models = [self._unfitted() for _ in grown]
        for model, trees, mine in zip(models, grown, missing, strict=True):
            model.__dict__.update(facts, forest_=Forest(trees), _saw_missing=mine)
        return models

    def _fit_sets(self, training: Training, resampling: Resampling) -> list[Any]:
        models = super()._fit_sets(training, resampling)
        if not self.oob_score:
            return models
        encoded = training.encoded
        sums = sums_of_sets(
            self._growth_of(encoded, self._bags_of(encoded)),
            resampling,
            [model.forest_.trees for model in models],
            training.coded_rows,
            training.run,
        )
        for number, (model, oob) in enumerate(zip(models, sums, strict=True)):
            try:
                model.__dict__.update(model._learned_out_of_bag(oob, training))
            except ValueError as error:  # of a scorer
                models[number] = error
        return models

    def _learned_out_of_bag(self, oob: OutOfBag, training: Training) -> dict[str, Any]:
        """What a fit learns from the rows out of its bags."""
        score = self._score_out_of_bag(oob, training)
        _warn_without_votes(oob)
        return {**self._oob_predictions(oob.mean()), "oob_score_": score}

    def _check_max_features(self, encoded: Encoded) -> None:
        if encoded.max_features > encoded.book.n_columns:
            raise ValueError(
                f"max_features={self.max_features} is more than the {encoded.book.n_columns} "
                "columns of X; None searches all of them."
            )

    def _check_bootstrap(self) -> None:
        """Out-of-bag scores and the size of bags need bags."""
        if self.bootstrap:
            return
        if self.max_samples is not None:
            raise ValueError(
                "`max_samples` cannot be set if `bootstrap=False`. Either switch to "
                f"`bootstrap=True` or set `max_samples=None`: got {self.max_samples!r}."
            )
        asked = f"oob_score={self.oob_score!r}" if self.oob_score else f"oob_tol={self.oob_tol!r}"
        if self.oob_score or self.oob_tol is not None:
            raise ValueError(
                f"Out of bag estimation only available if bootstrap=True: {type(self).__name__} "
                f"got {asked}, bootstrap=False."
            )

    def _kept(self) -> tuple[tuple[Tree, ...], int]:
        """The trees that are there and stay, and the seed of the forest."""
        if not (self.warm_start and hasattr(self, "forest_")):
            return (), self._seed()
        kept = self.forest_.trees
        if self.n_estimators < len(kept):
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to "
                f"len(estimators_)={len(kept)} when warm_start==True"
            )
        if self.n_estimators == len(kept):
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                stacklevel=3,
            )
        return kept, self._fit_seed

    def _check_same_labels(self, encoded: Encoded) -> None:
        """Trees that are kept name columns, categories and classes by number."""
        old, new = self.codebook_.categories, encoded.book.categories
        classes = getattr(self, "classes_", None)
        same = (
            encoded.book.n_columns == self.n_features_in_
            and old.keys() == new.keys()
            and all(np.array_equal(old[column], new[column]) for column in old)
            and (classes is None or np.array_equal(classes, np.asarray(encoded.target.classes)))
        )
        if not same:
            raise ValueError(
                "warm_start=True keeps the trees that are there, so X must have the columns and "
                "categories of the first fit and y its classes. Set warm_start=False to begin anew."
            )

    def _check_same_bags(self, bags: Bags | None) -> None:
        """Which rows are out of the bag of a tree that is kept is told by the bags of its fit."""
        if not self.oob_score and self.oob_tol is None:
            return
        if bags is None or getattr(self, "_fit_bags", None) != bags.digest():
            raise ValueError(
                "warm_start=True keeps trees whose bags were drawn otherwise, so it is not known "
                "which rows are out of them. For out-of-bag scores keep bootstrap, max_samples, "
                "bootstrap_groups and the number of rows as they were, or set warm_start=False."
            )

    def _add_kept(
        self, fit: ForestFit, oob: OutOfBag, stopping: OobStopping | None, kept: Kept
    ) -> None:
        """Add up the trees that are there, as if they had just been grown.

        Where they are enough, no tree is left to be grown.
        """
        enough = False
        for number, (tree, found) in enumerate(zip(kept.trees, kept.leaves(), strict=True)):
            rows = oob.rows(number)
            oob.add(tree, Votes(rows, found[rows]))
            if stopping is not None:
                enough |= stopping.see(fit.oob_scores)
        if enough:
            logger.info("no tree is added: the out-of-bag score of those that are there is flat")
            fit.numbers = fit.numbers[:0]

    def _leaves_of(
        self, trees: Sequence[Tree], book: CodeBook, X: Any, run: LocalRunner
    ) -> Iterator[np.ndarray]:
        """Leaves of all rows in each of the trees that are there.

        The rows walk by their values, as the codes of these trees are those of another coding.
        """
        if not trees:
            return
        if isinstance(X, PartitionedTable):
            (leaves,) = computed(self.apply(X.collection))
            yield from np.asarray(leaves).T
            return
        table = book.check(X, estimator=type(self).__name__, run=run)
        yield from leaves_by_tree(trees, book, table, run)

    def _score_out_of_bag(self, oob: OutOfBag, training: Training) -> float:
        """Score of the rows that have a vote."""
        return self._oob_score(oob.mean(), np.asarray(training.y).ravel(), training.encoded.target)

    def _grow_trees(
        self,
        growth: ForestGrowth,
        fit: ForestFit,
        oob: OutOfBag | None,
        callbacks: Sequence[Callback],
        run: LocalRunner,
        ledger: Ledger,
    ) -> None:
        """Grow the trees of a fit, on threads or on a cluster, until one of the callbacks stops."""
        look = oob.votes_of if oob is not None and oob.is_here else None
        grown = grow_trees(growth, fit.numbers, run, regime=self.regime, look=look, ledger=ledger)
        with closing(grown):
            seen = grown if oob is None or oob.is_here else oob.seen(grown)
            for number, tree, votes in seen:
                fit.trees.append(tree)
                if oob is not None:
                    oob.add(tree, votes)
                # all of them hear of the tree, whoever stops
                stops = [callback.on_tree_end(fit, number) for callback in callbacks]
                if any(isinstance(stop, bool | np.bool_) and stop for stop in stops):
                    break

    def _bags_of(self, encoded: Encoded) -> Bags | None:
        """The bags of a table without groups."""
        return self._bags(encoded.seed, encoded.coded.n_rows, None)

    def _bags(self, seed: int, n_rows: int, groups: Any) -> Bags | None:
        if not self.bootstrap:
            if groups is not None:
                raise ValueError("bootstrap_groups needs bootstrap=True.")
            return None
        keys = np.arange(n_rows, dtype=np.uint64)
        n_keys = n_rows
        if groups is not None:
            groups = np.asarray(groups)
            if groups.shape != (n_rows,):
                raise ValueError(
                    f"bootstrap_groups must have one value per row: expected shape ({n_rows},), "
                    f"got {groups.shape}."
                )
            try:
                values, inverse = np.unique(groups, return_inverse=True)
                missing = bool((values != values).any())
            except (TypeError, ValueError):  # None or NA among labels: nothing that is ordered
                missing = True
            if missing:
                raise ValueError(
                    "bootstrap_groups holds missing values, or labels that cannot be compared with "
                    "each other. Give every row the label of its group, or a label of its own."
                )
            keys, n_keys = inverse.astype(np.uint64), len(values)
        rate = 1.0
        if isinstance(self.max_samples, Integral):
            if self.max_samples > n_keys:
                of = "" if groups is None else ", the number of groups in bootstrap_groups,"
                raise ValueError(
                    f"`max_samples` must be <= n_samples={n_keys}{of} but got value "
                    f"{self.max_samples}"
                )
            rate = float(self.max_samples) / n_keys
        elif self.max_samples is not None:
            rate = float(self.max_samples)
        return Bags(seed, rate, keys)

    def _predictor(self) -> Predictor:
        classes = getattr(self, "classes_", None)
        return ForestPredictor(self.codebook_, classes, type(self).__name__, self.forest_)

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of every row in every tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        leaves : intp array of shape (n_rows, n_estimators)
            Node numbers.
        """
        return self._answer("apply", X)

    def decision_path(self, X: Any) -> tuple[csr_matrix, np.ndarray]:
        """Return the nodes that every row passes, tree behind tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        indicator : csr matrix of shape (n_rows, nodes of all trees)
            1 where the row passes the node.
        n_nodes_ptr : intp array of shape (n_estimators + 1,)
            Columns ``n_nodes_ptr[i]:n_nodes_ptr[i + 1]`` are those of tree i.
        """
        paths = self._answer("decision_path", X)
        return paths, np.cumsum([0, *(tree.node_count for tree in self.forest_.trees)])

    @property
    def estimators_(self) -> list:
        """The trees as fitted estimators, made at the first look."""
        check_is_fitted(self)
        made = self.__dict__.get("_estimators")
        if made is None:
            learned = vars(self)
            made = [self._estimator(tree, learned) for tree in self.forest_.trees]
            self._estimators = made
        return made

    @property
    def n_estimators_(self) -> int:
        """Number of trees; less than ``n_estimators`` when the fit was stopped."""
        check_is_fitted(self)
        return len(self.forest_)

    def _estimator(self, tree: Tree, learned: Mapping[str, Any]) -> Any:
        """A tree as an estimator; `learned` is what the forest has, or will have, learned."""
        names = self._tree_class._constraints
        parameters = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if parameters.get("class_weight") == "balanced_subsample":
            parameters["class_weight"] = "balanced"
        made = self._tree_class(**parameters)
        made.__dict__.update(
            n_features_in_=learned["n_features_in_"],
            n_outputs_=1,
            max_features_=learned["max_features_"],
            tree_=TreeView(tree, learned["codebook_"], learned["_saw_missing"]),
        )
        for name in ("feature_names_in_", "classes_", "n_classes_"):
            if name in learned:
                made.__dict__[name] = learned[name]
        return made

    def _parts(self) -> Parts:
        learned, parameters = self._learned_attributes(), self.get_params(deep=False)
        return Parts(parameters, learned, self.forest_.trees, self.codebook_, self._saw_missing)

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        super()._check_parts(parts)
        learned = parts.attributes
        if learned["max_features_"] > learned["n_features_in_"]:
            raise ValueError("max_features_ is more than n_features_in_")
        sums = learned.get("oob_decision_function_")
        if sums is not None and sums.shape[1] != len(learned["classes_"]):
            raise ValueError("oob_decision_function_ has not a column for every class")
        scores = learned.get("oob_scores_")
        if scores is not None and len(scores) != len(parts.trees):
            raise ValueError("oob_scores_ are not those of the trees")

    @classmethod
    def _of_parts(cls, parts: Parts) -> Any:
        made = cls(**parts.parameters)
        made.__dict__.update(
            parts.attributes,
            forest_=Forest(parts.trees),
            codebook_=parts.book,
            _saw_missing=parts.saw_missing,
        )
        return made

    def __len__(self) -> int:
        """Number of trees."""
        return len(self.estimators_)

    def __getitem__(self, i: int) -> Any:
        """Tree i as an estimator."""
        return self.estimators_[i]

    def __iter__(self) -> Iterator:
        """The trees as estimators."""
        return iter(self.estimators_)

    def __getstate__(self) -> dict:
        state = dict(super().__getstate__())
        state.pop("_estimators", None)  # made again when asked for
        return state

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean share of every column in the impurity decrease, float64 (n_features_in_,)."""
        check_is_fitted(self)
        mean = mean_importances(self.forest_.trees)
        return np.zeros(self.n_features_in_) if mean is None else mean


@contextmanager
def all_or_nothing(estimator: BaseForest) -> Iterator[None]:
    """Take back what has been set on an estimator when the block fails."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def _add_earlier(
    fit: ForestFit, oob: OutOfBag | None, stopping: OobStopping | None, earlier: Sequence[Tree]
) -> None:
    """Add trees of the same fit, as if they had just been grown, until they are enough."""
    enough = len(fit.numbers) == 0
    for tree in earlier[len(fit.trees) :]:
        if enough:
            break
        number = len(fit.trees)
        fit.trees.append(tree)
        if oob is not None:
            oob.add(tree, oob.votes_of(number, tree))
        if stopping is not None:
            enough = stopping.see(fit.oob_scores)
    fit.numbers = fit.numbers[:0] if enough else range(len(fit.trees), fit.numbers.stop)


def _warn_without_votes(oob: OutOfBag) -> None:
    if not oob.votes.all():
        warnings.warn(
            "Some inputs do not have OOB scores. This probably means too few trees were used to "
            "compute any reliable OOB estimates.",
            stacklevel=6,  # in the caller of `fit`
        )
