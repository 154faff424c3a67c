"""How one tree is fitted, and what a fitted one answers.

``max_leaf_nodes`` and ``ccp_alpha`` are limits that a grown tree can answer: they are applied to it
afterwards [SF 3].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from dtrees.core.grow._arena import Arena
from dtrees.core.grow.forest import ForestGrowth
from dtrees.core.membership.resampling import Resampling, plain
from dtrees.core.model.pruning import PruningLimits, cost_complexity_path
from dtrees.core.model.tree import Tree
from dtrees.estimators.base import BaseTrees
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.prediction import Predictor, TreePredictor
from dtrees.estimators.training import Encoded, Training, rows_of
from dtrees.estimators.tree_view import TreeView, missing_by_model
from dtrees.export.parts import Parts
from dtrees.parallel import FitStatistics, admitted, grow_sets, threaded

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class BaseDecisionTree(BaseTrees):
    """What the two decision trees share; not meant to be used itself."""

    def _fit_plan(self, **own: Any) -> FitPlan:
        return super()._fit_plan(random_ties=self.random_state is not None, **own)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow the tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            A NumPy array, a SciPy sparse matrix or array, a pandas or polars data frame, an Arrow
            table or a list of rows; or a Dask array (of dense or sparse blocks) or data frame,
            which is coded where its partitions are. Numbers, booleans, dates, strings and
            categories; missing values are welcome. It is read only, and not kept.
        y : array-like of shape (n_rows,)
            The target; a Dask collection, if you like, cut in any way.
        sample_weight : array-like of shape (n_rows,), default=None
            Not negative, not all zero. A row of weight 2 is as good as two rows, except for
            ``min_samples_split`` and ``min_samples_leaf``, which count rows of positive weight.

        Returns
        -------
        self : object
            The fitted tree.

        Raises
        ------
        ValueError
            A parameter, `X`, `y` or `sample_weight` is not what it should be; the estimator is
            then as it was before.

        Notes
        -----
        Costs O(n_rows x n_columns x depth), and one sort of every ordered column.
        """
        return self._fit_coded(self._training(X, y, sample_weight))

    def _fit_coded(self, training: Training) -> Any:
        tree = PruningLimits(ccp_alpha=self.ccp_alpha).prune(self._grow(training))
        (learned,) = self._learned_of(training.encoded, [tree])
        learned["_fit_report"] = training.stats.report()
        self._forget_at_times()
        self.__dict__.update(learned)
        training.advance(1)
        return self

    def _learned_of(self, encoded: Encoded, trees: Sequence[Tree]) -> list[dict[str, Any]]:
        """The attributes of a fit for each of the trees that were grown with these parameters."""
        book = encoded.book.without_values()  # as large as the table; the tree has its thresholds
        facts = {
            "n_features_in_": book.n_columns,
            "n_outputs_": 1,
            "max_features_": encoded.max_features,
            **self._learned(encoded.target),
        }
        if book.feature_names is not None:
            facts["feature_names_in_"] = book.feature_names
        missing = missing_by_model([[tree] for tree in trees], encoded.coded)
        return [
            {**facts, "tree_": TreeView(tree, book, mine)}
            for tree, mine in zip(trees, missing, strict=True)
        ]

    def _grow_sets(self, training: Training, resampling: Resampling) -> list[Tree]:
        growth = self._growth_of(training.encoded)
        advance, stats = training.advance, training.stats
        grown = grow_sets(growth, range(1), resampling, training.run, advance=advance, stats=stats)
        return [tree for (tree,) in grown]

    def _growth_of(self, encoded: Encoded) -> ForestGrowth:
        """What the tree is grown from."""
        return ForestGrowth(
            encoded.coded,
            encoded.target,
            encoded.rules,
            None,
            encoded.book.thresholds,
            shares=self._shares(),
            max_leaf_nodes=self.max_leaf_nodes,
            ccp_alpha=self.ccp_alpha,
            arena=Arena(lends_records=False),
        )

    def _models_of(self, encoded: Encoded, grown: Sequence[Tree]) -> list[Any]:
        models = [self._unfitted() for _ in grown]
        for model, learned in zip(models, self._learned_of(encoded, grown), strict=True):
            model.__dict__.update(learned)
        return models

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        leaves : intp array of shape (n_rows,)
            Node numbers in ``[0, tree_.node_count)``. O(n_rows x depth).

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            Columns are not those of the fit.
        """
        return self._answer("apply", X)

    def decision_path(self, X: Any) -> csr_matrix:
        """Return the nodes that every row passes on its way to its leaf.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        indicator : csr matrix of shape (n_rows, tree_.node_count)
            1 where the row passes the node, the leaf included.
        """
        return self._answer("decision_path", X)

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return every step of minimal cost-complexity pruning; fits nothing.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `fit`.
        y : array-like of shape (n_rows,)
            The target.
        sample_weight : array-like of shape (n_rows,), default=None
            As for `fit`.

        Returns
        -------
        path : Bunch
            ``ccp_alphas``, ascending from 0, float64 of shape (n_steps,), and ``impurities``, the
            weighted impurity of the leaves from that alpha on, of the same shape.

        Notes
        -----
        Costs one fit; ``ccp_alpha`` is not looked at.
        """
        alphas, impurities = cost_complexity_path(self._grow(self._training(X, y, sample_weight)))
        return Bunch(ccp_alphas=alphas, impurities=impurities)

    def get_depth(self) -> int:
        """Return the depth of the deepest leaf; a tree of one leaf has depth 0."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of every column in the impurity decrease of the training rows.

        float64 (n_features_in_,). Columns of many values get more than their due: see
        :func:`dtrees.inspection.held_out_importances` for rows that did not choose the splits.
        """
        check_is_fitted(self)
        return self.tree_.compute_feature_importances()

    def _predictor(self) -> Predictor:
        view, classes = self.tree_, getattr(self, "classes_", None)
        return TreePredictor(view.codebook, classes, type(self).__name__, view.model)

    def _parts(self) -> Parts:
        learned, parameters = self._learned_attributes(), self.get_params(deep=False)
        view = self.tree_
        return Parts(parameters, learned, (view.model,), view.codebook, view.saw_missing)

    @classmethod
    def _of_parts(cls, parts: Parts) -> Any:
        made = cls(**parts.parameters)
        (tree,) = parts.trees
        made.__dict__.update(parts.attributes, tree_=TreeView(tree, parts.book, parts.saw_missing))
        return made

    def _training(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Check the parameters and code the table."""
        self._check_parameters()
        plan, run, stats = self._fit_plan(), threaded(self.n_jobs), FitStatistics()
        X, y, sample_weight = admitted(X, {"y": y, "sample_weight": sample_weight}, stats)
        with stats.phase("coding"):
            encoded = plan.encode(X, (y, sample_weight), plan.seed(), run, stats)
        return Training(encoded, rows_of(encoded.coded, stats), y, run, stats=stats)

    def _grow(self, training: Training) -> Tree:
        """The tree before cost-complexity pruning."""
        growth = replace(self._growth_of(training.encoded), ccp_alpha=0.0)
        with training.stats.phase("growth"):
            ((tree,),) = grow_sets(growth, range(1), plain(), training.run, stats=training.stats)
        return tree
