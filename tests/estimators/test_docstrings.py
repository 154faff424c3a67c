"""What the docstrings say is there, and their examples run."""

import doctest
import inspect
import re

import pytest

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.estimators import trees

KINDS = [DecisionTreeClassifier, DecisionTreeRegressor]


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

    tree = kind().fit(pd.DataFrame({"x": [0.0, 1.0]}), [0, 1])
    learned = {name for name in vars(tree) if name.endswith("_")} | {"feature_importances_"}
    assert set(section(inspect.getdoc(kind), "Attributes")) == learned


def test_examples():
    results = doctest.testmod(trees)
    assert results.attempted > 5
    assert results.failed == 0
