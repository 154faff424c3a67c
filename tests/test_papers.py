"""The papers' tables run on tiny tables, and what they are computed with is right."""

import numpy as np
import pytest

pytest.importorskip("click")

from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.__main__ import main
from benchmarks.cases import Skipped
from benchmarks.papers import CASES, figures, label_split, sf_tables, tables
from benchmarks.papers.cv_sizes import speedup
from benchmarks.papers.levels import levels_of, saved
from benchmarks.papers.sides import sides_of
from dtrees import DecisionTreeClassifier, DecisionTreeRegressor

PAGES = list(dict.fromkeys(case.page.name for case in CASES))


def quick_run(folder, name):
    """The page of a quick run, and its pictures."""
    done = CliRunner().invoke(main, ["--quick", "--output", str(folder / "page.md"), name])
    assert done.exit_code == 0, done.output
    assert not (folder / "page.md").exists()  # there is nothing else on it
    pictures = [path.read_bytes() for path in (folder / "papers").glob("*.png")]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    return (folder / "papers" / f"{name}.md").read_text(encoding="utf-8"), pictures


@pytest.mark.usefixtures("frozen")
def test_a_quick_run_writes_a_page_with_table_words_and_picture(tmp_path):
    pytest.importorskip("matplotlib")
    text, pictures = quick_run(tmp_path, "sp-density")
    assert text.startswith("# [SP] figure 6")
    assert "| 0.01 |" in text
    assert "**What agrees.**" in text
    assert "![sp-density](sp-density.png)" in text
    assert len(pictures) == 1


@pytest.mark.long
@pytest.mark.rest
@pytest.mark.realdata
@pytest.mark.parametrize("name", [name for name in PAGES if name != "sp-density"])
def test_a_quick_run_of_every_page(name, tmp_path):
    pytest.importorskip("matplotlib")
    sections = [case for case in CASES if case.page.name == name]
    text, pictures = quick_run(tmp_path, name)
    heads = [line for line in text.splitlines() if set(line) == set("|-")]
    assert len(heads) == len(sections)
    assert pictures


@pytest.mark.realdata
def test_the_tables_of_the_package_are_those_of_the_papers():
    try:
        sets = {name: tables.CV_SETS[name]() for name in ("Pen Digits", "Yeast")}
    except Skipped as why:
        pytest.skip(str(why))
    for name, (X, y) in sets.items():
        described = figures.CV_TABLE_1[name]
        assert X.shape == (described.n_rows, described.n_numeric)
        assert len(np.unique(y)) == described.n_classes


def grown(X, y, **given):
    return DecisionTreeClassifier(max_bins=255, random_state=0, **given).fit(X, y).tree_.model


def test_sets_that_ask_the_same_are_read_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    first, second = (grown(X, X[:, c] > 0, max_depth=1) for c in (0, 1))
    assert levels_of([first] * 4) == [(1600, 400)]
    assert saved(levels_of([first] * 4)) == 4.0
    assert levels_of([first, second]) == [(800, 400)]  # the root is counted once, whatever wins
    deep = grown(X, (X[:, 0] > 0) ^ (X[:, 1] > 0), max_depth=3)
    alone = levels_of([deep])
    assert [level.alone for level in alone] == [level.together for level in alone]
    assert levels_of([deep, deep, first])[1:] == [
        (2 * level.alone, level.alone) for level in alone[1:]
    ]


@pytest.mark.usefixtures("frozen")
def test_serial_and_together_are_the_same_models():
    X, y = tables.led(1_500)
    sides = sides_of(X, y, n_folds=3)
    models, alone = sides.together().models, sides.serial()
    assert len(models) == len(alone) == 4
    for model, single in zip(models, alone, strict=True):
        assert np.array_equal(model.predict(X), single.predict(X))
    assert speedup(X, y, 3, 1) > 0


@given(st.lists(st.integers(0, 12), min_size=2, max_size=15))
def test_labels_are_the_parts_of_least_squared_error(values):
    y = np.array(values, dtype=float)
    errors = {
        cut: sum(((part - part.mean()) ** 2).sum() for part in (y[y <= cut], y[y > cut]))
        for cut in sorted(set(values))[:-1]
    }
    labels = label_split.labels_of(y)
    if not errors:
        assert not labels.any()
        return
    found = sum(((y[labels == k] - y[labels == k].mean()) ** 2).sum() for k in (0, 1))
    assert found == pytest.approx(min(errors.values()), abs=1e-9)
    assert y[labels == 0].max() < y[labels == 1].min()


def test_the_ordinary_split_of_the_prototype_is_that_of_dtrees():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 4))
    y = X[:, 0] * 3 + np.sin(X[:, 1]) + rng.normal(size=400)
    tree = label_split.grow(X, y, by_label=False)
    ours = DecisionTreeRegressor(min_samples_split=label_split.LEAST).fit(X, y)
    said = np.array(tree.mean)[tree.paths(X)[:, -1]]
    assert np.allclose(said, ours.predict(X))
    assert len(tree.mean) == ours.tree_.node_count
    for depth, least in ((0, 2), (3, 2), (5, 40), (50, 120)):
        cut = DecisionTreeRegressor(
            max_depth=depth or None, min_samples_split=max(least, label_split.LEAST)
        )
        there = label_split.ends(tree, tree.paths(X), depth, least)
        if depth:
            cut.fit(X, y)
            assert np.allclose(np.array(tree.mean)[there], cut.predict(X))
            assert label_split.n_kept(tree, depth, least) == cut.tree_.node_count
        else:
            assert not there.any()


def test_the_label_split_tells_two_groups_apart():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 2] > 0.3, 10.0, 0.0) + rng.normal(size=300) * 0.1
    tree = label_split.grow(X, y, by_label=True)
    assert tree.column[0] == 2
    assert abs(tree.threshold[0] - 0.3) < 0.1
    depth, least = label_split.tuned(tree, X, y, len(y))
    assert depth >= 1
    assert least >= 2
    assert label_split.best_test(X[:, :1] * 0, y, True) is None


@pytest.mark.parametrize("n_rows", [50, 333])
def test_generic_and_superfast_selection_find_the_test_of_dtrees(n_rows):
    x, y = sf_tables.column_of(n_rows)
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=1).fit(x[:, None], y)
    found = [search(x, y) for search in (sf_tables.generic, sf_tables.superfast)]
    assert np.allclose(found, tree.tree_.threshold[0])
