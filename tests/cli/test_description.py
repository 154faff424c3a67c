"""What a fitted model says of itself."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

import dtrees
from dtrees.cli.description import (
    growth_lines,
    importance_table,
    model_document,
    oob_line,
    size_in_words,
    stopping_line,
)
from dtrees.export import save

pd = pytest.importorskip("pandas")


def grown(**report):
    """A model that has but a report of its growth."""
    return SimpleNamespace(fit_report_=report)


def test_growth_is_told_where_it_was_not_simply_here():
    assert growth_lines(SimpleNamespace()) == []
    assert growth_lines(grown(regime="local", reason="small", rounds=3)) == []
    told = growth_lines(grown(regime="local", reason="small", lost_workers=0), on_cluster=True)
    assert told == ["regime local (small): grown in this process"]
    model = grown(
        regime="partitioned", reason="asked for", rounds=1, passes=2, tasks=1_200, retries=0,
        lost_workers=0, bytes_moved=2_500,
    )  # fmt: skip
    assert growth_lines(model) == [
        "regime partitioned (asked for): 1 round, 2 passes over the codes, 1,200 tasks, "
        "0 workers lost, 2.5 kB moved"
    ]


def drawn(columns):
    """An importance table as lines of text."""
    out = Console(file=io.StringIO(), width=80)
    out.print(importance_table(columns))
    return [line.split() for line in out.file.getvalue().splitlines() if line.strip()]


def test_the_most_important_columns_come_first_and_equal_ones_in_order():
    shares = [0.0, 0.1, 0.3, 0.1, 0.5]
    columns = [{"name": f"c{i}", "kind": "ordered", "importance": s} for i, s in enumerate(shares)]
    lines = drawn(columns)
    assert [words[0] for words in lines[2:]] == ["c4", "c2", "c1", "c3"]
    assert [len(words[3]) for words in lines[2:]] == [20, 12, 4, 4]


def test_what_is_shown_as_nothing_has_no_bar():
    shares = {"most": 0.99993, "some": 5.5e-05, "least": 1.5e-05}
    columns = [{"name": n, "kind": "ordered", "importance": s} for n, s in shares.items()]
    assert [len(words) for words in drawn(columns)[2:]] == [4, 4, 3]
    assert drawn(columns)[-1] == ["least", "ordered", "0.0000"]


def test_models_in_words_and_in_a_document(tmp_path):
    X = np.arange(20.0).reshape(10, 2)
    tree = dtrees.DecisionTreeRegressor(max_depth=1).fit(X, X[:, 0])
    assert size_in_words(tree) == "depth 1, 2 leaves"
    assert oob_line(tree) == []
    forest = dtrees.RandomForestClassifier(30, oob_score=True, random_state=0, max_depth=1)
    forest.fit(np.repeat(X, 9, axis=0), np.repeat(X[:, 0] > 8, 9))
    assert size_in_words(forest).startswith("30 trees, depth up to 1, ")
    assert oob_line(forest) == [f"out-of-bag accuracy {forest.oob_score_:.4f}"]
    save(forest, tmp_path / "a.dtrees")
    document = model_document(forest, tmp_path / "a.dtrees")
    assert document["bytes"] == (tmp_path / "a.dtrees").stat().st_size
    assert (document["task"], document["trees"], document["depth"]) == ("classification", 30, 1)
    assert document["n_leaves"] == sum(tree.get_n_leaves() for tree in forest.estimators_)
    assert document["classes"] == [False, True]
    assert document["oob_score"] == forest.oob_score_


def test_boosted_models_in_words_and_in_a_document(tmp_path):
    X = np.arange(120.0).reshape(60, 2)
    plain_fit = dtrees.GradientBoostingClassifier(max_iter=3).fit(X, np.arange(60) % 3)
    assert size_in_words(plain_fit).startswith("3 iterations, 9 trees, depth up to ")
    assert stopping_line(plain_fit) == stopping_line(dtrees.DecisionTreeRegressor()) == []
    model = dtrees.GradientBoostingRegressor(max_iter=4, early_stopping=True, random_state=0)
    model.fit(X, X[:, 0] + 200)
    best = int(model.validation_score_.argmax())
    line = f"best score of the held-out rows after {best} iterations"
    assert stopping_line(model) == [f"{line}; --max-iter ended the fit"]
    assert stopping_line(model.set_params(max_iter=5)) == [line]
    model.set_params(max_iter=4)
    model.set_params(validation_fraction=None).fit(X, X[:, 0])
    line = "best score of the training rows after 4 iterations; --max-iter ended the fit"
    assert stopping_line(model) == [line]
    save(model, tmp_path / "a.dtrees")
    document = model_document(model, tmp_path / "a.dtrees")
    assert (document["iterations"], document["trees"]) == (4, 4)
