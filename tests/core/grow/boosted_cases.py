"""Small tables for boosted models, and a fit of them without an estimator."""

from __future__ import annotations

import threading
from functools import partial

import numpy as np

from dtrees.coding import CodeBook
from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow._leaf_wise import LeafWiseGrower
from dtrees.core.grow._team import Team
from dtrees.core.grow.boosting import BoostedRows, Booster, grow_model, lead
from dtrees.core.stores.boosted._column_blocks import ColumnBlocks
from dtrees.losses import Loss
from dtrees.typing import serial
from tests.members import together

UNITS = 2.0**-20, 2.0**-20


class Squares(Loss):
    """A loss of one's own."""

    def gradient_and_hessian(self, y, raw):
        return raw - y, np.ones(len(y))

    def of_rows(self, y, raw):
        return (raw - y) ** 2


def random_columns(rng, n_rows, n_columns, kinds=("numbers", "missing", "categories")):
    """Columns of raw values: numbers, with None where one is missing, strings, or both."""
    found = []
    for _ in range(n_columns):
        kind = rng.choice(kinds)
        if kind == "categories":
            found.append(["abcdefgh"[k] for k in rng.integers(0, 7, n_rows)])
            continue
        values = rng.integers(0, rng.integers(2, 9), n_rows).astype(float).tolist()
        if kind == "mixed":
            values = ["ab"[int(value) % 2] if rng.random() < 0.3 else value for value in values]
        if kind == "missing":
            values = [None if rng.random() < 0.25 else value for value in values]
        found.append(values)
    return found


def column_of(values):
    """Categories, objects where numbers are among them, or numbers."""
    import pandas as pd

    n_names = sum(isinstance(value, str) for value in values)
    if n_names == 0:
        return np.array([np.nan if value is None else value for value in values])
    return pd.Categorical(values) if n_names == len(values) else np.array(values, dtype=object)


def table_of(columns):
    """The columns as a data frame."""
    import pandas as pd

    made = {f"c{j}": column_of(column) for j, column in enumerate(columns)}
    return pd.DataFrame(made)


def derivatives(rng, n):
    """Gradients and hessians of rows."""
    return rng.integers(-(2**18), 2**18, n), rng.integers(2**12, 2**17, n)


def grown(table, gradient, hessian, rules, helped=False, draws=None):
    """A tree grown from integers; the grower and the piece."""
    _, coded = CodeBook.fit_encode(table, max_bins=None)
    return grown_from(coded, gradient, hessian, rules, helped, draws=draws)


def grown_from(coded, gradient, hessian, rules, helped=False, chosen=None, draws=None):
    """The same from codes, and from some of their rows."""
    blocks = ColumnBlocks(coded)
    team = Team()
    thread = threading.Thread(target=team.help)
    if helped:
        thread.start()
    try:
        own = slice(None) if chosen is None else chosen
        shift = 64 - len(gradient[own]).bit_length()
        grower = LeafWiseGrower(blocks, rules, shift, team, chosen)
        packed = (gradient.astype(np.int64) << 32 | hessian).view(np.uint64)
        sums = int(hessian[own].sum()), int(gradient[own].sum())
        grower.grow(packed, *sums, UNITS, row_draws=draws)
    finally:
        team.close()
        if helped:
            thread.join(60)
    return grower, grower.piece()


def free_rules(**rules):
    """Rules that hold nothing back."""
    return BoostingRules(**{"min_samples_leaf": 1, "max_leaf_nodes": None, **rules})


def part_of(rows, own):
    """Some rows, by their numbers, as a member has them."""
    of_part = {name: getattr(rows, name) for name in ("y", "weight")}
    chosen = rows.chosen
    if chosen is not None:
        chosen = np.flatnonzero(np.isin(own, chosen)).astype(np.uint32)
    return BoostedRows(
        rows.coded.take(own),
        **{name: None if value is None else value[own] for name, value in of_part.items()},
        weight_unit=rows.weight_unit,
        chosen=chosen,
        raw=None if rows.raw is None else np.ascontiguousarray(rows.raw[:, own]),
        numbers=own.astype(np.uint64),
    )


def boost_by_members(owner, rows, growing, thresholds, n_threads=1):
    """The model as each member grows it; `owner` is the member of each row."""

    def grow(own, member):
        team, made, mine = Team(), [], part_of(rows, own)

        def lead_it():
            of_a_tree = max(1, n_threads // len(growing.initial))
            about = growing.rules.min_samples_leaf, of_a_tree, False, True
            booster = Booster(mine, growing, team, ColumnBlocks(mine.coded, *about), member)
            for _turn in grow_model(booster, thresholds, made, lambda: False, None):
                pass

        lead(team, lead_it, serial, n_threads)
        return made

    parts = [np.flatnonzero(owner == k) for k in range(owner.max() + 1)]
    return together([partial(grow, own) for own in parts])
