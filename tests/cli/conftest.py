"""A small table, as a DataFrame and as a file."""

import numpy as np
import pytest
from distributed import Client

from tests.cli.asking import fit_table
from tests.parallel.clusters import connect, ours

pd = pytest.importorskip("pandas")


@pytest.fixture
def table():
    """60 rows of numbers, categories and gaps; two classes and a number to predict."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    return pd.DataFrame(
        {
            "number": np.where(rng.random(60) < 0.1, np.nan, x),
            "word": rng.choice(["a", "b", "c"], size=60),
            "mixed": [str(i) if i % 3 else "none of them" for i in range(60)],
            "class": np.where(x > 0, "yes", "no"),
            "amount": x * 10 + rng.random(60),
        }
    )


@pytest.fixture
def unreadable(tmp_path):
    """A file that is there, and is no table: who reads it says so."""
    path = tmp_path / "unreadable.csv"
    path.write_bytes(b"")
    return path


@pytest.fixture
def csv(table, tmp_path):
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture
def noisy(table, tmp_path):
    """Classes that a tree half knows, so that sizes differ."""
    wrong = np.random.default_rng(3).random(60) < 0.2
    table["class"] = np.where(wrong != (table["class"] == "yes"), "yes", "no")
    path = tmp_path / "noisy.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture
def model(table, tmp_path):
    return fit_table(table, tmp_path, "--model", "forest", "--trees", 9, target="class")


@pytest.fixture(scope="module")
def address():
    """Of the scheduler of a cluster that somebody else has started."""
    with connect(2, 1, False) as cluster, Client(cluster, set_as_default=False) as client:
        yield cluster.scheduler_address
        assert ours(client) == []
