"""The problem in a table."""

import numpy as np
import pytest

from dtrees.model_selection import problem_of
from dtrees.model_selection.problem import task_of

pd = pytest.importorskip("pandas")


def test_a_column_that_is_not_there_is_named_with_those_that_are_near():
    table = pd.DataFrame({"number": [1.5], "word": ["a"], "class": ["yes"]})
    with pytest.raises(ValueError, match=r"'number3' .*, did you mean 'number' or 'number2'\?"):
        problem_of(table.assign(number2=1), "class", drop=["word", "number3"])


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.array(["a", "b"], dtype=object), "classification"),
        (np.array([True, False]), "classification"),
        (np.arange(20), "classification"),
        (np.arange(21), "regression"),
        (np.array([0.0, 1.0, 1.0]), "classification"),
        (np.array([0.0, 1.5]), "regression"),
        (np.array([np.inf, 1.0]), "classification"),
    ],
)
def test_the_rule_for_the_task(y, task):
    assert task_of(y) == task


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "category", "string", "Float64"])
def test_targets_of_every_dtype_become_arrays(dtype):
    values = {"boolean": [True, None, False], "string": ["x", None, "y"]}.get(dtype, [1, None, 0])
    table = pd.DataFrame({"a": [1, 2, 3], "t": pd.array(values, dtype=dtype)})
    problem = problem_of(table, "t")
    assert problem.task == "classification"
    assert problem.rows_without_target == 1
    assert len(problem.y) == len(problem.X) == 2
    assert problem.y.dtype == (np.int64 if dtype in ("Int64", "Float64") else object)
    assert list(table.columns) == ["a", "t"]
