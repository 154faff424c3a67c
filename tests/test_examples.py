"""The scripts of the gallery run, without a warning, and show their pictures."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib").use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
pytest.importorskip("pandas")
pytest.importorskip("click")

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "docs" / "examples").glob("plot_*.py"))


@pytest.mark.one_of(4)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs(script, monkeypatch, capsys):
    shown = []

    def show():
        shown.extend(len(plt.figure(number).axes) for number in plt.get_fignums())
        plt.close("all")

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(plt, "show", show)
    runpy.run_path(str(script), run_name="__main__")
    assert shown
    assert all(shown)  # axes of each figure
    assert plt.get_fignums() == []
    assert capsys.readouterr().out


def test_there_are_thirteen():
    assert len(SCRIPTS) == 13
