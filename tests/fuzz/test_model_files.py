"""The fuzzer of model files, in short; `make fuzz-models` runs it for long."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from tests.fuzz import model_files
from tests.fuzz.limits import run_apart

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="cases run in forked children")


def fuzz(*arguments):
    """The fuzzer in a process of its own, which has no threads when it forks."""
    command = [sys.executable, "-m", "tests.fuzz.model_files", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_no_file_hurts():
    code, said = fuzz("--seed", "0", "--cases", "150")
    assert code == 0, said
    assert "150 cases" in said
    n_refused, n_used = (int(said.split(f" {what}")[0].split()[-1]) for what in ("refused", "used"))
    assert n_refused > 50
    assert n_used > 5


@pytest.mark.parametrize(
    ("plant", "what"), [("trees", "use: "), ("numbers", "it took more|load: ")]
)
def test_a_check_that_is_taken_away_is_found(plant, what):
    code, said = fuzz("--seed", "0", "--cases", "50", "--plant", plant)
    assert code == 1, said
    assert any(each in said for each in (*what.split("|"), "it was ended by")), said


def test_cases_can_be_seen_again():
    files = model_files.good_files()
    for number in range(20):
        assert (
            model_files.case_of(3, number, files)[:2]
            == model_files.case_of(3, number, model_files.good_files())[:2]
        )


ENDINGS = {
    "time": (lambda: [None for _ in iter(int, 1)], "it took more time than it may"),
    "memory": (lambda: bytes(2**31), "it took more memory than it may"),
    "crash": (lambda: os.abort(), "it was ended by SIGABRT"),
    "error": (lambda: 1 / 0, "it ended with 1"),
    "nothing": (lambda: None, ""),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_endings_of_children(name, capfd):
    act, why = ENDINGS[name]

    def work(tell):
        tell("first")
        act()

    ending = run_apart(work, seconds=2, megabytes=500)
    assert (ending.found, ending.why) == (["first"], why)


def test_a_child_that_sleeps(monkeypatch):
    monkeypatch.setattr("tests.fuzz.limits.ASLEEP", 0.1)
    ending = run_apart(lambda tell: time.sleep(1000), seconds=1, megabytes=100)
    assert ending.why == "it slept"
