"""The one place that decides where trees are grown, which is a *regime*.

    local        threads of this process
    replicated   workers of a cluster, each of which gets the whole coded table once
    partitioned  workers of a cluster, each of which has some rows; without a cluster, blocks of
                 rows on threads of this process

The regime never changes a model. Unless it is asked for by name, by a parameter or by
``dask.config.set({"dtrees.regime": ...})``, it follows from what is in force where the fit is
called:

    no client                                                    local
    dask.config.set(scheduler="threads"), "synchronous", ...     local
    an asynchronous client                                       local
    a client of the process that this one was forked from        local
    a client                                                     replicated
    a client, but too little work for a cluster                  local
    a client, but codes here that no worker can hold             local
    a client, and a Dask collection whose codes are more than
    a worker should hold                                         partitioned
    in a task on a worker, whose thread is the task's share      local
    in a task on a worker, within ``worker_client()``            replicated

Too little work is a single tree whose table times training sets has fewer than `LEAST_CELLS` cells.
A cluster costs 0.05 s more, so it pays from a tenth of a second of work on.
"""

from __future__ import annotations

from dataclasses import dataclass

import dask
from dask.utils import format_bytes

from dtrees.exceptions import ClusterError
from dtrees.parallel.client import (
    address_of,
    check_open,
    current_client,
    has_seceded,
    is_inherited,
    this_worker,
)
from dtrees.parallel.memory import PROCESS_BYTES

REGIMES = ("local", "replicated", "partitioned")
LEAST_CELLS = 2**23  # of the table times sets, of a single tree: a tenth of a second of work
ASKED_FOR, TOO_LITTLE = "asked for", "too little work for a cluster"  # reasons
TOO_LARGE = "the coded table is more than a worker can hold"  # another one
ROOM_SHARE = 0.3  # of the memory of a worker, that the codes of the whole table may take


@dataclass(frozen=True)
class Choice:
    """A regime of `REGIMES`, and why it was chosen."""

    regime: str
    reason: str

    @property
    def on_cluster(self) -> bool:
        """Whether that is on the workers of a cluster, from here."""
        if self.regime != "partitioned":
            return self.regime == "replicated"
        client = current_client(forced=True)
        is_ours = client is not None and not (client.asynchronous or is_inherited(client))
        return is_ours or this_worker() is not None


def choose_regime(
    requested: str | None = None,
    *,
    n_trees: int | None = None,
    n_sets: int = 1,
    n_cells: int = 0,
    n_bytes: int = 0,
    room: int | None = None,
    kept: str | None = None,
) -> Choice:
    """Choose where trees are grown.

    Parameters
    ----------
    requested : {"local", "replicated", "partitioned"} or None, default=None
        None: what ``dask.config`` says under "dtrees.regime", or as the table at the top says.
    n_trees : int or None, default=None
        Of each training set. None: those of a forest, which are enough work for a cluster.
    n_sets, n_cells : int
        Training sets, and cells of the table.
    n_bytes : int, default=0
        Of codes that are in partitions, or are to be made there.
    room : int or None, default=None
        Bytes of the smallest worker. None: there is no limit, or no cluster.
    kept : str or None, default=None
        Why codes were left in their partitions, if they were: this is decided then.

    Raises ClusterError where the client in force is closed, or a synchronous fit cannot use it for
    "replicated"; and ValueError where ``dask.config`` asks for a regime that there is not.
    """
    if kept is not None:
        return Choice("partitioned", kept)
    assert requested is None or requested in REGIMES, requested
    if requested is None:
        requested = dask.config.get("dtrees.regime", None)
        if requested is not None and requested not in REGIMES:
            raise ValueError(
                f"dask.config has 'dtrees.regime' = {requested!r}; it must be one of {REGIMES}."
            )
    if requested in ("local", "partitioned"):
        return Choice(requested, ASKED_FOR)
    is_free = requested is None
    if is_free and room is not None and n_bytes > ROOM_SHARE * max(0, room - PROCESS_BYTES):
        return Choice(
            "partitioned",
            f"the codes, {format_bytes(n_bytes)}, are more than {ROOM_SHARE:.0%} of the memory of "
            f"a worker, {format_bytes(room)}, without the {format_bytes(PROCESS_BYTES)} of its "
            "process",
        )
    choice = _by_client(forced=not is_free)
    pays = n_trees != 1 or (n_sets > 1 and n_cells * n_sets >= LEAST_CELLS)
    if choice.regime == "replicated" and is_free and not pays:
        return Choice("local", TOO_LITTLE)
    return choice


def is_free(requested: str | None) -> bool:
    """Whether nothing but this process may grow trees: no cluster is here, and no regime asked for.

    `requested` is that of an estimator.
    """
    is_asked = requested is not None or dask.config.get("dtrees.regime", None) is not None
    return not is_asked and current_client() is None


def _by_client(forced: bool) -> Choice:
    """Replicated, where there is a client for it; `forced`: or an error that says why not."""
    if this_worker() is not None:
        if forced or has_seceded():
            return Choice("replicated", ASKED_FOR if forced else "within worker_client()")
        return Choice("local", "in a Dask task, on the task's thread")
    client = current_client(forced)
    if client is None:
        if forced:
            raise ClusterError(
                "regime='replicated' needs a Dask cluster, but there is no open client. Make one "
                "with dask.distributed.Client(...), or fit with regime='local'."
            )
        scheduler = dask.config.get("scheduler", None)
        return Choice("local", "no client" if scheduler is None else f"scheduler {scheduler!r}")
    if is_inherited(client) and not forced:
        return Choice("local", "the client is of the process that this one was forked from")
    check_open(client)
    if client.asynchronous:
        if forced:
            raise ClusterError(
                "regime='replicated' needs a synchronous client, but the current one was made "
                "with asynchronous=True. Fit in a thread with a synchronous Client of the same "
                "scheduler, or with regime='local'."
            )
        return Choice("local", "the client is asynchronous")
    return Choice("replicated", ASKED_FOR if forced else f"client of {address_of(client)}")
