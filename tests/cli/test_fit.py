"""`fit` and `show`: a model in a file, and what the file says."""

import re

import numpy as np
import pytest

import dtrees
from dtrees.export import load, save
from dtrees.io import problem_of, read_table
from tests.cli.asking import ADULT, ask, ask_json, check_refused, fit, forked

pd = pytest.importorskip("pandas")


def test_fit_says_what_was_fitted(csv, tmp_path):
    out = tmp_path / "a.dtrees"
    args = ["--target", "class", "--drop", "word", "--model", "forest", "--trees", 30, "--oob"]
    lines = fit(csv, out, *args).stdout.splitlines()
    assert lines[0].endswith("60 rows, 3 columns")
    assert lines[1:3] == ["target class: classification, 2 classes", "left out: word"]
    assert lines[3] == "columns: 2 ordered, 1 hybrid (numbers and words)"
    assert lines[4].startswith("RandomForestClassifier: 30 trees, depth up to ")
    assert re.search(r" leaves, fitted in \d+\.\d\d s$", lines[4])
    assert lines[5] == f"out-of-bag accuracy {load(out).oob_score_:.4f}"
    assert lines[6].startswith(f"{out}: ")
    assert lines[6].endswith(" kB")


def test_the_file_is_the_estimators(csv, tmp_path):
    fit(csv, tmp_path / "a.dtrees", "--target", "amount", "--model", "forest", "--jobs", 1)
    problem = problem_of(read_table(csv), "amount")
    forest = dtrees.RandomForestRegressor(random_state=0, n_jobs=1).fit(problem.X, problem.y)
    save(forest, tmp_path / "b.dtrees")
    assert (tmp_path / "a.dtrees").read_bytes() == (tmp_path / "b.dtrees").read_bytes()


def test_several_targets(tmp_path):
    """Of the rows that have all of them; the model is that of a data frame of these columns."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    y = pd.DataFrame({"price": X["a"] * 2, "size": X["b"] + X["a"]})
    y.iloc[3, 0] = y.iloc[7, 1] = np.nan
    table = tmp_path / "table.csv"
    pd.concat([X, y, pd.DataFrame({"word": ["no", "yes"] * 40})], axis=1).to_csv(table, index=False)
    targets = ["--target", "price", "--target", "size"]
    model = ["--model", "forest", "--trees", 5, "--jobs", 1]
    lines = fit(table, tmp_path / "a.dtrees", *targets, "--drop", "word", *model).stdout
    assert "target price: regression, numbers\ntarget size: regression, numbers\n" in lines
    assert "left out: word\n2 rows without a target are left out\n" in lines
    found, is_known = load(tmp_path / "a.dtrees"), y.notna().all(axis=1)
    assert found.target_names_in_.tolist() == ["price", "size"]
    read = pd.read_csv(table)[is_known]
    expected = dtrees.RandomForestRegressor(5, random_state=0).fit(read[["a", "b"]], read[[*y]])
    assert np.array_equal(found.predict(X), expected.predict(X))
    for refused, said in (
        (["--target", "price", "--target", "word"], "price regression, word classification"),
        ([*targets, "--target", "size"], "a column is given twice: price, size, size"),
        ([*targets, "--target", "other"], "no column 'other' in the table"),
    ):
        check_refused(ask("fit", table, *refused, "--out", tmp_path / "b.dtrees"), said)
    labels = pd.DataFrame({"a": [1.0, 2.0] * 20, "kind": ["x", "y"] * 20, "even": [0, 1] * 20})
    labels.to_csv(table, index=False)
    targets = ["--target", "kind", "--target", "even"]
    document = ask_json("fit", table, *targets, "--out", tmp_path / "c.dtrees")
    assert document["target"] == document["targets"] == ["kind", "even"]
    assert document["classes"] == [["x", "y"], [0, 1]]


def test_the_way_of_a_model_from_outside(tmp_path):
    out, table = tmp_path / "adult.dtrees", tmp_path / "adult.csv"
    pd.read_csv(ADULT, nrows=4_000).to_csv(table, index=False)
    options = ["--target", "target", "--model", "forest", "--trees", 10, "--max-depth", 8]
    done = forked("fit", table, *options, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert "4,000 rows, 14 columns\n" in done.stdout
    done = forked("predict", out, table, "--out", tmp_path / "p.csv", "--proba")
    assert (done.returncode, done.stderr) == (0, "")
    problem = problem_of(read_table(table), "target")
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
