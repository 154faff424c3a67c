"""Bags that grow in one wave of rounds, and so read each block once a round, against tree by tree.

    wave of 16   round 1: a block is read, and counted for 16 roots    round 2: for their children
    one by one   tree 1: round 1, round 2 ...     tree 2: round 1 ...

Both sides are the same rounds in this process, so their models are equal. *In memory* a block lies
there. *Spilled*, a block is read from a file in each round, as by a worker that has more blocks
than memory. On text a row has many cells, and a round has few rows. See decision 10.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dask
import numpy as np

import dtrees
from benchmarks import data
from benchmarks.cases import Case, Scale, Survey, Table
from benchmarks.measure import in_turns
from dtrees.core.grow.rounds import LocalBlocks
from dtrees.core.stores.blocks.block import BlockOfRows, Common
from dtrees.core.stores.blocks.messages import Counts, HistogramRequest, SplitUpdate, add_up
from dtrees.parallel import partitioned, regime_asked_for

TREES, SMALL = 16, 4
TURNS, BUDGET = 3, 20.0  # of a line, seconds
GATHER_ROWS = 500  # smaller nodes are not grown in rounds
TABLE = Table(
    ("16 bags in rounds", "in one wave, s", f"waves of {SMALL}", "one by one"),
    "One thread. The last columns are in times of the first.",
)
MODELS: dict[str, dict[str, Any]] = {
    "depth 3": {"max_depth": 3, "max_features": None},
    "depth 6": {"max_depth": 6, "max_features": None},
    "depth 6, drawn columns": {"max_depth": 6},
}


class SpilledBlocks(LocalBlocks):
    """Blocks that are read from a file in each round."""

    def begin(self, common: Common) -> None:
        """Begin a growth."""
        super().begin(common)
        self._common = common
        self._folder = tempfile.TemporaryDirectory()
        for number, block in enumerate(self._given):
            self._file(number).write_bytes(pickle.dumps(block, protocol=5))

    def count(self, update: SplitUpdate, requests: Sequence[HistogramRequest]) -> Counts:
        """Sums and histograms of some nodes."""
        return add_up(self._of_file(number, update, requests) for number in range(len(self._given)))

    def _file(self, number: int) -> Path:
        return Path(self._folder.name) / str(number)

    def _of_file(
        self, number: int, update: SplitUpdate, requests: Sequence[HistogramRequest]
    ) -> Counts:
        block = BlockOfRows(pickle.loads(self._file(number).read_bytes()), self._common)
        self._positions[number] = block.advance(self._positions[number], update)
        return block.count(self._positions[number], requests)


def _table(name: str, scale: Scale) -> tuple[Any, np.ndarray]:
    if name == "text":
        X, y = data.real("newsgroups20")
        n = scale.rows(2_000)
        return X[:n], y[:n]
    return data.classification(scale.rows(200_000))


def _fit(
    X: Any, y: np.ndarray, parameters: dict[str, Any], blocks: type[LocalBlocks], at_once: int
) -> Any:
    model = dtrees.RandomForestClassifier(
        TREES, max_bins=255, random_state=0, n_jobs=1, **parameters
    )
    with (
        patch.object(partitioned, "LocalBlocks", blocks),
        patch.object(partitioned, "trees_at_once", lambda *_: at_once),
        regime_asked_for("partitioned"),
        dask.config.set({"dtrees.gather-rows": GATHER_ROWS}),
    ):
        return model.fit(X, y)


def _lines(name: str, blocks: type[LocalBlocks], scale: Scale) -> Iterator[tuple[str, ...]]:
    X, y = _table("text" if name == "text" else "numbers", scale)
    for words, parameters in MODELS.items():
        sides = [partial(_fit, X, y, parameters, blocks, n) for n in (TREES, SMALL, 1)]
        (wave, small, alone), _ = in_turns(sides, TURNS, BUDGET)
        line = f"{name}, {X.shape[0]:,} × {X.shape[1]:,}, {words}"
        yield line, f"{wave:.2f}", f"{small / wave:.2f}", f"{alone / wave:.2f}"


PLACES: dict[str, type[LocalBlocks]] = {
    "in memory": LocalBlocks,
    "spilled": SpilledBlocks,
    "text": LocalBlocks,
}


def _survey(name: str, blocks: type[LocalBlocks], scale: Scale) -> Survey:
    return Survey(TABLE, partial(_lines, name, blocks, scale))


CASES = [
    Case(
        f"waves-{name.replace(' ', '-')}",
        "forests",
        f"bags in one wave of rounds against tree by tree: {name}",
        partial(_survey, name, blocks),
    )
    for name, blocks in PLACES.items()
]
