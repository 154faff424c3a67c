"""Pages keep the measure of `tests/pages.py`, and their Python prints what they show."""

import logging
import re
import sys
from types import SimpleNamespace

import pytest

from tests.pages import PAGES, ROOT, blocks, faults_of, long_lines, name_of, sentences

# Pages whose sentences are not yet written to the measure. The list gets shorter only.
EXEMPT = {
    "docs/development/decisions/0001-relocated-entries.md",
    "docs/development/decisions/0002-no-order-for-large-tables.md",
    "docs/development/decisions/0003-levels-not-helpers.md",
    "docs/development/decisions/0004-few-codes-stay-counted.md",
    "docs/development/decisions/0005-cuts-by-row.md",
    "docs/development/decisions/0006-held-out-rows-walk.md",
    "docs/development/decisions/0007-ties-by-key.md",
    "docs/development/decisions/0008-drawn-thresholds.md",
    "docs/development/decisions/0009-many-categories-pay.md",
}
HISTORY = "docs/development/second_house.md"  # names files that have moved


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_keep_the_measure(page):
    text, name = page.read_text(encoding="utf-8"), name_of(page)
    assert not long_lines(text), "\n".join(long_lines(text))
    if name in EXEMPT:
        assert faults_of(text), f"{name} keeps the measure: take it off the list"
    else:
        assert not faults_of(text), "\n".join(faults_of(text))


def test_the_measure_finds_what_it_should():
    many = " ".join(["word"] * 26)
    assert len(faults_of(f"{many}.")) == len(long_lines(f"{many}.")) == 1
    assert not faults_of("One two. " + "Three `x.y + 3` four. " * 3)
    assert not faults_of(f"```\n{many}\n```\n\n{'a' * 60} {'b' * 30}")
    assert len(faults_of("- one\n  two\n- " + " ".join(["w"] * 26))) == 1
    assert len(faults_of("| a | one sentence. And another one |\n|---|---|")) == 1
    assert len(faults_of(f"| {many} | a |")) == 1
    assert sentences("It has $O(n. m)$ and `a. b`. Two?\nYes, et al. 3.5 or\n\n- item") == [
        "It has Code and Code.",
        "Two?",
        "Yes, et al 3.5 or",
        "item",
    ]


def test_fences_say_what_they_hold():
    known = {"", "python", "text", "bash", "{toctree}", "{eval-rst}"}
    for page in PAGES:
        opened = re.findall(r"^```(.*)$", page.read_text(encoding="utf-8"), re.M)
        assert set(opened) <= known, (name_of(page), set(opened) - known)


def test_files_that_pages_name_are_there():
    there = {path.name for path in ROOT.glob("*") if path.is_file()}
    for folder in ("dtrees", "tests", "benchmarks", "docs"):
        there |= {path.name for path in (ROOT / folder).rglob("*")}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        named = re.findall(r"`(?:[\w.]+/)*(\w+\.(?:pyx|pxd|py|h))`", text)
        if name_of(page) != HISTORY:
            assert set(named) <= there, (name_of(page), set(named) - there)


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
    names = {"__name__": "__main__"}
    for code, shown in blocks(page):
        exec(compile(code, page.name, "exec"), names)
        assert capsys.readouterr().out == shown, code
