"""Files that were made to hurt: they are refused at once, and never cost more than they weigh."""

from __future__ import annotations

import io
import json
import struct
import traceback
import tracemalloc
import zipfile
import zlib
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dtrees import RandomForestClassifier
from dtrees.core.model import packing
from dtrees.core.model.flat import DTYPES
from dtrees.exceptions import ModelFileError
from dtrees.export import load, models, save
from dtrees.export.values import MOST_BITS, Encoder, decode
from tests.export.test_models import rewritten
from tests.fuzz.children import Ending, in_child


def small_model(**parameters):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=60), "c": rng.choice(list("abc"), 60)})
    X["c"] = X["c"].astype("category")
    y = (rng.random(60) < 0.3) ^ (X["c"] == "a").to_numpy()
    return RandomForestClassifier(2, random_state=0, **parameters).fit(X, y), X


SEED = small_model()[0]._fit_seed


def small_model_file(folder, layout):
    save(small_model()[0], folder / "model", layout=layout)


def changed(folder, change, layout="compact"):
    return rewritten(folder, change, layout, small_model_file)


def attempt(path):
    try:
        load(path)
    except ModelFileError:
        yield "refused"


def refused(path, match=None):
    """What `load` says, once a process with limits of time and memory has survived it."""
    assert in_child(attempt, path, seconds=20, megabytes=600) == Ending(["refused"], "")
    with pytest.raises(ModelFileError, match=match) as error:
        load(path)
    return str(error.value)


# ---------------------------------------------------------------------------------------------
# values

HUGE = {
    "a fraction of strings": {"fraction": ["1e999999999"]},
    "a fraction of a string and a number": {"fraction": ["1e99", 3]},
    "a fraction of floats": {"fraction": [0.5, 1]},
    "a fraction of fractions": {"fraction": [{"fraction": [1, 2]}, 3]},
    "a fraction by nothing": {"fraction": [1, 0]},
    "a fraction by a negative number": {"fraction": [1, -2]},
    "a fraction of a large number": {"fraction": [10**2000, 1]},
    "a decimal of a large power": {"decimal": "1e999999"},
    "a decimal of a small power": {"decimal": "1e-999999"},
    "a decimal of many digits": {"decimal": "1" * 5000},
    "a decimal that is a number": {"decimal": 1.5},
    "a large integer": 10**2000,
    "an infinite float": float("1e308"),  # written as 1e999 below
    "a time span of strings": {"timedelta": ["1", 0, 0]},
    "a time span of many parts": {"timedelta": [0, 0, 0, 0, 0, 0, 10**9]},
    "a shape that is not said": {"array": ["<i8", [-1], "00" * 16]},
    "a shape of floats": {"array": ["<i8", [2.0], "00" * 16]},
    "objects of a shape that is not said": {"objects": [[-1], [1, 2]]},
    "a boolean of 7": {"array": ["|b1", [1], "07"]},
    "a boolean scalar of 7": {"scalar": ["|b1", "07"]},
    "a letter that is none": {"array": ["<U1", [1], "ffffffff"]},
    "a letter that is none, in the other order": {"array": [">U1", [1], "00110000"]},
    "a type with a comma": {"array": ["i4,", [1], "00000000"]},
    "keys that are equal": {"dict": [[0, 1], [0, 2]]},
    "a pair of three": {"dict": [[0, 1, 2]]},
    "a zone that is a path": {"datetime": ["2024-01-01T00:00:00", 0, "../../etc/passwd"]},
    "a zone of a long name": {"datetime": ["2024-01-01T00:00:00", 0, "x" * 5000]},
    "a zone that is a list": {"datetime": ["2024-01-01T00:00:00", 0, [1]]},
    "a stamp of a string": {"Timestamp": ["2024", "ns", None]},
    "a stamp of years": {"Timestamp": [1, "Y", None]},
    "a span of a string": {"Timedelta": ["NaT", "ns"]},
    "an interval of lists": {"Interval": [[1], [2], "left"]},
    "an interval that is closed somewhere": {"Interval": [1, 2, "up"]},
    "a period of a long frequency": {"Period": [1, "9" * 100_000 + "D"]},
    "a type of many fields": {"array": ["f8," * 400_000, [1], "00"]},
    "a scalar of many fields": {"scalar": ["f8," * 400_000, "00"]},
    "a type without an order": {"array": ["f8", [1], "00" * 8]},
    "a type by its name": {"array": ["float64", [1], "00" * 8]},
    "a time of no unit that there is": {"array": ["<M8[parsec]", [1], "00" * 8]},
    "a type of a long unit": {"array": ["<M8[" + "9" * 100_000 + "s]", [1], "00" * 8]},
    "a type of a long width": {"array": ["<U" + "9" * 100_000, [1], "00" * 8]},
    "a date that is long": {"date": "2" * 100_000},
    "a kind of a long name": {"x" * 100_000: []},
    "a shape of many parts": {"array": ["<i8", [1] * 100_000, "00" * 16]},
}


@pytest.mark.parametrize("name", HUGE)
def test_values_that_no_file_of_ours_holds(name, tmp_path):
    def change(document, arrays):
        document["parameters"]["class_weight"] = {"dict": [["k", HUGE[name]]]}

    path = changed(tmp_path, change)
    if name == "an infinite float":
        data = path.read_bytes()
        path.write_bytes(with_document(data, document_of(data).replace(b"1e+308", b"1e+999")))
    assert "is damaged" in refused(path)


@pytest.mark.parametrize("name", [name for name in HUGE if name != "an infinite float"])
def test_errors_do_not_repeat_the_file(name, tmp_path):
    def change(document, arrays):
        document["parameters"]["class_weight"] = {"dict": [["k", HUGE[name]]]}

    path = changed(tmp_path, change)
    with pytest.raises(ModelFileError) as error:
        load(path)
    shown = "".join(traceback.TracebackException.from_exception(error.value).format())
    said = [line for line in shown.splitlines() if "Error: " in line]
    assert max(map(len, said)) < 1000


LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(version=LONG),
        lambda document: document.update(estimator=LONG),
        lambda document: document.update(written_by=LONG, version=99),
        lambda document: document["parameters"].update({LONG: 1}),
        lambda document: document["parameters"].update(criterion=LONG),
        lambda document: document["parameters"].update(n_jobs=[1] * 1_000_000),
        lambda document: document["attributes"].update(max_features_=LONG),
        lambda document: document["attributes"].update(_fit_seed=[1] * 1_000_000),
        lambda document: document["attributes"].update(_fit_bags=LONG),
        lambda document: document["codebook"].update(handle_unknown=LONG),
        lambda document: document["trees"].update(layout=LONG),
        lambda document: document["trees"].update(criterion=LONG),
    ],
)
def test_errors_do_not_repeat_long_names(change, tmp_path):
    path = changed(tmp_path, lambda document, arrays: change(document))
    with pytest.raises(ModelFileError) as error:
        load(path)
    shown = "".join(traceback.TracebackException.from_exception(error.value).format())
    assert len(shown) < 20_000


@pytest.mark.parametrize(
    "dtype",
    ["?", "i1", "u8", "f2", "f4", "f8", "c8", "c16", "S3", "U3", "U1000", "m8", "M8", "m8[25s]",
     "M8[ns]", "M8[500ms]", "M8[as]", "M8[Y]", "m8[m]"],
)  # fmt: skip
@pytest.mark.parametrize("order", "<>")
def test_types_that_a_file_holds(dtype, order):
    array = np.zeros(0 if dtype == "U1000" else 3, dtype=np.dtype(dtype).newbyteorder(order))
    encoder = Encoder()
    found = decode(json.loads(json.dumps(encoder.encode(array, "x"))), encoder.arrays)
    assert found.dtype.str == array.dtype.str
    assert found.tobytes() == array.tobytes()


def document_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read("model.json")


def with_document(data, text):
    """The same file with another document, and its checksum."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, inside in members:
            archive.writestr(zipfile.ZipInfo(name), text if name == "model.json" else inside)
    return made.getvalue()


@pytest.mark.parametrize(
    "value",
    [
        2**MOST_BITS - 1,
        -(2**MOST_BITS) + 1,
        Fraction(-(3**2000), 2**2000),
        Decimal("1.5e6000"),
        Decimal("NaN"),
        Decimal("-Infinity"),
        Decimal("0e-6000"),
        ("a", (1, b"\0")),
        {1: {"a": [None]}},
    ],
)
def test_large_values_that_a_file_holds(value):
    encoder = Encoder()
    found = decode(json.loads(json.dumps(encoder.encode(value, "x"))), {})
    assert type(found) is type(value)
    assert str(found) == str(value)


@pytest.mark.parametrize(
    "value",
    [2**MOST_BITS, Fraction(1, 3**4000), Decimal("1e7000"), Decimal("1" * 2000)],
    ids=["int", "fraction", "power", "digits"],
)
def test_what_load_would_refuse_is_not_written(value):
    with pytest.raises(TypeError, match=r"x holds a number .* integers of at most"):
        Encoder().encode(value, "x")


# ---------------------------------------------------------------------------------------------
# parameters and attributes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_jobs", {"decimal": "1e6"}),
        ("n_jobs", 1.5),
        ("n_jobs", "2"),
        ("max_depth", 0),
        ("max_depth", {"fraction": [1, 3]}),
        ("n_estimators", 0),
        ("n_estimators", {"float": "inf"}),
        ("min_samples_leaf", {"float": "nan"}),
        ("ccp_alpha", -1.0),
        ("criterion", "squared_error"),
        ("random_state", 2**40),
        ("handle_unknown", None),
        ("bootstrap", 1),
        ("regime", "elsewhere"),
        ("class_weight", [1, 2]),
    ],
)
def test_parameters_are_checked(name, value, tmp_path):
    def change(document, arrays):
        document["parameters"][name] = value

    assert f"{name!r} parameter of RandomForestClassifier must be" in refused(
        changed(tmp_path, change)
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_features_", "many"),
        ("max_features_", 10**9),
        ("n_outputs_", 2),
        ("n_features_in_", 2.0),
        ("n_classes_", True),
        ("classes_", {"array": ["|b1", [2, 1], "0001"]}),
        ("classes_", {"objects": [[2], [[], []]]}),
        ("classes_", {"objects": [[2], ["a", "a"]]}),
        ("_fit_seed", -1),
        ("_fit_seed", {"decimal": "7"}),
        ("_fit_bags", 3),
        ("_fit_bags", "x"),
        ("_fit_bags", ""),
        ("_fit_bags", f"0 0x1.0000000000000p+0 60 {'0' * 32}"),  # the bags of another seed
        ("_fit_bags", f"{SEED} 0x1.0000000000000p+1 60 {'0' * 32}"),  # two rows for each
        ("_fit_bags", f"{SEED} 0x0.0000000000000p+0 60 {'0' * 32}"),
        ("_fit_bags", f"{SEED} 0x1.0000000000000p+9999 60 {'0' * 32}"),
        ("_fit_bags", f"{SEED} 1.0 60 {'0' * 32}"),
        ("_fit_bags", f"{SEED} 0x1.0000000000000p+0 0 {'0' * 32}"),
        ("_fit_bags", f"{SEED} 0x1.0000000000000p+0 60 {'0' * 31}"),
        ("_fit_facts", [1]),
        ("oob_score_", "good"),
        ("oob_scores_", {"array": ["<f8", [3], "00" * 24]}),
        ("oob_decision_function_", {"array": ["<f8", [1, 3], "00" * 24]}),
        ("oob_decision_function_", {"array": ["<i8", [1, 2], "00" * 16]}),
    ],
)
def test_attributes_are_checked(name, value, tmp_path):
    def change(document, arrays):
        document["attributes"][name] = value

    assert name in refused(changed(tmp_path, change))


@pytest.mark.parametrize("name", ["n_outputs_", "max_features_", "_fit_seed", "n_classes_"])
def test_attributes_that_are_missing(name, tmp_path):
    assert name in refused(
        changed(tmp_path, lambda document, arrays: document["attributes"].pop(name))
    )


def test_attributes_that_nobody_knows(tmp_path):
    def change(document, arrays):
        document["attributes"]["note_"] = "a"

    assert "has the attribute 'note_'" in refused(changed(tmp_path, change))


def test_what_users_add_is_not_saved(tmp_path):
    model, _ = small_model()
    model.note_ = "mine"
    save(model, tmp_path / "model")
    assert not hasattr(load(tmp_path / "model"), "note_")


def test_save_refuses_what_load_would(tmp_path):
    model, _ = small_model()
    model.set_params(max_depth=-1)
    with pytest.raises(
        ValueError, match=r"'max_depth' parameter of RandomForestClassifier must be"
    ):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_every_attribute_of_every_fit_is_saved(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 2
    X = pd.DataFrame(X, columns=list("abc"))
    for name in models.ESTIMATORS:
        kind = getattr(models.dtrees, name)
        forest = {} if name.startswith("Decision") else {"n_estimators": 30, "oob_tol": 0.0}
        if name.startswith("Extra"):
            forest["bootstrap"] = True
        model = kind(random_state=0, **forest).fit(X, y)
        save(model, tmp_path / "model")
        left_out = {"_fit_report"}
        assert vars(load(tmp_path / "model")).keys() == vars(model).keys() - left_out


@pytest.mark.parametrize("seed", ["1e999", "-1", '"7"', "null", "9" * 4000, "true"])
def test_a_checkpoint_of_a_seed_that_is_none(seed, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    RandomForestClassifier(2).fit(X, y, checkpoint=tmp_path / "fit")
    path = tmp_path / "fit" / "checkpoint.json"
    document = json.loads(path.read_text())
    document["facts"]["seed"] = "SEED"
    path.write_text(json.dumps(document).replace('"SEED"', seed))
    with pytest.raises(ModelFileError, match="is damaged: its seed is"):
        RandomForestClassifier(2).fit(X, y, checkpoint=tmp_path / "fit")


# ---------------------------------------------------------------------------------------------
# arrays


@pytest.mark.parametrize("name", DTYPES)
def test_flat_arrays_of_another_type(name, tmp_path):
    def change(document, arrays):
        array = arrays[f"trees/{name}"]
        other = np.float32 if array.dtype == np.float64 else np.float64
        with np.errstate(all="ignore"):
            arrays[f"trees/{name}"] = array.astype(other)

    assert "the" in refused(changed(tmp_path, change, "flat"), match=r"the array|the subsets")


@pytest.mark.parametrize("name", DTYPES)
def test_trees_of_other_types_are_not_packed(name):
    (tree, *_) = small_model()[0].forest_.trees
    other = np.float32 if getattr(tree, name).dtype == np.float64 else np.float64
    with np.errstate(all="ignore"):
        fields = {**vars(tree), name: getattr(tree, name).astype(other)}
    strange = object.__new__(type(tree))
    vars(strange).update(fields)
    assert packing.pack([tree]) is not None
    assert packing.pack([strange]) is None


@pytest.mark.parametrize("name", ["codebook/exact", "codebook/saw_missing"])
def test_booleans_that_are_neither(name, tmp_path):
    def change(document, arrays):
        arrays[name] = np.full(len(arrays[name]), 7, dtype=np.uint8).view(bool)

    assert "neither" in refused(changed(tmp_path, change))


def test_members_that_nothing_refers_to(tmp_path):
    for name in ("trees/more", "codebook/low.escapes", "values/7", "other/x", "x"):

        def change(document, arrays, name=name):
            arrays[name] = np.arange(3)

        assert repr(f"{name}.npy") in refused(changed(tmp_path, change))


def test_statistics_that_are_not_there_take_no_memory(tmp_path):
    """65,535 sums for each of 400,000 leaves would be 200 GB."""

    def change(document, arrays):
        n_nodes = 800_001
        inner = np.zeros(n_nodes, dtype=bool)
        inner[: n_nodes - 1 : 2] = True
        arrays["trees/n_nodes"] = np.array([n_nodes])
        arrays["trees/is_inner"] = np.packbits(inner)
        document["trees"]["n_statistics"] = 65_535

    refused(changed(tmp_path, change))


# ---------------------------------------------------------------------------------------------
# the archive


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
