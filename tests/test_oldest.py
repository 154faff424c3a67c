"""The packages of `make test-oldest` are the oldest that pyproject.toml names, all of them."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent


def test_the_oldest_packages_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["all"], *extras["test"]]
    for name in ("pandas", "polars", "plot", "progress", "skops", "onnx", "cli"):
        lines += extras[name]
    oldest: dict[str, Version] = {}
    for requirement in map(Requirement, lines):
        for bound in requirement.specifier:
            assert bound.operator == ">=", requirement
            version = Version(bound.version)
            oldest[requirement.name] = max(version, oldest.get(requirement.name, version))
    text = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.M))
    assert set(pinned) == set(oldest)
    for name, version in oldest.items():  # the first release of 2.3 may be 2.3.1
        found = Version(pinned[name])
        assert found.release[: len(version.release)] == version.release, name
