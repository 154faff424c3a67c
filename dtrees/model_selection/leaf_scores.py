"""Scores of held-out rows that are functions of sums over leaves.

Such a score needs to know of a leaf how many held-out rows of each class arrive there, or their
number, sum and sum of squares. Those are sums over rows, known for every node of a tree once its
rows have walked down it. The scores of all nested trees inside it need no prediction
(`dtrees.core.model.nested_trees`; [CV] 3.4, [SF] 3)::

    held-out rows ──leaves──▶ counts of every node ──▶ loss of every node, if it were a leaf
                                                            │ limits
                               scores of all nested trees ◀─┘

The numbers are those of scikit-learn's scorers, but for the last digits. Losses are added up in
fixed point, so cells of a grid that are the same tree have the same score, and tie. Some cases are
left to scikit-learn: classes that the held-out rows lack, or a Poisson deviance of means that are
not positive. `LeafScore.is_unfit` says so.

A score of the predicted classes (F1, precision, recall) is a function of how many rows of each
class are told to be of each. That is a matrix of sums over leaves, too.

scikit-learn's own function makes the score, of K x K rows, one for each pair of classes, with these
numbers as their weights::

    true   said   rows                      y_true  y_pred  sample_weight
      a      a     40    a row for each       a       a          40
      a      b      2    ──────────────▶      a       b           2
      b      b     17                         b       b          17

No formula is written down again. scikit-learn says which label is positive, what a class that
nobody predicts is worth, and which warnings there are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin

from dtrees._forks import cached_property
from dtrees.coding.outputs import shares_by_output
from dtrees.core.model.nested_trees import (
    PruningGrid,
    sums_over_alphas,
    sums_over_branches,
    sums_over_leaves,
)
from dtrees.core.model.tree import LEAF, Tree
from dtrees.estimators.fitted_sets import FittedSets, trees_of

BITS = 60  # of sums in fixed point
BITS_OF_DOUBLE = 53


@dataclass(frozen=True, eq=False)
class HeldOut:
    """A tree, and rows that it was not grown from."""

    tree: Tree
    leaves: np.ndarray  # intp (n_rows,)
    y: np.ndarray  # numbers of classes, int64, or the target, float64 (n_rows,); or several columns
    classes: Any  # labels, of several targets a list of them; None for regression
    weight: np.ndarray | None = None  # float64 (n_rows,) above 0, exact in sums; None: 1

    @property
    def total(self) -> float:
        """Rows, or their weight."""
        return float(len(self.y) if self.weight is None else self.weight.sum())

    @cached_property
    def values(self) -> np.ndarray:
        """Shares or means of all nodes."""
        return self.tree.value

    @cached_property
    def counts(self) -> np.ndarray:
        """Rows of each class in every node, int64 (n_nodes, n_classes); or float64: weights."""
        shape = self.tree.node_count, self.tree.n_values
        cell = self.leaves * shape[1] + self.y
        counts = np.bincount(cell, self.weight, minlength=shape[0] * shape[1])
        if self.weight is None:
            counts = counts.astype(np.int64)
        return sums_over_branches(self.tree, counts.reshape(shape))

    @cached_property
    def said(self) -> np.ndarray:
        """The class that every node says; of equal shares the first."""
        found: np.ndarray = self.values.argmax(axis=1)
        return found

    @cached_property
    def center(self) -> float:
        """What sums of squares are taken around: the mean of the rows."""
        return float(np.average(self.y, weights=self.weight))

    @cached_property
    def moments(self) -> np.ndarray:
        """Number, sum and sum of squares about `center`, in every node; float64 (n_nodes, 3)."""
        away = self.y - self.center
        return self.summed(np.column_stack([np.ones_like(away), away, away * away]))

    def summed(self, each: np.ndarray) -> np.ndarray:
        """What the rows of every node add up to; float64 (n_nodes, m) of (n_rows, m)."""
        columns = [self.summed_in_leaves(column) for column in each.T]
        return sums_over_branches(self.tree, np.column_stack(columns))

    def summed_in_leaves(self, each: np.ndarray) -> np.ndarray:
        """What the rows of every leaf add up to; float64 (n_nodes,) of (n_rows,)."""
        if self.weight is not None:
            each = each * self.weight
        return np.bincount(self.leaves, each, minlength=self.tree.node_count)


def held_out_of(
    fitted: FittedSets,
    number: int,
    rows: np.ndarray,
    weight: np.ndarray | None = None,
    keeps: bool = True,
) -> HeldOut:
    """The tree of a set, and some rows of the table; `keeps`: their leaves stay at hand."""
    tree = trees_of(fitted.models[number])[0]
    leaves = fitted.leaves(number, rows, keeps)
    return HeldOut(tree, leaves, fitted.y[rows], fitted.target.labels, weight)


def exact_in_sums(weight: np.ndarray) -> np.ndarray:
    """Weights in fixed point, so that a sum of them does not depend on its order."""
    _, exponent = np.frexp(weight.sum())
    whole = np.rint(np.ldexp(weight, BITS_OF_DOUBLE - exponent))
    fixed: np.ndarray = np.ldexp(whole, exponent - BITS_OF_DOUBLE)
    return fixed


def fixed_point(values: np.ndarray, bound: Any = None) -> tuple[np.ndarray, Any]:
    """Integers whose sums cannot overflow, and their unit, that of each column.

    `bound` is what no value and no sum that is asked for exceeds; None: they are all added up.
    """
    if values.dtype.kind == "i":
        return values, 1.0
    if bound is None:
        bound = np.abs(values).sum(axis=0)
    _, exponent = np.frexp(bound)
    scaled = np.rint(np.ldexp(values, BITS - exponent)).astype(np.int64)
    return scaled, np.ldexp(1.0, exponent - BITS)


OF_MATRICES = (  # and of weights
    metrics.accuracy_score,
    metrics.balanced_accuracy_score,
    metrics.cohen_kappa_score,
    metrics.f1_score,
    metrics.fbeta_score,
    metrics.hamming_loss,
    metrics.jaccard_score,
    metrics.matthews_corrcoef,
    metrics.precision_score,
    metrics.recall_score,
    metrics.zero_one_loss,
)


def scorer_of_classes(scorer: Any) -> Any:
    """A scorer of scikit-learn, or of its name, that looks at predicted classes only; or None."""
    if isinstance(scorer, str):
        try:
            scorer = metrics.get_scorer(scorer)
        except ValueError:  # no such name
            return None
    if type(scorer).__module__ != metrics.get_scorer.__module__:
        return None
    is_known = any(getattr(scorer, "_score_func", None) is metric for metric in OF_MATRICES)
    of_classes = getattr(scorer, "_response_method", None) == "predict"
    return scorer if is_known and of_classes and "sample_weight" not in scorer._kwargs else None


class KnownPredictions(ClassifierMixin, BaseEstimator):
    """Stands for a fitted classifier of known predictions; a row is the number of a class."""

    def __init__(self, classes: np.ndarray) -> None:
        self.classes = self.classes_ = classes

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The labels of the classes."""
        labels: np.ndarray = self.classes[X]
        return labels


def scores_of_matrices(scorer: Any, matrices: np.ndarray, classes: np.ndarray) -> np.ndarray | None:
    """What a scorer says of models, by the classes that they take for one another; (n_models,).

    `matrices`, float64 (n_models, n_classes * n_classes), hold rows or their weight: for every
    predicted class the true ones. None: the scorer fails, which scikit-learn's loop deals with.
    Costs a call of scikit-learn's function for each different matrix.
    """
    said, true = np.divmod(np.arange(matrices.shape[1]), len(classes))
    model, true_labels = KnownPredictions(classes), classes[true]
    distinct, place = np.unique(matrices, axis=0, return_inverse=True)
    found = np.empty(len(distinct))
    try:
        for number, weight in enumerate(distinct):
            some = np.flatnonzero(weight)
            found[number] = scorer(model, said[some], true_labels[some], sample_weight=weight[some])
    except Exception:  # of any kind: what a scorer that fails is worth is not known here
        return None
    scores: np.ndarray = found[place.ravel()]
    return scores


EPSILON = float(np.finfo(np.float64).eps)
LEAST_SPREAD = 2.0**-480  # of a target: its squares, and their last digits, are above 2**-1022
MOST_SUMS = 2**23  # of all nodes, or of all nested trees, that a score may keep


def _right(held_out: HeldOut) -> np.ndarray:
    """Rows of the class that a node says."""
    return held_out.counts[np.arange(held_out.tree.node_count), held_out.said]


def _right_of_rows(held_out: HeldOut) -> np.ndarray:
    """Rows whose class their leaf says, of all leaves together; (1,)."""
    tree, leaves = held_out.tree, held_out.leaves
    if tree.statistics.dtype != np.int32:
        said = tree.value_of(leaves).argmax(axis=1)
    else:  # weights that are equal have equal shares, and equal doubles
        weights = tree.statistics.take(leaves, axis=0)
        said = weights[:, 1] > weights[:, 0] if tree.n_values == 2 else weights.argmax(axis=1)
    return np.array([np.count_nonzero(said == held_out.y)])


def _right_by_class(held_out: HeldOut) -> np.ndarray:
    right = np.zeros_like(held_out.counts)
    right[np.arange(len(right)), held_out.said] = _right(held_out)
    return right


def _by_said(held_out: HeldOut) -> np.ndarray:
    """Rows of each class where the class of their place is said; (n_nodes, n_classes**2)."""
    n_nodes, n_classes = held_out.counts.shape
    matrix = np.zeros((n_nodes, n_classes, n_classes), dtype=held_out.counts.dtype)
    matrix[np.arange(n_nodes), held_out.said] = held_out.counts
    return matrix.reshape(n_nodes, -1)


def _log_likelihood(held_out: HeldOut) -> np.ndarray:
    logarithms = np.log(np.clip(held_out.values, EPSILON, 1 - EPSILON))
    return (held_out.counts * logarithms).sum(axis=1)


def _squares_of_shares(held_out: HeldOut) -> np.ndarray:
    return -(held_out.counts * (1 - held_out.values) ** 2).sum(axis=1)


def _squares(held_out: HeldOut) -> np.ndarray:
    """Squared errors, negative. Those of leaves are added up as they are: moments would cancel."""
    n, total, square = held_out.moments.T
    away = held_out.values[:, 0] - held_out.center
    found = np.maximum(square - 2 * away * total + n * away * away, 0.0)
    errors = held_out.y - held_out.values[held_out.leaves, 0]
    is_leaf = held_out.tree.test == LEAF
    found[is_leaf] = held_out.summed_in_leaves(errors * errors)[is_leaf]
    return -found


def _squares_of_rows(held_out: HeldOut) -> np.ndarray:
    """Squared errors of all leaves together, negative: as `_squares` to the last bit; (1,)."""
    errors = held_out.y - held_out.tree.value_of(held_out.leaves)[:, 0]
    of_leaves = held_out.summed_in_leaves(errors * errors)
    integers, unit = fixed_point(of_leaves, _most_squares(held_out))
    return np.array([-integers.sum() * unit])


def _most_squares(held_out: HeldOut) -> float:
    """What squared errors of no nested tree add up to more than, roundings included."""
    values = held_out.values
    farthest = np.maximum(held_out.y - values.min(), values.max() - held_out.y)
    with np.errstate(over="ignore"):
        squares = farthest * farthest * (1.0 if held_out.weight is None else held_out.weight)
        return min(2.0 * float(squares.sum()), sys.float_info.max)


def _poisson(held_out: HeldOut) -> np.ndarray:
    """Half the deviance, negative; y log y is the same in every tree, but sets the scale."""
    n, total, _ = held_out.moments.T
    y, mean = held_out.y, held_out.values[:, 0]
    total = total + n * held_out.center
    own = y * np.log(y, out=np.zeros_like(y), where=y > 0)
    logs = total * np.log(mean, out=np.zeros_like(mean), where=mean > 0)
    return logs - held_out.summed(own[:, None])[:, 0] + total - n * mean


@dataclass(frozen=True)
class LeafScore:
    """A scorer of scikit-learn as a function of sums."""

    name: str
    of_classes: bool
    share: Callable[[HeldOut], np.ndarray]  # of nodes as leaves: (n_nodes,) or (n_nodes, m)
    score: Callable[[np.ndarray, HeldOut], np.ndarray | None]  # of (n, m) sums; or None
    is_unfit: Callable[[HeldOut], bool] | None = None  # scikit-learn has to be asked; None: never
    is_matrix: bool = False  # there is a sum for each pair of classes
    of_rows: Callable[[HeldOut], np.ndarray] | None = None  # sums of a whole tree, of equal rows
    most: Callable[[HeldOut], float] | None = None  # bounds a share, and each sum; None: unknown


def _mean(sums: np.ndarray, held_out: HeldOut) -> np.ndarray:
    mean: np.ndarray = sums[:, 0] / held_out.total
    return mean


def _mean_of_recalls(sums: np.ndarray, held_out: HeldOut) -> np.ndarray:
    mean: np.ndarray = (sums / held_out.counts[0]).mean(axis=1)
    return mean


def _root(sums: np.ndarray, held_out: HeldOut) -> np.ndarray:
    return -np.sqrt(-_mean(sums, held_out))


def _twice(sums: np.ndarray, held_out: HeldOut) -> np.ndarray:
    return 2 * _mean(sums, held_out)


def _r2(sums: np.ndarray, held_out: HeldOut) -> np.ndarray:
    around_mean = np.average((held_out.y - held_out.center) ** 2, weights=held_out.weight)
    return 1 + _mean(sums, held_out) / around_mean


def _of_matrices(scorer: Any, sums: np.ndarray, held_out: HeldOut) -> np.ndarray | None:
    assert held_out.classes is not None
    return scores_of_matrices(scorer, sums, held_out.classes)


def _lacks_classes(held_out: HeldOut) -> bool:
    return not held_out.counts[0].all()


def _is_constant_or_tiny(held_out: HeldOut) -> bool:
    """Whether squares of distances lose digits below the smallest float64, or are all zero."""
    return bool(np.ptp(held_out.y) < LEAST_SPREAD)


def _not_positive(held_out: HeldOut) -> bool:
    passed = held_out.moments[:, 0] > 0
    return bool((held_out.y < 0).any() or (held_out.values[passed, 0] <= 0).any())


def _positive_is_unknown(held_out: HeldOut) -> bool:
    """Whether scikit-learn would have to be told which label is the positive one."""
    assert held_out.classes is not None
    known = held_out.classes.tolist() in ([0, 1], [-1, 1], [False, True])
    return not known or _lacks_classes(held_out)


SQUARES: dict[str, Any] = {"of_rows": _squares_of_rows, "most": _most_squares}
SCORES = {
    score.name: score
    for score in (
        LeafScore("accuracy", True, _right, _mean, of_rows=_right_of_rows),
        LeafScore("balanced_accuracy", True, _right_by_class, _mean_of_recalls, _lacks_classes),
        LeafScore("neg_log_loss", True, _log_likelihood, _mean),
        LeafScore("neg_brier_score", True, _squares_of_shares, _mean, _positive_is_unknown),
        LeafScore("neg_mean_squared_error", False, _squares, _mean, **SQUARES),
        LeafScore("neg_root_mean_squared_error", False, _squares, _root, **SQUARES),
        LeafScore("r2", False, _squares, _r2, _is_constant_or_tiny, **SQUARES),
        LeafScore("neg_mean_poisson_deviance", False, _poisson, _twice, _not_positive),
    )
}


def leaf_scores_of(
    scoring: Any, *, of_classes: bool, n_outputs: int = 1
) -> dict[str, LeafScore] | None:
    """Scores by leaves that a ``scoring`` of scikit-learn asks for, by the names of their results.

    The name is "score" where there is one scorer. None: some scorer is no function of such sums.
    """
    asked: dict[str, Any]
    if isinstance(scoring, Mapping):
        asked = dict(scoring)
    elif isinstance(scoring, list | tuple | set):
        asked = {name: name for name in scoring}
    else:
        asked = {"score": scoring}
    own = "accuracy" if of_classes else "r2"  # of the estimator
    found = {}
    for name, scorer in asked.items():
        known = SCORES if n_outputs == 1 else SCORES_OF_OUTPUTS
        if scorer is None or (isinstance(scorer, str) and scorer in known):
            score = known[own if scorer is None else scorer]
        else:
            of_matrix = scorer_of_classes(scorer) if n_outputs == 1 else None
            if of_matrix is None:
                return None
            scored = partial(_of_matrices, of_matrix)
            score = LeafScore(str(scorer), True, _by_said, scored, is_matrix=True)
        if score.of_classes != of_classes:
            return None
        found[name] = score
    return found


# ---------------------------------------------------------------------------------------------
# several targets: what is said of all of them decides on a row, so that each row is looked at in
# every node that it passes


OfRows = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of targets, and what is said of them


def _on_paths(of_rows: OfRows, held_out: HeldOut) -> np.ndarray:
    """What rows add to all nodes that they pass, each as a leaf; (n_nodes, m).

    `of_rows` makes (n, m) of targets and what nodes say. O(rows x depth x m).
    """
    tree, node, y, weight = held_out.tree, held_out.leaves, held_out.y, held_out.weight
    is_split = tree.test != LEAF
    parent = np.full(tree.node_count, -1, dtype=np.intp)
    for children in (tree.children_left, tree.children_right):
        parent[children[is_split]] = np.flatnonzero(is_split)
    said = held_out.values
    if not tree.is_regression:
        shares = shares_by_output(said, tree.n_classes)
        said = np.column_stack([own.argmax(axis=1) for own in shares])
    found: Any = 0.0
    while len(node) > 0:
        each = of_rows(y, said[node])
        if weight is not None:
            each = each * weight[:, None]
        columns = [np.bincount(node, own, minlength=tree.node_count) for own in each.T]
        found = found + np.column_stack(columns)
        node = parent[node]
        goes_on = node >= 0
        y, node = y[goes_on], node[goes_on]
        weight = None if weight is None else weight[goes_on]
    return np.asarray(found)


def _squared(y: np.ndarray, said: np.ndarray) -> np.ndarray:
    found: np.ndarray = (y - said) ** 2
    return found


def _wrong(y: np.ndarray, said: np.ndarray) -> np.ndarray:
    return y != said


def _all_right(y: np.ndarray, said: np.ndarray) -> np.ndarray:
    return (y == said).all(axis=1)[:, None]


def _error_and_square(of_rows: OfRows, power: int, y: np.ndarray, said: np.ndarray) -> np.ndarray:
    """The mean error of each row, in units of ``2**power`` of its root, and its square; (n, 2)."""
    errors = np.ldexp(of_rows(y, said).mean(axis=1), -2 * power)
    return np.column_stack([errors, errors**2])


def _mean_of_outputs(sums: np.ndarray, held_out: HeldOut) -> np.ndarray:
    """Minus the mean over targets."""
    found: np.ndarray = -(sums / held_out.total).mean(axis=1)
    return found


def _root_of_outputs(sums: np.ndarray, held_out: HeldOut) -> np.ndarray:
    found: np.ndarray = -np.sqrt(sums / held_out.total).mean(axis=1)
    return found


def _r2_of_outputs(sums: np.ndarray, held_out: HeldOut) -> np.ndarray:
    mean = np.average(held_out.y, axis=0, weights=held_out.weight)
    spread = np.average((held_out.y - mean) ** 2, axis=0, weights=held_out.weight)
    found: np.ndarray = 1 - (sums / held_out.total / spread).mean(axis=1)
    return found


def _has_a_constant(held_out: HeldOut) -> bool:
    return bool((np.ptp(held_out.y, axis=0) < LEAST_SPREAD).any())


def _is_no_indicator(held_out: HeldOut) -> bool:
    """Whether scikit-learn has no accuracy of these targets: there are more labels than two."""
    labels = np.concatenate(held_out.classes)
    return labels.dtype.kind not in "biuf" or len(np.unique(labels)) > 2


ERRORS = partial(_on_paths, _squared)
SCORES_OF_OUTPUTS = {
    score.name: score
    for score in (
        LeafScore("accuracy", True, partial(_on_paths, _all_right), _mean, _is_no_indicator),
        LeafScore("neg_mean_squared_error", False, ERRORS, _mean_of_outputs),
        LeafScore("neg_root_mean_squared_error", False, ERRORS, _root_of_outputs),
        LeafScore("r2", False, ERRORS, _r2_of_outputs, _has_a_constant),
    )
}


def leaf_scores(
    scores: Sequence[LeafScore], held_out: HeldOut, limits: PruningGrid
) -> np.ndarray | None:
    """Scores of all nested trees inside a tree, float64 (n_scores, n_limits).

    `held_out` has a row at least. None: scikit-learn should be asked. O(rows + nodes x classes),
    and what `sums_over_leaves` costs. For scores of a matrix O(nodes x classes**2), and a call of
    scikit-learn's function for each different matrix. Of whole trees alone, accuracy takes
    O(rows x classes), and squared errors O(rows + nodes).
    """
    if any(score.is_unfit is not None and score.is_unfit(held_out) for score in scores):
        return None
    if any(score.is_matrix for score in scores):
        n_sums = held_out.tree.n_values**2 * max(held_out.tree.node_count, len(limits))
        if n_sums > MOST_SUMS:
            return None
    found = []
    sums: dict[Callable[[HeldOut], np.ndarray], np.ndarray] = {}
    for score in scores:
        if score.share not in sums:
            sums[score.share] = _sums_of(score, held_out, limits)
        of_limits = score.score(sums[score.share], held_out)
        if of_limits is None:
            return None
        found.append(of_limits)
    return np.array(found)


def _sums_of(score: LeafScore, held_out: HeldOut, limits: PruningGrid) -> np.ndarray:
    """What the score is made of, of all nested trees; (n_limits, m)."""
    is_whole = len(limits.whole) == len(limits)
    if is_whole and score.of_rows is not None and held_out.weight is None:
        of_tree = score.of_rows(held_out)
        return np.broadcast_to(of_tree, (len(limits), len(of_tree)))
    share = score.share(held_out)
    most = None if score.most is None else score.most(held_out)
    integers, unit = fixed_point(share.reshape(len(share), -1), most)
    return sums_over_leaves(held_out.tree, integers, limits) * unit


def errors_of_alphas(
    held_out: HeldOut, alphas: np.ndarray, power: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Errors of pruned trees, 0 or 1 for a class, squared for a number; float64 (n_alphas,) each.

    Of several targets their mean. The sum over the rows, and the sum of their squares. Numbers are
    counted in units of ``2**power``, so that no power of them over- or underflows.
    """
    if held_out.tree.n_outputs > 1:
        of_rows = _squared if held_out.tree.is_regression else _wrong
        errors = partial(_error_and_square, of_rows, power)
        of_nodes = list(map(fixed_point, _on_paths(errors, held_out).T))
    elif not held_out.tree.is_regression:
        wrong = held_out.counts.sum(axis=1) - _right(held_out)
        of_nodes = [(wrong, 1.0)]
    else:
        numbers = (held_out.y, held_out.values[:, 0])
        y, away = (np.ldexp(each - held_out.center, -power) for each in numbers)
        n, s1, s2, s3, s4 = held_out.summed(np.column_stack([y**power for power in range(5)])).T
        second = np.maximum(s2 - 2 * away * s1 + n * away**2, 0)
        fourth = s4 - 4 * away * s3 + 6 * away**2 * s2 - 4 * away**3 * s1 + n * away**4
        of_nodes = [fixed_point(second), fixed_point(np.maximum(fourth, 0))]
    values = np.column_stack([integers for integers, _ in of_nodes])
    sums = sums_over_alphas(held_out.tree, values, alphas)
    sums[alphas == 0] = values[held_out.tree.test == LEAF].sum(axis=0)
    found = [own * unit for own, (_, unit) in zip(sums.T, of_nodes, strict=True)]
    return found[0], found[-1]
