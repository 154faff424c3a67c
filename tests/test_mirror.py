"""Tests mirror the package: a module's tests stand in a file of its name, in a folder of its name.

``dtrees/core/stores/sampled/_random_split.pyx`` has
``tests/core/stores/sampled/test_random_split.py``.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_every_module_has_a_file_of_tests():
    missing = []
    for path in [*(ROOT / "dtrees").rglob("*.py"), *(ROOT / "dtrees").rglob("*.pyx")]:
        folder = ROOT / "tests" / path.parent.relative_to(ROOT / "dtrees")
        is_tested = (folder / f"test_{path.stem.lstrip('_')}.py").is_file()
        if path.stem[:2] != "__" and path.stem != "_testing" and not is_tested:
            missing.append(path.relative_to(ROOT).as_posix())
    assert missing == []
