"""Candidates of a search: which of them stand inside one growth, and the models of each.

Some parameters only say where a tree ends, or how many trees there are. They are decided on what
has grown ([SF] 3), for each of the models of a cross-validation. Candidates that differ in nothing
else are one growth, which goes as far as the furthest of them::

    criterion=gini, max_depth=3 ────┐
    criterion=gini, max_depth=8 ────┴─▶ grown to depth 8 ──▶ cut at 3; whole
    criterion=entropy, max_depth=3 ───▶ grown to depth 3 ──▶ whole

A cell is a candidate and a training set. Its model is cut out of what has grown for the set when
somebody looks at it. What it says of held-out rows is read from the leaves of the large trees, to
which the rows have walked once::

    row ──walks──▶ leaf of the large tree ──the branch it is in──▶ leaf of the nested tree

Many cells of a grid are the same tree: no node is between their limits. Those are found without
cutting one of them, and scored once.

A boosted model of fewer iterations is the first trees of one of more, also where it stops early:
scores of held-out rows depend on the trees so far, and so does the best iteration among them. So
``max_iter`` is decided on what has grown::

    trees of a set      0  1  2  3  4  5  6  7  8  9
    max_iter=4          ─────────▶ score
    max_iter=10         ─────────▶─────────────────▶ score        rows walk down each tree once
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Number
from types import NoneType
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from dtrees._forks import cached_property
from dtrees.constraints import check_values
from dtrees.core.model.nested_trees import PruningGrid, sums_over_leaves
from dtrees.core.model.pruning import PruningLimits
from dtrees.core.model.tree import Tree, mean_of_sums
from dtrees.estimators.boosted_sets import FittedBoosts
from dtrees.estimators.boosting import BaseBoosting, shortened
from dtrees.estimators.fit_plan import MOST_ROWS, depth_of, rows_of_split
from dtrees.estimators.fitted_sets import FittedSets, Walks, model_of_trees, trees_of
from dtrees.parallel import threaded
from dtrees.typing import Runner, serial

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
    is_boosted = isinstance(estimator, BaseBoosting)
    late = (N_ITERATIONS,) if is_boosted else (*LATE, N_TREES)  # decided on what has grown
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
        # a fit with these learns what depends on how far its trees have grown
        asked = ("oob_score", "oob_tol", "keep_rows")
        learns_more = any(getattr(given, name, None) for name in asked)
        if len(mine) > 1 and not learns_more:
            growths.append(Growth(given, _furthest(given, mine), places, mine, False))
            continue
        for place, candidate in zip(places, mine, strict=True):
            own = clone(given).set_params(**clone(dict(candidate), safe=False))
            growths.append(Growth(given, own, [place], [candidate], True))
    return growths, errors


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
            check_values(estimator._constraints, {name: value}, type(estimator).__name__)
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


@dataclass
class _Walked:
    """Rows and their leaves in the trees of a set, and what the first trees have said of them."""

    rows: np.ndarray
    leaves: list[np.ndarray] = field(default_factory=list)
    limits: PruningLimits | None = None
    n_trees: int = 0
    total: Any = 0.0


class Cells:
    """The models of candidates, for the training sets of a growth.

    `limits` say where the trees of every candidate end, in any set; None: `growth` is asked.
    """

    def __init__(
        self, growth: Growth, fitted: FittedSets, limits: PruningGrid | None = None
    ) -> None:
        self.growth, self.fitted, self.classes = growth, fitted, fitted.target.labels
        self._has_shares = limits is None and growth.has_shares()
        self._limits: dict[int, PruningGrid] = {} if limits is None else {0: limits}
        self._walked: dict[int, list[_Walked]] = {}

    @cached_property
    def _n_trees(self) -> list[int | None]:
        return self.growth.n_trees()

    def error(self, number: int) -> Exception | None:
        """Why there is no model of a set."""
        model = self.fitted.models[number]
        return model if isinstance(model, Exception) else None

    def limits(self, number: int) -> PruningGrid:
        """Where the trees of every candidate end, in a set."""
        n_rows = int(self.fitted.n_live[number]) if self._has_shares else 0
        if n_rows not in self._limits:
            self._limits[n_rows] = self.growth.limits(n_rows)
        return self._limits[n_rows]

    def trees(self, number: int) -> tuple[Tree, ...]:
        """What has grown for a set."""
        return trees_of(self.fitted.models[number])

    def model(self, candidate: int, number: int) -> Any:
        """The fitted estimator of a cell."""
        if self.growth.is_whole:
            return self.fitted.models[number]
        n_trees = self._n_trees[candidate]
        trees = tuple(map(self.limits(number)[candidate].prune, self.trees(number)[:n_trees]))
        estimator = self.growth.estimator_of(candidate)
        return model_of_trees(estimator, self.fitted.models[number], trees)

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What the model of a cell says of rows: float64 (n, n_classes) or (n, 1).

        `rows` are numbers, int64 (n,). The same rows walk once, however often they are asked for.
        """
        if self.growth.is_whole:
            return self.fitted.values(number, rows)
        limits, walked = self.limits(number)[candidate], self._walked_rows(number, rows)
        trees = self.trees(number)
        n_trees = self._n_trees[candidate] or 1
        if limits != walked.limits or walked.n_trees > n_trees:
            walked.limits, walked.n_trees, walked.total = limits, 0, 0.0
        for place in range(walked.n_trees, n_trees):
            if place == len(walked.leaves):
                leaves = self.fitted.coded_rows.leaves(trees[place], walked.rows)
                walked.leaves.append(leaves.astype(np.int32, copy=False))
            nested, leaves = limits.cut_and_leaves(trees[place], walked.leaves[place])
            with np.errstate(over="ignore", invalid="ignore"):
                walked.total = walked.total + nested.value_of(leaves)
        walked.n_trees = n_trees
        if n_trees == 1:
            return walked.total
        offsets = [tree.offset for tree in trees[:n_trees]]
        return mean_of_sums(walked.total, n_trees, offsets)

    def spreads(
        self, models: Sequence[Any], sides: Sequence[tuple[int, np.ndarray]]
    ) -> list[np.ndarray]:
        """How sure trees or forests of numbers, one of each set, are of rows; float64 (n,) each."""
        return self.fitted.spreads_of([(models[number], rows) for number, rows in sides])

    def scores(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """Trees and forests have no ``decision_function``."""
        raise NotImplementedError

    def distinct(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Candidates whose models are the same trees, in a set.

        A tree is known by its leaves. With two random numbers for every node, 128 bits, equal sums
        over leaves are equal leaves. Costs for every tree what `sums_over_leaves` does.

        Returns the first candidate of each model, int64 (n_distinct,), ascending; and the place of
        each candidate's model among them, int64 (n_candidates,).
        """
        n_candidates = len(self.growth.places)
        if n_candidates == 1:
            return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        n_trees = np.array([n or 1 for n in self._n_trees])
        limits, rng = self.limits(number), np.random.default_rng(0)
        keys = np.zeros((n_candidates, 2), dtype=np.int64)
        for place, tree in enumerate(self.trees(number)):
            has = n_trees > place
            values = rng.integers(-(2**63), 2**63 - 1, (tree.node_count, 2))
            keys[has] += sums_over_leaves(tree, values, limits)[has]  # modulo 2**64
        _, first, place_of = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        return first[order], np.argsort(order)[place_of.ravel()]

    def bring(self, sides: Sequence[tuple[int, np.ndarray]]) -> None:
        """Let rows walk that models will be asked about, where the codes are on workers.

        `sides` are sets and rows of each.
        """
        known = [(number, rows) for number, rows in sides if self.error(number) is None]
        self.fitted.bring((self.walks(number), rows) for number, rows in known)

    def walks(self, number: int) -> Walks:
        """What is to be known of rows for the models of a set."""
        model = self.fitted.models[number]
        return self.fitted.walks(model) if self.growth.is_whole else [(trees_of(model), None)]

    def alone(self, number: int) -> tuple[Growth, FittedSets, PruningGrid | None]:
        """What cells of one set are made of, without the table; raises the error of its fit."""
        error = self.error(number)
        if error is not None:
            raise error
        fitted = self.fitted.alone(number, any(start is None for _, start in self.walks(number)))
        return self.growth, fitted, self._limits_of(number)

    def _limits_of(self, number: int) -> PruningGrid | None:
        return self.limits(number)

    def _walked_rows(self, number: int, rows: np.ndarray) -> _Walked:
        known = self._walked.setdefault(number, [])
        for walked in known:
            if np.array_equal(walked.rows, rows):
                return walked
        known.append(_Walked(rows.copy()))
        self.fitted.bring([([(self.trees(number), None)], known[-1].rows)])
        return known[-1]


MANY_ROWS = 2**13  # of one set: with fewer, threads cost more than they walk


def cells_of(growth: Growth, fitted: FittedSets, limits: PruningGrid | None = None) -> Cells:
    """The models of candidates, for the training sets of a growth, as `Cells`."""
    if isinstance(fitted, FittedBoosts):
        return BoostedCells(growth, fitted)
    return Cells(growth, fitted, limits)


@dataclass
class _Stages:
    """Rows, and their raw predictions by the first trees of a set."""

    rows: np.ndarray
    raw: np.ndarray
    stages: Iterator[np.ndarray]
    n_iterations: int = 0


class BoostedCells(Cells):
    """The models of candidates of different numbers of iterations."""

    fitted: FittedBoosts

    def __init__(self, growth: Growth, fitted: FittedBoosts) -> None:
        super().__init__(growth, fitted)
        self._has_shares = False
        self._stages: dict[int, list[_Stages]] = {}
        self._sides: dict[int, list[np.ndarray]] = {}  # rows that have not walked, by set

    def _limits_of(self, number: int) -> PruningGrid | None:
        return None  # they end by iterations

    def n_iterations(self, number: int) -> np.ndarray:
        """Iterations of every candidate, in a set; int64 (n_candidates,)."""
        model = self.fitted.models[number]
        asked = self.growth.n_iterations()
        return np.array([model._n_iter_of(each) for each in asked], dtype=np.int64)

    def model(self, candidate: int, number: int) -> Any:
        """The fitted estimator of a cell."""
        whole = self.fitted.models[number]
        if self.growth.is_whole:
            return whole
        return shortened(self.growth.estimator_of(candidate), whole)

    def values(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """What the model of a cell says of rows: float64 (n, n_classes) or (n, 1)."""
        predictor = self.fitted.models[number]._predictor()
        found: np.ndarray = predictor.values_of(self._raw(candidate, number, rows))
        return found

    def scores(self, candidate: int, number: int, rows: np.ndarray) -> np.ndarray:
        """Its raw predictions, float64 (n,) or (n, n_classes), as ``decision_function``."""
        predictor = self.fitted.models[number]._predictor()
        found: np.ndarray = predictor.scores_of(self._raw(candidate, number, rows))
        return found

    def distinct(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Candidates whose models are the same trees, in a set, those of fewer trees first.

        As `Cells.distinct`, but for the order: rows then walk down each tree once.
        """
        _, first, place = np.unique(
            self.n_iterations(number), return_index=True, return_inverse=True
        )
        return first, place.ravel()

    def bring(self, sides: Sequence[tuple[int, np.ndarray]]) -> None:
        """Remember the rows that scores are of: those of all sets walk when one is asked for.

        Where the codes are on workers, they walk now.
        """
        super().bring(sides)
        if self.fitted.coded_rows.is_here and len(self.growth.places) == 1:
            for number, side in sides:
                if self.error(number) is None:
                    self._sides.setdefault(number, []).append(side)

    def _walk_sides(self) -> None:
        """Let the rows that are remembered walk, a set on each thread; many of one set on all."""
        sides, self._sides = self._sides, {}
        is_one = len(sides) == 1

        def walk(number: int) -> None:
            for rows in sides[number]:
                self._raw(0, number, rows, None if is_one and len(rows) >= MANY_ROWS else serial)

        run = threaded(self.fitted.models[next(iter(sides))].n_jobs)
        run([partial(walk, number) for number in sides])

    def _raw(
        self, candidate: int, number: int, rows: np.ndarray, run: Runner | None = None
    ) -> np.ndarray:
        """Raw predictions, float64 (n, n_values); the same rows go on where they were."""
        if self._sides:
            self._walk_sides()
        n_iterations = int(self.n_iterations(number)[candidate])
        known, model = self._stages.setdefault(number, []), self.fitted.models[number]
        is_same = [np.array_equal(each.rows, rows) for each in known]
        at = is_same.index(True) if any(is_same) else len(known)
        if at == len(known) or known[at].n_iterations > n_iterations:
            if self.growth.is_whole:  # at the end, as no candidate is a prefix
                raw = self.fitted.raw_of(model, rows, run)
                begun = _Stages(rows.copy(), raw, iter(()), model.n_iter_)
            else:
                stages = self.fitted.stages_of(model, rows, run)
                begun = _Stages(rows.copy(), self.fitted.first_raw(model, rows), stages)
            known[at : at + 1] = [begun]
        walked = known[at]
        while walked.n_iterations < n_iterations:
            walked.raw = next(walked.stages)
            walked.n_iterations += 1
        if walked.n_iterations == model.n_iter_:
            walked.stages = iter(())  # which holds what many trees say
            walked.raw = walked.raw.copy()
        return walked.raw.copy()
