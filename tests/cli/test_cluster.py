"""`cv` and `fit` on clusters: the same models from files that the workers read."""

import json

import numpy as np
import pytest
from distributed import Client

from dtrees.export import load
from tests.cli.asking import ask, ask_json, check_refused
from tests.parallel.clusters import connect, digest, ours

pd = pytest.importorskip("pandas")
pytest.importorskip("dask.dataframe")
pytestmark = pytest.mark.timeout(120)


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


@pytest.fixture(scope="module")
def address():
    """Of the scheduler of a cluster that somebody else has started."""
    with connect(2, 1, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield cluster.scheduler_address
        assert ours(client) == []


FOREST = ("--model", "forest", "--trees", 4, "--folds", 3, "--max-depth", 4)


def told(document):
    """What a run found out, whatever it took and wherever the table was."""
    return json.dumps({**document, "seconds": 0, "file": ""})


@pytest.mark.parametrize("regime", [None, "replicated", "partitioned"])
def test_cv_of_many_files(regime, folder, address):
    how = ("--target", "class", "--drop", "amount", *FOREST)
    expected = ask_json("cv", folder / "whole.parquet", *how)
    assert expected["rows_without_target"] > 0
    where = ("--cluster", address, *(() if regime is None else ("--regime", regime)))
    found = ask_json("cv", folder / "part-*.parquet", *how, *where)
    assert told(found) == told(expected)
    assert found["file"] == f"{folder}/part-*.parquet"


def test_cv_of_a_tree(folder, address):
    how = ("--target", "amount", "--folds", 3, "--max-depth", 3)
    expected = ask_json("cv", folder / "whole.parquet", *how)
    parts = [folder / f"part-{part}.parquet" for part in range(3)]
    found = ask_json("cv", *parts, *how, "--cluster", address)
    assert told(found) == told(expected)
    assert found["file"] == f"{parts[0]} and 2 more"


def test_cv_on_workers_of_its_own(folder):
    """Two processes."""
    result = ask(
        *("cv", folder / "part-*.parquet", "--target", "amount", *FOREST),
        *("--cluster", "local:2", "--regime", "partitioned"),
    )
    assert result.exit_code == 0, result.output
    assert f"{folder}/part-*.parquet: 600 rows, 4 columns" in result.stdout


def test_fit_and_report(folder, address, tmp_path):
    how = ("--target", "class", "--model", "forest", "--trees", 3)
    here, there = tmp_path / "here.dtrees", tmp_path / "there.dtrees"
    assert ask("fit", folder / "whole.parquet", *how, "--out", here).exit_code == 0
    done = ask(
        *("fit", folder / "part-*.parquet", *how, "--out", there),
        *("--cluster", address, "--regime", "partitioned"),
    )
    assert done.exit_code == 0, done.output
    assert digest(load(there).forest_.trees) == digest(load(here).forest_.trees)
    page = tmp_path / "page.html"
    done = ask(
        *("cv", folder / "part-*.parquet", "--target", "class", "--folds", 3, "--tune"),
        *("--cluster", address, "--report", page),
    )
    assert done.exit_code == 0, done.output
    assert f"--cluster {address}" in done.stdout  # the command that may come next
    assert "part-" in page.read_text()


def test_csv(folder, address):
    found = ask_json("cv", folder / "*.csv", "--target", "amount", *FOREST, "--cluster", address)
    assert found["rows"] == 600


def test_a_regime_without_a_cluster(folder):
    how = ("cv", folder / "whole.parquet", "--target", "amount", *FOREST)
    assert told(ask_json(*how, "--regime", "partitioned")) == told(ask_json(*how))


@pytest.mark.parametrize("command", [("cv",), ("fit", "--out", "x.dtrees")])
def test_what_it_refuses(command, folder, address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dtrees.parallel.clusters.ANSWER", "200ms")
    one, many = folder / "whole.parquet", folder / "part-*.parquet"

    def refused(words, *arguments):
        check_refused(ask(*command, *arguments, "--target", "amount"), words)

    there = ("--cluster", address)
    refused(
        "no Dask scheduler answers at tcp://127.0.0.1:1", many, "--cluster", "tcp://127.0.0.1:1"
    )
    refused("'somewhere' is no cluster", many, "--cluster", "somewhere")
    refused("'local:0' is no cluster", many, "--cluster", "local:0")
    refused("none-*.parquet: no such file", folder / "none-*.parquet", *there)
    refused("none.parquet: no such file", folder / "none.parquet", *there)
    refused("unknown extension", __file__, *there)
    refused("either CSV or Parquet", one, folder / "one.csv", *there)
    refused("a Parquet file has no separator", one, "--sep", ";", *there)
    refused("workers cannot read standard input", "-", *there)
    refused("add --cluster local:2", one, one)
    refused("needs a Dask cluster", one, "--model", "forest", "--regime", "replicated")
    refused("nowhere", "nowhere://a.parquet", *there)
    damaged = tmp_path / "damaged.parquet"
    damaged.write_text("none")
    refused("damaged.parquet: cannot be read", damaged, *there)
    check_refused(ask(*command, many, "--target", "amuont", *there), "did you mean 'amount'?")
