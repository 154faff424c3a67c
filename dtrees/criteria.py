"""Criteria of your own for trees and forests.

Give an object to ``criterion=`` of a tree or a forest. It is called for each boundary of each node.
In Python that is meant for small tables and for trying out ideas; a compiled function is called
without the GIL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy import LowLevelCallable

from dtrees.core.search._criterion import WITH_DATA, WITHOUT_DATA, side_score

__all__ = ["CompiledCriterion", "Criterion"]


class Criterion(ABC):
    """Base class of a criterion of your own.

    Of a node's boundaries, the one of the highest score is its split. Scores count as gains:
    `feature_importances_` adds them up, and `min_impurity_decrease` is compared with a score
    divided by the weight of all rows. Scores below zero count as none. The impurity of a node,
    which pictures show and pruning by `ccp_alpha` uses, stays the Gini index, or the variance.

    Trees of cross-validation grow one by one with it. Partitions of a cluster are refused.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import DecisionTreeClassifier
    >>> from dtrees.criteria import Criterion
    >>> class Twoing(Criterion):
    ...     def score(self, left, right):
    ...         w, v = left.sum(), right.sum()
    ...         return w * v * abs(left / w - right / v).sum() ** 2 / (w + v)
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(criterion=Twoing(), max_depth=3).fit(X, y)
    >>> round(model.score(X, y), 2)
    0.97

    Of numbers, a side is its weight, mean and variance. Twice the logarithm of the likelihood, of
    normal distributions on either side:

    >>> import math
    >>> from sklearn.datasets import load_diabetes
    >>> from dtrees import DecisionTreeRegressor
    >>> class Normal(Criterion):
    ...     def score(self, left, right):
    ...         return sum(-w * math.log(variance + 1) for w, _, variance in (left, right))
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DecisionTreeRegressor(criterion=Normal(), min_samples_leaf=20).fit(X, y)
    >>> round(model.score(X, y), 1)
    0.6
    """

    @abstractmethod
    def score(self, left: np.ndarray, right: np.ndarray) -> float:
        """How good a split is; higher is better.

        Parameters
        ----------
        left, right : float64 (n_classes,), or (1 + 2 * n_outputs,) of numbers
            Weight of each class on either side, in the order of ``classes_``. Of several targets
            it is asked of each, also where a node has one class of it, and a split has the mean of
            its answers. Of numbers: the weight, then the mean and the variance of the target; of
            each target, where there are several. Both sides weigh something.

        Returns
        -------
        float
            ``-inf`` forbids the split. NaN and ``inf`` are errors.
        """


class CompiledCriterion(Criterion):
    """A criterion that is a compiled function, which is called without the GIL.

    Parameters
    ----------
    function : scipy.LowLevelCallable
        Of a function of ctypes, cffi or Cython, the ``ctypes`` of a ``numba.cfunc``, or a
        ``PyCapsule``, with one of the signatures ::

            double (double *left, double *right, int n, void *user_data)
            double (double *left, double *right, int n)

        Sides are what `Criterion.score` gets, of `n` numbers each, which are not to be changed.
        ``-INFINITY`` and NaN forbid a split.

    Raises
    ------
    TypeError
        `function` is no `scipy.LowLevelCallable`.
    ValueError
        It has another signature.

    Notes
    -----
    Several threads call it at once, so it should change nothing. It lives in this process: it is
    neither pickled nor sent to workers.

    Examples
    --------
    Squared errors, once more. ``cc -O2 -shared -fPIC own.c -o own.so`` of ::

        double score(double *left, double *right, int n)
        {
            double d = left[1] - right[1];
            return left[0] * right[0] / (left[0] + right[0]) * d * d;
        }

    and ::

        import ctypes
        from scipy import LowLevelCallable

        numbers = ctypes.POINTER(ctypes.c_double)
        score = ctypes.CDLL("./own.so").score
        score.argtypes, score.restype = [numbers, numbers, ctypes.c_int], ctypes.c_double
        criterion = CompiledCriterion(LowLevelCallable(score))
        model = DecisionTreeRegressor(criterion=criterion).fit(X, y)
    """

    def __init__(self, function: LowLevelCallable) -> None:
        if not isinstance(function, LowLevelCallable):
            raise TypeError(
                f"A compiled criterion is a scipy.LowLevelCallable, got {type(function).__name__}. "
                "Wrap the function of ctypes, cffi or a PyCapsule: "
                "CompiledCriterion(scipy.LowLevelCallable(function))."
            )
        if function.signature not in (WITH_DATA, WITHOUT_DATA):
            raise ValueError(
                f"A compiled criterion has the signature {WITH_DATA!r}, or {WITHOUT_DATA!r}; got "
                f"{function.signature!r}."
            )
        self.function = function

    def score(self, left: np.ndarray, right: np.ndarray) -> float:
        """What the function says of two sides."""
        sides = np.array([left, right], dtype=np.float64)
        found: float = side_score("user", score_of_user(self))(*sides)
        return found

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledCriterion:
        """Return it as it is: clones of an estimator have the same function."""
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            "A compiled criterion is an address in this process, so it is neither pickled nor sent "
            "to workers. Use threads, or a dtrees.criteria.Criterion in Python."
        )


def score_of_user(criterion: Criterion) -> Any:
    """What growth calls: a function of two sides, or the capsule of a compiled one."""
    if isinstance(criterion, CompiledCriterion):
        return tuple.__getitem__(criterion.function, 0)  # it has the signature for a name
    return criterion.score
