"""What every validation does first: check its arguments, draw the splits, and read the table once.

::

    X, y, groups, params, cv ──prepare──▶ Prepared ──┬─ shared: table and splits
                                                     └─ a reason: scikit-learn fits model by model

What belongs to the rows is fetched, where it is a Dask collection, and splits are drawn once. Input
that no model can be grown from is left to scikit-learn, whose function says what is wrong.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable

from dtrees.callbacks import Bar
from dtrees.coding.sparse_positions import check_sparse
from dtrees.estimators.single_tree import BaseDecisionTree
from dtrees.estimators.training_table import TrainingTable
from dtrees.model_selection.eligibility import (
    check_rows_can_be_taken,
    unsupported_reason,
    unsupported_splits,
)
from dtrees.model_selection.folds import HashKFold
from dtrees.model_selection.splits import Split, drawn
from dtrees.parallel import (
    FitStatistics,
    PartitionedTable,
    admitted,
    check_lengths,
    computed,
    known_length,
    lazy_keys,
    rows_as_array,
)


@dataclass(frozen=True, eq=False)
class SplitTable:
    """A table and splits of it, whose models grow together.

    Attributes
    ----------
    table : TrainingTable
    splits : sequence of (train, test)
        Row numbers of the table.
    rows : bool (n_rows,) or None, default=None
        Of the last model. None: all of them.
    bar : Bar or None, default=None
        Counts the trees of all models as they come.
    """

    table: TrainingTable
    splits: Sequence[Split]
    rows: np.ndarray | None = None
    bar: Bar | None = None


@dataclass(frozen=True, eq=False)
class Arguments:
    """What a validation is given beside the table and its target.

    Attributes
    ----------
    who : str
        Name of the function or class, for messages.
    estimator : object
    cv, groups, params
        As for `dtrees.model_selection.cross_validate`; `params` may be what is no mapping.
    """

    who: str
    estimator: Any
    cv: Any = None
    groups: Any = None
    params: Any = None

    @property
    def sample_weight(self) -> Any:
        """For the fits; None: rows count once."""
        return (self.params or {}).get("sample_weight")


@dataclass(frozen=True, eq=False)
class Prepared:
    """Checked arguments.

    Attributes
    ----------
    arguments : Arguments
        With `groups` and `params` in memory, and `cv` drawn once, where it was looked at.
    X : table
        Whose rows can be taken.
    y : array-like (n_rows,) or None
        In memory.
    reason : str or None
        Why models are not grown together; None: they are.
    stats : FitStatistics
        Where it is written down what has been done so far.
    """

    arguments: Arguments
    X: Any
    y: Any
    reason: str | None = None
    stats: FitStatistics = field(default_factory=FitStatistics)

    def shared(self, bar: Bar | None = None) -> SplitTable:
        """The table, read once, and its splits; there is no `reason` not to share them."""
        assert self.reason is None
        weight = self.arguments.sample_weight
        table = TrainingTable(self.X, self.y, weight, self.stats)
        return SplitTable(table, self.arguments.cv, bar=bar)

    def refuse_partitions(self) -> None:
        """Raise where rows of a Dask collection would have to be taken.

        Raises
        ------
        TypeError
        """
        if self.reason is not None and isinstance(self.X, PartitionedTable):
            raise TypeError(f"{self.arguments.who} of a Dask collection: {self.reason}.")


Draw = Callable[[Any, Any, Any], Sequence[Split]]  # of X, y and groups


def prepare(
    arguments: Arguments,
    X: Any,
    y: Any,
    *,
    reason: str | None,
    refused: str | None = None,
    draw: Draw | None = None,
    check: Callable[[], object] | None = None,
    checks_weight: bool = False,
) -> Prepared:
    """Check arguments and draw the splits.

    Parameters
    ----------
    arguments : Arguments
    X, y
        As they are given.
    reason : str or None
        Why models are not grown together, as far as that is known.
    refused : str or None, default=None
        The same, of an argument that scikit-learn refuses.
    draw : callable or None, default=None
        Makes the splits. None: the splitter that ``cv`` stands for.
    check : callable () -> object or None, default=None
        Looks at further arguments. With it, what it raises, or the splitter, is a reason, for
        scikit-learn to raise it again. None: errors are raised.
    checks_weight : bool, default=False
        Whether there has to be one weight per row; otherwise a fit says so.

    Raises
    ------
    TypeError
        Rows of a Dask collection would have to be taken; said before anything is computed, where it
        is known.
    ClusterError, ValueError
        The input, or a Dask cluster that it lies on, cannot be used.
    """
    if arguments.params is None or isinstance(arguments.params, Mapping):
        check_rows_can_be_taken(arguments.who, X, reason)  # others are for scikit-learn to refuse
    stats = FitStatistics()
    y, arguments = in_memory(X, y, arguments, stats)
    reason = reason if refused is None else refused
    if reason is not None:
        return Prepared(arguments, X, y, reason, stats)
    X, y = admitted(X, {"y": y}, stats)
    n_rows = known_length(X)
    if n_rows is not None:
        weight = arguments.sample_weight if checks_weight else None
        check_lengths(n_rows, {"groups": arguments.groups, "sample_weight": weight})
    cv, groups = arguments.cv, arguments.groups
    draw = draw or (lambda X, y, groups: splits_of(arguments.estimator, X, y, cv, groups))
    try:
        if check is not None:
            check()
        X, y = indexable(X, y)
        splits = draw(X, y, groups)
    except Exception as error:
        # an iterator cannot be asked again, and rows of a collection cannot be taken
        if check is None or isinstance(cv, Iterator) or isinstance(X, PartitionedTable):
            raise
        return Prepared(arguments, X, y, str(error), stats)
    arguments = replace(arguments, cv=splits)
    prepared = Prepared(arguments, X, y, unsupported_splits(splits, len(y)), stats)
    prepared.refuse_partitions()
    return prepared


def prepare_shared(
    arguments: Arguments, X: Any, y: Any, *, single: bool = False, bar: Bar | None = None
) -> SplitTable:
    """A table and splits for models that grow together, where there is no other way.

    Parameters
    ----------
    arguments, X, y
        As for `prepare`.
    single : bool, default=False
        Whether only a single tree will do.
    bar : Bar or None, default=None
        For `SplitTable`.

    Raises
    ------
    TypeError
        The models cannot be grown together; said before a split is drawn, where it is known.
    ClusterError, ValueError
        As for `prepare`.
    """
    estimator = arguments.estimator
    reason = unsupported_reason(estimator, y, arguments.params or ())
    if reason is None and single and not isinstance(estimator, BaseDecisionTree):
        reason = f"{type(estimator).__name__} is not a single tree"
    if reason is None:
        prepared = prepare(arguments, X, y, reason=None)
        reason = prepared.reason
    if reason is not None:
        remedy = ""
        if isinstance(estimator, Pipeline):
            remedy = " Give its last step, and X as the steps before it leave it."
        raise TypeError(f"{arguments.who} needs models that grow together: {reason}.{remedy}")
    return prepared.shared(bar)


def in_memory(X: Any, y: Any, arguments: Arguments, stats: FitStatistics) -> tuple[Any, Arguments]:
    """What belongs to the rows of a table: fetched, where it is a Dask collection.

    Where folds are drawn by keys of groups, the keys are fetched, and not the labels. The table is
    looked at before scikit-learn converts it: a damaged sparse matrix would end the process.
    """
    groups, params = arguments.groups, arguments.params
    check_sparse(X=X, y=y, groups=groups)
    if isinstance(params, Mapping):
        check_sparse(**{str(name): value for name, value in params.items()})
    if isinstance(arguments.cv, HashKFold):
        groups = lazy_keys(groups)
    named = {}
    if isinstance(params, Mapping):
        named = {f"params[{name!r}]": value for name, value in params.items()}
    _, y, groups, *values = admitted(None, {"y": y, "groups": groups, **named}, stats)
    if isinstance(params, Mapping):
        params = dict(zip(params, values, strict=True))
    return y, replace(arguments, groups=_of_one_column(groups), params=params)


def _of_one_column(groups: Any) -> Any:
    """Labels of a table of one column as a column, with scikit-learn's warning for such a y.

    Its splitters that ask for groups fail on a table ("object too deep for desired array").
    """
    shape: tuple[int, ...] = getattr(groups, "shape", ())
    if len(shape) != 2 or shape[1] != 1:
        return groups
    warnings.warn(
        f"A column-vector groups was passed when a 1d array was expected: its shape is {shape}. "
        "Change it to (n_rows,), for example by ravel().",
        DataConversionWarning,
        stacklevel=6,  # of who calls a validation
    )
    return groups.iloc[:, 0] if hasattr(groups, "iloc") else np.asarray(groups)[:, 0]


def splits_of(estimator: Any, X: Any, y: Any, cv: Any, groups: Any) -> Sequence[Split]:
    """The splits, drawn once; sides are what the splitter gives (see `unsupported_splits`)."""
    X, y = indexable(X, y)
    splitter = check_cv(cv, y, classifier=is_classifier(estimator))
    return draw_splits(splitter, X, y, groups)


def is_of_dask_ml(splitter: Any) -> bool:
    """Whether a splitter is one of dask-ml, or made of one: it knows Dask arrays only."""
    return any(base.__module__.partition(".")[0] == "dask_ml" for base in type(splitter).__mro__)


def draw_splits(splitter: Any, X: Any, y: Any, groups: Any) -> Sequence[Split]:
    """The splits of a splitter, drawn once.

    Those of dask-ml get the user's collection, and give Dask arrays of row numbers, which are
    computed together.
    """
    if not is_of_dask_ml(splitter):
        return drawn(splitter.split(X, y, groups), len(y))
    splits = [tuple(split) for split in splitter.split(rows_as_array(X, len(y)))]
    sides = iter(computed(*itertools.chain.from_iterable(splits)))
    return drawn([tuple(next(sides) for _ in split) for split in splits], len(y))
