"""`cv --tune`, `--tune-simplest` and `--pruning-table`."""

import shlex

import numpy as np
import pytest
from sklearn.base import clone

import dtrees
from dtrees.io import problem_of, read_table
from dtrees.model_selection import boosting_curve, cost_complexity_cv, tuned_size
from dtrees.model_selection.folds import shuffled_folds
from tests.cli.asking import NOISY, ask, ask_json, check_refused

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize(("option", "rule"), [("--tune", "best"), ("--tune-simplest", "simplest")])
def test_the_model_and_its_scores_are_those_of_the_choice(noisy, option, rule):
    run = ask_json("cv", noisy, *NOISY, option)
    problem = problem_of(read_table(noisy), "class", drop=["amount", "mixed"])
    splits = shuffled_folds(problem.y, 3, 1, stratified=True)
    tree = dtrees.DecisionTreeClassifier(random_state=1)
    expected = tuned_size(tree, problem.X, problem.y, splits, rule)
    tuned = run["tuned"]
    assert tuned["rule"] == rule
    assert tuned["way"] == expected.chosen.way
    assert tuned["parameters"] == expected.chosen.parameters
    assert [fold["score"] for fold in run["folds"]] == expected.chosen.scores.tolist()
    assert run["tree"]["n_leaves"] == expected.chosen.n_leaves
    assert {name: run["parameters"][name] for name in tuned["parameters"]} == tuned["parameters"]
    assert tuned["untuned"]["mean"] == pytest.approx(expected.untuned.mean())
    for told, choice in zip(tuned["choices"], expected.choices, strict=True):
        mean, standard_error = choice.mean_and_error
        assert told == {
            "way": choice.way,
            "rule": choice.rule,
            "parameters": choice.parameters,
            "mean": mean,
            "standard_error": standard_error,
            "n_leaves": choice.n_leaves,
        }


def test_pruning_is_told_in_full_in_json_and_in_short_in_print(noisy):
    run = ask_json("cv", noisy, *NOISY, "--pruning-table")
    assert "tuned" not in run
    told = run["cost_complexity"]
    problem = problem_of(read_table(noisy), "class", drop=["amount", "mixed"])
    splits = shuffled_folds(problem.y, 3, 1, stratified=True)
    tree = dtrees.DecisionTreeClassifier(random_state=1)
    path = cost_complexity_cv(tree, problem.X, problem.y, cv=splits)
    assert [step["ccp_alpha"] for step in told["steps"]] == path.ccp_alphas.tolist()
    assert [step["n_leaves"] for step in told["steps"]] == path.n_leaves.tolist()
    assert [step["error"] for step in told["steps"]] == path.errors.tolist()
    assert [step["standard_error"] for step in told["steps"]] == path.standard_errors.tolist()
    assert (told["best"], told["one_standard_error"]) == (
        path.best_index,
        path.one_standard_error_index,
    )
    lines = ask("cv", noisy, *NOISY, "--pruning-table").stdout.splitlines()
    (best,) = [line for line in lines if "best" in line]
    assert f"{path.errors[path.best_index]:.4f} ± " in best
    assert any("one standard error" in line for line in lines)
    assert ask_json("cv", noisy, *NOISY, "--tune")["cost_complexity"] == told


@pytest.mark.parametrize(
    ("rule", "options"),
    [("best", ["--tune"]), ("simplest", ["--tune-simplest", "--max-depth", 4])],
)
def test_what_a_choice_is_worth_on_new_rows(noisy, rule, options):
    tuned = ask_json("cv", noisy, *NOISY, *options)
    told = ask_json("cv", noisy, *NOISY, *options, "--tune-nested")
    nested = told["tuned"].pop("nested")
    for run in (tuned, told):
        del run["seconds"]
    assert told == tuned
    problem = problem_of(read_table(noisy), "class", drop=["amount", "mixed"])
    X, y = problem.X, problem.y
    tree = dtrees.DecisionTreeClassifier(random_state=1)
    if rule == "simplest":
        tree.set_params(max_depth=4)
    scores = []
    for train, test in shuffled_folds(y, 3, 1, stratified=True):
        inner = shuffled_folds(y[train], 3, 1, stratified=True)
        chosen = tuned_size(tree, X.iloc[train], y[train], inner, rule).chosen
        model = clone(tree).set_params(**chosen.parameters).fit(X.iloc[train], y[train])
        scores.append(model.score(X.iloc[test], y[test]))
    assert nested["mean"] == pytest.approx(np.mean(scores))
    assert nested["standard_error"] == pytest.approx(np.std(scores, ddof=1) / np.sqrt(3))
    text = ask("cv", noisy, *NOISY, *options).stdout
    assert "(--tune-nested tells what it is on new rows)" in text
    assert "chosen anew" not in text
    text = ask("cv", noisy, *NOISY, *options, "--tune-nested").stdout
    assert "(--tune-nested" not in text
    mean, error = nested["mean"], nested["standard_error"]
    assert f"accuracy {mean:.4f} ± {error:.4f} on new rows: the size was chosen anew" in text
    assert "--tune-nested" not in text.splitlines()[-1]  # the command that saves the model


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_too_many_folds_for_folds_within_folds(task, tmp_path):
    n_rows = 12 if task == "classification" else 24
    y = np.tile(["yes", "no"], n_rows // 2) if task == "classification" else np.arange(n_rows) / 3
    frame = pd.DataFrame({"a": np.arange(n_rows), "y": y})
    path = tmp_path / "few.csv"
    frame.to_csv(path, index=False)
    most = 4 if task == "classification" else 10
    words = ["cv", path, "--target", "y", "--tune", "--folds"]
    assert ask(*words, most, "--tune-nested").exit_code == 0
    check_refused(ask(*words, most + 1, "--tune-nested"), f"--folds {most + 1} is too many for")
    assert ask(*words, most + 1).exit_code == 0


def test_a_tree_that_asks_nothing(csv):
    result = ask("cv", csv, "--target", "class", "--folds", 2, "--min-samples-leaf", 60, "--tune")
    assert result.exit_code == 0, result.output
    assert "depth 0, 1 leaf\n" in result.stdout


def test_a_forest(csv):
    options = ["--target", "amount", "--folds", 2, "--model", "forest", "--trees", 3, "--oob"]
    run = ask_json("cv", csv, *options, "--tune")
    assert run["tuned"]["way"] == "limits"
    assert run["parameters"]["max_depth"] == run["tuned"]["parameters"]["max_depth"]
    assert "oob_score" in run["forest"]
    assert "cost_complexity" not in run
    result = ask("cv", csv, *options, "--tune")
    assert result.exit_code == 0, result.output
    assert "ccp_alpha" not in result.stdout


BOOSTED = ("--model", "boosting", "--max-iter", 9, "--min-samples-leaf", 4)


@pytest.mark.parametrize("scoring", [(), ("neg_log_loss", "accuracy")])
@pytest.mark.parametrize(("option", "rule"), [("--tune", "best"), ("--tune-simplest", "simplest")])
def test_iterations_of_a_boosted_model(noisy, option, rule, scoring):
    scorers = [word for name in scoring for word in ("--scoring", name)]
    run = ask_json("cv", noisy, *NOISY, *BOOSTED, *scorers, option)
    problem = problem_of(read_table(noisy), "class", drop=["amount", "mixed"])
    splits = shuffled_folds(problem.y, 3, 1, stratified=True)
    model = dtrees.GradientBoostingClassifier(max_iter=9, min_samples_leaf=4, random_state=1)
    first = scoring[0] if scoring else None
    curve = boosting_curve(model, problem.X, problem.y, cv=splits, scoring=first)
    n = curve.best if rule == "best" else curve.one_standard_error
    tuned = run["tuned"]
    assert (tuned["way"], tuned["rule"]) == ("iterations", rule)
    assert tuned["parameters"] == {"max_iter": n, "early_stopping": False}
    assert [fold["score"] for fold in run["folds"]] == curve.scores[n - 1].tolist()
    assert run["boosting"]["iterations"] == run["parameters"]["max_iter"] == n
    chosen = model.set_params(max_iter=n).fit(problem.X, problem.y)
    importances = [column["importance"] for column in run["columns"]]
    assert importances == chosen.feature_importances_.tolist()
    assert tuned["untuned"]["mean"] == curve.mean[-1]
    steps = run["boosting_curve"]["steps"]
    assert [step["max_iter"] for step in steps] == list(range(1, 10))
    assert [step["mean"] for step in steps] == curve.mean.tolist()
    assert [step["standard_error"] for step in steps] == curve.standard_error.tolist()
    marked = run["boosting_curve"]["best"], run["boosting_curve"]["one_standard_error"]
    assert marked == (curve.best - 1, curve.one_standard_error - 1)
    assert "cost_complexity" not in run


def test_iterations_on_new_rows(noisy):
    run = ask_json("cv", noisy, *NOISY, *BOOSTED, "--tune", "--tune-nested")
    problem = problem_of(read_table(noisy), "class", drop=["amount", "mixed"])
    X, y = problem.X, problem.y
    model = dtrees.GradientBoostingClassifier(max_iter=9, min_samples_leaf=4, random_state=1)
    scores = []
    for train, test in shuffled_folds(y, 3, 1, stratified=True):
        inner = shuffled_folds(y[train], 3, 1, stratified=True)
        own = X.iloc[train], y[train]
        chosen = tuned_size(model, *own, inner).chosen.parameters
        scores.append(clone(model).set_params(**chosen).fit(*own).score(X.iloc[test], y[test]))
    assert run["tuned"]["nested"]["mean"] == pytest.approx(np.mean(scores))


def test_the_command_that_saves_a_boosted_model(noisy, tmp_path):
    how = (*NOISY, *BOOSTED, "--no-early-stopping", "--subsample", 0.7, "--rising", "number")
    text = ask("cv", noisy, *how, "--tune").stdout
    told = ask_json("cv", noisy, *how, "--tune")
    n = told["tuned"]["parameters"]["max_iter"]
    assert f"max_iter {n} " in text
    words = shlex.split(text.splitlines()[-1])[6:]
    words[words.index("MODEL")] = out = str(tmp_path / "a.dtrees")
    assert ask(*words).exit_code == 0
    model = dtrees.export.load(out)
    assert (model.max_iter, model.early_stopping, model.subsample) == (n, False, 0.7)
    importances = [column["importance"] for column in told["columns"]]
    assert model.feature_importances_.tolist() == importances


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--tune", "--tune-simplest"], "--tune and --tune-simplest: give either"),
        (["--tune-nested"], "--tune-nested is for --tune or --tune-simplest: add either"),
        (["--tune", "--ccp-alpha", 0.1], "--ccp-alpha is what --tune chooses: give either"),
        (["--tune", "--min-samples-split", 4], "--min-samples-split is what --tune chooses"),
        (["--pruning-table", "--model", "forest"], "--pruning-table is for --model tree, not for"),
    ],
)
def test_what_does_not_go_together_is_refused_before_the_table_is_read(unreadable, args, words):
    check_refused(ask("cv", unreadable, "--target", "y", *args), words)
