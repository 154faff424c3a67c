"""CSV files that are written otherwise: what to try is said, and the options work."""

import pytest

from dtrees.cli.form import (
    CsvForm,
    NumberForm,
    encoding_hint,
    names_given_twice,
    number_hints,
    other_forms,
    separator_hint,
)
from tests.cli.asking import ask, ask_json, check_refused, succeed

pd = pytest.importorskip("pandas")

ROWS = ["1,5;M\u00fcller;yes", "2,25;Maier;no", "3;M\u00fcller;yes", "-4,125;Maier;no"] * 5


def written(tmp_path, lines, encoding="utf-8"):
    path = tmp_path / "table.csv"
    path.write_bytes("\n".join(["number;name;target", *lines, ""]).encode(encoding))
    return path


def test_each_hint_leads_to_the_table(tmp_path):
    path = written(tmp_path, ROWS, "cp1252")
    command = ["cv", path, "--target", "target", "--folds", 2]
    check_refused(ask(*command), "it may be cp1252")
    command += ["--encoding", "cp1252"]
    check_refused(ask(*command), "seem to stand between ';': add --sep ';'")
    command += ["--sep", ";"]
    result = succeed(*command)
    words = "column 'number' looks like numbers with a decimal comma, taken for words"
    assert result.stderr == f"Note: {words}: add --decimal ,\n"
    command += ["--decimal", ","]
    result = ask(*command)
    assert (result.exit_code, result.stderr) == (0, "")
    kinds = [column["kind"] for column in ask_json(*command)["columns"]]
    assert kinds == ["ordered", "categorical"]


def test_fit_and_predict_take_the_same_form(tmp_path):
    path, model = written(tmp_path, ROWS), tmp_path / "a.dtrees"
    form = ["--sep", ";", "--decimal", ","]
    succeed("fit", path, "--target", "target", "--out", model, *form)
    result = succeed("predict", model, path, *form)
    assert result.stdout.split() == ["prediction", *["yes", "no"] * 10]
    check_refused(ask("predict", model, path, "--sep", ";"), "holds '1,5' now")


def test_on_a_cluster(tmp_path, address):
    path = written(tmp_path, ROWS)
    rest = ["--target", "target", "--folds", 2, "--sep", ";", "--cluster", address]
    document = ask_json("cv", path, *rest, "--decimal", ",")
    assert [column["kind"] for column in document["columns"]] == ["ordered", "categorical"]


@pytest.mark.parametrize(
    ("names", "form", "expected"),
    [
        (["a;target"], CsvForm(), "';'"),
        (["a\ttarget"], CsvForm(), r"'\t'"),
        (["a|b", "c|target"], CsvForm(), "'|'"),
        (["a,target"], CsvForm(separator=";"), "','"),
        (["a,target"], CsvForm(separator=r"\t"), "','"),
        (['"a";"target"'], CsvForm(), "';'"),
        (["a", "b"], CsvForm(), None),
        (["a;b"], CsvForm(), None),
    ],
)
def test_separators(names, form, expected):
    hint = separator_hint("target", names, form)
    assert (hint is None) == (expected is None)
    assert expected is None or hint.endswith(f"add --sep {expected}")


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("\u00fcber".encode("utf-16"), "add --encoding utf-16"),
        ("\u00fcber".encode("utf-32"), "add --encoding utf-32"),
        ("a,b\n".encode("utf-16-le"), "add --encoding utf-16-le"),
        ("a,b\n".encode("utf-16-be"), "add --encoding utf-16-be"),
        ("\u00fcber".encode("cp1252"), "add --encoding cp1252"),
        (b"a\x81b\xfc", "add --encoding latin-1"),
        (b"\0" * 50, "it does not look like text"),
    ],
)
def test_encodings(head, expected):
    assert encoding_hint(head).endswith(expected)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "latin-1"])
def test_what_is_said_of_an_encoding_works(tmp_path, encoding):
    path = written(tmp_path, ROWS, encoding)
    command = ["cv", path, "--target", "target", "--sep", ";", "--folds", 2]
    refused = ask(*command)
    check_refused(refused, "add --encoding ")
    said = refused.stderr.rpartition("--encoding ")[2].strip()
    succeed(*command, "--encoding", said)


@pytest.mark.parametrize("decimal", ["", ",,", "5", "-", "\u066b", '"'])
def test_bad_decimal_marks(csv, decimal):
    result = ask("cv", csv, "--target", "class", "--decimal", decimal)
    check_refused(result, "the decimal mark must be one ASCII character")


def test_a_model_no_better_than_a_guess(tmp_path):
    path = tmp_path / "noise.csv"
    pd.DataFrame({"x": range(40), "target": ["a", "b", "a", "a"] * 10}).to_csv(path, index=False)
    args = ["cv", path, "--target", "target", "--folds", 4]
    document = ask_json(*args)
    assert document["mean"] <= document["baseline"] == 0.75
    guess = "No better than always saying the largest class: accuracy 0.7500"
    assert guess in ask(*args).stdout
    document = ask_json(*args, "--scoring", "roc_auc", "--scoring", "f1_macro")
    assert document["baseline"] == document["scores"]["roc_auc"]["baseline"] == 0.5
    assert 0 < document["scores"]["f1_macro"]["baseline"] < 0.5


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("header", "expected"),
    [("a,b,a", ["a"]), ("a,b,c", []), ("a,,,b", []), ('"a,x",b,"a,x",b', ["a,x", "b"])],
)
def test_names_given_twice_whatever_ends_a_line(end, header, expected):
    head = end.join([header, "1,2,1,2", ""]).encode()
    assert names_given_twice(head, CsvForm()) == expected
    form = CsvForm(separator=";", encoding="utf-16")
    head = end.join(["", header.replace(",", ";"), "1;2;1;2"]).encode("utf-16")
    assert names_given_twice(head, form) == [name.replace(",", ";") for name in expected]


GERMAN = ["5.377,19", "12,5", "1.234.567,8", "999", "-2.000,25"]
ENGLISH = ["5,377.19", "12.5", "1,234,567.8", "999", "-2,000.25"]


def written_numbers(tmp_path, values):
    """A file of 200 rows, whose numbers differ, with ';' between its fields."""
    path = tmp_path / "table.csv"
    rows = [f"{value};{'ab'[i % 2]}" for i, value in enumerate(values)]
    path.write_text("\n".join(["number;target", *rows, ""]))
    return ["cv", path, "--target", "target", "--folds", 2, "--sep", ";"]


@pytest.mark.parametrize(
    ("values", "form", "expected"),
    [
        (["1,5", "2"], CsvForm(), ["--decimal ,"]),
        (["1,234", "0,5"], CsvForm(), ["--decimal ,"]),
        (GERMAN, CsvForm(), ["--decimal , --thousands ."]),
        (GERMAN, CsvForm(decimal=","), ["--thousands ."]),
        (GERMAN, CsvForm(decimal=".", thousands=","), []),
        (ENGLISH, CsvForm(), ["--thousands ,"]),
        (ENGLISH, CsvForm(decimal=","), []),
        (["1,234", "56"], CsvForm(), ["--decimal ,", "--thousands ,"]),
        (["1.234.567", "1.234"], CsvForm(), ["--decimal , --thousands ."]),
        (["5'377.19", "1.5"], CsvForm(), ["--thousands ''\"'\"''"]),
        ([*ENGLISH * 10, "n/k"], CsvForm(), ["--thousands ,"]),
        (["1", "2", "n/k"], CsvForm(), []),
        (["1.5", "2.5"], CsvForm(), []),
        (["a,b", "1,5"], CsvForm(), []),
        (["1,2,3", "4,5,6"], CsvForm(), []),
        ([], CsvForm(), []),
    ],
)
def test_options_under_which_values_are_numbers(values, form, expected):
    now = NumberForm(form.decimal or ".", form.thousands or "")
    assert [other.options(now) for other in other_forms(values, form)] == expected


def test_hints_name_columns():
    table = pd.DataFrame(
        {"a": GERMAN, "b": GERMAN, "c": ENGLISH, "d": list("vwxyz"), "e": range(5), "f": None}
    )
    hints = number_hints(table, CsvForm())
    assert list(hints) == ["a", "b", "c"]
    assert hints["a"] == hints["b"]
    assert hints["a"].startswith("columns 'a', 'b' look like numbers with a thousands separator")
    assert hints["c"].startswith("column 'c' looks like numbers with a thousands separator")


def test_no_option_is_named_that_a_cluster_refuses():
    table = pd.DataFrame(
        {"a": GERMAN, "b": ["1,5", "2"] * 2 + ["3"], "c": ["1,234", "56"] * 2 + ["7"]}
    )
    hints = number_hints(table, CsvForm(), is_lazy=True)
    assert not any("--thousands" in hint for hint in hints.values())
    assert hints["a"].endswith("write the table as Parquet, or read it without --cluster")
    assert hints["b"].endswith("with a decimal comma, taken for words: add --decimal ,")
    assert hints["c"].endswith("with a decimal comma, taken for words: add --decimal ,")


def test_each_hint_leads_to_numbers_and_is_given_once(tmp_path):
    numbers = [f"{i * 977 + 0.25:,.2f}" for i in range(200)]
    german = [text.translate(str.maketrans(",.", ".,")) for text in numbers]
    command = written_numbers(tmp_path, german)
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
    command = written_numbers(tmp_path, [f"{i * 977 + 0.25:,.2f}" for i in range(200)])
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


def test_clusters_do_not_take_it(csv):
    result = ask("cv", csv, "--target", "class", "--thousands", ",", "--cluster", "local:1")
    check_refused(result, "--thousands is not for --cluster")
