"""``tree_``: a grown tree and its codebook under the names that scikit-learn's users know.

`dtrees.core.model.tree.Tree` speaks of codes, and of columns by number; the codebook knows what the
codes mean. The view holds both, adds the axis that scikit-learn keeps for several outputs, and
answers for raw rows. Arrays that the tree computes are kept, but not pickled: they are often asked
for node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from dtrees._forks import cached_property
from dtrees.coding.coded import CodedMatrix
from dtrees.core.model.tree import AT_MOST, LEAF, NO_FEATURE, Forest, Tree
from dtrees.core.predict.raw import apply, decision_path
from dtrees.inspection.importance import impurity_importances
from dtrees.parallel import CodedPartitions
from dtrees.typing import Runner, serial

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from dtrees.coding.codebook import CodeBook

FIRST_NODES = 1_024  # which mostly test all columns
MOST_NAMES = 5  # of columns in a message


@dataclass(frozen=True, eq=False, repr=False)
class TreeView:
    """A fitted tree; nodes in preorder, arrays read only.

    Parameters
    ----------
    model : dtrees.core.model.tree.Tree
        The tree on codes.
    codebook : dtrees.coding.codebook.CodeBook
        What the codes mean.
    saw_missing : bool (n_features,)
        Whether a tested column had missing values at fit; False for columns that are not tested.
    """

    model: Tree
    codebook: CodeBook
    saw_missing: np.ndarray

    def __repr__(self) -> str:
        return (
            f"TreeView(node_count={self.node_count}, n_leaves={self.n_leaves}, "
            f"max_depth={self.max_depth}, n_features={self.n_features})"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def as_forest(self) -> Forest:
        """The tree alone, as the same forest each time."""
        return Forest((self.model,))

    @property
    def node_count(self) -> int:
        """Number of nodes, leaves included."""
        return self.model.node_count

    @property
    def capacity(self) -> int:
        """Number of nodes, as ``node_count``."""
        return self.node_count

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.model.n_leaves

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf; the root has depth 0."""
        return self.model.max_depth

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.model.n_columns

    @property
    def n_outputs(self) -> int:
        """Number of targets."""
        return self.model.n_outputs

    @property
    def n_classes(self) -> np.ndarray:
        """Number of classes of each target, intp (n_outputs,); 1 for regression."""
        if self.n_outputs > 1 and self.model.is_regression:
            return np.ones(self.n_outputs, dtype=np.intp)
        return np.array(self.model.n_classes or [self.model.n_values], dtype=np.intp)

    @property
    def max_n_classes(self) -> int:
        """Number of classes, of several targets the most; 1 for regression."""
        return int(self.n_classes.max())

    @cached_property
    def children_left(self) -> np.ndarray:
        """Left children, intp (node_count,); -1 in leaves."""
        return read_only(self.model.children_left.astype(np.intp))

    @cached_property
    def children_right(self) -> np.ndarray:
        """Right children, intp (node_count,); -1 in leaves."""
        return read_only(self.model.children_right.astype(np.intp))

    @cached_property
    def feature(self) -> np.ndarray:
        """Column of the test, intp (node_count,); -2 in leaves."""
        return read_only(self.model.feature.astype(np.intp))

    @cached_property
    def threshold(self) -> np.ndarray:
        """Threshold of the test in the user's units, float64 (node_count,); -2 in leaves.

        Raises
        ------
        ValueError
            A test is not ``value <= threshold``: it is a set of categories, or numbers above a
            threshold in a column that has categories, too.
        """
        tests = self.model.test
        columns = np.unique(self.model.feature[tests > AT_MOST])
        if len(columns) > 0:
            names = ", ".join(map(self.codebook.name, columns[:MOST_NAMES].tolist()))
            more = f" and {len(columns) - MOST_NAMES} more" if len(columns) > MOST_NAMES else ""
            raise ValueError(
                f"This tree has no threshold for its tests of column {names}{more}: they are sets "
                "of categories, or numbers beside categories. Print or draw the tree by "
                "dtrees.export_text, dtrees.inspection.export_graphviz or "
                "dtrees.plot_tree. Code reads the tests by dtrees.export.nodes(tree)."
            )
        threshold = self.model.threshold.copy()
        threshold[tests == LEAF] = NO_FEATURE
        return read_only(threshold)

    @property
    def missing_go_to_left(self) -> np.ndarray:
        """Whether missing values go left, uint8 (node_count,)."""
        return self.model.missing_go_to_left

    @property
    def impurity(self) -> np.ndarray:
        """Impurity, float64 (node_count,)."""
        return self.model.impurity

    @cached_property
    def n_node_samples(self) -> np.ndarray:
        """Rows of positive weight, int64 (node_count,)."""
        return read_only(self.model.n_node_samples.astype(np.int64))

    @cached_property
    def weighted_n_node_samples(self) -> np.ndarray:
        """Weight of the rows, float64 (node_count,)."""
        return read_only(self.model.weighted_n_node_samples)

    @cached_property
    def value(self) -> np.ndarray:
        """Class shares or mean, float64 (node_count, n_outputs, max_n_classes)."""
        values = self.model.value
        if self.n_outputs == 1:
            return read_only(values[:, np.newaxis, :])
        found = np.zeros((self.node_count, self.n_outputs, self.max_n_classes))
        ends = np.cumsum(self.n_classes)
        for output, (n, end) in enumerate(zip(self.n_classes, ends, strict=True)):
            found[:, output, :n] = values[:, end - n : end]
        return read_only(found)

    def apply(self, X: Any, run: Runner = serial, *, estimator: str = "TreeView") -> np.ndarray:
        """Leaf of every row, intp (n_rows,); `estimator` is who complains about columns."""
        table = self.codebook.check(X, estimator=estimator, run=run)
        return apply(self.model, self.codebook, table, run)

    def predict(self, X: Any, run: Runner = serial) -> np.ndarray:
        """Class shares or mean in every row's leaf, float64 (n_rows, max_n_classes).

        Of several targets (n_rows, n_outputs, max_n_classes).
        """
        if self.n_outputs > 1:
            return self.value.take(self.apply(X, run), axis=0)
        return self.model.value_of(self.apply(X, run))

    def decision_path(self, X: Any, run: Runner = serial) -> csr_matrix:
        """Nodes on every row's way from the root to its leaf, csr (n_rows, node_count)."""
        return decision_path(self.model, self.apply(X, run))

    def compute_feature_importances(self, normalize: bool = True) -> np.ndarray:
        """Impurity decrease by column, float64 (n_features,)."""
        return impurity_importances(self.model, normalize=normalize)


def read_only(array: Any) -> Any:
    """The array itself, which nobody changes any more."""
    array.flags.writeable = False
    return array


def columns_with_missing(trees: Sequence[Tree], coded: CodedMatrix | CodedPartitions) -> np.ndarray:
    """Tell which columns that trees test have missing values in a table, bool (n_columns,).

    O(rows) per tested column, O(1) where the rows are known in the order of their codes. O(nodes),
    of as many trees as it takes to see all columns tested.
    """
    if isinstance(coded, CodedPartitions):
        return read_only(coded.facts.has_missing & columns_tested(trees, coded.n_columns))
    found = np.zeros(coded.n_columns, dtype=bool)
    for column in np.flatnonzero(columns_tested(trees, coded.n_columns)).tolist():
        found[column] = coded.has_missing(column)
    return read_only(found)


def missing_by_model(
    models: Sequence[Sequence[Tree]], coded: CodedMatrix | CodedPartitions
) -> list[np.ndarray]:
    """`columns_with_missing` for the trees of each model; columns are looked at once."""
    found = columns_with_missing([tree for trees in models for tree in trees], coded)
    return [read_only(found & columns_tested(trees, coded.n_columns)) for trees in models]


def columns_tested(trees: Sequence[Tree], n_columns: int) -> np.ndarray:
    """Tell which columns trees test, bool (n_columns,)."""
    tested = np.zeros(n_columns - NO_FEATURE, dtype=bool)  # behind the columns: leaves
    for tree in trees:
        for nodes in (slice(0, FIRST_NODES), slice(FIRST_NODES, None)):
            tested[tree.feature[nodes]] = True
            if tested[:n_columns].all():
                return tested[:n_columns]
    return tested[:n_columns]
