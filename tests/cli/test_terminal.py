"""Output: a terminal sees what is done, and JSON is all there is in a pipe."""

import contextlib
import csv as csv_module
import json
import os
import unicodedata
import warnings

import pytest
from hypothesis import given, settings
from hypothesis.strategies import sampled_from, text

from dtrees.cli.terminal import (
    INVISIBLE,
    LONGEST,
    RequestError,
    console,
    notes,
    one_line,
    one_line_errors,
    print_json,
    print_sentence,
    trees_grown,
    visible,
    waiting,
)
from dtrees.exceptions import ClusterError
from tests.cli.asking import ask, cv, forked, process, shown
from tests.forked import start_forked

pd = pytest.importorskip("pandas")

ESCAPE = "\x1b[31mred\x07"


def test_visible():
    assert visible("plain \u00fcber \u6f22") == "plain \u00fcber \u6f22"
    assert visible("a\0b\x1b[2J\r\n") == r"a\x00b\x1b[2J\r\n"
    assert visible("\u202eabc\u2028\x9b") == r"\u202eabc\u2028\x9b"
    assert visible("\ud800") == r"\ud800"


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


@given(text(sampled_from("ab \n\r\t\0\x1b\x9b\u2028\u202e\ud800漢"), max_size=40))
def test_visible_text_is_one_line_and_printable_text_is_as_it_was(given_text):
    shown_text = visible(given_text)
    assert len(shown_text.splitlines()) <= 1
    assert not any(unicodedata.category(letter) in INVISIBLE for letter in shown_text)
    if given_text.isprintable():
        assert shown_text == given_text


def test_a_small_class_is_noted_in_one_line(table, tmp_path):
    table.loc[0, "class"] = "maybe"
    path = tmp_path / "small.csv"
    table.to_csv(path, index=False)
    result = cv(path, "--target", "class", "--folds", 3)
    assert result.exit_code == 0
    assert result.stderr == "Note: the smallest class has 1 row, not one for every fold.\n"


@settings(max_examples=max(15, settings.default.max_examples // 4))
@given(text(sampled_from("ab \n\r\t\0\x1b\x9b\u2028\u202e\ud800漢"), max_size=1_500))
def test_a_message_is_one_line_of_letters(message):
    line = one_line(message)
    assert len(line) <= LONGEST + len(" ... ")
    assert not any(letter in line for letter in "\n\r\x1b\0\u2028")


def test_a_long_message_keeps_its_ends():
    line = one_line("a" * LONGEST + "b" * LONGEST)
    assert line == "a" * (LONGEST // 2) + " ... " + "b" * (LONGEST // 2)
    assert one_line("a" * LONGEST) == "a" * LONGEST


@pytest.mark.parametrize("kind", [ValueError, TypeError, ImportError, ClusterError])
def test_what_is_refused_below_is_a_refused_request(kind):
    with pytest.raises(RequestError, match=r"^one line$") as caught, one_line_errors():
        raise kind("one\nline")
    assert caught.value.exit_code == 2
    assert isinstance(caught.value.__cause__, kind)


def test_other_errors_are_bugs_and_stay():
    with pytest.raises(ZeroDivisionError), one_line_errors():
        raise ZeroDivisionError


def test_a_hint_for_files_of_which_dask_guessed_a_column_wrong():
    with pytest.raises(RequestError, match="Write the table as Parquet"), one_line_errors():
        raise ValueError("Mismatched dtypes found in `pd.read_csv`")


def test_warnings_become_notes(capsys):
    with notes():
        warnings.warn("one\nline", UserWarning, stacklevel=1)
        assert capsys.readouterr().err == ""  # they come together, at the end
    assert capsys.readouterr().err == "Note: one line\n"


def test_a_terminal_sees_what_is_done(csv):
    pty = pytest.importorskip("pty")
    words = ("-m", "dtrees", "cv", csv, "--target", "class", "--folds", 2, "--tune")
    ours, theirs = pty.openpty()
    with open(os.devnull, "wb") as nowhere:
        done = start_forked(nowhere.fileno(), theirs, *words, TERM="xterm-256color")
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while more := os.read(ours, 2**12):
            seen += more
    os.close(ours)
    assert done.wait() == 0
    assert b"growing trees" in seen
    assert b"0/3" in seen  # two folds and all rows
    assert b"3/3" in seen


def test_json_from_outside_is_all_there_is_on_standard_output(csv):
    done = forked("cv", csv, "--target", "class", "--folds", 2, "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["rows"] == 60


@pytest.mark.long
def test_a_stream_without_block_characters_is_no_error(csv, tmp_path):
    done = process("cv", csv, "--target", "class", "--folds", 2, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout
    options = ["--target", "amount", "--model", "forest", "--oob", "--out", tmp_path / "ä.dtrees"]
    done = process("fit", csv, *options, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "out-of-bag R" in done.stdout


def test_what_is_no_terminal_sees_no_progress(capsys):
    with trees_grown(True) as bar, waiting("reading", True):
        assert bar is None
    assert capsys.readouterr() == ("", "")


def test_a_long_sentence_stays_in_one_line(capsys):
    print_sentence(console(), "bold [words]", " and others" * 20)
    assert capsys.readouterr().out == f"bold [words]{' and others' * 20}\n"


def test_a_document_is_json_that_every_reader_takes(capsys):
    print_json({"ä": [1.5, float("-inf")], "b": {"c": "\x1b"}})
    text = capsys.readouterr().out
    assert text.isascii()
    assert json.loads(text) == {"ä": [1.5, None], "b": {"c": "\x1b"}}
