"""A table, an estimator, a layout and a fault, all drawn by one seed.

What is drawn stands in a `Drawn`, whose text tells all of it: a seed that fails is its own report,
and is seen again with ``pytest tests/parallel/test_random_layouts.py --seed 17``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import scipy.sparse as sp

import dtrees

ESTIMATORS = [  # boosted models are fitted in memory only
    name
    for name in dtrees.__all__
    if name.endswith(("Classifier", "Regressor")) and "Boost" not in name
]
TABLES = ("numbers", "whole", "sparse", "frame", "hybrid")
PLACES = ("threads", "threads", "synchronous", "here", "processes")
FAULTS = ("none", "none", "kill", "restart", "stop")


@dataclass(frozen=True)
class Drawn:
    """One case.

    Attributes
    ----------
    seed : int
    table : str
        One of `TABLES`.
    n_rows, n_columns : int
    target : str
        "numbers", or a number of classes.
    labels : str
        What classes are called: "int", "str" or "bool".
    weights : str
        "none", "whole", "fractions" or "zeros".
    has_groups : bool
        Whether bags are drawn by group.
    estimator : str
    parameters : dict
    n_folds : int
        0: a fit; otherwise a cross-validation.
    given : str
        "numpy", "fortran", "pandas", "polars", "lists", "sparse" in memory, or "array" or "frame"
        of Dask.
    cuts, other_cuts : tuple of int
        Rows of the partitions of the table, and of y, weights and groups.
    lazy : tuple of str
        How y, weights and groups are given: "numpy", "array" or "series".
    n_jobs : int
    place : str
        One of `PLACES`.
    regime : str or None
    gather_rows : int
        Rows of a node below which it is finished in one place.
    fault : str
        One of `FAULTS`; of "processes" only.
    moment : float
        When that happens, in seconds after the fit has begun.
    """

    seed: int
    table: str
    n_rows: int
    n_columns: int
    target: str
    labels: str
    weights: str
    has_groups: bool
    estimator: str
    parameters: dict[str, Any]
    n_folds: int
    given: str
    cuts: tuple[int, ...]
    other_cuts: tuple[int, ...]
    lazy: tuple[str, str, str]
    n_jobs: int
    place: str
    regime: str | None
    gather_rows: int
    fault: str
    moment: float

    def __str__(self) -> str:
        lines = (f"  {field.name:12} {getattr(self, field.name)!r}" for field in fields(self))
        return "\n".join((f"seed {self.seed}:", *lines))

    @property
    def is_classifier(self) -> bool:
        """Whether classes are learned."""
        return self.estimator.endswith("Classifier")

    def model(self, n_jobs: int) -> Any:
        """The estimator."""
        return getattr(dtrees, self.estimator)(**self.parameters, n_jobs=n_jobs)


def drawn(seed: int) -> Drawn:
    """The case of a seed."""
    rng = random.Random(seed)
    n_rows = rng.choice([40, 150, 400, 900])
    table = rng.choice(TABLES)
    estimator = rng.choice(ESTIMATORS)
    is_classifier = estimator.endswith("Classifier")
    place = rng.choice(PLACES)
    on_cluster = place in ("here", "processes")
    is_lazy = (on_cluster and rng.random() < 0.8) or rng.random() < 0.4
    in_memory = {"numbers": ["numpy", "fortran", "pandas", "polars", "lists"], "sparse": ["sparse"]}
    in_memory["whole"] = in_memory["numbers"]
    kinds = in_memory.get(table, ["pandas"])
    if is_lazy:
        kinds = {"sparse": ["array"], "frame": ["frame"], "hybrid": ["frame"]}.get(
            table, ["array", "frame"]
        )
    regimes = [None, "local", "partitioned"] + ["replicated"] * on_cluster
    target = rng.choice(["2", "3", "7"]) if is_classifier else "numbers"
    has_bags = not estimator.startswith("DecisionTree")
    parameters = parameters_of(estimator, rng)
    return Drawn(
        seed=seed,
        table=table,
        n_rows=n_rows,
        n_columns=rng.randint(1, 7),
        target=target,
        labels=rng.choice(["int", "str", "bool"] if target == "2" else ["int", "str"]),
        weights=rng.choice(["none", "none", "whole", "fractions", "zeros"]),
        has_groups=has_bags and parameters["bootstrap"] and rng.random() < 0.3,
        estimator=estimator,
        parameters=parameters,
        n_folds=rng.choice([0, 0, 2, 3]),
        given=rng.choice(kinds),
        cuts=cuts_of(n_rows, rng),
        other_cuts=cuts_of(n_rows, rng),
        lazy=tuple(rng.choice(["numpy", "array", "series"]) for _ in range(3)),  # type: ignore
        n_jobs=rng.choice([1, 2, 3]),
        place=place,
        regime=rng.choice(regimes),
        gather_rows=rng.choice([30, 100, 1000]),
        fault=rng.choice(FAULTS) if place == "processes" else "none",
        moment=rng.uniform(0, 1.5),
    )


def parameters_of(estimator: str, rng: random.Random) -> dict[str, Any]:
    """Parameters of an estimator, as users might set them."""
    found: dict[str, Any] = {
        "random_state": rng.randrange(1000),
        "max_depth": rng.choice([None, None, 1, 3, 8]),
        "min_samples_leaf": rng.choice([1, 1, 3, 0.05]),
        "min_samples_split": rng.choice([2, 2, 10, 0.1]),
        "max_bins": rng.choice([None, 8, 64, 255]),
        "handle_unknown": rng.choice(["missing", "majority"]),
        "max_leaf_nodes": rng.choice([None, None, None, 6]),
        "ccp_alpha": rng.choice([0.0, 0.0, 0.0, 0.01]),
        "min_impurity_decrease": rng.choice([0.0, 0.0, 0.001]),
    }
    if estimator.endswith("Classifier"):
        found["criterion"] = rng.choice(["gini", "entropy"])
        found["class_weight"] = rng.choice([None, None, "balanced"])
    else:
        found["criterion"] = rng.choice(["squared_error", "squared_error", "poisson"])
    if not estimator.startswith("Bagging"):
        found["max_features"] = rng.choice([None, "sqrt", 0.5])
    if not estimator.startswith("DecisionTree"):
        found["n_estimators"] = rng.randint(1, 4)
        found["bootstrap"] = rng.random() < 0.7
        if found["bootstrap"]:
            found["max_samples"] = rng.choice([None, None, 0.6])
        later = random.Random(f"samples {found['random_state']}")  # other draws stay
        if not found["bootstrap"] and later.random() < 0.5:
            found["max_samples"] = later.choice([0.6, 10])
        if later.random() < 0.2:
            found["colsample_bytree"] = later.choice([0.4, 0.7])
    return found


def cuts_of(n_rows: int, rng: random.Random) -> tuple[int, ...]:
    """Sizes of partitions, of which some may be small."""
    places = sorted({rng.randrange(1, n_rows) for _ in range(rng.choice([0, 1, 3, 9]))})
    return tuple(np.diff([0, *places, n_rows]).tolist())


# ---------------------------------------------------------------------------------------------
# tables


def table_of(case: Drawn) -> Any:
    """X in memory: a dense array, or a data frame."""
    rng = np.random.default_rng(case.seed)
    n_rows, n_columns = case.n_rows, case.n_columns
    X = rng.normal(size=(n_rows, n_columns)).round(int(rng.integers(0, 4)))
    if case.table == "whole":
        return rng.integers(-3, 40, (n_rows, n_columns)).astype(np.int64)
    if case.table == "sparse":
        return np.where(rng.random(X.shape) < 0.4, X, 0.0)
    X[rng.random(X.shape) < 0.05] = np.nan
    if case.table == "numbers":
        return X
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)])
    frame["kind"] = pd.Categorical(rng.choice(["p", "q", "r", "s"], n_rows))
    frame["word"] = rng.choice([f"w{i}" for i in range(30)], n_rows)
    frame["flag"] = rng.random(n_rows) < 0.5
    frame["whole"] = pd.array(rng.integers(0, 300, n_rows), dtype="Int64")
    frame.loc[frame.index[::11], "whole"] = pd.NA
    if case.table == "hybrid":
        both = rng.choice(np.array(["1", "2.5", "7", "u", "v", None], dtype=object), n_rows)
        frame["both"] = pd.Series(both, dtype=object)
    return frame


def target_of(case: Drawn) -> np.ndarray:
    """Y in memory: numbers, not negative, or labels of which each is there."""
    rng = np.random.default_rng([case.seed, 1])
    X = table_of(case)
    values = X.iloc[:, 0].to_numpy() if isinstance(X, pd.DataFrame) else X[:, 0]
    signal = np.nan_to_num(values.astype(float)) + rng.normal(size=case.n_rows)
    if case.target == "numbers":
        return np.abs(signal).round(3) + 0.001
    n_classes = int(case.target)
    found = np.clip(np.floor(signal + n_classes / 2), 0, n_classes - 1).astype(int)
    found[:n_classes] = np.arange(n_classes)
    if case.labels == "str":
        return np.array([f"class {k}" for k in range(n_classes)])[found]
    return found.astype(bool) if case.labels == "bool" else found


def weights_of(case: Drawn) -> np.ndarray | None:
    """Weights in memory."""
    rng = np.random.default_rng([case.seed, 2])
    options = {"whole": [1, 2, 5], "fractions": [0.5, 1, 2.25], "zeros": [0, 1, 1, 1.5]}
    if case.weights == "none":
        return None
    return rng.choice(options[case.weights], case.n_rows).astype(float)


def groups_of(case: Drawn) -> np.ndarray | None:
    """Labels of the groups that are drawn together."""
    rng = np.random.default_rng([case.seed, 3])
    return rng.integers(0, case.n_rows // 3, case.n_rows) if case.has_groups else None


# ---------------------------------------------------------------------------------------------
# as they are given


def given_table(case: Drawn) -> Any:
    """X as it is given."""
    X = table_of(case)
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X).rename(columns="x{}".format)
    if case.given == "array":
        array = da.from_array(X, chunks=(case.cuts, -1))
        return array.map_blocks(sp.csr_array) if case.table == "sparse" else array
    if case.given == "frame":
        return parted(frame, case.cuts)
    if case.given == "polars":
        import polars

        return polars.from_pandas(frame, nan_to_null=True)
    made = {
        "numpy": lambda: X,
        "fortran": lambda: np.asfortranarray(X),
        "lists": lambda: X.tolist(),
        "sparse": lambda: sp.csc_array(X) if case.seed % 2 else sp.csr_matrix(X),
        "pandas": lambda: frame,
    }
    return made[case.given]()


def given_column(values: np.ndarray | None, case: Drawn, which: int) -> Any:
    """Y, weights or groups as they are given."""
    kind = case.lazy[which] if case.given in ("array", "frame") else "numpy"
    if values is None or kind == "numpy":
        return values
    if kind == "array":
        return da.from_array(values, chunks=(case.other_cuts,))
    return parted(pd.Series(values, name=f"column {which}"), case.cuts)


def parted(frame: Any, cuts: tuple[int, ...]) -> Any:
    """A data frame or series in partitions of these sizes, each with its own categories."""
    ends = np.cumsum(cuts).tolist()
    parts = [frame.iloc[a:b].copy() for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    meta = frame.iloc[:0].copy()
    if isinstance(frame, pd.DataFrame):
        for name in frame.select_dtypes("category"):
            meta[name] = dd.utils.clear_known_categories(meta[name])
            for part in parts:
                part[name] = part[name].cat.remove_unused_categories()
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=meta, verify_meta=False)
