"""`cv`, from inside (click's runner) and from outside (a process)."""

import shlex
import subprocess
import sys
import tomllib

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor

import dtrees
from dtrees.estimators.fitted_sets import trees_of
from dtrees.estimators.scorers import PINBALL, pinball_of_rows, pinball_scorer
from dtrees.io import problem_of, read_table
from dtrees.model_selection import (
    HashKFold,
    boosting_curve,
    cost_complexity_cv,
    cross_validate,
    nested_standard_error,
    tuned_size,
)
from dtrees.model_selection.folds import shuffled_folds
from tests.cli.asking import (
    ADULT,
    NOISY,
    ROOT,
    ask,
    ask_json,
    check_refused,
    cv,
    cv_json,
    process,
    succeed,
    without_seconds,
)

pd = pytest.importorskip("pandas")

HOW = ("--drop", "mixed", "--folds", 3, "--seed", 1, "--max-depth", 4)
MODELS = {
    ("class", "tree"): dtrees.DecisionTreeClassifier(max_depth=4, random_state=1),
    ("class", "forest"): dtrees.RandomForestClassifier(5, max_depth=4, random_state=1),
    ("amount", "tree"): dtrees.DecisionTreeRegressor(max_depth=4, random_state=1),
    ("amount", "forest"): dtrees.RandomForestRegressor(5, max_depth=4, random_state=1),
    ("amount", "extra-trees"): dtrees.ExtraTreesRegressor(5, max_depth=4, random_state=1),
    ("amount", "boosting"): dtrees.GradientBoostingRegressor(
        max_iter=5, max_depth=4, random_state=1
    ),
}
SIZES = {"tree": (), "boosting": ("--max-iter", 5)}
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
    size = SIZES.get(model, ("--trees", 5))
    return ("--target", target, "--drop", other, "--model", model, *size, *HOW)


def scoring(*names):
    return [word for name in names for word in ("--scoring", name)]


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("target", "model"), list(MODELS))
def test_a_run_is_a_cross_validation(csv, target, model):
    """Its scores, the models of its folds, and the one of all rows."""
    names = SCORERS[target]
    run = ask_json("cv", csv, *asked(target, model), *scoring(*names))
    problem = problem_in(csv, target)
    splits = shuffled_folds(problem.y, 3, 1, stratified=target == "class")
    how = {"cv": splits, "scoring": list(names), "return_estimator": True}
    expected = cross_validate(MODELS[target, model], problem.X, problem.y, **how)
    assert list(run["scores"]) == list(names)
    for name in names:
        told, scores = run["scores"][name], expected[f"test_{name}"]
        assert told["folds"] == pytest.approx(scores.tolist(), abs=1e-12)
        assert told["mean"] == pytest.approx(scores.mean())
        assert told["standard_error"] == pytest.approx(scores.std(ddof=1) / np.sqrt(3))
    assert run["score"] == names[0]
    assert [fold["score"] for fold in run["folds"]] == run["scores"][names[0]]["folds"]
    assert run["mean"] == run["scores"][names[0]]["mean"]
    for fold, (train, test), grown in zip(run["folds"], splits, expected["estimator"], strict=True):
        trees = trees_of(grown)
        assert (fold["n_train"], fold["n_test"]) == (len(train), len(test))
        assert fold["n_leaves"] == sum(tree.n_leaves for tree in trees)
        assert fold["depth"] == max(tree.depth.max() for tree in trees)
    final = clone(MODELS[target, model]).fit(problem.X, problem.y)
    importances = [column["importance"] for column in run["columns"]]
    assert importances == pytest.approx(final.feature_importances_.tolist(), rel=1e-12)
    assert model != "tree" or run["tree"]["text"] == dtrees.export_text(final, max_depth=2)


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
    result = succeed("cv", csv, *asked("class"), *names, "--report", page)
    head = next(line for line in result.stdout.splitlines() if "fold" in line)
    assert head.split() == ["fold", "f1_macro", "roc_auc", "depth", "leaves"]
    lines = [line for line in result.stdout.splitlines() if "±" in line]
    assert [line.split()[0] for line in lines] == ["f1_macro", "roc_auc"]
    assert "accuracy" not in result.stdout
    html = page.read_text(encoding="utf-8")
    assert "roc_auc" in html
    assert html.count("always saying the largest class") == 1  # its score by the first name


@pytest.mark.one_of(2)
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


def data_of(noisy):
    """The table, the classes and the folds of the command."""
    problem = problem_of(read_table(noisy), "class", drop=["amount", "mixed"])
    return problem.X, problem.y, shuffled_folds(problem.y, 3, 1, stratified=True)


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
    succeed("cv", csv, *args, "--scoring", other)


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


def test_a_hash_fold_without_rows_is_refused(csv):
    how = ("--target", "amount", "--folds", 30, "--hash-folds")
    check_refused(ask("cv", csv, *how), "one of them has no row", is_read=True)


def test_the_same_seed_gives_the_same_run_whatever_the_threads(csv):
    one, two = (
        without_seconds(cv_json(csv, "--target", "class", "--folds", 3, "--jobs", jobs))
        for jobs in (1, 2)
    )
    assert one == two


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--target", "clas"], "no column 'clas' in the table, did you mean 'class'?"),
        (["--target", "Class"], "no column 'Class' in the table, did you mean 'class'?"),
        (["--target", " class "], "no column ' class ' in the table, did you mean 'class'?"),
        (["--target", "class", "--regime", "replicated"], "add --cluster local:2"),
        (["--target", "xyz"], "there are number, word, mixed, class, amount"),
        (["--target", "class", "--folds", "61"], "--folds 61 is too many for 60 rows"),
        (["--target", "class", "--folds", "50"], "the largest class has"),
        (["--target", "amount", "--folds", "31"], "a fold needs at least 2"),
        (["--target", "class", "--task", "regression"], "is not made of numbers"),
        (["--target", "class", "--criterion", "poisson"], "choose one of gini, entropy, log_loss"),
        (
            ["--target", "amount", "--criterion", "gini"],
            "choose one of squared_error, absolute_error, poisson",
        ),
        (
            ["--target", "class", "--drop", "wrd"],
            "no column 'wrd' in the table, did you mean 'word'?",
        ),
        (["--target", "class", "--drop", "xyz"], "no column 'xyz' in the table; there are number"),
        (["--target", "class", "--drop", "class"], "the target column 'class' cannot be dropped"),
        (["--target", "class", "--sep", ";"], "there are number,word,mixed,class,amount"),
        (["--target", "class", "--sep", "||"], "must be one ASCII character"),
        (["--target", "class", "--sep", ""], "must be one ASCII character"),
        (["--target", "class", "--sep", "\n"], "no line end: '\\n'"),
        (["--target", "class", "--encoding", "latin-11"], "unknown encoding: 'latin-11'"),
        (["--target", "class", "--encoding", "rot13"], "not a text encoding"),
        (["--target", "class", "--encoding", "utf-16"], "cannot be read as utf-16"),
    ],
)
def test_a_bad_request_is_one_line_and_code_2(csv, args, words):
    check_refused(cv(csv, *args), words)


@pytest.mark.parametrize("module", ["pandas", "rich"])
def test_a_missing_extra_is_named(csv, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    result = cv(csv, "--target", "class")
    check_refused(result, f"needs {module}, which is not installed: pip install 'dask-dtrees[cli]'")


def test_json_needs_no_rich(csv, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    assert cv(csv, "--target", "class", "--json").exit_code == 0


def test_the_main_job_from_outside():
    done = process("cv", ADULT, "--target", "target", "--folds", 3, "--max-depth", 5)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "48,842 rows, 14 columns\n" in done.stdout
    assert "\x1b" not in done.stdout
    score = float(done.stdout.split("accuracy ")[-1].split()[0])
    assert 0.84 < score < 0.87


def test_without_click_the_command_line_says_how_to_get_it():
    code = "import sys; sys.modules['click'] = None; from dtrees.__main__ import run; run()"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: the command line needs click")
    assert done.stderr.endswith("pip install 'dask-dtrees[cli]'\n")


def test_the_command_has_a_script():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert scripts["project"]["scripts"] == {"dtrees": "dtrees.__main__:run"}


def test_version_and_help():
    assert dtrees.__version__ in process("--version").stdout
    help_ = process("cv", "--help")
    assert help_.returncode == 0
    for option in ("--tune", "--tune-simplest", "--tune-nested", "--pruning-table", "--report"):
        assert option in help_.stdout
    for option in ("--target", "--folds", "--max-depth", "--json", "--seed", "--jobs", "--task"):
        assert option in help_.stdout
    for words in ("--drop", "--sep", "--encoding", "ISO 8601", "--scoring", "--hash-folds"):
        assert words in help_.stdout
    for words in ("--cluster", "FILE...", "URL"):
        assert words in process("predict", "--help").stdout


@pytest.mark.one_of(2)
@pytest.mark.parametrize("target", ["class", "amount"])
@pytest.mark.parametrize("kind", ["tree", "forest", "boosting"])
def test_the_nested_standard_error(target, kind, csv):
    how = ("--target", target, "--folds", 3, "--seed", 2, "--model", kind, "--max-depth", 2)
    number = {"tree": (), "forest": ("--trees", 3), "boosting": ("--max-iter", 3)}[kind]
    how = (*how, *number, "--nested-error", 4)
    told = cv_json(csv, *how)["nested_error"]
    problem = problem_of(read_table(csv), target)
    stem = {"tree": "DecisionTree", "forest": "RandomForest", "boosting": "GradientBoosting"}[kind]
    is_class = target == "class"
    size = {"tree": {}, "forest": {"n_estimators": 3}, "boosting": {"max_iter": 3}}[kind]
    model = getattr(dtrees, stem + ("Classifier" if is_class else "Regressor"))
    found = nested_standard_error(
        model(max_depth=2, random_state=2, **size),
        *(problem.X, problem.y),
        cv=3,
        n_repeats=4,
        random_state=2,
    )
    sign = 1 if is_class else -1
    ends = sorted(sign * end for end in found.interval(0.9))
    assert told == {
        "score": "accuracy" if is_class else "squared error",
        "mean": sign * found.mean,
        "standard_error": found.standard_error,
        "naive_standard_error": found.naive_standard_error,
        "interval": ends,
        "confidence": 0.9,
        "divisions": 4,
    }
    out = cv(csv, *how).stdout
    assert f"{told['score']} {told['mean']:.4g} ± {told['standard_error']:.2g} (nested" in out
    assert "mean of 4 other divisions into folds)" in out
    assert f"90% interval for new rows: {ends[0]:.4g} to {ends[1]:.4g}" in out


def test_nested_standard_errors_that_are_refused(csv):
    for how, said in (
        (("--folds", 2), "--nested-error needs --folds 3 or more, not 2"),
        (("--tune",), "--nested-error is for a size that is given, not for --tune"),
        (("--scoring", "roc_auc"), "--nested-error is of the accuracy, or of the squared error"),
    ):
        check_refused(cv(csv, "--target", "class", "--nested-error", 2, *how), said)


@pytest.mark.parametrize(("option", "rule"), [("--tune", "best"), ("--tune-simplest", "simplest")])
def test_the_model_and_its_scores_are_those_of_the_choice(noisy, option, rule):
    run = ask_json("cv", noisy, *NOISY, option)
    X, y, splits = data_of(noisy)
    tree = dtrees.DecisionTreeClassifier(random_state=1)
    expected = tuned_size(tree, X, y, splits, rule)
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
    X, y, splits = data_of(noisy)
    tree = dtrees.DecisionTreeClassifier(random_state=1)
    path = cost_complexity_cv(tree, X, y, cv=splits)
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


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("rule", "options"), [("best", ["--tune"]), ("simplest", ["--tune-simplest", "--max-depth", 4])]
)
def test_what_a_choice_is_worth_on_new_rows(noisy, rule, options):
    tuned = ask_json("cv", noisy, *NOISY, *options)
    told = ask_json("cv", noisy, *NOISY, *options, "--tune-nested")
    nested = told["tuned"].pop("nested")
    for run in (tuned, told):
        del run["seconds"]
    assert told == tuned
    X, y, splits = data_of(noisy)
    tree = dtrees.DecisionTreeClassifier(random_state=1)
    if rule == "simplest":
        tree.set_params(max_depth=4)
    scores = []
    for train, test in splits:
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
    succeed(*words, most, "--tune-nested")
    check_refused(ask(*words, most + 1, "--tune-nested"), f"--folds {most + 1} is too many for")
    succeed(*words, most + 1)


def test_a_tree_that_asks_nothing(csv):
    how = ("--target", "class", "--folds", 2, "--min-samples-leaf", 60, "--tune")
    assert "depth 0, 1 leaf\n" in succeed("cv", csv, *how).stdout


BOOSTED = ("--model", "boosting", "--max-iter", 9, "--min-samples-leaf", 4)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("scoring", [(), ("neg_log_loss", "accuracy")])
@pytest.mark.parametrize(("option", "rule"), [("--tune", "best"), ("--tune-simplest", "simplest")])
def test_iterations_of_a_boosted_model(noisy, option, rule, scoring):
    scorers = [word for name in scoring for word in ("--scoring", name)]
    run = ask_json("cv", noisy, *NOISY, *BOOSTED, *scorers, option)
    X, y, splits = data_of(noisy)
    model = dtrees.GradientBoostingClassifier(max_iter=9, min_samples_leaf=4, random_state=1)
    first = scoring[0] if scoring else None
    curve = boosting_curve(model, X, y, cv=splits, scoring=first)
    n = curve.best if rule == "best" else curve.one_standard_error
    tuned = run["tuned"]
    assert (tuned["way"], tuned["rule"]) == ("iterations", rule)
    assert tuned["parameters"] == {"max_iter": n, "early_stopping": False}
    assert [fold["score"] for fold in run["folds"]] == curve.scores[n - 1].tolist()
    assert run["boosting"]["iterations"] == run["parameters"]["max_iter"] == n
    chosen = model.set_params(max_iter=n).fit(X, y)
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


def test_the_command_that_saves_a_boosted_model(noisy, tmp_path):
    how = (*NOISY, *BOOSTED, "--no-early-stopping", "--subsample", 0.7, "--rising", "number")
    text = ask("cv", noisy, *how, "--tune").stdout
    told = ask_json("cv", noisy, *how, "--tune")
    n = told["tuned"]["parameters"]["max_iter"]
    assert f"max_iter {n} " in text
    words = shlex.split(text.splitlines()[-1])[6:]
    words[words.index("MODEL")] = out = str(tmp_path / "a.dtrees")
    succeed(*words)
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
