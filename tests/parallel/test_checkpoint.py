"""Fits that end before their end: checkpoints, models so far, and what goes on from them."""

from __future__ import annotations

import json
import signal
import sys
from contextlib import ExitStack

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client

from dtrees import DecisionTreeClassifier, RandomForestClassifier, RandomForestRegressor
from dtrees.callbacks import Callback
from dtrees.exceptions import ModelFileError
from dtrees.parallel import Checkpoint
from tests.forked import run_forked
from tests.parallel.clusters import connect, digest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(500, 5)).round(2)
Y = (X[:, 0] + X[:, 1] ** 2 + RNG.normal(size=500) > 1).astype(int)
N = 12


def forest(**parameters):
    return RandomForestClassifier(**{"n_estimators": N, "random_state": 3, **parameters})


WHOLE = digest(forest().fit(X, Y).forest_.trees)


KILLED = """
import os, signal, sys
import dask
import numpy as np
from dtrees import RandomForestClassifier
from dtrees.callbacks import Callback

class Killed(Callback):
    def on_tree_end(self, fit, number):
        if number == 8:
            os.kill(os.getpid(), signal.SIGKILL)

dask.config.set({"dtrees.checkpoint-every": "0s"})
table = np.load(sys.argv[1])
forest = RandomForestClassifier(12, random_state=3)
forest.fit(table["X"], table["Y"], checkpoint=sys.argv[2], callbacks=[Killed()])
"""


class Ends(Callback):
    """Does something at a tree, and counts them."""

    def __init__(self, number=None, action=None):
        self.number, self.action, self.heard = number, action, []

    def on_tree_end(self, fit, number):
        self.heard.append(number)
        if number == self.number:
            self.action()


def fail():
    raise ZeroDivisionError("told so")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "deep" / "saved"


def stopped_at(number, folder, model=None, **more):
    """A checkpoint of a fit that fails at a tree."""
    model = forest() if model is None else model
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y, callbacks=[Ends(number, fail)], checkpoint=folder, **more)
    assert not hasattr(model, "forest_")


class TestCheckpoint:
    @pytest.mark.parametrize("every", ["0s", "10s"])
    def test_a_fit_goes_on(self, every, folder):
        with dask.config.set({"dtrees.checkpoint-every": every}):
            stopped_at(6, folder)
        heard = Ends()
        model = forest().fit(X, Y, checkpoint=folder, callbacks=[heard])
        assert digest(model.forest_.trees) == WHOLE
        assert heard.heard[0] > 0
        assert heard.heard[-1] == N - 1
        again = Ends()
        assert (
            digest(forest().fit(X, Y, checkpoint=folder, callbacks=[again]).forest_.trees) == WHOLE
        )
        assert again.heard == []

    def test_of_many_files(self, folder, monkeypatch):
        monkeypatch.setattr("dtrees.parallel.checkpoint.SHARE", 0)
        with dask.config.set({"dtrees.checkpoint-every": "0s"}):
            forest().fit(X, Y, checkpoint=folder)
        names = sorted(path.name for path in folder.iterdir())
        assert len(names) == N + 1
        assert not any("partial" in name for name in names)
        (folder / names[5]).unlink()  # trees behind it are grown again
        heard = Ends()
        model = forest().fit(X, Y, checkpoint=folder, callbacks=[heard])
        assert digest(model.forest_.trees) == WHOLE
        assert heard.heard == list(range(4, N))

    @pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
    def test_of_a_process_that_is_killed(self, folder, tmp_path):
        np.savez(tmp_path / "table.npz", X=X, Y=Y)
        done = run_forked("-c", KILLED, tmp_path / "table.npz", folder)
        assert done.returncode == -signal.SIGKILL, done.stderr
        heard = Ends()
        model = forest().fit(X, Y, checkpoint=folder, callbacks=[heard])
        assert digest(model.forest_.trees) == WHOLE
        assert 0 < heard.heard[0] <= 8

    def test_anywhere_that_fsspec_knows(self):
        url = "memory://dtrees/saved"
        stopped_at(3, url)
        heard = Ends()
        model = forest().fit(X, Y, checkpoint=url, callbacks=[heard])
        assert digest(model.forest_.trees) == WHOLE
        assert heard.heard == list(range(4, N))

    def test_more_trees_and_fewer(self, folder):
        forest(n_estimators=5).fit(X, Y, checkpoint=folder)
        assert digest(forest().fit(X, Y, checkpoint=folder).forest_.trees) == WHOLE
        few = forest(n_estimators=3).fit(X, Y, checkpoint=folder)
        assert digest(few.forest_.trees) == digest(forest(n_estimators=3).fit(X, Y).forest_.trees)

    def test_the_seed_of_the_trees_that_are_there(self, folder):
        first = forest(random_state=None, n_estimators=4).fit(X, Y, checkpoint=folder)
        more = forest(random_state=None).fit(X, Y, checkpoint=folder)
        assert digest(more.forest_.trees[:4]) == digest(first.forest_.trees)

    def test_with_scores_out_of_bag(self, folder):
        whole = forest(n_estimators=100, oob_tol=0.01).fit(X, Y)
        forest(n_estimators=100).fit(X, Y, checkpoint=folder)  # of more trees than are needed
        found = forest(n_estimators=100, oob_tol=0.01).fit(X, Y, checkpoint=folder)
        assert 10 < found.n_estimators_ < 100
        assert digest(found.forest_.trees) == digest(whole.forest_.trees)
        np.testing.assert_array_equal(found.oob_scores_, whole.oob_scores_)
        np.testing.assert_array_equal(found.oob_decision_function_, whole.oob_decision_function_)

    def test_with_a_warm_start(self, folder):
        """Of trees that the checkpoint has."""
        model = forest(n_estimators=5, warm_start=True).fit(X, Y, checkpoint=folder)
        model.set_params(n_estimators=8).fit(X, Y, checkpoint=folder)
        heard = Ends()
        whole = forest().fit(X, Y, checkpoint=folder, callbacks=[heard])
        assert digest(whole.forest_.trees) == WHOLE
        assert heard.heard == [8, 9, 10, 11]

    def test_with_a_warm_start_on_new_rows(self, folder):
        """The trees that stay are not those of these rows, so another fit does not take them."""
        old = X[::-1].copy()

        def begun():
            return forest(n_estimators=5, warm_start=True).fit(old, Y).set_params(n_estimators=N)

        whole = begun().fit(X, Y)
        model = begun()
        with pytest.raises(ZeroDivisionError):
            model.fit(X, Y, callbacks=[Ends(8, fail)], checkpoint=folder)
        heard = Ends()
        model.fit(X, Y, checkpoint=folder, callbacks=[heard])
        assert digest(model.forest_.trees) == digest(whole.forest_.trees) != WHOLE
        assert heard.heard == [9, 10, 11]
        more = model.set_params(n_estimators=15).fit(X, Y, checkpoint=folder)
        assert digest(more.forest_.trees[:N]) == digest(whole.forest_.trees)
        others = forest(n_estimators=5, warm_start=True).fit(X, 1 - Y).set_params(n_estimators=N)
        for other in forest(), others:
            with pytest.raises(ValueError, match=r"differs: .*trees of a warm start\.$"):
                other.fit(X, Y, checkpoint=folder)

    def test_a_warm_start_goes_on_with_no_checkpoint_of_its_rows_alone(self, folder):
        forest(n_estimators=8).fit(X, Y, checkpoint=folder)
        model = forest(n_estimators=5, warm_start=True).fit(X[::-1].copy(), Y)
        with pytest.raises(ValueError, match=r"trees of a warm start\.$"):
            model.set_params(n_estimators=N).fit(X, Y, checkpoint=folder)

    def test_dask_collections_with_scores_out_of_bag(self, folder):
        lazy = da.from_array(X, chunks=(90, 5))
        whole = forest(n_estimators=30, oob_score=True).fit(X, Y)
        with dask.config.set(scheduler="synchronous"):
            forest(n_estimators=25).fit(lazy, Y, checkpoint=folder)
            model = forest(n_estimators=30, oob_score=True).fit(lazy, Y, checkpoint=folder)
        assert digest(model.forest_.trees) == digest(whole.forest_.trees)
        np.testing.assert_array_equal(model.oob_decision_function_, whole.oob_decision_function_)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda: forest(max_depth=3).fit, r"max_depth was None and is 3"),
            (lambda: forest(random_state=4).fit, r"the seed, which random_state says \(it was \d"),
            (lambda: forest(max_samples=0.5).fit, r"max_samples was None and is 0.5\.$"),
            (
                lambda: forest(class_weight="balanced").fit,
                r"class_weight .* is .balanced.; the bags",
            ),
            (lambda: RandomForestRegressor(N, random_state=3).fit, "the class .it was RandomFores"),
        ],
    )
    def test_other_parameters(self, change, words, folder):
        stopped_at(3, folder)
        with pytest.raises(ValueError, match=rf"holds trees of another fit.* {words}"):
            change()(X, Y, checkpoint=folder)

    def test_other_data(self, folder):
        stopped_at(3, folder)
        turned = X[::-1].copy()
        turned[:, 0] = X[:, 0]
        for arguments, words in [
            ((X + 1, Y), "differs: the values of X; the rows of X.$|differs: the values of X.$"),
            ((X[:-1], Y[:-1]), r"the shape of X \(it was \[500, 5\] and is \[499, 5\]\)"),
            ((turned, Y), "differs: the rows of X.$"),
            ((X, 1 - Y), "differs: y, or sample_weight.$"),
            ((X, Y, np.arange(500)), "y, or sample_weight; the bag"),
        ]:
            with pytest.raises(ValueError, match=words):
                forest().fit(*arguments, checkpoint=folder)

    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("cluster", [False, True])
    def test_other_rows_on_workers(self, cluster, folder):
        """In another order, with the same values and the same y; cut in other ways."""
        turned = X[::-1].copy()
        with ExitStack() as stack:
            if cluster:
                stack.enter_context(Client(stack.enter_context(connect(2, 1, False))))
            else:
                stack.enter_context(dask.config.set(scheduler="synchronous"))
            model = forest(n_estimators=5, regime="partitioned")
            model.fit(da.from_array(X, chunks=(90, 5)), Y, checkpoint=folder)
            assert digest(model.forest_.trees) == digest(
                forest(n_estimators=5).fit(X, Y).forest_.trees
            )
            model = forest(regime="partitioned")
            with pytest.raises(ValueError, match=r"differs: the rows of X\.$"):
                model.fit(da.from_array(turned, chunks=(90, 5)), Y, checkpoint=folder)
            with pytest.raises(ValueError, match=r"differs: the rows of X\.$"):
                forest(regime="local").fit(turned, Y, checkpoint=folder)
            model.fit(da.from_array(X, chunks=(133, 5)), Y, checkpoint=folder)
        assert digest(model.forest_.trees) == WHOLE

    def test_damaged(self, folder):
        stopped_at(3, folder)
        (trees,) = folder.glob("trees-*")
        data = bytearray(trees.read_bytes())
        data[len(data) // 2] ^= 1
        trees.write_bytes(data)
        with pytest.raises(ModelFileError, match="damaged"):
            forest().fit(X, Y, checkpoint=folder)
        (folder / "checkpoint.json").write_text("{")
        with pytest.raises(ModelFileError, match="is damaged"):
            forest().fit(X, Y, checkpoint=folder)
        (folder / "checkpoint.json").write_text(json.dumps({"format": "other"}))
        with pytest.raises(ModelFileError, match=r"is damaged|is no checkpoint"):
            forest().fit(X, Y, checkpoint=folder)

    @pytest.mark.parametrize("seed", range(40))
    def test_damaged_anywhere(self, seed, tmp_path):
        """An error that tells, or the same forest: bytes are changed, cut off, or doubled."""
        RandomForestClassifier(3, random_state=3).fit(X, Y, checkpoint=tmp_path)
        draws = np.random.default_rng(seed)
        path = sorted(tmp_path.iterdir())[draws.integers(2)]
        data = bytearray(path.read_bytes())
        at, kind = draws.integers(len(data)), draws.integers(4)
        if kind == 0:
            data[at] ^= 1 << draws.integers(8)
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            data += data[at:]
        else:
            data[at : at + 9] = b"[" * 9
        path.write_bytes(data)
        told, found = "", None
        try:
            found = RandomForestClassifier(3, random_state=3).fit(X, Y, checkpoint=tmp_path)
        except ValueError as error:  # ModelFileError is one
            told = str(error)
        whole = RandomForestClassifier(3, random_state=3).fit(X, Y)
        if found is None:
            assert str(tmp_path) in told
        else:
            assert digest(found.forest_.trees) == digest(whole.forest_.trees)

    @pytest.mark.parametrize(
        "facts", [{}, {"parameters": 5}, {"parameters": {"max_depth": 7}}, {"seed": []}]
    )
    def test_facts_that_are_none(self, facts, tmp_path):
        RandomForestClassifier(3, random_state=3).fit(X, Y, checkpoint=tmp_path)
        path = tmp_path / "checkpoint.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"facts": facts}))
        with pytest.raises(ValueError, match=str(tmp_path)):
            RandomForestClassifier(3, random_state=3).fit(X, Y, checkpoint=tmp_path)

    def test_units_behind_a_gap(self, tmp_path):
        """They come in another order now, so those that are left of the first one are removed."""

        def grow(units, new):
            checkpoint = Checkpoint(tmp_path)
            checkpoint.begin({})
            found = checkpoint.units("a", lambda data, _: list(data))
            assert found == units
            with checkpoint.saving("a", found, bytes):
                for unit in new:
                    found.append(unit)
                    checkpoint.save()

        grow([], [0, 10, 1, 11])
        (tmp_path / "a-000000001-000000002.dtrees").unlink()
        grow([0], [1])
        grow([0, 1], [10, 11])
        grow([0, 1, 10, 11], [])

    def test_two_that_write_at_a_time(self, tmp_path):
        """Their sets may come in another order; trees of the same sets are the same."""
        both = [Checkpoint(tmp_path / "one"), Checkpoint(tmp_path / "one")]
        for each in both:
            each.begin({})
        for each, units in zip(
            both, [[[0, "a"], [1, "b"]], [[0, "a"], [1, "b"], [0, "c"]]], strict=True
        ):
            with each.saving("s", units, lambda units: json.dumps(units).encode()):
                pass
        decode = lambda data, path: json.loads(data)  # noqa: E731
        assert Checkpoint(tmp_path / "one").units("s", decode) == [[0, "a"], [1, "b"], [0, "c"]]
        with Checkpoint(tmp_path / "one").saving(
            "s", [[1, "b"]] * 4, lambda u: json.dumps(u).encode()
        ):
            pass
        with pytest.raises(ModelFileError, match="two have written to one folder at a time"):
            Checkpoint(tmp_path / "one").units("s", decode)

    def test_a_folder_that_cannot_be(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(OSError, match="file"):
            forest().fit(X, Y, checkpoint=tmp_path / "file")
        with pytest.raises(ValueError, match="nowhere"):
            forest().fit(X, Y, checkpoint="nowhere://there")


class TestFolders:
    """What is at the path of a checkpoint."""

    def test_that_are_of_somebody_else(self, tmp_path):
        (tmp_path / "part.parquet").write_text("mine")
        with pytest.raises(ValueError, match="is no checkpoint, and not empty"):
            RandomForestClassifier(2).fit(X, Y, checkpoint=tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["part.parquet"]

    def test_that_are_no_paths(self):
        with pytest.raises(TypeError, match="checkpoint must be a path or a URL: got 5"):
            RandomForestClassifier(2).fit(X, Y, checkpoint=5)

    def test_times_that_are_none(self, tmp_path):
        with (
            dask.config.set({"dtrees.checkpoint-every": "soon"}),
            pytest.raises(ValueError, match=r"'dtrees\.checkpoint-every' = 'soon'; it must be"),
        ):
            RandomForestClassifier(2).fit(X, Y, checkpoint=tmp_path / "new")


class TestSingleTrees:
    """A tree that is complete is there when the same fit comes again."""

    def test_a_tree_is_found(self, tmp_path, monkeypatch):
        tree = DecisionTreeClassifier(max_features=2).fit(X, Y, checkpoint=tmp_path)
        monkeypatch.setattr("dtrees.parallel.growing._grown", fail)  # nothing grows
        again = DecisionTreeClassifier(max_features=2).fit(X, Y, checkpoint=tmp_path)
        assert digest([again.tree_.model]) == digest([tree.tree_.model])
        np.testing.assert_array_equal(again.predict_proba(X), tree.predict_proba(X))

    def test_another_tree(self, tmp_path):
        DecisionTreeClassifier(random_state=0).fit(X, Y, checkpoint=tmp_path)
        with pytest.raises(ValueError, match=r"max_depth was None and is 3\.$"):
            DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, Y, checkpoint=tmp_path)
        with pytest.raises(ValueError, match=r"differs: y, or sample_weight\.$"):
            DecisionTreeClassifier(random_state=0).fit(X, 1 - Y, checkpoint=tmp_path)
