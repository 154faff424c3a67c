"""What a parameter may be, and the sentence that says so when it is not.

A parameter is described by a list of constraints; it is right when one of them holds. The wording
is that of scikit-learn, so that users (and their tests) find what they know::

    The 'max_depth' parameter of DecisionTreeClassifier must be an int in the range [1, inf) or
    None. Got -1 instead.

Types are checked as well as values: 1 is a number of rows and 1.0 a share of them. Estimators check
their parameters in ``fit``. Public functions, and methods of their results, are decorated with
`checked`. What depends on other arguments is checked where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, Protocol, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


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
    """An integer from `low` to `high`, and no boolean."""

    low: int
    high: int | None = None  # None: no limit

    def accepts(self, value: Any) -> bool:
        """Whether the value is such an integer."""
        return (
            isinstance(value, Integral)
            and not isinstance(value, bool)
            and self.low <= int(value)
            and (self.high is None or int(value) <= self.high)
        )

    def __str__(self) -> str:
        return (
            f"an int in the range [{self.low}, {'inf)' if self.high is None else f'{self.high}]'}"
        )


@dataclass(frozen=True)
class RealIn:
    """A number between `low` and `high`."""

    low: float
    high: float
    brackets: str  # two: "[" and "]" include the bound, "(" and ")" do not
    integers: bool = True  # whether a value of integer type is a number here

    def accepts(self, value: Any) -> bool:
        """Whether the value is such a number; nan and booleans never are."""
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        if isinstance(value, Integral) and not self.integers:
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

    type: Any  # or a union of types
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
        """Whether the value can be called, and is no class: an instance was meant."""
        return callable(value) and not isinstance(value, type)

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
    """A list, a tuple, an array or a column of any library; what is in it is judged elsewhere."""

    def accepts(self, value: Any) -> bool:
        """Whether the value has a length or a shape and is no string, set or mapping."""
        if isinstance(value, str | bytes | type) or np.isscalar(value):
            return False
        shape = getattr(value, "shape", None)
        if shape is None:
            return isinstance(value, Sequence) or hasattr(value, "__array__")
        return not isinstance(shape, tuple) or len(shape) > 0

    def __str__(self) -> str:
        return "an array-like"


@dataclass(frozen=True)
class ListLike:
    """A list, tuple, set, array or index of things: names, models, splits."""

    def accepts(self, value: Any) -> bool:
        """Whether the value can be gone through more than once, and is no string or mapping."""
        return ArrayLike().accepts(value) or isinstance(value, Set)

    def __str__(self) -> str:
        return "a list, tuple, set or array"


@dataclass(frozen=True)
class Having:
    """An object with a method."""

    method: str

    def accepts(self, value: Any) -> bool:
        """Whether the value is an object, and no class, that has the method."""
        return hasattr(value, self.method) and not isinstance(value, str | bytes | type)

    def __str__(self) -> str:
        return f"an object with the method {self.method!r}"


def _length(value: Any) -> int | None:
    """Of a list, tuple or array; an array without dimensions has none."""
    return None if getattr(value, "shape", None) == () else len(value)


@dataclass(frozen=True)
class Splits:
    """Pairs of a training side and a test side, which are judged where they are drawn."""

    def accepts(self, value: Any) -> bool:
        """Whether the value can be gone through, and has pairs where that can be told."""
        pairs = (list, tuple, np.ndarray)
        if isinstance(value, pairs):
            return _length(value) is not None and all(
                isinstance(split, pairs) and _length(split) == 2 for split in value
            )
        return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | Set)

    def __str__(self) -> str:
        return "an iterable of (train, test)"


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

CV = (IntegerIn(2), Having("split"), Splits())
SCORER = (InstanceOf(str, "str"), CallableObject(), Nothing())
ESTIMATOR = (Having("fit"),)
ARRAY = (ArrayLike(),)
ROWS = (ArrayLike(), Nothing())  # a value for each row: groups, weights
NAMES = (ArrayLike(), Nothing())
PARAMS = (InstanceOf(Mapping, "dict"), Nothing())
CONFIDENCE = (RealIn(0.5, 1, "[)"),)
AXES = (Having("plot"), Nothing())  # of matplotlib, which is not imported to tell
ERROR_SCORE = (OneOf(("raise",)), InstanceOf(Real, "float"))

# What `dtrees.estimators.column_rules` resolves.
COLUMN_RULES: Mapping[str, tuple[Constraint, ...]] = {
    "monotonic_cst": (ArrayLike(), InstanceOf(dict, "dict"), Nothing()),
    "interaction_cst": (OneOf(("pairwise", "no_interactions")), ArrayLike(), Nothing()),
}


def check_parameters(constraints: Constraints, parameters: Mapping[str, Any], owner: str) -> None:
    """Raise InvalidParameterError for the first parameter that none of its constraints accepts.

    Parameters without constraints are not checked; `owner` is the class or function, for the
    message. Does nothing with ``sklearn.config_context(skip_parameter_validation=True)``.
    """
    from sklearn import get_config

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


def _check_as(theirs: Any, given: Mapping[str, Any]) -> None:
    """Check arguments as a function of scikit-learn does."""
    from sklearn import get_config
    from sklearn.utils._param_validation import validate_parameter_constraints

    if not get_config()["skip_parameter_validation"]:
        rules = theirs._skl_parameter_constraints
        validate_parameter_constraints(rules, given, theirs.__name__)


def checked(
    theirs: Callable[..., Any] | None = None, /, **constraints: Sequence[Constraint]
) -> Callable[[F], F]:
    """Decorate a public function or method: arguments are checked before it runs.

    `theirs` is scikit-learn's function in whose place this one stands: its own check comes first,
    with its own messages. Defaults are not checked.

    Raises InvalidParameterError, a ValueError and a TypeError, for the first argument that none of
    its constraints accepts.
    """

    def decorate(function: F) -> F:
        form = signature(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                given = form.bind(*args, **kwargs).arguments
            except TypeError:  # of the call below, too, which names the function
                given = None
            if given is not None:
                if theirs is not None:
                    _check_as(theirs, given)
                owner = function.__qualname__
                if "self" in given:  # the class that the user has, not the one that defines it
                    owner = f"{type(given['self']).__name__}.{function.__name__}"
                check_parameters(constraints, given, owner)
            return function(*args, **kwargs)

        return cast(F, call)

    return decorate
