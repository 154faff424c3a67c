"""Dask collections: whether something is one, several computed at once, and persisted ones.

Dask's answer to collections of several kinds has no order to rely on. Dask 2026.8 sorts them by
their optimizers::

    dask.compute(delayed, array, other_delayed)   ──▶   delayed, other_delayed, array

So no call of Dask gets two kinds. Collections of one kind go together: what they share is computed
once, and their results are in the order of the call. Whoever computes several collections does it
by the executors (`dtrees.parallel.executors`), where their scheduler is.

A persisted collection is made of futures. Where their data are gone, or on another cluster, Dask
says of tasks that need them that something was lost. So this is looked at after a failure::

    client.restart(), client.cancel(X), the end of the cluster     the data are gone
    the client in force is that of another cluster, or none        the data are elsewhere
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from dask.base import tokenize
from dask.delayed import Delayed

from dtrees.exceptions import ClusterError
from dtrees.parallel.client import RELEASE_SECONDS, address_of, call_with_timeout

if TYPE_CHECKING:
    from distributed import Client


def is_lazy(X: Any) -> bool:
    """Whether this is a Dask collection."""
    return hasattr(type(X), "__dask_graph__")


def are_alike(one: Any, other: Any) -> bool:
    """Whether two collections are made in the same way, as far as Dask can tell."""
    return bool(tokenize(one) == tokenize(other))


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


BEFORE = "give the collection as it was before persist()"


def check_persisted(collections: Sequence[Any], client: Client | None) -> None:
    """Raise ClusterError where collections are made of futures whose data `client` cannot have.

    `client` None: they are computed in this process. O(tasks of their graphs).
    """
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return
    here = None if client is None else address_of(client)
    ids: dict[Any, str] = {}

    def scheduler_of(client: Client) -> str:
        if client not in ids:
            ask = partial(client.scheduler_info, n_workers=0)
            ids[client] = str(call_with_timeout(client, ask, RELEASE_SECONDS)["id"])
        return ids[client]

    layers: dict[int, Any] = {}
    for graph in (each.__dask_graph__() for each in collections):
        layers |= {id(layer): layer for layer in getattr(graph, "layers", {"": graph}).values()}
    for future in distributed.futures_of([dict(layer) for layer in layers.values()]):
        there = address_of(future.client)
        if future.status in ("cancelled", "lost") or future.client.status != "running":
            raise ClusterError(
                "A Dask collection is persisted, and its data are gone: client.restart(), "
                "client.cancel() or the end of their cluster has dropped them. Persist it again, "
                f"or {BEFORE}."
            )
        # one scheduler has many addresses, such as those of localhost and 127.0.0.1
        if there != here and (
            client is None or scheduler_of(future.client) != scheduler_of(client)
        ):
            place = "in this process" if here is None else f"on the cluster at {here}"
            raise ClusterError(
                f"A Dask collection is persisted on the cluster at {there}, and is to be computed "
                f"{place}. Fit it with the client of its cluster (with client.as_current()), or "
                f"{BEFORE}."
            )
