"""Searches with scikit-learn's interface and results, which grow once and decide later.

Every candidate of a grid names k models. Those of candidates that differ in limits of trees only
stand inside the same grown trees (`dtrees.model_selection.candidates`), and all candidates grow
from one coded table::

    candidates ──▶ growths ──▶ k models each, from one coding ──▶ scores of all their candidates
                                                                     │
                        best ◀── cv_results_ ◀───────────────────────┘

Scores that are sums over leaves are computed for all candidates at once
(`dtrees.model_selection.leaf_scores`). For any other scorer, scikit-learn's own search goes through
the different trees of a growth, with stand-ins for the estimators. Either way every cell is what
the fit of its candidate scores: ``clone(estimator).set_params(**candidate)``, with the weights of
the rows outside of the training side set to zero.
"""

from __future__ import annotations

import logging
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any

import numpy as np
import sklearn
import sklearn.model_selection
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid, ParameterSampler, check_cv
from sklearn.utils import indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed

from dtrees.callbacks import Bar
from dtrees.coding.sparse_places import check_sparse
from dtrees.core.resampling import of_sets
from dtrees.estimators.constraints import InvalidParameterError
from dtrees.estimators.ensemble import BaseForest
from dtrees.estimators.sets import FittedSets, TrainingTable, fit_table
from dtrees.exceptions import NotSharedWarning
from dtrees.model_selection.candidates import Parameters, growths_of
from dtrees.model_selection.cells import Cells, score_models
from dtrees.model_selection.fit_lines import FitLines
from dtrees.model_selection.found import Found
from dtrees.model_selection.leaf_scores import leaf_scores_of, scores_of_splits
from dtrees.model_selection.ours import (
    TogetherError,
    check_rows_can_be_taken,
    draw_splits,
    in_memory,
    is_of_dask_ml,
    why_not,
    why_not_splits,
)
from dtrees.model_selection.pipelines import (
    PipelineWork,
    ends_in_ours,
    last_step,
    settings_of,
    why_not_pipeline,
)
from dtrees.model_selection.stand_in import Split, TrainingRows
from dtrees.parallel import Ledger, PartitionedTable, admitted, check_lengths, is_lazy

logger = logging.getLogger(__name__)

ONE_EACH = "no two candidates have the steps before the last in common"


def _checked(name: str) -> Any:
    """A method of scikit-learn's searches that looks at sparse tables first.

    The best estimator may be a pipeline whose first step is scikit-learn's own, and converts them.
    """

    @wraps(getattr(sklearn.model_selection.GridSearchCV, name))
    def method(self: SharedSearch, *args: Any, **kwargs: Any) -> Any:
        check_sparse(**dict(zip(["X"], args, strict=False)), **kwargs)
        return getattr(super(SharedSearch, self), name)(*args, **kwargs)

    def is_there(self: SharedSearch) -> bool:
        return getattr(super(SharedSearch, self), name) is not None  # or its AttributeError

    return available_if(is_there)(method)


class SharedSearch:
    """What the two searches have in common; mixed into scikit-learn's."""

    estimator: Any
    scoring: Any
    cv: Any
    n_jobs: int | None
    pre_dispatch: int | str
    refit: Any
    error_score: Any
    return_train_score: bool
    verbose: int

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Search.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Anything that the estimator takes.
        y : array-like of shape (n_rows,)
            The target.
        **params : dict
            ``sample_weight``, of shape (n_rows,), for the estimator's ``fit``, and ``groups`` for
            the splitter. With others scikit-learn's own search does the work. For the last step of
            a pipeline, ``<step>__sample_weight``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As scikit-learn's search does: a parameter that the estimator does not have, fits that
            all fail, splits that cannot be made; and where `groups` or `sample_weight` have not
            one value per row.
        TypeError
            `X` is a Dask collection, and models cannot be grown together: rows of it cannot be
            taken for scikit-learn's own search, or for a scorer that asks for them. Nor can a
            splitter look at them.
        ClusterError
            A Dask cluster is in force, or asked for by ``regime``, and cannot be used.

        Warns
        -----
        NotSharedWarning
            The estimator is a pipeline that ends in one of dtrees, and each candidate is fitted on
            its own: metadata routing is enabled, ``fit`` is given other parameters, the pipeline is
            of a class derived from scikit-learn's, a candidate has a last step that is none of
            dtrees, or a training side lists a row twice.
        sklearn.exceptions.FitFailedWarning
            Some fits have failed.

        Notes
        -----
        A growth for each combination of parameters that are not decided later, all splits
        together, from one coding. Then, for c candidates of limits and each split:

        ======================================  ================================================
        accuracy, losses, R^2 of a tree         O(nodes + c)
        F1, precision, recall, Jaccard,         the same for each pair of classes, and
        Matthews' coefficient of a tree         scikit-learn's scorer for each different matrix
        others of scikit-learn, and all of a    a prediction and a score for each different tree
        forest
        a function of the model and its rows    a model, a prediction and a score for each c
        ======================================  ================================================

        Losses, by name: see `GridSearchCV`. Splits that are parts of the rows, leave-one-out among
        them, take 8 bytes per row, and a byte for each pair of different training sides.
        """
        groups = params.pop("groups", None)
        reason = why_not(self.estimator, y, params)
        check_rows_can_be_taken(f"{type(self).__name__}.fit", X, reason)
        ledger = Ledger()
        y, groups, params = in_memory(X, y, groups, params, self.cv, ledger)
        given = self.cv
        if reason is None:
            self._validate_params()  # type: ignore[attr-defined]
            table, y = indexable(*admitted(X, {"y": y}, ledger))
            weights = params.get("sample_weight")
            check_lengths(len(y), {"groups": groups, "sample_weight": weights})
            splits = self._splits(table, y, groups)
            reason = why_not_splits(splits, len(y))
            if reason is not None and isinstance(table, PartitionedTable):
                raise TypeError(f"{type(self).__name__} of a Dask collection: {reason}.")
            if reason is not None:
                self.cv = splits  # which cannot be drawn twice from an iterator
        if reason is None:
            whole = TrainingTable(table, y, weights, ledger)
            try:
                counts = self.verbose > 0 and isinstance(self.estimator, BaseForest)
                with Bar() if counts else nullcontext() as bar:
                    self._search(whole, splits, np.ones(len(y), dtype=bool), bar)
                return self
            except TogetherError as error:
                if isinstance(table, PartitionedTable) and error.__cause__ is not None:
                    raise error.__cause__ from None
                reason, self.cv = str(error), splits
        if ends_in_ours(self.estimator):
            reason = self._search_pipeline(X, y, groups, params)
            if reason is None:
                return self
            if reason:
                warnings.warn(
                    f"Every candidate of this {type(self).__name__} is fitted on its own, which "
                    f"may take many times as long: {reason}.",
                    NotSharedWarning,
                    stacklevel=2,
                )
        logger.info("%s.fit is scikit-learn's: %s", type(self).__name__, reason or ONE_EACH)
        if is_of_dask_ml(self.cv):
            self.cv = draw_splits(self.cv, X, X if y is None else y, groups)
        try:
            if groups is not None:
                params["groups"] = groups
            return super().fit(X, y, **params)  # type: ignore[misc]
        finally:
            self.cv = given

    def score(self, X: Any, y: Any = None, **params: Any) -> float:
        """Score of the best estimator, by the scorer of the search; as scikit-learn's.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,), default=None
        **params : dict
            For the scorer, where metadata routing is enabled.

        Returns
        -------
        score : float

        Raises
        ------
        ValueError
            As scikit-learn's, and for sparse matrices that are damaged.
        """
        check_sparse(X=X, y=y, **params)
        return super().score(X, y, **params)  # type: ignore[misc]

    predict = _checked("predict")
    predict_proba = _checked("predict_proba")
    predict_log_proba = _checked("predict_log_proba")
    decision_function = _checked("decision_function")
    score_samples = _checked("score_samples")
    transform = _checked("transform")
    inverse_transform = _checked("inverse_transform")

    def _search_pipeline(
        self, X: Any, y: Any, groups: Any, params: Mapping[str, Any]
    ) -> str | None:
        """Search over a pipeline, with one growth of its last step for all candidates of a split.

        Returns
        -------
        str or None
            Why the candidates are not fitted together, for scikit-learn to fit them; "" where no
            two of them have anything in common. None: they have been.
        """
        reason = why_not_pipeline(self.estimator, y, params)
        if reason is not None:
            return reason
        self._validate_params()  # type: ignore[attr-defined]
        scorers, refit_metric = self._get_scorers()  # type: ignore[attr-defined]
        candidates = self._candidates()
        try:
            settings = settings_of(self.estimator, candidates)
        except TogetherError as error:
            return str(error)
        if all(len(setting.places) == 1 for setting in settings):
            return ""
        if is_lazy(X):
            return "X is a Dask collection, whose rows are taken for each candidate"
        X, y = indexable(X, y)
        weight = params.get(f"{last_step(self.estimator)[0]}__sample_weight")
        check_lengths(len(y), {"groups": groups, "sample_weight": weight})
        splits = self._splits(X, y, groups)
        reason = why_not_splits(splits, len(y))
        if reason is not None:
            self.cv = splits  # which cannot be drawn twice from an iterator
            return reason
        shape = len(candidates), len(splits)
        n_fits = len(candidates) * len(splits)
        if self.verbose > 0:
            print(
                f"Fitting {len(splits)} folds for each of {len(candidates)} candidates, totalling "
                f"{n_fits} fits"
            )
        work = PipelineWork(
            *(self.estimator, X, y, weight),
            *(self.scoring, self.error_score, self.return_train_score),
        )
        lines = FitLines(self.verbose, candidates, len(splits))
        lines.start(range(len(candidates)))
        tasks = [(setting, number) for setting in settings for number in range(len(splits))]
        scored = Parallel(n_jobs=self.n_jobs, pre_dispatch=self.pre_dispatch)(
            delayed(work.score)(setting, splits[number]) for setting, number in tasks
        )
        found = Found(
            *(np.zeros(shape), np.zeros(shape)),
            np.nan if self.error_score == "raise" else float(self.error_score),
        )
        failures: Counter[str] = Counter()
        sides: dict[tuple[str, str], np.ndarray] = {}
        for (_, number), one in zip(tasks, scored, strict=True):
            failures += one.failures
            found.is_single &= one.is_single
            for place in one.fit_time:
                found.fit_time[place, number] = one.fit_time[place]
                found.score_time[place, number] = one.score_time[place]
            for key, of_places in one.scores.items():
                scores = sides.setdefault(key, np.full(shape, found.of_failures))
                for place, score in of_places.items():
                    scores[place, number] = score
        for (side, name), scores in sides.items():
            found.put(side, name, range(len(candidates)), scores)
        names = list(getattr(scorers, "_scorers", ["score"]))
        told = found.scores(names, self.return_train_score)
        lines.end(range(len(candidates)), *told, found.seconds)
        self._report(failures, n_fits)
        self._conclude(found, candidates, len(splits), scorers, refit_metric)
        if self.refit:
            start = time.perf_counter()
            best = clone(dict(self.best_params_), safe=False)
            self.best_estimator_ = clone(clone(self.estimator).set_params(**best))
            self.best_estimator_.fit(X, y, **params)
            self.refit_time_ = time.perf_counter() - start
            if hasattr(self.best_estimator_, "feature_names_in_"):
                self.feature_names_in_ = self.best_estimator_.feature_names_in_
        return None

    def _splits(self, X: Any, y: Any, groups: Any) -> Sequence[Split]:
        """The splits, drawn once."""
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        n_splits = cv.get_n_splits(X, y, groups)
        splits = draw_splits(cv, X, y, groups)
        if len(splits) != n_splits:
            raise ValueError(
                "cv.split and cv.get_n_splits return inconsistent results. Expected "
                f"{n_splits} splits, got {len(splits)}"
            )
        return splits

    def _candidates(self) -> list[Parameters]:
        raise NotImplementedError

    def _search(
        self,
        table: TrainingTable,
        splits: Sequence[Split],
        rows: np.ndarray,
        bar: Bar | None = None,
    ) -> FittedSets | None:
        """Search by splits of some rows of a table; returns the growth of the best model.

        Parameters
        ----------
        table : TrainingTable
        splits : sequence of (train, test)
            Row numbers of the table.
        rows : bool (n_rows,)
            Of the best model, which is there when it is asked for (``refit``).
        bar : Bar or None, default=None
            Counts the trees of all growths as they come.

        Raises
        ------
        TogetherError
            Models cannot be grown from the input as a whole; some fits may be possible.
        """
        scorers, refit_metric = self._get_scorers()  # type: ignore[attr-defined]
        candidates = self._candidates()
        if not candidates or not splits:
            raise ValueError(
                "No fits were performed. Was the CV iterator empty? Were there no candidates?"
            )
        n_fits = len(candidates) * len(splits)
        if self.verbose > 0:
            print(
                f"Fitting {len(splits)} folds for each of {len(candidates)} candidates, totalling "
                f"{n_fits} fits"
            )
        growths, errors = growths_of(self.estimator, candidates)
        failures = Counter([text for text in map(_text, errors.values()) for _ in splits])
        if errors and self.error_score == "raise":
            raise errors[min(errors)]
        shape = len(candidates), len(splits)
        of_failures = np.nan if self.error_score == "raise" else float(self.error_score)
        found = Found(np.zeros(shape), np.zeros(shape), of_failures)
        lines = FitLines(self.verbose, candidates, len(splits))
        names = list(getattr(scorers, "_scorers", ["score"]))  # of what is known before a score is
        lines.start(sorted(errors))
        lines.end(sorted(errors), *found.scores(names, self.return_train_score), found.seconds)
        keeps_final = bool(self.refit) and len(growths) == 1
        sets = of_sets(TrainingRows(splits, len(rows), rows if keeps_final else None))
        for growth in growths:
            start = time.perf_counter()
            lines.start(growth.places)
            try:
                cells = Cells(growth, fit_table(growth.estimator, table, sets, bar=bar))
            except InvalidParameterError as error:  # of every fit
                if self.error_score == "raise":
                    raise
                failures[_text(error)] += len(growth.places) * len(splits)
            except (ValueError, TypeError, NotImplementedError) as error:
                raise TogetherError(str(error)) from error
            else:
                seconds = (time.perf_counter() - start) / (len(growth.places) * sets.n_sets)
                found.fit_time[growth.places] = seconds
                failures += self._score(cells, table, splits, found)
            scores = found.scores(names, self.return_train_score)
            lines.end(growth.places, *scores, found.seconds)
        self._report(failures, n_fits)
        self._conclude(found, candidates, len(splits), scorers, refit_metric)
        if not self.refit:
            return None
        start = time.perf_counter()
        best = self.best_index_
        growth = next(growth for growth in growths if best in growth.places)
        candidate = growth.places.index(best)
        if keeps_final:
            fitted, model = cells.fitted, cells.fitted.models[-1]
            if not isinstance(model, Exception):
                model = cells.model(candidate, -1)
        else:
            fitted = fit_table(growth.estimator_of(candidate), table, of_sets(rows[None]))
            model = fitted.models[0]
        if isinstance(model, Exception):
            raise model
        self.best_estimator_ = model
        self.refit_time_ = time.perf_counter() - start
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        return fitted

    def _score(
        self, cells: Cells, table: TrainingTable, splits: Sequence[Split], found: Found
    ) -> Counter[str]:
        """Score the candidates of a growth; returns the errors of its fits."""
        places = cells.growth.places
        errors = [cells.error(number) for number in range(len(splits))]
        failed = [error for error in errors if error is not None]
        if failed and self.error_score == "raise":
            raise failed[0]
        counts = Counter([text for text in map(_text, failed) for _ in places])
        if len(failed) == len(splits):
            return counts
        start = time.perf_counter()
        if failed or not self._score_leaves(cells, table, splits, found):
            by_models = score_models(
                cells, table, splits, self.scoring, self.error_score, self.return_train_score
            )
            found.is_single = by_models.is_single
            found.score_time[places] = by_models.seconds[:, None]
            for (side, name), scores in by_models.scores.items():
                found.put(side, name, places, scores)
        else:
            found.score_time[places] = (time.perf_counter() - start) / (len(places) * len(splits))
        return counts

    def _score_leaves(
        self, cells: Cells, table: TrainingTable, splits: Sequence[Split], found: Found
    ) -> bool:
        """Score by sums over leaves; False: that cannot be done."""
        by_name = leaf_scores_of(self.scoring, of_classes=cells.classes is not None)
        if by_name is None or hasattr(self.estimator, "n_estimators"):
            return False
        fitted, scores = cells.fitted, list(by_name.values())
        by_side = {
            side: scores_of_splits(scores, fitted, splits, cells.limits, side, table.sample_weight)
            for side in (("test", "train") if self.return_train_score else ("test",))
        }
        if any(of_names is None for of_names in by_side.values()):
            return False
        found.is_single = not isinstance(self.scoring, Mapping | list | tuple | set)
        for side, of_names in by_side.items():
            assert of_names is not None
            for name, of_splits in zip(by_name, of_names, strict=True):
                found.put(side, name, cells.growth.places, of_splits)
        return True

    def _report(self, failures: Counter[str], n_fits: int) -> None:
        """Say which fits have failed, as scikit-learn does."""
        if not failures:
            return
        n_failed = sum(failures.values())
        rule = "-" * 80
        details = "\n".join(
            f"{rule}\n{n} fits failed with the following error:\n{error}"
            for error, n in failures.items()
        )
        if n_failed == n_fits:
            raise ValueError(
                f"\nAll the {n_fits} fits failed.\nIt is very likely that your model is "
                "misconfigured.\nYou can try to debug the error by setting error_score='raise'."
                f"\n\nBelow are more details about the failures:\n{details}"
            )
        warnings.warn(
            f"\n{n_failed} fits failed out of a total of {n_fits}.\nThe score on these train-test "
            f"partitions for these parameters will be set to {self.error_score}.\nIf these "
            "failures are not expected, you can try to debug them by setting error_score='raise'."
            f"\n\nBelow are more details about the failures:\n{details}",
            FitFailedWarning,
            stacklevel=4,
        )

    def _conclude(
        self,
        found: Found,
        candidates: Sequence[Parameters],
        n_splits: int,
        scorers: Any,
        refit_metric: Any,
    ) -> None:
        """The results, and which candidate is the best."""
        results = self._format_results(  # type: ignore[attr-defined]
            candidates, n_splits, found.outputs()
        )
        self.multimetric_ = not found.is_single
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(found.test)  # type: ignore[attr-defined]
            refit_metric = self.refit
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(  # type: ignore[attr-defined]
                self.refit, refit_metric, results
            )
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]
        self.scorer_ = getattr(scorers, "_scorers", scorers)
        self.cv_results_ = results
        self.n_splits_ = n_splits


class GridSearchCV(SharedSearch, sklearn.model_selection.GridSearchCV):
    """Search over all combinations of parameters, by cross-validation, growing as little as can be.

    A drop-in for :class:`sklearn.model_selection.GridSearchCV`, whose parameters and attributes
    these are. ``max_depth``, ``min_samples_split``, ``min_impurity_decrease``, ``max_leaf_nodes``,
    ``ccp_alpha``, and ``n_estimators`` of a forest, are decided on grown trees [SF] 3: however
    many values they have, each combination of the *other* parameters is grown once, all splits
    together ([CV] 2.2.2), from one coded table.

    Parameters
    ----------
    estimator : tree or forest of dtrees, or a Pipeline that ends in one
        Of a pipeline, the steps before the last are fitted once for each split and each of their
        settings, to the training rows only, and the last step's candidates grow together there.
        Others are handed to scikit-learn's own search.
    param_grid : dict or list of dict
        Values to try, by parameter.
    scoring : str, callable, list, tuple or dict, default=None
        One scorer or several; None: the estimator's ``score``.
    n_jobs : int, default=None
        For scikit-learn's own search. Trees grow on the estimator's ``n_jobs`` threads.
    refit : bool, str or callable, default=True
        Whether `best_estimator_` is fitted to all rows, and by which scorer it is the best.
    cv : int, cross-validation generator or iterable of (train, test), default=None
        None: 5 folds, stratified for classifiers.
    verbose : int, default=0
        1: the number of fits that a search by brute force would take, and for forests a bar of the
        trees that grow, on the standard error stream. Above 1: scikit-learn's line for each of
        these fits, when the scores of its growth are there; its time is its share of the growth.
    pre_dispatch : int or str, default="2*n_jobs"
        For scikit-learn's own search.
    error_score : "raise" or number, default=nan
        Score where a fit or a scorer fails.
    return_train_score : bool, default=False
        Whether `cv_results_` has scores of the training sides.

    Attributes
    ----------
    cv_results_ : dict of arrays
        As scikit-learn's. ``mean_fit_time`` is the time of a growth, divided by the fits that it
        stands for.
    best_estimator_ : estimator
        Fitted to all rows. Its ``fit_report_`` is that of the growth that it stands in.
    best_score_, best_params_, best_index_, scorer_, n_splits_, refit_time_, multimetric_, classes_
        As scikit-learn's.

    See Also
    --------
    RandomizedSearchCV : The same for a sample of combinations.
    validation_surface : Scores over depth and rows of a node, without naming values.

    Notes
    -----
    For single trees and the scorers accuracy, balanced_accuracy, neg_log_loss, neg_brier_score,
    neg_mean_squared_error, neg_root_mean_squared_error, r2 and neg_mean_poisson_deviance, a further
    value of a limit costs next to nothing. f1, precision, recall and jaccard with their averages,
    matthews_corrcoef, and what `sklearn.metrics.make_scorer` makes of such functions, are computed
    by scikit-learn from the matrix of predicted and true classes, once for each different one (2
    ms). For forests and any other scorer, trees that are different cost a prediction of the
    held-out rows. Scores are weighted, as scikit-learn's, where ``sample_weight`` is given.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.model_selection import GridSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"max_depth": [1, 2, 3, None], "ccp_alpha": [0.0, 0.01, 0.1]}
    >>> search = GridSearchCV(DecisionTreeClassifier(random_state=0), grid, cv=10).fit(X, y)
    >>> len(search.cv_results_["params"])
    12
    """

    def _candidates(self) -> list[Parameters]:
        return list(ParameterGrid(self.param_grid))


class RandomizedSearchCV(SharedSearch, sklearn.model_selection.RandomizedSearchCV):
    """Search over a sample of combinations of parameters, growing as little as can be.

    A drop-in for :class:`sklearn.model_selection.RandomizedSearchCV`; see `GridSearchCV` for what
    is shared.

    Parameters
    ----------
    estimator : tree or forest of dtrees
        Others are handed to scikit-learn's own search.
    param_distributions : dict or list of dict
        Values, or distributions with a method ``rvs``, by parameter.
    n_iter : int, default=10
        Number of combinations.
    random_state : int, RandomState or None, default=None
        Seed of the sample.
    scoring, n_jobs, refit, cv, verbose, pre_dispatch, error_score, return_train_score
        As for `GridSearchCV`.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_
        As for `GridSearchCV`.

    See Also
    --------
    GridSearchCV : All combinations.

    Examples
    --------
    >>> from scipy.stats import randint, uniform
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import DecisionTreeRegressor
    >>> from dtrees.model_selection import RandomizedSearchCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> limits = {"min_samples_split": randint(2, 100), "ccp_alpha": uniform(0, 100)}
    >>> search = RandomizedSearchCV(DecisionTreeRegressor(), limits, n_iter=500, random_state=0)
    >>> len(search.fit(X, y).cv_results_["params"])
    500
    """

    def _candidates(self) -> list[Parameters]:
        return list(
            ParameterSampler(self.param_distributions, self.n_iter, random_state=self.random_state)
        )


def _text(error: BaseException) -> str:
    """An error as it is printed."""
    return "".join(traceback.format_exception_only(error))
