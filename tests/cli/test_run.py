"""A run as a document, and the steps of its pruning."""

from types import SimpleNamespace

import numpy as np
import pytest

import dtrees
from dtrees.cli.run import Request, Run, path_lines, steps_to_show, validated
from dtrees.io import problem_of
from dtrees.model_selection import cost_complexity_cv, cross_val_score
from dtrees.model_selection.folds import shuffled_folds
from tests.cli.asking import cv, cv_json

pd = pytest.importorskip("pandas")


def test_json_is_one_document_with_the_promised_fields(csv):
    run_ = cv_json(csv, "--target", "class", "--folds", 4, "--seed", 3, "--min-samples-leaf", 2)
    assert set(run_) == {
        *("format", "dtrees", "file", "target", "task", "model", "score", "rows", "seconds"),
        *("rows_without_target", "dropped", "parameters", "columns", "folds", "mean"),
        *("standard_error", "baseline", "tree"),
    }
    assert run_["format"] == "dtrees.cv/2"
    assert (run_["task"], run_["score"], run_["rows"]) == ("classification", "accuracy", 60)
    assert run_["parameters"]["random_state"] == 3
    assert run_["parameters"]["min_samples_leaf"] == 2
    assert [fold["fold"] for fold in run_["folds"]] == [1, 2, 3, 4]
    assert sum(fold["n_test"] for fold in run_["folds"]) == 60
    scores = [fold["score"] for fold in run_["folds"]]
    assert run_["mean"] == pytest.approx(np.mean(scores))
    assert run_["standard_error"] == pytest.approx(np.std(scores, ddof=1) / 2)
    assert [column["name"] for column in run_["columns"]] == ["number", "word", "mixed", "amount"]
    assert [c["kind"] for c in run_["columns"]] == ["ordered", "categorical", "hybrid", "ordered"]
    assert sum(column["importance"] for column in run_["columns"]) == pytest.approx(1)
    assert set(run_["tree"]) == {"depth", "n_leaves", "text"}
    assert set(run_["folds"][0]) == {"fold", "n_train", "n_test", "score", "depth", "n_leaves"}


@pytest.mark.parametrize("most", [4, 10, 12])
def test_a_short_table_has_the_ends_and_the_marked_steps(most):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + rng.normal(size=300)
    path = cost_complexity_cv(dtrees.DecisionTreeRegressor(), X, y, cv=5)
    assert len(path.n_leaves) > 100
    steps = steps_to_show(path, most)
    assert steps == sorted(set(steps))
    marked = {0, len(path.n_leaves) - 1, path.best_index, path.one_standard_error_index}
    assert marked <= set(steps)
    assert most - 3 <= len(steps) <= most


def test_errors_of_steps_are_as_long_as_they_are_large():
    path = SimpleNamespace(
        ccp_alphas=np.array([0.0, 0.01234, 5.0]),
        n_leaves=np.array([1_200, 30, 1]),
        errors=np.array([0.5, 0.25, 12_345.6]),
        standard_errors=np.array([0.1, 0.1, 20.0]),
        best_index=1,
        one_standard_error_index=1,
    )
    assert path_lines(path, 3) == [
        ("0", "1,200", "0.5000 ± 0.1000", ""),
        ("0.0123", "30", "0.2500 ± 0.1000", "best, one standard error"),
        ("5", "1", "1.235e+04 ± 20", ""),
    ]


def test_a_run_compares_its_scores_with_those_of_a_guess():
    found = SimpleNamespace(
        scores={"r2": np.array([0.1, 0.3]), "neg_mae": np.array([-2.0, -4.0])},
        tuned_scores=np.array([1.0, 3.0]),
    )
    request = SimpleNamespace(
        scoring={"r2": "r2", "neg_mae": None},
        kind="forest",
        problem=SimpleNamespace(task="regression"),
        quantile=None,
    )
    run = Run(request, found, None, 1.0, {"r2": 0.2, "neg_mae": -3.5})
    assert run.score_name == "r2"
    assert run.means_and_errors["r2"] == pytest.approx((0.2, 0.1))
    assert run.means_and_errors["neg_mae"] == pytest.approx((-3.0, 1.0))
    assert run.no_better_than_guess == ["r2"]  # equal is no better
    assert run.nested_mean_and_error == pytest.approx((2.0, 1.0))
    assert (run.noun, run.guess) == ("forest", "always saying the mean")
    request.quantile = 0.8
    assert run.guess == "always saying the quantile 0.8"


MODELS = [
    dtrees.DecisionTreeClassifier(max_depth=3, random_state=1),
    dtrees.RandomForestClassifier(5, oob_score=True, random_state=1),
    dtrees.GradientBoostingClassifier(max_iter=3, random_state=1),
]


def request_for(table, **asked):
    problem = problem_of(table, "class", drop=["mixed", "amount"])
    facts = {"scoring": {}, "rule": None, "wants_nested": False, "wants_path": False, **asked}
    return Request(
        file="table",
        target="class",
        kind="tree",
        problem=problem,
        n_folds=3,
        has_hash_folds=False,
        **facts,
    )


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_folds_final_model_and_guess(table, model):
    request = request_for(table)
    run = validated(request, model)
    X, y = request.problem.X, request.problem.y
    expected = cross_val_score(model, X, y, cv=shuffled_folds(y, 3, 1, stratified=True))
    assert run.scores["accuracy"].tolist() == expected.tolist()
    assert run.model.predict(X).tolist() == model.fit(X, y).predict(X).tolist()
    assert hasattr(run.model, "oob_score_") == hasattr(model, "oob_score_")
    assert 0 < run.baseline["accuracy"] < 1
    assert len(run.found.models) == 3
    assert run.seconds > 0


@pytest.mark.filterwarnings("ignore:Some inputs do not have OOB scores")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_scores_by_name(table, model):
    asked = {name: name for name in ("roc_auc", "accuracy")}
    scores = validated(request_for(table, scoring=asked), model).scores
    assert list(scores) == ["roc_auc", "accuracy"]
    assert (scores["roc_auc"] != scores["accuracy"]).any()


def test_all_that_is_told_of_a_run(csv):
    """The same numbers as in the document, in an order that does not change."""
    options = ["--target", "class", "--drop", "amount", "--folds", 3, "--tune", "--max-depth", 3]
    document = cv_json(csv, *options)
    out = cv(csv, *options).stdout
    places = [
        out.index(words)
        for words in ("target class", "* chosen", "one standard error", "fold ", "All models took")
    ]
    assert places == sorted(places)
    assert f"accuracy {document['mean']:.4f} ± {document['standard_error']:.4f}" in out
    for fold in document["folds"]:
        row = [str(fold["fold"]), f"{fold['score']:.4f}", str(fold["depth"]), f"{fold['n_leaves']}"]
        assert row in [line.split() for line in out.splitlines()]
