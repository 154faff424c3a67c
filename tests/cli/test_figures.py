"""The pictures of a report: SVG that any reader of XML takes, with the text in it."""

from xml.etree import ElementTree

import numpy as np
import pytest

import dtrees
from dtrees.model_selection import cost_complexity_cv

pytest.importorskip("matplotlib")
from dtrees.cli.figures import (
    LETTERS,
    THEMES,
    fold_picture,
    importance_picture,
    path_picture,
    shared_forest_picture,
)

X = np.random.default_rng(0).normal(size=(60, 2))
Y = X[:, 0] + np.random.default_rng(1).normal(size=60)


def words_of(svg):
    """Every text of a picture."""
    return " ".join(ElementTree.fromstring(svg).itertext())


def test_folds_are_told_in_words_and_drawn_for_two_themes():
    picture = fold_picture([0.5, 0.75, 0.25], 0.5, 0.1, "accuracy")
    assert picture.alt == (
        "accuracy of 3 folds: from 0.2500 to 0.7500, mean 0.5000 with standard error 0.1000"
    )
    for theme, svg in (("light", picture.light), ("dark", picture.dark)):
        assert {"1", "2", "3", "accuracy"} <= set(words_of(svg).split())
        assert THEMES[theme][3] in svg  # blue


def test_names_of_columns_are_no_formulas_and_no_xml():
    names = ["a $\\frac{x$ b $", "<b>&\x01", "x" * 99]
    share = np.array([0.5, 0.3, 0.2])
    picture = importance_picture(names, share, share, share / 10)
    words = words_of(picture.light)
    for name in (names[0], "<b>&\N{REPLACEMENT CHARACTER}", "x" * (LETTERS - 1) + "…"):
        assert name in words
    assert f"{names[0]} 0.500" in picture.alt


def test_the_steps_of_pruning_are_in_the_words():
    path = cost_complexity_cv(dtrees.DecisionTreeRegressor(max_depth=4), X, Y, cv=3)
    alt = path_picture(path).alt
    assert f"least at {path.n_leaves[path.best_index]:,} leaves" in alt
    assert f"one standard error at {path.n_leaves[path.one_standard_error_index]:,} leaves" in alt


def test_a_drawing_leaves_the_users_style_and_figures_as_they_are():
    from matplotlib import pyplot, rcParams

    before, figures = dict(rcParams), pyplot.get_fignums()
    trees = [dtrees.DecisionTreeRegressor(max_depth=2).fit(X[i:], Y[i:]) for i in (0, 20)]
    picture = shared_forest_picture(trees)
    assert picture.dark is None
    assert "the 2 trees of the folds" in picture.alt
    assert words_of(picture.light)
    assert {name: rcParams[name] for name in before if name != "backend"} == {
        name: value for name, value in before.items() if name != "backend"
    }
    assert pyplot.get_fignums() == figures
