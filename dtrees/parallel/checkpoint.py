"""Checkpoints: the complete trees of a long fit, in a folder that outlives the fit.

A folder anywhere that fsspec reaches (a path, ``s3://...``, ``gs://...``, ``memory://...``)::

    checkpoint.json                     what the trees are of: parameters, seed, digests of X and y
    trees-000000000-000000012.dtrees    trees 0 to 11
    trees-000000012-000000057.dtrees    trees 12 to 56

A file is written under another name and then renamed, so that it is there whole or not at all. The
next one is written when a twentieth of the time of the fit has passed (`SHARE`). It waits at least
ten seconds, or what ``dask.config`` says under "dtrees.checkpoint-every". The last one is written
at the end of the fit, whatever that is. So a client that is killed loses a twentieth of its work,
and there are few files.

Trees are those from number 0 on, without gaps; where a file is missing, those behind it are grown
again. What the bytes of a file are is the business of whoever gives `encode` and `decode`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar
from uuid import uuid4

from dtrees.exceptions import ModelFileError
from dtrees.parallel.client import seconds_of

T = TypeVar("T")

FORMAT = "dtrees checkpoint"
VERSION = 1
FACTS = "checkpoint.json"
SHARE = 0.05  # of the time of the fit, that may be lost
STRETCH = re.compile(r"trees-(\d{9})-(\d{9})\.dtrees")

logger = logging.getLogger(__name__)


class Checkpoint(Generic[T]):
    """Trees of a fit in a folder.

    Parameters
    ----------
    path : str or path
        Of the folder, which is made when there is none; anything that `fsspec` knows.
    encode : callable (sequence of T) -> bytes

    Attributes
    ----------
    facts : dict or None
        What the trees that are there are of; None: nothing is there.

    Raises
    ------
    ModelFileError
        The folder holds a checkpoint that cannot be read, or of a newer version.
    TypeError
        `path` is no path.
    ValueError
        `path` is a folder of other files.
    OSError, ValueError, ImportError
        As `fsspec` has them: no such protocol, no access.
    """

    def __init__(self, path: Any, encode: Callable[[Sequence[T]], bytes]) -> None:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"checkpoint must be a path or a URL: got {path!r}.")
        from fsspec.core import url_to_fs

        self.path = os.fspath(path)
        self._fs, self._root = url_to_fs(self.path)
        self._encode = encode
        self._began = self._saved_at = time.monotonic()
        self._n_saved = 0
        self.facts = self._read_facts()

    def begin(self, facts: Mapping[str, Any]) -> None:
        """Write what the trees are of, where nothing is there."""
        if self.facts is None:
            self._fs.makedirs(self._root, exist_ok=True)
            document = {"format": FORMAT, "version": VERSION, "facts": dict(facts)}
            self._write(FACTS, json.dumps(document, indent=1).encode())
            self.facts = dict(facts)

    def trees(self, decode: Callable[[bytes, str], Sequence[T]]) -> list[T]:
        """The trees that are there, from number 0 on.

        `decode` gets the bytes of a file and its name, for messages. Raises ModelFileError where a
        file is damaged.
        """
        found: list[T] = []
        names = self._names() if self._fs.exists(self._root) else []
        matches = [match for match in map(STRETCH.fullmatch, names) if match]
        for first, last, name in sorted((int(one[1]), int(one[2]), one[0]) for one in matches):
            if first <= len(found) < last:
                path = f"{self._root}/{name}"
                trees = decode(self._fs.cat_file(path), path)
                if len(trees) != last - first:
                    raise ModelFileError(f"{path!r} does not hold {last - first} trees.")
                found += trees[len(found) - first :]
        self._n_saved = len(found)
        return found

    def see(self, trees: Sequence[T]) -> None:
        """Save trees, all from number 0 on, if it is time."""
        now = time.monotonic()
        least = seconds_of("dtrees.checkpoint-every")
        if now >= self._saved_at + max(least, SHARE * (now - self._began)):
            self.save(trees)

    def save(self, trees: Sequence[T]) -> None:
        """Save the trees that are not there yet; raises OSError where they cannot be written."""
        first, last = self._n_saved, len(trees)
        if last > first:
            self._write(f"trees-{first:09d}-{last:09d}.dtrees", self._encode(trees[first:]))
            self._n_saved = last
            logger.info("trees %d to %d are saved in %s", first, last - 1, self.path)
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
