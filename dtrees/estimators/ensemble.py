"""What every forest does: many trees of one coded table.

The table is coded once. A tree is a task, and a function of the codes, the rules, the seed and its
number (`dtrees.core.grow.forest`). It does not matter which thread or worker grows it, or when::

    parameters, X, y ---FitPlan.encode---> codes, target, rules       once for many sets of rows
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

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtrees.callbacks import Callback, ProgressBar, check_callbacks
from dtrees.constraints import (
    ArrayOf,
    Boolean,
    CallableObject,
    InstanceOf,
    IntegerIn,
    Nothing,
    OneOf,
    RealIn,
)
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.membership.resampling import Bags, Resampling
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.out_of_bag import OutOfBag, sums_of_sets
from dtrees.estimators.bags import bags_of, check_bootstrap
from dtrees.estimators.base import BaseTrees
from dtrees.estimators.early_stopping import OobStopping
from dtrees.estimators.fit_plan import LARGEST_SEED, FitPlan
from dtrees.estimators.flat_forests import FlatForest, grow_until_flat
from dtrees.estimators.growing_forest import GrowingForest, TreeCounter
from dtrees.estimators.resume import Saving, SoFar, earlier_trees, facts_of, seed_of
from dtrees.estimators.training import Encoded, Training, rows_of
from dtrees.estimators.tree_view import missing_by_model
from dtrees.estimators.warm_start import (
    Kept,
    check_same_bags,
    check_same_labels,
    kept_trees,
    leaves_of,
)
from dtrees.export.trees import trees_to_bytes
from dtrees.inspection.importance import OF_A_SPLIT
from dtrees.parallel import (
    REGIMES,
    Checkpoint,
    FitStatistics,
    admitted,
    grow_sets,
    learn_rows,
    threaded,
)
from dtrees.typing import serial

SPARE_BITS = 5  # a row is in a bag at most 20 times as often as on average


class BaseForest(GrowingForest):
    """What forests of classifiers and of regressors share; not meant to be used itself."""

    _constraints: ClassVar = {
        **BaseTrees._constraints,
        "n_estimators": (IntegerIn(1),),
        "bootstrap": (Boolean(),),
        "max_samples": (IntegerIn(1), RealIn(0, 1, "(]", integers=False), Nothing()),
        "oob_score": (Boolean(), CallableObject()),
        "oob_tol": (RealIn(0, math.inf, "[)"), Nothing()),
        "warm_start": (Boolean(),),
        "verbose": (InstanceOf(Integral, "int"),),
        "regime": (OneOf(REGIMES), Nothing()),
    }
    _learns: ClassVar = {
        **BaseTrees._learns,
        "oob_score_": (InstanceOf(float, "float"),),
        "oob_scores_": (ArrayOf(1, np.dtype(np.float64)),),
        "_fit_seed": (IntegerIn(0, LARGEST_SEED),),
        "_fit_bags": (InstanceOf(str, "str"), Nothing()),
        "_fit_facts": (InstanceOf(dict, "dict"),),
    }
    _learns_at_times = (
        BaseTrees._learns_at_times
        | {"oob_score_", "oob_scores_", "oob_decision_function_", "oob_prediction_"}
        | {"_fit_bags", "_fit_facts"}  # not in models of older versions; in unfinished ones
    )

    bootstrap: bool
    max_samples: int | float | None
    warm_start: bool
    verbose: int

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
            Not negative, not all zero. A row is drawn into bags in proportion to its weight. In a
            tree it then counts as often as it was drawn. Without bags it counts with its weight.
        bootstrap_groups : array-like of shape (n_rows,), default=None
            Rows of one group are in a bag together, or not at all: patients, days, machines.
            None: every row is a group of its own.
        callbacks : sequence of dtrees.callbacks.Callback, default=None
            Hear of every tree, in the order of the trees, and may stop the fit; the trees so far
            are then the forest.
        checkpoint : str or path, default=None
            A folder, or the URL of one that fsspec knows (``s3://...``), to which complete trees
            are written as they come. A fit that is given the same one, the same table and the same
            parameters goes on with the trees that are there. It makes the forest that would have
            been grown at once. ``n_estimators``, ``n_jobs`` and ``regime`` may be others;
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
            A Dask cluster is in force, or asked for by ``regime``, and cannot be used, or does not
            end the fit. The error's ``estimator`` is a forest of the trees that were complete, if
            there are any, and its `resume` goes on.
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
        kept, seed = kept_trees(self, self._fit_plan())
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
        """Go on with a fit that has ended early on a cluster.

        For the forest that `dtrees.exceptions.ClusterError` brings along as ``estimator``. It has
        the trees that were complete and no data, so these are given again. The rest is grown where
        a fit would grow it now: on another cluster, or on threads. So its ``regime`` is None where
        it was "replicated".

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
            except ClusterError as error:
                if error.estimator is None:  # no tree was complete
                    raise
                forest = error.estimator.resume(X, y)
        """
        check_is_fitted(self)
        if "_fit_facts" not in self.__dict__:
            raise ValueError(
                f"This {type(self).__name__} is not of a fit that ended early, so there is "
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
        check_bootstrap(self)
        saved = None
        if checkpoint is not None:
            saved = Checkpoint(checkpoint, trees_to_bytes)
            if saved.facts is not None and self.random_state is None and not (kept or so_far):
                seed = seed_of(saved)
        run = threaded(self.n_jobs)
        stats = FitStatistics()
        X, y, sample_weight, bootstrap_groups = admitted(X, columns, stats)
        with stats.phase("coding"):
            encoded = self._fit_plan().encode(X, (y, sample_weight), seed, run, stats)
        bags = bags_of(self, seed, encoded.target, bootstrap_groups)
        facts = partial(
            facts_of, self, encoded.book, encoded.coded, encoded.target, bags, encoded.seed
        )
        if kept:
            check_same_labels(self, encoded)
            check_same_bags(self, bags)
        if self.verbose > 0:
            callbacks = [ProgressBar(), *callbacks]
        if saved is not None or so_far is not None:
            with stats.phase("coding"):
                learn_rows(encoded.coded, stats)
        earlier = earlier_trees(so_far, saved, facts, encoded.book)[: self.n_estimators]
        if saved is not None:
            callbacks = [*callbacks, Saving(saved)]
        training = Training(encoded, rows_of(encoded.coded, stats), y, run, stats=stats)
        there = Kept(kept, partial(leaves_of, self, kept, encoded.book, X, run), earlier)
        return self._fit_forest(training, bags, callbacks, there, facts)

    def _fit_coded(self, training: Training) -> Any:
        check_bootstrap(self)
        self._fit_forest(training, self._bags_of(training.encoded), [TreeCounter(training.advance)])
        if self.n_estimators_ < self.n_estimators:
            training.advance(self.n_estimators - self.n_estimators_)  # that are not wanted
        return self

    def _fit_plan(self, **own: Any) -> FitPlan:
        return super()._fit_plan(
            spare_bits=SPARE_BITS,
            n_trees=self.n_estimators,
            draws_weights=self.bootstrap,
            **own,
        )

    def _grow_sets(self, training: Training, resampling: Resampling) -> list[tuple[Tree, ...]]:
        encoded = training.encoded
        check_bootstrap(self)
        growth = self._growth_of(encoded, self._bags_of(encoded))
        return self._grow_numbers(training, growth, range(self.n_estimators), resampling)

    def _grow_numbers(
        self, training: Training, growth: ForestGrowth, numbers: range, resampling: Resampling
    ) -> list[tuple[Tree, ...]]:
        """Trees of these numbers, by set."""
        return grow_sets(
            growth,
            numbers,
            resampling,
            training.run,
            regime=self.regime,
            advance=training.advance,
            stats=training.stats,
        )

    def _models_of(self, encoded: Encoded, grown: Sequence[tuple[Tree, ...]]) -> list[Any]:
        facts = self._facts_of(encoded, self._bags_of(encoded))
        missing = missing_by_model(grown, encoded.coded)
        models = [self._unfitted() for _ in grown]
        for model, trees, mine in zip(models, grown, missing, strict=True):
            model.__dict__.update(facts, forest_=Forest(trees), _saw_missing=mine)
        return models

    def _fit_sets(self, training: Training, resampling: Resampling) -> list[Any]:
        if self.oob_tol is not None:
            return self._fit_flat(training, resampling)
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
        return [
            model._with_out_of_bag(oob, training, resampling, number)
            for number, (model, oob) in enumerate(zip(models, sums, strict=True))
        ]

    def _fit_flat(self, training: Training, resampling: Resampling) -> list[Any]:
        """The same where each forest ends at a tree of its own (``oob_tol``)."""
        check_bootstrap(self)
        encoded = training.encoded
        growth = self._growth_of(encoded, self._bags_of(encoded))
        made = []
        assert self.oob_tol is not None
        for _ in range(resampling.n_sets):
            oob = OutOfBag(growth, training.coded_rows)
            score = partial(self._score_out_of_bag, oob, training)
            made.append(FlatForest(oob, OobStopping(self.oob_tol, score)))
        run = serial if callable(self.oob_score) else training.run  # a scorer may not be shared
        grow = partial(self._grow_numbers, training)
        grow_until_flat(made, self.n_estimators, resampling, grow, run, training.advance)
        models = self._models_of(encoded, [tuple(each.trees) for each in made])
        found = []
        for number, (model, each) in enumerate(zip(models, made, strict=True)):
            model.oob_scores_ = np.array(each.scores)
            own = each.error or model._with_out_of_bag(each.oob, training, resampling, number)
            found.append(own)
        return found

    def _with_out_of_bag(
        self, oob: OutOfBag, training: Training, resampling: Resampling, number: int
    ) -> Any:
        """The model of a set, with what it learns from rows out of its bags; or an error."""
        try:
            rows = None if resampling.cells is None else resampling.rows(number)
            self.__dict__.update(self._learned_out_of_bag(oob, training, rows))
        except ValueError as error:  # of a scorer
            return error
        return self

    def _rows_by_bag(
        self, y: Any, sample_weight: Any, bootstrap_groups: Any
    ) -> tuple[np.ndarray | None, Iterator[tuple[np.ndarray, np.ndarray | None]]]:
        """What rows of the fit count, None: once each; and what they are to the bag of each tree.

        That is the rows that are out of it, and what each row counts in it.

        Raises ValueError where the bags of the fit are not those of these rows, or there are none.
        """
        if not self.bootstrap:
            raise ValueError("There are no bags: fit the forest with bootstrap=True.")
        target = self._encode_target(y, sample_weight)
        bags = bags_of(self, self._fit_seed, target, bootstrap_groups)
        assert bags is not None
        if bags.digest() != self._fit_bags:
            raise ValueError(
                "The bags of this forest are not those of these rows. Give y, sample_weight and "
                f"bootstrap_groups of the fit, and leave the parameters as they were. {OF_A_SPLIT}"
            )
        numbers = range(len(self.forest_))
        times = (bags.multiplicity(number, target.has_weight) for number in numbers)
        weight = target.w if target.means is None else target.means
        return weight, ((bags.rows_out(each), target.bagged(each).w) for each in times)

    def _bags_of(self, encoded: Encoded) -> Bags | None:
        """The bags of a table without groups."""
        return bags_of(self, encoded.seed, encoded.target)
