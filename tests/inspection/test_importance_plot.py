"""The bars of importances are the importances."""

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError

from dtrees import DecisionTreeRegressor, GradientBoostingClassifier, RandomForestClassifier
from dtrees.inspection import plot_importance, split_counts
from tests.export.examples import examples

pytest.importorskip("matplotlib").use("Agg")

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)


@pytest.fixture(autouse=True)
def no_figure_stays():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(5, random_state=0).fit(X, Y)


def bars(ax):
    """Widths of the bars by the name beside them, from top to bottom."""
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert ax.yaxis_inverted()
    return dict(zip(names, [bar.get_width() for bar in ax.patches], strict=True))


@given(examples())
@settings(max_examples=15)
def test_bars_are_feature_importances(example):
    from matplotlib import pyplot

    shown = bars(plot_importance(example.model))
    pyplot.close("all")
    expected = dict(zip(example.X.columns, example.model.feature_importances_, strict=True))
    assert shown == pytest.approx(expected)
    assert list(shown.values()) == sorted(shown.values(), reverse=True)


def test_the_largest_columns_are_drawn_and_the_others_counted(forest):
    ax = plot_importance(forest, max_columns=4)
    order = np.argsort(-forest.feature_importances_, kind="stable")[:4]
    assert list(bars(ax)) == X.columns[order].tolist()
    assert ax.get_title(loc="left") == "4 of 30 columns"
    assert len(bars(plot_importance(forest))) == 20
    everything = plot_importance(forest, max_columns=None)
    assert len(bars(everything)) == 30
    assert everything.get_title(loc="left") == ""


def test_given_importances():
    model = GradientBoostingClassifier(max_iter=5).fit(X, Y)
    counts = split_counts(model)
    ax = plot_importance(model, counts, max_columns=3)
    assert list(bars(ax).values()) == sorted(counts.tolist(), reverse=True)[:3]
    assert ax.get_xlabel() == "importance"
    lost = np.linspace(-1, 1, 30)
    assert min(bars(plot_importance(model, lost, max_columns=None)).values()) == -1


def test_a_series_is_read_by_the_names_of_its_index(forest):
    shares = pd.Series(forest.feature_importances_, X.columns)
    expected = bars(plot_importance(forest))
    assert bars(plot_importance(forest, shares.sort_values())) == expected
    assert bars(plot_importance(forest, shares.reset_index(drop=True))) == expected


def test_names_are_no_formulas_and_axes_are_used():
    from matplotlib import pyplot

    frame = X.iloc[:, :2].set_axis(["$x_1$", "cost in $"], axis=1)
    ax = pyplot.subplots()[1]
    assert plot_importance(DecisionTreeRegressor().fit(frame, Y), ax=ax) is ax
    assert set(bars(ax)) == set(frame.columns)
    ax.figure.canvas.draw()


def test_errors(forest, monkeypatch):
    for wrong in ([1.0, 2.0], np.full(30, np.nan), ["a"] * 30, np.ones((30, 1))):
        with pytest.raises(ValueError, match="importances must be one finite number for each"):
            plot_importance(forest, wrong)
    with pytest.raises(ValueError, match="'max_columns' parameter of plot_importance"):
        plot_importance(forest, max_columns=0)
    with pytest.raises(NotFittedError):
        plot_importance(RandomForestClassifier())
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"matplotlib, which is not installed"):
        plot_importance(forest)
