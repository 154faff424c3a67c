"""Rules for columns by name: as in Python, for all kinds of models."""

import pytest

import dtrees
from dtrees.cli.column_rules import check_columns, names_in, rules_as_options, rules_of
from dtrees.cli.errors import RequestError
from dtrees.cli.models import KINDS, estimator_class
from dtrees.io import problem_of, read_table
from tests.cli.asking import ask, ask_json, check_refused

pd = pytest.importorskip("pandas")

RULES = ["--rising", "number", "--falling", "other", "--interaction", "number,word"]


@pytest.fixture
def csv(table, tmp_path):
    path = tmp_path / "rules.csv"
    table.drop(columns="mixed").assign(other=table["number"].round()).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_all_models_take_them(kind, csv, tmp_path):
    out = tmp_path / "a.dtrees"
    size = {"tree": [], "boosting": ["--max-iter", 3]}.get(kind, ["--trees", 3])
    how = ["--target", "class", "--drop", "amount", "--model", kind, *size]
    how += ["--min-samples-leaf", 2]
    result = ask("fit", csv, *how, *RULES, "--out", out)
    assert result.exit_code == 0, result.output
    model = dtrees.export.load(out)
    problem = problem_of(read_table(csv), "class", drop=["amount"])
    rules = {"monotonic_cst": {"number": 1, "other": -1}, "interaction_cst": [["number", "word"]]}
    assert {name: model.get_params()[name] for name in rules} == rules
    kinds = estimator_class(kind, "classification")
    names = {"tree": {}, "boosting": {"max_iter": 3}}.get(kind, {"n_estimators": 3})
    names = {**names, "min_samples_leaf": 2}
    expected = kinds(random_state=0, **names, **rules).fit(problem.X, problem.y)
    assert (model.predict_proba(problem.X) == expected.predict_proba(problem.X)).all()
    plain = kinds(random_state=0, **names).fit(problem.X, problem.y)
    assert (model.predict_proba(problem.X) != plain.predict_proba(problem.X)).any()
    told = ask_json("cv", csv, *how, *RULES, "--folds", 2)["parameters"]
    assert {name: told[name] for name in rules} == rules


def test_names_of_sets():
    assert names_in("a") == ["a"]
    assert names_in("a, b") == ["a", "b"]
    assert names_in('"a, b",c') == ["a, b", "c"]
    for text in ("", ",", "a,,b"):
        with pytest.raises(RequestError, match="give names of columns between commas"):
            names_in(text)


def test_parameters():
    assert rules_of({}) == rules_of({"rising": (), "falling": (), "interaction": ()}) == {}
    assert rules_of({"rising": ("a",), "falling": ("b",)}) == {"monotonic_cst": {"a": 1, "b": -1}}
    assert rules_of({"interaction": ("pairwise",)}) == {"interaction_cst": "pairwise"}
    found = rules_of({"interaction": ("pairwise", "b")})
    assert found == {"interaction_cst": [["pairwise"], ["b"]]}
    with pytest.raises(RequestError, match="--rising 'a' and --falling 'a': give either"):
        rules_of({"rising": ("a", "b"), "falling": ("a",)})
    check_columns({"interaction": ("no_interactions",)}, ["a"])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ["--rising", "numbers"],
            "--rising: no column 'numbers' in the table, did you mean 'number'?",
        ),
        (["--falling", "class"], "--falling: no column 'class' in the table"),
        (["--interaction", "number,none"], "--interaction: no column 'none' in the table"),
        (["--rising", "word"], "--rising 'word': the column holds words, which are in no order"),
        (["--rising", "number", "--falling", "word"], "--falling 'word': the column holds words"),
    ],
)
def test_columns_that_are_not_there_or_no_numbers(csv, args, words):
    check_refused(ask("cv", csv, "--target", "class", *args), words, is_read="word" in args)


@pytest.mark.parametrize("command", ["cv", "fit"])
def test_directions_of_many_classes(command, csv, tmp_path):
    out = ["--out", tmp_path / "a.dtrees"] if command == "fit" else []
    result = ask(command, csv, "--target", "word", "--rising", "number", *out)
    check_refused(result, "--rising 'number': the target has to be numbers or two", is_read=True)


def test_other_errors_are_told_as_they_are():
    with pytest.raises(ValueError, match=r"^no option$"), rules_as_options({"rising": ("a",)}):
        raise ValueError("no option")


def test_rules_that_contradict_each_other_are_refused_before_the_table_is_read(unreadable):
    args = ["--rising", "a", "--falling", "a"]
    check_refused(ask("cv", unreadable, "--target", "class", *args), "'a': give either")
