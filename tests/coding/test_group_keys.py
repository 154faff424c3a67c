"""Keys of labels: equal for equal labels, however they are stored."""

import datetime
import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding.group_keys import group_keys

pd = pytest.importorskip("pandas")

LABELS = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.fractions(),
    st.text(),
    st.binary(),
    st.datetimes(),
)


def objects(*labels):
    return np.fromiter(labels, dtype=object, count=len(labels))


@given(st.lists(LABELS, max_size=8))
def test_equal_labels_have_equal_keys(labels):
    keys = group_keys(objects(*labels)).tolist()
    for a, key in zip(labels, keys, strict=True):
        for b, other in zip(labels, keys, strict=True):
            assert a != b or key == other


@given(st.integers(-128, 255))
def test_integers_are_their_own_keys(value):
    kinds = ["i2", "i4", "i8", "f2", "f4", "f8", "longdouble", object]
    kinds += ["u1", "u2", "u8"] if value >= 0 else []
    stored = [np.array([value]).astype(kind) for kind in kinds]
    stored += [pd.Series([value], dtype=kind) for kind in ("Int16", "int64[pyarrow]", "category")]
    stored += [objects(kind(value)) for kind in (int, float, np.int64, np.float32)]
    stored += [[value], (value,)]
    assert {int(group_keys(labels)[0]) for labels in stored} == {value % 2**64}


@given(st.floats(allow_nan=False))
def test_columns_of_floats_have_the_keys_of_numbers(value):
    keys = {int(group_keys(labels)[0]) for labels in (np.array([value]), objects(value))}
    if value.is_integer():
        keys.add(int(group_keys(objects(int(value)))[0]))
    assert len(keys) == 1


@pytest.mark.parametrize("text", ["", "a", "ä", "水" * 40])
def test_strings_are_hashed_by_their_bytes(text):
    stored = [np.array([text]), objects(text), objects(np.str_(text)), [text], [text, 1][:1]]
    stored += [np.array([text.encode()]), objects(text.encode())]
    kinds = (object, "category", "string[python]", "string[pyarrow]", pd.ArrowDtype(pa_string()))
    stored += [pd.Series([text], dtype=kind) for kind in kinds]
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    expected = int.from_bytes(digest, "little")
    assert {int(group_keys(labels)[0]) for labels in stored} == {expected}


def pa_string():
    return pytest.importorskip("pyarrow").string()


def test_mixed_lists_are_no_strings():
    np.testing.assert_array_equal(group_keys([1, "1"]), group_keys(objects(1, "1")))
    assert group_keys([1, "1"])[0] == 1


def test_dates_are_nanoseconds():
    day = datetime.datetime(1912, 6, 23, 4, 30)
    zone = datetime.timezone(datetime.timedelta(hours=2))
    aware = datetime.datetime(1912, 6, 23, 6, 30, tzinfo=zone)
    stored = [np.array([day], dtype=f"M8[{unit}]") for unit in ("m", "s", "ms", "us", "ns")]
    stored += [objects(some) for some in (day, aware, np.datetime64(day), pd.Timestamp(aware))]
    stored += [pd.Series([aware]), pd.Series([day]), [day]]
    expected = int(np.datetime64(day, "ns").astype(np.int64)) % 2**64
    assert {int(group_keys(labels)[0]) for labels in stored} == {expected}
    far = np.array(["9999-12-31", "0001-01-01"], dtype="M8[D]")
    dates = objects(*far.tolist())
    np.testing.assert_array_equal(group_keys(far), group_keys(dates))


def test_neighbours_have_keys_of_their_own():
    many = [*range(-500, 500), *(10**25 + i for i in range(9)), *np.arange(0.05, 50, 0.1)]
    many += [str(i) for i in range(1000)]
    assert len(set(group_keys(many).tolist())) == len(many)


@pytest.mark.parametrize("bad", [None, np.nan, pd.NA, pd.NaT, np.datetime64("NaT", "ns")])
def test_missing_labels(bad):
    for labels in (objects("a", bad), [bad], pd.Series([bad])):
        with pytest.raises(ValueError, match="groups holds missing values"):
            group_keys(labels)


@pytest.mark.parametrize("bad", [[1], {}, 1j, (1, 2), datetime.timedelta(1), pd.Interval(0, 1)])
def test_labels_of_other_kinds(bad):
    with pytest.raises(TypeError, match=rf"groups holds '.*' of type {type(bad).__name__}"):
        group_keys(objects(bad))
