"""What the docstrings say is there, and their examples run."""

import doctest
import inspect
import re

import pytest

from dtrees import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    callbacks,
)
from dtrees.estimators import forest_kinds, trees

TREES = [DecisionTreeClassifier, DecisionTreeRegressor]
FORESTS = [
    RandomForestClassifier,
    RandomForestRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    BaggingClassifier,
    BaggingRegressor,
]
BOOSTED = [AdaBoostClassifier, AdaBoostRegressor]
KINDS = [*TREES, *FORESTS, *BOOSTED]


def section(text, title):
    found = re.search(rf"\n{title}\n-+\n(.*?)(?=\n\n?[A-Z][\w ]+\n-+\n|\Z)", text, re.DOTALL)
    return re.findall(r"^(\w+) : ", found.group(1), re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_is_described_in_its_order(kind):
    described = section(inspect.getdoc(kind), "Parameters")
    assert described == list(inspect.signature(kind).parameters)


@pytest.mark.parametrize("kind", KINDS)
def test_every_attribute_is_described(kind):
    import pandas as pd

    table = pd.DataFrame({"x": [float(i) for i in range(8)]})
    tree = kind()
    if kind in FORESTS:
        tree.set_params(n_estimators=50, random_state=0, bootstrap=True, oob_tol=0.0)
    tree.fit(table, [0, 1] * 4)
    learned = {name for name in vars(tree) if name.endswith("_")} | {"feature_importances_"}
    of_forests = {"n_estimators_", "estimators_samples_"}
    learned |= {"estimator_", "estimators_"} if kind in FORESTS + BOOSTED else set()
    learned |= of_forests if kind in FORESTS else set()
    learned |= set() if kind in BOOSTED else {"target_names_in_"}  # of several targets
    assert set(section(inspect.getdoc(kind), "Attributes")) == learned


@pytest.mark.parametrize("kind", KINDS)
def test_no_placeholder_is_left(kind):
    text = inspect.getdoc(kind)
    assert not re.findall(r"\{[a-z_]*\}", text)
    assert all(len(line) <= 96 for line in text.splitlines())


@pytest.mark.parametrize("module", [trees, forest_kinds, callbacks])
def test_examples(module):
    results = doctest.testmod(module)
    assert results.attempted > 5
    assert results.failed == 0
