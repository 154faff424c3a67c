"""Numbers of other countries: what to try is said once, and the options work."""

import pytest

from dtrees.cli.form import Form
from dtrees.cli.number_forms import NumberForm, number_hints, other_forms
from tests.cli.asking import ask, ask_json, check_refused

pd = pytest.importorskip("pandas")

GERMAN = ["5.377,19", "12,5", "1.234.567,8", "999", "-2.000,25"]
ENGLISH = ["5,377.19", "12.5", "1,234,567.8", "999", "-2,000.25"]


def written(tmp_path, values):
    """A file of 200 rows, whose numbers differ, with ';' between its fields."""
    path = tmp_path / "table.csv"
    rows = [f"{value};{'ab'[i % 2]}" for i, value in enumerate(values)]
    path.write_text("\n".join(["number;target", *rows, ""]))
    return ["cv", path, "--target", "target", "--folds", 2, "--sep", ";"]


@pytest.mark.parametrize(
    ("values", "form", "expected"),
    [
        (["1,5", "2"], Form(), ["--decimal ,"]),
        (["1,234", "0,5"], Form(), ["--decimal ,"]),
        (GERMAN, Form(), ["--decimal , --thousands ."]),
        (GERMAN, Form(decimal=","), ["--thousands ."]),
        (GERMAN, Form(decimal=".", thousands=","), []),
        (ENGLISH, Form(), ["--thousands ,"]),
        (ENGLISH, Form(decimal=","), []),
        (["1,234", "56"], Form(), ["--decimal ,", "--thousands ,"]),
        (["1.234.567", "1.234"], Form(), ["--decimal , --thousands ."]),
        (["5'377.19", "1.5"], Form(), ["--thousands ''\"'\"''"]),
        ([*ENGLISH * 10, "n/k"], Form(), ["--thousands ,"]),
        (["1", "2", "n/k"], Form(), []),
        (["1.5", "2.5"], Form(), []),
        (["a,b", "1,5"], Form(), []),
        (["1,2,3", "4,5,6"], Form(), []),
        ([], Form(), []),
    ],
)
def test_options_under_which_values_are_numbers(values, form, expected):
    now = NumberForm(form.decimal or ".", form.thousands or "")
    assert [other.options(now) for other in other_forms(values, form)] == expected


def test_hints_name_columns():
    table = pd.DataFrame(
        {"a": GERMAN, "b": GERMAN, "c": ENGLISH, "d": list("vwxyz"), "e": range(5), "f": None}
    )
    hints = number_hints(table, Form())
    assert list(hints) == ["a", "b", "c"]
    assert hints["a"] == hints["b"]
    assert hints["a"].startswith("columns 'a', 'b' look like numbers with a thousands separator")
    assert hints["c"].startswith("column 'c' looks like numbers with a thousands separator")


def test_no_option_is_named_that_a_cluster_refuses():
    table = pd.DataFrame(
        {"a": GERMAN, "b": ["1,5", "2"] * 2 + ["3"], "c": ["1,234", "56"] * 2 + ["7"]}
    )
    hints = number_hints(table, Form(), is_lazy=True)
    assert not any("--thousands" in hint for hint in hints.values())
    assert hints["a"].endswith("write the table as Parquet, or read it without --cluster")
    assert hints["b"].endswith("with a decimal comma, taken for words: add --decimal ,")
    assert hints["c"].endswith("with a decimal comma, taken for words: add --decimal ,")


def test_each_hint_leads_to_numbers_and_is_given_once(tmp_path):
    numbers = [f"{i * 977 + 0.25:,.2f}" for i in range(200)]
    german = [text.translate(str.maketrans(",.", ".,")) for text in numbers]
    command = written(tmp_path, german)
    words = "Note: column 'number' looks like numbers with a thousands separator, taken for words"
    assert ask(*command).stderr == f"{words}: add --decimal , --thousands .\n"
    command += ["--decimal", ","]
    assert ask(*command).stderr == f"{words}: add --thousands .\n"
    check_refused(ask(*command[:-2], "--thousands", "."), "give the decimal mark, too")
    command += ["--thousands", "."]
    assert ask(*command).stderr == ""
    assert [column["kind"] for column in ask_json(*command)["columns"]] == ["ordered"]


def test_a_target_in_another_form_is_an_error(tmp_path):
    path, model = tmp_path / "table.csv", tmp_path / "a.dtrees"
    path.write_text("\n".join(["x;y", *(f"{i};{i % 90},5" for i in range(200))]))
    rest = ["--target", "y", "--sep", ";"]
    for command in (["cv", path, "--folds", 2], ["fit", path, "--out", model]):
        words = "the target 'y': column 'y' looks like numbers with a decimal comma, taken for"
        check_refused(
            ask(*command, *rest), f"{words} words: add --decimal , (--task classification"
        )
        check_refused(ask(*command, *rest, "--task", "regression"), "add --decimal ,")
    assert not model.exists()
    command = ["cv", path, *rest, "--folds", 2]
    assert ask_json(*command, "--decimal", ",")["task"] == "regression"
    assert ask_json(*command, "--task", "classification")["task"] == "classification"


def test_no_column_of_numbers_is_called_an_id(tmp_path):
    command = written(tmp_path, [f"{i * 977 + 0.25:,.2f}" for i in range(200)])
    assert ask(*command).stderr.count("\n") == 1
    assert "--drop" not in ask(*command).stderr
    assert ask(*command, "--thousands", ",").stderr == ""


def test_numbers_in_text_of_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    numbers = [f"{i * 977 + 1000.25:,.2f}" for i in range(40)]
    pd.DataFrame({"number": numbers, "target": ["a", "b"] * 20}).to_parquet(path)
    result = ask("cv", path, "--target", "target", "--folds", 2)
    assert result.stderr.endswith("most of them numbers in text: let the file hold numbers\n")
    refused = ask("cv", path, "--target", "target", "--thousands", ",")
    check_refused(refused, "a Parquet file has no thousands separator")


def test_fit_and_predict_take_the_same_separator(tmp_path):
    command = written(tmp_path, GERMAN * 4)
    path, model = command[1], tmp_path / "a.dtrees"
    form = ["--sep", ";", "--decimal", ",", "--thousands", "."]
    assert ask("fit", path, "--target", "target", "--out", model, *form).exit_code == 0
    result = ask("predict", model, path, *form)
    assert result.exit_code == 0, result.output
    check_refused(ask("predict", model, path, *form[:4]), "holds '5.377,19' now")


@pytest.mark.parametrize("thousands", ["", ",,", "5", "-", "\u066b", '"'])
def test_bad_separators(csv, thousands):
    result = ask("cv", csv, "--target", "class", "--thousands", thousands)
    check_refused(result, "the thousands separator must be one ASCII character")


def test_clusters_do_not_take_it(csv):
    result = ask("cv", csv, "--target", "class", "--thousands", ",", "--cluster", "local:1")
    check_refused(result, "--thousands is not for --cluster")
