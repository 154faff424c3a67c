"""Models side by side: each is grown once, with the bits of models that grow alone."""

import threading
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from dtrees.coding import CodeBook
from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow import lockstep
from dtrees.core.grow._team import Team
from dtrees.core.grow.boosting import BoostedRows, Booster, Growing, boost
from dtrees.core.grow.lockstep import CommonBlocks, Model, TurnTaking, boost_together
from dtrees.core.losses.losses import CLASSES, NUMBERS
from dtrees.parallel import LocalRunner
from dtrees.typing import serial

LOSS = NUMBERS["squared_error"]


def table(n=400, n_columns=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_columns))
    book, coded = CodeBook.fit_encode(X, max_bins=16)
    return book, coded, X[:, 0] * X[:, 1] + rng.normal(size=n)


def model_of(coded, y, number):
    chosen = np.flatnonzero(np.arange(len(y)) % 3 != number).astype(np.uint32)
    growing = Growing(LOSS, np.zeros(1), BoostingRules(min_samples_leaf=5), 0.1, 4 + number)
    return Model(BoostedRows(coded, y, None, 1.0, chosen), growing)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_models_have_the_bits_of_models_that_grow_alone(n_threads):
    book, coded, y = table()
    found = {}

    def job(number):
        def grown(grow):
            found[number] = yield from grow(model_of(coded, y, number))

        return grown

    run = LocalRunner(n_threads) if n_threads > 1 else serial
    boost_together(coded, [job(number) for number in range(3)], book.thresholds, run, n_threads)
    for number, trees in found.items():
        model = model_of(coded, y, number)
        alone = boost(model.rows, model.growing, book.thresholds, serial)
        assert len(trees) == 4 + number
        assert [tree.value.tobytes() for tree in trees] == [tree.value.tobytes() for tree in alone]
    assert sorted(found) == [0, 1, 2]


@pytest.mark.parametrize("is_led", [False, True])
@pytest.mark.parametrize("subsample", [1.0, 0.5])
@pytest.mark.parametrize(("n_classes", "n_blocks"), [(2, 4), (3, 2)])
def test_one_model_has_all_threads(n_classes, n_blocks, subsample, is_led, monkeypatch):
    book, coded, y = table(n_columns=16)
    y = np.digitize(y, np.quantile(y, [0.3, 0.6][: n_classes - 1])).astype(np.uint8)
    chosen = np.flatnonzero(np.arange(len(y)) % 3).astype(np.uint32)
    initial, rules = np.zeros(1 if n_classes == 2 else 3), BoostingRules(min_samples_leaf=5)
    growing = Growing(CLASSES["log_loss"], initial, rules, 0.1, 5, subsample=subsample)
    model, found, made = Model(BoostedRows(coded, y, None, 1.0, chosen), growing), [], []

    def booster(rows, growing, team, blocks):
        made.append(blocks.n_blocks)
        return Booster(rows, growing, team, blocks)

    def job(grow):
        found.extend((yield from grow(model)))

    monkeypatch.setattr(lockstep, "Booster", booster)
    run = LocalRunner(4)
    boost_together(coded, [job], book.thresholds, run.led if is_led else run, 4)
    assert made == [n_blocks]
    alone = boost(model.rows, growing, book.thresholds, serial)
    assert [tree.value.tobytes() for tree in found] == [tree.value.tobytes() for tree in alone]


@pytest.mark.parametrize("n_iterations", [None, 0, 2])
def test_nobody_waits_for_a_model_that_fails(n_iterations):
    """At its call, before it grows, and while it does: those that help it, or would, end."""
    book, coded, y = table()

    def refused(grow):
        raise MemoryError("of a fit")

    def job(grow):
        if n_iterations == 0:
            raise MemoryError("of a fit")
        model = model_of(coded, y, 0)
        asked = []

        def watch(trees, raw):
            asked.append(trees)
            if len(asked) == n_iterations:
                raise MemoryError("of a fit")
            return False

        yield from grow(replace(model, watch=watch))

    before = set(threading.enumerate())
    jobs = [refused if n_iterations is None else job]
    with pytest.raises(MemoryError, match="of a fit"):
        boost_together(coded, jobs, book.thresholds, LocalRunner(3).led, 3)
    for thread in set(threading.enumerate()) - before:
        if thread.name.startswith("dtrees-"):
            thread.join(60)
            assert not thread.is_alive()


@pytest.mark.parametrize(("n_threads", "n_blocks"), [(1, 2), (2, 2), (4, 4)])
@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_threads_of_a_model_have_a_block_each(n_threads, n_blocks, subsample):
    _, coded, y = table(n_columns=16)
    model = model_of(coded, y, 0)
    model = Model(model.rows, replace(model.growing, subsample=subsample))
    assert CommonBlocks(coded, 1, n_threads).of_model(model)[1].n_blocks == n_blocks


@pytest.mark.parametrize("n_models", [1, 2])
def test_one_model_of_a_sparse_table_copies_its_rows(n_models, monkeypatch):
    X = scipy.sparse.random_array((400, 12), density=0.2, rng=0, format="csc")
    book, coded = CodeBook.fit_encode(X, max_bins=16)
    y, found, tables = X.sum(axis=1) + X[:, [3]].toarray().ravel(), [], []

    def job(grow):
        found.append((yield from grow(model_of(coded, y, 0))))

    def booster(rows, *others):
        tables.append(rows.coded)
        return Booster(rows, *others)

    monkeypatch.setattr(lockstep, "Booster", booster)
    boost_together(coded, [job] * n_models, book.thresholds, serial)
    assert [each is coded for each in tables] == [n_models > 1] * n_models
    model = model_of(coded, y, 0)
    alone = boost(model.rows, model.growing, book.thresholds, serial)
    for trees in found:
        assert [tree.value.tobytes() for tree in trees] == [tree.value.tobytes() for tree in alone]


def test_a_watch_ends_its_own_model():
    book, coded, y = table()
    heard, found = [], []

    def watched(grow):
        model = model_of(coded, y, 0)

        def watch(trees, raw):
            heard.append(raw.shape)

        found.append((yield from grow(Model(model.rows, model.growing, watch))))

    def stopped(grow):
        model = model_of(coded, y, 1)
        found.append((yield from grow(Model(model.rows, model.growing, lambda trees, raw: True))))

    boost_together(coded, [watched, stopped], book.thresholds, serial)
    assert [len(trees) for trees in found] == [4, 1]
    n_own = len(model_of(coded, y, 0).rows.chosen)
    assert heard == [(1, n_own)] * 4  # raw predictions of the rows of the model


def test_nothing_grows_once_it_is_cancelled():
    book, coded, y = table()
    found = []

    def job(grow):
        found.append((yield from grow(model_of(coded, y, 0))))

    boost_together(coded, [job], book.thresholds, serial, cancelled=lambda: True)
    assert found == [[]]


class TestTurns:
    """Models are generators, which yield at the end of a turn."""

    @staticmethod
    def grow(n_models, begin, n_threads=1, run=serial):
        team = Team()
        turns = TurnTaking(n_models, n_threads, begin, team)
        try:
            run([turns.lead, *[team.help] * (n_threads - 1)])
        finally:
            team.dismiss()

    @staticmethod
    def models(done, n_turns):
        def begin(number):
            for turn in range(n_turns):
                done.append((number, turn))
                yield

        return begin

    @pytest.mark.parametrize("n_models", [0, 1, 3])
    def test_one_thread_ends_a_model_before_the_next(self, n_models):
        done = []
        self.grow(n_models, self.models(done, 2))
        assert done == [(number, turn) for number in range(n_models) for turn in range(2)]

    def test_the_last_models_take_turns_where_threads_do_not_divide_them(self):
        done = []
        self.grow(5, self.models(done, 2), n_threads=2)
        assert done[:4] == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert done[4:] == [(2, 0), (3, 0), (4, 0), (2, 1), (3, 1), (4, 1)]

    @pytest.mark.parametrize("n_threads", [2, 3, 4])
    @pytest.mark.parametrize("n_models", [1, 3, 8, 11])
    def test_few_models_are_begun_and_none_is_led_twice_at_a_time(self, n_models, n_threads):
        lock, done = threading.Lock(), []
        begun, led, most = set(), set(), []

        def begin(number):
            for turn in range(20):
                with lock:
                    assert number not in led
                    led.add(number)
                    begun.add(number)
                    most.append(len(begun))
                done.append((number, turn))
                led.remove(number)
                yield
            begun.remove(number)

        self.grow(n_models, begin, n_threads, LocalRunner(n_threads))
        assert sorted(done) == [(number, turn) for number in range(n_models) for turn in range(20)]
        assert max(most) < 2 * n_threads

    def test_an_error_drops_the_other_models(self):
        done = []

        def begin(number):
            done.append((number, 0))
            yield
            if number == 0:
                raise MemoryError
            done.append((number, 1))

        with pytest.raises(MemoryError):
            self.grow(3, begin, n_threads=2)  # the others wait for their second turn
        assert done == [(0, 0), (1, 0), (2, 0)]
