"""What searches have from scikit-learn's: their methods, and the form of their results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sklearn.base import is_classifier
from sklearn.model_selection import check_cv

from dtrees.coding.row_values import row_values
from dtrees.model_selection.candidates import Parameters
from dtrees.model_selection.fit_lines import FitLines
from dtrees.model_selection.missing_classes import warn_of_undefined
from dtrees.model_selection.prepare import draw_splits
from dtrees.model_selection.search_scores import SearchScores
from dtrees.model_selection.splits import Split


class SearchMethods:
    """Mixed into scikit-learn's searches; not meant to be used itself."""

    estimator: Any
    scoring: Any
    cv: Any
    n_jobs: int | None
    pre_dispatch: int | str
    refit: Any
    error_score: Any
    return_train_score: bool
    verbose: int

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
        """
        return super().score(X, row_values(y), **params)  # type: ignore[misc]

    def _lines(self, candidates: Sequence[Parameters], n_splits: int, scorers: Any) -> FitLines:
        """Print how many fits there would be one by one, as scikit-learn does; lines of each."""
        if self.verbose > 0:
            print(
                f"Fitting {n_splits} folds for each of {len(candidates)} candidates, totalling "
                f"{len(candidates) * n_splits} fits"
            )
        names = list(getattr(scorers, "_scorers", ["score"]))
        return FitLines(self.verbose, candidates, n_splits, names, self.return_train_score)

    def _keep_best(self, model: Any, start: float) -> None:
        """The best model, which was begun at a time of the clock."""
        self.best_estimator_ = model
        self.refit_time_ = time.perf_counter() - start
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_

    def _draw(self, X: Any, y: Any, groups: Any) -> Sequence[Split]:
        """The splits of ``cv``, drawn once."""
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

    def _conclude(
        self,
        found: SearchScores,
        candidates: Sequence[Parameters],
        splits: Sequence[Split],
        y: Any,
        scoring: tuple[Any, Any],
    ) -> None:
        """Report failures, then the results, and which candidate is the best.

        `scoring` are scorers and metric.
        """
        found.report(self.error_score)
        n_splits = len(splits)
        scorers, refit_metric = scoring
        if is_classifier(self.estimator) and not found.failures:
            warn_of_undefined(found.test, splits, y, getattr(scorers, "_scorers", scorers))
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
