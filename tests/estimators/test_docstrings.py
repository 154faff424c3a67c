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


def entries(kind, title):
    """What a section of the class's docstring says, by name."""
    text = re.search(rf"\n{title}\n-+\n(.*?)\n\n", inspect.getdoc(kind), re.DOTALL).group(1)
    return dict(re.findall(r"^(\w+) : (.*(?:\n .*)*)", text, re.MULTILINE))


@pytest.mark.parametrize("title", ["Parameters", "Attributes"])
def test_what_both_have_is_described_in_the_same_words(title):
    one, other = (entries(kind, title) for kind in KINDS)
    shared = (one.keys() & other.keys()) - {"criterion"}
    assert len(shared) > 5
    assert {name: one[name] for name in shared} == {name: other[name] for name in shared}


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
