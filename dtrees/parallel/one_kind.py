"""Several collections computed at once, each with its own result.

Dask's answer to collections of several kinds has no order to rely on. Dask 2026.8 sorts them by
their optimizers::

    dask.compute(delayed, array, other_delayed)   ──▶   delayed, other_delayed, array

So no call of Dask gets two kinds. Collections of one kind go together: what they share is computed
once, and their results are in the order of the call. Whoever computes several collections does it
by the executors (`dtrees.parallel.executors`), where their scheduler is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dask.delayed import Delayed


def is_lazy(X: Any) -> bool:
    """Whether this is a Dask collection."""
    return hasattr(type(X), "__dask_graph__")


def one_kind_at_a_time(
    values: Sequence[Any], compute: Callable[[list[Any]], Sequence[Any]]
) -> list[Any]:
    """Compute the collections among some values; other values are their own results.

    `compute` gives the results, or the futures, of collections of one kind in their order; it is
    called once for each kind. Results are in the order of `values`.
    """
    results = list(values)
    kinds: dict[type, list[int]] = {}
    for place, value in enumerate(values):
        if is_lazy(value):
            kind = Delayed if isinstance(value, Delayed) else type(value)
            kinds.setdefault(kind, []).append(place)
    for places in kinds.values():
        found = compute([values[place] for place in places])
        for place, result in zip(places, found, strict=True):
            results[place] = result
    return results
