"""Random small tables of every kind, their obvious coding, and the fit of a tree to them.

Hypothesis draws the shape of an example (kinds of columns, sizes, seeds) and a seeded generator
fills it, which is fast and still shrinks to few rows, few columns and few values.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import strategies as st

from dtrees.coding.coded import SPARSE, CodedMatrix
from dtrees.coding.target import Target
from dtrees.core.data.rules import GrowthRules
from dtrees.core.grow.assembly import frozen
from dtrees.core.grow.round_spec import GATHER_ROWS, HISTOGRAM_BUDGET, RoundSpec
from dtrees.core.grow.rounds import LocalBlocks, grow_in_rounds
from dtrees.core.grow.source import DatasetSource
from dtrees.core.grow.tree_batch import TreeBatch
from dtrees.core.model.tree import Tree
from dtrees.core.stores.blocks.block import Block, Common, Draws, Resolution
from tests.coding.examples import coded_columns, coded_csc
from tests.oracle.candidates import categories_of, numbers_of
from tests.oracle.tree import threshold_of

KINDS = (
    "distinct",
    "ties",
    "constant",
    "counts",
    "mostly",
    "categories",
    "many categories",
    "mostly a category",
    "hybrid",
    "missing",
)
ORDERED = ("distinct", "ties", "constant", "counts", "mostly", "missing")
MANY = 22  # categories of a column that pays a penalty in nodes of more than eleven of them
CLASSIFICATION = ("gini", "entropy")
REGRESSION = ("squared_error", "absolute_error", "poisson")
FINE = Resolution()


@dataclass(frozen=True)
class Example:
    """A table of raw values with everything that a fit needs."""

    table: list[list]
    y: np.ndarray
    weight: np.ndarray | None
    criterion: str
    limits: dict[str, Any] = field(default_factory=dict)
    class_weight: dict | None = None

    @property
    def n_rows(self) -> int:
        return len(self.y)

    @property
    def rules(self) -> GrowthRules:
        return GrowthRules(criterion=self.criterion, **self.limits)

    @cached_property
    def target(self) -> Target:
        if self.criterion in CLASSIFICATION:
            return Target.classification(self.y, self.weight, self.class_weight)
        return Target.regression(self.y, self.weight, center=self.criterion != "poisson")

    @cached_property
    def thresholds(self):
        return thresholds_of(self.table)

    @cached_property
    def values(self) -> tuple[np.ndarray, np.ndarray]:
        return values_of(self.table)

    def take(self, rows) -> Example:
        """The example with other rows."""
        table = [[column[i] for i in rows] for column in self.table]
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, table=table, y=self.y[rows], weight=weight)


def codes_of(column: list) -> tuple[np.ndarray, int, int]:
    """Codes, number of codes, number of ordered codes; of a column by its definition."""
    numbers, categories = numbers_of(column), categories_of(column)
    code = {value: 1 + k for k, value in enumerate([*numbers, *categories])}
    codes = np.array([0 if v is None else code[v] for v in column], dtype=np.uint32)
    return codes, len(code), len(numbers)


def coded(table: list[list], largest_code: int | None = None) -> CodedMatrix:
    """Dense storage; ``largest_code`` widens it."""
    columns, n_codes, n_ordered = zip(*map(codes_of, table), strict=True)
    largest = None if largest_code is None else np.full(len(table), largest_code)
    return coded_columns(columns, n_codes, n_ordered, largest)


def coded_sparse(table: list[list], seed: int) -> CodedMatrix:
    """Sparse storage: any code may be the fill code, and a row that holds it may be stored."""
    rng = random.Random(seed)
    columns, n_codes, n_ordered = zip(*map(codes_of, table), strict=True)
    fill, rows, data, indptr = [], [], [], [0]
    for codes, n in zip(columns, n_codes, strict=True):
        fill.append(int(rng.choice(codes)) if rng.random() < 0.8 else rng.randint(0, n))
        stored = [i for i, c in enumerate(codes) if c != fill[-1] or rng.random() < 0.1]
        rows += stored
        data += [int(codes[i]) for i in stored]
        indptr.append(len(rows))
    shape = (len(columns[0]), len(columns))
    stored = (np.array(data, dtype=np.uint32), np.array(rows, dtype=np.int32), indptr)
    return coded_csc(scipy.sparse.csc_array(stored, shape=shape), n_codes, n_ordered, fill)


def coded_mixed(table: list[list], seed: int) -> CodedMatrix:
    """Some columns dense and the others sparse, in any order of the slots."""
    rng = np.random.default_rng(seed)
    dense, sparse = coded(table), coded_sparse(table, seed)
    is_sparse = rng.random(len(table)) < 0.5
    slots = rng.permutation(np.flatnonzero(is_sparse))
    slot = dense.slot.copy()
    slot[slots] = np.arange(len(slots))
    cells = [slice(*sparse.sparse_indptr[[j, j + 1]]) for j in slots.tolist()]
    rows, codes = (
        np.concatenate([array[:0], *(array[some] for some in cells)])
        for array in (sparse.sparse_rows, sparse.sparse_codes)
    )
    return replace(
        dense,
        storage=np.where(is_sparse, SPARSE, dense.storage).astype(np.uint8),
        slot=slot,
        sparse_indptr=np.cumsum([0, *(some.stop - some.start for some in cells)]),
        sparse_rows=rows,
        sparse_codes=codes,
        fill_code=sparse.fill_code[slots],
    )


def thresholds_of(table: list[list]):
    """What `CodeBook.thresholds` does, by its definition."""
    numbers = [numbers_of(column) for column in table]

    def thresholds(columns, left, right, places=None):
        found = []
        for i, (j, below, above) in enumerate(zip(columns, left, right, strict=True)):
            if below == 0 or above == 0:
                found.append((math.nan, 0) if below == 0 else (math.inf, len(numbers[j])))
                continue
            beside = numbers[j][below - 1], numbers[j][above - 1]
            threshold = threshold_of(beside)
            if places is not None:
                drawn = beside[0] + places[i] * (beside[1] - beside[0])
                threshold = drawn if drawn < beside[1] else beside[0]
            found.append((threshold, bisect_right(numbers[j], threshold)))
        threshold, code = zip(*found, strict=True) if found else ((), ())
        return np.array(threshold, dtype=np.float64), np.array(code, dtype=np.uint32)

    return thresholds


def values_of(table: list[list]) -> tuple[np.ndarray, np.ndarray]:
    """What `CodeBook.code_values` does, by its definition."""
    numbers = [numbers_of(column) for column in table]
    first = np.cumsum([0, *map(len, numbers)])
    return np.array([v for column in numbers for v in column], dtype=np.float64), first


def grow_parts(
    example: Example,
    parts: list[tuple[CodedMatrix, Target]],
    *,
    values=None,
    gather_rows: int = GATHER_ROWS,
    histogram_budget: int = HISTOGRAM_BUDGET,
    **source,
) -> Tree:
    """The tree of an example whose rows are given in some other way."""
    values = example.values if values is None else values
    thresholds = example.thresholds
    if len(parts) == 1:
        dataset = DatasetSource(*parts[0], example.rules, values=values, **source)
        return tree_of_source(dataset, thresholds)
    limits = {"gather_rows": gather_rows, "histogram_budget": histogram_budget}
    return grow_blocks(parts, example.rules, thresholds, values=values, **limits)


def tree_of_source(source: DatasetSource, thresholds) -> Tree:
    """The tree of all rows of a source."""
    n_codes = source.coded.n_codes
    (tree,) = frozen([source.finish()], source.target, n_codes, thresholds, source.rules)
    return tree


def grow_blocks(
    parts: list[tuple[CodedMatrix, Target]], rules: GrowthRules, thresholds, values=None, **limits
) -> Tree:
    """The tree of rows that lie in several blocks, in rounds."""
    spec = spec_of(parts, rules, thresholds, values=values, **limits)
    kind = PackedBlocks if len(parts) % 2 else LocalBlocks
    grown = grow_in_rounds(spec, [rules.tree], kind(blocks_of(parts), values))
    ((_, (tree,)),) = grown
    return tree


class PackedBlocks(LocalBlocks):
    """Blocks whose driver is packed after each round, and goes on from that somewhere else."""

    def grow(self, spec, numbers, begin, heard):
        batch = TreeBatch(spec, numbers, begin)
        while (asked := batch.ask()) is not None:
            batch.hear(self.count(asked.update, asked.requests))
            if not batch.waiting:
                batch = TreeBatch.unpacked(spec, batch.packed())
        return [batch]


def spec_of(
    parts: list[tuple[CodedMatrix, Target]],
    rules: GrowthRules,
    thresholds,
    draws: Draws | None = None,
    resolution: Resolution = FINE,
    **limits,
) -> RoundSpec:
    """What trees of all rows of some parts are grown from."""
    n_rows = np.array([sum(target.n_live for _, target in parts)])
    common = Common(rules, draws, None, resolution)
    sample, target = parts[0]
    if draws is not None:
        target = target.bagged(np.ones(target.n_rows, dtype=np.uint16))
    return RoundSpec(common, sample, target, thresholds, 1, n_rows, **limits)


def cut_in_parts(example: Example, *ends: int) -> list[tuple[CodedMatrix, Target]]:
    """The rows of an example in several parts, cut before some rows."""
    matrix, target = coded(example.table), example.target
    parts = np.split(np.arange(example.n_rows), ends)
    return [(matrix.take(rows), target.take(rows)) for rows in parts]


def blocks_of(parts: list[tuple[CodedMatrix, Target]]) -> list[Block]:
    """Parts of a table as blocks, one behind the other."""
    first = np.cumsum([0, *(target.n_rows for _, target in parts)])
    return [
        Block(matrix, target, start)
        for (matrix, target), start in zip(parts, first.tolist(), strict=False)
    ]


def grow_tree(example: Example, matrix: CodedMatrix, target: Target | None = None) -> Tree:
    """The same, from one dataset."""
    return grow_parts(example, [(matrix, example.target if target is None else target)])


def fit(example: Example, **source) -> Tree:
    """The tree of an example in dense storage."""
    return grow_parts(example, [(coded(example.table), example.target)], **source)


def fill_column(kind: str, n_rows: int, rng: random.Random, n_values: int, missing: float) -> list:
    """A column of one kind; a share of the values is missing."""
    letters = [f"c{k:02d}" for k in range(n_values)]
    often = rng.randint(0, n_values - 1)  # the value of most rows, anywhere among the others
    draw = {
        "distinct": lambda: rng.gauss(0, 1),
        "ties": lambda: float(rng.randint(0, n_values)),
        "constant": lambda: 1.0,
        "counts": lambda: float(max(0, rng.randint(-6, n_values))),
        "mostly": lambda: float(often if rng.random() < 0.8 else rng.randint(0, n_values)),
        "categories": lambda: rng.choice(letters),
        "many categories": lambda: f"c{rng.randrange(MANY):02d}",
        "mostly a category": lambda: letters[often] if rng.random() < 0.8 else rng.choice(letters),
        "hybrid": lambda: rng.choice([float(rng.randint(0, n_values)), rng.choice(letters)]),
        "missing": lambda: None,
    }[kind]
    return [None if rng.random() < missing else draw() for _ in range(n_rows)]


def fill_target(
    criterion: str, n_classes: int, table: list[list], rng: random.Random, style: str
) -> np.ndarray:
    """Half noise, half the first column, so that trees have something to find."""
    n_rows = len(table[0])
    signal = [hash_of(v) for v in table[0]]
    if criterion in CLASSIFICATION:
        noise = [rng.randrange(n_classes) for _ in range(n_rows)]
        labels = [
            k if rng.random() < 0.5 else s % n_classes for k, s in zip(noise, signal, strict=True)
        ]
        return np.array(labels)
    if style == "real":
        y = [s % 5 + abs(rng.gauss(0, 1)) for s in signal]
    else:
        y = [float((s % 3) * rng.randint(0, 2)) for s in signal]
    if criterion == "poisson":
        return np.array([v if rng.random() < 0.7 else 0.0 for v in y])
    return np.array(y) * rng.choice([1.0, -3.0, 1e6, 1e-6]) + rng.choice([0.0, 100.0])


def hash_of(value) -> int:
    """A small number that depends on a value, the same in every process."""
    if isinstance(value, float):
        return int(value * 1.5) + 2
    return 7 if value is None else int(value[1:])


def fill_weight(style: str, n_rows: int, rng: random.Random) -> np.ndarray | None:
    if style == "none":
        return None
    draw = {
        "integers": lambda: rng.randint(1, 3),
        "zeros": lambda: rng.randint(0, 2),
        "fractions": lambda: rng.choice([0.0, 0.1, rng.random(), 3 * rng.random()]),
    }[style]
    weight = np.array([float(draw()) for _ in range(n_rows)])
    if weight.max() == 0:
        weight[0] = 1.0
    return weight


# Drawn from many times: a strategy that is made anew is looked through anew.
sampled_from = cache(st.sampled_from)


@st.composite
def examples(
    draw,
    kinds=KINDS,
    criteria=(*CLASSIFICATION, *REGRESSION),
    weights=("none", "integers", "zeros", "fractions"),
    limits=True,
    max_rows=36,
    max_values=5,
    min_classes=2,
    draws=False,
    random_splits=False,
):
    """An `Example`.

    With ``draws``, nodes may search some of the columns only; with ``random_splits``, they may take
    cuts at random.
    """
    n_rows = draw(st.integers(1, max_rows))
    rng = random.Random(draw(st.integers(0, 2**32 - 1)))
    table = [
        fill_column(
            kind,
            n_rows,
            rng,
            draw(st.integers(1, max_values)),
            draw(sampled_from((0.0, 0.0, 0.15, 0.5))),
        )
        for kind in draw(st.lists(sampled_from(kinds), min_size=1, max_size=4))
    ]
    criterion = draw(sampled_from(criteria))
    style = draw(sampled_from(("real", "integers")))
    y = fill_target(criterion, draw(st.integers(min_classes, 4)), table, rng, style)
    weight = fill_weight(draw(sampled_from(weights)), n_rows, rng)
    if criterion == "poisson" and (y if weight is None else y * weight).sum() <= 0:
        y = y + 1.0
    class_weight = None
    if criterion in CLASSIFICATION and limits and draw(st.booleans()):
        class_weight = {int(k): rng.choice([1.0, 0.5, 3.0, 0.3]) for k in np.unique(y)}
    chosen = draw(growth_limits()) if limits else {}
    for _ in range(draw(st.integers(0, 2)) if chosen.get("random_ties") else 0):
        table.append(list(draw(st.sampled_from(table))))  # columns whose splits all tie
    if chosen.get("random_ties"):
        chosen["seed"] = draw(st.integers(0, 99))
    if draws and draw(st.booleans()):
        chosen |= {
            "max_features": draw(st.integers(1, len(table))),
            "seed": draw(st.integers(0, 99)),
        }
    if random_splits and draw(st.booleans()):
        chosen |= {"random_splits": True}
    return Example(table, y, weight, criterion, chosen, class_weight)


@cache
def growth_limits():
    """Some limits of a growth; most are left out most of the time."""
    return st.fixed_dictionaries(
        {},
        optional={
            "max_depth": st.integers(0, 4),
            "min_samples_split": st.integers(2, 8),
            "min_samples_leaf": st.integers(1, 4),
            "min_weight_leaf": st.sampled_from([0.0, 0.5, 2.0]),
            "min_impurity_decrease": st.sampled_from([0.0, 0.01, 0.1]),
            "category_penalty": st.sampled_from([0.0, 0.3, 1.0, 4.0]),
            "handle_unknown": st.sampled_from(["missing", "majority"]),
            "random_ties": st.just(True),
        },
    )


SEVEN_WAYS = [
    ("gini", 2, "none"),
    ("gini", 4, "none"),
    ("gini", 4, "fractions"),
    ("entropy", 3, "integers"),
    ("squared_error", 0, "none"),
    ("squared_error", 0, "fractions"),
    ("poisson", 0, "none"),
]


@cache
def seeded(
    criterion: str, n_classes: int, weights: str, kinds=KINDS, n_rows: int = 150, **limits
) -> Example:
    """An example without a draw: columns of all kinds, some values of which are missing."""
    rng = random.Random(f"{criterion} {n_classes} {weights} {n_rows}")
    table = [
        fill_column(kind, n_rows, rng, 9, 0.15 if k % 2 else 0.0) for k, kind in enumerate(kinds)
    ]
    y = fill_target(criterion, n_classes, table, rng, "real")
    return Example(table, y, fill_weight(weights, n_rows, rng), criterion, limits)


def arrays_of(tree: Tree) -> dict[str, bytes]:
    """Everything that a tree knows, to be compared."""
    return {name: array.tobytes() for name, array in tree.arrays().items()}
