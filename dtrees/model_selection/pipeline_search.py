"""Searches over pipelines, with one growth of the last step for all candidates of a split."""

from __future__ import annotations

import time
from typing import Any

from sklearn.base import clone
from sklearn.utils import indexable
from sklearn.utils.parallel import Parallel

from dtrees.model_selection.eligibility import (
    NotShareableError,
    unsupported_callbacks,
    unsupported_splits,
)
from dtrees.model_selection.pipeline_scores import PipelineWork
from dtrees.model_selection.pipelines import last_step, settings_of, unsupported_pipeline
from dtrees.model_selection.prepare import Prepared
from dtrees.model_selection.search_methods import SearchMethods
from dtrees.parallel import check_lengths, is_lazy


class PipelineSearch(SearchMethods):
    """Mixed into scikit-learn's searches; not meant to be used itself."""

    def _search_pipeline(self, prepared: Prepared, X: Any) -> str | None:
        """Search over a pipeline, with one growth of its last step for all candidates of a split.

        Returns
        -------
        str or None
            Why the candidates are not fitted together, for scikit-learn to fit them; "" where no
            two of them have anything in common. None: they have been.
        """
        y, params = prepared.y, prepared.arguments.params
        reason = unsupported_pipeline(self.estimator, y, params)
        reason = reason or unsupported_callbacks(self, self.estimator)
        if reason is not None:
            return reason
        self._validate_params()  # type: ignore[attr-defined]
        scorers, refit_metric = self._get_scorers()  # type: ignore[attr-defined]
        candidates = self._candidates()
        try:
            settings = settings_of(self.estimator, candidates)
        except NotShareableError as error:
            return str(error)
        if all(len(setting.places) == 1 for setting in settings):
            return ""
        if is_lazy(X):
            return "X is a Dask collection, whose rows are taken for each candidate"
        X, y = indexable(X, y)
        groups = prepared.arguments.groups
        weight = params.get(f"{last_step(self.estimator)[0]}__sample_weight")
        check_lengths(len(y), {"groups": groups, "sample_weight": weight})
        splits = self._draw(X, y, groups)
        reason = unsupported_splits(splits, len(y))
        if reason is not None:
            self.cv = splits  # which cannot be drawn twice from an iterator
            return reason
        lines = self._lines(candidates, len(splits), scorers)
        work = PipelineWork(
            *(self.estimator, X, y, weight),
            *(self.scoring, self.error_score, self.return_train_score),
        )
        lines.start(range(len(candidates)))
        run = Parallel(n_jobs=self.n_jobs, pre_dispatch=self.pre_dispatch)
        found = work.score_all(settings, splits, len(candidates), run)
        lines.end(range(len(candidates)), found)
        self._conclude(found, candidates, splits, y, (scorers, refit_metric))
        if self.refit:
            start = time.perf_counter()
            best = clone(dict(self.best_params_), safe=False)
            best_estimator = clone(clone(self.estimator).set_params(**best)).fit(X, y, **params)
            self._keep_best(best_estimator, start)
        return None
