"""The file around a model: a zip archive of one JSON document and many arrays.

Members are stored, not compressed, and their data start at multiples of `ALIGNMENT`: a memory map
of the file is a memory map of every array. The gap is an extra field of the member's header, which
every reader of zip archives skips.

`Archive` trusts nothing. It wants the file to be what is written, from the first byte to the last:
members in the order of the directory, one right behind the other, then the directory and its end::

    | header, gap, data | header, gap, data | ... | directory | end |

So no two members share a byte, nothing stands between them, and all of them together are no larger
than the file. Each is as the directory says, in its own header too, whole, of a type that is
written, and with the checksum that was written. Files are written under another name first and then
renamed, so a file is there whole or not at all, and one that is mapped somewhere is not written to.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import struct
import zipfile
import zlib
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.lib import format as npy

import dtrees
from dtrees.exceptions import ModelFileError
from dtrees.export.values import check_bytes, is_storable

DOCUMENT = "model.json"
ALIGNMENT = 64

# signature, flags, method, checksum, sizes stored and in full, lengths of name and extra field
_LOCAL_HEADER = struct.Struct("<4s2xHH4xIIIHH")
_LOCAL_SIGNATURE = b"PK\x03\x04"
_DIRECTORY_ENTRY = 46  # bytes, without name, extra field and comment
_END = 22  # bytes of the end of a directory
_ZIP64_END = 76  # more, of a file of many members or gigabytes
_ZIP64 = 1  # id of the extra field of sizes that 32 bits do not hold
_ZIP64_EXTRA = 20
_ELSEWHERE = 0xFFFFFFFF  # such a size
_PADDING = 0xD935  # id of an extra field that pads, as Android's zipalign writes it
_UTF8_NAME = 0x800
_LONGEST_HEADER = 2_000  # of an .npy member
LONGEST_REASON = 400  # letters of what a message says of a file, which may hold anything


class Readable(Protocol):
    """A stream of bytes to read, such as an open file."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes; without a size, all that are left."""


class Writable(Protocol):
    """A stream of bytes to write to, such as an open file."""

    def write(self, data: bytes, /) -> int | None:
        """Write bytes, and say how many."""


def write_file(
    path: str | os.PathLike | Writable,
    put: Callable[[BinaryIO], object],
    check: Callable[[Path | BinaryIO], object] | None = None,
) -> None:
    """Write a file, or replace the one that is there; where a link leads, if it is one.

    Parameters
    ----------
    path : str, path or stream
        Of a stream, nothing is asked but that it can be written to.
    put : callable (file) -> object
        Writes to a file that is open, and empty.
    check : callable (path or file) -> object, default=None
        Is given the new file before it takes its place; what it raises leaves everything as it was.

    Raises
    ------
    OSError
        The file cannot be written.
    """
    if not isinstance(path, str | os.PathLike):
        memory = io.BytesIO()
        put(memory)
        memory.seek(0)
        if check is not None:
            check(memory)
            memory.seek(0)
        while chunk := memory.read(2**20):
            written = path.write(chunk)
            if written is None and not isinstance(path, io.RawIOBase):
                continue
            if not written:
                raise OSError("The file object takes no more bytes.")
            memory.seek(written - len(chunk), os.SEEK_CUR)  # a raw one may take a part
        return
    path = Path(os.path.realpath(path))
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        with open(partial, "xb") as file:
            put(file)
        if check is not None:
            check(partial)
        os.replace(partial, path)
    except OSError as error:  # which names the other file
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write(
    path: str | os.PathLike | Writable,
    document: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    check: Callable[[Path | BinaryIO], object] | None = None,
) -> None:
    """Write a file of a document, which is JSON, and of arrays by the names of their members."""
    write_file(path, lambda file: write_to(file, document, arrays), check)


def write_to(file: BinaryIO, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Write what is to be in a file to one that is open, and empty."""
    with zipfile.ZipFile(file, "w") as archive:
        text = json.dumps(document, allow_nan=False, separators=(",", ":"))
        _add(archive, file, DOCUMENT, text.encode("ascii"), b"")
        for name, array in arrays.items():
            array = np.asarray(array, order="C")
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
                why = "it is empty" if data is None else "it is empty, or read to its end"
                if start[:1] == b"\x80":
                    why = "it looks like a pickle, and pickles are never read"
                elif start:
                    why = f"it begins with {start!r}"
                raise self._foreign(why)
            try:
                with zipfile.ZipFile(file) as archive:
                    members = archive.infolist()
                    directory, comment = archive.start_dir, archive.comment
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
        self._begin = self._lay_out(members, directory)
        if comment:
            raise self.damaged("there is a comment")
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

    def expect_format(self, kind: str, version: int) -> None:
        """Raise ModelFileError unless the document is of a format, in a version up to this one."""
        document = self.document
        if not isinstance(document, dict) or document.get("format") != kind:
            raise self._foreign(f"its format is not {kind!r}")
        found, writer = document.get("version"), str(document.get("written_by", "?"))[:40]
        if type(found) is not int or found < 1:
            raise self.damaged(f"its version is {found!r}")
        if found > version:
            raise ModelFileError(
                f"The model file {self._path!r} has version {found} of the format, written by "
                f"dtrees {writer}; this is dtrees {dtrees.__version__}, which reads versions up to "
                f"{version}. Install a newer dtrees."
            )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What goes wrong meanwhile is damage of the file, which may hold anything."""
        try:
            yield
        except ModelFileError:
            raise
        except ImportError as error:
            raise ModelFileError(f"To load {self._path!r}, install {error.name}.") from error
        except Exception as error:
            # the cause is shown in full, and a long one repeats the file
            cause = error if len(str(error)) <= LONGEST_REASON else None
            raise self.damaged(f"{type(error).__name__}: {error}") from cause

    def damaged(self, why: str) -> ModelFileError:
        """The error for a file that was ours."""
        if len(why) > LONGEST_REASON:
            why = f"{why[:LONGEST_REASON]}..."
        return ModelFileError(f"The model file {self._path!r} is damaged: {why}.")

    def _foreign(self, why: str) -> ModelFileError:
        return ModelFileError(f"{self._path!r} is not a model file of dtrees: {why}.")

    def _lay_out(self, members: list[zipfile.ZipInfo], directory: int) -> dict[str, int]:
        """Where the data of every member begin, if members and directory are all of the file."""
        begin, at = {}, 0
        for member in members:
            name = member.filename
            if member.header_offset != at:
                raise self.damaged(f"{name} is not where it should be")
            begin[name] = self._begin_of(member)
            at = begin[name] + member.file_size
        length = sum(
            _DIRECTORY_ENTRY + len(member.filename.encode()) + len(member.extra)
            for member in members
        )
        rest = len(self._data) - at - length
        if at != directory or rest not in (_END, _END + _ZIP64_END):
            raise self.damaged("there is something between its members, or behind them")
        return begin

    def _begin_of(self, member: zipfile.ZipInfo) -> int:
        """Where the data of a member begin, if its own header says what the directory says."""
        name, at = member.filename, member.header_offset
        begin = at + _LOCAL_HEADER.size
        if begin > len(self._data):
            raise self.damaged(f"{name} is not where it should be")
        signature, flags, method, crc, stored, full, name_length, extra_length = (
            _LOCAL_HEADER.unpack(bytes(self._data[at:begin]))
        )
        written = bytes(self._data[begin : begin + name_length])
        extra = bytes(self._data[begin + name_length : begin + name_length + extra_length])
        if stored == full == _ELSEWHERE:
            full, stored = _zip64_sizes(extra)
        if (
            member.compress_type != zipfile.ZIP_STORED
            or member.flag_bits & ~_UTF8_NAME
            or member.compress_size != member.file_size
            or member.comment
            or (flags, method, crc) != (member.flag_bits, member.compress_type, member.CRC)
            or (stored, full) != (member.compress_size, member.file_size)
        ):
            raise self.damaged(f"the entry of {name} cannot be")
        begin += name_length + extra_length
        end = begin + member.file_size
        if signature != _LOCAL_SIGNATURE or written != name.encode() or end > len(self._data):
            raise self.damaged(f"{name} is not where it should be")
        return begin

    def _stretch(self, name: str) -> np.ndarray:
        """The bytes of a member, checked."""
        member, begin = self._members[name], self._begin[name]
        stretch = self._data[begin : begin + member.file_size]
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
            if min(shape, default=0) < 0:
                raise ValueError("its shape is not said")
            array = np.frombuffer(stretch[head.tell() :], dtype=dtype).reshape(shape)
            check_bytes(array)
        except Exception as error:  # what numpy's parser makes of a header
            raise self.damaged(f"{name} is no array: {error}") from error
        if not array.flags.aligned:
            array = array.copy()
            array.flags.writeable = False
        return array


def _zip64_sizes(extra: bytes) -> tuple[int, int]:
    """Sizes in full and stored, of a local header's extra field; -1 where it holds none."""
    while len(extra) >= 4:
        kind, length = struct.unpack("<HH", extra[:4])
        if kind == _ZIP64 and length == _ZIP64_EXTRA - 4 and len(extra) >= _ZIP64_EXTRA:
            full, stored = struct.unpack("<QQ", extra[4:_ZIP64_EXTRA])
            return full, stored
        extra = extra[4 + length :]
    return -1, -1


class Taken(UserDict[str, np.ndarray]):
    """Arrays by name, which remembers what it was asked for: what nobody knows is in no file."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        super().__init__(arrays)
        self._names: set[str] = set()

    def __getitem__(self, name: str) -> np.ndarray:
        array = self.data[name]
        self._names.add(name)
        return array

    def left(self) -> set[str]:
        """Names that nobody has asked for."""
        return self.data.keys() - self._names


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")
