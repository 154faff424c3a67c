"""Words: numbers of things, and text from data of which a terminal obeys none."""

import csv as csv_module
import unicodedata

import pytest
from hypothesis import given
from hypothesis.strategies import sampled_from, text

from dtrees.cli.formatting import INVISIBLE, counted, visible
from tests.cli.asking import ask, cv, shown

pd = pytest.importorskip("pandas")

ESCAPE = "\x1b[31mred\x07"


def test_visible():
    assert visible("plain \u00fcber \u6f22") == "plain \u00fcber \u6f22"
    assert visible("a\0b\x1b[2J\r\n") == r"a\x00b\x1b[2J\r\n"
    assert visible("\u202eabc\u2028\x9b") == r"\u202eabc\u2028\x9b"
    assert visible("\ud800") == r"\ud800"


def test_names_and_labels_on_a_terminal(tmp_path):
    path, model = tmp_path / "table.csv", tmp_path / "a.dtrees"
    labels = [f"{ESCAPE}yes", "no\0"] * 10
    table = pd.DataFrame({ESCAPE: range(20), "x\ry": ["a\x1b", "b"] * 10, "target": labels})
    table.to_csv(path, index=False, quoting=csv_module.QUOTE_ALL)
    rest = ["--target", "target"]
    for result in (
        ask("cv", path, *rest, "--folds", 2, "--tune"),
        ask("cv", path, *rest, "--folds", 2, "--model", "forest", "--trees", 2),
        ask("fit", path, *rest, "--out", model),
        ask("show", model),
        ask("predict", model, path, "--out", tmp_path / "out.csv", "--keep", ESCAPE),
    ):
        assert result.exit_code == 0, result.output
        shown(result)
    assert r"\x1b[31mred\x07" in ask("show", model).stdout
    shown(ask("cv", path, "--target", "none\x1b"))


@pytest.mark.parametrize(("n", "words"), [(0, "0 rows"), (1, "1 row"), (1000, "1,000 rows")])
def test_numbers_of_things(n, words):
    assert counted(n, "row") == words
    assert counted(n, "leaf", "leaves") == words.replace("row", "leaf").replace("leafs", "leaves")


def test_a_single_row_is_not_many(table, tmp_path):
    path = tmp_path / "gap.csv"
    table.loc[3, "class"] = None
    table[["number", "class"]].to_csv(path, index=False)
    text = cv(path, "--target", "class", "--folds", 2).stdout
    assert "59 rows, 1 column\n" in text
    assert "1 row without a target is left out" in text


@given(text(sampled_from("ab \n\r\t\0\x1b\x9b\u2028\u202e\ud800漢"), max_size=40))
def test_visible_text_is_one_line_and_printable_text_is_as_it_was(given_text):
    shown_text = visible(given_text)
    assert len(shown_text.splitlines()) <= 1
    assert not any(unicodedata.category(letter) in INVISIBLE for letter in shown_text)
    if given_text.isprintable():
        assert shown_text == given_text
