"""What a fitted forest answers: leaves, paths, importances, and its trees as estimators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtrees.core.model.tree import Forest, Tree
from dtrees.estimators.base import BaseTrees
from dtrees.estimators.prediction import ForestPredictor, Predictor
from dtrees.estimators.single_tree import BaseDecisionTree
from dtrees.estimators.tree_view import TreeView
from dtrees.export.parts import Parts
from dtrees.inspection.importance import mean_importances

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class FittedForest(BaseTrees):
    """The answers of forests; not meant to be used itself."""

    _tree_class: ClassVar[type[BaseDecisionTree]]

    def _predictor(self) -> Predictor:
        classes = getattr(self, "classes_", None)
        return ForestPredictor(self.codebook_, classes, type(self).__name__, self.forest_)

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of every row in every tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        leaves : intp array of shape (n_rows, n_estimators)
            Node numbers.
        """
        return self._answer("apply", X)

    def decision_path(self, X: Any) -> tuple[csr_matrix, np.ndarray]:
        """Return the nodes that every row passes, tree behind tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        indicator : csr matrix of shape (n_rows, nodes of all trees)
            1 where the row passes the node.
        n_nodes_ptr : intp array of shape (n_estimators + 1,)
            Columns ``n_nodes_ptr[i]:n_nodes_ptr[i + 1]`` are those of tree i.
        """
        paths = self._answer("decision_path", X)
        return paths, np.cumsum([0, *(tree.node_count for tree in self.forest_.trees)])

    @property
    def estimators_(self) -> list:
        """The trees as fitted estimators, made at the first look."""
        check_is_fitted(self)
        made = self.__dict__.get("_estimators")
        if made is None:
            learned = vars(self)
            made = [self._estimator(tree, learned) for tree in self.forest_.trees]
            self._estimators = made
        return made

    @property
    def n_estimators_(self) -> int:
        """Number of trees; less than ``n_estimators`` when the fit was stopped."""
        check_is_fitted(self)
        return len(self.forest_)

    def _estimator(self, tree: Tree, learned: Mapping[str, Any]) -> Any:
        """A tree as an estimator; `learned` is what the forest has, or will have, learned."""
        names = self._tree_class._constraints
        parameters = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if parameters.get("class_weight") == "balanced_subsample":
            parameters["class_weight"] = "balanced"
        made = self._tree_class(**parameters)
        made.__dict__.update(
            n_features_in_=learned["n_features_in_"],
            n_outputs_=1,
            max_features_=learned["max_features_"],
            tree_=TreeView(tree, learned["codebook_"], learned["_saw_missing"]),
        )
        for name in ("feature_names_in_", "classes_", "n_classes_"):
            if name in learned:
                made.__dict__[name] = learned[name]
        return made

    def _parts(self) -> Parts:
        learned, parameters = self._learned_attributes(), self.get_params(deep=False)
        return Parts(parameters, learned, self.forest_.trees, self.codebook_, self._saw_missing)

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        super()._check_parts(parts)
        learned = parts.attributes
        if learned["max_features_"] > learned["n_features_in_"]:
            raise ValueError("max_features_ is more than n_features_in_")
        sums = learned.get("oob_decision_function_")
        if sums is not None and sums.shape[1] != len(learned["classes_"]):
            raise ValueError("oob_decision_function_ has not a column for every class")
        scores = learned.get("oob_scores_")
        if scores is not None and len(scores) != len(parts.trees):
            raise ValueError("oob_scores_ are not those of the trees")

    @classmethod
    def _of_parts(cls, parts: Parts) -> Any:
        made = cls(**parts.parameters)
        made.__dict__.update(
            parts.attributes,
            forest_=Forest(parts.trees),
            codebook_=parts.book,
            _saw_missing=parts.saw_missing,
        )
        return made

    def __len__(self) -> int:
        """Number of trees."""
        return len(self.estimators_)

    def __getitem__(self, i: int) -> Any:
        """Tree i as an estimator."""
        return self.estimators_[i]

    def __iter__(self) -> Iterator:
        """The trees as estimators."""
        return iter(self.estimators_)

    def __getstate__(self) -> dict:
        state = dict(super().__getstate__())
        state.pop("_estimators", None)  # made again when asked for
        return state

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean share of every column in the impurity decrease, float64 (n_features_in_,)."""
        check_is_fitted(self)
        mean = mean_importances(self.forest_.trees)
        return np.zeros(self.n_features_in_) if mean is None else mean
