"""How the trees of a forest come: one by one, in their order, whoever grows them.

The drawing is in `dtrees.estimators.ensemble`.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

import numpy as np

from dtrees._warnings import warn
from dtrees.callbacks import Callback, ForestFit, listening, told
from dtrees.coding.target import Target
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.membership.resampling import Bags
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.out_of_bag import OutOfBag, Votes
from dtrees.estimators.early_stopping import OobStopping
from dtrees.estimators.fitted_forest import FittedForest
from dtrees.estimators.resume import brought_along
from dtrees.estimators.stored import Stored
from dtrees.estimators.training import Encoded, Training
from dtrees.estimators.tree_view import columns_with_missing, read_only
from dtrees.estimators.warm_start import Kept
from dtrees.parallel import FitStatistics, LocalRunner, are_known, grow_trees, learn_rows

OF_SOME_FITS = (  # what a fit may leave and another one not
    *Stored._learns_at_times,
    "oob_score_",
    "oob_scores_",
    "oob_decision_function_",
    "oob_prediction_",
    "_oob_errors",
    "_oob_scaled_errors",
    "_oob_keys",
    "_oob_means",
    "_estimators",
    "_fit_facts",
)

logger = logging.getLogger(__name__)


class TreeCounter(Callback):
    """Says of each tree that it has come."""

    def __init__(self, advance: Callable[[int], object]) -> None:
        self._advance = advance

    def on_tree_end(self, fit: ForestFit, number: int) -> None:
        """One tree more."""
        self._advance(1)


class GrowingForest(FittedForest):
    """The growth of forests; not meant to be used itself."""

    n_estimators: int
    oob_score: Any
    oob_tol: float | None
    regime: str | None

    @abstractmethod
    def _oob_score(self, mean: np.ndarray, y: np.ndarray, target: Target) -> float:
        """Score of out-of-bag predictions, of rows that have one; nan where there are too few."""

    @abstractmethod
    def _oob_predictions(self, mean: np.ndarray) -> dict[str, Any]:
        """The attribute that holds out-of-bag predictions."""

    def _oob_errors_of(
        self, oob: OutOfBag, y: np.ndarray, counts: np.ndarray | None
    ) -> dict[str, Any]:
        """What prediction intervals are made from; `counts` says which rows have a weight."""
        return {}

    def _fit_forest(
        self,
        training: Training,
        bags: Bags | None,
        callbacks: Sequence[Callback],
        kept: Kept | None = None,
        facts: Callable[[], dict[str, Any]] | None = None,
    ) -> Any:
        """Grow the trees of these bags, beyond those that are kept, and learn what a fit learns.

        With `facts`, an error of a cluster brings along a forest that can be resumed.
        """
        encoded, run, stats = training.encoded, training.run, training.stats
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
            with stats.phase("growth"):
                self._grow_trees(growth, fit, oob, callbacks, run, stats)
            if oob is not None:
                learned |= self._learned_out_of_bag(oob, training)
            if self.oob_tol is not None:
                learned["oob_scores_"] = np.array(fit.oob_scores)
            learned["forest_"] = Forest(tuple(fit.trees))
            learn_rows(encoded.coded, stats)  # known, unless there was nothing to grow
            before = self._saw_missing if kept.trees else False
            saw_missing = columns_with_missing(fit.trees, encoded.coded)
            learned["_saw_missing"] = read_only(saw_missing | before)
            learned["_fit_report"] = stats.report()
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
            _fit_report=training.stats.report(),
        )
        if made.regime == "replicated":  # on a cluster that may be gone
            made.regime = None
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

    def _learned_out_of_bag(
        self, oob: OutOfBag, training: Training, rows: np.ndarray | None = None
    ) -> dict[str, Any]:
        """What a fit learns from the rows out of its bags.

        `rows` says which are in its training set, bool (n_rows,); None: all of positive weight.
        """
        score = self._score_out_of_bag(oob, training)
        _warn_without_votes(oob)
        mean, counts = oob.mean(), training.encoded.target.has_weight
        if rows is not None:
            counts = rows if counts is None else rows & counts
        learned = self._oob_errors_of(oob, training.y, counts)
        bags = oob.growth.bags
        assert bags is not None
        if learned and not bags.by_row:
            learned["_oob_keys"] = bags.row_id
        if learned and bags.means is not None:
            learned["_oob_means"] = bags.means
        return {**self._oob_predictions(mean), **learned, "oob_score_": score}

    def _score_out_of_bag(self, oob: OutOfBag, training: Training) -> float:
        """Score of the rows that have a vote."""
        return self._oob_score(oob.mean(), np.asarray(training.y).ravel(), training.encoded.target)

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

    def _grow_trees(
        self,
        growth: ForestGrowth,
        fit: ForestFit,
        oob: OutOfBag | None,
        callbacks: Sequence[Callback],
        run: LocalRunner,
        stats: FitStatistics,
    ) -> None:
        """Grow the trees of a fit, on threads or on a cluster, until one of the callbacks stops."""
        look = oob.votes_of if oob is not None and oob.is_here else None
        grown = grow_trees(growth, fit.numbers, run, regime=self.regime, look=look, stats=stats)
        with closing(grown):
            seen = grown if oob is None or oob.is_here else oob.seen(grown)
            for number, tree, votes in seen:
                fit.trees.append(tree)
                if oob is not None:
                    oob.add(tree, votes)
                # all of them hear of the tree, whoever stops
                if told([callback.on_tree_end(fit, number) for callback in callbacks]):
                    break


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
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
        warn(
            "Some inputs do not have OOB scores. This probably means too few trees were used to "
            "compute any reliable OOB estimates."
        )
