"""What every test may rely on: the hypothesis profile and the real data sets."""

import gc
import importlib.util
import multiprocessing
import os
import zlib
from collections import defaultdict
from contextlib import contextmanager, suppress
from pathlib import Path

import dask
import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from tests.pairs import rest_of

STATES = {}  # of generators of modules, as they were when their tests began
ROOT = Path(__file__).resolve().parent.parent

# No deadline: two busy cores are not a property of the code. Derandomized: a change is judged by
# the same examples every time, in CI by more; `make test-long` looks for new ones.
for name, n_examples in ("same", 12), ("more", 50):
    settings.register_profile(
        name,
        deadline=None,
        derandomize=True,
        max_examples=n_examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.register_profile(
    "long",
    deadline=None,
    max_examples=2000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
# Hypothesis draws constants of all modules of the project that are loaded by then. So examples
# would depend on the tests before, and on lines that a law does not touch. No setting says no.
if settings().derandomize:
    with suppress(ImportError):  # old versions draw none
        from hypothesis.internal.conjecture import providers

        providers.is_local_module_file = lambda _: False

# scikit-learn's boosting and LightGBM on one thread: several wait for each other in a loop, which
# takes up to a hundred times as long beside other processes. It is read as they are loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Workers of Dask are forked from a process that has imported what they need, which takes them a
# tenth of the time. `make chaos` starts them as Dask does by default; so do commands in processes.
STARTED_BY = "DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD"
ARE_FORKED = "forkserver" in multiprocessing.get_all_start_methods()
NEEDED = ("distributed.nanny", "distributed.worker", "pyarrow", "dtrees.parallel.partitioned")
if ARE_FORKED and STARTED_BY not in os.environ:
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})


# What Dask measures of its own loops and tasks, which no test asks for: half of what small fits on
# a cluster cost, and nearly all of what a cluster costs that waits.
dask.config.set(
    {
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.interval": "1s",
        "distributed.admin.system-monitor.interval": "5s",
    }
)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Collect tests without a look for garbage, and never look at them for it again.

    They are a few million objects, all of which are kept: each look costs a fifth of a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Let generators of a module draw the same in each test, whichever tests came before it."""
    for name, made in vars(getattr(item, "module", item)).items():
        if isinstance(made, np.random.Generator):
            key = item.module.__name__, name
            made.bit_generator.state = STATES.setdefault(key, made.bit_generator.state)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Between folders, what tests have left is put aside: hundreds of thousands of objects."""
    if nextitem is not None and item.path.parent != nextitem.path.parent:
        gc.freeze()


def pytest_collection_finish(session):
    """Start the process of which workers and other children are forked, where tests have some."""
    folders = {ROOT / "tests" / name for name in ("cli", "contracts", "fuzz", "parallel")}
    if ARE_FORKED and any(folders & set(item.path.parents) for item in session.items):
        from multiprocessing import forkserver

        from distributed.utils import get_mp_context

        from tests.fuzz.children import LOADED

        get_mp_context().set_forkserver_preload([*LOADED, *NEEDED, "tests.frozen"])
        forkserver.ensure_running()


def pytest_addoption(parser):
    """``--seed 17``: this one of the tests that draw what they do, and no other."""
    parser.addoption(
        "--seed", action="append", type=int, help="seeds of tests/parallel/test_random_layouts.py"
    )


def data_folder():
    """The folder of the real data sets, $DTREES_DATA or next to the project, or None."""
    folder = Path(os.environ.get("DTREES_DATA") or ROOT.parent / "shared" / "data")
    return folder if (folder / "load.py").is_file() else None


@pytest.fixture
def frozen():
    """What is there before a test is no garbage: collections look at what comes in it alone.

    Late in a run each of them would take a second of processor time.
    """
    gc.freeze()


@contextmanager
def training_sets_seen():
    """A list of the training sets that grow together meanwhile: they count what they share."""
    from dtrees.core.grow import shared

    found = []

    class Seen(shared.TrainingSets):
        def __init__(self, *_):
            found.append(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "TrainingSets", Seen)
        yield found


@pytest.fixture
def grown():
    """Training sets that have grown together in a test."""
    with training_sets_seen() as found:
        yield found


@pytest.fixture(scope="module")
def grown_so_far():
    """The same in the tests of a module, also in each example of one; clear it first."""
    with training_sets_seen() as found:
        yield found


@pytest.fixture(scope="session")
def real_data():
    """``load(name) -> X, y, task`` of the real data sets; skips where they are not."""
    folder = data_folder()
    if folder is None:
        pytest.skip("the real data sets (../shared/data) are not here")
    spec = importlib.util.spec_from_file_location("shared_load", folder / "load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load


@pytest.hookimpl(tryfirst=True)  # before those that are marked `long` are taken away
def pytest_collection_modifyitems(config, items):
    """Choose cases of tests that have many; skip what needs real data where there are none."""
    if not (config.getoption("lf", False) or any("[" in each for each in config.args)):
        mark_the_rest(items)  # who names cases wants them
    if data_folder() is None:
        skip = pytest.mark.skip(reason="the real data sets (../shared/data) are not here")
        for item in items:
            if item.get_closest_marker("realdata"):
                item.add_marker(skip)


def mark_the_rest(items):
    """Mark as `long` and `rest` all but a third of the cases of a test marked ``one_of(3)``.

    Which a third: some that meet as many values of each parameter as can be, in an order that a
    checksum of their names gives.
    """
    cases = defaultdict(list)
    for item in items:
        marker = item.get_closest_marker("one_of")
        if marker and not (item.get_closest_marker("long") or item.get_closest_marker("chaos")):
            cases[item.nodeid.split("[")[0]].append((zlib.crc32(item.name.encode()), item))
    for several in cases.values():
        several.sort(key=lambda case: case[0])
        (n,) = several[0][1].get_closest_marker("one_of").args
        mixes = [item.callspec.params for _, item in several]
        for place in rest_of(mixes, -(-len(mixes) // n)):
            several[place][1].add_marker("long")
            several[place][1].add_marker("rest")
