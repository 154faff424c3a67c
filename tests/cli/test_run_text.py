"""What a cross-validation prints for people."""

import pytest

from tests.cli.asking import cv, cv_json

pd = pytest.importorskip("pandas")


def test_classification_prints_folds_columns_and_tree(csv):
    result = cv(csv, "--target", "class", "--folds", 3, "--max-depth", 2)
    assert result.exit_code == 0, result.output
    out = result.stdout
    assert "60 rows, 4 columns\n" in out
    assert "columns: 2 ordered, 1 categorical, 1 hybrid (numbers and words)" in out
    assert "target class: classification, 2 classes" in out
    assert "accuracy" in out
    assert "(mean ± standard error of 3 folds)" in out
    assert "importance" in out
    assert "amount " in out
    assert "amount <= " in out
    assert result.stderr == ""


def test_regression_prints_r2(csv):
    result = cv(csv, "--target", "amount", "--folds", 3)
    assert result.exit_code == 0, result.output
    assert "target amount: regression" in result.stdout
    assert "R² 0." in result.stdout


def test_all_that_is_told_of_a_run(csv):
    """The same numbers as in the document, in an order that does not change."""
    options = ["--target", "class", "--drop", "amount", "--folds", 3, "--tune", "--max-depth", 3]
    document = cv_json(csv, *options)
    out = cv(csv, *options).stdout
    places = [
        out.index(words)
        for words in ("target class", "* chosen", "one standard error", "fold ", "All models took")
    ]
    assert places == sorted(places)
    assert f"accuracy {document['mean']:.4f} ± {document['standard_error']:.4f}" in out
    for fold in document["folds"]:
        row = [str(fold["fold"]), f"{fold['score']:.4f}", str(fold["depth"]), f"{fold['n_leaves']}"]
        assert row in [line.split() for line in out.splitlines()]
