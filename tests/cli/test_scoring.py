"""`cv --scoring` and `--hash-folds`."""

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

import dtrees
from dtrees.io import problem_of, read_table
from dtrees.model_selection import (
    HashKFold,
    cross_validate,
    nested_standard_error,
    tuned_size,
)
from dtrees.model_selection.folds import shuffled_folds
from dtrees.model_selection.nested_errors import PINBALL, pinball_of_rows, pinball_scorer
from tests.cli.asking import ask, ask_json, check_refused

pd = pytest.importorskip("pandas")

HOW = ("--drop", "mixed", "--folds", 3, "--seed", 1, "--max-depth", 4)
MODELS = {
    ("class", "tree"): dtrees.DecisionTreeClassifier(max_depth=4, random_state=1),
    ("class", "forest"): dtrees.RandomForestClassifier(5, max_depth=4, random_state=1),
    ("amount", "tree"): dtrees.DecisionTreeRegressor(max_depth=4, random_state=1),
    ("amount", "forest"): dtrees.RandomForestRegressor(5, max_depth=4, random_state=1),
}
SCORERS = {  # sums over leaves, a matrix of classes, and one that needs predictions
    "class": ("balanced_accuracy", "f1_macro", "roc_auc"),
    "amount": ("neg_root_mean_squared_error", "neg_median_absolute_error"),
}


def problem_in(csv, target):
    drop = ["mixed", "amount"] if target == "class" else ["mixed", "class"]
    return problem_of(read_table(csv), target, drop=drop)


def asked(target, model="tree"):
    """Arguments of the command, for targets that other columns do not give away."""
    other = "amount" if target == "class" else "class"
    trees = ("--trees", 5) if model == "forest" else ()
    return ("--target", target, "--drop", other, "--model", model, *trees, *HOW)


def scoring(*names):
    return [word for name in names for word in ("--scoring", name)]


@pytest.mark.parametrize(("target", "model"), list(MODELS))
def test_scores_are_those_of_cross_validate(csv, target, model):
    names = SCORERS[target]
    run = ask_json("cv", csv, *asked(target, model), *scoring(*names))
    problem = problem_in(csv, target)
    splits = shuffled_folds(problem.y, 3, 1, stratified=target == "class")
    expected = cross_validate(
        MODELS[target, model], problem.X, problem.y, cv=splits, scoring=list(names)
    )
    assert list(run["scores"]) == list(names)
    for name in names:
        told, scores = run["scores"][name], expected[f"test_{name}"]
        assert told["folds"] == pytest.approx(scores.tolist(), abs=1e-12)
        assert told["mean"] == pytest.approx(scores.mean())
        assert told["standard_error"] == pytest.approx(scores.std(ddof=1) / np.sqrt(3))
    assert run["score"] == names[0]
    assert [fold["score"] for fold in run["folds"]] == run["scores"][names[0]]["folds"]
    assert run["mean"] == run["scores"][names[0]]["mean"]


@pytest.mark.parametrize("target", ["class", "amount"])
def test_what_is_not_asked_for_is_as_before(csv, target):
    name = {"class": "accuracy", "amount": "r2"}[target]
    plain = ask_json("cv", csv, *asked(target))
    run = ask_json("cv", csv, *asked(target), *scoring(name))
    assert "scores" not in plain
    assert run.pop("scores")[name]["folds"] == [fold["score"] for fold in plain["folds"]]
    assert run | {"seconds": 0} == plain | {"seconds": 0}


def test_all_scores_are_printed(csv, tmp_path):
    page = tmp_path / "page.html"
    names = scoring("f1_macro", "roc_auc", "f1_macro")
    result = ask("cv", csv, *asked("class"), *names, "--report", page)
    assert result.exit_code == 0, result.output
    head = next(line for line in result.stdout.splitlines() if "fold" in line)
    assert head.split() == ["fold", "f1_macro", "roc_auc", "depth", "leaves"]
    lines = [line for line in result.stdout.splitlines() if "±" in line]
    assert [line.split()[0] for line in lines] == ["f1_macro", "roc_auc"]
    assert "accuracy" not in result.stdout
    html = page.read_text(encoding="utf-8")
    assert "roc_auc" in html
    assert html.count("always saying the largest class") == 1  # its score by the first name


@pytest.mark.parametrize("name", ["balanced_accuracy", "roc_auc"])
@pytest.mark.parametrize("nested", [False, True])
def test_the_first_scorer_chooses_the_size(csv, name, nested):
    how = ("--tune", *(["--tune-nested"] if nested else []))
    run = ask_json("cv", csv, *asked("class"), *scoring(name, "accuracy"), *how)
    problem = problem_in(csv, "class")
    splits = shuffled_folds(problem.y, 3, 1, stratified=True)
    tree = MODELS["class", "tree"]
    expected = tuned_size(tree, problem.X, problem.y, splits, scoring=name)
    assert expected.surface.scoring == name
    assert run["tuned"]["parameters"] == expected.chosen.parameters
    assert [fold["score"] for fold in run["folds"]] == expected.chosen.scores.tolist()
    assert ("nested" in run["tuned"]) == nested


QUANTILE = ("--loss", "quantile", "--quantile", 0.8, "--model", "boosting", "--max-iter", 6)


def of_quantiles(csv):
    """A model, its scorer, and the problem and folds of the command."""
    model = dtrees.GradientBoostingRegressor(
        loss="quantile", quantile=0.8, max_iter=6, max_depth=4, random_state=1
    )
    problem = problem_in(csv, "amount")
    folds = shuffled_folds(problem.y, 3, 1, stratified=False)
    return model, pinball_scorer(0.8), (problem.X, problem.y), folds


def test_a_quantile_is_scored_by_its_own_loss(csv):
    how = ("cv", csv, *asked("amount"), *QUANTILE)
    run, (model, scorer, data, folds) = ask_json(*how), of_quantiles(csv)
    expected = cross_validate(model, *data, cv=folds, scoring=scorer)["test_score"]
    assert [fold["score"] for fold in run["folds"]] == expected.tolist()
    assert run["score"] == PINBALL
    assert list(run["scores"]) == [PINBALL]
    guess = [scorer(dummy.fit(data[0].iloc[a], data[1][a]), data[0].iloc[b], data[1][b])
             for dummy in [DummyRegressor(strategy="quantile", quantile=0.8)]
             for a, b in folds]  # fmt: skip
    assert run["baseline"] == pytest.approx(np.mean(guess))
    two = ask_json(*how, *scoring("r2", PINBALL))
    assert list(two["scores"]) == ["r2", PINBALL]
    assert two["scores"][PINBALL] == run["scores"][PINBALL]


def test_a_quantile_is_tuned_and_told_by_its_own_loss(csv):
    run = ask_json("cv", csv, *asked("amount"), *QUANTILE, "--tune", "--tune-nested")
    model, scorer, data, folds = of_quantiles(csv)
    tuned = tuned_size(model, *data, folds, scoring=scorer)
    assert run["tuned"]["parameters"] == tuned.chosen.parameters
    assert [fold["score"] for fold in run["folds"]] == tuned.chosen.scores.tolist()
    assert run["boosting_curve"]["best"] == tuned.curve.best - 1
    assert run["tuned"]["nested"]["mean"] < 0


def test_the_nested_error_of_a_quantile(csv):
    how = (*asked("amount"), *QUANTILE, "--nested-error", 2)
    told, (model, _, data, _) = ask_json("cv", csv, *how)["nested_error"], of_quantiles(csv)
    found = nested_standard_error(
        *(model, *data), cv=3, n_repeats=2, random_state=1, scoring=pinball_of_rows(0.8)
    )
    assert told["score"] == "pinball loss"
    assert told["mean"] == -found.mean > 0
    assert told["standard_error"] == found.standard_error


def test_the_loss_of_a_quantile_is_for_models_of_one(csv):
    words = f"--scoring {PINBALL} is for --loss quantile and --quantile SHARE"
    check_refused(ask("cv", csv, *asked("amount"), *scoring(PINBALL)), words)
    result = ask("cv", csv, *asked("amount"), *QUANTILE, *scoring("neg_mean_pinball"))
    check_refused(result, f"did you mean '{PINBALL}'?")
    result = ask("cv", csv, *asked("class"), *QUANTILE)
    check_refused(result, "--loss quantile is not for classification: choose one of log_loss")


@pytest.mark.parametrize(
    ("target", "name", "words"),
    [
        ("class", "f1_makro", "scikit-learn has no scorer 'f1_makro', did you mean 'f1_macro'"),
        ("class", "xyz", "scikit-learn has no scorer 'xyz'; there are accuracy, balanced_"),
        ("class", "xyz", " neg_mean_absolute_error, "),
        ("class", "f1_score", "no scorer 'f1_score', did you mean 'f1'?"),
        ("class", "acc", "no scorer 'acc', did you mean 'accuracy'?"),
        ("class", "f1", "--scoring f1 does not fit the target: pos_label=1 is not a valid label"),
        ("class", "f1", "For labels other than 0 and 1, try f1_macro"),
        ("class", "r2", "--scoring r2 does not fit the target: "),
        ("amount", "accuracy", "it is for classes, and the target holds numbers. Try r2"),
        ("amount", "roc_auc", "--scoring roc_auc does not fit the target: it is for classes"),
    ],
)
def test_scorers_that_are_refused(csv, target, name, words):
    check_refused(ask("cv", csv, *asked(target), *scoring(name)), words)


@pytest.mark.parametrize(
    ("name", "other"),
    [("f1", "f1_macro"), ("precision", "precision_macro"), ("roc_auc", "roc_auc_ovr")],
)
def test_scorers_of_two_classes(csv, name, other):
    args = ["--target", "word", "--folds", 2]
    words = f"it is for two classes, and there are more. Try {other}\n"
    check_refused(ask("cv", csv, *args, "--scoring", name), words, is_read=False)
    assert ask("cv", csv, *args, "--scoring", other).exit_code == 0


def test_folds_that_lack_a_class(tmp_path):
    """Log-loss knows the classes of the model; what is not defined is told before models grow."""
    rng, path = np.random.default_rng(0), tmp_path / "rare.csv"
    names = np.array(["a", "b", "rare"])[[2, 2, 2, *rng.integers(0, 2, 57)]]
    pd.DataFrame({"x": rng.normal(size=60), "name": names}).to_csv(path, index=False)
    args = ("cv", path, "--target", "name", "--folds", 5, "--scoring")
    run = ask_json(*args, "neg_log_loss")
    assert np.isfinite(run["scores"]["neg_log_loss"]["folds"]).all()
    refused = ask(*args, "roc_auc_ovr")
    assert refused.exit_code == 2
    assert "Error: Scores of roc_auc_ovr are nan where test sides lack classes: fold" in (
        refused.stderr
    )
    assert "has no row of rare; fold" in refused.stderr


@pytest.mark.parametrize("target", ["class", "amount"])
def test_hash_folds(csv, target):
    run = ask_json("cv", csv, *asked(target), "--hash-folds")
    problem = problem_in(csv, target)
    folds = HashKFold(3, stratify=target == "class", random_state=1)
    found = cross_validate(MODELS[target, "tree"], problem.X, problem.y, cv=folds)
    assert [fold["score"] for fold in run["folds"]] == found["test_score"].tolist()
    sizes = np.bincount(folds.folds(problem.X, problem.y)).tolist()
    assert [fold["n_test"] for fold in run["folds"]] == sizes
    assert run["parameters"]["hash_folds"] is True
    assert "hash_folds" not in ask_json("cv", csv, *asked(target))["parameters"]


def test_hash_folds_of_nested_choices(csv):
    run = ask_json("cv", csv, *asked("class"), "--hash-folds", "--tune", "--tune-nested")
    assert 0 <= run["tuned"]["nested"]["mean"] <= 1


def test_a_hash_fold_without_rows_is_refused(csv):
    how = ("--target", "amount", "--folds", 30, "--hash-folds")
    check_refused(ask("cv", csv, *how), "one of them has no row", is_read=True)
