"""The trees of a boosted model, each by itself, and the parts that model files hold of it.

Trees stand iteration by iteration, and within an iteration class by class (`core.predict.boosted`).
Each is a regression tree of steps, so it is an estimator of its own, that predicts its step::

    estimators_     class 0   class 1   class 2
    iteration 0     tree 0    tree 1    tree 2
    iteration 1     tree 3    tree 4    tree 5

A model file holds the name of the loss and its quantile (of Huber's, that of its width), and not
the loss.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dtrees.constraints import ArrayOf, InstanceOf, IntegerIn
from dtrees.core.losses.losses import Loss
from dtrees.core.losses.own import OwnLoss
from dtrees.estimators.many_trees import ManyTrees
from dtrees.estimators.stored import LEARNS_COLUMNS, MOST
from dtrees.estimators.trees import DecisionTreeRegressor
from dtrees.export.parts import Parts

FLOATS = ArrayOf(1, np.dtype(np.float64))


class BoostedParts(ManyTrees):
    """The trees of boosted models, and their parts; not meant to be used itself."""

    _adds_steps = True
    _tree_class = DecisionTreeRegressor
    _losses: ClassVar[Mapping[str, Loss]]
    _learns: ClassVar = {
        **LEARNS_COLUMNS,
        "n_trees_per_iteration_": (IntegerIn(1, MOST),),
        "do_early_stopping_": (InstanceOf(bool, "bool"),),
        "train_score_": (FLOATS,),
        "validation_score_": (FLOATS,),
        "_initial": (FLOATS,),
        "_fit_loss": (InstanceOf(dict, "dict"),),  # in files
        "_fit_seed": (IntegerIn(0, MOST),),
    }

    @property
    def estimators_(self) -> np.ndarray:
        """The trees as fitted `DecisionTreeRegressor`, object (n_iter_, n_trees_per_iteration_).

        Each predicts its steps, `learning_rate` included. Made at the first look.
        """
        check_is_fitted(self)
        made = self._trees_as_estimators()
        found = np.empty(len(made), dtype=object)
        found[:] = made
        return found.reshape(-1, self.n_trees_per_iteration_)

    def _parts(self) -> Parts:
        parts = super()._parts()
        parts.attributes["_fit_loss"] = said_of(self._fit_loss, type(self).__name__)
        return parts

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        super()._check_parts(parts)
        learned, trees = parts.attributes, parts.trees
        initial, n_classes = learned["_initial"], learned.get("n_classes_", 0)
        if trees[0].criterion != "squared_error":
            raise ValueError("the trees are not those of a boosted model")
        if not np.isfinite(initial).all():
            raise ValueError("_initial is not finite")
        n_values = n_classes if n_classes > 2 else 1
        if not n_values == len(initial) == learned["n_trees_per_iteration_"]:
            raise ValueError(f"n_trees_per_iteration_ and _initial are not {n_values} of each")
        if len(trees) % n_values > 0:
            raise ValueError("an iteration has not all of its trees")
        for name in ("train_score_", "validation_score_"):
            if 0 < len(learned[name]) <= len(trees) // n_values:
                raise ValueError(f"{name} has no score for some iterations")
        loss_of(learned["_fit_loss"], cls._losses)

    @classmethod
    def _of_parts(cls, parts: Parts) -> Any:
        made = super()._of_parts(parts)
        made._fit_loss = loss_of(made._fit_loss, cls._losses)
        return made


def said_of(loss: Loss | OwnLoss, owner: str) -> dict[str, Any]:
    """What a model file says of a loss.

    Raises
    ------
    TypeError
        It is a loss of the user's own.
    """
    if type(loss) is not Loss:
        raise TypeError(
            f"The loss of this {owner} is an object of the class {loss.name}, which is code, and a "
            "model file holds none. Pickle the model, or save one of a loss that has a name."
        )
    return {"name": loss.name, "level": loss.level if loss.beyond is None else loss.beyond}


def loss_of(said: Mapping[str, Any], losses: Mapping[str, Loss]) -> Loss:
    """The loss that a model file speaks of.

    Raises
    ------
    ValueError
        There is none of this name, or none with this quantile.
    """
    name, level = said.get("name"), said.get("level")
    if said.keys() != {"name", "level"} or not isinstance(name, str) or name not in losses:
        raise ValueError(f"_fit_loss is {str(said)[:60]}")
    loss = losses[name]
    if name == "quantile" and type(level) is float and 0 <= level <= 1:
        return loss.with_level(level)
    if name == "huber" and type(level) is float and 0 < level < 1:
        return replace(loss, beyond=level)
    if level != loss.level:
        raise ValueError(f"_fit_loss has the quantile {str(level)[:20]}")
    return loss
