"""Candidates of a search: which of them stand inside one growth.

Some parameters only say where a tree ends, or how many trees there are. They are decided on what
has grown ([SF] 3), for each of the models of a cross-validation. Candidates that differ in nothing
else are one growth, which goes as far as the furthest of them::

    criterion=gini, max_depth=3 ────┐
    criterion=gini, max_depth=8 ────┴─▶ grown to depth 8 ──▶ cut at 3; whole
    criterion=entropy, max_depth=3 ───▶ grown to depth 3 ──▶ whole
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Number
from types import NoneType
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from dtrees.core.model.nested_trees import PruningGrid
from dtrees.estimators.boosting import BaseBoosting
from dtrees.estimators.fit_plan import MOST_ROWS, check_value, depth_of, rows_of_split

LATE = ("max_depth", "min_samples_split", "min_impurity_decrease", "max_leaf_nodes", "ccp_alpha")
N_TREES = "n_estimators"  # of a forest: decided later, too
N_ITERATIONS = "max_iter"  # of a boosted model: the only thing that is

Parameters = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Growth:
    """Candidates that are decided on the same grown trees."""

    given: Any  # tree or forest with its parameters as they are; never fitted
    estimator: Any  # has what the candidates share, and grows as far as the furthest of them
    places: Sequence[int]  # of the candidates, among all
    candidates: Sequence[Parameters]
    is_whole: bool  # there is one candidate, and nothing is left to decide

    def estimator_of(self, number: int) -> Any:
        """An estimator with the parameters of a candidate, not fitted."""
        return clone(self.given).set_params(**clone(dict(self.candidates[number]), safe=False))

    def n_trees(self) -> list[int | None]:
        """Trees of every candidate; None: a tree is no forest."""
        return _asked(self.given, self.candidates, N_TREES)

    def n_iterations(self) -> list[Any]:
        """Iterations that every candidate of a boosted model asks for."""
        return _asked(self.given, self.candidates, N_ITERATIONS)

    def limits(self, n_rows: int) -> PruningGrid:
        """Where the trees of every candidate end; shares are of `n_rows` that weigh."""
        depth, split, decrease, n_leaves, alpha = (
            _asked(self.given, self.candidates, name) for name in LATE
        )
        depths = {pair: depth_of(*pair) for pair in set(zip(depth, n_leaves, strict=True))}
        rows = {
            pair: rows_of_split(pair[1], n_rows)
            for pair in set(zip(map(type, split), split, strict=True))
        }
        return PruningGrid(
            np.array([depths[pair] for pair in zip(depth, n_leaves, strict=True)], dtype=np.int64),
            np.array([rows[type(least), least] for least in split], dtype=np.int64),
            np.array(decrease, dtype=np.float64),
            np.array([most or 0 for most in n_leaves], dtype=np.int64),
            np.array(alpha, dtype=np.float64),
        )

    def has_shares(self) -> bool:
        """Whether `limits` depend on the number of rows."""
        splits = _asked(self.given, self.candidates, "min_samples_split")
        return not _are_integers(splits)


def growths_of(
    estimator: Any, candidates: Sequence[Parameters]
) -> tuple[list[Growth], dict[int, Exception]]:
    """What has to be grown for all candidates; and what their fits would raise, by place.

    Raises ValueError where a name is no parameter of the estimator.
    """
    groups: dict[Hashable, list[int]] = {}
    errors: dict[int, Exception] = {}
    judged: dict[Any, Exception | None] = {}
    late = late_of(estimator)
    for names in {frozenset(candidate) for candidate in candidates}:
        clone(estimator).set_params(**dict.fromkeys(names))
    for place, candidate in enumerate(candidates):
        others = {name: value for name, value in candidate.items() if name not in late}
        for name in candidate.keys() - others.keys():
            error = _error_of(estimator, name, candidate[name], judged)
            if error is not None:
                errors.setdefault(place, error)
        if place not in errors:
            groups.setdefault(key_of(others), []).append(place)
    growths = []
    for places in groups.values():
        mine = [candidates[place] for place in places]
        others = {name: value for name, value in mine[0].items() if name not in late}
        given = clone(estimator).set_params(**clone(others, safe=False))
        if len(mine) > 1 and not _has_more_than_trees(given):
            growths.append(Growth(given, _furthest(given, mine), places, mine, False))
            continue
        for place, candidate in zip(places, mine, strict=True):
            own = clone(given).set_params(**clone(dict(candidate), safe=False))
            growths.append(Growth(given, own, [place], [candidate], True))
    return growths, errors


def late_of(estimator: Any) -> tuple[str, ...]:
    """Parameters that are decided on what has grown."""
    return (N_ITERATIONS,) if isinstance(estimator, BaseBoosting) else (*LATE, N_TREES)


def _has_more_than_trees(estimator: Any) -> bool:
    """Whether a fit learns what depends on how far its trees have grown."""
    return any(getattr(estimator, name, None) for name in ("oob_score", "oob_tol"))


def _furthest(given: Any, candidates: Sequence[Parameters]) -> Any:
    """An estimator whose trees have those of every candidate inside."""
    if isinstance(given, BaseBoosting):
        return clone(given).set_params(max_iter=max(_asked(given, candidates, N_ITERATIONS)))
    depth, split, decrease, n_leaves, _ = (_asked(given, candidates, name) for name in LATE)
    deepest = max(map(depth_of, depth, n_leaves))
    of_one_kind = _are_integers(split) or not any(isinstance(least, Integral) for least in split)
    furthest = {
        "max_depth": None if deepest == MOST_ROWS else deepest,
        "min_samples_split": min(split) if of_one_kind else 2,
        "min_impurity_decrease": min(decrease),
        "max_leaf_nodes": None,  # the best leaves of a smaller tree are others
        "ccp_alpha": 0.0,
    }
    if hasattr(given, N_TREES):
        furthest[N_TREES] = max(_asked(given, candidates, N_TREES))
    return clone(given).set_params(**furthest)


def _asked(given: Any, candidates: Sequence[Parameters], name: str) -> list[Any]:
    """The value that every candidate has for a parameter; None where there is none."""
    default = getattr(given, name, None)
    if not any(name in candidate for candidate in candidates):
        return [default] * len(candidates)
    return [candidate.get(name, default) for candidate in candidates]


def _are_integers(values: Sequence[Any]) -> bool:
    return all(issubclass(kind, Integral) for kind in set(map(type, values)))


def _error_of(estimator: Any, name: str, value: Any, judged: dict[Any, Exception | None]) -> Any:
    """The error that a value of a parameter deserves; None: it is right."""
    is_plain = type(value) in (int, float, str, NoneType)
    key = name, type(value), value if is_plain else id(value)
    if key not in judged:
        judged[key] = None
        try:
            check_value(estimator, name, value)
        except ValueError as error:
            judged[key] = error
    return judged[key]


def key_of(parameters: Parameters) -> Hashable:
    """Equal for equal parameters: names, types and values."""
    return frozenset((name, type(value), _value_of(value)) for name, value in parameters.items())


def _value_of(value: Any) -> Hashable:
    """Equal for equal values; what cannot be pickled equals itself, as a lambda of a grid does."""
    if isinstance(value, Number | str | None):
        return value
    try:
        return str(joblib.hash(value))
    except Exception:
        return id(value)
