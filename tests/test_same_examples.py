"""The examples of a law are the same in every run."""

import importlib.util
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


def drawn():
    """What a law draws."""
    found = []

    def note(cells):
        found.append(repr(cells))

    law = given(st.tuples(st.integers(), st.floats(), st.text()))(note)
    settings(database=None, derandomize=True, max_examples=100)(law)()
    return found


@pytest.mark.skipif(not settings().derandomize, reason="other examples in each run are wanted")
def test_examples_do_not_depend_on_what_is_loaded(tmp_path, monkeypatch):
    before = drawn()
    path = tmp_path / "constants.py"
    path.write_text(f"ALL = {[*range(1000, 1200), *np.linspace(0.1, 9, 90).tolist()]}\n")
    spec = importlib.util.spec_from_file_location("constants", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "constants", module)
    assert drawn() == before
