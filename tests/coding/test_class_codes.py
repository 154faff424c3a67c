"""Classes are sorted, and codes point to them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtrees.coding import Target

rng = np.random.default_rng(2)


@pytest.mark.parametrize(
    "labels",
    [
        [3, -1, 3, 7],
        np.array([3, 1, 255, 3], dtype=np.uint8),
        np.array([-128, 127, 0], dtype=np.int8),
        np.array([2**63, 0, 2**64 - 1], dtype=np.uint64),
        np.array([2**63 + 1, 2**63, 2**63 + 1], dtype=np.uint64),
        np.array([2**64 - 1, 2**64 - 3], dtype=">u8"),
        np.array([-(2**63) + 2, -(2**63)]),
        [10**12, -(10**12), 10**12],
        [True, False, True],
        [1.5, 0.0, 1.5],
        ["b", "a", "b"],
        np.array(["b", "a", "b", "ccc"], dtype=object),
        np.array([2, 1, 2], dtype=object),
        [5],
    ],
)
def test_classes_are_sorted_and_codes_point_to_them(labels):
    y = np.asarray(labels)
    target = Target.classification(y)
    classes, codes = np.unique(y, return_inverse=True)
    assert np.array_equal(target.classes, classes)
    assert target.classes.dtype == y.dtype
    assert np.array_equal(target.y, codes)
    assert target.n_statistics == target.n_classes == len(classes)
    assert target.w is None


@given(st.lists(st.text("abz\u20ac\U0001f600", max_size=5), min_size=1, max_size=300))
def test_strings_have_the_codes_of_sorting(labels):
    y = np.array(labels)
    classes, codes = np.unique(y, return_inverse=True)
    wide = np.repeat(y, 2).astype("U30")
    for given_labels in (y, np.repeat(y, 2)[::2], y.astype(y.dtype.newbyteorder()), wide[::2]):
        target = Target.classification(given_labels)
        assert np.array_equal(target.classes, classes)
        assert target.classes.dtype == given_labels.dtype
        assert np.array_equal(target.y, codes)


@pytest.mark.parametrize("width", [3, 8, 9, 16, 17])
@pytest.mark.parametrize("n_classes", [1, 2, 5, 200, 300, 2_000])
def test_long_strings(width, n_classes):
    """Whatever their number is; the last of them comes late."""
    own = np.random.default_rng(width * n_classes)
    names = np.array(["".join(own.choice([*"ab~\xff"], width)) for _ in range(n_classes)])
    names[0] = ""
    y = names[np.sort(own.integers(0, n_classes, 3_000))]
    classes, codes = np.unique(y, return_inverse=True)
    target = Target.classification(y)
    assert np.array_equal(target.classes, classes)
    assert np.array_equal(target.y, codes)


@pytest.mark.parametrize(("n_classes", "dtype"), [(256, "u1"), (257, "u2"), (65_535, "u2")])
@pytest.mark.parametrize("as_float", [False, True])
def test_width_of_class_codes(n_classes, dtype, as_float):
    y = rng.permutation(n_classes).astype(float if as_float else int)
    target = Target.classification(y)
    assert target.y.dtype == dtype
    assert np.array_equal(target.classes[target.y], y)


@pytest.mark.parametrize("convert", [np.array, lambda y: y.astype(float), lambda y: y.astype(str)])
@pytest.mark.parametrize("n_classes", [65_536, 70_000])
def test_too_many_classes(n_classes, convert):
    message = rf"y has {n_classes} classes; a tree counts at most 65535\. Is this a regression\?"
    with pytest.raises(ValueError, match=message):
        Target.classification(convert(np.arange(n_classes)))


@pytest.mark.parametrize(
    "y",
    [
        pd.array([None, "b"], dtype="string"),
        pd.array([None, "b", "b"], dtype=object),
        pd.array([None, True], dtype="boolean"),
        pd.Categorical([None, "b"]),
        np.array(["a", np.nan], dtype=np.dtypes.StringDType(na_object=np.nan)),
        np.array(["NaT", "2020-01-01"], dtype="M8[D]"),
        np.array([None, "b", 1], dtype=object),
    ],
)
def test_missing_labels_are_named(y):
    with pytest.raises(ValueError, match=r"Input y contains NaN: a missing label .* Drop these"):
        Target.classification(y)


def test_masked_values_are_missing():
    masked = np.ma.array([1, 2, 2], mask=[False, True, False])
    for call in (
        lambda: Target.classification(masked),
        lambda: Target.regression(masked),
        lambda: Target.regression([1, 2, 2], sample_weight=masked),
    ):
        with pytest.raises(ValueError, match=r"contains NaN: some values are masked\. Drop"):
            call()
    assert Target.regression(np.ma.array([1.0, 2.0])).n_rows == 2
