"""Cells of a CSV file: a spreadsheet computes none of them."""

import csv as csv_module
import gzip
import io

import pytest

from dtrees.cli import cells
from dtrees.cli.cells import as_cell, holds_marked_cells, safe_table
from tests.cli.asking import ask

pd = pytest.importorskip("pandas")


def test_cells():
    for label in (
        "=1+1",
        "+a",
        "-a",
        "@a",
        "\ta",
        "\ra",
        "=a",
        "--1",
        "-1+2",
        "-e5",
        "+(1)",
        '="a"',
    ):
        assert as_cell(label) == f"'{label}"
    for label in (
        "yes",
        "-1",
        "+5",
        "-1e3",
        "+1e5",
        "-inf",
        "",
        "a=b",
        1,
        None,
        True,
        "-.5",
        " =a",
    ):
        assert as_cell(label) is label
    for label in ("+", "-", "@", "=", "++", "--", "-1,5", "+1.000,5", "-5%", "\t"):
        assert as_cell(label) is label


@pytest.fixture(params=["here", "cluster"])
def cluster(request):
    """Options of a command that works here, or on a cluster."""
    on_cluster = request.param == "cluster"
    return ["--cluster", request.getfixturevalue("address")] if on_cluster else []


APOSTROPHE = "got an apostrophe in front; --raw writes all text as it is."


def test_labels_that_are_signs(tmp_path, cluster):
    """Those of UCI's credit approval and promoters are + and -."""
    path, model, out = tmp_path / "table.csv", tmp_path / "a.dtrees", tmp_path / "out.csv"
    labels = ["+", "-", "@", "-1", "+5", "-1e3"] * 5
    temperatures = ["-1,5", "+2,5", "0", "-3", "", "4"] * 5
    x = list(range(6)) * 5
    pd.DataFrame({"x": x, "t": temperatures, "class": labels}).to_csv(path, index=False)
    fit = ask("fit", path, "--target", "class", "--drop", "t", "--out", model)
    assert fit.exit_code == 0, fit.output
    kept = ["--keep", "class", "--keep", "t"]
    result = ask("predict", model, path, "--out", out, *kept, *cluster)
    assert (result.exit_code, result.stderr) == (0, "")
    found = pd.read_csv(out, dtype=str, keep_default_na=False)
    assert found["prediction"].tolist() == labels
    assert found["class"].tolist() == labels
    assert found["t"].tolist() == temperatures


def test_text_that_is_a_formula(tmp_path, cluster):
    path, model, out = tmp_path / "table.csv", tmp_path / "a.dtrees", tmp_path / "out.csv"
    labels = ["=cmd()", "-1", "plain", "@x"] * 5
    note, link = "+note", '=HYPERLINK("http://a.b","c")'
    table = pd.DataFrame({"x": [0, 1, 2, 3] * 5, note: [link, "a"] * 10, "target": labels})
    table.to_csv(path, index=False)
    assert ask("fit", path, "--target", "target", "--drop", note, "--out", model).exit_code == 0
    how = ["predict", model, path, "--keep", note, *cluster]
    result = ask(*how, "--out", out)
    assert result.exit_code == 0, result.output
    assert result.stderr.count("\n") == 1
    assert APOSTROPHE in result.stderr
    if not cluster:
        assert result.stderr.startswith("Note: 21 texts that")
    rows = list(csv_module.DictReader(io.StringIO(out.read_text())))
    assert list(rows[0]) == ["'+note", "prediction"]
    assert [row["prediction"] for row in rows] == ["'=cmd()", "-1", "plain", "'@x"] * 5
    assert [row["'+note"] for row in rows] == [f"'{link}", "a"] * 10
    raw = ask(*how, "--out", out, "--raw")  # replaces the table with the same columns
    assert (raw.exit_code, raw.stderr) == (0, "")
    found = pd.read_csv(out, dtype=str)
    assert found["prediction"].tolist() == labels
    assert found[note].tolist() == table[note].tolist()
    assert ask(*how, "--out", out).exit_code == 0
    whole = tmp_path / "out.parquet"
    result = ask(*how, "--out", whole)
    assert (result.exit_code, result.stderr) == (0, "")
    found = pd.read_parquet(whole)
    assert found["prediction"].tolist() == labels
    assert found[note].tolist() == table[note].tolist()


@pytest.mark.parametrize("name", ["out.csv.gz", "-"])
def test_other_csv_output(tmp_path, cluster, name):
    """A header alone, of numbers; and kept categories and other objects."""
    path, model = tmp_path / "table.parquet", tmp_path / "a.dtrees"
    codes = pd.Categorical(["=a", "b"] * 10)
    pd.DataFrame({"=x": range(20), "codes": codes, "y": [0.5, 1.5] * 10}).to_parquet(path)
    assert ask("fit", path, "--target", "y", "--drop", "codes", "--out", model).exit_code == 0
    out = name if name == "-" else tmp_path / name
    for kept, header, firsts in (("=x", "'=x", {str(i) for i in range(20)}),
                                 ("codes", "codes", {"'=a", "b"})):  # fmt: skip
        how = ["--keep", kept, "--force", "--out", out, *cluster]
        result = ask("predict", model, path, *how)
        assert result.exit_code == 0, result.output
        assert result.stderr.count(APOSTROPHE) == 1
        text = result.stdout if name == "-" else gzip.decompress(out.read_bytes()).decode()
        first, *rows = csv_module.reader(io.StringIO(text))
        assert first == [header, "prediction"]
        assert {row[0] for row in rows} == firsts


@pytest.mark.parametrize("block", [1, 2, 3, 5, 1 << 20])
@pytest.mark.parametrize("packed", [False, True])
def test_marked_cells_are_found_wherever_a_block_ends(tmp_path, monkeypatch, block, packed):
    monkeypatch.setattr(cells, "BLOCK", block)
    path = tmp_path / "a"
    for text, is_marked in (
        ("a,b\n1,'=c\n", True),
        ('a,b\n1,"\'=c,d"\n', True),
        ("'=a,b\n", True),
        ("a,b\n'@a,b\n", True),
        ("a,b\nit's,=c\n", False),
        ("a,b\nx'=c,'d\n", False),
        ("", False),
    ):
        path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
        assert holds_marked_cells(path, packed=packed) is is_marked, text


def test_help_tells_of_apostrophes():
    text = " ".join(ask("predict", "--help").stdout.split())
    assert "--raw Write all text of a CSV file as it is." in text
    assert "gets an apostrophe in front" in text


@pytest.mark.parametrize("dtype", ["object", "str", "category"])
def test_a_table_and_its_names_as_cells(dtype):
    names = ["=a", "number", "-1"]
    values = ["=1", "-1", "+x", None]
    columns = [pd.Series(values, dtype=dtype), range(4), [-1.5, 0, 1, 2]]
    table = pd.DataFrame(dict(zip(names, columns, strict=True)))
    safe, n_changed = safe_table(table)
    assert n_changed == 3
    assert list(safe.columns) == ["'=a", "number", "-1"]
    assert safe["'=a"].dropna().tolist() == ["'=1", "-1", "'+x"]
    assert safe["'=a"].isna().tolist() == [False, False, False, True]
    assert safe[["number", "-1"]].equals(table[["number", "-1"]])
    assert table["=a"].dropna().tolist() == values[:3]  # the given one is as it was
    assert safe_table(table[["number"]])[1] == 0
