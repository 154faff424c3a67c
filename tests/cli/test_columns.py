"""The columns of a table as a model knows them: by name, and as they were written."""

import io

import numpy as np
import pytest

import dtrees
from dtrees.cli.columns import (
    MOST_NOTES,
    READ_MONTH_FIRST,
    as_dates,
    column_kind,
    column_names,
    date_columns,
    day_first,
    number_columns,
    strays_of,
    text_columns,
)
from dtrees.cli.form import CsvForm
from dtrees.export import load, save
from tests.cli.asking import ask, check_refused, fit_table, predict, predict_text, succeed

pd = pytest.importorskip("pandas")


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


def words(n=40):
    """One column x that is a class of its own for each of its words."""
    return pd.DataFrame({"x": (["a", "b"] * n)[:n], "y": ([0, 1] * n)[:n]})


def test_numbers_and_words_are_numbers_where_only_numbers_come(tmp_path):
    x = [str(i) for i in range(40)] + ["A1"] * 10
    table = pd.DataFrame({"x": x, "y": [i < 20 for i in range(40)] + [True] * 10})
    model = fit_table(table, tmp_path)
    whole = predict_text(model, "x\n3\n30\nA1\n007\n")
    assert whole == [True, False, True, True]
    assert predict_text(model, "x\n3\n30\n007\n") == [True, False, True]


@pytest.mark.parametrize("values", [("True", "False", "maybe"), ("2024-05-01", "2024-05-02", "no")])
def test_words_stay_words_where_they_look_like_something_else(tmp_path, values):
    table = pd.DataFrame({"x": values * 20, "y": ["one", "two", "three"] * 20})
    model = fit_table(table, tmp_path)
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
        (
            ["2024-05-01", "2024-05-02"],
            "x\nsoon\n",
            "column 'x' held dates at fit, and holds 'soon' now",
        ),
        (["1", "2"], "x\n2024-05-01\n", "holds dates, but numbers or labels were"),
        (["1", "2"], "x\n1\ninf\n", "infinity"),
    ],
)
def test_a_column_of_another_type(tmp_path, fitted, given, message):
    model = fit_table(pd.DataFrame({"x": fitted * 20, "y": [0, 1] * 20}), tmp_path)
    check_refused(ask("predict", model, "-", text=given), message)


def test_gaps_and_unseen_categories(tmp_path):
    model = fit_table(words(), tmp_path)
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
    model = fit_table(table, tmp_path)
    assert predict_text(model, "x,empty\na,1\nb,word\n") == [0, 1]


def test_a_model_without_names_takes_columns_by_place(tmp_path):
    X = np.arange(40.0).reshape(20, 2)
    save(dtrees.DecisionTreeClassifier().fit(X, X[:, 0] > 20), tmp_path / "a.dtrees")
    text = "key,a,b\nk,0,1\nl,38,39\n"
    assert predict_text(tmp_path / "a.dtrees", text, "--drop", "key") == [False, True]
    check_refused(
        ask("predict", tmp_path / "a.dtrees", "-", text=text),
        "has 3 columns, and the model 2 without names: use --drop",
    )


KINDS = pd.DataFrame(
    {
        "n": [1.5, 2.0, 3.0] * 10,
        "d": pd.to_datetime(["2024-05-01", "2024-05-02", "2024-05-03"] * 10),
        "w": ["a", "b", "c"] * 10,
        "h": ["1", "2", "x"] * 10,
        "e": [np.nan] * 30,
    }
)


def test_kinds_of_columns():
    book = dtrees.DecisionTreeClassifier().fit(KINDS, [0, 1, 2] * 10).tree_.codebook
    kinds = ["ordered", "ordered", "categorical", "hybrid", "empty"]
    assert [column_kind(book, j) for j in range(5)] == kinds
    assert column_names(book) == list("ndwhe")
    assert text_columns(book) == ["w", "h"]
    assert number_columns(book) == ["n", "d", "e"]
    assert date_columns(book) == ["d"]


@pytest.fixture
def either_way(tmp_path):
    """A model that has read 01/02/2024 as a day of February, or of January, and a file of those."""
    days = pd.date_range("2024-01-01", "2024-12-31")
    days = days[days.day <= 12]
    path, model = tmp_path / "days.csv", tmp_path / "a.dtrees"
    pd.DataFrame({"day": days.strftime("%d/%m/%Y"), "month": days.month}).to_csv(path, index=False)

    def fitted(*options):
        how = ("--target", "month", "--task", "regression", "--out", model)
        result = succeed("fit", path, *how, *options)
        return model, path, result.stderr

    return fitted


@pytest.mark.parametrize("cluster", [(), ("--cluster", "local:1")])
def test_dates_are_read_by_the_order_of_the_fit(either_way, cluster):
    model, path, said = either_way("--dayfirst")
    assert said == ""
    result = succeed("predict", model, path, "--keep", "month", "--keep", "day", *cluster)
    assert result.stderr == ""
    found = pd.read_csv(io.StringIO(result.stdout))
    assert (found["prediction"] == found["month"]).all()
    assert found["day"][0] == "01/01/2024", "a copy"


def test_an_option_says_how_dates_of_this_file_are_written(either_way):
    model, path, _ = either_way("--dayfirst")
    for option, said in (
        ("--dayfirst", ""),
        ("--no-dayfirst", "Note: the dates of 'day': day first at fit, month first now\n"),
    ):
        result = ask("predict", model, path, option, "--keep", "month")
        assert result.stderr == said
        found = pd.read_csv(io.StringIO(result.stdout))
        assert (found["prediction"] == found["month"]).all() == (said == "")


def test_dates_that_the_fit_may_have_read_wrongly_want_another_fit(either_way):
    model, path, _ = either_way("--no-dayfirst")
    path.write_text("day\n05/06/2024\n22/06/2024\n")
    words = "; for 31/12/2024 add --dayfirst, and fit again with it if"
    check_refused(ask("predict", model, path), words)


def test_workers_do_not_warn_of_orders(either_way, address):
    """What one part leaves open, another one may settle."""
    model, path, _ = either_way("--no-dayfirst")
    forgetful = load(model)
    del forgetful._date_orders
    save(forgetful, model)
    other = path.with_name("other.csv")
    other.write_text("day\n12/31/2024\n")
    result = succeed("predict", model, path, other, "--cluster", address)
    assert result.stderr == ""


def test_an_order_that_nobody_knows_is_noted(either_way):
    said = f"Note: the dates of 'day' {READ_MONTH_FIRST}\n"
    model, path, at_fit = either_way()
    assert at_fit == said
    assert either_way("--no-dayfirst")[2] == ""
    assert ask("predict", model, path).stderr == ""
    forgetful = load(model)
    del forgetful._date_orders
    save(forgetful, model)
    assert ask("predict", model, path).stderr == said
    assert ask("predict", model, path, "--no-dayfirst").stderr == ""


def test_a_fit_forgets_how_dates_of_another_one_were_read(either_way):
    model = load(either_way("--dayfirst")[0])
    assert day_first(model) == {"day": True}
    table = pd.DataFrame({"day": pd.date_range("2024", periods=9)})
    for kind in (
        dtrees.DecisionTreeRegressor,
        dtrees.RandomForestRegressor,
        dtrees.GradientBoostingRegressor,
    ):
        other = kind()
        other._date_orders = model._date_orders
        assert day_first(other.fit(table, range(9))) == {}


def test_dates_are_all_or_nothing():
    days, _ = as_dates(pd.Series(["2024-05-01", None, "2024-05-03"]), "day")
    assert days.tolist() == [pd.Timestamp("2024-05-01"), pd.NaT, pd.Timestamp("2024-05-03")]
    for other in ("soon", "01.05.2024", "2024-05-01T13:30Z"):
        with pytest.raises(ValueError, match=r"column 'day' held dates at fit, and holds .* now"):
            as_dates(pd.Series(["2024-05-01", other]), "day")
    assert as_dates(pd.Series([None, None], dtype=object), "day")[0].isna().all()


TAIL = "; a cell without a value is to be empty\n"


@pytest.fixture(params=["cv", "fit"])
def notes_of(request, tmp_path):
    """What a command says on standard error of a table."""

    def notes(table, *args):
        path = tmp_path / "noted.csv"
        table.to_csv(path, index=False)
        more = ["--folds", 2] if request.param == "cv" else ["--out", tmp_path / "a.dtrees"]
        result = succeed(request.param, path, "--target", "class", *more, *args)
        return result.stderr

    return notes


def days(n):
    return [f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}" for i in range(n)]


def test_a_column_of_ids_is_noted(table, notes_of):
    table = table.assign(key=[f"row {i}" for i in range(60)])
    note = "Note: column 'key' has 60 categories in 60 rows, like an id, and is not used: "
    assert notes_of(table) == f"{note}--drop key leaves it out\n"
    assert notes_of(table, "--drop", "key") == ""


def test_what_is_no_date_is_noted(table, notes_of):
    table["day"] = days(60)
    assert notes_of(table) == ""
    assert notes_of(table.assign(day=["never", *days(9)] * 6)).count("\n") == 1
    table.loc[[16, 40], "day"] = "not a date"
    table.loc[[3], "day"] = None
    note = "Note: column 'day' is taken for words: 2 of its 59 values are no dates, first "
    assert notes_of(table) == f"{note}'not a date' in row 17{TAIL}"
    assert notes_of(table, "--drop", "day") == ""


def test_dates_that_can_be_read_either_way_are_noted(table, notes_of):
    table["day"] = [f"{i % 12 + 1}/{i // 12 + 1}/2024" for i in range(60)]
    table["same"] = table["day"]
    table["settled"] = ["2/29/2024", *table["day"][1:]]
    said = notes_of(table)
    assert said.startswith("Note: the dates of 'day', 'same' are read month first (01/02/2024 is")
    assert said.count("\n") == 1
    assert "'day'" not in notes_of(table, "--drop", "day")
    assert notes_of(table, "--drop", "settled", "--dayfirst") == ""
    assert notes_of(table, "--no-dayfirst") == ""


def test_what_is_no_number_is_noted(table, notes_of):
    table["number"] = [*range(59), "n/k"]
    note = "Note: column 'number' holds numbers and words: 1 of its 60 values is no number, first "
    assert notes_of(table) == f"{note}'n/k' in row 60{TAIL}"


def test_many_columns_are_not_told_one_by_one(table, notes_of):
    strange = {f"n{i}": [*range(59), "n/k"] for i in range(MOST_NOTES + 2)}
    lines = notes_of(table.assign(**strange)).splitlines()
    assert len(lines) == MOST_NOTES + 1
    assert lines[-1] == "Note: 2 more columns of the same kind"


def test_a_single_class_is_noted(table, notes_of):
    table["class"] = "yes"
    note = "Note: the target 'class' holds a single class, 'yes': there is nothing to learn\n"
    assert notes_of(table) == note


@pytest.mark.parametrize(
    ("values", "form", "expected"),
    [
        (
            ["1,5"] * 30 + ["n/k"],
            CsvForm(decimal=","),
            "is taken for words: 1 of its 31 values is no",
        ),
        (["a", "b"], CsvForm(), None),
        (["1"] * 5 + ["a"] * 5, CsvForm(), None),
        ([*days(20), "2024-02-30"], CsvForm(), "1 of its 21 values is no date, first '2024-02-30'"),
        ([None, *["1"] * 20, "?"], CsvForm(), "first '?' in row 22"),
        ([*days(20), "31.12.2024"], CsvForm(), "its dates are not all written in the same way"),
        (["31/12/2024", "01/12/2024"], CsvForm(), "of the other order, add --dayfirst"),
        (["12/31/2024"], CsvForm(dayfirst=True), "of the other order, leave --dayfirst out"),
        ([1, 2, 3], CsvForm(), None),
        ([None], CsvForm(), None),
        ([[1], "2"], CsvForm(), None),
    ],
)
def test_strays(values, form, expected):
    found = strays_of(pd.Series(values), form, True)
    assert (found is None) == (expected is None)
    assert expected is None or expected in found


def test_text_that_is_a_date_is_a_word_in_parquet():
    assert strays_of(pd.Series([*days(20), "never"]), CsvForm(), False) is None
