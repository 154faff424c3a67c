"""What every validation does first: check its arguments, draw the splits, and read the table once.

::

    X, y, groups, params, cv ──prepare──▶ Arguments ─┬─ shared: table and splits
                                                     └─ a reason: scikit-learn fits model by model

What belongs to the rows is fetched, where it is a Dask collection, and splits are drawn once. Input
that no model can be grown from is left to scikit-learn, whose function says what is wrong. Which
models can be grown together, and why others cannot, is decided here, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse
import sklearn
from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable

from dtrees._warnings import warn
from dtrees.callbacks import Bar
from dtrees.coding.outputs import columns_of_outputs
from dtrees.coding.sparse_positions import check_sparse, in_scipy
from dtrees.coding.target import class_codes
from dtrees.estimators.adaboost import BaseAdaBoost
from dtrees.estimators.base import BaseModel
from dtrees.estimators.boosted_init import BY_MODEL, is_model
from dtrees.estimators.boosting import BaseBoosting
from dtrees.estimators.eval_sets import Whole
from dtrees.estimators.isolation import IsolationForest
from dtrees.estimators.resume import SavedGrowths
from dtrees.estimators.training_sets import TrainingTable
from dtrees.estimators.trees import BaseDecisionTree
from dtrees.model_selection.folds import (
    DrawnSplits,
    FoldSplits,
    HashKFold,
    Split,
    Splits,
    folds_elsewhere,
)
from dtrees.parallel import (
    REGIMES,
    Checkpoint,
    FitStatistics,
    LazyColumn,
    PartitionedTable,
    admitted,
    admitted_where_they_are,
    check_lengths,
    computed,
    is_lazy,
    known_length,
    lazy_keys,
    rows_as_array,
)


class NotShareableError(Exception):
    """Models cannot be grown together; scikit-learn's own function says what each is worth."""


SHOWN_ROWS = ("X_val", "y_val", "sample_weight_val", "init_score_val")
BOOSTING = "dtrees.estimators.boosting"
MODULES = (  # and not what is made of them
    "dtrees.estimators.trees",
    "dtrees.estimators.forest_kinds",
    BOOSTING,
)


def is_boosted(estimator: Any) -> bool:
    """Whether an estimator is a boosted model of dtrees, and no subclass of one."""
    return type(estimator).__module__ == BOOSTING


def is_any_of_dtrees(estimator: Any) -> bool:
    """Whether an estimator is a tree, a forest or a boosted model of dtrees, and no subclass."""
    return type(estimator).__module__ in MODULES


def unsupported_reason(
    estimator: Any, y: Any, params: Iterable[str], known: str = "sample_weight"
) -> str | None:
    """Why the models are not grown together; None: they are.

    `params` are names for ``fit``. Of these it may be given `known`, and boosted models their
    ``init_score``.
    """
    if isinstance(estimator, BaseAdaBoost):
        return f"each {type(estimator).__name__} has weights of rows of its own"
    if isinstance(estimator, IsolationForest):
        return f"each {type(estimator).__name__} draws a few rows of its own side"
    if not is_any_of_dtrees(estimator):
        return f"{type(estimator).__name__} is not an estimator of dtrees"
    if y is None:
        return "there is no y"
    if sklearn.get_config()["enable_metadata_routing"]:
        return "metadata routing is enabled"
    if is_boosted(estimator) and is_model(estimator.init):
        return BY_MODEL
    starts = {"init_score"} if is_boosted(estimator) and known == "sample_weight" else set()
    others = sorted(set(params) - {known} - starts)
    return f"fit is given {', '.join(others)}" if others else None


def unsupported_callbacks(*estimators: Any) -> str | None:
    """Why scikit-learn's own fits are needed: its callbacks hear of each of them."""
    for estimator in estimators:
        if getattr(estimator, "_skl_callbacks", None):  # from scikit-learn 1.9 on
            return f"{type(estimator).__name__} has callbacks, which hear of each fit"
    return None


def unsupported_splits(splits: Sequence[Split], n_rows: int) -> str | None:
    """Why splits are no sets of rows; None: they are."""
    if not splits:
        return "there are no splits"
    if isinstance(splits, FoldSplits):
        counts = splits.counts
        is_empty = (counts.sizes == n_rows) & (counts.numbers < len(splits))
        return "a training side is empty" if is_empty.any() else None
    for split in splits:
        if not isinstance(split, tuple | list) or len(split) != 2:
            return "a split is no pair of a training side and a test side"
        for side in map(np.asarray, split):
            if side.dtype == bool:
                are_rows = side.shape == (n_rows,)
            else:  # numbers, from the end where they are negative
                are_rows = side.ndim == 1 and side.dtype.kind in "iu"
                are_rows = are_rows and bool(((side >= -n_rows) & (side < n_rows)).all())
            if not are_rows:
                return "a side of a split is no rows of X"
        train = np.asarray(split[0])
        listed = np.zeros(n_rows, dtype=bool)
        listed[train] = True
        if not listed.any():
            return "a training side is empty"
        if train.dtype != bool and np.count_nonzero(listed) < len(train):
            return "a training side lists rows twice"
    return None


def check_rows_can_be_taken(who: str, X: Any, reason: str) -> None:
    """Refuse a Dask collection whose rows scikit-learn's function would ask for in vain.

    Called before anything is computed. `who` asks; `reason` is why models are not grown together.
    Raises TypeError for a data frame, or an array of unknown block sizes or of sparse blocks.
    """
    if not is_lazy(X):
        return
    if known_length(X) is None:
        lacks = "has no row numbers"
    elif not isinstance(getattr(X, "_meta", None), np.ndarray):
        lacks = "has sparse blocks, which scikit-learn does not read"
    else:
        return
    raise TypeError(
        f"{who} of a Dask collection: {reason}, so each model is fitted on rows taken by their "
        f"numbers, and this {type(X).__name__} {lacks}. Give X.compute(), if it fits; where all "
        "columns are numbers, X.to_dask_array(lengths=True) of a data frame; in place of a "
        "pipeline, its last step, and X as the steps before it leave it."
    )


OF_TREES = "validation_surface has the sizes of trees and forests"
OF_BOOSTED = "boosting_curve has its iterations"


@dataclass(frozen=True, eq=False)
class SplitTable:
    """A table and splits of it, whose models grow together."""

    table: TrainingTable
    splits: Sequence[Split]  # row numbers of the table
    rows: np.ndarray | None = None  # bool (n_rows,), of the last model; None: all
    has_last: bool = True  # whether there is one, beside those of the splits
    bar: Bar | None = None  # counts the trees of all models


@dataclass(frozen=True, eq=False)
class Arguments:
    """Arguments of a validation; `prepare` checks them."""

    who: str  # the function or class, for messages
    estimator: Any
    cv: Any = None  # once checked: drawn, if it was looked at
    groups: Any = None  # once checked: in memory, as `params` and `y` are
    params: Any = None
    X: Any = None  # once checked: its rows can be taken
    y: Any = None
    reason: str | None = None  # why models are not grown together; None: they are
    stats: FitStatistics = field(default_factory=FitStatistics)
    checkpoint: Any = None  # a folder for what has grown

    @property
    def sample_weight(self) -> Any:
        """For the fits; None: rows count once."""
        return (self.params or {}).get("sample_weight")

    def shared(self, bar: Bar | None = None, *, has_last: bool = True) -> SplitTable:
        """The table, read once, and its splits; there is no `reason` not to share them."""
        assert self.reason is None
        start, saved = (self.params or {}).get("init_score"), None
        if self.checkpoint is not None:
            given: Any = self.estimator
            base = given if isinstance(given, BaseModel) else given.estimator  # of a search
            saved = SavedGrowths(Checkpoint(self.checkpoint), self.who, base, self.cv)
        table = TrainingTable(self.X, self.y, self.sample_weight, self.stats, start, saved)
        return SplitTable(table, self.cv, bar=bar, has_last=has_last)

    def refuse_partitions(self) -> None:
        """Raise TypeError where rows of a Dask collection would have to be taken."""
        if isinstance(self.X, PartitionedTable):
            raise TypeError(f"{self.who} of a Dask collection: {self.reason}.")


Draw = Callable[[Any, Any, Any], Sequence[Split]]  # of X, y and groups


def prepare(
    arguments: Arguments,
    X: Any,
    y: Any,
    *,
    reason: str | None,
    draw: Draw | None = None,
    check: Callable[[], object] | None = None,
    checks_weight: bool = False,
) -> Arguments:
    """Check arguments, fetch what belongs to the rows, and draw the splits.

    `reason` is why models are not grown together, as far as that is known. `draw` makes the splits;
    None: the splitter that ``cv`` stands for. `check` looks at further arguments. With it, what it
    or the splitter raises is a reason, for scikit-learn to raise it again; without it, errors are
    raised. With `checks_weight` there has to be one weight per row; otherwise a fit says so.

    Raises TypeError where rows of a Dask collection would have to be taken: before anything is
    computed, where that is known. ClusterError, ValueError: the input cannot be used.
    """
    if reason is not None:
        check_rows_can_be_taken(arguments.who, X, reason)
    X = in_scipy(X)
    arguments = replace(arguments, cv=with_collections(arguments.cv, y, arguments.groups))
    if reason is None:
        X, y, arguments = _where_they_are(X, y, arguments)
    y, arguments = in_memory(X, y, arguments)
    if reason is not None:
        return replace(arguments, X=X, y=y, reason=reason)
    if scipy.sparse.issparse(y):  # indicators of labels
        y = y.toarray()
    if not isinstance(y, LazyColumn):
        X, y = admitted(X, {"y": y}, arguments.stats)
    n_rows = known_length(X)
    if n_rows is not None:
        weight = arguments.sample_weight if checks_weight else None
        start = (arguments.params or {}).get("init_score")
        belonging = {"groups": arguments.groups, "sample_weight": weight, "init_score": start}
        check_lengths(n_rows, belonging)
    cv, groups = arguments.cv, arguments.groups
    try:
        if check is not None:
            check()
        X, y = indexable(X, y)
        if draw is None:
            splits = splits_of(cv, arguments.estimator, X, y, groups)
        else:
            splits = draw(X, y, groups)
    except Exception as error:
        if isinstance(error, TypeError) and is_classifier(arguments.estimator):
            columns = columns_of_outputs(y)
            for labels in [y] if columns is None else columns:  # says what is wrong with them
                class_codes(np.asarray(labels, dtype=object))
            if columns is not None:
                raise TypeError(
                    "y has targets of several types, which scikit-learn's splitters and scores do "
                    "not take. For a validation, give numbers that stand for the labels."
                ) from error
        # an iterator cannot be asked again, and rows of a collection cannot be taken
        if check is None or isinstance(cv, Iterator) or isinstance(X, PartitionedTable):
            raise
        return replace(arguments, X=X, y=y, reason=str(error))
    reason = unsupported_splits(splits, len(y))
    prepared = replace(arguments, X=X, y=y, cv=splits, reason=reason)
    if reason is not None:
        prepared.refuse_partitions()
    return prepared


def prepare_shared(
    arguments: Arguments,
    X: Any,
    y: Any,
    *,
    single: bool = False,
    boosted: bool | None = False,
    bar: Bar | None = None,
    draw: Draw | None = None,
) -> SplitTable:
    """A table and splits for models that grow together, where there is no other way.

    `single`: only a single tree will do; `boosted`: only a boosted model; None: any of these;
    otherwise a tree or a forest. `draw` as for `prepare`. Raises as `prepare`, and TypeError where
    the models cannot be grown together: before a split is drawn, where that is known.
    """
    estimator = arguments.estimator
    reason = unsupported_reason(estimator, y, arguments.params or ())
    if reason is None and boosted not in (None, is_boosted(estimator)):
        is_one = f"no boosted model ({OF_TREES})" if boosted else f"a boosted model ({OF_BOOSTED})"
        reason = f"{type(estimator).__name__} is {is_one}"
    if reason is None and single and not isinstance(estimator, BaseDecisionTree):
        reason = f"{type(estimator).__name__} is not a single tree"
    if reason is None:
        prepared = prepare(arguments, X, y, reason=None, draw=draw)
        reason = prepared.reason
    if reason is not None:
        remedy = ""
        if is_any_of_dtrees(estimator):
            refuse_unknown_params(arguments)
        if isinstance(estimator, Pipeline):
            remedy = " Give its last step, and X as the steps before it leave it."
        raise TypeError(f"{arguments.who} needs models that grow together: {reason}.{remedy}")
    return prepared.shared(bar)


def has_starts(params: Iterable[str] | None) -> bool:
    """Whether names of parameters for ``fit`` say that rows begin with raw predictions."""
    return any(str(name).rpartition("__")[2] == "init_score" for name in params or ())


def refuse_starts(arguments: Arguments, reason: str | None) -> None:
    """Refuse (ValueError) rows with ``init_score``, which scikit-learn would score without it.

    And checkpoints, of which its functions know nothing, or that all of its fits would have.
    """
    named = any(str(name).rpartition("__")[2] == "checkpoint" for name in arguments.params or ())
    if named or arguments.checkpoint is not None:
        why = "all fits would have the same one"
        if not named:
            why = f"models do not grow together: {reason}"
        raise ValueError(
            f"{arguments.who} has no checkpoint here, as {why}. Give checkpoint=... to "
            f"{arguments.who} itself, of a tree, a forest or a boosted model; or fit a model to "
            "each training side, with a checkpoint of its own."
        )
    if has_starts(arguments.params):
        steps = getattr(arguments.estimator, "estimator", arguments.estimator)  # of a search
        is_pipeline = isinstance(steps, Pipeline)
        raise ValueError(
            f"{arguments.who} cannot begin held-out rows with their init_score, as models do not "
            f"grow together: {reason}. Fit a model to each training side, and score "
            "model.predict(X, init_score)."
            + (" Or give the last step, and X as the steps before leave it." if is_pipeline else "")
        )


def refuse_unknown_params(arguments: Arguments) -> None:
    """Raise TypeError where ``fit`` has no such parameter."""
    known = inspect.signature(arguments.estimator.fit).parameters
    for name in arguments.params or ():
        if name not in known:
            raise TypeError(
                f"{arguments.who}: fit of {type(arguments.estimator).__name__} has no parameter "
                f"{name!r}. Weights of rows are params={{'sample_weight': ...}}."
            )


def _where_they_are(X: Any, y: Any, arguments: Arguments) -> tuple[Any, Any, Arguments]:
    """A table, and what belongs to its rows: a `LazyColumn`, where it stays with the codes."""
    estimator, groups, stats = arguments.estimator, arguments.groups, arguments.stats
    if not (is_lazy(X) and isinstance(estimator, BaseModel)):
        return X, y, arguments
    regimes = REGIMES[1:] if isinstance(estimator, BaseBoosting) else ("partitioned",)
    how = getattr(estimator, "regime", None), regimes
    X, y = admitted_where_they_are(X, {"y": y}, stats, *how, often=True)
    if not is_lazy(y):
        return X, y, arguments

    def column(values: Any, dimensions: tuple[int, ...] = (1,)) -> Any:
        is_one = is_lazy(values) and getattr(values, "ndim", None) in dimensions
        fits = is_one and known_length(values) in (None, X.n_rows)
        return LazyColumn(values, X.n_rows, stats, keeps=True) if fits else values

    groups = column(lazy_keys(groups) if isinstance(arguments.cv, HashKFold) else groups)
    params = arguments.params
    for name, dimensions in (("sample_weight", (1,)), ("init_score", (1, 2))):
        if name in (params or {}):
            params = {**params, name: column(params[name], dimensions)}
    return X, column(y), replace(arguments, groups=groups, params=params)


def in_memory(X: Any, y: Any, arguments: Arguments) -> tuple[Any, Arguments]:
    """What belongs to the rows of a table: fetched, where it is a Dask collection.

    Where folds are drawn by keys of groups, the keys are fetched, and not the labels. The table is
    looked at before scikit-learn converts it: a damaged sparse matrix would end the process.
    """
    groups, params = arguments.groups, arguments.params
    check_sparse(X=X, y=y, groups=groups)
    given = params or {}
    check_sparse(**{str(name): value for name, value in given.items()})
    if isinstance(arguments.cv, HashKFold):
        groups = lazy_keys(groups)
    named = {f"params[{name!r}]": value for name, value in given.items()}
    columns = {"y": y, "groups": groups, **named}
    looked_at = {name: each for name, each in columns.items() if not isinstance(each, LazyColumn)}
    _, *found = admitted(None, looked_at, arguments.stats)
    y, groups, *values = (columns | dict(zip(looked_at, found, strict=True))).values()
    if params is not None:
        params = dict(zip(params, values, strict=True))
        is_boosting = _ends_in_boosting(arguments.estimator)
        for name, value in given.items():  # no comprehension: a warning counts the calls
            is_shown = is_boosting and str(name).rpartition("__")[2] in SHOWN_ROWS
            if is_shown and not isinstance(value, Whole | None):
                params[name] = Whole(params[name])
            elif hasattr(params[name], "iloc") and (name == "sample_weight" or is_lazy(value)):
                params[name] = _of_one_column(str(name), params[name])
    if groups is not None:
        groups = _of_one_column("groups", groups)
    return y, replace(arguments, groups=groups, params=params)


def _ends_in_boosting(estimator: Any) -> bool:
    """Whether what is fitted in the end is a boosted model of dtrees, or made of one."""
    while estimator is not None and not isinstance(estimator, BaseBoosting):
        steps = getattr(estimator, "steps", None)
        estimator = steps[-1][1] if steps else getattr(estimator, "estimator", None)
    return estimator is not None


def _of_one_column(name: str, values: Any) -> Any:
    """Values of a table of one column as a column, with scikit-learn's warning for such a y.

    Its splitters that ask for groups fail on a table ("object too deep for desired array"), and
    fits refuse such weights: arrays of them stay an error, data frames are columns of a file.
    """
    shape: tuple[int, ...] = getattr(values, "shape", ())
    if len(shape) != 2 or shape[1] != 1:
        return values
    warn(
        f"A column-vector {name} was passed when a 1d array was expected: its shape is {shape}. "
        "Change it to (n_rows,), for example by ravel().",
        DataConversionWarning,
    )
    return values.iloc[:, 0] if hasattr(values, "iloc") else np.asarray(values)[:, 0]


class OfCollections:
    """A splitter of dask-ml, which gets `y` and `groups` as the user gave them.

    Of the table it gets a Dask array that knows its blocks: the user's own, where there is one.
    """

    def __init__(self, splitter: Any, y: Any, groups: Any) -> None:
        self._splitter, self._y, self._groups = splitter, y, groups

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[Any]:
        """The splits of a table; `y` in memory tells how many rows it has."""
        n_rows = len(X if y is None else y)
        found: Iterable[Any] = self._splitter.split(rows_as_array(X, n_rows), self._y, self._groups)
        return found

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits."""
        return int(self._splitter.get_n_splits(X, self._y, self._groups))


def with_collections(cv: Any, y: Any, groups: Any) -> Any:
    """A splitter of dask-ml with what it is to get; any other ``cv`` as it is.

    One of dask-ml, or made of one, knows Dask arrays only.
    """
    modules = [base.__module__.partition(".")[0] for base in type(cv).__mro__]
    return OfCollections(cv, y, groups) if "dask_ml" in modules else cv


def splits_of(cv: Any, estimator: Any, X: Any, y: Any, groups: Any) -> Sequence[Split]:
    """The splits of ``cv``, drawn once: where the rows are, if `y` is, and otherwise here."""
    of_classes = is_classifier(estimator)
    found = folds_elsewhere(cv, of_classes, X, y, groups)
    if found is not None:
        return found
    return draw_splits(check_cv(cv, y, classifier=of_classes), X, y, groups)


def draw_splits(splitter: Any, X: Any, y: Any, groups: Any) -> Sequence[Split]:
    """The splits of a splitter, drawn once.

    Sides that are Dask collections are computed together, and once.
    """
    splits = with_collections(splitter, y, groups).split(X, y, groups)
    is_drawn = isinstance(splits, DrawnSplits)
    return splits if is_drawn else Splits(_here(splits), len(y)).in_short()


def _here(splits: Iterable[Any]) -> Iterator[Any]:
    """Splits as they come; from the first one that is a Dask collection on, all that follow."""
    splits = iter(splits)
    for split in splits:
        if not _is_lazy_pair(split):
            yield split
            continue
        rest = [split, *splits]
        sides = iter(computed(*(side for each in rest if _is_lazy_pair(each) for side in each)))
        for each in rest:
            yield tuple(_as_side(next(sides)) for _ in each) if _is_lazy_pair(each) else each


def _is_lazy_pair(split: Any) -> bool:
    return isinstance(split, tuple | list) and any(map(is_lazy, split))


def _as_side(values: Any) -> np.ndarray:
    """Row numbers or a mask, of a column of any kind."""
    side = np.asarray(values)
    return side[:, 0] if side.ndim == 2 and side.shape[1] == 1 else side
