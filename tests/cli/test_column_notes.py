"""Notes on columns: ids, a few values that are no numbers or no dates, a single class."""

import pytest

from dtrees.cli.column_notes import MOST_NOTES, strays_of
from dtrees.cli.form import Form
from tests.cli.asking import ask

pd = pytest.importorskip("pandas")

TAIL = "; a cell without a value is to be empty\n"


@pytest.fixture(params=["cv", "fit"])
def notes_of(request, tmp_path):
    """What a command says on standard error of a table."""

    def notes(table, *args):
        path = tmp_path / "noted.csv"
        table.to_csv(path, index=False)
        more = ["--folds", 2] if request.param == "cv" else ["--out", tmp_path / "a.dtrees"]
        result = ask(request.param, path, "--target", "class", *more, *args)
        assert result.exit_code == 0, result.output
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


def test_a_single_number_is_noted(table, notes_of):
    table["class"] = 1.5
    note = "Note: the target 'class' holds a single number, '1.5': there is nothing to learn\n"
    assert note in notes_of(table)


@pytest.mark.parametrize(
    ("values", "form", "expected"),
    [
        (["1,5"] * 30 + ["n/k"], Form(decimal=","), "is taken for words: 1 of its 31 values is no"),
        (["a", "b"], Form(), None),
        (["1"] * 5 + ["a"] * 5, Form(), None),
        ([*days(20), "2024-02-30"], Form(), "1 of its 21 values is no date, first '2024-02-30'"),
        ([None, *["1"] * 20, "?"], Form(), "first '?' in row 22"),
        ([*days(20), "31.12.2024"], Form(), "its dates are not all written in the same way"),
        (["31/12/2024", "01/12/2024"], Form(), "of the other order, add --dayfirst"),
        (["12/31/2024"], Form(dayfirst=True), "of the other order, leave --dayfirst out"),
        ([1, 2, 3], Form(), None),
        ([None], Form(), None),
        ([[1], "2"], Form(), None),
    ],
)
def test_strays(values, form, expected):
    found = strays_of(pd.Series(values), form, True)
    assert (found is None) == (expected is None)
    assert expected is None or expected in found


def test_text_that_is_a_date_is_a_word_in_parquet():
    assert strays_of(pd.Series([*days(20), "never"]), Form(), False) is None
