"""What every test may rely on: the hypothesis profile and the real data sets."""

import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# No deadline: two busy cores are not a property of the code. Derandomized: a change is judged by
# the same examples every time; `make test-long` looks for new ones.
settings.register_profile(
    "same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "long",
    deadline=None,
    max_examples=2000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_addoption(parser):
    """``--seed 17``: this one of the tests that draw what they do, and no other."""
    parser.addoption(
        "--seed", action="append", type=int, help="seeds of tests/parallel/test_random_layouts.py"
    )


def data_folder():
    """The folder of the real data sets, $DTREES_DATA or next to the project, or None."""
    folder = Path(os.environ.get("DTREES_DATA") or ROOT.parent / "shared" / "data")
    return folder if (folder / "load.py").is_file() else None


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


def pytest_collection_modifyitems(items):
    """Tests marked `realdata` are skipped, with the reason, where there are no real data."""
    if data_folder() is None:
        skip = pytest.mark.skip(reason="the real data sets (../shared/data) are not here")
        for item in items:
            if item.get_closest_marker("realdata"):
                item.add_marker(skip)
