"""A dict one of whose entries may be made when it is first asked for.

::

    found = LateEntry({"test_score": scores}, "final_estimator", grow)
    found["test_score"]         grows nothing
    "final_estimator" in found  True
    found["final_estimator"]    calls `grow`, once
"""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from threading import RLock
from typing import Any

LATER = object()  # in the place of what nobody has asked for
EVERY = object()  # for all entries


class LateEntry(dict[str, Any]):
    """A dict with an entry that is made when it, or all entries, are first asked for.

    Parameters
    ----------
    entries : mapping
        The others.
    name : str
        Of the entry.
    make : callable or None
        Without arguments; its errors are those of who asks, and it is called again next time. None:
        the entry is among the others.
    """

    def __init__(
        self, entries: Mapping[str, Any], name: str, make: Callable[[], Any] | None
    ) -> None:
        super().__init__(entries)
        self._name, self._make = name, make
        self._making = RLock()  # several threads may ask
        if make is not None:
            super().__setitem__(name, LATER)

    def _made(self, key: object = EVERY) -> LateEntry:
        """Make the entry, if it is the one of `key`; the dict."""
        if key is EVERY or key == self._name:
            with self._making:
                if super().get(self._name) is LATER:
                    assert self._make is not None
                    super().__setitem__(self._name, self._make())
                    self._make = None
        return self

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self._forget(key)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._forget(key)

    def _forget(self, key: str) -> None:
        """Keep nothing for an entry that somebody else has set, or has taken away."""
        if key == self._name:
            self._make = None

    def __getitem__(self, key: str) -> Any:
        return super(LateEntry, self._made(key)).__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """As of any dict."""
        return super(LateEntry, self._made(key)).get(key, default)

    def pop(self, key: str, *default: Any) -> Any:
        """As of any dict."""
        return super(LateEntry, self._made(key)).pop(key, *default)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """As of any dict."""
        return super(LateEntry, self._made(key)).setdefault(key, default)

    def popitem(self) -> tuple[str, Any]:
        """As of any dict."""
        return super(LateEntry, self._made()).popitem()

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """As of any dict."""
        return super(LateEntry, self._made()).items()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """As of any dict."""
        return super(LateEntry, self._made()).values()

    def __iter__(self) -> Iterator[str]:
        # Not that of dict: so dict(found) and {**found} ask for each entry, too.
        return super().__iter__()

    def copy(self) -> dict[str, Any]:
        """A plain dict."""
        return dict(self)

    def __or__(self, other: Any) -> Any:
        return dict(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | dict(self)

    def __eq__(self, other: object) -> bool:
        return dict(self) == (dict(other) if isinstance(other, LateEntry) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return super(LateEntry, self._made()).__repr__()
