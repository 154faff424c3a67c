"""`predict`: columns by name, and coded as at fit whatever the rows of the file look like."""

import gzip
import io

import numpy as np
import pytest

import dtrees
from dtrees.export import load, save
from tests.cli.asking import ask, ask_json, check_refused, fit_table, predict, succeed

pd = pytest.importorskip("pandas")


@pytest.mark.one_of(2)
@pytest.mark.parametrize("target", ["class", "amount"])
@pytest.mark.parametrize("kind", ["tree", "forest"])
def test_the_way_to_a_file_and_back_is_the_estimator(table, csv, tmp_path, target, kind):
    model = fit_table(table, tmp_path, "--model", kind, target=target)
    fitted = load(model)
    read = pd.read_csv(csv).drop(columns=target)
    answers = predict(model, csv)
    assert list(answers) == ["prediction"]
    expected = fitted.predict(read)  # read back as `read` was: pandas may lose the last digit
    back = pd.read_csv(io.StringIO(pd.DataFrame({"prediction": expected}).to_csv(index=False)))
    assert answers["prediction"].tolist() == back["prediction"].tolist()


def test_probabilities(model, csv):
    answers = predict(model, csv, "--proba")
    read = pd.read_csv(csv).drop(columns="class")
    fitted = load(model)
    assert list(answers) == ["prediction", "probability_no", "probability_yes"]
    assert np.array_equal(answers.iloc[:, 1:].to_numpy(), fitted.predict_proba(read))
    assert answers["prediction"].tolist() == fitted.predict(read).tolist()


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.parquet"])
def test_the_formats_of_predictions(model, csv, tmp_path, name):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    out = tmp_path / name
    result = succeed("predict", model, csv, "--proba", "--out", out, "--keep", "word")
    assert result.stdout.startswith(f"{out}: 60 rows in ")
    assert "columns word, prediction, probability_no, probability_yes" in result.stdout
    written = pd.read_parquet(out) if name.endswith(".parquet") else pd.read_csv(out)
    assert name != "p.csv.gz" or gzip.decompress(out.read_bytes()).startswith(b"word,prediction,")
    expected = predict(model, csv, "--proba", "--keep", "word")
    assert written.to_dict("list") == expected.to_dict("list")
    assert not list(tmp_path.glob(".*"))


def test_kept_columns_are_as_they_are_written(table, tmp_path):
    model = fit_table(table, tmp_path, target="class")
    table.insert(0, "key", [f"{i:03}" for i in range(60)])
    table.to_csv(tmp_path / "keys.csv", index=False)
    result = ask("predict", model, tmp_path / "keys.csv", "--keep", "key", "--keep", "key")
    assert result.stdout.splitlines()[:2] == ["key,prediction", f"000,{table['class'][0]}"]
    check_refused(ask("predict", model, tmp_path / "keys.csv", "--keep", "nix"), "no column 'nix'")
    table["prediction"] = 1
    table.to_csv(tmp_path / "keys.csv", index=False)
    check_refused(
        ask("predict", model, tmp_path / "keys.csv", "--keep", "prediction"),
        "--keep prediction has the name of a column of predictions",
    )


def test_no_rows_are_no_predictions(model):
    result = succeed("predict", model, "-", "--proba", text="number,word,mixed,amount\n")
    assert result.stdout == "prediction,probability_no,probability_yes\n"


def test_models_of_several_targets_have_a_column_for_each(tmp_path):
    X = pd.DataFrame(np.arange(40.0).reshape(20, 2), columns=["a", "b"])
    X.to_csv(tmp_path / "table.csv", index=False)
    labels = np.c_[X["a"] > 20, X["a"] // 15].astype(int)
    model = dtrees.GradientBoostingClassifier(max_iter=2, min_samples_leaf=2).fit(X, labels)
    save(model, tmp_path / "a.dtrees")
    frame = predict(tmp_path / "a.dtrees", tmp_path / "table.csv", "--proba")
    np.testing.assert_array_equal(frame[["prediction_0", "prediction_1"]], model.predict(X))
    shares = [frame[f"probability_{label}_1"] for label in model.classes_[1]]
    np.testing.assert_array_equal(np.stack(shares, axis=1), model.predict_proba(X)[1])
    shown = succeed("show", tmp_path / "a.dtrees").stdout
    said = ("target 0: predicts 2 classes: 0, 1", "target 1: predicts 3 classes: 0, 1, 2")
    assert "\n".join(said) in shown
    document = ask_json("show", tmp_path / "a.dtrees")
    assert (document["classes"], document["targets"]) == ([[0, 1], [0, 1, 2]], ["0", "1"])


def test_columns_have_the_names_of_targets(tmp_path):
    X = pd.DataFrame(np.arange(40.0).reshape(20, 2), columns=["a", "b"])
    X.to_csv(tmp_path / "table.csv", index=False)
    y = pd.DataFrame({"price": X["a"], "size": -X["b"]})
    how = {"n_estimators": 20, "oob_score": True, "random_state": 0}
    model = dtrees.RandomForestRegressor(**how).fit(X, y)
    save(model, tmp_path / "a.dtrees")
    frame = predict(tmp_path / "a.dtrees", tmp_path / "table.csv", "--interval", "0.5")
    ends = ["prediction", "lower", "upper"]
    assert list(frame) == [f"{name}_{target}" for target in ("price", "size") for name in ends]
    np.testing.assert_array_equal(frame["prediction_size"], model.of_target("size").predict(X))
    assert "predicts 2 targets: price, size\n" in succeed("show", tmp_path / "a.dtrees").stdout
    assert ask_json("show", tmp_path / "a.dtrees")["targets"] == ["price", "size"]
    labels = pd.DataFrame({"b": np.where(X["a"] > 9, "x_a", "y"), "a_b": ["x", "z"] * 10})
    save(dtrees.DecisionTreeClassifier().fit(X, labels), tmp_path / "b.dtrees")
    result = ask("predict", tmp_path / "b.dtrees", tmp_path / "table.csv", "--proba")
    check_refused(result, "two targets have one name for their shares: probability_x_a_b")


def test_refusals(model, table, csv, tmp_path):
    out = tmp_path / "p.txt"
    check_refused(ask("predict", model, csv, "--out", out), "unknown extension, expected one of")
    for taken in (csv, model):
        before = taken.read_bytes()
        check_refused(ask("predict", model, csv, "--out", taken), "would replace what is read")
        assert taken.read_bytes() == before
    numbers = fit_table(table, tmp_path, target="amount")
    check_refused(ask("predict", numbers, csv, "--proba"), "--proba is for classes")
    check_refused(ask("predict", model, tmp_path / "no.csv"), "no such file")


@pytest.fixture
def numbers(table, tmp_path):
    folder = tmp_path / "numbers"
    folder.mkdir()
    return fit_table(table, folder, "--model", "forest", "--trees", 40, "--oob", target="amount")


def test_intervals(numbers, csv, tmp_path):
    answers = predict(numbers, csv, "--interval", 0.8)
    assert list(answers) == ["prediction", "lower", "upper"]
    read = pd.read_csv(csv).drop(columns="amount")
    expected = load(numbers).prediction_interval(read, 0.8)
    np.testing.assert_allclose(answers[["lower", "upper"]], expected, rtol=1e-12)
    assert (answers["lower"] <= answers["upper"]).all()
    none = ask("predict", numbers, "-", "--interval", 0.9, text="number,word,mixed,class\n")
    assert none.stdout == "prediction,lower,upper\n"
    out = tmp_path / "p.csv"
    for _ in range(2):  # it may replace its own
        succeed("predict", numbers, csv, "--interval", 0.9, "--out", out)


def test_intervals_that_a_model_does_not_have(model, numbers, table, csv, tmp_path):
    check_refused(ask("predict", model, csv, "--interval", 0.9), "--interval is for numbers, and")
    check_refused(ask("predict", numbers, csv, "--interval", 90), "a share from 0.5 to below 1")
    for kind in ("tree", "forest"):
        other = fit_table(table, tmp_path, "--model", kind, target="amount")
        refused = ask("predict", other, csv, "--interval", 0.9)
        check_refused(refused, "--interval needs the errors of rows out of bags")
