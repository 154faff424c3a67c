"""The benchmarks run, on tiny tables. No test measures time."""

import pytest

pytest.importorskip("click")

import numpy as np
from click.testing import CliRunner

from benchmarks.__main__ import CASES, GROUPS, choose, main
from benchmarks.accuracy.seeds import compared
from benchmarks.cases import Scale
from benchmarks.validation.folds import apart
from benchmarks.validation.memory import groups_at_once
from dtrees import DecisionTreeClassifier


def test_names_are_unique_and_groups_choose():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    for group in GROUPS:
        assert choose((group,))


def quick_run(page, cases):
    """What a quick run of one case of each table writes."""
    done = CliRunner().invoke(main, ["--quick", "--output", str(page), *cases])
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    heads = [line for line in text.splitlines() if set(line) == set("|-")]
    assert len(heads) == len(cases)
    return text


@pytest.mark.long
@pytest.mark.rest
@pytest.mark.usefixtures("frozen")
def test_a_quick_run_writes_tables(tmp_path):
    quick_run(tmp_path / "page.md", ["forest-small", "sizes-classes-2"])


@pytest.mark.long
def test_a_quick_run_writes_tables_and_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    text = quick_run(tmp_path / "page.md", ["forest-small", "sizes-classes-2", "scale"])
    assert "![page-scale](page-scale.png)" in text
    assert (tmp_path / "page-scale.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
@pytest.mark.realdata
def test_a_quick_run_of_cross_validations_writes_tables_and_a_small_picture(tmp_path):
    pytest.importorskip("matplotlib")
    cases = ["ratio-mushroom", "everything-255", "surface", "folds"]
    text = quick_run(tmp_path / "page.md", cases)
    assert "extrapolated from 5 of" in text
    picture = (tmp_path / "page-folds.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) < 100_000


@pytest.mark.parametrize("n_threads", [1, 2])
def test_groups_at_once_are_those_whose_rows_wait(n_threads):
    X = np.random.default_rng(0).normal(size=(2_000, 2))
    first, second = (
        DecisionTreeClassifier(max_depth=2).fit(X, X[:, column] > 0).tree_.model
        for column in (0, 1)
    )
    assert groups_at_once([first] * 3, n_threads) == 1
    assert groups_at_once([first, second] * 3, n_threads) == 2


def test_labels_that_would_touch_are_moved_up():
    ends = {"high": (50, 5.0), "low": (50, 1.0), "middle": (50, 1.5)}
    assert apart(ends, 1.0) == [5.0, 1.0, 2.0]


def test_a_difference_counts_when_it_is_larger_than_the_noise_of_the_seeds():
    theirs = np.array([0.80, 0.82, 0.81, 0.79, 0.80])
    wobble = np.array([1, -1, 2, -2, 0]) / 1000
    verdicts = {
        shift: compared(theirs + wobble + shift, theirs, Scale())[-1]
        for shift in (-0.01, -0.001, 0.01)
    }
    assert verdicts[-0.01] == "**missed**: lower by 0.0100"
    assert verdicts[-0.001] == "within noise"
    assert verdicts[0.01] == "better"
