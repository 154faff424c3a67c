"""Pipelines that end in an estimator of dtrees: which of their candidates share a growth.

A pipeline's steps before the last see the training rows of a split only. So every split has a table
of its own, and trees are not shared between splits. The candidates of a split share
them. A growth has the trees of every candidate that differs in limits only
(`dtrees.model_selection.candidates`), or of a boosted model in iterations only. Steps are fitted
once per split::

    candidates ──▶ settings of the steps before the last
                       │
                       └─ each split: fit the steps ──▶ table ──▶ growths of the last step ──▶ cells
                                           │                                                    │
                                           └── transform the rows of a side ──▶ leaves ──▶ scores

Every cell is what the fit of its candidate to the training rows scores:
``clone(pipeline).set_params(**candidate).fit(X[train], y[train])``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import delayed

from dtrees._forks import LockOfObject, cached_property
from dtrees.coding.codebook import CodeBook
from dtrees.coding.outputs import columns_of_outputs
from dtrees.coding.tables import Table
from dtrees.core.membership.resampling import of_sets
from dtrees.core.model.tree import Tree
from dtrees.core.predict.binned import LeafLookup
from dtrees.core.predict.raw import apply
from dtrees.estimators.boosted_init import BY_MODEL, is_model
from dtrees.estimators.boosted_sets import FittedBoosts
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.estimators.training_sets import TrainingTable, fit_table
from dtrees.exceptions import ClusterError
from dtrees.model_selection.candidates import (
    BoostedCells,
    Cells,
    Growth,
    Parameters,
    growths_of,
    key_of,
)
from dtrees.model_selection.fitted_splits import ModelScores, score_models, scores_by_leaves
from dtrees.model_selection.folds import Split
from dtrees.model_selection.prepare import (
    NotShareableError,
    is_any_of_dtrees,
    is_boosted,
    unsupported_reason,
)
from dtrees.model_selection.search_scores import SearchScores
from dtrees.parallel import admitted


def last_step(pipeline: Pipeline) -> tuple[str, Any]:
    """The last step of a pipeline, or of the pipeline that is its last step, and its full name."""
    name, last = pipeline.steps[-1]
    if isinstance(last, Pipeline):
        inner, estimator = last_step(last)
        return f"{name}__{inner}", estimator
    return name, last


def ends_in_dtrees(estimator: Any) -> bool:
    """Whether an estimator is a pipeline whose last step is an estimator of dtrees."""
    return isinstance(estimator, Pipeline) and is_any_of_dtrees(last_step(estimator)[1])


def unsupported_pipeline(pipeline: Pipeline, y: Any, params: Iterable[str]) -> str | None:
    """Why the candidates of a pipeline do not share their growth; None: they may.

    It ends in an estimator of dtrees; `params` are names for ``fit``.
    """
    part: Any = pipeline
    while isinstance(part, Pipeline):
        if type(part) is not Pipeline:
            return f"{type(part).__name__} is a pipeline of its own kind"
        part = part.steps[-1][1]
    name, last = last_step(pipeline)
    return unsupported_reason(last, y, params, f"{name}__sample_weight")


@dataclass(frozen=True, eq=False)
class Setting:
    """Candidates that have the steps before the last in common."""

    steps: Parameters  # parameters of the pipeline, without its last step's
    places: list[int]  # of the candidates, among all
    growths: list[Growth]  # of the last step
    errors: dict[int, Exception]  # what fits would raise, by place


def settings_of(pipeline: Pipeline, candidates: Sequence[Parameters]) -> list[Setting]:
    """Candidates by what they ask of the steps before the last.

    Raises NotShareableError where a candidate has another last step, which is none of dtrees, and
    ValueError where a name is no parameter of the last step.
    """
    name, given = last_step(pipeline)
    above = {"steps", *(name.rsplit("__", n)[0] for n in range(1, name.count("__") + 1))}
    groups: dict[Any, list[int]] = {}
    steps: list[Parameters] = []
    own: list[Parameters] = []
    for place, candidate in enumerate(candidates):
        if above & candidate.keys():
            raise NotShareableError(
                f"{min(above & candidate.keys())} is a parameter of a candidate"
            )
        last = candidate.get(name, given)
        if not is_any_of_dtrees(last):
            raise NotShareableError(f"{name} is {type(last).__name__} in a candidate")
        if is_boosted(last) and is_model(candidate.get(f"{name}__init", last.init)):
            raise NotShareableError(BY_MODEL)
        start = f"{name}__"
        own.append({k.removeprefix(start): v for k, v in candidate.items() if k.startswith(start)})
        steps.append({k: v for k, v in candidate.items() if k != name and not k.startswith(start)})
        groups.setdefault(key_of(steps[-1]), []).append(place)
    settings = []
    for places in groups.values():
        by_last: dict[int, list[int]] = {}
        for place in places:
            by_last.setdefault(id(candidates[place].get(name, given)), []).append(place)
        growths: list[Growth] = []
        errors: dict[int, Exception] = {}
        for alike in by_last.values():
            last = candidates[alike[0]].get(name, given)
            grown, failed = growths_of(last, [own[place] for place in alike])
            growths += [replace(one, places=[alike[i] for i in one.places]) for one in grown]
            errors |= {alike[i]: error for i, error in failed.items()}
        settings.append(Setting(steps[places[0]], places, growths, errors))
    return settings


PASSED = "passthrough"  # a step of a pipeline that does nothing


class Transformed:
    """What fitted steps make of rows of a table; each side is transformed once."""

    def __init__(self, steps: Pipeline, X: Any) -> None:
        self.steps, self._X = steps, X
        self._sides: list[tuple[np.ndarray, Any]] = []

    def rows(self, rows: np.ndarray) -> tuple[int, Any]:
        """Some rows as the last step sees them, and a number that tells sides apart."""
        for number, (known, table) in enumerate(self._sides):
            if np.array_equal(known, rows):
                return number, table
        self._sides.append((rows.copy(), self.steps.transform(_safe_indexing(self._X, rows))))
        return len(self._sides) - 1, self._sides[-1][1]


class TransformedRows(LeafLookup):
    """Rows of a table, walked down trees of transformed rows."""

    def __init__(self, transformed: Transformed, book: CodeBook, estimator: str) -> None:
        self._transformed, self._book, self._estimator = transformed, book, estimator
        self._tables: dict[int, Table] = {}
        self._lock = LockOfObject()

    def leaves(self, tree: Tree, rows: np.ndarray) -> np.ndarray:
        """Leaf of some rows, intp (n,), which are a side of a split."""
        with self._lock.of_process():  # trees may be walked on several threads
            number, table = self._transformed.rows(rows)
            if number not in self._tables:
                self._tables[number] = self._book.check(table, estimator=self._estimator)
        return apply(tree, self._book, self._tables[number])


class PipelineCells(Cells):
    """The models of one split: pipelines of these fitted steps, and a last step of `fitted`."""

    def __init__(self, growth: Growth, fitted: FittedSets, steps: Pipeline) -> None:
        super().__init__(growth, fitted)
        self._steps = steps

    def model(self, candidate: int, number: int) -> Any:
        """The fitted pipeline of a cell."""
        return _with_last(self._steps, super().model(candidate, number))


class BoostedPipelineCells(PipelineCells, BoostedCells):
    """Pipelines whose last step is boosted; their candidates are prefixes."""


def _with_last(steps: Pipeline, model: Any) -> Pipeline:
    """A pipeline of fitted steps and another last one."""
    made, (name, last) = copy(steps), steps.steps[-1]
    own = _with_last(last, model) if isinstance(last, Pipeline) else model
    made.steps = [*steps.steps[:-1], (name, own)]
    return made


@dataclass(frozen=True, eq=False)
class PipelineWork:
    """What the fits of a search over a pipeline share; the rest is as for `GridSearchCV`."""

    pipeline: Pipeline  # never fitted itself
    X: Any  # in memory, as `y` is
    y: Any
    sample_weight: Any  # for the fit of the last step
    scoring: Any
    error_score: Any
    return_train_score: bool

    def score_all(
        self, settings: Sequence[Setting], splits: Sequence[Split], n_candidates: int, run: Any
    ) -> SearchScores:
        """Scores of the candidates of all settings on all splits."""
        tasks = [(setting, number) for setting in settings for number in range(len(splits))]
        scored = run(
            delayed(self.score)(setting, splits[number], n_candidates) for setting, number in tasks
        )
        found = SearchScores.of(n_candidates, len(splits), self.error_score)
        for (setting, number), one in zip(tasks, scored, strict=True):
            found.add(one, setting.places, number)
        return found

    def score(self, setting: Setting, split: Split, n_candidates: int) -> SearchScores:
        """Fit and score the candidates of a setting, of so many in all, on one split.

        Raises ValueError where a name is no parameter of a step, ClusterError, and the error of a
        fit or a scorer, where ``error_score="raise"``.
        """
        found = SearchScores.of(n_candidates, 1, self.error_score)
        train = np.asarray(split[0])
        start = perf_counter()
        steps = clone(self.pipeline).set_params(**clone(dict(setting.steps), safe=False))
        steps.set_params(**{last_step(self.pipeline)[0]: PASSED})
        for error in setting.errors.values():
            self._fail(found, error, 1)
        try:
            y = _safe_indexing(self.y, train)
            made = steps.fit_transform(_safe_indexing(self.X, train), y)
            weight = self.sample_weight
            weight = None if weight is None else _safe_indexing(weight, train)
            table = TrainingTable(*admitted(made, {"y": y, "sample_weight": weight}))
        except Exception as error:
            self._fail(found, error, len(setting.places) - len(setting.errors))
            return found
        seconds = (perf_counter() - start) / len(setting.places)
        transformed = Transformed(steps, self.X)
        for growth in setting.growths:
            start = perf_counter()
            try:
                fitted = fit_table(growth.estimator, table, of_sets(np.ones((1, len(y)), bool)))
                if isinstance(fitted.models[0], Exception):
                    raise fitted.models[0]
            except ClusterError:
                raise
            except Exception as error:
                self._fail(found, error, len(growth.places))
                continue
            share = seconds + (perf_counter() - start) / len(growth.places)
            found.fit_time[growth.places] = share
            found.put(growth.places, self._score(growth, fitted, transformed, split))
        return found

    def _fail(self, found: SearchScores, error: Exception, count: int) -> None:
        if self.error_score == "raise" and count > 0:
            raise error
        found.fail(error, count)

    def _score(
        self, growth: Growth, fitted: FittedSets, transformed: Transformed, split: Split
    ) -> ModelScores:
        """Scores of the candidates of a growth."""
        rows = TransformedRows(transformed, fitted.book, type(growth.given).__name__)
        y = self._values(fitted.target.labels)
        kind = BoostedPipelineCells if isinstance(fitted, FittedBoosts) else PipelineCells
        cells = kind(growth, replace(fitted, coded_rows=rows, y=y), transformed.steps)
        return self._scores_of_leaves(cells, split) or score_models(
            *(cells, self.X, self.y, [split]),
            *(self.scoring, self.error_score, self.return_train_score),
        )

    def _values(self, classes: Any) -> np.ndarray:
        """What leaves are compared with: numbers of classes, -1 for others, or the target.

        Of several targets a column for each.
        """
        if classes is None:
            return self._numbers
        try:
            labels = self._labels
        except TypeError:  # labels that cannot be compared, some of which this split trains on
            return np.full(len(self.y), -1, dtype=np.int64)
        if not isinstance(classes, list):
            return self._numbers_of(classes, *labels[0])
        of_targets = zip(classes, labels, strict=True)
        return np.column_stack([self._numbers_of(own, *known) for own, known in of_targets])

    @staticmethod
    def _numbers_of(classes: np.ndarray, labels: np.ndarray, number: np.ndarray) -> np.ndarray:
        """Numbers of the classes of a split, from those of all labels."""
        if len(classes) == len(labels):
            return number
        known = np.flatnonzero(np.isin(labels, classes))
        of_class = np.full(len(labels), -1, dtype=np.int64)
        of_class[known] = np.arange(len(known))
        return of_class[number]

    @cached_property
    def _numbers(self) -> np.ndarray:
        columns = columns_of_outputs(self.y)
        if columns is not None:
            return np.column_stack(columns).astype(np.float64)
        return np.asarray(self.y, dtype=np.float64).reshape(-1)

    @cached_property
    def _labels(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Labels of each target, and their numbers by row."""
        columns = columns_of_outputs(self.y) or [np.asarray(self.y)]
        found = [np.unique(own, return_inverse=True) for own in columns]
        return [(labels, number.reshape(-1).astype(np.int64)) for labels, number in found]

    def _scores_of_leaves(self, cells: Cells, split: Split) -> ModelScores | None:
        """Scores that are sums over leaves; None: scikit-learn should compute them."""
        fitted = cells.fitted
        y = fitted.y[np.asarray(split[1])]
        if not np.isfinite(y).all() or (fitted.target.labels is not None and (y < 0).any()):
            return None  # a missing target, or a label that the training side lacks
        try:
            return scores_by_leaves(cells, [split], self.scoring, self.return_train_score)
        except Exception:  # scikit-learn says what it is worth
            return None
