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
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np

from dtrees._other_words import did_you_mean, elsewhere, refuse_other_scorers

F = TypeVar("F", bound=Callable[..., Any])
SHOWN = 300  # letters of a value in a message


class InvalidParameterError(ValueError, TypeError):
    """A parameter of the wrong type or outside its range."""


class Constraint:
    """A set of values, and the words for it.

    A value is of `types`, and of none of the types in `but`. A number is between `low` and `high`;
    "[" and "]" in `brackets` include these, "(" and ")" do not. If there are `options`, it is one
    of them. And `test` says of it what else has to be true.
    """

    def __init__(
        self,
        words: str,
        types: Any = object,
        *,
        but: Any = (),
        low: float | None = None,
        high: float | None = None,
        brackets: str = "[]",
        options: tuple[str, ...] = (),
        test: Callable[[Any], bool] | None = None,
    ) -> None:
        self.words, self.types, self.but = words, types, but
        self.low, self.high, self.brackets = low, high, brackets
        self.options, self.test = options, test

    def __str__(self) -> str:
        return self.words

    def accepts(self, value: Any) -> bool:
        """Whether the value is right; nan never is, where there is a limit."""
        if not isinstance(value, self.types) or isinstance(value, self.but):
            return False
        if self.options and value not in self.options:
            return False
        if self.low is not None or self.high is not None:
            number = int(value) if isinstance(value, Integral) else float(value)
            low, high = self.low, self.high
            above = low is None or number > low or (number == low and self.brackets[0] == "[")
            below = high is None or number < high or (number == high and self.brackets[1] == "]")
            if not (above and below):
                return False
        return self.test is None or self.test(value)


class IntegerIn(Constraint):
    """An integer from `low` to `high` (None: no limit), and no boolean."""

    def __init__(self, low: int, high: int | None = None) -> None:
        words = f"an int in the range [{low}, {'inf)' if high is None else f'{high}]'}"
        super().__init__(words, Integral, but=bool, low=low, high=high)


class RealIn(Constraint):
    """A number between two limits, and no boolean; `integers` says whether 1 is a number here."""

    def __init__(self, low: float, high: float, brackets: str, integers: bool = True) -> None:
        most = "inf" if math.isinf(high) else float(high)
        words = f"a float in the range {brackets[0]}{float(low)}, {most}{brackets[1]}"
        but = bool if integers else Integral
        super().__init__(words, Real, but=but, low=low, high=high, brackets=brackets)


class OneOf(Constraint):
    """One of a few strings; those that are `refused_later` are so by the fit, which says why."""

    def __init__(self, options: tuple[str, ...], refused_later: tuple[str, ...] = ()) -> None:
        words = f"a str among {{{', '.join(map(repr, options))}}}"
        super().__init__(words, str, options=options + refused_later)


class InstanceOf(Constraint):
    """An instance of a type, or of a union of types, under the name that users know it by."""

    def __init__(self, kind: Any, name: str) -> None:
        super().__init__(f"an instance of {name!r}", kind)


class Boolean(Constraint):
    """True or False, of Python or of NumPy: a grid of parameters may be an array."""

    def __init__(self) -> None:
        super().__init__("an instance of 'bool'", bool | np.bool_)


class CallableObject(Constraint):
    """Something that can be called, and is no class: an instance was meant."""

    def __init__(self) -> None:
        super().__init__("a callable", but=type, test=callable)


class Nothing(Constraint):
    """None."""

    def __init__(self) -> None:
        super().__init__("None", type(None))


def _is_array_like(value: Any) -> bool:
    """Whether the value has a length or a shape and is no string, set or mapping."""
    if isinstance(value, str | bytes | type) or np.isscalar(value):
        return False
    shape = getattr(value, "shape", None)
    if shape is None:
        return isinstance(value, Sequence) or hasattr(value, "__array__")
    return not isinstance(shape, tuple) or len(shape) > 0


class ArrayLike(Constraint):
    """A list, a tuple, an array or a column of any library; what is in it is judged elsewhere."""

    def __init__(self) -> None:
        super().__init__("an array-like", test=_is_array_like)


class ListLike(Constraint):
    """A list, tuple, set, array or index: what can be gone through twice, and is no mapping."""

    def __init__(self) -> None:
        super().__init__(
            "a list, tuple, set or array",
            test=lambda value: isinstance(value, Set) or _is_array_like(value),
        )


class Having(Constraint):
    """An object, and no class, that has a method."""

    def __init__(self, method: str) -> None:
        words = f"an object with the method {method!r}"
        super().__init__(words, but=(str, bytes, type), test=lambda value: hasattr(value, method))


def _has_splits(value: Any) -> bool:
    """Whether the value can be gone through, and has pairs where that can be told."""
    pairs = (list, tuple, np.ndarray)

    def length(given: Any) -> int | None:
        return None if getattr(given, "shape", None) == () else len(given)

    if isinstance(value, pairs):
        return length(value) is not None and all(
            isinstance(split, pairs) and length(split) == 2 for split in value
        )
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | Set)


class Splits(Constraint):
    """Pairs of a training side and a test side, which are judged where they are drawn."""

    def __init__(self) -> None:
        super().__init__("an iterable of (train, test)", test=_has_splits)


class ArrayOf(Constraint):
    """A NumPy array that `fit` has made; `dtype` None: of any type."""

    def __init__(self, n_dimensions: int, dtype: np.dtype | None = None) -> None:
        of = "" if dtype is None else f" of {dtype}"
        super().__init__(
            f"an array{of} of {n_dimensions} dimension(s)",
            np.ndarray,
            test=lambda value: (
                value.ndim == n_dimensions and (dtype is None or value.dtype == dtype)
            ),
        )


Constraints = Mapping[str, Sequence[Constraint]]

# What ``sklearn.utils.check_random_state`` takes.
RANDOM_STATE = (
    Constraint("an int in the range [0, 4294967295]", Integral, low=0, high=2**32 - 1),
    InstanceOf(np.random.RandomState, "numpy.random.mtrand.RandomState"),
    Nothing(),
)
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


def check_values(
    constraints: Constraints,
    values: Mapping[str, Any],
    owner: str,
    what: str = "parameter",
    *,
    always: bool = False,
) -> None:
    """Raise InvalidParameterError for the first value that none of its constraints accepts.

    Values without constraints are not checked. `owner` is the class or function, and `what` says
    what the values are, for the message. Unless it is to be done `always`, nothing is checked with
    ``sklearn.config_context(skip_parameter_validation=True)``.
    """
    from sklearn import get_config

    if get_config()["skip_parameter_validation"] and not always:
        return
    for name, value in values.items():
        allowed = constraints.get(name)
        if allowed is None or any(constraint.accepts(value) for constraint in allowed):
            continue
        *most, last = map(str, allowed)
        got = repr(value)
        got = got if len(got) <= SHOWN else f"{got[:SHOWN]}... ({type(value).__name__})"
        choice = f"{', '.join(most)} or {last}" if most else last
        options = [word for each in allowed for word in each.options]
        hint = did_you_mean(value, options) or elsewhere(value, options)
        raise InvalidParameterError(
            f"The {name!r} {what} of {owner} must be {choice}. Got {got} instead.{hint}"
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
                refuse_other_scorers(given.get("scoring"))
                if theirs is not None:
                    _check_as(theirs, given)
                owner = function.__qualname__
                if "self" in given:  # the class that the user has, not the one that defines it
                    owner = f"{type(given['self']).__name__}.{function.__name__}"
                check_values(constraints, given, owner)
            return function(*args, **kwargs)

        return cast(F, call)

    return decorate
