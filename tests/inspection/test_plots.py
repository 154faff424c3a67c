"""What the picture of a shared forest shows."""

import sys
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from dtrees.inspection import plot_shared_forest, shared_forest
from dtrees.model_selection import cross_validate
from tests.inspection.tables import fold_models

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def no_figure_stays():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def texts(ax):
    """What stands in the drawing, lines joined, signs with plain blanks."""
    return [
        text.get_text().replace("\n", " ").replace("\N{NO-BREAK SPACE}", " ") for text in ax.texts
    ]


def in_boxes(ax, *lines):
    """Whether a box has these lines, one below the other."""
    shown = texts(ax)
    return lines in [tuple(shown[i : i + len(lines)]) for i in range(len(shown))]


def boxes(ax):
    from matplotlib.patches import FancyBboxPatch

    return [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]


def edges(ax):
    from matplotlib.patches import PathPatch

    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


def stumps(*columns):
    X = np.random.default_rng(0).normal(size=(40, 2)).round(1)
    return [DecisionTreeClassifier(max_depth=1).fit(X, X[:, j] > 0) for j in columns]


def test_iris():
    iris = load_iris(as_frame=True)
    found = cross_validate(
        DecisionTreeClassifier(max_depth=2), iris.data, iris.target, cv=10, return_estimator=True
    )
    ax = plot_shared_forest(found["estimator"], class_names=iris.target_names)
    shown = texts(ax)
    assert in_boxes(ax, "petal length (cm) <= 2.45 .. 2.60", "10/10  ·  135 rows")
    assert in_boxes(ax, "setosa (100%)", "10/10  ·  45 rows")
    assert in_boxes(ax, "petal length (cm) <= 4.75", "1/10  ·  90 rows")
    assert "yes" in shown
    assert "no" in shown
    assert "•••" in shown  # behind the one that parts
    assert shown[-1] == "darker, wider: more of the 10 models  ·  dashed: the models part"


def test_numbers():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = DecisionTreeRegressor(max_depth=1).fit(X, y)
    ax = plot_shared_forest([model] * 3)
    shown, (left, n) = texts(ax), (model.tree_.model.value[1, 0], model.tree_.n_node_samples[1])
    assert in_boxes(ax, f"{left:.1f}", f"3/3  ·  {n} rows")
    assert shown[-1] == "darker, wider: more of the 3 models"
    assert not any("models" in text for text in texts(plot_shared_forest([model])))


def test_names():
    ax = plot_shared_forest(stumps(0), feature_names=["age", "job"], class_names=["bad", "good"])
    assert texts(ax)[0].startswith("age <= ")
    assert any(text.startswith("good (100%)") for text in texts(ax))


def test_sets():
    models, _ = fold_models(3)
    forest = shared_forest(models, max_depth=4)
    drawn = {text.split("  ·  ")[1] for text in texts(plot_shared_forest(models)) if "/4  " in text}
    n_sets = {len(node.tests) for node in forest.nodes if node.tests and node.interval is None}
    assert f"{max(n_sets)} sets" in drawn


def test_shares_are_seen():
    ax = plot_shared_forest(stumps(0, 1, 1, 1), min_share=0.0)
    many, few = boxes(ax)[0], boxes(ax)[3]
    assert sum(many.get_facecolor()[:3]) < sum(few.get_facecolor()[:3])  # darker
    wide, narrow, *others = edges(ax)
    assert wide.get_linewidth() > narrow.get_linewidth()
    assert wide.get_linestyle() != "solid"
    assert narrow.get_linestyle() != "solid"  # parted at the root
    assert all(edge.get_linestyle() in ("solid", "-") for edge in others)


def test_nodes_of_few_models_are_not_opened():
    models = stumps(0, 1, 1, 1)
    assert len(boxes(plot_shared_forest(models, min_share=0.0))) == 6
    ax = plot_shared_forest(models, min_share=0.5)
    assert len(boxes(ax)) == 4
    assert texts(ax).count("•••") == 1
    assert len(boxes(plot_shared_forest(models, min_share=1.0))) == 2


def test_depth():
    models, _ = fold_models(1)
    ax = plot_shared_forest(models, max_depth=0)
    assert len(boxes(ax)) == 1
    assert "•••" in texts(ax)
    whole = plot_shared_forest(models, max_depth=None, min_share=0.0)
    assert len(boxes(whole)) == len(shared_forest(models))
    assert "•••" not in texts(whole)


def test_on_given_axes():
    from matplotlib import colormaps, pyplot

    _, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3))
    models = stumps(0, 0)
    assert plot_shared_forest(models, ax=left) is left
    plot_shared_forest(models, ax=right, cmap=colormaps["Greens"])
    assert left.texts[0].get_fontsize() < 8.0
    assert boxes(left)[0].get_facecolor() != boxes(right)[0].get_facecolor()


@contextmanager
def without_matplotlib():
    """It cannot be found, as if it were not installed."""
    kept = {key: sys.modules.pop(key) for key in list(sys.modules) if key.startswith("matplotlib")}
    sys.modules["matplotlib"] = None
    try:
        yield
    finally:
        del sys.modules["matplotlib"]
        sys.modules.update(kept)


def test_matplotlib_is_not_installed():
    models = stumps(0)
    with (
        without_matplotlib(),
        pytest.raises(ImportError, match=r"not installed: pip install 'dask-dtrees\[plot\]'"),
    ):
        plot_shared_forest(models)


def test_a_dollar_is_no_formula():
    X = np.random.default_rng(0).normal(size=(40, 1))
    tree = DecisionTreeClassifier(max_depth=1).fit(X, X[:, 0] > 0)
    ax = plot_shared_forest([tree], feature_names=["$\\frac{x$"], class_names=["$\\q$", "b"])
    ax.figure.canvas.draw()
    assert any("$\\frac{x$ <=" in text for text in texts(ax))
