"""Tables in files."""

import io

import pytest

from dtrees.io import read_table
from dtrees.io.files import read_dated

pd = pytest.importorskip("pandas")


def column_of(values, tmp_path):
    """A column as it is read from a CSV file that holds these values."""
    path = tmp_path / "column.csv"
    path.write_text("\n".join(["x,y", *(f"{value},1" for value in values)]))
    return read_table(path)["x"]


@pytest.mark.parametrize(
    ("values", "first"),
    [
        (["2024-05-01", "1999-12-31", "", "NA"], "2024-05-01"),
        (["2024-05-01", "2024-05-01 13:30"], "2024-05-01"),
        (["2024-05-01T13:30", "2024-05-01T13:30:01"], "2024-05-01T13:30"),
        (["2024-05-01", "2024-05-01T13:30:01.123456789"], "2024-05-01"),
        (["2024-05-01T13:30:00.5"], "2024-05-01T13:30:00.5"),
        (["2024-05-01T13:30:00Z", "2024-05-01 13:30+02:00"], "2024-05-01T13:30:00Z"),
        (["2024-05-01 13:30-0130", "2024-05-01 13:30+02"], "2024-05-01T15:00:00Z"),
        (["1677-09-22", "2262-04-11"], "1677-09-22"),
        (["01.05.2024", "31.05.2024"], "2024-05-01"),
        (["05/01/2024", "05/31/2024"], "2024-05-01"),
    ],
)
def test_what_is_a_date(tmp_path, values, first):
    column = column_of(values, tmp_path)
    read = column.tolist()
    assert str(column.dtype) == ("datetime64[ns, UTC]" if first.endswith("Z") else "datetime64[ns]")
    assert read[0] == pd.Timestamp(first)
    assert [pd.isna(value) for value in read] == [value in ("", "NA") for value in values]
    if len(read) > 1 and values[1].endswith("123456789"):
        assert read[1].nanosecond == 789


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["20240501", "20240502"], "i"),
        (["2024", "2025"], "i"),
        (["2024.5", ""], "f"),
        (["", "NA"], "f"),
        (["True", "False"], "b"),
        (["2024-05-01", "never"], "O"),
        (["2024-05-01", "7"], "O"),
        (["2024-05", "2024-06"], "O"),
        (["1-2-3", "4-5-6"], "O"),
        (["2024-5-1", "2024-05-02"], "O"),
        (["2024-02-30", "2024-02-29"], "O"),
        (["2024-05-01", "9999-12-31"], "O"),
        (["2024-05-01T13:30", "2024-05-01T13:30Z"], "O"),
        (["2024-05-01 25:00", "2024-05-01 13:30"], "O"),
        (["2024-05-01-17", "2024-05-01-18"], "O"),
        (["01.05.2024", "05/01/2024"], "O"),
        (["31/05/2024", "01/05/2024"], "O"),
        (["12:30", "13:30"], "O"),
    ],
)
def test_what_is_no_date(tmp_path, values, kind):
    column = column_of(values, tmp_path)
    assert column.dtype.kind == kind
    if kind == "O":
        assert column.tolist() == values


def test_a_column_of_numbers_and_words_keeps_one_type(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("a,class\n" + "1,x\n" * 70_000 + "word,y\n" * 70_000)
    assert set(map(type, read_table(path)["a"])) == {str}


def test_columns_that_are_text_are_read_as_they_are_written(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b,c\n007,2024-05-01,1\n,2024-05-02,2\nTrue,NA,3\n")
    table = read_table(path, as_text={"a", "b", "nowhere"})
    assert table["a"].tolist()[::2] == ["007", "True"]
    assert table["b"].tolist()[:2] == ["2024-05-01", "2024-05-02"]
    assert table.isna().sum().tolist() == [1, 1, 0]
    assert table["c"].dtype.kind == "i"
    assert read_table(path)["b"].dtype.kind == "M"


def test_it_is_told_how_dates_are_written(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b,c,d\n1/2/2024,2024-05-01,7,x\n1/3/2024,2024-05-02,8,y\n")
    table, forms = read_dated(path, None, None, None, dayfirst=True, as_text=())
    assert table.equals(read_table(path, dayfirst=True))
    assert forms == {"a": ("%d/%m/%Y", False, True), "b": ("ISO8601", False, False)}


def test_a_stream_is_csv():
    assert read_table(io.BytesIO(b"a;b\n1;x\n"), separator=";").values.tolist() == [[1, "x"]]
    with pytest.raises(ValueError, match="standard input: the file is empty"):
        read_table(io.BytesIO())
    with pytest.raises(ValueError, match="standard input: cannot be read"):
        read_table(io.BytesIO(b"a,b\n1,2\n1,2,3\n"))
