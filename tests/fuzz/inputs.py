"""The input fuzzer: tables of all kinds into every entry point, in children with limits.

    python -m tests.fuzz inputs --seed 7 --cases 500
    python -m tests.fuzz inputs --seed 7 --only 123      one case again, in this process

A case is drawn by (seed, number). What may come of it is an error of a documented type that names
an argument, or a result that holds what the documentation promises:

    predictions are finite, or labels that were given; shares of classes sum to one
    a fully grown tree tells apart what the table tells apart (`Drawn.keys`)
    a saved and loaded model predicts the same; so does a model of the same table once more
    a result's model of a size is the one that is fitted with this size

A crash, a hang, too much memory and every other error are findings.
"""

from __future__ import annotations

import argparse
import re
import secrets
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

import dtrees
from dtrees import model_selection
from dtrees.export import load, save
from tests.fuzz.children import outcomes
from tests.fuzz.tables import Drawn, draw

NAMED = re.compile(
    r"\b(X|y|[Cc]olumns?|sample_weight|groups|features?|samples?|n_splits|cv|class(es)?|rows?"
    r"|categorical_features|splits|2D array|labels?|targets?|max_depth|array|fits)\b"
)
FORESTS = ("RandomForest", "ExtraTrees", "Bagging")
FUNCTIONS = ("cross_validate", "cross_val_predict", "validation_surface", "cost_complexity_cv",
             "GridSearchCV")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """What is called."""

    drawn: Drawn
    y: Any
    y_kind: str
    weight: Any
    model: Any
    entry: str
    is_exact: bool

    def __str__(self) -> str:
        weighted = "" if self.weight is None else ", weighted"
        return f"{self.entry} of {self.model} on {self.drawn.kind}; y: {self.y_kind}{weighted}"


def case_of(seed: int, number: int) -> Case:
    """The case of a number."""
    rng = np.random.default_rng([seed, number])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        drawn = draw(rng)
    n_rows = _length(drawn.X)
    keys = None if drawn.keys is None else np.array(drawn.keys)
    is_exact = keys is not None and (keys != -2).all() and len(keys) == n_rows
    is_classifier = bool(rng.random() < 0.5)
    y, y_kind = _target(rng, n_rows, keys if is_exact else None, is_classifier)
    weight = None
    if rng.random() < 0.2:
        weight = rng.choice([0.5, 1.0, 2.0], n_rows)
        if rng.random() < 0.3 and n_rows:
            weight[0] = rng.choice([np.nan, -1.0, np.inf, 1e308])
    entry = "fit" if rng.random() < 0.7 else str(rng.choice(FUNCTIONS))
    suffix = "Classifier" if is_classifier else "Regressor"
    given: dict[str, Any] = {"random_state": 0, "categorical_features": drawn.categorical}
    if rng.random() < 0.5 or entry == "cost_complexity_cv":
        # Names that tell rows apart pay nothing: the tree knows each row, which is looked at.
        model = getattr(dtrees, f"DecisionTree{suffix}")(category_penalty=0.0, **given)
    else:
        made = getattr(dtrees, f"{rng.choice(FORESTS)}{suffix}")
        model = made(n_estimators=3, **given)
        is_exact = False
    if entry != "fit":
        model.set_params(max_depth=3)
    return Case(drawn, y, y_kind, weight, model, entry, is_exact)


def _length(X: Any) -> int:
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    return len(X) if isinstance(X, list) else 4


def _target(
    rng: np.random.Generator, n_rows: int, keys: np.ndarray | None, is_classifier: bool
) -> tuple[Any, str]:
    told = rng.integers(0, 3, n_rows) if keys is None else keys
    if rng.random() < 0.15:
        strange: dict[str, Callable[[], Any]] = {
            "short": lambda: told[:-1],
            "None": lambda: None,
            "NaN": lambda: np.full(n_rows, np.nan),
            "infinite": lambda: np.full(n_rows, np.inf),
            "two columns": lambda: np.c_[told, told],
            "objects": lambda: [object() for _ in range(n_rows)],
            "huge and tiny": lambda: rng.choice([1e308, -1e308], n_rows),
        }
        kind = str(rng.choice(list(strange)))
        return strange[kind](), kind
    if is_classifier:
        kinds: dict[str, Callable[[], Any]] = {
            "integers": lambda: told,
            "strings": lambda: np.array([f"k{key}" for key in told], dtype=object),
            "long": lambda: (told + 1).astype(np.uint64) + np.uint64(2**64 - 10),
            "series": lambda: pd.Series(told),
            "categories": lambda: pd.Series(told).astype("category"),
        }
    else:
        scale = float(rng.choice([1.0, 1e-170, 1e-310, 1e120]))
        kinds = {
            f"numbers times {scale}": lambda: told * scale,
            "huge constant": lambda: np.full(n_rows, 1.7e308),
            "integers": lambda: told,
            "float32": lambda: told.astype(np.float32),
        }
    kind = str(rng.choice(list(kinds)))
    return kinds[kind](), kind


def judge(case: Case) -> list[str]:
    """What is wrong with what comes of a case; nothing, as a rule."""
    try:
        return list(_complaints(case))
    except (ValueError, TypeError, NotImplementedError, dtrees.exceptions.ClusterError) as error:
        text = str(error)
        if not NAMED.search(text):
            return [f"{type(error).__name__} names no argument: {text[:300]!r}"]
        is_sound = case.drawn.keys is not None and case.y_kind in SOUND
        if is_sound and _weights_are_sound(case) and case.entry == "fit":
            return [f"a sound table is refused: {type(error).__name__}: {text[:300]}"]
        return []
    except MemoryError as error:
        return [f"MemoryError: {error}"]
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:300]}"]


SOUND = ("integers", "strings", "long", "series", "categories", "float32")


def _weights_are_sound(case: Case) -> bool:
    if case.weight is None:
        return True
    return bool(
        np.isfinite(case.weight).all() and (case.weight > 0).all() and case.weight.max() < 9
    )


def _complaints(case: Case) -> Iterator[str]:
    X, y, model = case.drawn.X, case.y, case.model
    if case.entry != "fit":
        yield from _of_functions(case)
        return
    model.fit(X, y, sample_weight=case.weight)
    if case.drawn.keys is None:
        yield "a table that is to be refused is fitted"
        return
    predicted = np.asarray(model.predict(X))
    given = np.asarray(y)
    if hasattr(model, "classes_"):
        if not set(predicted.ravel().tolist()) <= set(given.ravel().tolist()):
            yield "labels are predicted that were not given"
        shares = model.predict_proba(X)  # of several targets, a list
        of_targets = shares if isinstance(shares, list) else [shares]
        if not all(np.allclose(own.sum(axis=1), 1.0) for own in of_targets):
            yield "shares of classes do not sum to one"
    elif not np.isfinite(predicted).all():
        yield f"predictions are not finite: {predicted[:5]}"
    importances = model.feature_importances_
    if not (np.isfinite(importances).all() and (importances >= 0).all()):
        yield f"importances are {importances}"
    if case.is_exact and _weights_are_sound(case):
        if case.y_kind in SOUND:  # labels, whole numbers of a small range
            is_same = predicted.tolist() == given.tolist()
        else:
            # Fixed point (`dtrees.coding.target`): a mean of equal numbers is off by half of
            # 2**-51 of half the range. Its distance from the middle of the range, and their sum,
            # are rounded; so is the smallest of all floats, in the end.
            error = np.abs(predicted - given).max()
            is_same = error <= 2.0**-51 * np.abs(given).max() + np.finfo(float).smallest_subnormal
        if not is_same:
            yield "rows that the table tells apart are not told apart"
    again = type(model)(**model.get_params()).fit(X, y, sample_weight=case.weight)
    if not np.array_equal(again.predict(X), predicted):
        yield "the same fit predicts otherwise"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(model, path)
        if not np.array_equal(load(path).predict(X), predicted):
            yield "a loaded model predicts otherwise"


def _of_functions(case: Case) -> Iterator[str]:
    X, y, model = case.drawn.X, case.y, case.model
    params = None if case.weight is None else {"sample_weight": case.weight}
    if case.entry == "GridSearchCV":
        search = model_selection.GridSearchCV(model, {"max_depth": [1, 2]}, cv=2)
        search.fit(X, y, **(params or {}))
        return
    found = getattr(model_selection, case.entry)(model, X, y, cv=2, params=params)
    if case.entry == "cross_val_predict":
        if len(found) != len(y):
            yield "a row has no prediction"
        if np.asarray(found).dtype.kind == "f" and not np.isfinite(found).all():
            yield f"predictions are not finite: {found[:5]}"
    size: dict[str, Any] = {}
    if case.entry == "validation_surface":
        size = {name: int(getattr(found, name)[-1]) for name in ("max_depth", "min_samples_split")}
    elif case.entry == "cost_complexity_cv":
        size = {"ccp_alpha": float(found.ccp_alphas[-1])}
    if size:
        fitted = clone(model).set_params(**size).fit(X, y, sample_weight=case.weight)
        if not np.array_equal(found.model(**size).predict(X), fitted.predict(X)):
            yield f"the model of {size} that is cut out is not the one that is fitted"


def judge_some(numbers: Sequence[int], seed: int, plant: str | None = None) -> Iterator[str]:
    """What is wrong with each case, or nothing."""
    np.seterr(all="ignore")
    if plant is not None:
        PLANTS[plant]()
    for number in numbers:
        yield "\n    ".join(judge(case_of(seed, number)))


def findings(
    seed: int, numbers: Sequence[int], plant: str | None = None, **limits: float
) -> Iterator[tuple[int, str]]:
    """Cases that have findings, and what these are; cases run in children (`in_child`)."""
    for number, what in outcomes(judge_some, numbers, seed, plant, **limits):
        if what:
            yield number, what


def _plant_rounding() -> None:
    """Integers of 64 bits are categories as float64."""
    from dtrees.coding import column_types

    column_types.is_beyond_floats = lambda values: False


def _plant_trust() -> None:
    """Sparse matrices are not looked at."""
    from dtrees.coding import sparse_positions, tables
    from dtrees.model_selection import prepare

    sparse_positions.checked_sparse = tables.checked_sparse = lambda X, name="X": X
    prepare.check_sparse = lambda **arguments: None


def _plant_wait() -> None:
    """Columns of dates are waited for."""
    from dtrees.coding import tables

    tables.time_objects = lambda cells, name: threading.Event().wait()


def _plant_spin() -> None:
    """Columns of dates take for ever."""
    from dtrees.coding import tables

    def spin(cells: Any, name: str) -> Any:
        while True:
            pass

    tables.time_objects = spin


def _plant_hunger() -> None:
    """Columns of dates take all memory."""
    from dtrees.coding import tables

    def eat(cells: Any, name: str) -> Any:
        return np.ones(10**11), 1

    tables.time_objects = eat


PLANTS = {
    "rounding": _plant_rounding,
    "trust": _plant_trust,
    "wait": _plant_wait,
    "spin": _plant_spin,
    "hunger": _plant_hunger,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Look for findings; the number of cases that have some is printed, 1 is returned for any."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz inputs", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="default: drawn, and printed")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--only", type=int, default=None, help="one case, in this process")
    asked = parser.parse_args(arguments)
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    if asked.only is not None:
        case = case_of(seed, asked.only)
        print(case, case.drawn.X, case.y, sep="\n", flush=True)
        complaints = judge(case)
        print(*complaints or ["nothing is wrong"], sep="\n")
        return int(bool(complaints))
    print(f"seed {seed}, {asked.cases} cases", flush=True)
    start, n_found = time.perf_counter(), 0
    for number, what in findings(seed, range(asked.cases)):
        n_found += 1
        print(f"--seed {seed} --only {number}: {case_of(seed, number)}\n    {what}", flush=True)
    print(f"{n_found} findings in {asked.cases} cases, {time.perf_counter() - start:.0f} s")
    return int(n_found > 0)
