"""The Python of the pages prints what they show, and the files that they name are there."""

import logging
import re
import sys
from types import SimpleNamespace

import pytest

from tests.pages import PAGES, ROOT, blocks, name_of


def test_files_that_pages_name_are_there():
    there = {path.name for path in ROOT.glob("*") if path.is_file()}
    for folder in ("dtrees", "tests", "benchmarks", "docs"):
        there |= {path.name for path in (ROOT / folder).rglob("*")}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"`(?:[\w.]+/)*(\w+\.(?:pyx|pxd|py|h))`", text)
        assert set(named) <= there, (name_of(page), set(named) - there)


def test_tests_that_a_page_names_are_there():
    page = ROOT / "docs" / "development" / "dask_behaviours.md"
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", page.read_text(encoding="utf-8"))
    assert len(named) > 20
    for file, test in named:
        folder = ROOT / "tests" / ("" if "/" in file else "parallel")
        assert f"def {test}(" in (folder / file).read_text(encoding="utf-8"), (file, test)


class NoQueue:
    """What a cluster of a job queue has besides."""

    def adapt(self, **_):
        """Jobs that come and go are not played."""


@pytest.fixture
def clusters(monkeypatch):
    """Clusters that pages ask for are threads here; all of them are closed in the end."""
    distributed = pytest.importorskip("distributed")
    opened = []

    def cluster(*_, n_workers=1, **options):
        known = {name: options[name] for name in ("name", "threads_per_worker") if name in options}
        known = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0, **known}
        kind = type("OneProcess", (NoQueue, distributed.LocalCluster), {})
        opened.append(kind(n_workers=min(n_workers, 2), processes=False, **known))
        return opened[-1]

    def client(address=None, **options):
        known = isinstance(address, distributed.LocalCluster)
        opened.append(distributed.Client(address if known else cluster(**options)))
        return opened[-1]

    monkeypatch.setattr("dask.distributed.Client", client)
    monkeypatch.setattr("dask.distributed.LocalCluster", cluster)
    monkeypatch.setattr("dask.distributed.SSHCluster", cluster)
    for module, kind in (
        ("dask_kubernetes", ""),
        ("dask_kubernetes.operator", "KubeCluster"),
        ("dask_jobqueue", "SLURMCluster"),
    ):
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(**{kind: cluster}))
    yield
    for each in reversed(opened):  # clients give the default back to the one before
        each.close()


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Its folder is that of a reader, with the examples; figures are drawn for nobody."""
    pytest.importorskip("matplotlib").use("Agg")
    pytest.importorskip("pandas")
    from matplotlib import pyplot

    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    log = logging.getLogger("dtrees")
    handlers, level = list(log.handlers), log.level
    yield
    log.handlers[:] = handlers
    log.setLevel(level)
    pyplot.close("all")


@pytest.mark.long
@pytest.mark.rest
@pytest.mark.usefixtures("reader", "clusters")
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_the_python_of_a_page_prints_what_it_shows(page, capsys):
    """Blocks of a page follow each other: what one defines, the next one has."""
    for code, _ in blocks(page):
        for module in re.findall(r"^(?:import|from) ([\w.]+)", code, re.M):
            pytest.importorskip(module)
    names = {"__name__": "__main__"}
    for code, shown in blocks(page):
        exec(compile(code, page.name, "exec"), names)
        assert capsys.readouterr().out == shown, code
