"""The list of scikit-learn's tests that do not pass is read, and compared as it says."""

from tests.peers import __main__ as peers

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
