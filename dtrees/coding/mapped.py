"""Arrays in files of their own, which are mapped: codes that are more than memory.

A file has no name, so it is gone with the process, whatever ends it. The operating system keeps the
pages of a file in memory as long as there is room. They count as memory of the process while they
are mapped, and Dask ends a worker that seems to have too much. So who reads an array lets go of it.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from math import prod
from typing import Any, Literal

import numpy as np

from dtrees.exceptions import ClusterError

# of file systems that cannot set room aside
UNABLE = errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS


def empty_on_disk(
    shape: int | tuple[int, ...],
    dtype: Any = np.float64,
    order: Literal["C", "F"] = "C",
    *,
    folder: str | None = None,
    owner: str = "This process",
) -> np.ndarray:
    """An array in a file of this folder, as `numpy.empty`; one without elements is in memory.

    Raises ClusterError where there is no room on the disk: it names the `owner`, a worker.
    """
    n_bytes = prod(shape if isinstance(shape, tuple) else (shape,)) * np.dtype(dtype).itemsize
    if n_bytes == 0:
        return np.empty(shape, dtype, order)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            _set_aside(file.fileno(), n_bytes)
            return np.memmap(file, dtype, "w+", shape=shape, order=order)
    except OSError as error:
        raise ClusterError(
            f"{owner} has more rows than its memory has room for, and cannot have {n_bytes:,} bytes"
            f" of them in a file of {folder or tempfile.gettempdir()}: {error}."
        ) from error


def _set_aside(file: int, n_bytes: int) -> None:
    """Give a file its room on the disk, if its system can: who writes to a full one is killed."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file, 0, n_bytes)
    except OSError as error:
        if error.errno not in UNABLE:
            raise


def is_mapped(array: Any) -> bool:
    """Whether an array, or what it is a view of, is in a file."""
    return getattr(array, "_mmap", None) is not None  # copies are memmaps, too, and have None


def let_go(array: np.ndarray | None) -> None:
    """Let the pages of an array count no more as memory of the process, if it is in a file."""
    if is_mapped(array) and hasattr(mmap, "MADV_DONTNEED"):
        array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[union-attr]
