"""The list of scikit-learn's tests that do not pass is read, and compared as it says."""

import re
from pathlib import Path

import numpy as np
import pytest
import sklearn.ensemble
from sklearn.base import clone

from tests.peers import __main__ as peers
from tests.peers import classic

TABLE = """
| cause | count | tests |
|---|---|---|
| Several targets | 3 | tree/test_tree: `test_a` `test_b[*-two]`<br>ensemble/test_forest: `test_a` |
"""
FOUND = {
    "tree/test_tree: test_a": "E   ValueError",
    "tree/test_tree: test_b[1-one]": "passed",
    "tree/test_tree: test_b[1-two]": "E   ValueError",
    "tree/test_tree: test_ab": "passed",
    "ensemble/test_forest: test_a[csr]": "skipped",
}


def test_what_differs_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "LIST", tmp_path / "list.md")
    peers.LIST.write_text(TABLE, encoding="utf-8")
    assert peers.differences(FOUND) == []
    name = "tree/test_tree: test_a"
    assert peers.differences(FOUND | {name: "passed"}) == [f"listed, passes: {name}"]
    assert peers.differences(FOUND | {"tree/test_tree: test_ab": "E   boom"}) == [
        "not listed, fails: tree/test_tree: test_ab\n    E   boom"
    ]
    less = {each: said for each, said in FOUND.items() if each != name}
    absent, count = peers.differences(less)
    assert absent.startswith("listed, not there: ")
    assert count == "2 tests, not 3: Several targets"
    twice = TABLE.replace("`test_a` `test_b", "`test_a` `test_*` `test_b").replace("| 3 |", "| 7 |")
    peers.LIST.write_text(twice, encoding="utf-8")
    assert "listed more than once: tree/test_tree: test_a" in peers.differences(FOUND)


def test_the_list_is_read_whole():
    rows = peers.LIST.read_text(encoding="utf-8").count("\n| ")
    tables = peers.LIST.read_text(encoding="utf-8").count("|---|---|---|")
    found = list(peers.listed())
    assert len(found) == rows - tables
    assert all(n >= len(patterns) > 0 for _, n, patterns in found)


@pytest.mark.parametrize("name", ["GradientBoostingClassifier", "GradientBoostingRegressor"])
def test_classic_words_have_scikit_learns_parameters(name):
    mine, theirs = getattr(classic, name), getattr(sklearn.ensemble, name)
    assert mine().get_params() == theirs().get_params()
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    model = clone(mine(n_estimators=3, min_impurity_decrease=1e-3))
    model.fit(X, X[:, 0] > 0)
    assert (model.n_estimators_, model.max_depth, len(model.train_score_)) == (3, 3, 3)
    with pytest.raises(ValueError, match="There is no \\['ccp_alpha'\\] here"):
        mine(ccp_alpha=0.1).fit(X, X[:, 0] > 0)


def test_defaults_that_the_plugin_sets_are_scikit_learns():
    text = Path(peers.__file__).with_name("plugin.py").read_text(encoding="utf-8")
    (told,) = re.findall(r"^DEFAULTS = (.*)$", text, re.MULTILINE)
    theirs = sklearn.ensemble.HistGradientBoostingRegressor().get_params()
    assert told == '{"l2_regularization": 0.0, "use_best_model": False}'
    assert theirs["l2_regularization"] == 0
    assert "use_best_model" not in theirs
