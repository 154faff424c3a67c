"""Checkpoints: what has grown of long work, in a folder that outlives it.

A folder anywhere that fsspec reaches (a path, ``s3://...``, ``gs://...``, ``memory://...``)::

    checkpoint.json                     what the trees are of: parameters, seed, digests of X and y
    trees-000000000-000000012.dtrees    units 0 to 11 of the series "trees"
    trees-000000012-000000057.dtrees    units 12 to 56

A fit has one series, "trees". A validation or a search has one for each growth: a unit is then a
tree and the number of its set (`SavedTrees`), in the order in which they come.

A file is written under another name and then renamed, so that it is there whole or not at all. The
next ones are written when a twentieth of the time of the work has passed (`SHARE`). They wait at
least ten seconds, or what ``dask.config`` says under "dtrees.checkpoint-every". The last ones are
written at the end of the work, whatever that is. So a client that is killed loses a twentieth of
its work, and there are few files.

Units are those from number 0 on, without gaps; where a file is missing, those behind it are removed
and grown again: they may come in another order. What the bytes of a file are is the business of
whoever gives `encode` and `decode`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from dtrees._forks import LockOfObject
from dtrees.core.model.tree import Tree
from dtrees.exceptions import ModelFileError
from dtrees.parallel.client import seconds_of

FORMAT = "dtrees checkpoint"
VERSION = 1
FACTS = "checkpoint.json"
SHARE = 0.05  # of the time of the work, that may be lost
STRETCH = re.compile(r"([0-9a-z]+)-(\d{9})-(\d{9})\.dtrees")

logger = logging.getLogger(__name__)


class Checkpoint:
    """Units of work in a folder, in series that have names.

    The folder at `path`, which is anything that `fsspec` knows, is made when there is none. `facts`
    say what the units that are there are of; None: nothing is there.

    Raises ModelFileError where a checkpoint there cannot be read, or is of a newer version;
    TypeError where `path` is no path; ValueError where it is a folder of other files; and what
    `fsspec` raises: no such protocol, no access.
    """

    def __init__(self, path: Any) -> None:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"checkpoint must be a path or a URL: got {path!r}.")
        from fsspec.core import url_to_fs

        self.path = os.fspath(path)
        self._fs, self._root = url_to_fs(self.path)
        self._began = self._saved_at = time.monotonic()
        self._lock = LockOfObject(threading.RLock)
        self._open: list[str] = []  # series that grow, from the outermost one on
        self._series: dict[str, tuple[Sequence[Any], Callable[[Sequence[Any]], bytes]]] = {}
        self._n_saved: dict[str, int] = defaultdict(int)
        self.facts = self._read_facts()
        self._stretches: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for match in map(STRETCH.fullmatch, self._names() if self.facts is not None else ()):
            if match:
                self._stretches[match[1]].append((int(match[2]), int(match[3])))

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Write what the units are of, where nothing is there."""
        if self.facts is None:
            self._fs.makedirs(self._root, exist_ok=True)
            document = {"format": FORMAT, "version": VERSION, "facts": dict(facts)}
            self._write(FACTS, json.dumps(document, indent=1).encode())
            self.facts = dict(facts)

    def units(self, name: str, decode: Callable[[bytes, str], Sequence[Any]]) -> list[Any]:
        """The units of a series that are there, from number 0 on.

        A unit is a tuple of the number of a set and what is of it. `decode` gets the bytes of a
        file and its name, for messages. Raises ModelFileError where a file is damaged, or files
        are of two fits.
        """
        found: list[Any] = []
        for first, last in sorted(self._stretches[name]):
            path = f"{self._root}/{_file_name(name, first, last)}"
            if first > len(found):
                self._fs.rm_file(path)
            elif len(found) < last:
                units = decode(self._fs.cat_file(path), path)
                if len(units) != last - first:
                    raise ModelFileError(f"{path!r} does not hold {last - first} trees.")
                n_there = len(found) - first
                if [of_set for of_set, *_ in units[:n_there]] != [
                    of_set for of_set, *_ in found[first:]
                ]:
                    raise ModelFileError(
                        f"{path!r} is of another fit than files before it: two have written to one "
                        "folder at a time, whose trees came in another order. Remove the folder."
                    )
                found += units[n_there:]
        self._n_saved[name] = len(found)
        return found

    @contextmanager
    def saving(
        self,
        name: str = "",
        units: Sequence[Any] = (),
        encode: Callable[[Sequence[Any]], bytes] = bytes,
    ) -> Iterator[None]:
        """Save units of a series, all from number 0 on, that are added to a list in this block.

        The last ones are saved when it fails, or at the end of the outermost one of such blocks.
        Raises OSError where they cannot be written, and the block has not failed.
        """
        self._open.append(name)
        self._series[name] = units, encode
        try:
            yield
        except BaseException:
            try:
                self.save()
            except OSError as error:
                logger.warning("the last trees are not in %s: %s", self.path, error)
            raise
        else:
            if len(self._open) == 1:
                self.save()
        finally:
            self._open.remove(name)

    def see(self) -> None:
        """Save what is there, if it is time."""
        now = time.monotonic()
        least = seconds_of("dtrees.checkpoint-every")
        if now >= self._saved_at + max(least, SHARE * (now - self._began)):
            self.save()

    def save(self) -> None:
        """Save the units that are not there yet; raises OSError where they cannot be written."""
        with self._lock.of_process():
            for name, (units, encode) in list(self._series.items()):
                first, last = self._n_saved[name], len(units)
                if last > first:
                    self._write(_file_name(name, first, last), encode(units[first:last]))
                    self._n_saved[name] = last
                    logger.info("trees %d to %d are saved in %s", first, last - 1, self.path)
                if name not in self._open:  # no more come
                    del self._series[name]
            self._saved_at = time.monotonic()

    def _read_facts(self) -> dict[str, Any] | None:
        self._fs.invalidate_cache()
        path = f"{self._root}/{FACTS}"
        if not self._fs.exists(path):
            self._check_free()
            return None
        try:
            document = json.loads(self._fs.cat_file(path))
            known = document["format"] == FORMAT and document["version"] <= VERSION
            facts = dict(document["facts"]) if known else None
        except (ValueError, TypeError, KeyError) as error:
            raise ModelFileError(f"The checkpoint {path!r} is damaged: {error}.") from error
        if facts is None:
            raise ModelFileError(f"{path!r} is no checkpoint that this dtrees can read.")
        return facts

    def _check_free(self) -> None:
        """Refuse to write among what somebody else has written."""
        if not self._fs.exists(self._root):
            return
        if self._fs.isfile(self._root):
            raise NotADirectoryError(f"checkpoint={self.path!r} is a file; it must be a folder.")
        others = [name for name in self._names() if not name.startswith(".")]  # ours, half written
        if others:
            raise ValueError(
                f"checkpoint={self.path!r} is no checkpoint, and not empty. Give a folder that is "
                "new or empty, or the one of this fit."
            )

    def _names(self) -> list[str]:
        return [str(path).rsplit("/", 1)[-1] for path in self._fs.ls(self._root, detail=False)]

    def _write(self, name: str, data: bytes) -> None:
        """A file, whole or not at all."""
        partial = f"{self._root}/.{name}.{uuid4().hex}.partial"
        try:
            self._fs.pipe_file(partial, data)
            self._fs.mv(partial, f"{self._root}/{name}")
        except BaseException:
            if self._fs.exists(partial):
                self._fs.rm_file(partial)
            raise


def _file_name(name: str, first: int, last: int) -> str:
    return f"{name}-{first:09d}-{last:09d}.dtrees"


@dataclass(frozen=True, eq=False)
class SavedTrees:
    """The trees of some sets, those that are there and those that come, in a checkpoint."""

    units: list[tuple[int, Tree]]  # numbers of sets and their trees, in the order of their coming
    numbers: Sequence[int] = (0,)  # of the sets that are meant here
    checkpoint: Checkpoint | None = None  # None: they are not saved
    name: str = "trees"  # of the series
    encode: Callable[[Sequence[Any]], bytes] = bytes  # as for `Checkpoint.saving`

    def some(self, numbers: Sequence[int]) -> SavedTrees:
        """Those of some of the sets, with the same units."""
        return replace(self, numbers=[self.numbers[number] for number in numbers])

    def trees(self) -> list[list[Tree]]:
        """The trees so far, by set."""
        found: dict[int, list[Tree]] = {number: [] for number in self.numbers}
        for number, tree in self.units:
            if number in found:
                found[number].append(tree)
        return list(found.values())

    def add(self, at: int, trees: Sequence[Tree]) -> None:
        """Add trees of the set at a place; first save those so far, if it is time."""
        if self.checkpoint is not None:
            self.checkpoint.see()
        self.units.extend([(self.numbers[at], tree) for tree in trees])

    def saving(self) -> AbstractContextManager[None]:
        """Save trees that are added in this block."""
        if self.checkpoint is None:
            return nullcontext()
        return self.checkpoint.saving(self.name, self.units, self.encode)
