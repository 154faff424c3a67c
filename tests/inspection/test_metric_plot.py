"""The lines of a metric are the curves of the model."""

import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dtrees import (
    DecisionTreeRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)
from dtrees.inspection import plot_metric

pytest.importorskip("matplotlib").use("Agg")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = X[:, 0] + RNG.normal(size=300) > 0
TRAIN, OTHER = (X[:150], Y[:150]), (X[150:], Y[150:])


@pytest.fixture(autouse=True)
def no_figure_stays():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    sets = {"eval_set": [TRAIN, OTHER], "eval_metric": "roc_auc"}
    return GradientBoostingClassifier(n_iter_no_change=3).fit(*TRAIN, **sets)


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_lines_are_the_curves(model):
    for metric in (None, "loss", "roc_auc"):
        found = lines(plot_metric(model, metric))
        best = found.pop(f"best: {model.best_iteration_} iterations")
        assert best.get_xdata() == [model.best_iteration_] * 2
        assert list(found) == ["training", "valid_1"]
        for name, line in found.items():
            curve = model.evals_result_[name][metric or "loss"]
            assert line.get_ydata().tolist() == curve
            assert line.get_xdata().tolist() == list(range(1, len(curve) + 1))
    assert plot_metric(model, "roc_auc").get_ylabel() == "roc_auc"
    assert plot_metric(model).get_ylabel() == "mean loss"


def test_some_sets_on_given_axes(model):
    from matplotlib import pyplot

    ax = pyplot.subplots()[1]
    assert plot_metric(model, dataset_names=["training"], ax=ax) is ax
    assert "valid_1" not in lines(ax)
    ax.figure.canvas.draw()


def test_a_model_that_was_scored_only_has_no_best_iteration():
    model = GradientBoostingRegressor(max_iter=4, early_stopping=False)
    model.fit(X, Y * 1.0, eval_set=[(X[::2], Y[::2] * 1.0)])
    assert list(lines(plot_metric(model))) == ["valid_0"]
    early = GradientBoostingRegressor(early_stopping=True).fit(X, Y * 1.0)
    assert "validation" in lines(plot_metric(early))


def test_several_targets():
    both = GradientBoostingRegressor(max_iter=3).fit(X, X[:, :2], eval_set=[(X, X[:, :2])])
    (line,) = plot_metric(both).get_lines()
    np.testing.assert_array_equal(line.get_ydata(), next(iter(both.evals_result_.values()))["loss"])


def test_errors(model, monkeypatch):
    with pytest.raises(ValueError, match=r"metric must be of \['loss', 'roc_auc'\]. Got 'auc'"):
        plot_metric(model, "auc")
    with pytest.raises(ValueError, match=r"dataset_names must be of \['training', 'valid_1'\]"):
        plot_metric(model, dataset_names=["train"])
    with pytest.raises(ValueError, match="'metric' parameter of plot_metric"):
        plot_metric(model, 3)
    with pytest.raises(ValueError, match=r"was not scored .* Give eval_set"):
        plot_metric(GradientBoostingRegressor(max_iter=2).fit(X, X[:, 0]))
    with pytest.raises(TypeError, match="must be a boosted model of dtrees"):
        plot_metric(DecisionTreeRegressor().fit(X, Y))
    with pytest.raises(NotFittedError):
        plot_metric(GradientBoostingRegressor())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib, which is not installed"):
        plot_metric(model)
