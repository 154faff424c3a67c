"""The files beside the table: a model or a table is whole, or as it was."""

import csv as csv_module
import gzip
import io
import subprocess
import sys

import pytest
from sklearn.pipeline import make_pipeline

from dtrees import DecisionTreeClassifier
from dtrees.cli import files
from dtrees.cli.files import (
    as_cell,
    check_format,
    holds_marked_cells,
    in_units,
    safe_table,
    whole_file,
    write_table,
)
from dtrees.export import load, save
from dtrees.io import read_table
from tests.cli.asking import ROOT, ask, check_refused, cv, fit, succeed

pd = pytest.importorskip("pandas")


def test_a_folder_is_not_a_file(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    check_refused(cv(tmp_path / "folder.csv", "--target", "class"), "not a file")


def test_pipelines_are_for_python(csv, tmp_path):
    pytest.importorskip("skops")
    path = tmp_path / "pipeline.dtrees"
    save(make_pipeline("passthrough", DecisionTreeClassifier()).fit([[1.0], [2.0]], [0, 1]), path)
    for command in (["show", path], ["predict", path, csv, "--out", tmp_path / "a.csv"]):
        check_refused(ask(*command), "pipeline.dtrees holds a Pipeline of scikit-learn; use Python")


def test_a_missing_file_is_told_before_anything_large_is_imported():
    code = """if True:
        import sys
        from dtrees.cli import main
        try:
            main(["cv", "no.csv", "--target", "class"])
        finally:
            print(sorted({"sklearn", "pandas", "dask"} & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "[]\n")
    assert done.stderr == "Error: no.csv: no such file\n"


def test_where_a_model_cannot_go(csv, tmp_path):
    for out, words in (
        (tmp_path, "not a file"),
        ("/dev/null", "not a file"),
        (tmp_path / "no" / "a.dtrees", "there is no folder"),
        (csv, "would replace what is read"),
        ("-", "a model goes to a file"),
    ):
        before = csv.read_bytes()
        check_refused(ask("fit", csv, "--target", "class", "--out", out), words)
        assert csv.read_bytes() == before


def test_a_refused_fit_leaves_the_former_file(csv, tmp_path):
    out = tmp_path / "a.dtrees"
    fit(csv, out, "--target", "class")
    before = out.read_bytes()
    check_refused(ask("fit", csv, "--target", "none", "--out", out), "no column 'none'")
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.dtrees", "table.csv"]


@pytest.mark.parametrize("command", ["show", "predict"])
def test_files_that_hold_no_model(csv, tmp_path, command):
    rest = [csv] if command == "predict" else []
    model = tmp_path / "a.dtrees"
    check_refused(ask(command, model, *rest), "no such file")
    check_refused(ask(command, tmp_path, *rest), "not a file")
    check_refused(ask(command, csv, *rest), "is not a model file of dtrees")
    fit(csv, model, "--target", "class")
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) // 2])
    check_refused(ask(command, model, *rest), "is damaged")
    model.write_bytes(b"")
    check_refused(ask(command, model, *rest), "is not a model file of dtrees: it is empty")


@pytest.mark.parametrize(
    ("n_bytes", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1.0 kB"),
        (2_540_000, "2.5 MB"),
        (7 * 10**9, "7.0 GB"),
        (12_345 * 10**9, "12345.0 GB"),
    ],
)
def test_sizes_in_words(n_bytes, words):
    assert in_units(n_bytes) == words


def test_a_file_is_whole_or_as_it_was(tmp_path):
    out = tmp_path / "a.txt"
    with whole_file(out) as partial:
        partial.write_text("one")
        assert not out.exists()
    with pytest.raises(KeyboardInterrupt), whole_file(out) as partial:  # noqa: PT012
        partial.write_text("half of tw")
        raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert out.read_text() == "one"


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "T.PARQUET"])
def test_a_table_is_written_as_its_name_says(tmp_path, name):
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    check_format(tmp_path / name)
    write_table(table, tmp_path / name)
    start = {"t.csv": b"a,b", "t.csv.gz": b"\x1f\x8b", "T.PARQUET": b"PAR1"}[name]
    assert (tmp_path / name).read_bytes().startswith(start)
    assert read_table(tmp_path / name).values.tolist() == table.values.tolist()


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
    succeed("fit", path, "--target", "class", "--drop", "t", "--out", model)
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
    succeed("fit", path, "--target", "target", "--drop", note, "--out", model)
    how = ["predict", model, path, "--keep", note, *cluster]
    result = succeed(*how, "--out", out)
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
    succeed(*how, "--out", out)
    whole = tmp_path / "out.parquet"
    result = ask(*how, "--out", whole)
    assert (result.exit_code, result.stderr) == (0, "")
    found = pd.read_parquet(whole)
    assert found["prediction"].tolist() == labels
    assert found[note].tolist() == table[note].tolist()


@pytest.mark.one_of(2)
@pytest.mark.parametrize("name", ["out.csv.gz", "-"])
def test_other_csv_output(tmp_path, cluster, name):
    """A header alone, of numbers; and kept categories and other objects."""
    path, model = tmp_path / "table.parquet", tmp_path / "a.dtrees"
    codes = pd.Categorical(["=a", "b"] * 10)
    pd.DataFrame({"=x": range(20), "codes": codes, "y": [0.5, 1.5] * 10}).to_parquet(path)
    succeed("fit", path, "--target", "y", "--drop", "codes", "--out", model)
    out = name if name == "-" else tmp_path / name
    for kept, header, firsts in (("=x", "'=x", {str(i) for i in range(20)}),
                                 ("codes", "codes", {"'=a", "b"})):  # fmt: skip
        how = ["--keep", kept, "--force", "--out", out, *cluster]
        result = succeed("predict", model, path, *how)
        assert result.stderr.count(APOSTROPHE) == 1
        text = result.stdout if name == "-" else gzip.decompress(out.read_bytes()).decode()
        first, *rows = csv_module.reader(io.StringIO(text))
        assert first == [header, "prediction"]
        assert {row[0] for row in rows} == firsts


@pytest.mark.parametrize("block", [1, 2, 3, 5, 1 << 20])
@pytest.mark.parametrize("packed", [False, True])
def test_marked_cells_are_found_wherever_a_block_ends(tmp_path, monkeypatch, block, packed):
    monkeypatch.setattr(files, "BLOCK", block)
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


TREE = ["--target", "class", "--max-depth", 2]


@pytest.fixture(autouse=True)
def blank(monkeypatch):
    """Nobody looks at the pictures of these reports, which take most of their time."""
    monkeypatch.setattr("dtrees.cli.figures._svg_of", lambda figure: "<svg></svg>")


def fit_to(csv, out, *args):
    return ask("fit", csv, *TREE, "--out", out, *args)


def report_to(csv, out, *args):
    return ask("cv", csv, *TREE, "--folds", 2, "--report", out, *args)


@pytest.fixture
def predict(csv, tmp_path):
    model = tmp_path / "fitted.dtrees"
    assert fit_to(csv, model).exit_code == 0

    def command(_, out, *args):
        return ask("predict", model, csv, "--out", out, *args)

    return command


@pytest.fixture(params=["fit", "cv", "predict"])
def command(request, predict):
    """A command with an output, the name of its file, and what such a file is called."""
    return {
        "fit": (fit_to, "out.dtrees", "a model file"),
        "cv": (report_to, "out.html", "a report"),
        "predict": (
            predict,
            "out.csv",
            "a table of predictions with the columns that are asked for",
        ),
    }[request.param]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    "content",
    [b"#!/bin/sh\necho mine\n", b"PK\x03\x04 no zip", b"a,b\n1,2\n", b"\0" * 100, b"\xff\xfe"],
)
def test_a_file_of_another_kind_is_kept(csv, tmp_path, command, content):
    run, name, what = command
    out = tmp_path / name
    out.write_bytes(content)
    check_refused(run(csv, out), f"{out} is there and is not {what}: add --force to replace it")
    assert out.read_bytes() == content


def test_force_replaces_it(csv, tmp_path, command):
    run, name, _ = command
    out = tmp_path / name
    out.write_bytes(b"a,b\n1,2\n")
    result = run(csv, out, "--force")
    assert result.exit_code == 0, result.output
    assert out.read_bytes() != b"a,b\n1,2\n"


def test_what_the_command_wrote_and_empty_files_are_replaced(csv, tmp_path, command):
    run, name, _ = command
    out = tmp_path / name
    out.touch()
    for _ in range(2):
        result = run(csv, out)
        assert result.exit_code == 0, result.output
        assert out.stat().st_size > 0


def test_a_model_does_not_replace_a_page_nor_predictions(csv, tmp_path, predict):
    page, table, model = tmp_path / "a.html", tmp_path / "a.csv", tmp_path / "a.dtrees"
    for run, out in ((report_to, page), (predict, table), (fit_to, model)):
        assert run(csv, out).exit_code == 0
    for run, out in ((fit_to, page), (fit_to, table), (report_to, model), (report_to, table)):
        before = out.read_bytes()
        check_refused(run(csv, out), "add --force")
        assert out.read_bytes() == before
    load(model)


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet"])
def test_packed_predictions(csv, tmp_path, predict, suffix):
    out = tmp_path / f"out{suffix}"
    for _ in range(2):
        assert predict(csv, out).exit_code == 0
    other = pd.DataFrame({"mine": [1, 2]})
    other.to_parquet(out) if suffix == ".parquet" else other.to_csv(out, index=False)
    check_refused(predict(csv, out), "is not a table of predictions")
    out.write_bytes(gzip.compress(b"mine\n1\n")[:-4])  # damaged
    check_refused(predict(csv, out), "is not a table of predictions")


PRECIOUS = pd.DataFrame({"prediction": ["no", "yes"], "precious": [1, 2]})


@pytest.mark.one_of(2)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("names", [["prediction", "precious"], ["precious", "prediction"]])
def test_a_table_with_other_columns_beside_predictions_is_kept(tmp_path, predict, suffix, names):
    out = tmp_path / f"mine{suffix}"
    table = PRECIOUS[names]
    table.to_parquet(out) if suffix == ".parquet" else table.to_csv(out, index=False)
    before = out.read_bytes()
    check_refused(predict(None, out), "with the columns that are asked for: add --force")
    assert out.read_bytes() == before


def test_predictions_with_other_columns_are_kept(tmp_path, predict):
    out = tmp_path / "out.csv"
    for args in ((), ("--proba",), ("--keep", "word"), ("--keep", "word", "--proba")):
        for _ in range(2):
            assert predict(None, out, *args).exit_code == 0
        for others in ((), ("--proba",), ("--keep", "word"), ("--keep", "number")):
            if others != args:
                check_refused(predict(None, out, *others), "add --force")
        out.unlink()


def test_the_whole_header_is_compared_however_long_and_quoted(tmp_path):
    """Names of kept columns with commas and line ends; more classes than a short head tells."""
    source, model, out = tmp_path / "t.csv", tmp_path / "a.dtrees", tmp_path / "out.csv"
    labels = [f"a rather long label, the {i}th" for i in range(400)]
    pd.DataFrame({"a,\nb": range(400), "y": labels}).to_csv(source, index=False)
    asked = ("--target", "y", "--task", "classification", "--out", model)
    succeed("fit", source, *asked)
    how = ("predict", model, source, "--out", out, "--keep", "a,\nb", "--proba")
    for _ in range(2):
        succeed(*how)
    text = out.read_text()
    out.write_text(text.replace("399th", "399th one", 1))
    check_refused(ask(*how), "add --force")


def test_a_link_stays_one(csv, tmp_path, command):
    run, name, _ = command
    folder, out = tmp_path / "elsewhere", tmp_path / name
    folder.mkdir()
    out.symlink_to(folder / "target")
    for _ in range(2):  # there is no target, and there is one
        result = run(csv, out)
        assert result.exit_code == 0, result.output
        assert out.is_symlink()
        assert [path.name for path in folder.iterdir()] == ["target"]
        assert (folder / "target").stat().st_size > 0
    (folder / "target").write_bytes(b"mine")
    check_refused(run(csv, out), "add --force")
    assert (folder / "target").read_bytes() == b"mine"
    assert run(csv, out, "--force").exit_code == 0
    assert out.is_symlink()
    assert (folder / "target").read_bytes() != b"mine"


def test_links_that_lead_nowhere(csv, tmp_path, command):
    run, name, _ = command
    out = tmp_path / name
    out.symlink_to(tmp_path / "none" / "target")
    check_refused(run(csv, out), f"{out}: there is no folder {tmp_path / 'none'}")
    out.unlink()
    out.symlink_to(out)
    check_refused(run(csv, out), f"{out}: not a file")
    out.unlink()
    out.symlink_to(csv)
    before = csv.read_bytes()
    check_refused(run(csv, out), "would replace what is read")
    assert csv.read_bytes() == before


def test_a_link_on_a_cluster(csv, tmp_path, predict, address):
    out, target = tmp_path / "out.csv.gz", tmp_path / "target"
    out.symlink_to(target)
    for _ in range(2):
        result = predict(csv, out, "--cluster", address)
        assert result.exit_code == 0, result.output
    assert out.is_symlink()
    assert gzip.decompress(target.read_bytes()).startswith(b"prediction\n")
