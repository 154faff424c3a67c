"""``python -m tests.peers``: scikit-learn's tests with our classes, and the list in README.md."""

import re
import sys
from collections import Counter
from pathlib import Path

import pytest
import sklearn

VERSION = "1.9"
ROOT = Path(sklearn.__file__).parent
LIST = Path(__file__).with_name("README.md")
FILES = {
    "tree": ("export", "monotonic_tree", "tree"),
    "ensemble/_hist_gradient_boosting": (
        *("compare_lightgbm", "gradient_boosting", "monotonic_constraints", "warm_start"),
    ),
    "model_selection": (
        *("classification_threshold", "plot", "search", "successive_halving", "validation"),
    ),
    ".": ("calibration",),
}
SUITES = [
    *("ensemble/tests", "inspection/tests", "inspection/_plot/tests"),
    *(f"{folder}/tests/test_{name}.py" for folder, names in FILES.items() for name in names),
]
OPTIONS = ("-q", "-c", "/dev/null", "--rootdir", str(ROOT), "-p", "no:cacheprovider")
OPTIONS = (*OPTIONS, "-p", "tests.peers.plugin", "--timeout", "120")
IN_PROCESSES = ("-n", "2", "--dist", "worksteal", "--tb=line", "--no-summary")


class Outcomes:
    """What became of each test: "passed", "skipped", or the last line of the error."""

    def __init__(self):
        self.found = {}

    def pytest_runtest_logreport(self, report):
        name = report.nodeid.replace("tests/", "").replace(".py::", ": ").replace("|", "/")
        if report.failed:
            self.found[name] = str(report.longrepr).strip().splitlines()[-1]
        elif report.skipped or report.when == "call":
            self.found.setdefault(name, report.outcome)

    def pytest_collectreport(self, report):
        if report.failed:
            self.found[report.nodeid] = "cannot be collected"


def listed():
    """Rows of the tables in the list: cause, number of tests, and patterns of their names.

    A test without a case is all its cases, and a star stands for any part of one.
    """
    for line in LIST.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[1].isdigit():
            patterns, module = [], ""
            for file, test in re.findall(r"([\w/]+): |`([^`]+)`", cells[2]):
                module = file or module
                if test:
                    name = re.escape(f"{module}: {test}").replace(r"\*", ".*")
                    patterns.append(re.compile(name + ("" if "[" in test else r"(\[.*\])?")))
            yield cells[0], int(cells[1]), patterns


def differences(found):
    """What differs between the list and the outcomes, a line each."""
    told, causes = [], Counter()
    for cause, n_told, patterns in listed():
        n_before = causes.total()
        for pattern in patterns:
            names = [name for name in found if pattern.fullmatch(name)]
            told += [f"listed, passes: {name}" for name in names if found[name] == "passed"]
            told += [] if names else [f"listed, not there: {pattern.pattern}"]
            causes.update(names)
        n = causes.total() - n_before
        told += [] if n == n_told else [f"{n} tests, not {n_told}: {cause}"]
    told += [f"listed more than once: {name}" for name, n in causes.items() if n > 1]
    for name, said in found.items():
        if said not in ("passed", "skipped") and not causes[name]:
            told.append(f"not listed, fails: {name}\n    {said}")
    return told


def main(arguments):
    """Run all; or what arguments of pytest say, without a look at the list."""
    if not sklearn.__version__.startswith(f"{VERSION}."):
        print(f"skipped: the list is that of scikit-learn {VERSION}, not {sklearn.__version__}")
        return 0
    outcomes = Outcomes()
    chosen = arguments or [*IN_PROCESSES, *SUITES]
    paths = [str(ROOT / each) if (ROOT / each.split("::")[0]).exists() else each for each in chosen]
    code = pytest.main([*OPTIONS, *paths], plugins=[outcomes])
    if arguments:
        return code
    told, n = differences(outcomes.found), Counter(outcomes.found.values())
    n_failed = n.total() - n["passed"] - n["skipped"]
    print(*told, f"{n['passed']} pass, {n_failed} do not, {n['skipped']} are skipped", sep="\n")
    return int(bool(told) or not n["passed"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
