"""Pictures of what a validation has found."""

import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from dtrees.model_selection import cost_complexity_cv, validation_surface
from dtrees.model_selection.plots import _edges, new_axes
from tests.model_selection.test_cost_complexity import DATA
from tests.model_selection.test_surface import CANCER, TREE

mpl.use("agg")


def test_picture_of_a_surface():
    surface = validation_surface(TREE, *CANCER, cv=3)
    ax = surface.plot()
    assert ax.get_xlabel() == "min_samples_split"
    assert ax.get_ylabel() == "max_depth"
    best = surface.best
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"best: depth {best['max_depth']}, {best['min_samples_split']} rows" in texts
    one = validation_surface(TREE, *CANCER, max_depth=[2], min_samples_split=[2], cv=3)
    assert one.plot(ax) is ax
    pyplot.close("all")


def test_picture_of_a_path():
    estimator, X, y = DATA["cancer"]
    path = cost_complexity_cv(estimator, X, y)
    ax = path.plot()
    assert ax.get_xlabel() == "leaves of the pruned tree"
    texts = " ".join(text.get_text() for text in ax.get_legend().get_texts())
    assert f"best: {path.n_leaves[path.best_index]} leaves" in texts
    pyplot.close("all")


@pytest.mark.parametrize("values", [[3], [1, 2], [1, 2, 5, 40]])
def test_edges_stand_between_the_values(values):
    edges = _edges(np.array(values))
    assert len(edges) == len(values) + 1
    assert (edges[:-1] < values).all()
    assert (values < edges[1:]).all()
    np.testing.assert_allclose(edges[1:-1], [(a + b) / 2 for a, b in pairwise(values)])


def test_axes_that_are_given_are_taken_and_others_are_made(monkeypatch):
    figures = len(pyplot.get_fignums())
    ax = new_axes(None)
    assert new_axes(ax) is ax
    assert len(pyplot.get_fignums()) == figures + 1
    pyplot.close(ax.figure)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'dask-dtrees\[plot\]'"):
        new_axes(None)
