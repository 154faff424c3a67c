"""The problem in a table."""

import numpy as np
import pytest

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.io import problem_of
from dtrees.io.problem import near, task_of
from dtrees.model_selection import cross_validate
from dtrees.model_selection.validated import baseline_scores

pd = pytest.importorskip("pandas")


def test_a_column_that_is_not_there_is_named_with_those_that_are_near():
    table = pd.DataFrame({"number": [1.5], "word": ["a"], "class": ["yes"]})
    with pytest.raises(ValueError, match=r"'number3' .*, did you mean 'number' or 'number2'\?"):
        problem_of(table.assign(number2=1), "class", drop=["word", "number3"])


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("acc", ["accuracy"]),  # and not jaccard
        ("AUC", ["roc_auc"]),
        ("score", ["rand_score"]),
        ("card", ["jaccard"]),
        ("mse", ["neg_mean_squared_error", "Neg Median.Squared Error"]),
        ("accurcay", ["accuracy"]),
        (" roc_AUC", ["roc_auc"]),
    ],
)
def test_a_near_name_begins_alike_or_holds_the_word_or_has_most_of_its_letters(word, meant):
    names = ["jaccard", "accuracy", "roc_auc", "rand_score", "neg_mean_squared_error"]
    names.append("Neg Median.Squared Error")
    assert near(word, names) == f", did you mean {' or '.join(map(repr, meant))}?"


def test_near_names_are_few_and_a_list_says_how_many_are_left_out():
    names = [f"column {i:,}" for i in range(2_000)]
    assert near("col", names).count(" or ") == 2
    for word in ("", "xyz"):
        assert near(word, names[:20]) == f"; there are {', '.join(names[:20])}"
        few = ", ".join(names[:10])
        assert near(word, names[:21]) == f"; there are {few}, ... and 11 more"
        assert near(word, names).endswith("column 9, ... and 1,990 more")


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


LARGE_LABELS = {
    "int64": [7, 0, 2**63 - 2**40],
    "uint64": [7, 0, 2**63, 2**63 + 2**41],
    "float64": [7, 2**64, 2**70],
}


@pytest.mark.parametrize(
    ("dtype", "labels", "kept"),
    [
        *((dtype, LARGE_LABELS[kept], kept) for dtype in ("float64", "Float64", "float32")
          for kept in LARGE_LABELS),
        *((dtype, LARGE_LABELS[kept], kept) for dtype in ("uint64", "UInt64")
          for kept in ("int64", "uint64")),
        ("float64", [-1, 0, 2**63], "float64"),
        ("float64", [-(2**63), 0, 1], "int64"),
    ],
)  # fmt: skip
def test_large_labels_stay_what_they_are(dtype, labels, kept):
    table = pd.DataFrame({"a": range(len(labels)), "t": pd.array(labels, dtype=dtype)})
    problem = problem_of(table, "t")
    assert problem.task == "classification"
    assert problem.y.dtype == kept
    assert [int(label) for label in problem.y] == labels


def test_a_large_quantity_stays_what_it_is():
    y = np.arange(30, dtype=np.uint64) + np.uint64(2**64 - 40)
    problem = problem_of(pd.DataFrame({"a": y % 7, "t": y}), "t")
    assert problem.task == "regression"
    assert problem.y.tolist() == y.tolist()
    scores = cross_validate(DecisionTreeRegressor(max_depth=2), problem.X, problem.y, cv=2)
    assert np.isfinite(scores["test_score"]).all()


def test_models_of_large_labels():
    y = np.array([7, 2**64 - 1, 2**63 + 1] * 20, dtype=np.uint64)
    problem = problem_of(pd.DataFrame({"a": np.arange(60) % 3, "t": y}), "t")
    model = DecisionTreeClassifier(random_state=0).fit(problem.X, problem.y)
    assert model.predict(problem.X).tolist() == y.tolist()
    scores = cross_validate(model, problem.X, problem.y, cv=3)["test_score"]
    assert scores.tolist() == [1.0] * 3
    splits = [(np.arange(30), np.arange(30, 60))]
    assert baseline_scores(problem.y, problem.task, splits) == {"score": pytest.approx(1 / 3)}


def test_labels_without_a_bound_are_refused_by_the_fit():
    problem = problem_of(pd.DataFrame({"a": [1, 2, 3], "t": [np.inf, 1.0, 2e300]}), "t")
    assert problem.y.tolist() == [np.inf, 1.0, 2e300]
    with pytest.raises(ValueError, match="y contains infinity"):
        DecisionTreeClassifier().fit(problem.X, problem.y)
