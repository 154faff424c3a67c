"""How alike rows are for a forest: the share of its trees that have them in one leaf.

Leaves of all trees stand side by side, and a row is in one of each tree. So the number of leaves
that two rows share is a product of sparse matrices (Breiman and Cutler 2003)::

                tree 0    tree 1                          row a   row b   row c
    row a     [ 1  0  0 | 1  0 ]              row a     [   1      .5      0   ]
    row b     [ 1  0  0 | 0  1 ]      ──▶     row b     [  .5       1      .5  ]
    row c     [ 0  1  0 | 0  1 ]              row c     [   0      .5       1  ]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, get_index_dtype
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from dtrees.coding.tables import row_values
from dtrees.constraints import ARRAY, ROWS, ArrayLike, Having, Nothing, checked
from dtrees.parallel import admitted, computed

MODEL = (Having("apply"),)
CELLS = 2**22  # of the proximities that are held at a time
OF_NORMAL = 1.4826  # standard deviation of a normal variable, of its median absolute deviation


@checked(model=MODEL, X=ARRAY, other=(ArrayLike(), Nothing()))
def proximities(model: Any, X: Any, other: Any = None) -> csr_array:
    """Compute the proximities of rows: the share of trees that have two rows in one leaf.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest or boosted model.
    X : table of shape (n_rows, n_columns)
        Columns as at fit; a Dask collection, if you like.
    other : table of shape (n_others, n_columns), default=None
        The rows that rows of `X` are compared with. None: those of `X`.

    Returns
    -------
    proximities : csr array of float64, shape (n_rows, n_others)
        From 0 to 1, where it is not stored and where all trees agree. 12 bytes for each pair of
        rows that share a leaf: larger leaves make it denser.

    Raises
    ------
    ValueError
        Columns are not those of the fit.

    See Also
    --------
    outlier_scores : How far rows are from all others, without the matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import RandomForestClassifier
    >>> from dtrees.inspection import proximities
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> proximities(forest, X[[0, 1, 149]]).toarray().round(1)
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    own, n_trees = _leaves(model, X)
    found = own @ (own if other is None else _leaves(model, other)[0]).T
    found.sort_indices()
    return csr_array((found.data / n_trees, found.indices, found.indptr), shape=found.shape)


@checked(model=MODEL, X=ARRAY, y=ROWS)
def outlier_scores(model: Any, X: Any, y: Any = None) -> np.ndarray:
    """Score rows by how few others of their class are near them: Breiman's outlier measure.

    The score of a row is one divided by the sum of its squared proximities to the rows of its
    class. Within the class, the median is taken off, and the rest is divided by 1.4826 times the
    median absolute deviation, as in R's ``randomForest::outlier``. Scores above 10 are worth a
    look.

    Parameters
    ----------
    model : estimator
        A fitted tree, forest or boosted model.
    X : table of shape (n_rows, n_columns)
        Columns as at fit; a Dask collection, if you like.
    y : array-like of shape (n_rows,), default=None
        The class of each row. None: all rows are of one.

    Returns
    -------
    scores : float64 array of shape (n_rows,)
        Larger for rows that are farther from the others. Where the median absolute deviation is 0,
        as of most rows in one leaf, the mean absolute deviation stands for it.

    Raises
    ------
    ValueError
        Columns are not those of the fit, or `y` is not one column of as many rows.

    See Also
    --------
    proximities : The proximities themselves.

    Notes
    -----
    Proximities are made for some rows at a time, so memory is that of the leaves of all rows. Costs
    O(trees x rows of a leaf) for each row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import RandomForestClassifier
    >>> from dtrees.inspection import outlier_scores
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> int(outlier_scores(forest, X, y).argmax())
    119
    """
    leaves, n_trees = _leaves(model, X)
    n_rows = leaves.shape[0]
    of_class = np.zeros(n_rows, dtype=np.intp)
    if y is not None:
        labels = row_values(admitted(None, {"y": y})[1])
        if len(labels) != n_rows:
            raise ValueError(f"X has {n_rows} rows, and y has {len(labels)}.")
        of_class = np.unique(column_or_1d(labels), return_inverse=True)[1].ravel()
    found = np.empty(n_rows)
    for number in range(of_class.max(initial=-1) + 1):
        rows = np.flatnonzero(of_class == number)
        inside = leaves[rows]
        step = max(1, CELLS // len(rows))
        sums = [
            (inside[first : first + step] @ inside.T).power(2).sum(axis=1)
            for first in range(0, len(rows), step)
        ]
        raw = n_trees**2 / np.concatenate(sums)
        away = raw - np.median(raw)
        found[rows] = away / (OF_NORMAL * np.median(np.abs(away)) or np.abs(away).mean() or 1.0)
    return found


def _leaves(model: Any, X: Any) -> tuple[csr_array, int]:
    """A one for each leaf of each row, int64 (n_rows, n_nodes), and the number of trees.

    Indices are int32 where they can be, and so are those of products.
    """
    check_is_fitted(model)
    (leaves,) = computed(model.apply(X))
    leaves = np.asarray(leaves)
    leaves = leaves.reshape(len(leaves), -1)
    trees = model.forest_.trees if hasattr(model, "forest_") else (model.tree_.model,)
    n_nodes = np.array([tree.node_count for tree in trees])
    columns = (leaves + (n_nodes.cumsum() - n_nodes)).ravel()
    ends = np.arange(0, leaves.size + 1, leaves.shape[1])
    shape = len(leaves), int(n_nodes.sum())
    index = get_index_dtype(maxval=max(leaves.size, *shape))
    ones = np.ones(leaves.size, dtype=np.int64)
    return csr_array((ones, columns.astype(index), ends.astype(index)), shape=shape), len(trees)
