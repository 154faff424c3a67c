"""What a parameter may be, and the sentence that says so when it is not.

A parameter is described by a list of constraints; it is right when one of them holds. The wording
is that of scikit-learn, so that users (and their tests) find what they know::

    The 'max_depth' parameter of DecisionTreeClassifier must be an int in the range [1, inf) or
    None. Got -1 instead.

Types are checked as well as values: 1 is a number of rows and 1.0 a share of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from sklearn import get_config


class InvalidParameterError(ValueError, TypeError):
    """A parameter of the wrong type or outside its range."""


class Constraint(Protocol):
    """Anything that can judge a value and name what it would accept."""

    def accepts(self, value: Any) -> bool:
        """Whether the value is right."""
        ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class IntegerIn:
    """An integer of at least `low`."""

    low: int

    def accepts(self, value: Any) -> bool:
        """Whether the value is such an integer; booleans count, as everywhere in Python."""
        return isinstance(value, Integral) and int(value) >= self.low

    def __str__(self) -> str:
        return f"an int in the range [{self.low}, inf)"


@dataclass(frozen=True)
class RealIn:
    """A number between `low` and `high`."""

    low: float
    high: float
    brackets: str  # two: "[" and "]" include the bound, "(" and ")" do not
    integers: bool = True  # whether a value of integer type is a number here

    def accepts(self, value: Any) -> bool:
        """Whether the value is such a number; nan never is."""
        if not isinstance(value, Real) or (isinstance(value, Integral) and not self.integers):
            return False
        number = float(value)
        above = number >= self.low if self.brackets[0] == "[" else number > self.low
        below = number <= self.high if self.brackets[1] == "]" else number < self.high
        return above and below

    def __str__(self) -> str:
        high = "inf" if math.isinf(self.high) else float(self.high)
        return f"a float in the range {self.brackets[0]}{float(self.low)}, {high}{self.brackets[1]}"


@dataclass(frozen=True)
class OneOf:
    """One of a few strings."""

    options: tuple[str, ...]
    refused_later: tuple[str, ...] = ()  # by the fit, which says why

    def accepts(self, value: Any) -> bool:
        """Whether the value is one of the strings."""
        return isinstance(value, str) and value in self.options + self.refused_later

    def __str__(self) -> str:
        return f"a str among {{{', '.join(map(repr, self.options))}}}"


@dataclass(frozen=True)
class InstanceOf:
    """An instance of a type, under the name that users know it by."""

    type: type
    name: str

    def accepts(self, value: Any) -> bool:
        """Whether the value is an instance."""
        return isinstance(value, self.type)

    def __str__(self) -> str:
        return f"an instance of {self.name!r}"


@dataclass(frozen=True)
class Boolean:
    """True or False, of Python or of NumPy: a grid of parameters may be an array."""

    def accepts(self, value: Any) -> bool:
        """Whether the value is one of the two."""
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        return "an instance of 'bool'"


@dataclass(frozen=True)
class CallableObject:
    """Something that can be called."""

    def accepts(self, value: Any) -> bool:
        """Whether the value can be called."""
        return callable(value)

    def __str__(self) -> str:
        return "a callable"


@dataclass(frozen=True)
class Nothing:
    """None."""

    def accepts(self, value: Any) -> bool:
        """Whether the value is None."""
        return value is None

    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True)
class ArrayLike:
    """A list, a tuple or an array; what is in it is judged where it is used."""

    def accepts(self, value: Any) -> bool:
        """Whether the value has a length or a shape and is no string, set or mapping."""
        if isinstance(value, str | bytes | Mapping):
            return False
        return isinstance(value, Sequence) or hasattr(value, "__array__")

    def __str__(self) -> str:
        return "an array-like"


@dataclass(frozen=True)
class ArrayOf:
    """A NumPy array that `fit` has made."""

    n_dimensions: int
    dtype: np.dtype | None = None  # None: any

    def accepts(self, value: Any) -> bool:
        """Whether the value is such an array."""
        return (
            isinstance(value, np.ndarray)
            and value.ndim == self.n_dimensions
            and (self.dtype is None or value.dtype == self.dtype)
        )

    def __str__(self) -> str:
        of = "" if self.dtype is None else f" of {self.dtype}"
        return f"an array{of} of {self.n_dimensions} dimension(s)"


@dataclass(frozen=True)
class NumberOf:
    """An integer that `fit` has counted, from `low` to `high`, and no boolean."""

    low: int
    high: int

    def accepts(self, value: Any) -> bool:
        """Whether the value is such an integer."""
        is_number = isinstance(value, Integral) and not isinstance(value, bool)
        return is_number and self.low <= int(value) <= self.high

    def __str__(self) -> str:
        return f"an int in the range [{self.low}, {self.high}]"


@dataclass(frozen=True)
class RandomState:
    """What ``sklearn.utils.check_random_state`` takes."""

    def accepts(self, value: Any) -> bool:
        """Whether the value is a seed, a random state or None."""
        if isinstance(value, Integral):
            return 0 <= int(value) < 2**32
        return value is None or isinstance(value, np.random.RandomState)

    def __str__(self) -> str:
        return (
            "an int in the range [0, 4294967295], "
            "an instance of 'numpy.random.mtrand.RandomState' or None"
        )


Constraints = Mapping[str, Sequence[Constraint]]

# What `dtrees.estimators.column_rules` resolves.
COLUMN_RULES: Mapping[str, tuple[Constraint, ...]] = {
    "monotonic_cst": (ArrayLike(), InstanceOf(dict, "dict"), Nothing()),
    "interaction_cst": (OneOf(("pairwise", "no_interactions")), ArrayLike(), Nothing()),
}


def check_parameters(constraints: Constraints, parameters: Mapping[str, Any], owner: str) -> None:
    """Raise InvalidParameterError for the first parameter that none of its constraints accepts.

    Parameters without constraints are not checked; `owner` is the class, for the message. Does
    nothing with ``sklearn.config_context(skip_parameter_validation=True)``.
    """
    if not get_config()["skip_parameter_validation"]:
        check_values(constraints, parameters, "parameter", owner)


def check_values(
    constraints: Constraints, values: Mapping[str, Any], what: str, owner: str
) -> None:
    """As `check_parameters`, of parameters or attributes, whatever scikit-learn's settings say."""
    for name, value in values.items():
        allowed = constraints.get(name)
        if allowed is None or any(constraint.accepts(value) for constraint in allowed):
            continue
        *most, last = map(str, allowed)
        choice = f"{', '.join(most)} or {last}" if most else last
        raise InvalidParameterError(
            f"The {name!r} {what} of {owner} must be {choice}. Got {value!r} instead."
        )
