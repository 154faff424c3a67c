"""Output: a terminal sees what is done, and JSON is all there is in a pipe."""

import contextlib
import json
import os

import pytest

from dtrees.cli.terminal import (
    console,
    finite,
    print_json,
    print_sentence,
    say,
    trees_grown,
    waiting,
)
from tests.cli.asking import forked, process
from tests.forked import start_forked

pd = pytest.importorskip("pandas")


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


def test_numbers_without_a_word_in_json_are_null():
    assert finite({"a": [1.0, float("nan"), {"b": float("inf")}]}) == {
        "a": [1.0, None, {"b": None}]
    }


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


def test_lines_for_people_keep_their_ends_and_nothing_else(capsys):
    say("a\nb\x1b[2J")
    assert capsys.readouterr().out == "a\nb\\x1b[2J\n"


def test_a_long_sentence_stays_in_one_line(capsys):
    print_sentence(console(), "bold [words]", " and others" * 20)
    assert capsys.readouterr().out == f"bold [words]{' and others' * 20}\n"


def test_a_document_is_json_that_every_reader_takes(capsys):
    print_json({"ä": [1.5, float("-inf")], "b": {"c": "\x1b"}})
    text = capsys.readouterr().out
    assert text.isascii()
    assert json.loads(text) == {"ä": [1.5, None], "b": {"c": "\x1b"}}
