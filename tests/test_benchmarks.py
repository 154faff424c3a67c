"""The benchmarks run, on tiny tables. No test measures time."""

import pytest

pytest.importorskip("click")

import numpy as np
from click.testing import CliRunner

from benchmarks.__main__ import CASES, GROUPS, choose, main
from benchmarks.accuracy.seeds import compared
from benchmarks.cases import Scale


def test_names_are_unique_and_groups_choose():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    for group in GROUPS:
        assert choose((group,))


def test_a_quick_run_writes_tables_and_the_picture(tmp_path):
    pytest.importorskip("matplotlib")
    page = tmp_path / "page.md"
    cases = ["forest-small", "sizes-classes-2", "scale"]
    done = CliRunner().invoke(main, ["--quick", "--output", str(page), *cases])
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    heads = [line for line in text.splitlines() if set(line) == set("|-")]
    assert len(heads) == len(cases)
    assert "![page-scale](page-scale.png)" in text
    assert (tmp_path / "page-scale.png").read_bytes().startswith(b"\x89PNG")


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
