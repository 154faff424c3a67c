"""How large a fitted model is, a tree or a forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ModelSize:
    """What is counted in a model."""

    trees: int  # 1 for a tree
    depth: int  # of the deepest leaf of all trees
    n_leaves: int  # of all trees


def size_of(model: Any) -> ModelSize:
    """Count the trees and leaves of a fitted tree or forest. O(nodes)."""
    trees = model.forest_.trees if hasattr(model, "forest_") else (model.tree_.model,)
    return ModelSize(
        trees=len(trees),
        depth=max(tree.max_depth for tree in trees),
        n_leaves=sum(tree.n_leaves for tree in trees),
    )
