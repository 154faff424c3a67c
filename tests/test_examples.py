"""The scripts of the gallery run, without a warning, and show their pictures."""

import ast
import runpy
from pathlib import Path

import pytest

pytest.importorskip("matplotlib").use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
pytest.importorskip("pandas")
pytest.importorskip("click")

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "docs" / "examples").glob("plot_*.py"))


@pytest.mark.one_of(8)
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


def test_each_has_a_number():
    numbers = [script.name.split("_")[1] for script in SCRIPTS]
    assert len(numbers) == len(set(numbers)) > 13


KEY = "dashboard_address"


def asks_for_a_port(node):
    """Whether code starts a cluster whose dashboard asks for Dask's port, which may be taken.

    The value None does so, too: Dask serves its metrics there.
    """
    if isinstance(node, ast.Dict):  # options of a cluster
        names = [getattr(key, "value", None) for key in node.keys]
        return KEY in names and ast.unparse(node.values[names.index(KEY)]) != "':0'"
    if not isinstance(node, ast.Call):
        return False
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    if KEY in given:
        return given[KEY] != "':0'"
    name = ast.unparse(node.func).rsplit(".", 1)[-1]
    has_cluster = name == "Client" and (node.args or "address" in given)
    return name in ("Client", "LocalCluster") and not has_cluster and None not in given


@pytest.mark.parametrize("folder", ["benchmarks", "docs/examples", "dtrees", "tests"])
def test_no_cluster_asks_for_the_port_of_the_dashboard(folder):
    """A user with a dashboard has it; pages are run with another one (`tests/test_pages.py`)."""
    files = (ROOT / folder).rglob("*.py")
    sources = {path: path.read_text(encoding="utf-8") for path in files}
    clusters = {path: text for path, text in sources.items() if KEY in text or "Client(" in text}
    assert clusters
    for path, text in clusters.items():
        asks = [node for node in ast.walk(ast.parse(text)) if asks_for_a_port(node)]
        assert asks == [], f"{path}: {ast.unparse(asks[0])[:90]}"
