"""Every public way in for a table, called with damaged sparse matrices; run in children."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.pipeline import make_pipeline

MODULES = ("dtrees", "dtrees.model_selection", "dtrees.inspection", "dtrees.export")
N = 40
ROWS = np.arange(N)
FAR = 10**8
BEGUN = "begun"


def table() -> np.ndarray:
    """Numbers, many of them zero."""
    values = np.random.default_rng(0).integers(0, 3, (N, 6)).astype(float)
    values[0] = 1.0
    return values


def damages(format: str) -> Iterator[tuple[str, Any]]:
    """Damaged matrices of a format, as matrix and as array, with what was done to them."""
    for make in (getattr(sp, f"{format}_array"), getattr(sp, f"{format}_matrix")):
        whole = make(table())
        for name in ("indices", "indptr", "row", "col", "offsets"):
            values = getattr(whole, name, None)
            if values is None:
                continue
            for place, value in ((1, FAR), (-1, FAR), (2, -1))[
                : 3 if "array" in make.__name__ else 1
            ]:
                matrix = whole.copy()
                changed = values.copy()
                if abs(place) >= len(changed):
                    continue
                changed[place] = value
                if name in ("row", "col"):
                    coords = list(matrix.coords)
                    coords[("row", "col").index(name)] = changed
                    matrix.coords = tuple(coords)
                elif name == "offsets":
                    matrix.offsets = changed[:-1]
                else:
                    setattr(matrix, name, changed)
                yield f"{type(matrix).__name__}.{name}[{place}] = {value}", matrix


def lil_and_dok() -> Iterator[tuple[str, Any]]:
    """Damaged matrices that are Python's lists and dicts."""
    for make in (sp.lil_array, sp.lil_matrix):
        matrix = make(table())
        matrix.rows[2] = [0, FAR]
        matrix.data[2] = [1.0, 2.0]
        yield f"{make.__name__}: column {FAR}", matrix
    for make in (sp.dok_array, sp.dok_matrix):
        matrix = make(table())
        matrix._dict[(FAR, 0)] = 1.0
        yield f"{make.__name__}: row {FAR}", matrix


def all_damages() -> list[tuple[str, Any]]:
    """Damaged matrices of all formats."""
    formats = ("csr", "csc", "bsr", "coo", "dia")
    return [*(found for format in formats for found in damages(format)), *lil_and_dok()]


def public() -> dict[str, Any]:
    """Public classes and functions, each by one of its names."""
    found = {}
    for module in MODULES:
        home = import_module(module)
        found.update({getattr(home, name): f"{module}.{name}" for name in home.__all__})
    return {name: value for value, name in found.items()}


def takes_table(function: Any) -> bool:
    """Whether one of the arguments is a table; methods of dict have no signature."""
    try:
        return callable(function) and "X" in inspect.signature(function).parameters
    except ValueError:
        return False


def entries() -> dict[str, list[str]]:
    """Public functions, and methods of public classes, that take a table; by their owner."""
    found = {}
    for name, value in public().items():
        if not inspect.isclass(value):
            found[name] = [name] if takes_table(value) else []
            continue
        methods = [method for method in dir(value) if not method.startswith("_")]
        taking = [each for each in methods if takes_table(getattr(value, each, None))]
        found[name] = [f"{name}.{each}" for each in taking]
    return {name: each for name, each in found.items() if each}


def arguments_for(function: Any, estimator: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Arguments by name, for those that a function has to have and for `given`."""
    known = {
        "estimator": estimator,
        "X": sp.csr_array(table()),
        "y": ROWS % 2,
        "splits": [(ROWS[:20], ROWS[20:]), (ROWS[20:], ROWS[:20])],
        "n_repeats": 2,
        "values": 0.5,
    }
    for name in {"forest", "model"} & set(inspect.signature(function).parameters):
        forest = import_module("dtrees").RandomForestClassifier(2)
        known[name] = forest.fit(table(), ROWS % 2)
    parameters = inspect.signature(function).parameters
    needed = {name: known[name] for name in known if name in parameters}
    return needed | {name: given[name] for name in given if name in parameters}


def callers(entry: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The entry as a function of keyword arguments, for every kind of estimator that it takes."""
    dtrees = import_module("dtrees")
    tree = dtrees.DecisionTreeClassifier(max_depth=2)
    owner, _, method = entry.rpartition(".")
    pipeline = make_pipeline(TfidfTransformer(), tree)  # which makes CSR of all
    if owner in MODULES:
        function = public()[entry]
        takes_estimator = "estimator" in inspect.signature(function).parameters
        estimators = (tree, dtrees.RandomForestRegressor(2), pipeline)
        for estimator in estimators if takes_estimator else (None,):
            name = f"{entry} of {type(estimator).__name__}" if takes_estimator else entry
            yield name, lambda e=estimator, **given: function(**arguments_for(function, e, given))
        return
    kind = public()[owner]
    if method == "prediction_interval":
        asked = intervals_of(kind)
        yield entry, lambda **given: asked(given.get("X", table()))
        return
    grids = {"estimator": tree, "param_grid": {}, "param_distributions": {"max_depth": [1]}}
    wanted = [name for name in grids if name in inspect.signature(kind).parameters]
    makes = {entry: kind(**{name: grids[name] for name in wanted})}
    if wanted and method == "fit":  # beyond, tables go to the first step, which is scikit-learn's
        of_pipeline = {"decisiontreeclassifier__max_depth": [1]}
        grids = dict.fromkeys(grids, of_pipeline) | {"estimator": pipeline}
        makes[f"{entry} of a Pipeline"] = kind(**{name: grids[name] for name in wanted})
    for name, made in makes.items():
        if hasattr(made, "n_iter"):
            made.set_params(n_iter=1)
        if hasattr(made, "n_estimators"):
            made.set_params(n_estimators=2)
        if method in ("predict_quantiles", "predict_cdf"):
            made.set_params(keep_rows=True)
        if method != "fit" and hasattr(made, "fit"):
            made.fit(table(), ROWS % 2)
        if method == "resume":  # as after the loss of a cluster
            made._fit_facts = {}
        if not hasattr(made, method):
            return
        bound = getattr(made, method)
        yield name, lambda b=bound, **given: b(**arguments_for(b, None, given))


def intervals_of(kind: type) -> Callable[..., Any]:
    """The method that predicts intervals, of something that has been fitted."""
    dtrees = import_module("dtrees")
    if hasattr(kind, "fit"):
        forest = kind(2, bootstrap=True, oob_score=True)
        return forest.fit(table(), ROWS % 2).prediction_interval
    validate = import_module("dtrees.model_selection").cross_validate
    tree = dtrees.DecisionTreeRegressor(max_depth=2)
    return validate(tree, table(), ROWS % 2, return_estimator=True).prediction_interval


def ask(entries: list[str]) -> Iterator[tuple[str, str, str]]:
    """What comes of every damage of X, and of what belongs to rows: (entry, what, outcome).

    Before it is known, the outcome is `BEGUN`: what was asked last is known of a process that dies.
    """
    column = sp.csc_array(table()[:, :1])
    column.indices[3] = FAR
    of_rows = [{name: column} for name in ("y", "groups", "sample_weight", "bootstrap_groups")]
    of_rows.append({"params": {"sample_weight": column}})
    for entry in entries:
        for name, call in callers(entry):
            for damage, matrix in all_damages():
                yield name, damage, BEGUN
                yield name, damage, _outcome(call, X=matrix)
            for given in of_rows:
                yield name, next(iter(given)), BEGUN
                yield name, next(iter(given)), _outcome(call, **given)


def _outcome(call: Callable[..., Any], **given: Any) -> str:
    try:
        call(**given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "ok"
