"""The models of the command line: which kinds, which options go with which."""

import pytest

import dtrees
from dtrees.cli.models import (
    CRITERIA,
    KINDS,
    LOSSES,
    PARAMETER_OF,
    check_columns,
    estimator_class,
    estimator_of,
    names_in,
    rules_as_options,
    rules_of,
)
from dtrees.cli.terminal import RequestError
from dtrees.io import problem_of, read_table
from tests.cli.asking import ask, ask_json, check_refused, cv_json, succeed

pd = pytest.importorskip("pandas")

RULES = ["--rising", "number", "--falling", "other", "--interaction", "number,word"]


@pytest.fixture
def ruled(table, tmp_path):
    path = tmp_path / "rules.csv"
    table.drop(columns="mixed").assign(other=table["number"].round()).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_all_models_take_them(kind, ruled, tmp_path):
    out = tmp_path / "a.dtrees"
    size = {"tree": [], "boosting": ["--max-iter", 3]}.get(kind, ["--trees", 3])
    how = ["--target", "class", "--drop", "amount", "--model", kind, *size]
    how += ["--min-samples-leaf", 2]
    succeed("fit", ruled, *how, *RULES, "--out", out)
    model = dtrees.export.load(out)
    problem = problem_of(read_table(ruled), "class", drop=["amount"])
    rules = {"monotonic_cst": {"number": 1, "other": -1}, "interaction_cst": [["number", "word"]]}
    assert {name: model.get_params()[name] for name in rules} == rules
    kinds = estimator_class(kind, "classification")
    names = {"tree": {}, "boosting": {"max_iter": 3}}.get(kind, {"n_estimators": 3})
    names = {**names, "min_samples_leaf": 2}
    expected = kinds(random_state=0, **names, **rules).fit(problem.X, problem.y)
    assert (model.predict_proba(problem.X) == expected.predict_proba(problem.X)).all()
    plain = kinds(random_state=0, **names).fit(problem.X, problem.y)
    assert (model.predict_proba(problem.X) != plain.predict_proba(problem.X)).any()
    told = ask_json("cv", ruled, *how, *RULES, "--folds", 2)["parameters"]
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
def test_columns_that_are_not_there_or_no_numbers(ruled, args, words):
    check_refused(ask("cv", ruled, "--target", "class", *args), words, is_read="word" in args)


@pytest.mark.parametrize("command", ["cv", "fit"])
def test_directions_of_many_classes(command, ruled, tmp_path):
    out = ["--out", tmp_path / "a.dtrees"] if command == "fit" else []
    result = ask(command, ruled, "--target", "word", "--rising", "number", *out)
    check_refused(result, "--rising 'number': the target has to be numbers or two", is_read=True)


def test_other_errors_are_told_as_they_are():
    with pytest.raises(ValueError, match=r"^no option$"), rules_as_options({"rising": ("a",)}):
        raise ValueError("no option")


def test_rules_that_contradict_each_other_are_refused_before_the_table_is_read(unreadable):
    args = ["--rising", "a", "--falling", "a"]
    check_refused(ask("cv", unreadable, "--target", "class", *args), "'a': give either")


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("model", list(KINDS))
def test_nothing_given_is_the_estimators_default(task, model):
    estimator = estimator_of(task, model)
    assert estimator.get_params() == type(estimator)().get_params()
    assert type(estimator).__name__.startswith(KINDS[model].stem)
    first = estimator.loss if model == "boosting" else estimator.criterion
    assert first == (LOSSES if model == "boosting" else CRITERIA)[task][0]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_losses_are_those_of_the_estimators(task):
    assert set(LOSSES[task]) == set(estimator_class("boosting", task)._losses)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("model", list(KINDS))
def test_every_kind_fits(csv, tmp_path, task, model):
    target = {"classification": "class", "regression": "amount"}[task]
    how, out = ("--target", target, "--model", model, "--max-depth", 2), tmp_path / "a.dtrees"
    succeed("fit", csv, *how, "--out", out)
    loaded = dtrees.export.load(out)
    assert type(loaded) is type(estimator_of(task, model))
    assert loaded.max_depth == 2


def test_the_options_become_parameters(csv, tmp_path):
    out = tmp_path / "a.dtrees"
    options = ["--trees", 7, "--max-features", "0.5", "--max-samples", 20, "--oob", "--seed", 3]
    options += ["--min-samples-leaf", 2, "--max-bins", "exact", "--criterion", "entropy"]
    options += ["--min-samples-split", 6, "--ccp-alpha", 0.001, "--max-leaf-nodes", 9]
    options += ["--jobs", 1, "--max-depth", 4, "--bootstrap"]
    succeed("fit", csv, "--target", "class", "--model", "forest", "--out", out, *options)
    parameters = dtrees.export.load(out).get_params()
    assert {name: parameters[name] for name in PARAMETER_OF.values() if name in parameters} == {
        "n_estimators": 7,
        "max_leaf_nodes": 9,
        "max_features": 0.5,
        "max_samples": 20,
        "bootstrap": True,
        "oob_score": True,
        "random_state": 3,
        "min_samples_leaf": 2,
        "min_samples_split": 6,
        "ccp_alpha": 0.001,
        "max_bins": None,
        "criterion": "entropy",
        "n_jobs": 1,
        "max_depth": 4,
        "monotonic_cst": None,
        "interaction_cst": None,
    }


def test_the_options_of_boosting_become_parameters(csv, tmp_path):
    out = tmp_path / "a.dtrees"
    options = ["--max-iter", 7, "--learning-rate", "0.3", "--loss", "quantile", "--quantile", 0.9]
    options += ["--min-child-weight", 3]
    options += ["--l2-regularization", 2, "--early-stopping", "--max-leaf-nodes", "all"]
    options += ["--min-samples-leaf", 2, "--max-bins", 9, "--max-depth", 3, "--jobs", 1]
    options += [
        "--subsample",
        "0.5",
        "--oob",
        "--min-samples-split",
        "4",
        "--rising",
        "number",
        "--interaction",
        "number,word",
    ]
    succeed("fit", csv, "--target", "amount", "--model", "boosting", "--out", out, *options)
    parameters = dtrees.export.load(out).get_params()
    assert {name: parameters[name] for name in PARAMETER_OF.values() if name in parameters} == {
        "max_iter": 7,
        "learning_rate": 0.3,
        "loss": "quantile",
        "quantile": 0.9,
        "alpha": 0.9,
        "power": 1.5,
        "subsample": 0.5,
        "oob_score": True,
        "min_samples_split": 4,
        "monotonic_cst": {"number": 1},
        "interaction_cst": [["number", "word"]],
        "max_features": 1.0,
        "min_child_weight": 3.0,
        "l2_regularization": 2.0,
        "early_stopping": True,
        "max_leaf_nodes": None,
        "min_samples_leaf": 2,
        "max_bins": 9,
        "max_depth": 3,
        "random_state": 0,
        "n_jobs": 1,
    }


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("text", "value"), [("sqrt", "sqrt"), ("all", None), ("2", 2), ("1.0", 1.0), ("0.25", 0.25)]
)
@pytest.mark.parametrize("model", ["tree", "boosting"])
def test_amounts(csv, model, text, value):
    options = ["--model", model, "--max-features", text]
    run = ask_json("cv", csv, "--target", "class", "--folds", 2, *options)
    assert run["parameters"]["max_features"] == value
    assert type(run["parameters"]["max_features"]) is type(value)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        *(("--max-features", text) for text in ("0", "-1", "0.0", "1.5", "some", "nan", "exact")),
        *(("--max-samples", text) for text in ("0", "2.0", "all")),
        *(("--max-bins", text) for text in ("1", "0.5", "all")),
    ],
)
def test_what_is_no_amount(csv, option, text):
    result = ask("cv", csv, "--target", "class", "--model", "forest", option, text)
    assert result.exit_code == 2
    assert f"{text!r} is none of: a whole number from" in result.stderr


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--trees", 5], "--trees is not for --model tree, only for forest, extra-trees, bagging"),
        (["--oob"], "--oob is not for --model tree"),
        (["--max-samples", 5], "--max-samples is not for --model tree"),
        (["--no-bootstrap"], "--bootstrap is not for --model tree"),
        (["--model", "bagging", "--max-features", 2], "only for tree, forest, extra-trees"),
        (["--model", "forest", "--criterion", "poisson"], "--criterion poisson is not for class"),
        (["--model", "boosting", "--criterion", "gini"], "--criterion is not for --model boosting"),
        (["--model", "boosting", "--trees", 5], "--trees is not for --model boosting"),
        (["--model", "boosting", "--ccp-alpha", 1], "only for tree, forest, extra-trees, bagging"),
        (["--max-iter", 5], "--max-iter is not for --model tree, only for boosting"),
        (
            ["--model", "forest", "--learning-rate", 0.5],
            "--learning-rate is not for --model forest",
        ),
        (["--no-early-stopping"], "--early-stopping is not for --model tree"),
        (["--subsample", 0.5], "--subsample is not for --model tree, only for boosting"),
        (["--alpha", 0.5], "--alpha is not for --model tree, only for boosting"),
        (["--model", "boosting", "--alpha", 0.5], "--alpha is a width of --loss huber: add it"),
        (["--model", "boosting", "--power", 1.2], "--power is of --loss tweedie: add it"),
    ],
)
def test_options_that_do_not_go_together(csv, tmp_path, args, words):
    refuse_both(csv, tmp_path, args, words, is_read=False)


def refuse_both(csv, tmp_path, args, words, is_read):
    """Neither `cv` nor `fit` takes the options."""
    check_refused(ask("cv", csv, "--target", "class", *args), words, is_read)
    out = tmp_path / "never.dtrees"
    check_refused(ask("fit", csv, "--target", "class", "--out", out, *args), words, is_read)
    assert not out.exists()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--model", "extra-trees", "--oob"], "--oob is about bags, and there are none: add --boo"),
        (["--model", "forest", "--no-bootstrap", "--oob"], "--oob is about bag"),
        (["--ccp-alpha", -1], "'ccp_alpha' parameter of DecisionTreeClassifier"),
        (["--model", "forest", "--max-samples", 121], "121"),
    ],
)
def test_options_that_the_estimator_refuses(csv, tmp_path, args, words):
    refuse_both(csv, tmp_path, args, words, is_read=True)


@pytest.mark.parametrize("model", ["tree", "forest"])
def test_more_columns_than_there_are_mean_all(csv, model):
    args = [csv, "--target", "class", "--model", model, "--folds", 2]
    many, everything = (cv_json(*args, "--max-features", each) for each in (99, "all"))
    assert many["mean"] == everything["mean"]
    assert many["columns"] == everything["columns"]


def test_cv_of_a_forest(csv):
    args = ["--target", "class", "--model", "forest", "--trees", 30, "--folds", 3, "--oob"]
    result = succeed("cv", csv, *args)
    assert "(mean ± standard error of 3 folds)" in result.stdout
    assert "The forest on all rows: 30 trees, depth up to" in result.stdout
    assert "out-of-bag accuracy 0." in result.stdout or "accuracy 1.0" in result.stdout
    assert "importance" in result.stdout
    assert "\x1b" not in result.stdout
    run = ask_json("cv", csv, *args)
    assert run["format"] == "dtrees.cv/2"
    assert run["model"] == "forest"
    assert run["parameters"]["n_estimators"] == 30
    assert set(run["forest"]) == {"trees", "depth", "n_leaves", "oob_score"}
    assert run["forest"]["trees"] == 30
    assert "tree" not in run


def test_cv_of_a_boosted_model(csv):
    args = ["--target", "class", "--model", "boosting", "--max-iter", 5, "--folds", 3]
    result = succeed("cv", csv, *args, "--early-stopping")
    assert "The boosted model on all rows: 5 iterations, 5 trees, depth up to" in result.stdout
    assert "best score of the held-out rows after " in result.stdout
    run = ask_json("cv", csv, *args)
    assert run["model"] == "boosting"
    assert run["parameters"]["max_iter"] == 5
    assert set(run["boosting"]) == {"trees", "depth", "n_leaves", "iterations"}
    assert run["boosting"]["iterations"] == 5
    assert "tree" not in run


@pytest.mark.parametrize("args", [["--loss", "quantile"], ["--quantile", 0.5]])
@pytest.mark.parametrize("target", ["amount", "class"])
def test_a_quantile_needs_its_loss_and_a_loss_its_quantile(unreadable, target, args):
    result = ask("cv", unreadable, "--target", target, "--model", "boosting", *args)
    check_refused(result, "--loss quantile and --quantile SHARE: give both")


def test_rows_without_a_vote_are_a_note(csv):
    result = succeed("cv", csv, "--target", "class", "--model", "bagging", "--trees", 2, "--oob")
    assert result.stderr.startswith("Note: Some inputs do not have OOB scores.")
    assert result.stderr.count("\n") == 1


def test_no_threads_at_all(csv):
    result = ask("cv", csv, "--target", "class", "--jobs", 0)
    assert result.exit_code == 2
    assert "0 threads do no work: give 1 or more, or -1 for all cores" in result.stderr
