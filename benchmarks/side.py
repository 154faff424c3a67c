"""One side of `compare`: does the work of cases of the tree that it stands in, when it is asked.

It is run as a file, so that an earlier tree, which may not have it, can be measured by it. A line
of JSON comes in, and one goes out:

    {"prepare": "letter"}             {"why": "", "work": "letter 20,000 × 16", "lines": ["letter"]}
    {"line": "letter", "n_times": 3}  {"spent": 0.3, "seconds": 0.1, "mb": null}

`why` says why a case cannot be done. `spent` are seconds of all times, `seconds` and `mb` are of
one; null where the benchmarks do not measure it.

Cases, tables and models are those of the tree's own package `benchmarks`, which uses the names of
parameters of its time. Surveys have no such work of ours; it is put together here, from public
functions and from what the package has had since it has had surveys of cross-validation.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold

import dtrees
from benchmarks import data
from benchmarks.__main__ import CASES
from benchmarks.cases import Contest, Fit, Scale, Skipped
from benchmarks.measure import MB, in_a_child, memory, timed
from dtrees.model_selection import GridSearchCV, cross_validate, validation_surface

Lines = dict[str, Callable[[], Any]]


class Peak(NamedTuple):
    """What work returns that measures itself: MB, and seconds if these are its own."""

    mb: float
    seconds: float | None = None


class Side:
    """Cases of this tree, and the one that is prepared."""

    def __init__(self) -> None:
        self.cases = {case.name: case for case in CASES}
        self.lines: Lines = {}

    def prepare(self, name: str, *, quick: bool = False) -> dict[str, Any]:
        """Make a case ready: its words and its lines, or why it cannot be done."""
        self.lines = {}
        if name not in self.cases:
            return {"why": "there is no such case"}
        scale = Scale(quick)
        try:
            self.lines = lines_of(name, self.cases[name].prepare(scale), scale)
        except Skipped as why:
            return {"why": str(why)}
        except (ImportError, AttributeError) as error:  # of an earlier tree
            return {"why": f"the tree has no such benchmark: {error}"}
        return {"why": "", "work": self.cases[name].work, "lines": list(self.lines)}

    def measure(self, line: str, n_times: int) -> dict[str, Any]:
        """Do the work of a line."""
        turns = [timed(self.lines[line]) for _ in range(n_times)]
        spent, result = sum(seconds for seconds, _ in turns), turns[-1][1]
        if isinstance(result, Peak):
            return {"spent": spent, "seconds": result.seconds, "mb": result.mb}
        return {"spent": spent, "seconds": spent / n_times, "mb": None}

    def answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """What a question is answered with."""
        if "prepare" in question:
            return self.prepare(question["prepare"], quick=question.get("quick", False))
        return self.measure(**question)


def lines_of(name: str, prepared: Any, scale: Scale) -> Lines:
    """Work of ours in the lines of a case."""
    if isinstance(prepared, Contest):
        return {name: prepared.ours}
    if isinstance(prepared, Fit):
        return {name: partial(peak_of_fit, prepared)}
    for beginning, works in SURVEYS.items():
        if name.startswith(beginning):
            return {f"{name}: {words}": work for words, work in works(name, scale)}
    raise Skipped("its lines are no work of ours alone")


def peak_of_fit(fit: Fit) -> Peak:
    """Of a process of its own."""
    found = memory(fit)
    return Peak(found.peak_mb, found.seconds)


Works = Iterator[tuple[str, Callable[[], Any]]]


def of_ratios(name: str, scale: Scale) -> Works:
    """One fit, and ten folds with the final model."""
    from benchmarks.validation import ratios

    known: dict[str, tuple[str, Any, int]] = {
        f"paper-{table}": (table, {"min_samples_leaf": 10}, 0) for table in ratios.PAPER
    }
    for work, (table, parameters, n_trees, *_) in ratios.WORKS.items():
        known[f"ratio-{work.replace(', ', '-').replace(' ', '_')}"] = table, parameters, n_trees
    table, parameters, n_trees = known[name]
    X, y = data.real_part(table, scale)
    model = ratios.estimator_of(y, n_trees, parameters)
    yield "one fit", lambda: clone(model).fit(X, y)
    yield f"{ratios.FOLDS} folds", partial(validate, model, X, y, ratios.FOLDS)


def of_surface(name: str, scale: Scale) -> Works:
    """Trees of all sizes."""
    from benchmarks.validation import ratios, surface

    X, y = data.real_part(surface.NAME, scale)
    tree = ratios.estimator_of(y, 0, {})
    splits = list(KFold(ratios.FOLDS, shuffle=True, random_state=0).split(y))
    largest = max(2, int(surface.LARGEST_SHARE * len(y)))
    sizes = np.unique(np.linspace(2, largest, surface.SIZES).astype(int)).tolist()
    grown = partial(validation_surface, tree, X, y, min_samples_split=sizes, cv=splits)
    grid = {"max_depth": grown().max_depth.tolist(), "min_samples_split": sizes}
    yield "cross_validate", partial(cross_validate, tree, X, y, cv=splits)
    yield "validation_surface", grown
    yield "and cost_complexity", lambda: grown().cost_complexity()
    yield "GridSearchCV", lambda: GridSearchCV(tree, grid, cv=splits).fit(X, y)


def of_folds(name: str, scale: Scale) -> Works:
    """Numbers of folds."""
    from benchmarks.validation import folds

    for table in folds.NAMES:
        X, y = data.real_part(table, scale)
        tree = folds.estimator_of(y, 0, {"min_samples_leaf": folds.LEAF})
        for n in folds.FOLDS:
            yield f"{table}, {n} folds", partial(validate, tree, X, y, n)


def of_memory(name: str, scale: Scale) -> Works:
    """Peaks of one fit and of numbers of folds, in processes of their own."""
    from benchmarks.validation import memory as of_validation

    work = name.removeprefix("memory-validation-")
    table = of_validation.table_of(work, scale)
    folder = tempfile.TemporaryDirectory()  # until its work is forgotten
    joblib.dump(table, Path(folder.name) / "table")

    def peak(part: str, n_folds: int) -> Peak:
        arguments = str(Path(folder.name) / "table"), part, work, str(n_folds)
        whole, trees, _ = in_a_child("benchmarks.validation.memory", *arguments)
        return Peak((int(whole) - int(trees)) / MB)  # trees are subtracted from a growth

    for n in (0, *of_validation.WORKS[work].folds):
        for part in ("whole", "growth"):
            yield f"{f'{n} folds' if n else 'one fit'}, {part}", partial(peak, part, n)


def validate(model: Any, X: Any, y: np.ndarray, n_folds: int) -> dict[str, Any]:
    """`cross_validate` over random folds."""
    splits = list(KFold(n_folds, shuffle=True, random_state=0).split(y))
    return cross_validate(model, X, y, cv=splits)


SURVEYS: dict[str, Callable[[str, Scale], Works]] = {
    "ratio-": of_ratios,
    "paper-": of_ratios,
    "surface": of_surface,
    "folds": of_folds,
    "memory-validation-": of_memory,
}


def main() -> None:
    """Answer until nothing more is asked."""
    warnings.simplefilter("ignore")
    if not Path(dtrees.__file__).resolve().is_relative_to(Path.cwd()):
        sys.exit(f"this is to measure {Path.cwd()}, and dtrees is {dtrees.__file__}")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what cases print is no answer
    side = Side()
    for line in sys.stdin:
        answers.write(json.dumps(side.answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
