"""A cluster for a command, and files that its workers read and write."""

import gzip

import dask
import pytest

from dtrees.exceptions import ClusterError
from dtrees.parallel import clusters
from dtrees.parallel.clusters import (
    connected,
    read_files,
    regime_asked_for,
    write_csv,
    write_parquet,
)

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

FRAME = pd.DataFrame({"a": range(6), "w": ["x", "y,z", "x", None, "", "'"]})
DAYS = [f"2024-05-{day:02}" for day in range(1, 7)]


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def files(tmp_path):
    """A table in two files of three rows."""
    paths = [str(tmp_path / f"{name}.csv") for name in "ab"]
    table = FRAME.assign(day=DAYS)
    for path, part in zip(paths, (table[:3], table[3:]), strict=True):
        part.to_csv(path, index=False)
    return paths


@pytest.mark.parametrize("address", ["localhost:8786", "local:0", "local:x", "", "threads"])
def test_what_is_no_address(address):
    with pytest.raises(ValueError, match="is no cluster: give the address"), connected(address):
        pass


def test_nobody_answers(monkeypatch):
    monkeypatch.setattr(clusters, "ANSWER", "50ms")
    with (
        pytest.raises(ClusterError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        connected("tcp://127.0.0.1:9"),
    ):
        pass


def test_a_regime_is_asked_for_in_a_context():
    with regime_asked_for("partitioned"):
        with regime_asked_for(None):
            assert dask.config.get("dtrees.regime") == "partitioned"
        assert dask.config.get("dtrees.regime") == "partitioned"
    assert dask.config.get("dtrees.regime", None) is None


def test_rows_stand_in_the_order_of_the_files(files, tmp_path):
    whole = read_files(files)[0].compute()
    assert whole["a"].tolist() == FRAME["a"].tolist()
    assert read_files(files[::-1])[0].compute()["a"].tolist() == [3, 4, 5, 0, 1, 2]
    by_pattern = read_files([str(tmp_path / "*.csv")])[0].compute()
    assert by_pattern["a"].tolist() == FRAME["a"].tolist()


def test_columns_of_dates_and_columns_that_are_text(files):
    whole = read_files(files)[0].compute()
    assert whole["day"].tolist() == [pd.Timestamp(day) for day in DAYS]
    for how in ({"dates": False}, {"as_text": ["day", "not there"]}):
        assert read_files(files, **how)[0].compute()["day"].tolist() == DAYS
    as_text = read_files(files, as_text=["a"])[0].compute()
    assert as_text["a"].tolist() == list("012345")


@pytest.mark.parametrize("last", [12, 13])
def test_it_is_told_how_dates_are_written(last, files):
    """By all files together: a later one may settle the order of days and months."""
    for file, day in zip(files, (1, last), strict=True):
        pd.read_csv(file).assign(day=f"{day}/3/2024").to_csv(file, index=False)
    _, forms = read_files(files, dayfirst=True)
    assert forms == {"day": ("%d/%m/%Y", False, last == 12)}


def test_a_column_that_only_begins_like_dates_is_text(files):
    text = pd.read_csv(files[1])
    text.loc[2, "day"] = "soon"
    text.to_csv(files[1], index=False)
    assert read_files(files)[0].compute()["day"].tolist() == [*DAYS[:5], "soon"]


@pytest.mark.parametrize(
    ("names", "how", "words"),
    [
        (["none.csv"], {}, "none.csv: no such file"),
        (["t.txt"], {}, "unknown extension, expected one of .csv, .csv.gz, .parquet"),
        (["t.csv", "t.parquet"], {}, "either CSV or Parquet, not both"),
        (["t.parquet"], {"decimal": ","}, "a Parquet file has no separator"),
        (["t.csv"], {"encoding": "latin-11"}, "(?s)t.csv: cannot be read: .*latin-11"),
        (["nowhere://t.csv"], {}, "nowhere://t.csv: cannot be read"),
    ],
)
def test_files_that_are_refused(names, how, words, tmp_path):
    for name in ("t.txt", "t.csv", "t.parquet"):
        (tmp_path / name).write_text("a,b\n1,2\n")
    paths = [name if "://" in name else str(tmp_path / name) for name in names]
    with pytest.raises(ValueError, match=words):
        read_files(paths, **how)


@pytest.mark.parametrize("packed", [False, True])
def test_a_table_as_one_csv_file(packed, tmp_path):
    file = tmp_path / "out.csv"
    file.write_text("former")
    assert write_csv(dd.from_pandas(FRAME, npartitions=3), file, packed=packed) == 6
    data = file.read_bytes()
    assert (gzip.decompress(data) if packed else data).decode() == FRAME.to_csv(index=False)


def test_a_table_as_a_folder_of_parquet_files(tmp_path):
    folder = tmp_path / "out"
    table = dd.from_pandas(FRAME, npartitions=3)
    assert write_parquet(table, str(folder)) == 6
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"part-{number:06}.parquet" for number in range(table.npartitions)]
    found = pd.concat([pd.read_parquet(folder / name) for name in names])
    assert found["a"].tolist() == FRAME["a"].tolist()
    with pytest.raises(ValueError, match="is there already, and a folder is not replaced"):
        write_parquet(table, str(folder))
    assert sorted(path.name for path in folder.iterdir()) == names


def fail(part):
    if len(part) and part["a"].iloc[0] > 2:
        raise ZeroDivisionError
    return part


def test_where_writing_fails_nothing_is_left(tmp_path):
    table = dd.from_pandas(FRAME, npartitions=3).map_partitions(fail, meta=FRAME)
    with pytest.raises(ZeroDivisionError):
        write_parquet(table, str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []
