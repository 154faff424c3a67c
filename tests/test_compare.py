"""Benchmarks now and at an earlier commit: turns, medians, and what a side answers."""

import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("click")

import click
from click.testing import CliRunner

from benchmarks import compare
from benchmarks.compare import Taken, compared, main, tree_of
from benchmarks.side import Side
from benchmarks.side import main as main_of_side

ROOT = Path(__file__).resolve().parent.parent


class FakeSide:
    """Answers at once; each piece of work takes the next of its `seconds`."""

    def __init__(self, name, log, seconds, *, mb=None, work="words", lines=("a line",), why=""):
        self.name, self.log, self.seconds, self.mb = name, log, list(seconds), mb
        self.prepared = {"why": why, "work": work, "lines": list(lines)}

    def ask(self, **question):
        if "prepare" in question:
            return self.prepared
        self.log.append((self.name, question["n_times"]))
        seconds = self.seconds.pop(0)
        own = None if seconds is None else seconds / question["n_times"]
        return {"spent": seconds or 0.0, "seconds": own, "mb": self.mb and self.mb.pop(0)}


def compare_all(*sides, **more):
    pairs = zip(sides[::2], sides[1::2], strict=True)
    return list(compared(pairs, "case", **{"turns": 3, "budget": 60.0, **more}))


def test_sides_take_turns_and_the_first_work_does_not_count():
    log = []
    now = FakeSide("now", log, [9.0, 1.0, 3.0, 2.0])
    before = FakeSide("before", log, [9.0, 4.0, 4.0, 5.0])
    assert compare_all(now, before) == [("a line", Taken(2.0, None), Taken(4.0, None))]
    names = [name for name, _ in log]
    assert names == ["now", "before", "now", "before", "before", "now", "now", "before"]


def test_short_work_is_done_several_times_in_a_turn():
    log = []
    now = FakeSide("now", log, [0.02, 0.1])
    before = FakeSide("before", log, [0.04, 0.3])
    ((_, mine, theirs),) = compare_all(now, before, turns=1)
    assert [n_times for _, n_times in log] == [1, 1, 5, 5]
    assert (mine.seconds, theirs.seconds) == (pytest.approx(0.02), pytest.approx(0.06))


def test_no_turn_begins_when_the_budget_is_spent():
    now, before = (FakeSide(name, [], [1.0] * 9) for name in ("now", "before"))
    compare_all(now, before, turns=7, budget=3.0)
    assert len(now.seconds) == len(before.seconds) == 6  # one that does not count, and two


def test_what_a_side_cannot_do_is_told(capsys):
    now = FakeSide("now", [], [1.0] * 9)
    before = FakeSide("before", [], [1.0] * 9, why="there is no such case")
    assert compare_all(now, before) == []
    assert capsys.readouterr().err == "case: before: there is no such case\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_commit_that_is_not_there_is_told():
    with pytest.raises(click.ClickException, match="there is no commit 'never'"):
        tree_of("never")


@pytest.mark.usefixtures("frozen")
def test_a_side_says_what_it_cannot_do_and_does_what_it_can():
    side = Side()
    unknown, survey, case, done = map(
        side.answer,
        (
            {"prepare": "never"},
            {"prepare": "sizes-classes-2", "quick": True},
            {"prepare": "forest-small", "quick": True},
            {"line": "forest-small", "n_times": 2},
        ),
    )
    assert unknown == {"why": "there is no such case"}
    assert survey == {"why": "its lines are no work of ours alone"}
    assert (case["why"], case["lines"]) == ("", ["forest-small"])
    assert done["mb"] is None
    assert done["spent"] == pytest.approx(2 * done["seconds"])


def test_a_side_measures_its_own_tree_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=f"^this is to measure {re.escape(str(tmp_path))}"):
        main_of_side()


@pytest.mark.long
@pytest.mark.rest
def test_the_table_of_a_tree_beside_itself(monkeypatch):
    monkeypatch.setattr(compare, "tree_of", lambda base: ROOT)
    arguments = ["HEAD", "forest-small", "--turns", "1", "--quick"]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1].startswith("| forest-small | ")


@pytest.mark.long
@pytest.mark.realdata
def test_lines_of_cross_validations_are_compared(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(compare, "tree_of", lambda base: ROOT)
    cases = ["ratio-mushroom", "paper-car", "surface", "folds", "memory-validation-adult"]
    done = CliRunner().invoke(main, ["HEAD", *cases, "--turns", "1", "--quick"])
    assert done.exit_code == 0, done.output
    lines = [line.split(" | ")[0].removeprefix("| ") for line in done.stdout.splitlines()[2:]]
    assert "ratio-mushroom-fully_grown: 10 folds" in lines
    assert "surface: GridSearchCV" in lines
    assert "folds: connect4, 50 folds" in lines
    assert "memory-validation-adult: 50 folds, growth" in lines
    assert len(lines) == 2 + 2 + 4 + 10 + 12
