"""Where boosted models grow: in this process, or on workers of a Dask cluster.

The regime follows from sizes, as that of a forest. On a cluster the rows stay in their blocks, and
a model grows on one worker, by all of its threads, or on all workers that have rows
(`dtrees.parallel.boosted_members`)::

    local         threads of this process
    replicated    blocks ──▶ the worker of most threads       the only member of an epoch
    partitioned   blocks ──▶ workers that have some each      members of an epoch
"""

from __future__ import annotations

import logging

from dtrees.coding.coded import CodedMatrix
from dtrees.parallel.client import cluster_client, limits_of
from dtrees.parallel.coded_partitions import CodedPartitions
from dtrees.parallel.executors import computed
from dtrees.parallel.memory import able_workers, too_large_for_workers
from dtrees.parallel.regimes import ASKED_FOR, TOO_LARGE, Choice, choose_regime

logger = logging.getLogger(__name__)


def place_of_boosting(regime: str | None, owner: str, *, side_by_side: bool = False) -> Choice:
    """Where a boosted model grows.

    `regime` is as for `choose_regime`, `owner` the name of the estimator, for messages. A model
    that is `side_by_side` with others, one of several training sets, grows in this process. Raises
    ValueError where the partitioned regime is asked for, and ClusterError where the replicated one
    is, and there is no cluster that can be used.
    """
    choice = choose_regime(regime)
    if side_by_side and choice.regime == "partitioned":
        raise ValueError(
            f"Several models of {owner} do not grow in the partitioned regime yet, as their rows "
            "have to be in one place. Give regime='local' (in this process), or fit one model."
        )
    if side_by_side and choice.regime == "replicated":
        choice = Choice("local", "boosted models grow side by side in this process")
    logger.info("regime %s: %s", choice.regime, choice.reason)
    return choice


def place_of_rows(
    choice: Choice, coded: CodedMatrix | CodedPartitions
) -> tuple[Choice, CodedMatrix | CodedPartitions]:
    """Where a model grows from these rows, and the rows as they are there.

    Rows are in partitions where they stay on the workers of a cluster, and in one table elsewhere.
    TableTooLargeError: no worker has room for all of them, as is asked for.
    """
    if isinstance(coded, CodedPartitions):
        choice = Choice(coded.regime, coded.reason)
    elif choice.regime == "replicated":
        with cluster_client() as client:
            if not able_workers(client, coded.nbytes):
                if choice.reason == ASKED_FOR:
                    least = min(filter(None, limits_of(client).values()), default=0)
                    raise too_large_for_workers(coded.nbytes, least)
                choice = Choice("local", TOO_LARGE)
    if choice.on_cluster:
        if isinstance(coded, CodedMatrix):
            coded = CodedPartitions.cut(coded, choice.reason, choice.regime)
    elif isinstance(coded, CodedPartitions):
        coded = CodedMatrix.stack(computed(*coded.each()))
    return choice, coded
