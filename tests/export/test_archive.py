"""The file around a model: it is read as it was written, from the first byte to the last."""

from __future__ import annotations

import io
import pickle
import struct
import tracemalloc
import warnings
import zipfile
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.exceptions import ModelFileError
from dtrees.export import load, save
from dtrees.export.archive import ALIGNMENT, Archive, Taken, write, write_to
from tests.export.test_hostile_files import refused, small_model
from tests.export.test_models import assert_same, made, noisy, small_file, there_and_back


def raw_zip(members, tail=b"", gap=b""):
    """A zip archive by hand: (name, data, offset of an earlier local header or None)."""
    data, directory = bytearray(), bytearray()
    starts = {}
    for name, inside, shared in members:
        crc = zlib.crc32(inside)
        if shared is None:
            starts[name] = len(data)
            data += struct.pack(
                "<4sHHHHHIIIHH",
                *(b"PK\3\4", 20, 0, 0, 0, 33, crc, len(inside), len(inside), len(name), 0),
            )
            data += name.encode() + inside + gap
        at = starts[name] if shared is None else shared
        directory += struct.pack(
            "<4sHHHHHHIIIHHHHHII",
            *(b"PK\1\2", 20, 20, 0, 0, 0, 33, crc, len(inside), len(inside), len(name)),
            *(0, 0, 0, 0, 0, at),
        )
        directory += name.encode()
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, len(members), len(members), len(directory),
                      len(data), 0)  # fmt: skip
    return bytes(data + directory + end) + tail


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def good_members(folder):
    model, _ = small_model()
    save(model, folder / "good")
    with zipfile.ZipFile(folder / "good") as archive:
        return [(name, archive.read(name), None) for name in archive.namelist()]


def test_an_archive_by_hand_is_read(tmp_path):
    (tmp_path / "file").write_bytes(raw_zip(good_members(tmp_path)))
    assert len(load(tmp_path / "file")) == 2


def overlapping(folder):
    """800 members of a megabyte, of which the headers stand side by side, and the data once."""
    good = raw_zip(good_members(folder))
    end = good.rindex(b"PK\5\6")
    n_good, _, at = struct.unpack("<HII", good[end + 10 : end + 20])
    body, directory = bytearray(good[:at]), bytearray(good[at:end])
    block = npy(np.zeros(2**17))
    names = [f"values/{i:03d}.npy" for i in range(800)]
    each = 30 + len(names[0])
    for i, name in enumerate(names):
        # the headers behind it are its extra field
        facts = (20, 0, 0, 0, 33, zlib.crc32(block), len(block), len(block), len(name))
        extra = (len(names) - 1 - i) * each
        directory += struct.pack("<4sH", b"PK\1\2", 20)
        directory += struct.pack("<HHHHHIIIHHHHHII", *facts, 0, 0, 0, 0, 0, len(body))
        directory += name.encode()
        body += struct.pack("<4sHHHHHIIIHH", b"PK\3\4", *facts, extra) + name.encode()
    whole = bytes(body) + block
    counts = (0, 0, n_good + 800, n_good + 800, len(directory), len(whole), 0)
    return whole + bytes(directory) + struct.pack("<4sHHHHIIH", b"PK\5\6", *counts)


def test_members_that_overlap(tmp_path):
    data = overlapping(tmp_path)
    assert len(data) < 1_400_000
    (tmp_path / "bad").write_bytes(data)
    for mmap in (False, True):
        tracemalloc.start()
        with pytest.raises(ModelFileError, match="is not where it should be"):
            load(tmp_path / "bad", mmap=mmap)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 10_000_000


def test_what_stands_between_members(tmp_path):
    good = good_members(tmp_path)
    whole = raw_zip(good)
    end = whole.rindex(b"PK\5\6")
    at = struct.unpack("<I", whole[end + 16 : end + 20])[0]
    name, inside, _ = good[1]
    cases = {
        "behind the end": whole + b"x",
        "behind the end, a second end": whole + whole[end:],
        "a comment": whole[:-2] + b"\x01\x00x",
        "before the directory": whole[:at] + bytes(76) + whole[at:],
        "between the directory and its end": whole[:end] + bytes(76) + whole[end:],
        "before the first": b"PK\3\4" + whole,
        "behind each": raw_zip(good, gap=b"\0"),
        "the same one twice": raw_zip([*good, (name, inside, 0)]),
        "two names for one": raw_zip([*good, ("values/0.npy", inside, 0)]),
        "not in the order of the directory": raw_zip(good)[:at]
        + b"".join(reversed(list(entries_of(whole[at:end]))))
        + whole[end:],
    }
    for what, data in cases.items():
        (tmp_path / "bad").write_bytes(data)
        with pytest.raises(ModelFileError, match=r"not where|same name|cannot be|damaged"):
            pytest.fail(f"{what}: {load(tmp_path / 'bad')}")


def entries_of(directory):
    """The entries of a zip archive's directory."""
    while directory:
        length = 46 + sum(struct.unpack("<HHH", directory[28:34]))
        yield directory[:length]
        directory = directory[length:]


@pytest.mark.parametrize(
    ("what", "at", "value"),
    [
        ("flags", 6, 8),
        ("flags: encrypted", 6, 1),
        ("method", 8, 8),
        ("checksum", 14, 1),
        ("stored size", 18, 1),
        ("size", 22, 1),
        ("size in an extra field that is not there", 22, 0xFFFFFFFF),
    ],
)
def test_a_member_that_says_otherwise_than_the_directory(what, at, value, tmp_path):
    data = bytearray(raw_zip(good_members(tmp_path)))
    data[at : at + 4] = struct.pack("<I", value) if at > 8 else (
        struct.pack("<H", value) + data[at + 2 : at + 4]
    )  # fmt: skip
    (tmp_path / "bad").write_bytes(data)
    assert "the entry of model.json cannot be" in refused(tmp_path / "bad")


def test_members_that_are_compressed(tmp_path):
    good = good_members(tmp_path)
    with zipfile.ZipFile(tmp_path / "bad", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, inside, _ in good:
            archive.writestr(name, inside)
        archive.writestr("values/0.npy", npy(np.zeros(2**24)))
    assert (tmp_path / "bad").stat().st_size < 200_000
    assert "cannot be" in refused(tmp_path / "bad")


@pytest.mark.parametrize("limit", [None, 300])
def test_data_are_aligned(limit, tmp_path, monkeypatch):
    if limit is not None:  # headers of files of many gigabytes
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", limit)
    X, y = noisy()
    model = made(RandomForestClassifier).fit(X, y)
    save(model, tmp_path / "a", layout="flat")
    for mmap in (False, True):
        archive = Archive(tmp_path / "a", mmap)
        base = archive._data.__array_interface__["data"][0]
        for name, array in archive.arrays().items():
            at = array.__array_interface__["data"][0] - base
            assert array.size == 0 or (0 <= at < len(archive._data) and at % ALIGNMENT == 0), name
            assert not array.flags.writeable
        assert_same(model, load(tmp_path / "a", mmap=mmap))


def test_a_memory_map_is_not_copied(tmp_path):
    X, y = noisy()
    model = made(RandomForestClassifier).fit(X, y)
    again = there_and_back(model, tmp_path, layout="flat", mmap=True)
    for tree in again.forest_.trees:
        for array in tree.arrays().values():
            base = array
            while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
                base = base.base.obj if isinstance(base.base, memoryview) else base.base
            assert array.size == 0 or isinstance(base, np.memmap)
    # a new file under the same name leaves the mapped one alone
    save(made(RandomForestClassifier, max_depth=1).fit(X, y), tmp_path / "model.dtrees")
    assert_same(model, again)


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path):
    path = tmp_path / "model.dtrees"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match=r"not JSON compliant|Out of range"):
        write(path, {"x": float("nan")}, {})
    for place in (tmp_path / "none" / "x", tmp_path / "folder"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        with pytest.raises((FileNotFoundError, IsADirectoryError)) as error:
            save(DecisionTreeClassifier().fit([[1.0]], [1]), place)
        assert error.value.filename == str(place)
        assert "partial" not in str(error.value)
    (tmp_path / "folder").rmdir()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def foreign(folder):
    """Files that are not ours, and what the error says."""
    model = DecisionTreeClassifier().fit([[1.0], [2.0]], [0, 1])
    yield b"", "it is empty"
    yield b"PK", "begins with"
    yield b"PK\x03\x04", "damaged"
    yield pickle.dumps(model), "looks like a pickle"
    yield pickle.dumps(Bomb()), "looks like a pickle"
    yield b"\x93NUMPY" + bytes(100), "begins with"
    yield b"hello, world", "begins with"
    yield np.random.default_rng(0).bytes(5000), "begins with"
    np.savez(folder / "x.npz", a=np.arange(3), b=np.array([Bomb()], dtype=object))
    yield (folder / "x.npz").read_bytes(), r"a zip archive without model.json"
    for text in ("[]", "{}", '{"format": "other"}', '{"format": NaN}', "{", "\xff", "[" * 10**5):
        with zipfile.ZipFile(folder / "x.zip", "w") as archive:
            archive.writestr("model.json", text)
        yield (folder / "x.zip").read_bytes(), "not a model file|not JSON"
    with zipfile.ZipFile(folder / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", "{}")
    yield (folder / "x.zip").read_bytes(), "entry of model.json"
    with warnings.catch_warnings(), zipfile.ZipFile(folder / "x.zip", "w") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("model.json", "{}")
        archive.writestr("model.json", "{}")
    yield (folder / "x.zip").read_bytes(), "same name"


def test_files_that_are_not_ours(tmp_path):
    for data, message in foreign(tmp_path):
        (tmp_path / "file").write_bytes(data)
        for mmap in (False, True):
            with pytest.raises(ModelFileError, match=message):
                load(tmp_path / "file", mmap=mmap)


def test_members_that_are_not_ours(tmp_path):
    small_file(tmp_path, "compact")
    good = (tmp_path / "model").read_bytes()
    np.save(tmp_path / "objects.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(np.ones((3, 2))))
    np.save(tmp_path / "records.npy", np.zeros(3, dtype=[("a", int)]))
    fine = (tmp_path / "fortran.npy").read_bytes()
    members = {
        "values/9.npy": (tmp_path / "objects.npy").read_bytes(),
        "values/8.npy": fine,
        "values/7.npy": (tmp_path / "records.npy").read_bytes(),
        "values/6.npy": b"nothing",
        "values/5.npy": fine[:-1],
        "values/4.npy": b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 70_000,
        "values/3.txt": fine,
        "other/3.npy": fine.replace(b"True", b"False"),
    }
    for name, data in members.items():
        (tmp_path / "bad").write_bytes(good)
        with zipfile.ZipFile(tmp_path / "bad", "a") as archive:
            archive.writestr(name, data)
        with pytest.raises(ModelFileError, match=r"is no array|a member|KeyError"):
            load(tmp_path / "bad")


def test_a_link_stays_one(tmp_path):
    """What it leads to is replaced."""
    model, X = small_file(tmp_path, "compact")
    link = tmp_path / "link"
    try:
        link.symlink_to(tmp_path / "there")
    except OSError:
        pytest.skip("there are no links here")
    for _ in range(2):  # the first time it leads nowhere yet
        save(model, link)
        assert link.is_symlink()
        np.testing.assert_array_equal(load(tmp_path / "there").predict(X), model.predict(X))


@given(
    st.dictionaries(
        st.sampled_from(["a", "b/c", "trees/left", "ä"]),
        st.tuples(
            st.sampled_from(["<i8", ">f4", "|b1", "|u1", "<U3", "<M8[s]"]),
            st.lists(st.integers(0, 5), max_size=3),
        ),
    ),
    st.booleans(),
)
def test_what_is_written_is_read(described, mmap):
    arrays = {name: np.zeros(shape, dtype) for name, (dtype, shape) in described.items()}
    for i, array in enumerate(arrays.values()):
        array[...] = np.ones((), array.dtype) if i % 2 else array
    document = {"names": list(arrays), "n": 1.5}
    file = io.BytesIO()
    write_to(file, document, arrays)
    archive = Archive("there", mmap, file.getvalue())
    assert archive.document == document
    found = archive.arrays()
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()
        assert not found[name].flags.writeable


def test_a_check_that_fails_leaves_the_former_file(tmp_path):
    path = tmp_path / "a"
    write(path, {"n": 1}, {})
    before = path.read_bytes()

    def check(partial):
        assert Archive(partial, False).document == {"n": 2}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write(path, {"n": 2}, {}, check)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


class TakesPart(io.RawIOBase):
    """A raw stream, which takes a few bytes at a time."""

    def __init__(self, answer=None):
        self.taken, self.answer = b"", answer

    def write(self, data):
        if self.answer is not None:
            return self.answer()
        self.taken += data[:100]
        return len(data[:100])


def test_raw_streams_get_the_whole_file():
    stream, whole = TakesPart(), io.BytesIO()
    for each in (stream, whole):
        write(each, {}, {"a": np.arange(999)})
    assert stream.taken == whole.getvalue()
    for answer in (lambda: 0, lambda: None):
        with pytest.raises(OSError, match="takes no more bytes"):
            write(TakesPart(answer), {}, {})


def test_arrays_that_nobody_asks_for_are_left():
    taken = Taken({"a": np.ones(1), "b": np.ones(2)})
    assert (len(taken), list(taken)) == (2, ["a", "b"])
    assert taken["a"].tolist() == [1.0]
    assert taken.left() == {"b"}
