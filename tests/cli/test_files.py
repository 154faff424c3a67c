"""The files beside the table: a model or a table is whole, or as it was."""

import subprocess
import sys

import pytest

from dtrees.cli.errors import RequestError
from dtrees.cli.files import check_format, check_out, file_errors, in_units, whole_file, write_table
from dtrees.io import read_table
from tests.cli.asking import ROOT, ask, check_refused, cv, fit

pd = pytest.importorskip("pandas")


def test_a_folder_is_not_a_file(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    check_refused(cv(tmp_path / "folder.csv", "--target", "class"), "not a file")


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


def test_a_link_stays_one_and_its_file_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "a.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    write_table(pd.DataFrame({"a": [1]}), link)
    assert link.is_symlink()
    assert target.read_text() == "a\n1\n"
    check_out(link)
    with pytest.raises(RequestError, match="would replace what is read"):
        check_out(link, target)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "T.PARQUET"])
def test_a_table_is_written_as_its_name_says(tmp_path, name):
    table = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})
    check_format(tmp_path / name)
    write_table(table, tmp_path / name)
    start = {"t.csv": b"a,b", "t.csv.gz": b"\x1f\x8b", "T.PARQUET": b"PAR1"}[name]
    assert (tmp_path / name).read_bytes().startswith(start)
    assert read_table(tmp_path / name).values.tolist() == table.values.tolist()


def test_what_the_system_has_against_a_file_is_one_line():
    with pytest.raises(RequestError, match=r"^a: cannot be read: gone$"), file_errors("a", "read"):
        raise FileNotFoundError(2, "gone")
    with pytest.raises(BrokenPipeError), file_errors("a", "written"):
        raise BrokenPipeError
