"""A command as it was given, and the one that may come next."""

import shlex

import click
import pytest

import dtrees
from dtrees.cli.invocation import stray_hint, words_of
from tests.cli.asking import NOISY, ask, ask_json, check_refused, succeed

pd = pytest.importorskip("pandas")


def test_the_command_that_is_named_saves_the_model(noisy, tmp_path):
    result = succeed("cv", noisy, *NOISY, "--tune", "--max-depth", 5)
    assert "* chosen, by the folds that score it" in result.stdout
    assert result.stdout.count(" *\n") + result.stdout.count(" *  \n") == 1
    line = result.stdout.splitlines()[-1]
    assert line.startswith("To save it: python -m dtrees fit ")
    words = shlex.split(line)[6:]
    words[words.index("MODEL")] = out = str(tmp_path / "a.dtrees")
    succeed(*words)
    run = ask_json("cv", noisy, *NOISY, "--tune", "--max-depth", 5)
    model = dtrees.export.load(out)
    assert dtrees.export_text(model, max_depth=2) == run["tree"]["text"]
    assert model.get_n_leaves() == run["tree"]["n_leaves"]
    importances = [column["importance"] for column in run["columns"]]
    assert model.feature_importances_.tolist() == importances


@click.command()
@click.argument("files", nargs=-1)
@click.option("--drop", multiple=True)
@click.option("--max-depth", type=int)
@click.option("--seed", default=0)
@click.option("--oob/--no-oob", default=True)
@click.option("--quiet", is_flag=True)
def given(**_):
    """A command with words of every sort."""


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["a b.csv", "c.csv"],
        ["a.csv", "--drop", "it's", "--drop", "", "--seed", "0"],
        ["a.csv", "--max-depth", "3", "--no-oob", "--quiet"],
    ],
)
def test_words_that_were_given_mean_the_same_again(words):
    """What was not given is not named, be it a default; what was given is, be it the default."""
    context = given.make_context("given", list(words))
    assert words_of(context) == words
    assert given.make_context("given", words_of(context)).params == context.params


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "a.csv", "--tune"], "fit has no --tune, only cv. The last line of cv --tune is"),
        (["fit", "a.csv", "--folds=3"], "fit has no --folds, only cv.\n"),
        (["cv", "a.csv", "--out", "b"], "cv has no --out, only fit and predict.\n"),
        (["predict", "a", "--no-oob"], "No such option '--no-oob'.\n"),
        (["show", "a", "--no-bootstrap"], "show has no --no-bootstrap, only cv and fit.\n"),
        (["cv", "a.csv", "--fold", "3"], "No such option '--fold'. (Did you mean"),
    ],
)
def test_an_option_of_another_command_is_told(words, said):
    result = ask(*words)
    assert result.exit_code == 2
    assert f"Error: {said}" in result.stderr
    assert f"Usage: main {words[0]} " in result.stderr


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["--interaction", "a", "b c"], "--interaction 'a,b c'"),
        (["--rising", "a", "b"], "--rising a --rising b"),
        (["--drop", "d", "--drop", "e", "f"], "--drop e --drop f"),
        (["--drop", "d", "--interaction", "a,b", "c"], "--drop d --drop c or --interaction a,b,c"),
    ],
)
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("cluster", [(), ("--cluster", "tcp://nowhere:1")])  # not asked for
def test_a_word_that_is_no_file_may_belong_to_an_option(words, meant, is_first, cluster, csv):
    given = [*words, csv] if is_first else [csv, *words]
    said = f"{words[-1]}: no such file. An option takes one word: write {meant}\n"
    check_refused(ask("cv", *given, "--target", "class", *cluster), said)


def test_a_word_without_such_an_option_is_a_file_that_is_not_there(csv):
    assert stray_hint("a") == ""
    result = ask("cv", csv, "none.csv", "--target", "class")
    check_refused(result, "none.csv: no such file\n")
