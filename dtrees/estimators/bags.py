"""Which rows each tree of a forest sees: its bag, or all of them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from dtrees.coding.target import Target
from dtrees.core.membership.resampling import Bags


def check_bootstrap(forest: Any) -> None:
    """Refuse (ValueError) out-of-bag scores and a size of bags where there are no bags."""
    if forest.bootstrap:
        return
    if forest.max_samples is not None:
        raise ValueError(
            "`max_samples` cannot be set if `bootstrap=False`. Either switch to "
            f"`bootstrap=True` or set `max_samples=None`: got {forest.max_samples!r}."
        )
    asked = f"oob_score={forest.oob_score!r}" if forest.oob_score else f"oob_tol={forest.oob_tol!r}"
    if forest.oob_score or forest.oob_tol is not None:
        raise ValueError(
            f"Out of bag estimation only available if bootstrap=True: {type(forest).__name__} "
            f"got {asked}, bootstrap=False."
        )


def bags_of(forest: Any, seed: int, target: Target, groups: Any = None) -> Bags | None:
    """The bags of a forest's trees; None: each sees all rows.

    Rows of one group, of `groups` (n_rows,), are in a bag together. Raises ValueError where there
    are groups and no bags, labels that cannot be compared, or fewer groups than ``max_samples``.
    """
    if not forest.bootstrap:
        if groups is not None:
            raise ValueError("bootstrap_groups needs bootstrap=True.")
        return None
    n_keys = n_rows = target.n_rows
    keys = np.arange(n_rows, dtype=np.uint64)
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (n_rows,):
            raise ValueError(
                f"bootstrap_groups must have one value per row: expected shape ({n_rows},), "
                f"got {groups.shape}."
            )
        try:
            values, inverse = np.unique(groups, return_inverse=True)
            missing = bool((values != values).any())
        except (TypeError, ValueError):  # None or NA among labels: nothing that is ordered
            missing = True
        if missing:
            raise ValueError(
                "bootstrap_groups holds missing values, or labels that cannot be compared with "
                "each other. Give every row the label of its group, or a label of its own."
            )
        keys, n_keys = inverse.astype(np.uint64), len(values)
    rate = 1.0
    if isinstance(forest.max_samples, Integral):
        if int(forest.max_samples) > n_keys:
            of = "" if groups is None else ", the number of groups in bootstrap_groups,"
            raise ValueError(
                f"`max_samples` must be <= n_samples={n_keys}{of} but got value "
                f"{forest.max_samples}"
            )
        rate = float(forest.max_samples) / n_keys
    elif forest.max_samples is not None:
        rate = float(forest.max_samples)
    return Bags(seed, rate, keys, target.means)
