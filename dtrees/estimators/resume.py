"""Fits that end before their end, and go on elsewhere.

A tree is a function of the codes, the rules, the seed and its number. So an interrupted fit can go
on with the next number, if codes, rules and seed are the same. They are told by *facts*, parameters
in words and digests::

    parameters    criterion, max_depth, ... : what a tree depends on, as text
    seed          what ``random_state`` was drawn to
    shape         rows and columns of X
    codebook      values of X: cuts, categories, names of columns
    codes         rows of X, in their order, wherever they are and however they are cut
    target        y and weights, as integers
    bags          which rows are in which bag
    start         what a fit begins with: raw predictions, rows that are held out, trees that stay

Facts are kept with the trees: in a checkpoint (`dtrees.parallel.checkpoint`), or in the model that
an error brings along.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

import dtrees
from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix, digest_of_rows
from dtrees.coding.target import Target
from dtrees.core.membership.resampling import Lacking, Resampling
from dtrees.core.model.tree import Tree
from dtrees.criteria import CompiledCriterion, Criterion
from dtrees.estimators.fit_plan import FitPlan
from dtrees.exceptions import ClusterError, ModelFileError
from dtrees.export.books import encode_book
from dtrees.export.trees import trees_of_bytes, trees_to_bytes
from dtrees.export.values import Encoder
from dtrees.losses import Loss
from dtrees.parallel import Checkpoint, CodedPartitions, FitStatistics, SavedTrees, learn_rows

CodedTable = tuple[CodeBook, CodedMatrix | CodedPartitions, Target, int]  # and a seed
Unfinished = tuple[Sequence[Tree], Mapping[str, Any]]  # trees from number 0 on, and facts
NOT_OF_A_TREE = (  # parameters that no tree depends on, or only by other facts
    *("n_estimators", "n_jobs", "verbose", "regime", "warm_start"),
    *("oob_score", "oob_tol", "random_state"),
    *("max_iter", "scoring", "n_iter_no_change", "tol", "use_best_model"),
)
IN_WORDS = {
    "dtrees": "the version of dtrees",
    "asked": "what is asked for",
    "estimator": "the class",
    "seed": "the seed, which random_state says",
    "shape": "the shape of X",
    "codebook": "the values of X",
    "codes": "the rows of X",
    "target": "y, or sample_weight",
    "bags": "the bags, which bootstrap, max_samples and bootstrap_groups say",
    "start": "init_score, rows that are held out, or trees of a warm start",
    "sides": "the training sides, which cv says",
}
SAID = ("dtrees", "asked", "estimator", "seed", "shape")  # whose values mean something to people
FOLLOWS = {  # what differs anyway where something else does
    "seed": ("bags", "start"),
    "shape": ("codebook", "codes", "target", "bags", "start", "sides"),
    "target": ("start",),
    **dict.fromkeys(("max_bins", "categorical_features", "handle_unknown"), ("codebook", "codes")),
    "class_weight": ("target",),
    "bootstrap": ("bags",),
    "max_samples": ("bags",),
    "bootstrap_groups": ("bags",),
    "init": ("start",),
}

logger = logging.getLogger(__name__)


def facts_of(
    estimator: Any,
    table: CodedTable,
    *,
    bags: str | None = None,
    start: Mapping[str, Any] | str | None = None,
    asked: str = "fit",
) -> dict[str, Any]:
    """What the trees of a fit are functions of; JSON.

    `table` is a codebook, codes, a target and a seed, and `bags` is a digest. `start` are further
    arrays and numbers by name, or a digest of such, and `asked` is what the trees are for. Of a
    table in partitions, the rows are known (`dtrees.parallel.learn_rows`). O(bytes of the codes and
    the target), at about a gigabyte a second.
    """
    names = [name for name in estimator._constraints if name not in NOT_OF_A_TREE]
    book, coded, target, seed = table
    digest = digest_of_rows(coded) if isinstance(coded, CodedMatrix) else coded.facts.digest
    return {
        "dtrees": dtrees.__version__,
        "asked": asked,
        "estimator": type(estimator).__name__,
        "parameters": {name: in_words(getattr(estimator, name)) for name in names},
        "seed": seed,
        "shape": [int(coded.n_rows), int(coded.n_columns)],
        "codebook": _digest_of_book(book),
        "codes": f"{digest:016x}",
        "target": digest_of(target.facts()),
        "bags": bags,
        "start": digest_of(start) if isinstance(start, Mapping) else start,
    }


def check_same(there: Mapping[str, Any], here: Mapping[str, Any], what: str) -> None:
    """Refuse to go on with trees of another fit; the ValueError names what differs.

    `there` are the facts of the trees, `here` those of this fit; `what` holds the trees. What
    follows from another difference is not named.
    """
    differ = []
    old, new = there.get("parameters", {}), here["parameters"]
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    for name in sorted(changed):
        differ.append(f"{name} was {old.get(name)} and is {new.get(name)}")
    changed |= {name for name in IN_WORDS if there.get(name) != here.get(name)}
    follow = {each for name in changed for each in FOLLOWS.get(name, ())}
    for name, words in IN_WORDS.items():
        if name in changed - follow:
            was = f" (it was {there.get(name)} and is {here[name]})" if name in SAID else ""
            differ.append(f"{words}{was}")
    if differ:
        raise ValueError(
            f"{what} holds trees of another fit, so this one cannot go on with them. What differs: "
            f"{'; '.join(differ)}."
        )


def in_words(value: Any) -> str:
    """A parameter as text that is the same for equal values.

    Arrays, lists and tuples of the same items are equal, and so are numbers of any type, and
    criteria and losses of a user's class with equal attributes. Of a model, whose predictions are
    facts of their own, it is the class.
    """
    if isinstance(value, CompiledCriterion):
        raise ValueError(
            "A checkpoint does not know one compiled criterion from another. Fit without a "
            "checkpoint, or with a dtrees.criteria.Criterion in Python."
        )
    if isinstance(value, Criterion | Loss):
        kind = type(value)
        return f"{kind.__module__}.{kind.__qualname__}{in_words(vars(value))}"
    if hasattr(value, "predict"):
        return type(value).__name__
    if isinstance(value, Mapping):
        items = sorted(f"{in_words(key)}: {in_words(each)}" for key, each in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, np.ndarray | list | tuple) or hasattr(value, "to_numpy"):
        return "[" + ", ".join(map(in_words, np.asarray(value).tolist())) + "]"
    if isinstance(value, np.generic):
        value = value.item()
    return repr(value)


def seed_of(estimator: Any, saved: Checkpoint | None) -> int:
    """The seed of a fit: without a random state, that of trees that are in a checkpoint.

    ModelFileError: it is none.
    """
    if saved is None or saved.facts is None or estimator.random_state is not None:
        return FitPlan(estimator).seed()
    seed = saved.facts.get("seed")
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise ModelFileError(
            f"The checkpoint {saved.path!r} is damaged: its seed is {str(seed)[:20]}."
        )
    return seed


def saved_trees(
    checkpoint: Checkpoint | None,
    facts: Callable[[], dict[str, Any]],
    table: CodedTable,
    stats: FitStatistics,
    unfinished: Unfinished | None = None,
    kept: Sequence[Tree] = (),
) -> SavedTrees | None:
    """The trees of a fit that are there, and those that come; None: nobody asks for them.

    They are in a checkpoint, or of a fit that has ended early: `unfinished` are its complete trees,
    from number 0 on, and its facts. The first ones are `kept`. `facts` and `table` are those of
    this fit; the facts are written to a new checkpoint. Raises ValueError where trees are of
    another fit, and ModelFileError where the checkpoint is damaged.
    """
    if checkpoint is None and unfinished is None:
        return None
    learn(table, stats)
    mine, trees = facts(), list(kept)
    if unfinished is not None:
        check_same(unfinished[1], mine, "The model")
        trees = list(unfinished[0])
    if checkpoint is not None:
        begin(checkpoint, mine)
    found = series(checkpoint, "trees", table[0])
    found.units.extend((0, tree) for tree in trees[len(found.units) :])
    return found


def start_of_kept(
    kept: Sequence[Tree],
    checkpoint: Checkpoint | None,
    unfinished: Unfinished | None,
    book: CodeBook,
) -> str | None:
    """What facts say of the trees that a forest begins with; None: there are none.

    Trees that a warm start keeps may be of other rows. Those that a checkpoint or an unfinished fit
    has are of its facts. `book` is that of this fit.
    """
    start: str | None = None
    if unfinished is not None:
        start = unfinished[1].get("start")
    elif kept:
        start = _digest_of_trees(kept)
        there = {} if checkpoint is None or checkpoint.facts is None else checkpoint.facts
        if there.get("codebook") == _digest_of_book(book):
            trees = series(checkpoint, "trees", book).trees()[0]
            if _digest_of_trees(trees[: len(kept)]) == start:
                start = there.get("start")
    return start


def _digest_of_trees(trees: Sequence[Tree]) -> str:
    arrays = ((i, tree.arrays().items()) for i, tree in enumerate(trees))
    return digest_of({f"{i} {name}": each for i, own in arrays for name, each in own})


def begin(checkpoint: Checkpoint, mine: Mapping[str, Any]) -> None:
    """Begin a checkpoint of these facts, or go on with it; ValueError: it is of another fit."""
    if checkpoint.facts is not None:
        if not isinstance(checkpoint.facts.get("parameters"), dict):
            raise ModelFileError(f"The checkpoint {checkpoint.path!r} is damaged: parameters.")
        check_same(checkpoint.facts, mine, f"The checkpoint {checkpoint.path!r}")
    checkpoint.begin(mine)


def series(checkpoint: Checkpoint | None, name: str, book: CodeBook, n_sets: int = 1) -> SavedTrees:
    """A series of trees of some sets in a checkpoint, if there is one."""
    if checkpoint is None:
        return SavedTrees([])
    units = checkpoint.units(name, lambda data, path: trees_of_bytes(data, path, book))
    logger.info("%d trees of %s are in %s", len(units), name, checkpoint.path)
    return SavedTrees(units, range(n_sets), checkpoint, name, trees_to_bytes)


@dataclass(eq=False)
class SavedGrowths:
    """The trees of all growths of a validation or a search, in a checkpoint.

    A growth has a series, whose name is a digest of what its trees are functions of. So it does not
    matter which other growths there are, and in which order they come.

    Attributes
    ----------
    checkpoint : Checkpoint
    asked : str
        What the growths are for, as facts have it.
    estimator : object
        What the user has given, whose parameters facts have.
    sides : sequence of (array, array)
        Splits of the rows.
    """

    checkpoint: Checkpoint
    asked: str
    estimator: Any
    sides: Sequence[Any]
    _has_begun: bool = field(default=False, init=False)

    def of_growth(
        self, estimator: Any, table: CodedTable, sets: Resampling, stats: FitStatistics, **more: Any
    ) -> SavedTrees:
        """Those of an estimator and some sets; `more` are numbers and arrays, as `start` of facts.

        Raises ValueError where the checkpoint is of another fit, by the first growth.
        """
        learn(table, stats)
        if not self._has_begun:
            train = {str(number): np.asarray(each) for number, (each, _) in enumerate(self.sides)}
            mine = facts_of(self.estimator, table, start=more or None, asked=self.asked)
            begin(self.checkpoint, mine | {"sides": digest_of(train)})
            self._has_begun = True
        mix = sets.mix.cell if isinstance(sets.mix, Lacking) else sets.mix
        mine = facts_of(estimator, table, start={"cells": sets.here().cells, "mix": mix, **more})
        return series(self.checkpoint, digest_of(mine), table[0], sets.n_sets)


def unfinished_fit(model: Any) -> Unfinished:
    """The trees and facts of a fit that has ended early; ValueError: it has not."""
    check_is_fitted(model)
    if "_fit_facts" not in model.__dict__:
        raise ValueError(
            f"This {type(model).__name__} is not of a fit that ended early, so there is nothing to "
            "resume. To add trees to a model, fit it with warm_start=True."
        )
    return model.forest_.trees, model._fit_facts


@contextmanager
def brought_along(model: Any) -> Iterator[None]:
    """Let an error of a cluster bring along a model that goes on, if no more of it has grown."""
    try:
        yield
    except ClusterError as error:
        if error.estimator is None:
            error.estimator = model
        raise


def learn(table: CodedTable, stats: FitStatistics) -> None:
    """Find out what facts say of rows that are not here."""
    if isinstance(table[1], CodedPartitions):
        with stats.phase("coding"):
            learn_rows(table[1], stats)


def bring_along(error: ClusterError, made: Any, n: int, of: int, unit: str = "tree") -> None:
    """Give an error of a cluster the model so far, and say how to go on with it.

    It has `n` trees, or other units, of as many as it was to have.
    """
    error.estimator = made
    are = f"1 {unit} is" if n == 1 else f"{n:,} {unit}s are"
    error.args = (
        f"{str(error).rstrip('.')}. {are} complete, of {of:,}: "
        "error.estimator.resume(X, y) goes on with them.",
        *error.args[1:],
    )


def _digest_of_book(book: CodeBook) -> str:
    encoder = Encoder()
    document, arrays = encode_book(book, encoder)
    return digest_of({"document": repr(document), **arrays, **encoder.arrays})


def digest_of(values: Mapping[str, Any]) -> str:
    """A name for arrays, numbers and strings by name."""
    found = hashlib.blake2b(digest_size=16)
    for name, value in values.items():
        found.update(f"{name} ".encode())
        if isinstance(value, np.ndarray) and value.dtype.kind != "O":
            found.update(f"{value.dtype.str} {value.shape} ".encode())
            flat = value.T if value.flags.f_contiguous else value  # a view, in the order of memory
            found.update(np.ascontiguousarray(flat).reshape(-1).view(np.uint8).data)
        elif isinstance(value, np.ndarray):
            found.update(repr(value.tolist()).encode())
        else:
            found.update(repr(value).encode())
    return found.hexdigest()
