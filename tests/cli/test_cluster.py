"""`cv`, `fit` and `predict` on clusters: the same of files that the workers read."""

import gzip
import json
import re

import numpy as np
import pytest

from dtrees.export import load
from tests.cli.asking import ask, ask_json, check_refused, succeed
from tests.parallel.clusters import digest

pd = pytest.importorskip("pandas")
pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def table():
    """600 rows of numbers, categories and gaps; some lack the target."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    return pd.DataFrame(
        {
            "number": np.where(rng.random(600) < 0.1, np.nan, x[:, 0]),
            "other": x[:, 1],
            "word": rng.choice(["a", "b", "c"], size=600),
            "class": np.where(rng.random(600) < 0.05, None, np.where(x[:, 0] > 0, "yes", "no")),
            "amount": x[:, 0] * 10 + rng.random(600),
        }
    )


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """The table in one Parquet file, and in three; and two of CSV."""
    folder = tmp_path_factory.mktemp("tables")
    table.to_parquet(folder / "whole.parquet")
    for part, (start, end) in enumerate([(0, 250), (250, 251), (251, 600)]):
        table[start:end].to_parquet(folder / f"part-{part}.parquet")
    table[:300].to_csv(folder / "one.csv", index=False)
    table[300:].to_csv(folder / "two.csv", index=False)
    return folder


FOREST = ("--model", "forest", "--trees", 4, "--folds", 3, "--max-depth", 4)


def told(document):
    """What a run found out, whatever it took and wherever the table was."""
    facts = {name: value for name, value in document.items() if name != "growth"}
    return json.dumps({**facts, "seconds": 0, "file": ""})


@pytest.mark.one_of(3)
@pytest.mark.parametrize("regime", [None, "replicated", "partitioned"])
def test_cv_of_many_files(regime, folder, address):
    how = ("--target", "class", "--drop", "amount", *FOREST)
    expected = ask_json("cv", folder / "whole.parquet", *how)
    assert expected["rows_without_target"] > 0
    where = ("--cluster", address, *(() if regime is None else ("--regime", regime)))
    found = ask_json("cv", folder / "part-*.parquet", *how, *where)
    assert told(found) == told(expected)
    assert found["file"] == f"{folder}/part-*.parquet"
    assert "growth" not in expected
    assert found["growth"]["regime"] == (regime or "replicated")
    assert ("rounds" in found["growth"]) == (regime == "partitioned")
    assert found["growth"]["lost_workers"] == 0


@pytest.mark.one_of(3)
@pytest.mark.parametrize("regime", [None, "replicated", "partitioned"])
def test_cv_of_a_boosted_model(regime, folder, address):
    how = ("--target", "class", "--drop", "amount", "--folds", 3, "--model", "boosting")
    how = (*how, "--max-iter", 3, *(() if regime is None else ("--tune",)))
    expected = ask_json("cv", folder / "whole.parquet", *how)
    where = ("--cluster", address, *(() if regime is None else ("--regime", regime)))
    found = ask_json("cv", folder / "part-*.parquet", *how, *where)
    assert told(found) == told(expected)
    assert found["growth"]["regime"] == (regime or "replicated")


def test_cv_of_a_tree(folder, address):
    how = ("--target", "amount", "--folds", 3, "--max-depth", 3)
    expected = ask_json("cv", folder / "whole.parquet", *how)
    parts = [folder / f"part-{part}.parquet" for part in range(3)]
    found = ask_json("cv", *parts, *how, "--cluster", address)
    assert told(found) == told(expected)
    assert found["file"] == f"{parts[0]} and 2 more"


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("last", "kind"), [("2024-08-22", "ordered"), ("never", "categorical"), (None, "ordered")]
)
def test_dates_in_csv_files(last, kind, address, tmp_path):
    """A column is one of dates in all files or in none, as in one file."""
    rng = np.random.default_rng(3)
    days = pd.date_range("2024-01-01", periods=90)
    table = pd.DataFrame(
        {
            "day": [*days.strftime("%Y-%m-%d")[:89], last],
            "self": days.strftime("%Y-%m-%dT%H:%M:%S+02:00"),
            "odd": ["2024-02-28", *[None] * 88, "2024-02-30"],  # there is no such day
            "number": rng.normal(size=90),
        }
    )
    table["class"] = np.where(table["number"] + np.arange(90) / 30 > 1.5, "late", "early")
    table.loc[4, ["day", "self"]] = None
    table.to_csv(tmp_path / "whole.csv", index=False)
    for part in range(3):
        stretch = table[30 * part : 30 * part + 30]
        stretch.to_csv(tmp_path / f"part-{part}.csv", index=False)
    how = ("--target", "class", "--folds", 3)
    expected = ask_json("cv", tmp_path / "whole.csv", *how)
    found = ask_json("cv", tmp_path / "part-*.csv", *how, "--cluster", address)
    assert told(found) == told(expected)
    kinds = {column["name"]: column["kind"] for column in found["columns"]}
    assert kinds["day"] == kind
    assert kinds["self"] == "ordered"
    assert kinds["odd"] == "categorical"


def test_cv_on_workers_of_its_own(folder):
    """Two processes."""
    result = succeed(
        *("cv", folder / "part-*.parquet", "--target", "amount", *FOREST),
        *("--cluster", "local:2", "--regime", "partitioned"),
    )
    assert f"{folder}/part-*.parquet: 600 rows, 4 columns" in result.stdout
    said = (
        r"regime partitioned \(asked for\): \d+ rounds?, \d+ passes over the codes, 0 workers lost"
    )
    assert re.search(said + r", [\d.]+ [kM]?B moved\n", result.stdout)


@pytest.mark.parametrize("command", ["cv", "fit"])
def test_rounds_without_workers(command, folder, tmp_path):
    out = ("--out", tmp_path / "model.dtrees") if command == "fit" else ("--folds", 3)
    done = succeed(
        *(command, folder / "whole.parquet", "--target", "amount", "--model", "forest"),
        *("--trees", 3, "--regime", "partitioned", *out),
    )
    assert re.search(r"\nregime partitioned \(asked for\): \d+ rounds?\n", done.stdout)


def test_fit_and_report(folder, address, tmp_path):
    how = ("--target", "class", "--model", "forest", "--trees", 3)
    here, there = tmp_path / "here.dtrees", tmp_path / "there.dtrees"
    succeed("fit", folder / "whole.parquet", *how, "--out", here)
    done = succeed(
        *("fit", folder / "part-*.parquet", *how, "--out", there),
        *("--cluster", address, "--regime", "partitioned"),
    )
    assert "\nregime partitioned (asked for): " in done.stdout
    assert digest(load(there).forest_.trees) == digest(load(here).forest_.trees)
    page = tmp_path / "page.html"
    done = succeed(
        *("cv", folder / "part-*.parquet", "--target", "class", "--folds", 3, "--tune"),
        *("--cluster", address, "--report", page),
    )
    assert f"--cluster {address}" in done.stdout  # the command that may come next
    assert "part-" in page.read_text()


@pytest.mark.one_of(4)
@pytest.mark.parametrize("target", ["class", "amount"])
@pytest.mark.parametrize("regime", ["replicated", "partitioned"])
def test_cv_with_hash_folds_and_scorers(target, regime, folder, address):
    scoring = {"class": ("f1_macro", "roc_auc"), "amount": ("neg_mean_absolute_error", "r2")}
    names = [word for name in scoring[target] for word in ("--scoring", name)]
    how = ("--target", target, *FOREST, "--hash-folds", *names)
    expected = ask_json("cv", folder / "whole.parquet", *how)
    found = ask_json(
        *("cv", folder / "part-*.parquet", *how), *("--cluster", address, "--regime", regime)
    )
    assert told(found) == told(expected)
    assert list(found["scores"]) == [*scoring[target]]


@pytest.fixture(scope="module")
def models(folder):
    """Model files, by their target."""
    found = {}
    for target in ("class", "amount"):
        found[target] = folder / f"{target}.dtrees"
        how = ("--target", target, "--model", "forest", "--trees", 5, "--out", found[target])
        succeed("fit", folder / "whole.parquet", *how)
    return found


@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz", "p.parquet"])
def test_predict_of_many_files(name, models, folder, address, tmp_path):
    how = ("--proba", "--keep", "word", "--keep", "number", "--out")
    here, there = tmp_path / "here" / name, tmp_path / "there" / name
    for out in (here, there):
        out.parent.mkdir()
    succeed("predict", models["class"], folder / "whole.parquet", *how, here)
    parts = [folder / f"part-{part}.parquet" for part in range(3)]
    done = succeed("predict", models["class"], *parts, *how, there, "--cluster", address)
    assert done.stdout.startswith(f"{there}: 600 rows in ")
    assert "columns word, number, prediction, probability_no, probability_yes" in done.stdout
    if name == "p.parquet":
        assert sorted(path.name for path in there.iterdir()) == [
            f"part-{part:06}.parquet" for part in range(3)
        ]
        found, expected = pd.read_parquet(there), pd.read_parquet(here)
        pd.testing.assert_frame_equal(found, expected, check_exact=True, check_dtype=False)
    else:
        unpacked = gzip.decompress if name.endswith(".gz") else bytes
        assert unpacked(there.read_bytes()) == unpacked(here.read_bytes())
    assert not list(there.parent.glob(".*"))


def test_predict_on_workers_of_its_own(models, folder):
    """Two processes, to which the model goes."""
    expected = ask("predict", models["amount"], folder / "whole.parquet").stdout
    how = ("predict", models["amount"], folder / "part-*.parquet", "--cluster", "local:2")
    assert ask(*how).stdout == expected


def test_predict_of_csv_files_knows_the_columns_of_the_fit(address, tmp_path):
    """Dates, words that look like numbers, and gaps: whatever the rows of a file look like."""
    days = pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d").to_numpy(dtype=object)
    days[30:] = [f"{day}T12:30" for day in days[30:]]
    days[40:50] = ""
    table = pd.DataFrame(
        {
            "key": [f"{i:03}" for i in range(60)],
            "day": days,
            "mixed": [str(i) if i < 50 else "none" for i in range(60)],
            "y": np.arange(60) * 0.5,
        }
    )
    model, whole = tmp_path / "a.dtrees", tmp_path / "whole.csv"
    table.to_csv(whole, index=False)
    how = ("--target", "y", "--drop", "key", "--task", "regression", "--out", model)
    succeed("fit", whole, *how)
    assert {column["kind"] for column in ask_json("show", model)["columns"]} == {
        "ordered",
        "hybrid",
    }
    for part, (start, end) in enumerate([(0, 40), (40, 50), (50, 60)]):
        table[start:end].to_csv(tmp_path / f"part-{part}.csv", index=False)
    expected = ask("predict", model, whole, "--keep", "key")
    found = succeed(
        *("predict", model, tmp_path / "part-*.csv", "--keep", "key", "--cluster", address)
    )
    assert found.stdout == expected.stdout


def test_what_predict_refuses(models, folder, address, tmp_path):
    one, many = folder / "whole.parquet", folder / "part-*.parquet"

    def refused(words, *arguments):
        check_refused(ask("predict", models["class"], *arguments), words)

    there = ("--cluster", address)
    refused("add --cluster local:2", one, one)
    refused("none-*.parquet: no such file", folder / "none-*.parquet", *there)
    refused("workers cannot read standard input", "-", *there)
    refused("no column 'nix' in", many, "--keep", "nix", *there)
    refused("lacks the column 'word' of the model", many, "--drop", "word", *there)
    refused("unknown extension", many, "--out", tmp_path / "a.txt", *there)
    refused("is there already", many, "--out", one, *there)
    folder_there = tmp_path / "there.parquet"
    folder_there.mkdir()
    refused("is there already, and a folder is not", many, "--out", folder_there, *there)
    check_refused(ask("predict", models["amount"], many, "--proba", *there), "is for classes")


def test_intervals_of_many_files(folder, address, tmp_path):
    model = tmp_path / "amount.dtrees"
    how = ("--target", "amount", "--model", "forest", "--trees", 30, "--oob", "--out", model)
    succeed("fit", folder / "whole.parquet", *how)
    here = ask("predict", model, folder / "whole.parquet", "--interval", 0.9)
    there = ask(
        *("predict", model, folder / "part-*.parquet", "--interval", 0.9, "--cluster", address)
    )
    assert here.stdout.startswith("prediction,lower,upper\n")
    assert there.stdout == here.stdout


@pytest.mark.parametrize("name", ["p.csv", "p.parquet"])
def test_what_a_worker_refuses_leaves_nothing(name, table, models, address, tmp_path):
    for part, last in enumerate(["5", "many"]):
        rows = table[:5].assign(number=["1", "2", "3", "4", last])
        rows.to_parquet(tmp_path / f"part-{part}.parquet")
    out = tmp_path / name
    check_refused(
        ask(
            *("predict", models["class"], tmp_path / "part-*.parquet", "--out", out),
            *("--cluster", address),
        ),
        "column 'number' held numbers at fit, and holds 'many' now",
    )
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("command", [("cv",), ("fit", "--out", "x.dtrees")])
def test_what_it_refuses(command, folder, address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one, many = folder / "whole.parquet", folder / "part-*.parquet"

    def refused(words, *arguments):
        check_refused(ask(*command, *arguments, "--target", "amount"), words)

    there = ("--cluster", address)
    # For the one that never answers only: the others may take their time.
    with monkeypatch.context() as patch:
        patch.setattr("dtrees.parallel.clusters.ANSWER", "200ms")
        nobody = "tcp://127.0.0.1:1"
        refused(f"no Dask scheduler answers at {nobody}", many, "--cluster", nobody)
    refused("'somewhere' is no cluster", many, "--cluster", "somewhere")
    refused("'local:0' is no cluster", many, "--cluster", "local:0")
    refused("none-*.parquet: no such file", folder / "none-*.parquet", *there)
    refused("none.parquet: no such file", folder / "none.parquet", *there)
    refused("unknown extension", __file__, *there)
    refused("either CSV or Parquet", one, folder / "one.csv", *there)
    refused("a Parquet file has no separator", one, "--sep", ";", *there)
    refused("workers cannot read standard input", "-", *there)
    refused("add --cluster local:2", one, one)
    replicated = ("--model", "forest", "--regime", "replicated")
    refused("add --cluster local:2", one, *replicated)
    refused("nowhere", "nowhere://a.parquet", *there)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_text("none")
    refused("damaged.parquet: cannot be read", damaged, *there)
    check_refused(ask(*command, many, "--target", "amuont", *there), "did you mean 'amount'?")
