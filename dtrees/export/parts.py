"""What a fitted estimator is made of: how estimators and model files talk to each other.

Estimators give their parts and are made from them (``_parts``, ``_of_parts`` in
`dtrees.estimators.base`); model files know parts, and no estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dtrees.coding.codebook import CodeBook
from dtrees.core.model.tree import Tree


@dataclass(frozen=True, eq=False)
class Parts:
    """A fitted estimator in pieces.

    Attributes
    ----------
    parameters : dict of str to object
        As ``get_params`` gives them.
    attributes : dict of str to object
        What `fit` learned, without the following.
    trees : tuple of Tree
    book : CodeBook
    saw_missing : bool (n_columns,)
        Whether a tested column had missing values at fit.
    """

    parameters: dict[str, Any]
    attributes: dict[str, Any]
    trees: tuple[Tree, ...]
    book: CodeBook
    saw_missing: np.ndarray
