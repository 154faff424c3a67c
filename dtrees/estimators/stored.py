"""What all estimators have: parameters, a report of the fit, and their parts for model files.

    estimator ──_parts──▶ parameters, attributes, trees, codebook ──_of_parts──▶ estimator
                                  └──_check_parts──▶ nothing, or an error

An estimator says what its parameters may be and what its fit learns, as constraints. Files hold
these attributes and no others, and what a file says is checked by the same constraints.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from dtrees.constraints import (
    ArrayOf,
    Constraint,
    IntegerIn,
    check_parameters,
    check_values,
)
from dtrees.estimators.fit_plan import LARGEST_SEED
from dtrees.estimators.other_names import names_others
from dtrees.export.parts import Parts

MOST = LARGEST_SEED

# What all estimators learn, and what classifiers learn beside it.
LEARNS_COLUMNS: Mapping[str, tuple[Constraint, ...]] = {
    "n_features_in_": (IntegerIn(1, MOST),),
    "feature_names_in_": (ArrayOf(1, np.dtype(object)),),
    "_date_orders": (ArrayOf(1, np.dtype(np.uint8)),),  # of `dtrees.coding.text_dates`, by column
}
LEARNS_CLASSES: Mapping[str, tuple[Constraint, ...]] = {
    "classes_": (ArrayOf(1),),
    "n_classes_": (IntegerIn(1, MOST),),
}


class Stored(BaseEstimator, ABC):
    """What trees, forests and boosted models have in common; not meant to be used itself."""

    _fit_report: dict[str, Any]

    _constraints: ClassVar[Mapping[str, tuple[Constraint, ...]]]
    # What a fit learns, beside trees and codebook; model files hold nothing else.
    _learns: ClassVar[Mapping[str, tuple[Constraint, ...]]]
    _learns_at_times: ClassVar[frozenset[str]] = frozenset({"feature_names_in_", "_date_orders"})
    _adds_steps: ClassVar[bool] = False  # trees are of numbers, whatever the target

    def __init_subclass__(cls, **given: Any) -> None:
        """Let constructors and fits know the parameters of other libraries."""
        super().__init_subclass__(**given)
        for name in {"__init__", "fit"} & vars(cls).keys():
            setattr(cls, name, names_others(vars(cls)[name]))

    @abstractmethod
    def _parts(self) -> Parts:
        """What a fitted estimator is made of, for model files."""

    @classmethod
    @abstractmethod
    def _of_parts(cls, parts: Parts) -> Any:
        """The estimator that is made of these parts."""

    def _forget_at_times(self) -> None:
        """Take away what an earlier fit may have left that the next one does not."""
        for name in self._learns_at_times:
            self.__dict__.pop(name, None)

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        """Refuse parameters and attributes that no fit of this class has.

        Raises InvalidParameterError where one is of the wrong type or outside its range, and
        ValueError where one is missing, or does not fit the others.
        """
        check_values(cls._constraints, parts.parameters, "parameter", cls.__name__)
        check_values(cls._learns, parts.attributes, "attribute", cls.__name__)
        missing = cls._learns.keys() - cls._learns_at_times - parts.attributes.keys()
        if missing:
            raise ValueError(f"there is no attribute {min(missing)!r}")

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(cls._names_in_signature())

    @classmethod
    @cache
    def _names_in_signature(cls) -> tuple[str, ...]:
        # scikit-learn reads it each time: some fifty times in a search of ten candidates
        return tuple(super()._get_param_names())

    def _learned_attributes(self) -> dict[str, Any]:
        """What `fit` learned, beside trees and codebook."""
        check_is_fitted(self)
        return {name: value for name, value in vars(self).items() if name in self._learns}

    def _check_parameters(self) -> None:
        # not get_params, which reads the signature anew each time
        check_parameters(
            self._constraints,
            {name: getattr(self, name) for name in self._constraints},
            type(self).__name__,
        )

    @property
    def fit_report_(self) -> dict[str, Any]:
        """What the fit did, and what it took; plain numbers and strings.

        Models of a cross-validation, and the ``best_estimator_`` of a search, were grown together.
        Each tells the same, of the growth that they share; its coding may be shared with other
        growths. Scores are not part of it. Nor is the report part of the model: it is not pickled
        or saved.

        - ``regime``, ``reason``: where trees were grown, and why there.
        - ``seconds``: dict of the phases: ``coding``, ``growth``, ``reading`` of what else a Dask
          collection has to tell, and, within growth on a cluster, what was waited for.
        - Of several training sets, over all trees: ``shared_nodes``, which were searched for two
          sets or more at once, and ``shared_rows``, the rows of these nodes, each once (in the
          partitioned regime those of the node's largest set). ``bounded_columns`` of these nodes
          were searched by bounds of intervals, and of ``alive_columns`` some codes had to be
          looked at. All are 0 where every set grew on its own. They depend on no number of
          threads.
          In the replicated regime, fewer nodes are shared where a cluster has more threads than the
          forest has trees: the sets are divided then.
        - Of several training sets of a boosted model, ``models_together``: how many models grew
          side by side, each with sums of its own.
        - On a cluster, ``lost_workers``, and where it happened ``retries`` of tasks and
          ``restarts``: everything had to be sent or made again.
        - In the replicated regime: ``tasks``, and ``bytes_moved``: the table, once for every worker
          that it was sent to, and trees on their way back.
        - In the partitioned regime: ``rounds``, ``passes`` over the codes, ``bytes_moved``: counts,
          rows and blocks, ``cache_hits`` and ``rebuilds`` of the places of rows.
        """
        check_is_fitted(self)
        if "_fit_report" not in self.__dict__:
            raise AttributeError("This model has no fit_report_: it was not made by fit.")
        report: dict[str, Any] = deepcopy(self._fit_report)
        return report

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_fit_report", None)
        return state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags
