"""The table of special paths: what it tells of a path that is worth nothing, and its switches."""

import re
from pathlib import Path

import pytest

pytest.importorskip("click")

import click

from benchmarks import paths
from benchmarks.paths import (
    FREQUENT,
    PATHS,
    WORKS,
    Measured,
    Row,
    SpecialPath,
    Work,
    below_the_rule,
    lines_of,
    page_of,
    rows,
)

WORK = {"a work": Work("some rows", lambda scale: None)}
SWITCH = re.compile(r'PATH_IS_ON\("(\w+)"\)')


def planted(gain, digest="same"):
    """A path of one function, whose work takes `gain` times as long without it."""
    one = {"planted": SpecialPath(("search/_entry_scan.pyx::pass_over_short",), ("a work",))}

    def measure(work, off):
        return Measured(gain, digest) if off else Measured(1.0, "same")

    return list(rows(one, measure, 3, WORK))


def test_a_useless_path_is_told():
    useless, useful = planted(1.0), planted(1.2)
    assert below_the_rule(useless) == ["planted"]
    assert "Below the rule: planted." in page_of(useless)
    assert below_the_rule(useful) == []
    assert "Every path earns its place." in page_of(useful)


def test_a_path_that_changes_models_is_an_error():
    with pytest.raises(click.ClickException, match="planted changes the models of 'a work'"):
        planted(1.2, "other")


def test_more_lines_have_to_gain_more():
    frequent = Work("what users do", lambda scale: None, FREQUENT)
    asked = [Row("a path", n, WORK["a work"], 1.0).asked for n in (10, 250, 500)]
    assert asked == pytest.approx([1.03, 1.1, 1.2])
    assert Row("a path", 250, frequent, 1.0).asked == pytest.approx(1.5)


def test_the_best_work_of_a_path_counts():
    weak, strong = (Row("a path", 250, WORK["a work"], gain) for gain in (1.0, 1.3))
    assert below_the_rule([weak, strong]) == []


def test_every_switch_has_a_row_and_every_row_a_switch():
    found = {
        name
        for path in paths.CORE.rglob("*.p[yx][xd]")
        if path.name != "_paths.pxd"
        for name in SWITCH.findall(path.read_text())
    }
    assert found == set(PATHS)


@pytest.mark.parametrize("name", PATHS)
def test_code_and_works_of_a_path_are_there(name):
    path = PATHS[name]
    assert sum(map(lines_of, path.code)) > 5
    assert set(path.works) <= set(WORKS)


def test_works_run_and_their_models_have_digests(monkeypatch):
    monkeypatch.setattr(paths.data, "real", lambda name: pytest.fail("no real table is asked"))
    for name in ("two classes", "exact folds"):
        first, second = (paths.in_this_process(name, quick=True) for _ in range(2))
        assert first.digest == second.digest
        assert first.seconds > 0


def test_the_page_has_the_paths_of_the_table():
    page = Path(paths.CORE).parents[1] / "docs" / "development" / "paths.md"
    told = re.findall(r"^\| (\w+) \|", page.read_text(), re.MULTILINE)
    assert set(told) - {"path"} == set(PATHS)
