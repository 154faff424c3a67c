"""What searches must not need."""

import pytest


@pytest.fixture
def by_leaves_alone(monkeypatch):
    """No score of a prediction, but for those of scikit-learn's own search."""

    def refuse(*args, **how):
        raise AssertionError("a model was asked to predict")

    monkeypatch.setattr("dtrees.model_selection.search.score_models", refuse)
