"""Callbacks hear of every tree in order, stop the fit, and leave nothing behind when they fail."""

from __future__ import annotations

import io
import logging
import sys
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dtrees import (
    BaggingRegressor,
    DecisionTreeClassifier,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.callbacks import Bar, Callback, ProgressBar
from dtrees.core.grow.forest import ForestGrowth
from dtrees.parallel.threads import AHEAD
from tests.forked import run_forked

IRIS = load_iris(return_X_y=True)
KINDS = [
    (RandomForestClassifier, IRIS),
    (ExtraTreesClassifier, IRIS),
    (BaggingRegressor, load_diabetes(return_X_y=True)),
]


Foreign = type("Foreign", (), {"__module__": "lightgbm.callback"})


class Listener(Callback):
    """Writes down what it hears; stops at a tree, or raises somewhere."""

    def __init__(self, stop=None, fail=None, name="", book=None):
        self.stop, self.fail, self.name = stop, fail, name
        self.heard = [] if book is None else book
        self.threads = set()

    def hear(self, what, fit):
        self.heard.append(f"{self.name}{what}")
        self.threads.add(threading.get_ident())
        self.fit = fit
        if what == self.fail:
            raise ZeroDivisionError(what)

    def on_fit_begin(self, fit):
        self.hear("begin", fit)
        self.numbers = fit.numbers

    def on_tree_end(self, fit, number):
        assert len(fit.trees) == number + 1
        assert fit.n_grown == number + 1 - fit.numbers.start
        assert fit.error is None
        self.hear(f"tree {number}", fit)
        return number == self.stop

    def on_fit_end(self, fit):
        self.error = fit.error
        self.is_fitted = hasattr(fit.estimator, "forest_")
        self.hear("end", fit)


def words(first, end):
    return ["begin", *(f"tree {i}" for i in range(first, end)), "end"]


def assert_same(trees, others):
    assert len(trees) == len(others)
    assert all(a.equals(b) for a, b in zip(trees, others, strict=True))


class TestOrder:
    @pytest.mark.parametrize("n_jobs", [1, 2, 5])
    @pytest.mark.parametrize(("kind", "data"), KINDS)
    def test_trees_in_order_in_the_calling_thread(self, kind, data, n_jobs):
        listener = Listener()
        forest = kind(12, random_state=0, n_jobs=n_jobs).fit(*data, callbacks=[listener])
        assert listener.heard == words(0, 12)
        assert listener.threads == {threading.get_ident()}
        assert listener.numbers == range(12)
        assert listener.fit.estimator is forest
        assert listener.is_fitted
        assert listener.error is None
        assert_same(forest.forest_.trees, kind(12, random_state=0).fit(*data).forest_.trees)

    def test_trees_that_end_in_another_order(self, monkeypatch):
        grow = ForestGrowth.tree
        ended = [threading.Event() for _ in range(8)]

        def later(self, number, *others):
            """Trees 0 and 3 end after the next one."""
            if number in (0, 3):
                assert ended[number + 1].wait(60)
            found = grow(self, number, *others)
            ended[number].set()
            return found

        monkeypatch.setattr(ForestGrowth, "tree", later)
        listener = Listener()
        RandomForestClassifier(8, n_jobs=3).fit(*IRIS, callbacks=[listener])
        assert listener.heard == words(0, 8)

    def test_several(self):
        book = []
        listeners = [Listener(name="a ", book=book), Listener(name="b ", book=book)]
        RandomForestClassifier(2).fit(*IRIS, callbacks=listeners)
        assert book == [
            *("a begin", "b begin"),
            *("a tree 0", "b tree 0", "a tree 1", "b tree 1"),
            *("b end", "a end"),
        ]

    def test_trees_as_estimators(self):
        X, y = IRIS
        found = {}

        class Tree(Callback):
            def on_tree_end(self, fit, number):
                assert not hasattr(fit.estimator, "forest_")
                found[number] = fit.tree(number)

        forest = RandomForestClassifier(4, random_state=0).fit(X, y, callbacks=[Tree()])
        for number, tree in found.items():
            assert isinstance(tree, DecisionTreeClassifier)
            np.testing.assert_array_equal(tree.predict_proba(X), forest[number].predict_proba(X))

    def test_a_validation_set_stops_a_fit(self):
        X, y = IRIS

        class Good(Callback):
            def on_fit_begin(self, fit):
                self.total = 0

            def on_tree_end(self, fit, number):
                self.total += fit.tree(number).predict_proba(X[1::2])
                return np.mean(self.total.argmax(axis=1) == y[1::2]) > 0.93

        forest = RandomForestClassifier(500, random_state=0).fit(X[::2], y[::2], callbacks=[Good()])
        assert forest.n_estimators_ < 100
        assert forest.score(X[1::2], y[1::2]) > 0.93


class TestStopping:
    @pytest.mark.one_of(8)
    @pytest.mark.parametrize("n_jobs", [1, 2, 5])
    @pytest.mark.parametrize("stop", [0, 6, 29])
    @pytest.mark.parametrize(("kind", "data"), KINDS)
    def test_keeps_the_trees_so_far(self, kind, data, stop, n_jobs):
        listeners = [Listener(stop), Listener()]
        forest = kind(30, random_state=0, n_jobs=n_jobs).fit(*data, callbacks=listeners)
        assert [listener.heard for listener in listeners] == [words(0, stop + 1)] * 2
        assert forest.n_estimators_ == len(forest.estimators_) == stop + 1
        assert forest.n_estimators == 30
        alone = kind(stop + 1, random_state=0).fit(*data)
        assert_same(forest.forest_.trees, alone.forest_.trees)
        np.testing.assert_array_equal(forest.predict(data[0]), alone.predict(data[0]))

    def test_out_of_bag_is_that_of_the_trees_that_are_kept(self):
        forest = RandomForestClassifier(90, random_state=0, oob_score=True, n_jobs=2)
        forest.fit(*IRIS, callbacks=[Listener(39)])
        alone = RandomForestClassifier(40, random_state=0, oob_score=True).fit(*IRIS)
        np.testing.assert_array_equal(forest.oob_decision_function_, alone.oob_decision_function_)
        assert forest.oob_score_ == alone.oob_score_

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_few_trees_are_wasted(self, n_jobs, monkeypatch):
        grown = []
        grow = ForestGrowth.tree

        def tree(self, number, *others):
            grown.append(number)
            return grow(self, number, *others)

        monkeypatch.setattr(ForestGrowth, "tree", tree)
        RandomForestClassifier(500, n_jobs=n_jobs).fit(*IRIS, callbacks=[Listener(2)])
        assert len(grown) <= (3 if n_jobs == 1 else 2 + AHEAD * n_jobs)
        # nothing goes on behind our back
        assert "dtrees-carry" not in [thread.name for thread in threading.enumerate()]

    def test_trees_that_grow_are_given_up(self, monkeypatch):
        grown = []
        grow = ForestGrowth.tree

        def tree(self, number, *others):
            for _ in range(1 if number == 0 else 60):  # however late it is told
                found = grow(self, number, *others)
            grown.append(number)
            return found

        monkeypatch.setattr(ForestGrowth, "tree", tree)
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(50_000, 20)), rng.normal(size=50_000)
        forest = RandomForestRegressor(100, n_jobs=2, random_state=0)
        forest.fit(X, y, callbacks=[Listener(0)])
        assert forest.n_estimators_ == 1
        assert grown == [0]


class TestWarmStart:
    def test_only_new_trees_are_heard_of(self):
        listener = Listener()
        forest = RandomForestClassifier(3, warm_start=True, random_state=0).fit(*IRIS)
        forest.set_params(n_estimators=7).fit(*IRIS, callbacks=[listener])
        assert listener.heard == words(3, 7)
        assert listener.numbers == range(3, 7)

    @pytest.mark.filterwarnings("ignore:Warm-start fitting without increasing")
    def test_nothing_to_grow(self):
        listener = Listener()
        forest = RandomForestClassifier(3, warm_start=True, random_state=0).fit(*IRIS)
        forest.fit(*IRIS, callbacks=[listener])
        assert listener.heard == ["begin", "end"]

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_a_fit_that_was_stopped_goes_on(self, n_jobs):
        forest = RandomForestClassifier(20, warm_start=True, random_state=0, n_jobs=n_jobs)
        forest.fit(*IRIS, callbacks=[Listener(4)])
        assert forest.n_estimators_ == 5
        listener = Listener()
        forest.fit(*IRIS, callbacks=[listener])
        assert listener.heard == words(5, 20)
        whole = RandomForestClassifier(20, random_state=0).fit(*IRIS)
        assert_same(forest.forest_.trees, whole.forest_.trees)


class TestErrors:
    @pytest.mark.parametrize("n_jobs", [1, 2])
    @pytest.mark.parametrize("fail", ["begin", "tree 0", "tree 5", "end"])
    def test_leave_the_estimator_unfitted(self, fail, n_jobs):
        before, failing, behind = Listener(), Listener(fail=fail), Listener()
        forest = RandomForestClassifier(10, n_jobs=n_jobs)
        untouched = dict(vars(forest))
        with pytest.raises(ZeroDivisionError, match=fail):
            forest.fit(*IRIS, callbacks=[before, failing, behind])
        assert vars(forest) == untouched
        assert before.heard[-1] == "end"
        assert isinstance(before.error, ZeroDivisionError)
        assert failing.heard[-1] == ("begin" if fail == "begin" else "end")
        assert (behind.heard == []) == (fail == "begin")
        assert behind.heard[-1:] in ([], ["end"])

    @pytest.mark.parametrize("fail", ["tree 1", "end"])
    def test_leave_a_fitted_estimator_as_it_was(self, fail):
        X, y = IRIS
        forest = RandomForestClassifier(3, random_state=0, oob_score=True)
        with pytest.warns(UserWarning, match="do not have OOB"):
            forest.fit(X, y)
        before = dict(vars(forest))
        with pytest.raises(ZeroDivisionError):
            forest.set_params(n_estimators=60).fit(X, y, callbacks=[Listener(fail=fail)])
        assert vars(forest) == {**before, "n_estimators": 60}

    def test_an_error_in_a_tree_is_heard_of(self, monkeypatch):
        def tree(self, number, *others):
            raise MemoryError("none left")

        monkeypatch.setattr(ForestGrowth, "tree", tree)
        listener = Listener()
        with pytest.raises(MemoryError):
            RandomForestClassifier(10, n_jobs=2).fit(*IRIS, callbacks=[listener])
        assert listener.heard == ["begin", "end"]
        assert isinstance(listener.error, MemoryError)
        assert not listener.is_fitted

    def test_bad_input_is_not_heard_of(self):
        listener = Listener()
        with pytest.raises(ValueError, match="n_estimators"):
            RandomForestClassifier(0).fit(*IRIS, callbacks=[listener])
        with pytest.raises(ValueError, match="inconsistent"):
            RandomForestClassifier().fit(IRIS[0], IRIS[1][1:], callbacks=[listener])
        assert listener.heard == []

    @pytest.mark.parametrize(
        ("callbacks", "message"),
        [
            ([Callback], r"must be a sequence of .* got <class .*> in it. Did you mean Callback\("),
            ([print], "got <built-in function print> in it"),
            (
                [Foreign()],
                r"in it\. To end a fit early, set n_iter_no_change \(boosting\) or oob_tol",
            ),
            (Callback(), "Put it in a list"),
        ],
    )
    def test_what_is_no_callback(self, callbacks, message):
        with pytest.raises(TypeError, match=message):
            RandomForestClassifier(2).fit(*IRIS, callbacks=callbacks)


class TestEstimator:
    def test_through_a_pipeline(self):
        listener = Listener()
        pipeline = make_pipeline(StandardScaler(), RandomForestClassifier(3))
        pipeline.fit(*IRIS, randomforestclassifier__callbacks=[listener])
        assert listener.heard == words(0, 3)


@contextmanager
def without(name):
    """The module cannot be found, as if it were not installed."""
    kept = {key: sys.modules.pop(key) for key in list(sys.modules) if key.split(".")[0] == name}
    sys.modules[name] = None
    try:
        yield
    finally:
        del sys.modules[name]
        sys.modules.update(kept)


class TestProgressBar:
    def terminal(self, **parameters):
        console = pytest.importorskip("rich.console")
        return console.Console(file=io.StringIO(), width=120, **parameters)

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_in_a_terminal(self, n_jobs, monkeypatch):
        monkeypatch.setenv("TERM", "xterm")
        console = self.terminal(force_terminal=True)
        bar = ProgressBar(console)
        RandomForestClassifier(30, n_jobs=n_jobs).fit(*IRIS, callbacks=[bar])
        shown = console.file.getvalue()
        assert "growing trees" in shown
        assert "30/30" in shown
        assert "\x1b[?25h" in shown  # the cursor is shown again
        RandomForestClassifier(7).fit(*IRIS, callbacks=[bar])  # once more
        assert "7/7" in console.file.getvalue()

    def test_in_a_file(self):
        console = self.terminal()
        RandomForestClassifier(30).fit(*IRIS, callbacks=[ProgressBar(console)])
        assert console.file.getvalue().count("30/30") == 1  # one line, and no control characters
        assert "\x1b" not in console.file.getvalue()

    @pytest.mark.parametrize(("end", "word"), [(Listener(3), "stopped"), (None, "failed")])
    def test_says_how_it_ended(self, end, word):
        console = self.terminal()
        bar = ProgressBar(console)
        if end is None:
            with pytest.raises(ZeroDivisionError):
                RandomForestClassifier(9).fit(*IRIS, callbacks=[bar, Listener(fail="tree 3")])
        else:
            RandomForestClassifier(9).fit(*IRIS, callbacks=[bar, end])
        assert word in console.file.getvalue()
        assert "4/9" in console.file.getvalue()

    def test_shows_the_score(self):
        console = self.terminal()
        forest = RandomForestClassifier(60, oob_tol=0.0, random_state=0)
        forest.fit(*IRIS, callbacks=[ProgressBar(console)])
        assert f"OOB {forest.oob_score_:.4f}" in console.file.getvalue()

    def test_without_rich_lines_are_logged(self, caplog):
        with without("rich"), caplog.at_level(logging.INFO, "dtrees.callbacks"):
            RandomForestClassifier(200, verbose=1).fit(*IRIS)
            RandomForestClassifier(3, verbose=1).fit(*IRIS)
        lines = [record.getMessage().strip() for record in caplog.records]
        assert "pip install rich" in lines[0]
        assert lines[1] == "20 of 200 trees grown"
        assert lines[10] == "200 of 200 trees grown"
        assert lines[12:] == [f"{i} of 3 trees grown" for i in (1, 2, 3)]

    @pytest.mark.one_of(3)
    @pytest.mark.parametrize("verbose", [0, 1, 2])
    def test_verbose_writes_to_the_standard_error_stream(self, verbose):
        pytest.importorskip("rich")
        program = (
            "import warnings; warnings.simplefilter('error')\n"
            "from dtrees import RandomForestClassifier\n"
            f"RandomForestClassifier(5, verbose={verbose}).fit([[0], [1]] * 4, [0, 1] * 4)"
        )
        done = run_forked("-c", program, COLUMNS="120")
        assert done.returncode == 0, done.stderr
        assert done.stdout == ""
        assert ("5/5" in done.stderr) == (verbose > 0)
        assert verbose > 0 or done.stderr == ""


class TestBar:
    """Trees that are counted without a fit."""

    def test_grows_with_what_is_expected(self):
        console = pytest.importorskip("rich.console").Console(file=io.StringIO(), width=120)
        with Bar(console) as bar:
            bar.expect(10)
            bar.advance(10)
            bar.expect(30)
            bar.advance(29)
            bar.advance(1, "the last one")
        assert "growing trees" in console.file.getvalue()
        assert "40/40 the last one" in console.file.getvalue()


@pytest.mark.parametrize("answer", [5, "stop", np.int64(1), [True]])
def test_nothing_but_true_stops(answer):
    class Talkative(Callback):
        def on_tree_end(self, fit, number):
            return answer

    forest = RandomForestClassifier(4, random_state=0).fit(*IRIS, callbacks=[Talkative()])
    assert len(forest.estimators_) == 4
    answer = np.True_
    assert len(forest.fit(*IRIS, callbacks=[Talkative()]).estimators_) == 1
