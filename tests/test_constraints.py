"""What a parameter may be, in the words of scikit-learn."""

import math
import re
from enum import StrEnum
from fractions import Fraction

import numpy as np
import pytest
import sklearn

from dtrees import DecisionTreeClassifier, GradientBoostingClassifier, RandomForestClassifier
from dtrees.constraints import (
    RANDOM_STATE,
    ArrayLike,
    ArrayOf,
    Boolean,
    CallableObject,
    InstanceOf,
    IntegerIn,
    ListLike,
    Nothing,
    OneOf,
    RealIn,
    Splits,
    check_values,
)
from dtrees.estimators import InvalidParameterError
from tests.estimators.test_errors import CLASSES, X, both, refused

INT = r"an int in the range \[1, inf\) or None"

SHARES = r"an int in the range \[2, inf\) or a float in the range \(0.0, 1.0\]"

LEAF = r"an int in the range \[1, inf\) or a float in the range \(0.0, 1.0\)"


@both
@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("max_depth", -1, INT),
        ("max_depth", 0, INT),
        ("max_depth", 2.5, INT),
        ("max_depth", "deep", INT),
        ("min_samples_split", 1, SHARES),
        ("min_samples_split", 0.0, SHARES),
        ("min_samples_split", 1.5, SHARES),
        ("min_samples_split", None, SHARES),
        ("min_samples_leaf", 0, LEAF),
        ("min_samples_leaf", 1.0, LEAF),
        ("min_samples_leaf", float("nan"), LEAF),
        ("min_weight_fraction_leaf", 0.6, r"a float in the range \[0.0, 0.5\]"),
        ("min_weight_fraction_leaf", -0.1, r"a float in the range \[0.0, 0.5\]"),
        ("max_features", 0, LEAF.replace("1.0\\)", "1.0\\]").replace(" or", ",")),
        ("max_features", 0.0, "a str among {'sqrt', 'log2'} or None"),
        ("max_features", "auto", "a str among {'sqrt', 'log2'} or None"),
        ("max_leaf_nodes", 1, r"an int in the range \[2, inf\) or None"),
        ("min_impurity_decrease", -0.1, r"a float in the range \[0.0, inf\)"),
        ("ccp_alpha", -1, r"a float in the range \[0.0, inf\)"),
        ("ccp_alpha", float("inf"), r"a float in the range \[0.0, inf\)"),
        ("random_state", "seed", r"an int in the range \[0, 4294967295\], an instance of"),
        ("random_state", -1, r"an int in the range \[0, 4294967295\], an instance of"),
        ("criterion", "absolute", "a str among"),
        ("max_bins", 1, r"an int in the range \[2, inf\) or None"),
        ("max_bins", 255.0, r"an int in the range \[2, inf\) or None"),
        ("categorical_features", "all", "a str among {'from_dtype'}, an array-like or None"),
        ("categorical_features", 3, "a str among {'from_dtype'}, an array-like or None"),
        ("handle_unknown", "ignore", "a str among {'missing', 'majority', 'error'}"),
        ("n_jobs", 1.5, "an instance of 'int' or None"),
    ],
)
def test_parameters(kind, name, value, sentence):
    match = (
        f"The '{name}' parameter of {kind.__name__} must be .*{sentence}.* Got {value!r} instead."
    )
    refused(kind(**{name: value}), match, X, CLASSES, error=InvalidParameterError)


def test_parameters_are_named_as_in_scikit_learn():
    shared = {
        "max_depth": -1,
        "min_samples_split": 1,
        "min_samples_leaf": -0.5,
        "min_weight_fraction_leaf": 2,
        "max_leaf_nodes": 0,
        "min_impurity_decrease": -1.0,
        "ccp_alpha": -0.5,
        "random_state": "seed",
    }
    for name, value in shared.items():
        said = []
        for tree in (DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier):
            with pytest.raises(ValueError, match=name) as error:
                tree(**{name: value}).fit(X, CLASSES)
            said.append(sorted(str(error.value).replace("{", " ").replace("}", " ").split()))
        assert said[0] == said[1], name
    words = r"The 'criterion' parameter of \w+ must be a str among \{.*\}.* Got 'no such thing' ins"
    for tree in (DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier):
        with pytest.raises(ValueError, match=words):
            tree(criterion="no such thing").fit(X, CLASSES)


@both
def test_validation_can_be_switched_off(kind):
    with sklearn.config_context(skip_parameter_validation=True):
        tree = kind(min_samples_leaf=np.float32(0.1)).fit(X, CLASSES).tree_
    assert tree.n_node_samples.min() >= 4  # a tenth of 40


INTEGERS = [1, np.int8(1), np.uint64(1)]
REALS = [0.5, np.float32(0.5), Fraction(1, 2)]
NEITHER = [None, "1", [1], math.nan, 1j, True, np.True_]


@pytest.mark.parametrize(
    ("constraint", "right", "wrong"),
    [
        (IntegerIn(1), INTEGERS, [0, -1, *REALS, *NEITHER]),
        (RealIn(0, 1, "[]"), [0, 1, 0.0, 1.0, *REALS, *INTEGERS], [-0.1, 1.1, *NEITHER]),
        (RealIn(0, 1, "()", integers=False), REALS, [0.0, 1.0, *INTEGERS, *NEITHER]),
        (RealIn(0, math.inf, "[)"), [0, 1e300, *REALS], [math.inf, -1, *NEITHER]),
        (OneOf(("a", "b")), ["a", np.str_("b")], ["c", "", ["a"], None]),
        (InstanceOf(bool, "bool"), [True, False], [1, np.True_, None]),
        (CallableObject(), [len, lambda: 0], ["len", None]),
        (Nothing(), [None], [0, False, ""]),
        (ArrayLike(), [[1], (), range(2), np.ones(2)], ["a", b"a", {1}, {1: 2}, 1, None]),
        (ListLike(), [["a"], {"a"}, np.ones(2)], ["a", StrEnum("Word", "ab").ab, {}, None]),
        (Splits(), [[], [(0, 1)], np.ones((3, 2, 4)), iter([])], ["a", [1], {}, np.array(3)]),
        (Splits(), [], [[np.array(3)], [(0, 1, 2)], None, 3]),
        (ArrayOf(1), [np.ones(2)], [[1.0], np.ones((2, 2)), np.float64(1)]),
        (ArrayOf(1, np.dtype(object)), [np.array(["a"], object)], [np.array(["a"])]),
        (IntegerIn(0, 5), [0, 5, np.int64(3)], [-1, 6, True, 1.0, None]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_right_and_what_is_not(constraint, right, wrong):
    assert [value for value in right if not constraint.accepts(value)] == []
    assert [value for value in wrong if constraint.accepts(value)] == []


def test_states_that_random_draws_begin_with():
    for value in (None, 0, 2**32 - 1, np.random.RandomState(0)):
        check_values({"seed": RANDOM_STATE}, {"seed": value}, "Owner")
    for value in (-1, 2**32, 1.0, "1", np.random.default_rng(0)):
        with pytest.raises(InvalidParameterError):
            check_values({"seed": RANDOM_STATE}, {"seed": value}, "Owner")


def test_the_sentence_names_all_that_would_be_right():
    allowed = {"x": (IntegerIn(2), RealIn(0, math.inf, "(]"), Nothing())}
    words = (
        "The 'x' attribute of Owner must be an int in the range [2, inf), a float in the range "
        "(0.0, inf] or None. Got 'many' instead."
    )
    with pytest.raises(InvalidParameterError, match=f"^{re.escape(words)}$"):
        check_values(allowed, {"y": "not checked", "x": "many"}, "Owner", "attribute")
    check_values(allowed, {"x": 0.5}, "Owner", "attribute")
    with sklearn.config_context(skip_parameter_validation=True):
        check_values(allowed, {"x": "many"}, "Owner")
        with pytest.raises(InvalidParameterError):
            check_values(allowed, {"x": "many"}, "Owner", always=True)


def test_booleans_of_numpy():
    """As in a grid of parameters that is an array."""
    for value in (np.True_, True, np.False_):
        assert Boolean().accepts(value)
    for value in (1, "yes", None, np.array([True])):
        assert not Boolean().accepts(value)
    forest = RandomForestClassifier(2, bootstrap=np.False_, warm_start=np.True_, random_state=0)
    assert forest.fit([[0], [1]], [0, 1]).predict([[1]]) == [1]
    model = GradientBoostingClassifier(early_stopping=np.False_, max_iter=1, min_samples_leaf=1)
    assert not model.fit([[0], [1]], [0, 1]).do_early_stopping_
