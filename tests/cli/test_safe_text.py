"""Text from data: a terminal obeys none of it, and a spreadsheet computes none of it."""

import csv as csv_module
import io

import pytest

from dtrees.cli.errors import LONGEST
from dtrees.cli.words import as_cell, visible
from tests.cli.asking import ask, check_refused

pd = pytest.importorskip("pandas")

ESCAPE = "\x1b[31mred\x07"


def shown(result):
    """Everything that a command has printed, whose only control characters are line ends."""
    text = result.stdout + result.stderr
    assert all(letter.isprintable() or letter == "\n" for letter in text), ascii(text)
    return text


def test_visible():
    assert visible("plain \u00fcber \u6f22") == "plain \u00fcber \u6f22"
    assert visible("a\0b\x1b[2J\r\n") == r"a\x00b\x1b[2J\r\n"
    assert visible("\u202eabc\u2028\x9b") == r"\u202eabc\u2028\x9b"
    assert visible("\ud800") == r"\ud800"


def test_a_file_of_null_bytes(tmp_path):
    path = tmp_path / "zero.csv"
    path.write_bytes(bytes(4_000))
    result = ask("cv", path, "--target", "target")
    check_refused(result, "it does not look like text")
    shown(result)


def test_long_messages_are_cut(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("x" * 100_000 + ",b\n1,2\n")
    result = ask("cv", path, "--target", "target")
    check_refused(result, "no column 'target' in the table")
    assert len(result.stderr) < 2 * LONGEST


def test_names_and_labels_on_a_terminal(tmp_path):
    path, model = tmp_path / "table.csv", tmp_path / "a.dtrees"
    labels = [f"{ESCAPE}yes", "no\0"] * 10
    table = pd.DataFrame({ESCAPE: range(20), "x\ry": ["a\x1b", "b"] * 10, "target": labels})
    table.to_csv(path, index=False, quoting=csv_module.QUOTE_ALL)
    rest = ["--target", "target"]
    for result in (
        ask("cv", path, *rest, "--folds", 2, "--tune"),
        ask("cv", path, *rest, "--folds", 2, "--model", "forest", "--trees", 2),
        ask("fit", path, *rest, "--out", model),
        ask("show", model),
        ask("predict", model, path, "--out", tmp_path / "out.csv", "--keep", ESCAPE),
    ):
        assert result.exit_code == 0, result.output
        shown(result)
    assert r"\x1b[31mred\x07" in ask("show", model).stdout
    shown(ask("cv", path, "--target", "none\x1b"))


def test_cells():
    for label in ("=1+1", "+a", "-a", "@a", "\ta", "\ra", "=", "--1"):
        assert as_cell(label) == f"'{label}"
    for label in ("yes", "-1", "+1e5", "-inf", "", "a=b", 1, None, True):
        assert as_cell(label) == label


@pytest.mark.parametrize("cluster", [[], ["--cluster", "local:1"]], ids=["here", "cluster"])
def test_labels_that_are_formulas(tmp_path, cluster):
    path, model, out = tmp_path / "table.csv", tmp_path / "a.dtrees", tmp_path / "out.csv"
    labels = ["=cmd()", "-1", "plain", "@x"] * 5
    table = pd.DataFrame({"x": [0, 1, 2, 3] * 5, "note": ["=kept"] * 20, "target": labels})
    table.to_csv(path, index=False)
    assert ask("fit", path, "--target", "target", "--out", model).exit_code == 0
    result = ask("predict", model, path, "--out", out, "--keep", "note", *cluster)
    assert result.exit_code == 0, result.output
    found = list(csv_module.DictReader(io.StringIO(out.read_text())))
    assert [row["prediction"] for row in found] == ["'=cmd()", "-1", "plain", "'@x"] * 5
    assert {row["note"] for row in found} == {"=kept"}
    whole = tmp_path / "out.parquet"
    result = ask("predict", model, path, "--out", whole, *cluster)
    assert pd.read_parquet(whole)["prediction"].tolist() == labels
