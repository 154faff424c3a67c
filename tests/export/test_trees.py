"""Trees alone, as bytes: what a checkpoint holds."""

import io

import numpy as np
import pytest

import dtrees
from dtrees.exceptions import ModelFileError
from dtrees.export.archive import write_to
from dtrees.export.trees import trees_of_bytes, trees_to_bytes
from tests.estimators.forest_cases import DIABETES, mixed_table

X, Y = mixed_table(120)
FOREST = dtrees.RandomForestClassifier(4, random_state=0, max_depth=5).fit(X, Y)
BOOK = FOREST.codebook_


def units(trees):
    """Trees of two sets."""
    return [(number % 2, tree) for number, tree in enumerate(trees)]


DATA = trees_to_bytes(units(FOREST.forest_.trees))


@pytest.mark.parametrize("n_trees", [1, 4])
def test_trees_come_back(n_trees):
    given = units(FOREST.forest_.trees[:n_trees])
    found = trees_of_bytes(trees_to_bytes(given), "there", BOOK)
    for (number, mine), (of, theirs) in zip(given, found, strict=True):
        assert number == of
        assert mine.equals(theirs)
        assert (mine.unit, mine.offset) == (theirs.unit, theirs.offset)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"format":"dtrees trees"', b'"format":"dtrees model"', "is damaged: the checksum"),
        (b"PK\3\4", b"PK\3\5", "is not a model file of dtrees"),
    ],
)
def test_bytes_that_are_changed(old, new, words):
    assert old in DATA
    with pytest.raises(ModelFileError, match=f"'there' {words}"):
        trees_of_bytes(DATA.replace(old, new, 1), "there", BOOK)


@pytest.mark.parametrize("n_bytes", [0, 1, 100, len(DATA) // 2, len(DATA) - 1])
def test_bytes_that_are_cut_off(n_bytes):
    with pytest.raises(ModelFileError):
        trees_of_bytes(DATA[:n_bytes], "there", BOOK)


def test_trees_of_other_columns():
    others = dtrees.RandomForestRegressor(1, max_depth=2).fit(*DIABETES)
    with pytest.raises(ModelFileError, match="'there'"):
        trees_of_bytes(trees_to_bytes(units(others.forest_.trees)), "there", BOOK)


@pytest.mark.parametrize(
    ("version", "words"), [(2, "reads versions up to 1. Install a newer dtrees"), (0, "is damaged")]
)
def test_trees_of_other_versions(version, words):
    file = io.BytesIO()
    write_to(file, {"format": "dtrees trees", "version": version, "trees": {}}, {})
    with pytest.raises(ModelFileError, match=f"'there' .*{words}"):
        trees_of_bytes(file.getvalue(), "there", BOOK)


def test_a_model_is_no_file_of_trees(tmp_path):
    dtrees.export.save(FOREST, tmp_path / "a")
    with pytest.raises(
        ModelFileError, match=r"'there' is not .*: its format is not 'dtrees trees'"
    ):
        trees_of_bytes((tmp_path / "a").read_bytes(), "there", BOOK)
    assert np.array_equal(dtrees.export.load(tmp_path / "a").predict(X), FOREST.predict(X))
