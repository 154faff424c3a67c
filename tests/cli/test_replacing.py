"""Files that are there: what a command has written is replaced, anything else only by --force."""

import gzip

import pytest

from dtrees.export import load
from tests.cli.asking import ask, check_refused

pd = pytest.importorskip("pandas")

TREE = ["--target", "class", "--max-depth", 2]


@pytest.fixture(autouse=True)
def blank(monkeypatch):
    """Nobody looks at the pictures of these reports, which take most of their time."""
    monkeypatch.setattr("dtrees.cli.figures._svg_of", lambda figure: "<svg></svg>")


def fit(csv, out, *args):
    return ask("fit", csv, *TREE, "--out", out, *args)


def cv(csv, out, *args):
    return ask("cv", csv, *TREE, "--folds", 2, "--report", out, *args)


@pytest.fixture
def predict(csv, tmp_path):
    model = tmp_path / "fitted.dtrees"
    assert fit(csv, model).exit_code == 0

    def command(_, out, *args):
        return ask("predict", model, csv, "--out", out, *args)

    return command


@pytest.fixture(params=["fit", "cv", "predict"])
def command(request, predict):
    """A command with an output, the name of its file, and what such a file is called."""
    return {
        "fit": (fit, "out.dtrees", "a model file"),
        "cv": (cv, "out.html", "a report"),
        "predict": (
            predict,
            "out.csv",
            "a table of predictions with the columns that are asked for",
        ),
    }[request.param]


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
    for run, out in ((cv, page), (predict, table), (fit, model)):
        assert run(csv, out).exit_code == 0
    for run, out in ((fit, page), (fit, table), (cv, model), (cv, table)):
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
    assert ask("fit", source, *asked).exit_code == 0
    how = ("predict", model, source, "--out", out, "--keep", "a,\nb", "--proba")
    for _ in range(2):
        result = ask(*how)
        assert result.exit_code == 0, result.output
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
