"""What parameters and attributes of trees and forests mean, written once for all classes.

A class's docstring has placeholders, which `documented` fills when the class is made::

    class RandomForestClassifier:        {parameters}  in the order of the signature, with defaults
                                         {attributes}  those that a fit of this kind learns
                                         {coding}, {bags}  paragraphs that several classes share

An entry of a section ("forest", "classes") stands in front of one of the section "all".
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from textwrap import indent
from typing import Any, Literal, TypeVar

Made = TypeVar("Made", bound=type)

PARAGRAPHS = {
    "coding": """\
The table is coded once, with 255 codes a column unless `max_bins` says otherwise. Trees do not
depend on each other, so any number of threads or workers grows the same forest, bit for bit.""",
    "bags": """\
Bags differ from scikit-learn's: there a bag has a fixed size, and how often a row is in it
depends on the other rows; here every row draws for itself, so the size varies by about its
square root. The forests predict equally well.""",
}

PARAMETERS = {
    "classes": """\
loss : {"log_loss"} or dtrees.losses.Loss
    What the model makes smaller: the logarithm of the share of the true class, two or more; or a
    loss of your own.
criterion : str or dtrees.criteria.Criterion
    What a split makes smaller: "gini" or "entropy", in bits, for which "log_loss" is another
    name. Or greater: "chi_square", the statistic of sides and classes; "gain_ratio", what the
    entropy decreases by, over the entropy of the sides; or a criterion of your own.
oob_score : bool or callable
    Whether rows are predicted by the trees whose bag lacks them, and scored:
    accuracy, or by a callable (y, predictions) -> float. Needs ``bootstrap=True`` or
    `max_samples`.
""",
    "numbers": """\
loss : str or dtrees.losses.Loss
    What the model makes smaller: "squared_error", "absolute_error", "quantile", "huber", "poisson",
    "gamma" or "tweedie". "huber" is the square of small residuals, and a line beyond
    (see `alpha`). "poisson" and "tweedie" need a `y` that is not negative, "gamma" one that is
    positive; they predict by way of a logarithm. Or a loss of your own.
alpha : float
    With ``loss="huber"``: the quantile of the absolute residuals beyond which they count as a
    line. It is computed anew for each iteration. Other losses warn of it.
power : float
    With ``loss="tweedie"``: the variance of `y` is its mean to this power, between 1 (Poisson) and
    2 (gamma).
quantile : float
    Which quantile is predicted with ``loss="quantile"``, between 0 and 1.
criterion : str or dtrees.criteria.Criterion
    What a split makes smaller, of several targets their mean. "squared_error": the variance.
    "absolute_error": the mean absolute error, and a node predicts the weighted median of its
    rows. "poisson": half the Poisson deviance, of a `y` that is not negative. Or a criterion of
    your own.
oob_score : bool or callable
    Whether rows are predicted by the trees whose bag lacks them, and scored:
    R squared, or by a callable (y, predictions) -> float. Needs ``bootstrap=True`` or
    `max_samples`.
keep_rows : bool
    Whether the fit keeps the target of each row by the leaf that it is in, for
    `predict_quantiles` and `predict_cdf`. That takes 6 bytes for each row in the bag of each
    tree, 4 where rows are not drawn and weigh the same, and 12 where they weigh.
""",
    "tree": """\
splitter : {"best", "random"}
    Whether a column is split where that is best, or where a draw says: at a value between
    the least and the greatest of the node, as in extremely randomized trees. Categories go left
    or right at random. Of such splits of all columns (`max_features`), a node takes the best.
min_samples_split : int or float
    Least number of rows of a node that is split; a float is a share of the rows of positive
    weight, rounded up.
random_state : int, RandomState or None
    Seed of the draws of columns, and of the sample behind cuts (see `max_bins`). Where splits
    of several columns gain the same, the seed and the node decide between them. None: the
    lowest of these columns is taken, so a tree that searches all columns of exact codes draws
    nothing and is the same each time.
class_weight : dict or "balanced"
    Weight of each class by its label, 1 for classes left out; "balanced" gives all classes
    the same total weight. None: every class has weight one.
""",
    "forest": """\
n_estimators : int
    Number of trees.
min_samples_split : int or float
    Least number of rows of a node that is split; a float is a share of the rows of positive
    weight, rounded up. Rows are counted once, however often they are in the bag, and shares
    are of the rows of the table.
bootstrap : bool
    Whether each tree sees a bag of rows; otherwise it sees all of them, or `max_samples` of
    them, once each (pasting). A row is in the bag of a tree as often as a Poisson draw of
    (seed, tree, row) says, with mean `max_samples`, in proportion to its weight.
oob_tol : float
    No more trees are added when the out-of-bag score, smoothed over ten trees, has not improved
    by more than this in the second half of the trees. Larger scores are better. About a
    tolerance is what more trees could still win. None: all `n_estimators` trees are grown.
    Needs ``bootstrap=True`` or `max_samples`.
random_state : int, RandomState or None
    Seed of bags, of the draws of columns and between columns of equal gain, and of the sample
    behind cuts. The same seed gives the same forest on any number of threads.
verbose : int
    1 or more shows a bar of the trees grown (`dtrees.callbacks.ProgressBar`).
warm_start : bool
    Whether `fit` keeps the trees that are there and adds those that are missing to
    `n_estimators`. With the same table the forest is the one that is grown at once.
class_weight : dict, "balanced", "balanced_subsample" or None
    Weight of each class by its label, 1 for classes left out. "balanced" gives all classes
    the same total weight, and "balanced_subsample" is another name for it. Rows are drawn into
    bags in proportion to their weight. None: every class has weight one.
max_samples : int, float or None
    Mean size of a bag: a number of rows (or groups), or a share of them; up to twice as many
    as there are. None: as many. With ``bootstrap=False`` each tree sees just so many, drawn
    without replacement, a share of them rounded down; rows of any weight are as likely, and
    keep it.
colsample_bytree : float
    Share of the columns, of those that are used, that are drawn for each tree, rounded up. Its
    nodes draw theirs from these (`max_features`).
feature_weights : array-like of shape (n_features_in_,) or dict
    How likely each column is where columns are drawn (`max_features`, `colsample_bytree`), as
    in XGBoost: positive numbers, whose scale means nothing; or by name, 1 for columns left out.
    None: all are as likely.
regime : {"local", "replicated", "partitioned"} or None
    Where the trees are grown. "local": on threads of this process. "replicated": on the workers
    of a Dask cluster, each of which gets the coded table. "partitioned": on workers that keep
    their rows, or without a cluster in blocks of rows on threads. None: on the cluster of the
    current ``distributed.Client``, "partitioned" where the codes of a Dask collection are more
    than a worker should hold, and without one on threads. Changes nothing but the time.
""",
    "boosting": """\
learning_rate : float
    What the step of each leaf is multiplied by.
max_iter : int
    Number of iterations: of trees, or of trees for each class where there are more than two, and
    for each of several targets.
max_leaf_nodes : int
    Leaves of a tree, at most; those that gain most are split first. None: no limit.
min_samples_leaf : int
    Least number of rows of positive weight on each side of a split.
colsample_bytree : float
    Share of the columns, of those that may be used, that are drawn for each tree.
feature_weights : array-like of shape (n_features_in_,) or dict
    How likely each column is where columns are drawn (`max_features`, `colsample_bytree`), as
    in XGBoost: positive numbers, whose scale means nothing; or by name, 1 for columns left out.
    None: all are as likely.
max_features : int, float or {"sqrt", "log2"}
    Number of columns drawn at each node, of those of the tree: that many (at most all), a share of
    them, rounded up, their root or their binary logarithm. None: all. With `interaction_cst`, the
    same share of those that the node may test.
min_child_weight : float
    Least sum of second derivatives on each side of a split, weights included: of a squared error
    the weight of the rows, of two classes the sum of p (1 - p).
min_split_gain : float
    What a split has to gain more than: ``G²/(H + l2)`` of both sides less that of the node, with
    sums G and H of first and second derivatives. As in LightGBM, nothing below it is looked at.
l2_regularization : float
    What is added to the second derivative of each leaf; it makes steps smaller.
l1_regularization : float
    What the sum of first derivatives of each leaf is drawn to 0 by; steps of leaves with less are
    0. Where steps are quantiles, it affects splits only.
max_delta_step : float
    Largest step of a leaf, before the learning rate. 0: no limit.
path_smooth : float
    Weight that the step of the node above has in the step of each node, as of so many rows of
    weight 1; leaves of few rows are drawn to it. Rows count by their second derivatives, weights
    included. 0: nothing is smoothed.
multi_strategy : {"one_output_per_tree", "multi_output_tree"}
    What the trees of several targets, and of three classes or more, are, as of XGBoost.
    "one_output_per_tree": each target, and each class, has trees of its own. "multi_output_tree": a
    tree has a step for each of them in each leaf; splits gain what they gain for all.
    `min_child_weight` is then the mean over them, and `monotonic_cst` and `path_smooth` are errors.
min_samples_split : int
    Nodes of fewer rows, of those that the iteration has drawn, are leaves.
subsample : float
    How likely a row is among those that an iteration is grown from, drawn by (seed, iteration,
    row). All rows take the steps of their leaves.
oob_score : bool
    Whether each iteration is scored by the loss of the rows that it has not drawn: `oob_scores_`,
    `oob_improvement_` and `oob_score_` of scikit-learn's classic ``GradientBoosting*``, which has
    them wherever ``subsample < 1``. Costs as much as early stopping without its walk.
init : {"zero"} or estimator
    What the model begins with. "zero": 0, instead of the constant that is best. An estimator: a
    clone of it, `init_`, is fitted to the rows that are grown from, and its predictions (of
    classes, log odds of its ``predict_proba``) begin every row of every table, at fit and at
    prediction. So it sees each table as it is given, in memory. For one target and a loss that has
    a name. Such a model has no file, and what reads trees refuses it. None: the best constant, or
    what `fit` has as ``init_score``.
category_penalty : float
    What many categories pay when splits are compared: each beyond eleven in a node takes so many
    times the impurity of a row within its category off the gain. Where a split parts less of them
    from all others, of some fifteen rows or more each, only these pay. 0: nothing, and such
    columns win by what they fit by chance.
early_stopping : "auto" or bool
    Whether the fit ends when its score does not get better. "auto": with more than 10,000 rows
    of positive weight, or if `fit` gets ``X_val``.
scoring : str, callable or None
    What is scored: "loss" is the loss; otherwise a scorer of scikit-learn's by name, None for
    `score`, or a function (model, X, y). Such a function is not told of weights.
validation_fraction : int, float or None
    Rows that are held out for the score: their number or their share, drawn by `random_state`;
    of classes, each has its share, unless there are several targets. None: the score is that of
    the training rows. Not looked at if `fit` gets ``X_val``.
n_iter_no_change : int
    The fit ends when none of so many last iterations is better than the one before them.
tol : float
    How much better a score has to be to count as better.
use_best_model : bool
    Whether a model that is scored while it grows ends with its best iteration, as those of
    LightGBM, XGBoost and CatBoost predict. False: all iterations are kept, as in scikit-learn.
warm_start : bool
    Whether `fit` keeps the iterations that are there and adds those that are missing to
    `max_iter`. With the same table and parameters the model is the one that is fitted at once.
verbose : int
    1 or more shows a bar of the iterations (`dtrees.callbacks.ProgressBar`).
random_state : int, RandomState or None
    Seed of the rows that are held out, of `subsample`, `colsample_bytree` and `max_features`, and
    of the sample behind cuts of tables of more than 200,000 rows (see `max_bins`).
class_weight : dict or "balanced"
    Weight of each class by its label, 1 for classes left out; "balanced" gives all classes
    the same total weight. None: every class has weight one. Of several targets a list, whose
    weights of a row's classes are multiplied, or "balanced".
regime : {"local", "replicated", "partitioned"} or None
    Where the model is grown. "local": on threads of this process. "replicated": on all threads of
    one worker of a Dask cluster. "partitioned": on the workers that have the rows, together. None:
    "partitioned" where the codes of a Dask collection are more than a worker should hold, or else
    "local". Changes nothing but the time.
max_bins : int
    Largest number of distinct values that a numeric column keeps; columns with more are cut
    at quantiles, in which rows count by their weights. With more than 255, columns take longer.
    None: every value is kept.
""",
    "adaboost": """\
n_estimators : int
    Number of trees, at most.
learning_rate : float
    What the vote of each tree is multiplied by; with less, weights change less between trees.
loss : {"linear", "square", "exponential"}
    What becomes of the error of a row, as a share of the largest one: itself, its square, or
    one minus the exponential of its negative.
min_samples_split : int or float
    Least number of rows of a node that is split; a float is a share of the rows of positive
    weight, rounded up.
random_state : int, RandomState or None
    Seed of the draws of columns and, of numbers, of bags; and of the sample behind cuts (see
    `max_bins`). Where splits of several columns gain the same, the seed and the node decide
    between them. None: the lowest of these columns is taken, so a classifier that searches all
    columns of exact codes draws nothing and is the same each time.
regime : {"local", "replicated", "partitioned"} or None
    Where the trees are grown, one after the other. "local": on threads of this process.
    "replicated": each on a worker of a Dask cluster. "partitioned": on workers that keep their
    rows, or without a cluster in blocks of rows on threads. None: "partitioned" where the codes
    of a Dask collection are more than a worker should hold, or else "local". Changes nothing
    but the time.
""",
    "all": """\
max_depth : int
    Nodes at this depth are leaves. None: no limit.
min_samples_leaf : int or float
    Least number of rows on each side of a split; a float is a share of the rows of positive
    weight, rounded up.
min_weight_fraction_leaf : float
    Least weight on each side of a split, as a share of the weight of the rows of the tree.
max_features : int, float or {"sqrt", "log2"}
    Number of columns drawn at each node: that many (at most all), a share of all, their root or
    their binary logarithm. None: all. The draw goes on until a column can be split. Columns
    that are not used (see `categorical_features`) do not count.
max_leaf_nodes : int
    Trees keep their most profitable splits, until they have so many leaves. None: no limit.
min_impurity_decrease : float
    A node is split when that lowers the weighted impurity of the whole tree by so much.
n_jobs : int
    Number of threads; None: 1, unless a ``joblib.parallel_config`` says otherwise; -1: all
    cores. Changes nothing but the time.
ccp_alpha : float
    What a leaf costs in minimal cost-complexity pruning of a tree.
monotonic_cst : array-like of shape (n_features_in_,) or dict
    Along which columns predictions rise (1) or fall (-1), by number or by name; 0: either.
    Of two classes, the share of the second one. Columns without categories only; not for three
    classes or more. Missing values are in no order.
interaction_cst : {"pairwise", "no_interactions"} or sequence of lists
    Sets of columns, numbers or names. On the way to a leaf, a tree tests columns of one of them
    only; columns in no set are one more. "no_interactions": each column alone; "pairwise": each
    two.
max_bins : int
    Largest number of distinct values that a numeric column keeps; columns with more are cut
    at quantiles, in which rows count by their weights. None: every value is kept, and trees are
    exact.
categorical_features : "from_dtype", array-like or None
    Columns whose values are categories: told by their types (strings, pandas and polars
    categoricals), a mask, a list of numbers or names, or none of them. In numbers that are
    named so, -1 is a missing value. Columns with nearly as many categories as rows, which
    `fit` warns of, are not used.
handle_unknown : {"missing", "majority", "error"}
    What a category does at prediction that was not there at fit: goes where missing values
    go, goes with most rows, or raises a ValueError.
category_penalty : float
    What a column pays for what its categories gain by chance. Each category in a node takes
    so many times the impurity of a row within its category off the gain of the best split. A
    split that gains no more than that is no candidate. 0: nothing is taken off, and columns
    of many categories win by what they fit by chance.
""",
}

ATTRIBUTES = {  # a class has them in the order of its sections
    "forest": """\
n_estimators_ : int
    Number of trees; less than `n_estimators` when the fit was stopped.
estimators_ : list of {tree}
    The trees as fitted estimators, made at the first look.
estimator_ : {tree}
    One of them before it is grown.
estimators_samples_ : list of int32 arrays
    Rows in the bag of each tree, made at each look; all rows without bags. A model does not
    keep what weights and `bootstrap_groups` say of bags; then there is no such attribute, nor
    is one of the model of a fold, or of several blocks (`partial_fit`).
""",
    "classes": """\
classes_ : array of shape (n_classes_,)
    The labels, sorted.
n_classes_ : int
    Number of classes.
""",
    "importances of a tree": """\
feature_importances_ : float64 array of shape (n_features_in_,)
    Share of every column in the impurity decrease of the training rows. See
    :func:`dtrees.inspection.held_out_importances` for rows that did not choose the splits.
""",
    "importances of a forest": """\
feature_importances_ : float64 array of shape (n_features_in_,)
    Mean share of every column in the impurity decrease of the rows in the bags. See
    :func:`dtrees.inspection.oob_importances` for rows that did not choose the splits.
""",
    "importances of a boosted model": """\
feature_importances_ : float64 array of shape (n_features_in_,)
    Share of every column in what the splits of all trees take off the loss of the training rows.
""",
    "boosting": """\
n_iter_ : int
    Number of iterations: with early stopping, up to the best one, or all with
    ``use_best_model=False``.
best_iteration_ : int or None
    After how many iterations held-out rows were scored highest, at least 1. None without early
    stopping.
best_score_ : float or None
    What ``scoring`` says of these rows then: a loss is positive, and scorers are as scikit-learn's.
    None without early stopping.
estimators_ : object array of shape (n_iter_, n_trees_per_iteration_)
    The trees as fitted `DecisionTreeRegressor`, which predict steps. Made at the first look.
n_trees_per_iteration_ : int
    1, or the number of classes where there are more than two; of several targets, their sum. With
    ``multi_strategy="multi_output_tree"`` always 1.
n_outputs_ : int
    Number of targets.
is_categorical_ : bool array of shape (n_features_in_,) or None
    Which columns have categories; None: there are none.
do_early_stopping_ : bool
    Whether the fit could end early.
validation_score_ : float64 array of shape (n_grown + 1,) or (0,)
    Score of the held-out rows after 0, 1, 2, ... iterations, those after the best one included.
    Empty without early stopping.
train_score_ : float64 array of shape (n_grown + 1,) or (0,)
    The same of the training rows; empty unless `validation_fraction` is None.
evals_result_ : dict of dict of list of float
    By name of rows ("training", "validation", or as `fit` was told) and of measure: what the
    measure says after 1, 2, ... iterations. "loss" is the mean loss, and scorers are as
    scikit-learn's. Empty where nothing was scored.
max_features_ : int
    Number of columns drawn at each node, as the parameters say now.
oob_scores_ : float64 array of shape (n_iter_,)
    Mean loss after each iteration of the rows that it has not drawn; only with `oob_score`. nan
    where it has drawn all; 0 of iterations that a warm start has kept without such a score. Also
    in `evals_result_`, as "out_of_bag".
oob_improvement_ : float64 array of shape (n_iter_,)
    By how much each is less than the one before it: of the first, than the loss of its rows before
    the iteration. Rows are others in each iteration, so a sum of some says more than one.
oob_score_ : float
    The last of `oob_scores_`.
init_ : estimator
    What `init` is, fitted; only where it is a model.
""",
    "adaboost": """\
estimators_ : list of {tree}
    The trees as fitted estimators, made at the first look; fewer than `n_estimators` where the
    fit ended early.
estimator_ : {tree}
    One of them before it is grown.
estimator_weights_ : float64 array of shape (n_trees,)
    What the vote of each tree weighs.
estimator_errors_ : float64 array of shape (n_trees,)
    Mean loss of each tree over the rows that it was grown to, by their weights; of classes, the
    share of the weight that it misses.
""",
    "importances of a adaboost": """\
feature_importances_ : float64 array of shape (n_features_in_,)
    Mean share of every column in the impurity decrease of the trees, by their weights.
""",
    "drawn": """\
max_features_ : int
    Number of columns drawn at each node.
""",
    "all": """\
n_features_in_ : int
    Number of columns at fit.
feature_names_in_ : object array of shape (n_features_in_,)
    Their names; only when all of them are strings.
""",
    "outputs": """\
n_outputs_ : int
    Number of targets.
""",
    "names": """\
target_names_in_ : object array of shape (n_outputs_,)
    Names of the targets; only of several, in a data frame whose columns are different strings.
""",
    "tree": """\
tree_ : TreeView
    The nodes as flat arrays, of the names and dtypes of scikit-learn's. ``threshold`` is a
    ValueError where a node tests a set of categories.
""",
    "out of bag": """\
oob_score_ : float
    Score of the out-of-bag predictions; only with `oob_score` or `oob_tol`.
oob_scores_ : float64 array of shape (n_estimators_,)
    The same of the first 1, 2, ... trees; only with `oob_tol`. nan where too few rows have a
    prediction.
""",
    "classes out of bag": """\
oob_decision_function_ : float64 array of shape (n_rows, n_classes_)
    Shares of the classes by the trees whose bag lacks the row; nan where there is none. Of an
    indicator matrix of labels (n_rows, n_classes, n_outputs_).
""",
    "numbers out of bag": """\
oob_prediction_ : float64 array of shape (n_rows,)
    Mean of the trees whose bag lacks the row; nan where there is none. Of several targets
    (n_rows, n_outputs_).
""",
    "trees": """\
forest_ : dtrees.core.model.tree.Forest
    The trees as flat arrays.
codebook_ : dtrees.coding.codebook.CodeBook
    What their codes mean.
""",
}

Kind = Literal["tree", "forest", "adaboost", "boosting"]
Target = Literal["classes", "numbers"]


def documented(kind: Kind, target: Target) -> Callable[[Made], Made]:
    """A decorator that fills the docstring of an estimator's class.

    Parameters
    ----------
    kind : 'tree', 'forest', 'adaboost' or 'boosting'
    target : 'classes' or 'numbers'
        What it predicts.
    """

    def fill(made: Made) -> Made:
        if made.__doc__ is None:  # python -OO
            return made
        text = inspect.cleandoc(made.__doc__)
        parts = {
            "parameters": parameters_of(made, kind, target),
            "attributes": attributes_of(kind, target),
            **PARAGRAPHS,
        }
        for name, part in parts.items():
            text = text.replace("{" + name + "}", part)
        made.__doc__ = indent(text, " " * 4, lambda line: line.strip() != "").lstrip()
        return made

    return fill


def parameters_of(made: type, kind: Kind, target: Target) -> str:
    """The parameters of a class, in the order of its signature.

    Raises
    ------
    KeyError
        One is not described.
    """
    known: dict[str, tuple[str, str]] = {}
    for section in ("all", target, kind):
        known |= entries(PARAMETERS[section])
    described = []
    for name, parameter in inspect.signature(made).parameters.items():
        what, text = known[name]
        default = "" if what == "None" else f", default={_literal(parameter.default)}"
        described.append(f"{name} : {what}{default}\n{text}")
    return "\n".join(described)


def attributes_of(kind: Kind, target: Target) -> str:
    """What a fit learns, as text."""
    order: Sequence[str] = (target, f"importances of a {kind}", "drawn", "all", "outputs")
    if kind == "tree":
        order = (*order, "names", "tree")
    elif kind == "forest":
        order = ("forest", *order, "names", "out of bag", f"{target} out of bag", "trees")
    elif kind == "adaboost":
        order = ("adaboost", *order, "trees")
    elif kind == "boosting":
        order = (target, "boosting", "importances of a boosted model", "all", "names", "trees")
    found = "".join(ATTRIBUTES.get(section, "") for section in order)
    tree = "DecisionTreeClassifier" if target == "classes" else "DecisionTreeRegressor"
    return found.replace("{tree}", tree).rstrip("\n")


def entries(text: str) -> dict[str, tuple[str, str]]:
    """Type and description by name, of a section as numpydoc has it."""
    found = re.findall(r"^(\w+) : (.*)\n((?: .*\n)+)", text, re.MULTILINE)
    return {name: (what, said.rstrip("\n")) for name, what, said in found}


def _literal(value: Any) -> str:
    """A default as it is written in Python."""
    return f'"{value}"' if isinstance(value, str) else repr(value)
