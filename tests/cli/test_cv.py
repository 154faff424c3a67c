"""`cv`, from inside (click's runner) and from outside (a process)."""

import subprocess
import sys
import tomllib

import pytest

import dtrees
from dtrees.io import problem_of, read_table
from dtrees.model_selection import nested_standard_error
from tests.cli.asking import ADULT, ROOT, check_refused, cv, cv_json, process, without_seconds

pd = pytest.importorskip("pandas")


def test_the_same_seed_gives_the_same_run_whatever_the_threads(csv):
    one, two = (
        without_seconds(cv_json(csv, "--target", "class", "--folds", 3, "--jobs", jobs))
        for jobs in (1, 2)
    )
    assert one == two


def test_another_seed_cuts_other_folds(csv):
    one, two = (
        without_seconds(cv_json(csv, "--target", "amount", "--folds", 3, "--seed", seed))
        for seed in (1, 2)
    )
    assert one["folds"] != two["folds"]


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
        (["--target", "amount", "--criterion", "gini"], "choose one of squared_error, poisson"),
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


def test_refusal_from_outside(tmp_path):
    done = process("cv", tmp_path / "no.csv", "--target", "class")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("no such file\n")
    assert "Traceback" not in done.stderr


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
