"""`predict`: columns by name, and coded as at fit whatever the rows of the file look like."""

import gzip
import io

import numpy as np
import pytest

import dtrees
from dtrees.export import load, save
from tests.cli.asking import ask, check_refused

pd = pytest.importorskip("pandas")


def fit(table, folder, *args, target="y"):
    """A model file of a DataFrame in a CSV file."""
    path, out = folder / "fit.csv", folder / "a.dtrees"
    table.to_csv(path, index=False)
    result = ask("fit", path, "--target", target, "--out", out, *args)
    assert result.exit_code == 0, result.output
    return out


def predict(model, source, *args, text=None):
    """The predictions that go to standard output."""
    result = ask("predict", model, source, *args, text=text)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return pd.read_csv(io.StringIO(result.stdout))


def predict_text(model, text, *args):
    return predict(model, "-", *args, text=text)["prediction"].tolist()


@pytest.fixture
def model(table, tmp_path):
    return fit(table, tmp_path, "--model", "forest", "--trees", 9, target="class")


@pytest.mark.parametrize("target", ["class", "amount"])
@pytest.mark.parametrize("kind", ["tree", "forest"])
def test_the_way_to_a_file_and_back_is_the_estimator(table, csv, tmp_path, target, kind):
    model = fit(table, tmp_path, "--model", kind, target=target)
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
    result = ask("predict", model, csv, "--proba", "--out", out, "--keep", "word")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"{out}: 60 rows in ")
    assert "columns word, prediction, probability_no, probability_yes" in result.stdout
    written = pd.read_parquet(out) if name.endswith(".parquet") else pd.read_csv(out)
    assert name != "p.csv.gz" or gzip.decompress(out.read_bytes()).startswith(b"word,prediction,")
    expected = predict(model, csv, "--proba", "--keep", "word")
    assert written.to_dict("list") == expected.to_dict("list")
    assert not list(tmp_path.glob(".*"))


def test_a_parquet_table_is_as_good_as_a_csv_one(model, table, csv, tmp_path):
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "table.parquet")
    assert predict(model, tmp_path / "table.parquet").equals(predict(model, csv))


def test_columns_are_found_by_name(model, table, csv, tmp_path):
    expected = predict(model, csv)
    other = table.drop(columns="class")[["mixed", "amount", "number", "word"]]
    other.insert(2, "more", "x")
    other.to_csv(tmp_path / "other.csv", index=False)
    assert predict(model, tmp_path / "other.csv").equals(expected)
    check_refused(
        ask("predict", model, csv, "--drop", "word", "--drop", "mixed"),
        "lacks the columns 'word', 'mixed' of the model",
    )
    check_refused(ask("predict", model, csv, "--drop", "word"), "lacks the column 'word' of")
    check_refused(ask("predict", model, csv, "--drop", "nix"), "no column 'nix' in")


def test_kept_columns_are_as_they_are_written(table, tmp_path):
    model = fit(table, tmp_path, target="class")
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


def words(n=40):
    """One column x that is a class of its own for each of its words."""
    return pd.DataFrame({"x": (["a", "b"] * n)[:n], "y": ([0, 1] * n)[:n]})


def test_numbers_and_words_are_numbers_where_only_numbers_come(tmp_path):
    x = [str(i) for i in range(40)] + ["A1"] * 10
    table = pd.DataFrame({"x": x, "y": [i < 20 for i in range(40)] + [True] * 10})
    model = fit(table, tmp_path)
    whole = predict_text(model, "x\n3\n30\nA1\n007\n")
    assert whole == [True, False, True, True]
    assert predict_text(model, "x\n3\n30\n007\n") == [True, False, True]


@pytest.mark.parametrize("values", [("True", "False", "maybe"), ("2024-05-01", "2024-05-02", "no")])
def test_words_stay_words_where_they_look_like_something_else(tmp_path, values):
    table = pd.DataFrame({"x": values * 20, "y": ["one", "two", "three"] * 20})
    model = fit(table, tmp_path)
    first, second, third = values
    assert predict_text(model, f"x\n{first}\n{second}\n{third}\n") == ["one", "two", "three"]
    assert predict_text(model, f"x\n{second}\n{first}\n") == ["two", "one"]
    assert predict_text(model, f"x\n{second}\n") == ["two"]


@pytest.mark.parametrize(
    ("categories", "texts"),
    [
        (["1", "2", "10"], ["1", "2", "10"]),
        ([1, 2, 10], ["1", "2.0", "10"]),
        ([0.5, 1.0, 2.25], ["0.50", "1", "2.25"]),
        ([2**60, 2**60 + 1, 5], [str(2**60), str(2**60 + 1), "5"]),
    ],
)
def test_categories_that_are_digits(tmp_path, categories, texts):
    table = pd.DataFrame({"x": pd.Categorical(categories * 20), "other": range(60)})
    model = dtrees.DecisionTreeClassifier().fit(table[["x"]], ["one", "two", "three"] * 20)
    save(model, tmp_path / "a.dtrees")
    rows = "\n".join(texts)
    answers = ["one", "two", "three"]
    assert predict_text(tmp_path / "a.dtrees", f"x\n{rows}\n") == answers
    assert predict_text(tmp_path / "a.dtrees", f"x\n{rows}\nword\n")[:3] == answers
    for column in (pd.Series(categories), pd.Series(categories, dtype="category")):
        pytest.importorskip("pyarrow")
        column.rename("x").to_frame().to_parquet(tmp_path / "t.parquet")
        assert predict(tmp_path / "a.dtrees", tmp_path / "t.parquet")["prediction"].tolist() == (
            answers
        )


def test_integers_of_a_parquet_file_where_digits_were_fitted(tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"x": pd.Categorical(["1", "2"] * 20)})
    save(dtrees.DecisionTreeClassifier().fit(table, [5, 6] * 20), tmp_path / "a.dtrees")
    for values in ([2, 1], [2.0, 1.0], pd.array([2, 1], dtype="Int64")):
        pd.DataFrame({"x": values}).to_parquet(tmp_path / "t.parquet")
        answers = predict(tmp_path / "a.dtrees", tmp_path / "t.parquet")
        assert answers["prediction"].tolist() == [6, 5]


def test_categories_that_text_cannot_name(tmp_path):
    days = pd.to_datetime(["2024-05-01", "2024-05-02"] * 20)
    table = pd.DataFrame({"x": pd.Categorical(days)})
    save(dtrees.DecisionTreeClassifier().fit(table, [5, 6] * 20), tmp_path / "a.dtrees")
    check_refused(
        ask("predict", tmp_path / "a.dtrees", "-", text="x\n2024-05-01\n"),
        "column 'x' held categories of the type Timestamp at fit, and holds text now",
    )


@pytest.mark.parametrize(
    ("fitted", "given", "message"),
    [
        (["1", "2"], "x\n1\nmany\n", "column 'x' held numbers at fit, and holds 'many' now"),
        (["True", "False"], "x\nTrue\nmaybe\n", "held True and False at fit, and holds 'maybe'"),
        (["2024-05-01", "2024-05-02"], "x\nsoon\n", "but dates were fitted"),
        (["1", "2"], "x\n2024-05-01\n", "holds dates, but numbers or labels were"),
        (["1", "2"], "x\n1\ninf\n", "infinity"),
    ],
)
def test_a_column_of_another_type(tmp_path, fitted, given, message):
    model = fit(pd.DataFrame({"x": fitted * 20, "y": [0, 1] * 20}), tmp_path)
    check_refused(ask("predict", model, "-", text=given), message)


def test_gaps_and_unseen_categories(tmp_path):
    model = fit(words(), tmp_path)
    assert predict_text(model, "x,z\na,1\nb,1\nc,1\n,1\n")[:2] == [0, 1]
    assert predict_text(model, "x,z\na,1\n,1\n") == predict_text(model, "x,z\na,1\nc,1\n")
    new, gaps = "x,z\n" + "c,1\nd,1\n" * 5, "x,z\n" + ",1\n" * 10
    result = ask("predict", model, "-", text=new)  # none of them is known
    assert result.stdout == ask("predict", model, "-", text=gaps).stdout
    assert result.stderr.startswith("Note: Column 'x' of X: none of its values was there at fit")
    table = words()
    strict = dtrees.DecisionTreeClassifier(handle_unknown="error").fit(table[["x"]], table["y"])
    save(strict, tmp_path / "strict.dtrees")
    check_refused(
        ask("predict", tmp_path / "strict.dtrees", "-", text="x\na\nc\n"),
        "unknown category 'c' in column 'x'",
    )


def test_a_column_that_was_empty_at_fit(tmp_path):
    table = words().assign(empty=np.nan)
    model = fit(table, tmp_path)
    assert predict_text(model, "x,empty\na,1\nb,word\n") == [0, 1]


def test_no_rows_are_no_predictions(model):
    result = ask("predict", model, "-", "--proba", text="number,word,mixed,amount\n")
    assert result.exit_code == 0, result.output
    assert result.stdout == "prediction,probability_no,probability_yes\n"


def test_a_model_without_names_takes_columns_by_place(tmp_path):
    X = np.arange(40.0).reshape(20, 2)
    save(dtrees.DecisionTreeClassifier().fit(X, X[:, 0] > 20), tmp_path / "a.dtrees")
    text = "key,a,b\nk,0,1\nl,38,39\n"
    assert predict_text(tmp_path / "a.dtrees", text, "--drop", "key") == [False, True]
    check_refused(
        ask("predict", tmp_path / "a.dtrees", "-", text=text),
        "has 3 columns, and the model 2 without names: use --drop",
    )


def test_refusals(model, table, csv, tmp_path):
    out = tmp_path / "p.txt"
    check_refused(ask("predict", model, csv, "--out", out), "unknown extension, expected one of")
    for taken in (csv, model):
        before = taken.read_bytes()
        check_refused(ask("predict", model, csv, "--out", taken), "would replace what is read")
        assert taken.read_bytes() == before
    numbers = fit(table, tmp_path, target="amount")
    check_refused(ask("predict", numbers, csv, "--proba"), "--proba is for classes")
    check_refused(ask("predict", model, tmp_path / "no.csv"), "no such file")


def test_separators_and_encodings(model, table, csv, tmp_path):
    table.to_csv(tmp_path / "other.csv", index=False, sep=";", encoding="utf-16")
    answers = predict(model, tmp_path / "other.csv", "--sep", ";", "--encoding", "utf-16")
    assert answers.equals(predict(model, csv))
