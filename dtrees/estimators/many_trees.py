"""What forests and boosted models have in common once they are fitted: many trees of one codebook.

forest_       the trees, as flat arrays      ─┐
codebook_     what their codes mean           ├──▶ leaves, paths, estimators, parts
_saw_missing  columns with missing values    ─┘
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dtrees.coding.codebook import CodeBook
from dtrees.core.model.tree import Forest, Tree
from dtrees.estimators.single_tree import BaseDecisionTree
from dtrees.estimators.stored import Stored
from dtrees.estimators.tree_view import TreeView
from dtrees.export.parts import Parts

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class ManyTrees(Stored):
    """The answers that do not depend on how trees vote; not meant to be used itself."""

    _tree_class: ClassVar[type[BaseDecisionTree]]

    forest_: Forest
    codebook_: CodeBook
    _saw_missing: np.ndarray
    _answer: Callable[..., Any]  # the predictor's, by method and table

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of every row in every tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        leaves : intp array of shape (n_rows, n_trees)
            Node numbers, in the order of ``forest_``.
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
        n_nodes_ptr : intp array of shape (n_trees + 1,)
            Columns ``n_nodes_ptr[i]:n_nodes_ptr[i + 1]`` are those of tree i.
        """
        paths = self._answer("decision_path", X)
        return paths, np.cumsum([0, *(tree.node_count for tree in self.forest_.trees)])

    def _trees_as_estimators(self) -> list[Any]:
        """The trees as fitted estimators, made at the first look."""
        forest, made = self.__dict__.get("_estimators", (None, []))
        if forest is not self.forest_:
            learned = vars(self)
            made = [self._estimator(tree, learned) for tree in self.forest_.trees]
            self._estimators = (self.forest_, made)
        return made

    def _estimator(self, tree: Tree, learned: Mapping[str, Any]) -> Any:
        """A tree as an estimator; `learned` is what the model has, or will have, learned."""
        kind = self._tree_class
        parameters = {
            name: getattr(self, name) for name in kind._constraints if hasattr(self, name)
        }
        if parameters.get("class_weight") == "balanced_subsample":
            parameters["class_weight"] = "balanced"
        made = kind(**parameters)
        n_columns = learned["n_features_in_"]
        made.__dict__.update(
            n_features_in_=n_columns,
            n_outputs_=1,
            max_features_=learned.get("max_features_", n_columns),
            tree_=TreeView(tree, learned["codebook_"], learned["_saw_missing"]),
        )
        for name in ("feature_names_in_", "classes_", "n_classes_"):
            if name in learned and name in kind._learns:
                made.__dict__[name] = learned[name]
        return made

    def _parts(self) -> Parts:
        learned, parameters = self._learned_attributes(), self.get_params(deep=False)
        return Parts(parameters, learned, self.forest_.trees, self.codebook_, self._saw_missing)

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

    def __getstate__(self) -> dict:
        state = dict(super().__getstate__())
        state.pop("_estimators", None)  # made again when asked for
        return state
