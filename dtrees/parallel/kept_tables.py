"""Coded tables that stay where they were brought, from one growth to the next.

A search grows many times from one coded table, and so does a cross-validation whose training sides
count in several units. What is large is brought to the workers once::

    with tables_kept():            one scope for all growths; an inner one is part of it
        growth 1      codes ──▶ workers (or: partitions are coded there), targets ──▶
        growth 2                                                          targets ──▶
        ...
                      the end: nothing is left on the cluster

A growth without such a scope is its own. What is lost with workers is made again from the graph
that the scheduler has; after a restart of the cluster it is brought once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dtrees.coding.coded import CodedMatrix
from dtrees.parallel.client import release
from dtrees.parallel.coded_partitions import CodedPartitions

if TYPE_CHECKING:
    from distributed import Client, Future


@dataclass(eq=False)
class KeptTable:
    """A coded table, as growths have brought it to where they grow.

    Attributes
    ----------
    coded : CodedMatrix or CodedPartitions
    client : Client or None
        None: it stays in this process.
    whole : Future or None
        All codes, of which every worker has a copy.
    parts : CodedPartitions or None
        The table in partitions.
    blocks : list of Future or CodedMatrix
        Codes of rows that lie one behind the other.
    lengths : list of int
        Rows of each.
    """

    coded: Any
    client: Client | None = None
    whole: Future | None = None
    parts: CodedPartitions | None = None
    blocks: list[Any] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    def in_parts(self, reason: str) -> CodedPartitions:
        """The table in partitions; `reason`: why it is cut, where it is in one place."""
        if self.parts is None:
            is_whole = isinstance(self.coded, CodedMatrix)
            self.parts = CodedPartitions.cut(self.coded, reason) if is_whole else self.coded
        return self.parts

    def forget(self) -> None:
        """Bring it again the next time: what there was may be lost."""
        if self.client is not None:
            release(self.client, [*self.blocks, *([] if self.whole is None else [self.whole])])
        self.whole, self.blocks, self.lengths = None, [], []

    def check(self) -> None:
        """Forget what a cluster has lost meanwhile."""
        futures = self.blocks if self.whole is None else [self.whole]
        is_here = self.client is None
        if not is_here and any(each.status not in ("pending", "finished") for each in futures):
            self.forget()


class KeptTables:
    """The tables of a scope."""

    def __init__(self) -> None:
        self._tables: dict[tuple[int, int], KeptTable] = {}

    def of(self, coded: Any, client: Client | None = None) -> KeptTable:
        """That of some codes on a cluster, or here."""
        key = id(coded), id(client)  # both are held
        if key not in self._tables:
            self._tables[key] = KeptTable(coded, client)
        self._tables[key].check()
        return self._tables[key]

    def end(self) -> None:
        """Let go of all."""
        for table in self._tables.values():
            table.forget()
        self._tables = {}


_scope: ContextVar[KeptTables | None] = ContextVar("kept_tables", default=None)


@contextmanager
def tables_kept() -> Iterator[None]:
    """Growths in this context bring a table to a cluster once."""
    if _scope.get() is not None:
        yield
        return
    kept = KeptTables()
    token = _scope.set(kept)
    try:
        yield
    finally:
        _scope.reset(token)
        kept.end()


@contextmanager
def kept_table(coded: Any, client: Client | None = None) -> Iterator[KeptTable]:
    """The table of a growth; without a scope it is let go of when the growth is over."""
    kept = _scope.get()
    if kept is not None:
        yield kept.of(coded, client)
        return
    alone = KeptTables()
    try:
        yield alone.of(coded, client)
    finally:
        alone.end()
