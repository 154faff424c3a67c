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

Facts are kept with the trees: in a checkpoint (`dtrees.parallel.checkpoint`), or in the model that
an error brings along.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

import dtrees
from dtrees.callbacks import Callback, ForestFit
from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix, digest_of_rows
from dtrees.core.membership.resampling import Bags
from dtrees.core.model.tree import Tree
from dtrees.criteria import Criterion
from dtrees.estimators.fit_plan import Encoded
from dtrees.exceptions import ClusterError, ModelFileError
from dtrees.export.books import encode_book
from dtrees.export.trees import trees_of_bytes
from dtrees.export.values import Encoder
from dtrees.parallel import Checkpoint

NOT_OF_A_TREE = (  # parameters that no tree depends on, or only by other facts
    *("n_estimators", "n_jobs", "verbose", "regime", "warm_start"),
    *("oob_score", "oob_tol", "random_state"),
)
IN_WORDS = {
    "dtrees": "the version of dtrees",
    "estimator": "the class",
    "seed": "the seed, which random_state says",
    "shape": "the shape of X",
    "codebook": "the values of X",
    "codes": "the rows of X",
    "target": "y, or sample_weight",
    "bags": "the bags, which bootstrap, max_samples and bootstrap_groups say",
}
SAID = ("dtrees", "estimator", "seed", "shape")  # whose values mean something to people
FOLLOWS = {  # what differs anyway where something else does
    "seed": ("bags",),
    "shape": ("codebook", "codes", "target", "bags"),
    **dict.fromkeys(("max_bins", "categorical_features", "handle_unknown"), ("codebook", "codes")),
    "class_weight": ("target",),
    "bootstrap": ("bags",),
    "max_samples": ("bags",),
    "bootstrap_groups": ("bags",),
}

logger = logging.getLogger(__name__)


def facts_of(estimator: Any, encoded: Encoded, bags: Bags | None) -> dict[str, Any]:
    """What the trees of a fit are functions of; JSON.

    Of a table in partitions, the rows are known (`dtrees.parallel.learn_rows`). O(bytes of the
    codes and the target), at about a gigabyte a second.
    """
    names = [name for name in estimator._constraints if name not in NOT_OF_A_TREE]
    coded, target = encoded.coded, encoded.target
    digest = digest_of_rows(coded) if isinstance(coded, CodedMatrix) else coded.facts.digest
    return {
        "dtrees": dtrees.__version__,
        "estimator": type(estimator).__name__,
        "parameters": {name: in_words(getattr(estimator, name)) for name in names},
        "seed": encoded.seed,
        "shape": [int(coded.n_rows), int(coded.n_columns)],
        "codebook": _digest_of_book(encoded.book),
        "codes": f"{digest:016x}",
        "target": _digest({field.name: getattr(target, field.name) for field in fields(target)}),
        "bags": None if bags is None else bags.digest(),
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
    changed |= {name for name in IN_WORDS if there.get(name) != here[name]}
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
    criteria of a user's class with equal attributes.
    """
    if isinstance(value, Criterion):
        kind = type(value)
        return f"{kind.__module__}.{kind.__qualname__}{in_words(vars(value))}"
    if isinstance(value, Mapping):
        items = sorted(f"{in_words(key)}: {in_words(each)}" for key, each in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, np.ndarray | list | tuple) or hasattr(value, "to_numpy"):
        return "[" + ", ".join(map(in_words, np.asarray(value).tolist())) + "]"
    if isinstance(value, np.generic):
        value = value.item()
    return repr(value)


def seed_of(saved: Checkpoint[Tree]) -> int:
    """The seed of the fit whose trees are in a checkpoint; ModelFileError: it is none."""
    seed = (saved.facts or {}).get("seed")
    if type(seed) is not int or not 0 <= seed < 2**31:
        raise ModelFileError(
            f"The checkpoint {saved.path!r} is damaged: its seed is {str(seed)[:20]}."
        )
    return seed


def earlier_trees(
    unfinished: tuple[Sequence[Tree], Mapping[str, Any]] | None,
    saved: Checkpoint[Tree] | None,
    mine: dict[str, Any],
    book: CodeBook,
) -> tuple[Tree, ...]:
    """The trees of this fit that are there: of a fit that has ended early, or in a checkpoint.

    `unfinished` are the complete trees of a fit that has ended early, from number 0 on, and its
    facts. `mine` are the facts of this fit, which are written to a new checkpoint. Raises
    ValueError where trees are of another fit, and ModelFileError where the checkpoint is damaged.
    """
    trees: tuple[Tree, ...] = ()
    if unfinished is not None:
        there, facts = unfinished
        check_same(facts, mine, "The forest")
        trees = tuple(there)
    if saved is not None:
        if saved.facts is not None:
            check_same(saved.facts, mine, f"The checkpoint {saved.path!r}")
        saved.begin(mine)
        saved_trees = saved.trees(lambda data, name: trees_of_bytes(data, name, book))
        logger.info("%d trees are in %s", len(saved_trees), saved.path)
        trees = (*trees, *saved_trees[len(trees) :])
    return trees


def bring_along(error: ClusterError, made: Any) -> None:
    """Give an error of a cluster the forest so far, and say how to go on with it."""
    error.estimator = made
    trees = len(made.forest_.trees)
    are = "1 tree is" if trees == 1 else f"{trees:,} trees are"
    error.args = (
        f"{str(error).rstrip('.')}. {are} complete, of {made.n_estimators:,}: "
        "error.estimator.resume(X, y) goes on with them.",
        *error.args[1:],
    )


class Saving(Callback):
    """Writes the trees of a fit to a checkpoint, as they come."""

    def __init__(self, checkpoint: Checkpoint[Tree]) -> None:
        self._checkpoint = checkpoint

    def on_tree_end(self, fit: ForestFit, number: int) -> None:
        """Save the trees that are there, if it is time."""
        self._checkpoint.see(fit.trees)

    def on_fit_end(self, fit: ForestFit) -> None:
        """Save what is left, also when the fit has failed."""
        try:
            self._checkpoint.save(fit.trees)
        except OSError as error:
            if fit.error is None:
                raise
            logger.warning("the last trees are not in %s: %s", self._checkpoint.path, error)


def _digest_of_book(book: CodeBook) -> str:
    encoder = Encoder()
    document, arrays = encode_book(book, encoder)
    return _digest({"document": repr(document), **arrays, **encoder.arrays})


def _digest(values: Mapping[str, Any]) -> str:
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
