"""Values as JSON: what is written is read again, and nothing else is read."""

from __future__ import annotations

import json
import traceback
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.exceptions import ModelFileError
from dtrees.export import load
from dtrees.export.values import INLINE_BYTES, MOST_BITS, Encoder, decode
from tests.export.test_hostile_files import changed, document_of, refused, with_document

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
    "items of a set that are equal": {"set": [0, 0]},
    "items of a set that are equal, of two types": {"frozenset": [0, False]},
    "a set of lists": {"set": [[0]]},
    "a set of letters": {"set": "aa"},
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


@pytest.mark.one_of(8)
@pytest.mark.parametrize("name", HUGE)
def test_values_that_no_file_of_ours_holds(name, tmp_path):
    def change(document, arrays):
        document["parameters"]["class_weight"] = {"dict": [["k", HUGE[name]]]}

    path = changed(tmp_path, change)
    if name == "an infinite float":
        data = path.read_bytes()
        path.write_bytes(with_document(data, document_of(data).replace(b"1e+308", b"1e+999")))
    assert "is damaged" in refused(path)


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


PLAIN = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary()),
    *(
        st.fractions(),
        st.decimals(),
        st.datetimes(),
        st.dates(),
        st.timedeltas(),
        st.times().map(lambda time: time.replace(fold=0)),
    ),
)
NESTED = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        *(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple)),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("kind", [set, frozenset])
@given(items=st.lists(st.one_of(st.text(max_size=3), st.integers(), st.dates()), max_size=4))
def test_sets_come_back(kind, items):
    value = kind([*items, frozenset(items), tuple(items)])
    written = json.dumps(Encoder().encode([value], "x"))
    (found,) = decode(json.loads(written), {})
    assert type(found) is kind
    assert found == value
    again = kind([tuple(items), frozenset(items[::-1]), *items[::-1]])
    assert json.dumps(Encoder().encode([again], "x")) == written  # the order says nothing


@given(NESTED)
def test_any_plain_value_comes_back(value):
    encoder = Encoder()
    found = decode(json.loads(json.dumps(encoder.encode(value, "x"), allow_nan=False)), {})
    assert encoder.arrays == {}
    assert repr(found) == repr(value)  # as nan is not nan, and 1 is True


def test_large_arrays_are_members_and_small_ones_are_not():
    encoder = Encoder()
    small, large = np.arange(INLINE_BYTES // 8), np.arange(INLINE_BYTES // 8 + 1)
    encoded = encoder.encode([small, large, large], "x")
    assert encoded[1:] == [{"member": "values/0"}, {"member": "values/1"}]
    assert list(encoder.arrays) == ["values/0", "values/1"]
    for found, given_array in zip(
        decode(encoded, encoder.arrays), [small, large, large], strict=True
    ):
        assert found.tolist() == given_array.tolist()


@pytest.mark.parametrize("value", [{1: 2}.keys(), object(), range(3), np.zeros(2, dtype="i4,f8")])
def test_values_of_other_types_are_refused_by_name(value):
    with pytest.raises(TypeError, match=r"^mine (holds a|is an array of) .* which a model file"):
        Encoder().encode(value, "mine")
