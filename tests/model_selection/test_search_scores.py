"""Scores of a search, and the word about fits that have failed."""

import re

import numpy as np
import pytest
import sklearn.model_selection as theirs
from sklearn.exceptions import FitFailedWarning

from dtrees.model_selection import GridSearchCV
from dtrees.model_selection.cell_scores import ModelScores
from dtrees.model_selection.search_scores import FitLines, SearchScores
from tests.model_selection.test_search import CANCER, CLASSIFIER, IRIS, LIMITS


def scored(**scores):
    n_candidates = len(next(iter(scores.values())))
    of_test = {("test", name): np.array(each) for name, each in scores.items()}
    return ModelScores(of_test, np.full(n_candidates, 0.25), list(scores) == ["score"])


def test_what_is_not_known_has_failed():
    found = SearchScores.of(3, 2, -1)
    failed, _ = found.scores(["score"], has_train=False)
    assert failed["score"].tolist() == [[-1, -1]] * 3
    found.put([2, 0], scored(score=[[0.5, 0.6], [0.7, 0.8]]))
    assert found.test["score"].tolist() == [[0.7, 0.8], [-1, -1], [0.5, 0.6]]
    outputs = found.outputs()
    assert len(outputs) == 6
    assert outputs[1]["test_scores"] == 0.8
    assert [output["score_time"] for output in outputs] == [0.25, 0.25, 0, 0, 0.25, 0.25]


def test_several_scorers_have_names():
    found = SearchScores.of(1, 1, np.nan)
    found.put([0], scored(a=[[1.0]], b=[[2.0]]))
    (output,) = found.outputs()
    assert output["test_scores"] == {"a": 1.0, "b": 2.0}


def test_failures_are_reported():
    found = SearchScores.of(2, 2, np.nan)
    found.report(np.nan)  # none
    found.fail(ValueError("odd rows"), 3)
    with pytest.warns(FitFailedWarning, match=r"3 fits failed out of a total of 4(.|\n)*odd rows"):
        found.report(np.nan)
    found.fail(ValueError("odd rows"), 1)
    with pytest.raises(ValueError, match="All the 4 fits failed"):
        found.report(np.nan)


def test_verbose(capsys):
    GridSearchCV(CLASSIFIER, LIMITS, cv=3, verbose=1).fit(*IRIS)
    said = capsys.readouterr().out
    assert said == "Fitting 3 folds for each of 36 candidates, totalling 108 fits\n"


LINES = {
    "one scorer": {},
    "train scores": {"return_train_score": True},
    "several scorers": {"scoring": ["roc_auc", "accuracy"], "refit": False},
    "several, with train scores": {
        "scoring": {"b": "f1", "a": "recall"}, "refit": "a", "return_train_score": True,
    },
    "a function of several": {
        "scoring": lambda model, X, y: {"rows": len(X), "depth": model.get_depth()},
        "refit": False,
    },
}  # fmt: skip


@pytest.mark.one_of(3)
@pytest.mark.parametrize("verbose", [2, 3, 10])
@pytest.mark.parametrize("how", LINES)
def test_lines_of_fits(how, verbose, capsys):
    grid = {"max_depth": [1, None, 2], "criterion": ["gini", "entropy"]}
    lines = []
    for kind in (GridSearchCV, theirs.GridSearchCV):
        kind(CLASSIFIER, grid, cv=3, verbose=verbose, **LINES[how]).fit(*CANCER)
        said = capsys.readouterr().out
        lines.append(sorted(re.sub(r"total time= *[0-9.]+s$", "", said, flags=re.M).splitlines()))
    assert lines[0] == lines[1]
    assert len(lines[0]) == 1 + 18 * (2 if verbose > 9 else 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scoring", ["accuracy", ["accuracy", "f1"]], ids=["one", "several"])
@pytest.mark.parametrize(
    "grid",
    [
        {"max_depth": [-1, 2]},
        {"criterion": ["best", "gini"]},
        {"max_depth": [1], "max_bins": [-1, 9]},
    ],
    ids=str,
)
def test_lines_of_fits_that_fail(grid, scoring, capsys):
    lines = []
    for kind in (GridSearchCV, theirs.GridSearchCV):
        how = {"cv": 2, "scoring": scoring, "refit": False, "error_score": -1.0}
        kind(CLASSIFIER, grid, verbose=3, **how).fit(*CANCER)
        lines.append(sorted(re.sub(r"total time=.*", "", capsys.readouterr().out).splitlines()))
    if "max_bins" in grid:  # cuts of all rows
        lines = [[line for line in some if "max_bins=9" not in line] for some in lines]
    assert lines[0] == lines[1]


def lines_of(verbose, capsys, n_splits=2, **scores):
    lines = FitLines(verbose, [{"b": 1, "a": None}, {}], n_splits, list(scores), False)
    lines.start([1])
    seconds = np.array([[0.04, 61.0], [0.0, 0.0]])
    lines.end([0, 1], SearchScores(seconds, np.zeros_like(seconds), test=scores))
    return capsys.readouterr().out.splitlines()


def test_the_more_is_asked_the_more_is_said(capsys):
    scores = {"score": np.array([[0.25, 0.5], [np.nan, 1.0]])}
    assert lines_of(1, capsys, **scores) == []
    two = lines_of(2, capsys, **scores)
    assert [line.rpartition("=")[2] for line in two] == ["   0.0s", " 1.0min", "   0.0s", "   0.0s"]
    assert two[0] == "[CV] END " + "a=None, b=1; total time=   0.0s".rjust(80 - 9, ".")
    assert two[2] == "[CV] END " + " total time=   0.0s".rjust(80 - 9, ".")
    three = lines_of(3, capsys, **scores)
    assert [line[:13] for line in three[:2]] == ["[CV 1/2] END ", "[CV 2/2] END "]
    assert three[1].endswith("a=None, b=1;, score=0.500 total time= 1.0min")
    assert three[2].endswith(", score=nan total time=   0.0s")
    ten = lines_of(10, capsys, **scores)
    assert ten[0] == "[CV 1/2; 2/2] START ".ljust(80, ".")
    assert ten[2].startswith("[CV 1/2; 1/2] END ")
    several = lines_of(3, capsys, b=scores["score"], a=scores["score"])
    assert several[0].endswith("; a: (test=0.250) b: (test=0.250) total time=   0.0s")
