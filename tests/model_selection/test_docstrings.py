"""The examples in docstrings run."""

import doctest
from importlib import import_module

import pytest

MODULES = ["validation", "search", "surface", "cost_complexity", "tuned_size"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = import_module(f"dtrees.model_selection.{name}")
    found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
    assert found.attempted > 0
