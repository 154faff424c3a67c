"""A request is answered by the models of the folds, the one of all rows, and a guess."""

import pytest

import dtrees
from dtrees.cli.run import Request
from dtrees.cli.validating import validated
from dtrees.io import problem_of
from dtrees.model_selection import cross_val_score
from dtrees.model_selection.folds import shuffled_folds

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
