"""CSV files that are written otherwise: what to try is said, and the options work."""

import json

import pytest

from dtrees.cli.form import Form, encoding_hint, names_given_twice, separator_hint
from tests.cli.asking import ask, ask_json, check_refused

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
    result = ask(*command)
    assert result.exit_code == 0
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
    assert ask("fit", path, "--target", "target", "--out", model, *form).exit_code == 0
    result = ask("predict", model, path, *form)
    assert result.exit_code == 0, result.output
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
        (["a;target"], Form(), "';'"),
        (["a\ttarget"], Form(), r"'\t'"),
        (["a|b", "c|target"], Form(), "'|'"),
        (["a,target"], Form(separator=";"), "','"),
        (["a,target"], Form(separator=r"\t"), "','"),
        (['"a";"target"'], Form(), "';'"),
        (["a", "b"], Form(), None),
        (["a;b"], Form(), None),
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
    assert ask(*command, "--encoding", said).exit_code == 0


@pytest.mark.parametrize("decimal", ["", ",,", "5", "-", "\u066b", '"'])
def test_bad_decimal_marks(csv, decimal):
    result = ask("cv", csv, "--target", "class", "--decimal", decimal)
    check_refused(result, "the decimal mark must be one ASCII character")


def test_parquet_has_none(table, tmp_path):
    path = tmp_path / "a.parquet"
    table.to_parquet(path)
    result = ask("cv", path, "--target", "class", "--decimal", ",")
    check_refused(result, "a Parquet file has no decimal mark")


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


def test_a_model_that_is_better_than_the_mean(csv):
    args = ["cv", csv, "--target", "amount", "--folds", 3]
    result = ask(*args)
    assert "No better" not in result.stdout
    document = ask_json(*args)
    assert document["baseline"] <= 0 < document["mean"]
    json.dumps(document)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("header", "expected"),
    [("a,b,a", ["a"]), ("a,b,c", []), ("a,,,b", []), ('"a,x",b,"a,x",b', ["a,x", "b"])],
)
def test_names_given_twice_whatever_ends_a_line(end, header, expected):
    head = end.join([header, "1,2,1,2", ""]).encode()
    assert names_given_twice(head, Form()) == expected
    form = Form(separator=";", encoding="utf-16")
    head = end.join(["", header.replace(",", ";"), "1;2;1;2"]).encode("utf-16")
    assert names_given_twice(head, form) == [name.replace(",", ";") for name in expected]
