"""What decides where a tree stops and how a split is scored.

`GrowthRules` is the only way in which a user's parameters reach the kernels. Everything in it is
resolved: no "sqrt", no fractions of the rows, no None that stands for a default. Limits that can
be applied to a grown tree as well (`dtrees.core.model.pruning`) stand here because growth may stop
early on them; both ways give the same tree.
"""

from __future__ import annotations

from dataclasses import dataclass

CRITERIA = ("gini", "entropy", "squared_error", "poisson")


@dataclass(frozen=True, kw_only=True)
class GrowthRules:
    """The rules of one growth.

    Parameters
    ----------
    criterion : {"gini", "entropy", "squared_error", "poisson"}
        "entropy" is measured in bits, "poisson" in half deviances, as in scikit-learn.
    max_depth : int or None, default=None
        Nodes at this depth are leaves; the root has depth 0.
    min_samples_split, min_samples_leaf : int, default=2, 1
        Counted in rows of positive weight.
    min_weight_leaf : float, default=0.0
        Least weight of a leaf, in the user's units.
    min_impurity_decrease : float, default=0.0
        Least ``gain / total weight`` of a split.
    max_features : int or None, default=None
        Columns drawn at each node; None searches all of them and draws nothing.
    random_splits : bool, default=False
        One split per searched column, drawn at random, instead of the best one: extremely
        randomized trees (Geurts, Ernst and Wehenkel 2006).
    random_ties : bool, default=False
        Of columns whose splits gain the same, a node takes the one that a hash of (seed, tree,
        node, column) chooses; otherwise it takes the lowest.
    seed, tree : int, default=0
        Key of every draw (`dtrees._random`).
    category_penalty : float, default=0.0
        What each category of a column beyond eleven in a node takes off the gain of the column's
        best split, in impurities of a row within its category. 0: nothing.
    handle_unknown : {"missing", "majority"}, default="missing"
        Where categories go that a node has not seen: with the missing values or to the heavier
        child.
    """

    criterion: str
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    min_impurity_decrease: float = 0.0
    max_features: int | None = None
    random_splits: bool = False
    random_ties: bool = False
    category_penalty: float = 0.0
    seed: int = 0
    tree: int = 0
    handle_unknown: str = "missing"

    def __post_init__(self) -> None:
        assert self.criterion in CRITERIA, self.criterion
        assert self.min_samples_split >= 2
        assert self.min_samples_leaf >= 1
        assert 0 <= self.category_penalty < float("inf")
        assert self.handle_unknown in ("missing", "majority")


@dataclass(frozen=True, kw_only=True)
class BoostingRules:
    """The rules of the trees of a boosted model.

    Parameters
    ----------
    max_leaf_nodes, max_depth : int or None, default=31, None
    min_samples_leaf : int, default=20
        Rows of positive weight.
    l2 : float, default=0.0
        Added to the second derivative of every leaf.
    category_penalty : float, default=0.0
        What each of many categories that go left takes off the gain, in mean squares of the
        gradients divided by the mean of the hessians.
    handle_unknown : {"missing", "majority"}, default="missing"
        As for `GrowthRules`.
    """

    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    l2: float = 0.0
    category_penalty: float = 0.0
    handle_unknown: str = "missing"
