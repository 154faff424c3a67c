"""Scores of a search, and the word about fits that have failed."""

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning

from dtrees.model_selection.cell_scores import ModelScores
from dtrees.model_selection.search_scores import SearchScores


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
