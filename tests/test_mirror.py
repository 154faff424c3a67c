"""Tests mirror the package: a module's tests stand in a file of its name, in a folder of its name.

``dtrees/core/stores/sampled/_random_split_simd.pyx`` has
``tests/core/stores/sampled/test_random_split_simd.py``. Modules that are tested through others only
are listed in `mirror.txt`, which gets shorter: a new module is not added to it, and one that has
got its file is taken away.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LISTED = Path(__file__).with_name("mirror.txt").read_text(encoding="ascii").split()


def modules():
    found = [*(ROOT / "dtrees").rglob("*.py"), *(ROOT / "dtrees").rglob("*.pyx")]
    return {
        path.relative_to(ROOT / "dtrees").as_posix()
        for path in found
        if path.stem[:2] != "__" and path.stem != "_testing"
    }


def file_of(module):
    path = Path(module)
    return ROOT / "tests" / path.parent / f"test_{path.stem.lstrip('_')}.py"


def without_tests():
    return {module for module in modules() if not file_of(module).is_file()}


def test_every_module_has_a_file_of_tests():
    assert without_tests() - set(LISTED) == set()


def test_the_list_holds_nothing_else():
    assert set(LISTED) - without_tests() == set()
    assert sorted(LISTED) == LISTED
