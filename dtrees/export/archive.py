"""The file around a model: a zip archive of one JSON document and many arrays.

Members are stored, not compressed, and their data start at multiples of `ALIGNMENT`: a memory map
of the file is a memory map of every array. The gap is an extra field of the member's header, which
every reader of zip archives skips.

`Archive` trusts nothing: it looks members up in the directory of the zip archive, wants each where
the directory says, whole, of a type that is written, and with the checksum that was written. Files
are written under another name first and then renamed, so a file is there whole or not at all, and
one that is mapped somewhere is not written to.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from dtrees.exceptions import ModelFileError
from dtrees.export.values import is_storable

DOCUMENT = "model.json"
ALIGNMENT = 64

_LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, lengths of the name and the extra field
_LOCAL_SIGNATURE = b"PK\x03\x04"
_ZIP64_EXTRA = 20
_PADDING = 0xD935  # id of an extra field that pads, as Android's zipalign writes it
_UTF8_NAME = 0x800
_LONGEST_HEADER = 2_000  # of an .npy member


def write(
    path: str | os.PathLike, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> None:
    """Write a file, or replace the one that is there.

    Parameters
    ----------
    path : str or path
    document : JSON
    arrays : mapping of str to array
        By the names of their members, without ``.npy``.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        with open(partial, "xb") as file:
            write_to(file, document, arrays)
        os.replace(partial, path)
    except OSError as error:  # which names the other file
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_to(file: BinaryIO, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write what is to be in a file to one that is open, and empty."""
    with zipfile.ZipFile(file, "w") as archive:
        text = json.dumps(document, allow_nan=False, separators=(",", ":"))
        _add(archive, file, DOCUMENT, text.encode("ascii"), b"")
        for name, array in arrays.items():
            array = np.ascontiguousarray(array)
            header = io.BytesIO()
            npy.write_array_header_1_0(header, npy.header_data_from_array_1_0(array))
            data = array.reshape(-1).view(np.uint8).data if array.size else b""
            _add(archive, file, f"{name}.npy", header.getvalue(), data)


def _add(archive: zipfile.ZipFile, file: BinaryIO, name: str, head: bytes, data: Any) -> None:
    """A member whose data, head and all, start at a multiple of `ALIGNMENT`."""
    member = zipfile.ZipInfo(name)
    member.file_size = len(head) + len(data)
    start = file.tell() + _LOCAL_HEADER.size + len(name)
    if member.file_size * 1.05 > zipfile.ZIP64_LIMIT:  # zipfile's own rule
        start += _ZIP64_EXTRA
    gap = -start % ALIGNMENT
    if 0 < gap < 4:
        gap += ALIGNMENT
    if gap:
        member.extra = struct.pack("<HH", _PADDING, gap - 4) + bytes(gap - 4)
    with archive.open(member, "w") as stream:
        stream.write(head)
        stream.write(data)


class Archive:
    """A file that is open for reading.

    Parameters
    ----------
    path : str or path
    mmap : bool
        Map the file instead of reading it.
    data : bytes or None, default=None
        What is in the file, where that is here already; `path` is then its name in messages.

    Attributes
    ----------
    document : JSON

    Raises
    ------
    ModelFileError
        The file is no such archive, or damaged. (OSError where it cannot be read.)
    """

    def __init__(self, path: str | os.PathLike, mmap: bool, data: bytes | None = None) -> None:
        self._path = os.fspath(path)
        with open(path, "rb") if data is None else io.BytesIO(data) as file:
            start = file.read(4)
            if start != _LOCAL_SIGNATURE:
                raise self._foreign("it is empty" if not start else _guess(start))
            try:
                with zipfile.ZipFile(file) as archive:
                    members = archive.infolist()
            except Exception as error:  # whatever a damaged directory makes of zipfile
                raise self.damaged(f"{error}") from error
            file.seek(0)
            if data is not None:
                self._data: np.ndarray = np.frombuffer(data, dtype=np.uint8)
            elif mmap:
                self._data = np.memmap(file, dtype=np.uint8, mode="r")
            else:
                self._data = np.fromfile(file, dtype=np.uint8)
                self._data.flags.writeable = False
        self._members = {member.filename: member for member in members}
        if len(self._members) != len(members):
            raise self.damaged("two members have the same name")
        if DOCUMENT not in self._members:
            raise self._foreign(f"it is a zip archive without {DOCUMENT}")
        try:
            text = bytes(self._stretch(DOCUMENT)).decode("ascii")
            self.document = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            if isinstance(error, ModelFileError):
                raise
            raise self.damaged(f"{DOCUMENT} is not JSON: {error}") from error

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays by name, read-only: views of the file's bytes."""
        found = {}
        for name in self._members:
            if name != DOCUMENT:
                if not name.endswith(".npy"):
                    raise self.damaged(f"there is a member {name!r}")
                found[name.removesuffix(".npy")] = self._array(name)
        return found

    def damaged(self, why: str) -> ModelFileError:
        """The error for a file that was ours."""
        return ModelFileError(f"The model file {self._path!r} is damaged: {why}.")

    def _foreign(self, why: str) -> ModelFileError:
        return ModelFileError(f"{self._path!r} is not a model file of dtrees: {why}.")

    def _stretch(self, name: str) -> np.ndarray:
        """The bytes of a member, checked."""
        member = self._members[name]
        size, at = len(self._data), member.header_offset
        if (
            member.compress_type != zipfile.ZIP_STORED
            or member.compress_size != member.file_size
            or member.flag_bits & ~_UTF8_NAME
            or not 0 <= at <= size - _LOCAL_HEADER.size
        ):
            raise self.damaged(f"the entry of {name} cannot be")
        header = bytes(self._data[at : at + _LOCAL_HEADER.size])
        signature, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        begin = at + _LOCAL_HEADER.size
        written = bytes(self._data[begin : begin + name_length])
        begin += name_length + extra_length
        end = begin + member.file_size
        if signature != _LOCAL_SIGNATURE or written != name.encode() or end > size:
            raise self.damaged(f"{name} is not where it should be")
        stretch = self._data[begin:end]
        if zlib.crc32(stretch.data) != member.CRC:
            raise self.damaged(f"the checksum of {name} is wrong")
        return stretch

    def _array(self, name: str) -> np.ndarray:
        stretch = self._stretch(name)
        head = io.BytesIO(bytes(stretch[:_LONGEST_HEADER]))
        try:
            if npy.read_magic(head) != (1, 0):
                raise ValueError("it is of another version of .npy")
            shape, is_fortran, dtype = npy.read_array_header_1_0(head, _LONGEST_HEADER)
            if is_fortran or not is_storable(dtype):
                raise ValueError(f"arrays of {dtype} are not stored")
            array = np.frombuffer(stretch[head.tell() :], dtype=dtype).reshape(shape)
        except Exception as error:  # what numpy's parser makes of a header
            raise self.damaged(f"{name} is no array: {error}") from error
        if not array.flags.aligned:
            array = array.copy()
            array.flags.writeable = False
        return array


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _guess(start: bytes) -> str:
    """What the first bytes of a file say."""
    if start[:1] == b"\x80":
        return "it looks like a pickle, and pickles are never read"
    return f"it begins with {start!r}"
