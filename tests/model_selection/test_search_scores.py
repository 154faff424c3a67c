"""Scores of a search, and the word about fits that have failed."""

import re

import pytest
import sklearn.model_selection as theirs

from dtrees.model_selection import GridSearchCV
from tests.model_selection.test_search import CANCER, CLASSIFIER, IRIS, LIMITS


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


@pytest.mark.one_of(15)
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
