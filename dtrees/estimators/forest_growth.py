"""Where the growth of a forest begins, and where it ends.

It begins with the bags of its trees, and the trees that stay when it is fitted again
(``warm_start``). It ends when there are enough trees: the out-of-bag score is flat. With s(t) the
out-of-bag score of the first t trees and w = 10, scores are smoothed over a window,

    m(t) = (s(t - w + 1) + ... + s(t)) / w

and growth stops after t trees, at least 2 w, when no mean of the second half of the trees beats the
best of the first half by more than the tolerance:

    max(m(h + 1), ..., m(t)) <= max(m(w), ..., m(h)) + oob_tol,     h = t // 2

Why half of the trees: the error of a forest falls about as c / t. Ten trees more then win 10 c /
t**2. All that are still to come win c / t, t / 10 times as much. So a rule that looks back on ten
trees stops a slow score too early. It gives away the more tolerances, the later it stops. The
second half of the trees has won c / t, too, as much as all that are to come. So when it has won
less than the tolerance, about a tolerance is given away.

From tree to tree, s(t) goes up and down by noise; a mean of ten does much less. As s(t) is a
function of the first t trees, so is the tree at which a forest stops.

Forests of several training sets end each at a tree of its own (``oob_tol``). Trees of one number
grow together, for all sets that have not ended::

    wave        0..19   20..23   24..27   28..32  ...
    set 0       ------  ----|                          has enough after 22 trees
    set 1       ------  -----    -----    ---|
    sets left   2       2        1        1

No forest ends before tree 20. A wave after that is a fifth of the trees that are
there: what is grown beyond the end of a set is lost, a tenth of its trees on average, while trees
that grow together cost a fraction of those that grow alone. Which tree is the last one of a set is
what its scores say, whatever the waves are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees._warnings import warn
from dtrees.callbacks import Callback, ForestFit, listening, told
from dtrees.coding.codebook import CodeBook
from dtrees.coding.outputs import columns_of_outputs
from dtrees.coding.target import Ask, Target
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.membership.resampling import LARGEST_RATE, Bags, KeysElsewhere, Resampling
from dtrees.core.model.tree import Forest, Tree
from dtrees.core.predict.out_of_bag import OutOfBag, Votes, add_to_sums
from dtrees.core.predict.raw import leaves_by_tree
from dtrees.estimators.fit_plan import Training
from dtrees.estimators.quantiles import learned_rows, learned_rows_of_sets
from dtrees.estimators.resume import bring_along
from dtrees.estimators.tree_view import columns_with_missing, missing_by_model, read_only
from dtrees.exceptions import ClusterError
from dtrees.parallel import (
    CodedPartitions,
    FitStatistics,
    LocalRunner,
    PartitionedTable,
    RowColumns,
    SavedTrees,
    computed,
    grow_sets,
    grow_trees,
    learn_rows,
)
from dtrees.typing import serial

if TYPE_CHECKING:
    from dtrees.estimators.forests import BaseForest

WINDOW = 10
FIRST = 2 * WINDOW  # trees of the first wave
SHARE = 5  # of the trees that are there: one more for so many

logger = logging.getLogger(__name__)


def has_bags(forest: Any) -> bool:
    """Whether trees see bags of rows, or samples of them."""
    return bool(forest.bootstrap) or forest.max_samples is not None


def bags_of(forest: Any, seed: int, target: Target, groups: Any = None) -> Bags | None:
    """The bags of a forest's trees, or their samples; None: each sees all rows.

    Rows of one group, of `groups` (n_rows,), are in a bag together; the only column of `RowColumns`
    where they are elsewhere. Raises ValueError where there are groups and no bags, labels that
    cannot be compared, or ``max_samples`` is more than can be drawn of so many groups.
    """
    if not has_bags(forest):
        if groups is not None:
            raise ValueError("bootstrap_groups needs bootstrap=True, or max_samples.")
        return None
    n_rows = target.n_rows
    drawn = partial(_bags, forest.bootstrap, forest.max_samples, seed, target.means)
    if groups is None:
        return drawn(n_rows, n_rows)
    if isinstance(groups, RowColumns):

        def work(ask: Ask) -> Bags:
            labels = _labels_of(np.concatenate(ask(_labels_of)))
            named = partial(_named, drawn, len(labels))
            ((digest, by_row),) = ask(_keys_of, labels, join=named)
            each = partial(groups.each, partial(_keys_of_part, labels), "keys-of-part")
            return drawn(KeysElsewhere(n_rows, digest, by_row, each), len(labels))

        return groups.asked(_groups_of_part, work, FitStatistics())
    groups = np.asarray(groups)
    if groups.shape != (n_rows,):
        raise ValueError(
            f"bootstrap_groups must have one value per row: expected shape ({n_rows},), "
            f"got {groups.shape}."
        )
    labels = _labels_of(groups)
    return drawn(_keys_of(groups, labels), len(labels))


def _labels_of(groups: np.ndarray) -> np.ndarray:
    """Labels of some rows, ascending; ValueError: some are missing, or no order is theirs."""
    try:
        labels = np.unique(groups)
        missing = bool((labels != labels).any())
    except (TypeError, ValueError):  # None or NA among labels: nothing that is ordered
        missing = True
    if missing:
        raise ValueError(
            "bootstrap_groups holds missing values, or labels that cannot be compared with "
            "each other. Give every row the label of its group, or a label of its own."
        )
    return labels


def _keys_of(groups: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Numbers of the labels of rows among all of them, uint64 (n_rows,)."""
    return np.searchsorted(labels, groups).astype(np.uint64)


def _groups_of_part(groups: Any, first_row: int) -> np.ndarray:
    return np.asarray(groups)


def _keys_of_part(labels: np.ndarray, groups: Any, first_row: int) -> np.ndarray:
    return _keys_of(np.asarray(groups), labels)


def _named(
    drawn: Callable[[np.ndarray, int], Bags], n_keys: int, keys: Sequence[np.ndarray]
) -> tuple[str, bool]:
    """The digest of bags of the keys of all rows, and whether these are numbers of rows."""
    bags = drawn(np.concatenate(keys), n_keys)
    return bags.digest(), bags.by_row


def _bags(
    bootstrap: bool,
    max_samples: float | None,
    seed: int,
    means: Any,
    keys: np.ndarray | int | KeysElsewhere,
    n_keys: int,
) -> Bags:
    """The bags of rows with keys, of which there are so many."""
    rate, size = 1.0, n_keys
    if isinstance(max_samples, Integral):
        size = int(max_samples)
        rate = size / n_keys
    elif max_samples is not None:
        rate = float(max_samples)
        size = max(1, int(rate * n_keys))
    if rate > (LARGEST_RATE if bootstrap else 1.0):
        of = "" if isinstance(keys, int) else ", the number of groups in bootstrap_groups,"
        twice = f"{LARGEST_RATE:g} * " if bootstrap else ""
        raise ValueError(
            f"`max_samples` must be <= {twice}n_samples={n_keys}{of} but got value {max_samples}"
        )
    if bootstrap:
        return Bags(seed, rate, keys, means)
    return Bags(seed, size / n_keys, keys, pasted=(size, n_keys))


def is_flat(scores: Sequence[float], tol: float) -> bool:
    """Whether the scores of the second half are no better than those of the first; see the module.

    Scores are of the first 1, 2, ... trees; nan where there is none. They are not flat while the
    best of the first half is unknown, or one of the second half is.
    """
    if len(scores) < 2 * WINDOW:
        return False
    means = np.lib.stride_tricks.sliding_window_view(np.array(scores), WINDOW).mean(axis=1)
    n_before = len(scores) // 2 - WINDOW + 1
    before, recent = means[:n_before], means[n_before:]
    before = before[~np.isnan(before)]
    return len(before) > 0 and bool((recent <= before.max() + tol).all())


class OobStopping(Callback):
    """Scores a forest after every tree (larger is better) and stops it when the score is flat.

    `score` is asked for the score of the trees so far; `scores` are those of the first 1, 2, ...
    trees.
    """

    def __init__(self, tol: float, score: Callable[[], float], scores: list[float]) -> None:
        self._tol, self._score, self.scores = tol, score, scores

    def see(self) -> bool:
        """Add the score of the trees so far; returns whether they are enough."""
        self.scores.append(self._score())
        return is_flat(self.scores, self._tol)

    def ends(self, n_trees: int) -> bool:
        """As `see`, and logs the end; `n_trees` is how many there might be."""
        flat = self.see()
        if flat:
            logger.info(
                "stopped after %d of %d trees: the out-of-bag score, %.6g, has not improved by "
                "more than oob_tol=%g in the last %d trees",
                len(self.scores),
                n_trees,
                self.scores[-1],
                self._tol,
                len(self.scores) - len(self.scores) // 2,
            )
        return flat

    def on_tree_end(self, fit: ForestFit, number: int) -> bool:
        """Stop when the scores are flat."""
        return self.ends(fit.numbers.stop)


@dataclass(frozen=True, eq=False)
class KeptTrees:
    """Trees that are there before a fit, and stay."""

    trees: tuple[Tree, ...] = ()
    leaves: Callable[[], Iterator[np.ndarray]] = lambda: iter(())  # of all rows, by tree


def kept_trees(forest: Any) -> tuple[Tree, ...]:
    """The trees that stay where a forest is fitted again (``warm_start``)."""
    kept: tuple[Tree, ...] = forest.forest_.trees
    if forest.n_estimators < len(kept):
        raise ValueError(
            f"n_estimators={forest.n_estimators} must be larger or equal to "
            f"len(estimators_)={len(kept)} when warm_start==True"
        )
    if forest.n_estimators == len(kept):
        warn("Warm-start fitting without increasing n_estimators does not fit new trees.")
    return kept


def check_same_labels(model: Any, book: CodeBook, learned: Mapping[str, Any]) -> None:
    """Refuse other labels: trees that are kept name columns, categories and classes by number.

    A category's number follows those of the numbers in its column, so a hybrid column needs as many
    of these. Other columns may have other numbers, as trees compare values with thresholds.
    """
    names = "classes_", "n_outputs_"
    known = {name: getattr(model, name) for name in names if hasattr(model, name)}
    old, classes = model.codebook_, _labels_by_target(known)
    found = []
    if old.n_columns != book.n_columns:
        found.append(f"X had {old.n_columns} columns and has {book.n_columns}")
    for column in sorted(old.categories.keys() | book.categories.keys()) if not found else ():
        before, now = (each.categories.get(column, ()) for each in (old, book))
        if not np.array_equal(before, now):
            found.append(f"column {book.name(column)} has other categories")
        elif old.n_ordered[column] != book.n_ordered[column]:
            found.append(f"column {book.name(column)} has other numbers beside its categories")
    labels = _labels_by_target(learned)
    if len(classes) != len(labels):
        found.append(f"y had {len(classes)} targets and has {len(labels)}")
    elif not all(map(np.array_equal, classes, labels)):
        found.append("y has other classes")
    if not found:
        check_same_targets(model, learned)
    if found:
        raise ValueError(
            "warm_start=True keeps the trees that are there, so X must have the columns and "
            f"categories of the first fit and y its classes, but {found[0]}. Set warm_start=False "
            "to begin anew, or see 'New rows' in docs/user_guide/boosting.md."
        )


def check_same_targets(model: Any, learned: Mapping[str, Any]) -> None:
    """Refuse targets of other names than those whose trees are kept."""
    names = (there.get("target_names_in_") for there in (vars(model), learned))
    old, new = (None if own is None else own.tolist() for own in names)
    if old is not None and new is not None and old != new:
        raise ValueError(f"y had the targets {', '.join(old)}, and has {', '.join(new)}.")


def _labels_by_target(learned: Mapping[str, Any]) -> list[Any]:
    """The classes of each target; None of numbers."""
    n_outputs = learned.get("n_outputs_", 1)
    classes = learned.get("classes_")
    return classes if isinstance(classes, list) else [classes] * n_outputs


def check_same_bags(forest: Any, bags: Bags | None) -> None:
    """Refuse out-of-bag scores where bags of trees that are kept were drawn otherwise."""
    if not (forest.oob_score or forest.oob_tol is not None or (forest.keep_rows and bags)):
        return
    if bags is None or bags.digest() != getattr(forest, "_fit_bags", None):
        raise ValueError(
            "warm_start=True keeps trees whose bags were drawn otherwise, so it is not known "
            "which rows are out of them. For out-of-bag scores, and with keep_rows=True, keep "
            "bootstrap, max_samples, bootstrap_groups and the number of rows as they were, or set "
            "warm_start=False."
        )


def leaves_of(
    forest: Any, trees: Sequence[Tree], book: CodeBook, X: Any, run: LocalRunner
) -> Iterator[np.ndarray]:
    """Leaves of all rows in each of the trees that are there.

    The rows walk by their values, as the codes of these trees are those of another coding.
    """
    if not trees:
        return
    if isinstance(X, PartitionedTable):
        (leaves,) = computed(forest.apply(X.collection))
        yield from np.asarray(leaves).T
        return
    table = book.check(X, estimator=type(forest).__name__, run=run)
    yield from leaves_by_tree(trees, book, table, run)


class FitOfForest:
    """The fit of a forest to a coded table: its trees come one by one, whoever grows them.

    Rows of one group, of `groups` (n_rows,), are in a bag together.
    """

    def __init__(self, forest: BaseForest, training: Training, groups: Any = None) -> None:
        encoded, book = training.encoded, training.encoded.book
        bags = bags_of(forest, encoded.seed, encoded.target, groups)
        self.forest, self.training = forest, training
        self.growth = ForestGrowth(
            encoded.coded,
            encoded.target,
            encoded.rules,
            bags,
            book.thresholds,
            values=book.code_values() if forest.splitter == "random" else None,
            shares=encoded.shares,
            max_leaf_nodes=forest.max_leaf_nodes,
            ccp_alpha=forest.ccp_alpha,
        )
        self.learned = forest._learned_of(book, encoded.target) | {  # beside the trees
            "n_outputs_": encoded.target.n_outputs,
            "max_features_": encoded.max_features,
            "codebook_": book.without_values(),
            "_fit_seed": encoded.seed,
            "_fit_bags": None if bags is None else bags.digest(),
            "_fit_rows": encoded.target.n_rows,
        }

    def grow(
        self,
        callbacks: Sequence[Callback],
        kept: KeptTrees | None = None,
        facts: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        """Grow the trees, beyond those that are kept, and let the forest learn what a fit learns.

        With `facts`, an error of a cluster brings along a forest that can be resumed.
        """
        forest, training, learned = self.forest, self.training, dict(self.learned)
        coded, stats = training.encoded.coded, training.stats
        kept = KeptTrees() if kept is None else kept

        def estimator_of(tree: Tree) -> Any:
            missing = columns_with_missing([tree], coded)
            return forest._estimator(tree, {**self.learned, "_saw_missing": missing})

        numbers = range(len(kept.trees), forest.n_estimators)
        fit = ForestFit(forest, numbers, list(kept.trees), estimator_of)
        oob = stopping = None
        if forest.oob_score or forest.oob_tol is not None:
            oob = OutOfBag(self.growth, training.coded_rows)
            if forest.oob_tol is not None:
                stopping = OobStopping(forest.oob_tol, partial(self._score, oob), fit.oob_scores)
                callbacks = [stopping, *callbacks]  # first, so that the others see its scores
            _add_kept(fit, oob, stopping, kept)
        saved = training.saved
        if saved is not None:
            _add_earlier(fit, oob, stopping, saved.trees()[0][: forest.n_estimators])
        look = oob.votes_of if oob is not None and oob.coded_rows.is_here else None
        with listening(fit, callbacks), training.saving():
            growing = grow_trees(
                self.growth, fit.numbers, training.run, regime=forest.regime, look=look, stats=stats
            )
            try:
                with stats.phase("growth"), closing(growing) as grown:
                    for number, tree, votes in (
                        grown if oob is None or oob.coded_rows.is_here else oob.seen(grown)
                    ):
                        fit.trees.append(tree)
                        if oob is not None:
                            oob.add(tree, votes)
                        if saved is not None:
                            saved.add(0, [tree])
                        # all of them hear of the tree, whoever stops
                        if told([callback.on_tree_end(fit, number) for callback in callbacks]):
                            break
                if isinstance(coded, CodedPartitions):
                    learn_rows(coded, stats)  # known, unless there was nothing to grow
            except ClusterError as error:
                made = None if facts is None else self._so_far(fit.trees, facts)
                if made is not None:
                    bring_along(error, made, len(fit.trees), forest.n_estimators)
                raise
            if oob is not None:
                learned |= self._learned_out_of_bag(oob)
            if forest.oob_tol is not None:
                learned["oob_scores_"] = np.array(fit.oob_scores)
            learned["forest_"] = Forest(tuple(fit.trees))
            if forest.keep_rows:
                learned |= learned_rows(self.growth, training, fit.trees, kept.leaves)
            before = forest._saw_missing if kept.trees else False
            learned["_saw_missing"] = read_only(columns_with_missing(fit.trees, coded) | before)
            learned["_fit_report"] = stats.report()
            forest._forget_at_times()
            forest.__dict__.update(learned)

    def _so_far(self, trees: Sequence[Tree], facts: Callable[[], dict[str, Any]]) -> Any:
        """A forest of the trees that are complete, which can be resumed; None where none are.

        Nor where the cluster was lost before the growth began: trees that were kept are in the
        forest that was to have more of them.
        """
        coded = self.training.encoded.coded
        is_unseen = isinstance(coded, CodedPartitions) and coded.facts is None
        if not trees or is_unseen:
            return None
        made = self.forest._unfitted()
        made.__dict__.update(
            self.learned,
            forest_=Forest(tuple(trees)),
            _saw_missing=columns_with_missing(trees, coded),
            _fit_facts=facts(),
            _fit_report=self.training.stats.report(),
        )
        if made.regime == "replicated":  # on a cluster that may be gone
            made.regime = None
        return made

    def of_sets(self, resampling: Resampling) -> list[Any]:
        """An estimator with the parameters of the forest for each set; or the error of its fit."""
        forest, training = self.forest, self.training
        if forest.oob_tol is not None:
            return self._flat_of_sets(resampling)
        grown = self._grown(training, forest.n_estimators, resampling)
        models = self._models_of(grown, resampling)
        if not forest.oob_score:
            return models
        trees = [model.forest_.trees for model in models]
        sums = [OutOfBag(self.growth, training.coded_rows) for _ in trees]
        add_to_sums(sums, range(len(trees[0])), trees, resampling, training.run)
        return [
            self._with_out_of_bag(model, oob, resampling, number)
            for number, (model, oob) in enumerate(zip(models, sums, strict=True))
        ]

    def _flat_of_sets(self, resampling: Resampling) -> list[Any]:
        """Forests of sets that end each at a tree of its own (``oob_tol``)."""
        forest, training, n_trees = self.forest, self.training, self.forest.n_estimators
        assert forest.oob_tol is not None
        oobs = [OutOfBag(self.growth, training.coded_rows) for _ in range(resampling.n_sets)]
        stops = [OobStopping(forest.oob_tol, partial(self._score, oob), []) for oob in oobs]
        grown: dict[int, tuple[Tree, ...]] = {}
        if training.saved is None:
            training = replace(training, saved=SavedTrees([], range(len(oobs))))
        errors: dict[int, ValueError] = {}  # of scores, which end a forest
        # a scorer may not be shared
        run = serial if callable(forest.oob_score) else training.run
        left, first = list(range(len(oobs))), 0
        while left and first < n_trees:
            numbers = range(first, min(n_trees, max(FIRST, first + max(1, first // SHARE))))
            sets, ended = resampling.some(left), set[int]()
            own = self._grown(training.of_sets(left), numbers.stop, sets)
            grown.update(zip(left, own, strict=True))

            def enough(i: int, left: list[int] = left, ended: set[int] = ended) -> bool:
                try:
                    if not stops[left[i]].ends(n_trees):
                        return False
                except ValueError as error:
                    errors[left[i]] = error
                ended.add(left[i])
                return True

            recent = [trees[first:] for trees in own]
            add_to_sums([oobs[number] for number in left], numbers, recent, sets, run, enough)
            first = numbers.stop
            training.advance(len(ended) * (n_trees - first))  # that are not wanted
            left = [number for number in left if number not in ended]
        found = []
        trees = [grown[number][: len(stop.scores)] for number, stop in enumerate(stops)]
        for number, model in enumerate(self._models_of(trees, resampling)):
            model.oob_scores_ = np.array(stops[number].scores)
            whole = errors.get(number)
            found.append(whole or self._with_out_of_bag(model, oobs[number], resampling, number))
        return found

    def _grown(self, own: Training, n_trees: int, resampling: Resampling) -> list[tuple[Tree, ...]]:
        """The first trees, by set."""
        how = own.listeners | {"regime": self.forest.regime}
        return grow_sets(self.growth, range(n_trees), resampling, own.run, **how)

    def _models_of(self, grown: Sequence[tuple[Tree, ...]], resampling: Resampling) -> list[Any]:
        """Fitted forests of these trees, by set."""
        missing = missing_by_model(grown, self.training.encoded.coded)
        models = [self.forest._unfitted() for _ in grown]
        for model, trees, mine in zip(models, grown, missing, strict=True):
            model.__dict__.update(self.learned, forest_=Forest(trees), _saw_missing=mine)
        if self.forest.keep_rows:
            kept = learned_rows_of_sets(self.growth, self.training, resampling, grown)
            for model, learned in zip(models, kept, strict=True):
                model.__dict__.update(learned)
        return models

    def _with_out_of_bag(
        self, model: BaseForest, oob: OutOfBag, resampling: Resampling, number: int
    ) -> Any:
        """The model of a set, with what it learns from rows out of its bags; or an error."""
        try:
            rows = None if resampling.cells is None else resampling.rows(number)
            model.__dict__.update(self._learned_out_of_bag(oob, rows))
        except ValueError as error:  # of a scorer
            return error
        return model

    def _learned_out_of_bag(self, oob: OutOfBag, rows: np.ndarray | None = None) -> dict[str, Any]:
        """What a fit learns from the rows out of its bags.

        `rows` says which are in its training set, bool (n_rows,); None: all of positive weight.
        """
        score = self._score(oob)
        if not oob.votes.all():
            warn(
                "Some inputs do not have OOB scores. This probably means too few trees were used "
                "to compute any reliable OOB estimates."
            )
        mean, counts = oob.mean(), self.training.encoded.target.has_weight
        if rows is not None:
            counts = rows if counts is None else rows & counts
        learned = self.forest._oob_errors_of(oob, self._y(), counts)
        bags = oob.growth.bags
        assert bags is not None
        if learned and not bags.by_row:
            learned["_oob_keys"] = bags.row_id
        if learned and bags.means is not None:
            learned["_oob_means"] = bags.means
        target = self.training.encoded.target
        return {**self.forest._oob_predictions(mean, target), **learned, "oob_score_": score}

    def _score(self, oob: OutOfBag) -> float:
        """Score of the rows that have a vote."""
        return self.forest._oob_score(oob.mean(), self._y(), self.training.encoded.target)

    def _y(self) -> np.ndarray:
        """The target as it was given, (n_rows,) or (n_rows, n_outputs)."""
        columns = columns_of_outputs(self.training.y)
        return np.asarray(self.training.y).ravel() if columns is None else np.column_stack(columns)


def _add_kept(fit: ForestFit, oob: OutOfBag, stopping: OobStopping | None, kept: KeptTrees) -> None:
    """Add up the trees that are there, as if they had just been grown.

    Where they are enough, no tree is left to be grown.
    """
    enough = False
    for number, (tree, found) in enumerate(zip(kept.trees, kept.leaves(), strict=True)):
        rows = oob.rows(number)
        oob.add(tree, Votes(rows, found[rows]))
        if stopping is not None:
            enough |= stopping.see()
    if enough:
        logger.info("no tree is added: the out-of-bag score of those that are there is flat")
        fit.numbers = fit.numbers[:0]


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
            enough = stopping.see()
    fit.numbers = fit.numbers[:0] if enough else range(len(fit.trees), fit.numbers.stop)


class TreeCounter(Callback):
    """Says of each tree that it has come."""

    def __init__(self, advance: Callable[[int], object]) -> None:
        self._advance = advance

    def on_tree_end(self, fit: ForestFit, number: int) -> None:
        """One tree more."""
        self._advance(1)
