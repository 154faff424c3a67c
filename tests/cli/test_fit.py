"""`fit` and `show`: a model in a file, and what the file says."""

import re

import numpy as np
import pytest

import dtrees
from dtrees.export import load, save
from dtrees.io import problem_of, read_table
from tests.cli.asking import ADULT, ask, ask_json, check_refused, process

pd = pytest.importorskip("pandas")


def fit(csv, out, *args):
    result = ask("fit", csv, "--out", out, *args)
    assert result.exit_code == 0, result.output
    return result


def test_fit_says_what_was_fitted(csv, tmp_path):
    out = tmp_path / "a.dtrees"
    args = ["--target", "class", "--drop", "word", "--model", "forest", "--trees", 30, "--oob"]
    lines = fit(csv, out, *args).stdout.splitlines()
    assert lines[0].endswith("60 rows, 3 columns (2 ordered, 1 hybrid)")
    assert lines[1:3] == ["target class: classification, 2 classes", "left out: word"]
    assert lines[3].startswith("RandomForestClassifier: 30 trees, depth up to ")
    assert re.search(r" leaves, fitted in \d+\.\d\d s$", lines[3])
    assert lines[4] == f"out-of-bag accuracy {load(out).oob_score_:.4f}"
    assert lines[5].startswith(f"{out}: ")
    assert lines[5].endswith(" kB")


def test_the_file_is_the_estimators(csv, tmp_path):
    fit(csv, tmp_path / "a.dtrees", "--target", "amount", "--model", "forest", "--jobs", 1)
    problem = problem_of(read_table(csv), "amount")
    forest = dtrees.RandomForestRegressor(random_state=0, n_jobs=1).fit(problem.X, problem.y)
    save(forest, tmp_path / "b.dtrees")
    assert (tmp_path / "a.dtrees").read_bytes() == (tmp_path / "b.dtrees").read_bytes()


def test_json_of_fit_and_show(csv, tmp_path):
    out = tmp_path / "a.dtrees"
    fitted = ask_json("fit", csv, "--target", "class", "--out", out, "--max-depth", 2)
    shown = ask_json("show", out)
    assert set(fitted) - set(shown) == {"target", "rows", "seconds"}
    assert {name: fitted[name] for name in shown} == shown
    assert set(shown) == {
        *("format", "dtrees", "file", "bytes", "estimator", "task", "trees", "depth", "n_leaves"),
        *("parameters", "columns", "classes"),
    }
    assert shown["format"] == "dtrees.model/1"
    assert shown["classes"] == ["no", "yes"]
    assert shown["parameters"]["max_depth"] == 2
    assert [column["name"] for column in shown["columns"]] == ["number", "word", "mixed", "amount"]


def test_show_a_tree_and_a_forest(csv, tmp_path):
    out = tmp_path / "a.dtrees"
    fit(csv, out, "--target", "class")
    shown = ask("show", out).stdout
    assert "DecisionTreeClassifier(n_jobs=-1, random_state=0)" in shown
    assert "predicts 2 classes: no, yes" in shown
    assert "4 columns, 1 of them used" in shown
    assert "The tree:" in shown
    assert "|--- amount <= " in shown
    fit(csv, out, "--target", "amount", "--model", "bagging", "--oob", "--trees", 40)
    shown = ask("show", out).stdout
    assert "BaggingRegressor(n_estimators=40," in shown
    assert "40 trees, depth up to" in shown
    assert "predicts numbers" in shown
    assert "out-of-bag R² 0." in shown
    assert "\x1b" not in shown


def test_show_a_model_from_python(tmp_path):
    X = np.arange(40.0).reshape(20, 2)
    model = dtrees.DecisionTreeClassifier(class_weight={0: 1.0, 1: 2.0}).fit(X, X[:, 0] > 20)
    save(model, tmp_path / "a.dtrees")
    shown = ask_json("show", tmp_path / "a.dtrees")
    assert shown["classes"] == [False, True]
    assert shown["parameters"]["class_weight"] == "{0: 1.0, 1: 2.0}"
    assert [column["name"] for column in shown["columns"]] == ["0", "1"]


def test_where_a_model_cannot_go(csv, tmp_path):
    for out, words in (
        (tmp_path, "not a file"),
        ("/dev/null", "not a file"),
        (tmp_path / "no" / "a.dtrees", "there is no folder"),
        (csv, "would replace what is read"),
        ("-", "a model goes to a file"),
    ):
        before = csv.read_bytes()
        check_refused(ask("fit", csv, "--target", "class", "--out", out), words)
        assert csv.read_bytes() == before


def test_a_refused_fit_leaves_the_former_file(csv, tmp_path):
    out = tmp_path / "a.dtrees"
    fit(csv, out, "--target", "class")
    before = out.read_bytes()
    check_refused(ask("fit", csv, "--target", "none", "--out", out), "no column 'none'")
    assert out.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.dtrees", "table.csv"]


@pytest.mark.parametrize("command", ["show", "predict"])
def test_files_that_hold_no_model(csv, tmp_path, command):
    rest = [csv] if command == "predict" else []
    model = tmp_path / "a.dtrees"
    check_refused(ask(command, model, *rest), "no such file")
    check_refused(ask(command, tmp_path, *rest), "not a file")
    check_refused(ask(command, csv, *rest), "is not a model file of dtrees")
    fit(csv, model, "--target", "class")
    whole = model.read_bytes()
    model.write_bytes(whole[: len(whole) // 2])
    check_refused(ask(command, model, *rest), "is damaged")
    model.write_bytes(b"")
    check_refused(ask(command, model, *rest), "is not a model file of dtrees: it is empty")


def test_a_table_from_standard_input(csv, tmp_path):
    text = csv.read_text()
    result = ask("fit", "-", "--target", "class", "--out", tmp_path / "a.dtrees", text=text)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("-: 60 rows")
    fit(csv, tmp_path / "b.dtrees", "--target", "class")
    assert (tmp_path / "a.dtrees").read_bytes() == (tmp_path / "b.dtrees").read_bytes()
    check_refused(
        ask("fit", "-", "--target", "class", "--out", tmp_path / "c.dtrees", text=""),
        "standard input: the file is empty",
    )


def test_the_way_of_a_model_from_outside(tmp_path):
    out = tmp_path / "adult.dtrees"
    options = ["--target", "target", "--model", "forest", "--trees", 10, "--max-depth", 8]
    done = process("fit", ADULT, *options, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert "48,842 rows, 14 columns (6 ordered, 8 categorical)" in done.stdout
    done = process("predict", out, ADULT, "--out", tmp_path / "p.csv", "--proba")
    assert (done.returncode, done.stderr) == (0, "")
    problem = problem_of(read_table(ADULT), "target")
    forest = dtrees.RandomForestClassifier(10, max_depth=8, random_state=0)
    forest.fit(problem.X, problem.y)
    answers = pd.read_csv(tmp_path / "p.csv", dtype=str)  # pandas 2 reads floats in haste
    assert answers["prediction"].tolist() == forest.predict(problem.X).tolist()
    shares = answers[["probability_<=50K", "probability_>50K"]].astype(float).to_numpy()
    assert np.array_equal(shares, forest.predict_proba(problem.X))
    assert ask_json("show", out)["trees"] == 10
    assert "\x1b" not in ask("show", out).stdout
    done = ask("show", ADULT)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
