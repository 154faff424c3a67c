"""The table of a command: files, separators, encodings, and columns that are left out."""

import gzip

import numpy as np
import pytest

from dtrees.cli.form import CsvForm
from dtrees.cli.tables import check_files, kinds_line, label_of, table_of
from dtrees.cli.terminal import RequestError
from dtrees.io import problem_of, read_table
from tests.cli.asking import ask, check_refused, cv, cv_json, fit, succeed, without_seconds

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("name", ["table.csv.gz", "table.parquet"])
def test_the_formats_give_the_same_answer(csv, table, tmp_path, name):
    path = tmp_path / name
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    else:
        path.write_bytes(gzip.compress(csv.read_bytes()))
    expected = without_seconds(cv_json(csv, "--target", "class", "--folds", 3))
    got = without_seconds(cv_json(path, "--target", "class", "--folds", 3))
    assert got | {"file": ""} == expected | {"file": ""}


def test_rows_without_a_target_are_dropped_and_counted(table, tmp_path):
    table.loc[:4, "class"] = None
    path = tmp_path / "gaps.csv"
    table.to_csv(path, index=False)
    assert cv_json(path, "--target", "class", "--folds", 2)["rows_without_target"] == 5
    assert "5 rows without a target are left out" in cv(path, "--target", "class").stdout


BAD_FILES = [
    ("missing.csv", None, "no such file"),
    ("table.xlsx", b"x", "unknown extension, expected one of .csv, .csv.gz, .parquet"),
    ("empty.csv", b"", "the file is empty"),
    ("header.csv", b"a,class\n", "no row with a value in the target column 'class'"),
    ("alone.csv", b"class\n1\n2\n", "no column beside the target"),
    ("broken.csv.gz", b"not gzip at all", "cannot be read"),
    ("cut.csv.gz", gzip.compress(b"a,class\n" * 9999, mtime=0)[:50], "cannot be read"),
    ("broken.parquet", b"PAR1 not really", "cannot be read"),
    ("ragged.csv", b"a,class\n1,2\n1,2,3\n", "line 3 has 3 fields, and the lines above"),
    ("unnamed.csv", b"a,class\n1,2,x\n4,3,y\n9,2,x\n2,3,y\n", "has 2 names, but the first row 3"),
    ("one.csv", b"class\n1,2,x\n4,3,y\n9,2,x\n", "has 1 name, but the first row 3 fields"),
    ("row_numbers.csv", b"a,class\n0,2,x\n1,3,y\n2,2,x\n3,3,y\n", "the first row 3 fields"),
    ("two_unnamed.csv", b"a,class\n0,2,5,x\n1,3,6,y\n2,2,5,x\n3,3,6,y\n", "the first row 4"),
    ("commas.csv", b"class,a\n1,2,\n2,3,\n1,2,\n2,3,\n", "end no row with a separator"),
    ("bytes.csv", b"a,class\n\xff\xfe,2\n", "cannot be read as utf-8"),
    ("inf.csv", b"a,class\n1,2\ninf,3\n1,2\n2,3\n", "infinity"),
]


def test_two_columns_of_one_name_are_noted(table, tmp_path):
    path = tmp_path / "twice.csv"
    rows = zip(table["number"], table["amount"], table["class"], strict=True)
    lines = [f"{number};{amount};{word}" for number, amount, word in rows]
    path.write_text("\n".join(["a;a;class", *lines]))
    result = cv(path, "--target", "class", "--sep", ";", "--folds", 2)
    assert result.stderr == "Note: several columns are named 'a': the second is 'a.1' here\n"


@pytest.mark.parametrize(
    ("name", "content", "words"), BAD_FILES, ids=[name for name, _, _ in BAD_FILES]
)
def test_a_bad_file_is_one_line_and_code_2(tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    check_refused(cv(path, "--target", "class", "--folds", 2), words, is_read=name == "inf.csv")


@pytest.mark.parametrize(
    ("sep", "character"), [(";", ";"), (r"\t", "\t"), ("\t", "\t"), ("|", "|")]
)
def test_separators(csv, table, tmp_path, sep, character):
    path = tmp_path / "other.csv"
    table.to_csv(path, index=False, sep=character)
    expected = without_seconds(cv_json(csv, "--target", "class", "--folds", 2))
    got = without_seconds(cv_json(path, "--target", "class", "--folds", 2, "--sep", sep))
    assert got | {"file": ""} == expected | {"file": ""}


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8"])
def test_encodings(table, tmp_path, encoding):
    path = tmp_path / "umlauts.csv"
    table = table.rename(columns={"word": "Größe"}).replace({"Größe": {"a": "ä"}})
    table.to_csv(path, index=False, encoding=encoding)
    read = read_table(path, encoding=encoding)
    assert read["Größe"].tolist() == table["Größe"].tolist()
    if encoding != "utf-8":
        check_refused(cv(path, "--target", "class"), "cannot be read as utf-8")
    run_ = cv_json(path, "--target", "class", "--folds", 2, "--encoding", encoding)
    assert run_["columns"][1]["name"] == "Größe"


@pytest.mark.parametrize("option", ["--sep", "--encoding"])
def test_a_parquet_file_has_neither_separator_nor_encoding(table, tmp_path, option):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    table.to_parquet(path)
    check_refused(cv(path, "--target", "class", option, ";"), "a Parquet file has no")


def test_dropped_columns_are_as_if_they_had_never_been_there(csv, table, tmp_path):
    path = tmp_path / "less.csv"
    table.drop(columns=["word", "amount"]).to_csv(path, index=False)
    expected = without_seconds(cv_json(path, "--target", "class", "--folds", 2))
    args = [csv, "--target", "class", "--folds", 2, "--drop", "amount", "--drop", "word"]
    got = without_seconds(cv_json(*args))
    assert got.pop("dropped") == ["word", "amount"]
    assert expected.pop("dropped") == []
    assert got | {"file": ""} == expected | {"file": ""}
    assert "left out: word, amount\n" in cv(*args).stdout


def test_dates_in_a_csv_file_are_ordered(tmp_path):
    days = pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d").to_numpy(dtype=object)
    classes = np.where(np.arange(60) < 40, "early", "late")
    days[[3, 50]] = ""  # missing
    path = tmp_path / "dates.csv"
    pd.DataFrame({"day": days, "class": classes}).to_csv(path, index=False)
    run_ = cv_json(path, "--target", "class", "--folds", 3)
    shares = {"importance": 1.0, "held_out_importance": 1.0}
    assert run_["columns"] == [{"name": "day", "kind": "ordered", **shares}]
    assert "day <= 2024-02-09 12:00" in run_["tree"]["text"]


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("%d.%m.%Y", []),
        ("%m/%d/%Y", []),
        ("%d/%m/%Y", ["--dayfirst"]),
        ("%d.%m.%Y %H:%M", []),
        (None, []),  # date32 of a Parquet file
        ("time", []),  # time64 of one
    ],
)
def test_dates_are_read_alike_at_fit_and_at_prediction(form, options, tmp_path):
    days = pd.date_range("2024-01-01", periods=60)
    as_objects = {None: days.date, "time": pd.date_range("2024", periods=60, freq="7min").time}
    table = pd.DataFrame({"day": as_objects[form] if form in as_objects else days.strftime(form)})
    table["t"] = np.arange(60) % 40 * 1.5
    path = tmp_path / ("dates.parquet" if form in as_objects else "dates.csv")
    if form in as_objects:
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)
    model, out = tmp_path / "m", tmp_path / "out.csv"
    fitted = succeed("fit", path, "--target", "t", "--out", model, *options)
    assert "columns: 1 ordered" in fitted.output
    told = succeed("predict", model, path, "--out", out)
    assert told.stderr == ""
    assert pd.read_csv(out)["prediction"].tolist() == table["t"].tolist()


@pytest.mark.parametrize(
    ("form", "options", "hint"),
    [
        ("%d/%m/%Y", [], "seem to be of the other order, add --dayfirst"),
        ("%m/%d/%Y", ["--dayfirst"], "seem to be of the other order, leave --dayfirst out"),
    ],
)
def test_dates_of_the_other_order_are_named_and_are_no_ids(form, options, hint, tmp_path):
    days = pd.date_range("2024-01-01", periods=60).strftime(form)
    path = tmp_path / "dates.csv"
    pd.DataFrame({"day": days, "t": np.arange(60) % 2}).to_csv(path, index=False)
    fitted = succeed("fit", path, "--target", "t", "--out", tmp_path / "m", *options)
    assert hint in fitted.stderr
    assert "like an id" not in fitted.stderr


def test_dates_are_no_target(tmp_path):
    path = tmp_path / "dates.csv"
    path.write_text("a,t\n1,2024-01-01\n2,2024-01-02\n")
    check_refused(cv(path, "--target", "t"), "the target column 't' holds dates or times")
    table = pd.DataFrame({"a": [1, 2], "t": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    with pytest.raises(ValueError, match="holds dates or times"):
        problem_of(table, "t")


def test_many_classes_of_few_rows_have_to_be_asked_for(tmp_path):
    path = tmp_path / "names.csv"
    command = ["fit", path, "--target", "name", "--out", tmp_path / "a.dtrees"]
    for n_classes, is_refused in ((100, False), (101, True)):
        names = [f"name {i % n_classes}" for i in range(120)]
        pd.DataFrame({"x": range(120), "name": names}).to_csv(path, index=False)
        result = ask(*command)
        assert (result.exit_code == 2) == is_refused
    check_refused(result, "holds words, 101 different ones in 120 rows: if they are classes, add")
    succeed(*command, "--task", "classification")
    pd.DataFrame({"x": range(202), "name": names[:101] * 2}).to_csv(path, index=False)
    succeed(*command)


def test_a_table_from_standard_input(csv, tmp_path):
    text = csv.read_text()
    result = succeed("fit", "-", "--target", "class", "--out", tmp_path / "a.dtrees", text=text)
    assert result.stdout.startswith("-: 60 rows")
    fit(csv, tmp_path / "b.dtrees", "--target", "class")
    assert (tmp_path / "a.dtrees").read_bytes() == (tmp_path / "b.dtrees").read_bytes()
    check_refused(
        ask("fit", "-", "--target", "class", "--out", tmp_path / "c.dtrees", text=""),
        "standard input: the file is empty",
    )


def test_kinds_are_counted_in_one_order():
    assert kinds_line(["empty", "ordered", "hybrid", "ordered"]) == (
        "columns: 2 ordered, 1 hybrid (numbers and words), 1 empty"
    )


def test_several_files_have_a_name_and_need_a_cluster():
    assert label_of(["a.csv"]) == "a.csv"
    assert label_of(["a.csv", "b.csv", "c.csv"]) == "a.csv and 2 more"
    with pytest.raises(RequestError, match="add --cluster"), table_of(["a", "b"], CsvForm(), None):
        pass
    with pytest.raises(RequestError, match="cannot read standard input"):  # noqa: SIM117
        with table_of(["-"], CsvForm(), "local:1"):
            pass
    check_files(["no.csv"], "local:1")  # workers look for theirs
    with pytest.raises(RequestError, match="no such file"):
        check_files(["no.csv"], None)


def test_scores_are_of_one_target(csv):
    """The other would be a feature."""
    result = ask("cv", csv, "--target", "class", "--target", "amount")
    check_refused(result, "--target takes one column, and 2 are given: class, amount.")
