"""Boxes do not overlap, and hold their text."""

import pytest
from sklearn.datasets import load_iris

from dtrees import DecisionTreeClassifier, RandomForestClassifier
from dtrees.inspection import plot_shared_forest, plot_tree
from dtrees.inspection.boxes import Box, Drawing, new_axes, wrapped
from tests.inspection.tables import fold_models
from tests.inspection.test_plots import boxes, edges, texts

pytest.importorskip("matplotlib").use("Agg")


@pytest.fixture(autouse=True)
def no_figure_stays():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


def check(ax):
    """Boxes are apart and inside of the axes, and no text is wider or higher than its box."""
    ax.figure.canvas.draw()
    frames = [box.get_window_extent() for box in boxes(ax)]
    room = ax.get_window_extent()
    for i, a in enumerate(frames):
        assert room.x0 <= a.x0
        assert a.x1 <= room.x1
        assert room.y0 <= a.y0
        assert a.y1 <= room.y1
        for b in frames[:i]:
            assert a.y1 < b.y0 or b.y1 < a.y0 or a.x1 < b.x0 or b.x1 < a.x0
    own = [text.get_window_extent() for text in ax.texts if text.get_ha() == "center"]
    for text in own:
        assert any(
            a.x0 <= text.x0 and text.x1 <= a.x1 and a.y0 <= text.y0 and text.y1 <= a.y1
            for a in frames
        )
    assert len(own) >= 2 * len(frames)


@pytest.mark.one_of(6)
@pytest.mark.parametrize("names", [None, [letter * 28 for letter in "MWOil"]])
@pytest.mark.parametrize("min_share", [0.0, 0.25, 0.6])
def test_shared_forests(min_share, names):
    models, _ = fold_models(2)
    check(plot_shared_forest(models, min_share=min_share, feature_names=names))


@pytest.mark.one_of(2)
@pytest.mark.parametrize("letter", "Wi")
def test_trees(iris, letter):
    tree = DecisionTreeClassifier().fit(*iris)
    names = {"feature_names": [letter * 33] * 4, "class_names": [letter * n for n in (9, 33, 60)]}
    check(plot_tree(tree, max_depth=None, **names))
    forest = RandomForestClassifier(2, random_state=0).fit(*iris)
    check(plot_tree(forest, tree=1, impurity=False))


def test_boxes_stand_in_the_middle_of_what_they_lead_to():
    ends = [Box([str(i)] * (i + 1), 1, "white") for i in range(3)]
    root = Box(["root"], 0, "white", branches=([ends[0]], ends[1:]))
    other = Box(["other", "root"], 0, "white", is_cut=True)
    ax = Drawing("", None, [root, other]).ax
    assert root.all() == [root, *ends]
    assert root.y == (ends[0].y + ends[2].y) / 2
    assert ends[0].y > ends[1].y > ends[2].y > other.y
    assert [edge.get_linestyle() in ("solid", "-") for edge in edges(ax)] == [False] * 2 + [
        True,
        False,
        False,
    ]
    assert texts(ax).count("•••") == 1


def test_wrapped():
    assert wrapped("a " * 60, 2)[1].endswith(" ...")
    assert wrapped("", 2) == []


def test_new_axes_have_a_size():
    assert new_axes(None, (5, 2)).figure.get_size_inches().tolist() == [5, 2]
