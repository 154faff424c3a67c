"""A boosted model: trees that follow each other, and the steps of their leaves."""

import pickle
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.coding import CodeBook
from dtrees.core.data.rules import BoostingRules
from dtrees.core.grow import boosting
from dtrees.core.grow._boosted_rows import RowDraws
from dtrees.core.grow.boosting import (
    BoostedRows,
    Growing,
    bounds_of_nodes,
    few_bits,
    levels,
    stretches,
    within,
)
from dtrees.core.grow.node_record import RECORD, PartialTree
from dtrees.core.losses.losses import NUMBERS
from dtrees.core.predict.binned import CodedRows
from dtrees.core.predict.raw import leaves_by_tree
from dtrees.typing import serial
from tests.core.grow.boosted_cases import boost_by_members, random_columns, table_of
from tests.oracle.boosting import Rules, boost

pd = pytest.importorskip("pandas")


SMOOTH = {"path_smooth": 8.0, "min_split_gain": 0.1}


def columns_of(trees):
    """Columns of the splits of each tree, sorted."""
    return [sorted(tree.feature[tree.feature >= 0].tolist()) for tree in trees]


@given(
    seed=st.integers(0, 1000),
    loss=st.sampled_from(["log_loss", "squared_error"]),
    leaves=st.sampled_from([2, 4, 31]),
    min_rows=st.sampled_from([1, 3]),
    l2=st.sampled_from([0.0, 0.75]),
    least=st.sampled_from([1e-3, 0.6, 3.0]),
    weighted=st.booleans(),
    own=st.fixed_dictionaries(
        {},
        optional={
            "min_split_gain": st.sampled_from([0.01, 0.3]),
            "min_samples_split": st.sampled_from([5, 11]),
            "l1_regularization": st.sampled_from([0.05, 0.9]),
            "max_delta_step": st.sampled_from([0.1, 0.7]),
            "path_smooth": st.sampled_from([0.5, 20.0]),
        },
    ),
)
def test_the_slow_model(seed, loss, leaves, min_rows, l2, least, weighted, own):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 40))
    columns = random_columns(rng, n, int(rng.integers(1, 4)))
    is_classes = loss == "log_loss"
    y = rng.integers(0, 2, n) if is_classes else rng.normal(size=n)  # no gains tie by chance
    if is_classes:
        y[:2] = 0, 1
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    kind = GradientBoostingClassifier if is_classes else GradientBoostingRegressor
    rules = {"max_leaf_nodes": leaves, "min_samples_leaf": min_rows, "l2_regularization": l2}
    rules |= {"min_child_weight": least, **own}
    model = kind(max_iter=3, max_bins=None, **rules)
    model.fit(table_of(columns), y, weight)
    raw, used = boost(
        columns, y.astype(float).tolist(), loss, float(model._initial[0]), Rules(**rules), weight
    )
    assert columns_of(model.forest_.trees) == [sorted(each) for each in used]
    found = model._predictor().raw(model._predictor().check(table_of(columns)))[:, 0]
    np.testing.assert_allclose(found, raw, rtol=1e-10, atol=1e-12)


@given(
    seed=st.integers(0, 1000),
    loss=st.sampled_from(["log_loss", "squared_error"]),
    penalty=st.sampled_from([0.0, 0.1, 1.0]),
    weighted=st.booleans(),
    missing=st.booleans(),
    own=st.sampled_from([{}, {"l1_regularization": 2.0}, {"max_delta_step": 0.2}, SMOOTH]),
)
def test_many_categories(seed, loss, penalty, weighted, missing, own):
    rng = np.random.default_rng(seed)
    n = 200
    names = [f"c{k:02d}" for k in range(int(rng.integers(12, 24)))]
    column = [names[int(k)] for k in rng.beta(1, 2, n) * len(names)]  # of few rows and of many
    value = {name: rng.normal() for name in names}
    noise = rng.normal(size=n)
    y = np.array([value[name] for name in column]) + noise
    if missing:
        column[::9] = [None] * len(column[::9])
    is_classes = loss == "log_loss"
    y = (y > 0).astype(int) if is_classes else y.round(2)
    columns = [column, noise.round().tolist()]
    weight = rng.integers(1, 4, n).astype(float) if weighted else None
    kind = GradientBoostingClassifier if is_classes else GradientBoostingRegressor
    rules = {"max_leaf_nodes": 5, "min_samples_leaf": 3, "category_penalty": penalty, **own}
    model = kind(max_iter=2, max_bins=None, **rules).fit(table_of(columns), y, weight)
    start = float(model._initial[0])
    raw, used = boost(columns, y.astype(float).tolist(), loss, start, Rules(2, **rules), weight)
    assert columns_of(model.forest_.trees) == [sorted(each) for each in used]
    found = model._predictor().raw(model._predictor().check(table_of(columns)))[:, 0]
    np.testing.assert_allclose(found, raw, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", [GradientBoostingClassifier, GradientBoostingRegressor])
def test_many_categories_that_say_nothing_are_left_alone(kind):
    """A column of names would win by what it fits by chance."""
    rng = np.random.default_rng(3)
    n = 6000
    name = [f"n{k}" for k in rng.integers(0, 150, n)]
    number = rng.normal(size=n)
    y = 0.4 * number + rng.normal(size=n)
    y = y > 0 if kind is GradientBoostingClassifier else y
    table = table_of([name, number.tolist()])
    models = [kind(category_penalty=p).fit(table[::2], y[::2]) for p in (0.0, 1.0)]
    free, paid = (model.feature_importances_[0] for model in models)
    assert paid < free / 1.5
    free, paid = (model.score(table[1::2], y[1::2]) for model in models)
    assert paid > free + 0.01


def test_many_small_categories_that_say_all_are_told_apart():
    """Each has less rows than one that is parted by itself: the column pays, and is worth it."""
    rng = np.random.default_rng(4)
    names = rng.integers(0, 200, 2400)
    y = rng.normal(size=200)[names] + 0.1 * rng.normal(size=2400)
    table = table_of([[f"n{k}" for k in names]])
    model = GradientBoostingRegressor().fit(table[::2], y[::2])
    assert model.score(table[1::2], y[1::2]) > 0.9


class TestTrees:
    """Trees of steps are trees of numbers."""

    def model(self, **parameters):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(300, 4)), rng.normal(size=300)
        return GradientBoostingRegressor(max_iter=4, **parameters).fit(X, y), X, y

    def test_a_parent_has_the_sums_of_its_children(self):
        model, *_ = self.model()
        for tree in model.forest_.trees:
            inner = tree.feature >= 0
            left, right = tree.children_left[inner], tree.children_right[inner]
            np.testing.assert_array_equal(
                tree.statistics[inner], tree.statistics[left] + tree.statistics[right]
            )
            assert tree.statistics[0, 0] == 300

    def test_the_mean_step_of_squared_errors_is_zero(self):
        model, *_ = self.model(l2_regularization=0)
        for tree in model.forest_.trees:
            assert abs(tree.value[0, 0]) < 1e-7

    def test_rows_are_moved_by_what_is_stored(self):
        """The next tree is grown to what predictions of the others leave."""
        model, X, y = self.model()
        few = GradientBoostingRegressor(max_iter=1).fit(X, y - model.predict(X) + y.mean())
        more = GradientBoostingRegressor(max_iter=5).fit(X, y)
        assert few.forest_[0].feature.tolist() == more.forest_[4].feature.tolist()


class TestLargestStep:
    """A step of a logarithm has a bound, so rare classes do not drive models out of the world."""

    def test_the_slow_model_of_a_rare_class(self):
        x = [float(i) for i in range(60)]
        y = np.array([1] + [0] * 59)
        rules = Rules(l2_regularization=0)
        raw, _ = boost([x], y.astype(float).tolist(), "log_loss", np.log(1 / 59), rules)
        assert max(raw) == pytest.approx(np.log(1 / 59) + 3 * 0.1 * 8)  # the bound was met
        model = GradientBoostingClassifier(
            max_iter=3, min_samples_leaf=1, l2_regularization=0, max_bins=None
        )
        found = model.fit(np.array(x)[:, None], y).decision_function(np.array(x)[:, None])
        np.testing.assert_allclose(found, raw, rtol=1e-10)

    @pytest.mark.parametrize("loss", ["poisson", "gamma"])
    def test_numbers_of_many_sizes(self, loss):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 3))
        y = 10.0 ** np.where(X[:, 0] > 1.5, 6, -2)
        model = GradientBoostingRegressor(loss=loss, max_iter=3, min_samples_leaf=2).fit(X, y)
        steps = np.abs([np.ptp(tree.value) for tree in model.forest_.trees])
        assert steps.max() <= 2 * 0.8
        assert max(abs(tree.value).max() for tree in model.forest_.trees) == pytest.approx(0.8)

    def test_rows_of_rare_classes(self):
        """Half of the rows are held out; without a bound their mean loss is above 20."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(6000, 6))
        y = np.digitize(X[:, 0], [-3.0, -0.8, 1.0, 2.6]) + (rng.random(6000) < 0.002)
        model = GradientBoostingClassifier().fit(X[:3000], y[:3000])
        assert log_loss(y[3000:], model.predict_proba(X[3000:]), labels=model.classes_) < 0.1


class TestSubsample:
    """Trees are grown from the rows that are drawn, and move all of them."""

    RNG = np.random.default_rng(0)
    X, Y = RNG.normal(size=(300, 3)), RNG.normal(size=300)

    def model(self, **parameters):
        how = {"max_iter": 4, "max_leaf_nodes": 5, "subsample": 0.5, "random_state": 1}
        return GradientBoostingRegressor(**{**how, **parameters})

    @given(seed=st.integers(0, 300), weighted=st.booleans())
    def test_steps_are_those_of_the_rows_that_are_drawn(self, seed, weighted):
        """And all rows are moved by what the model predicts for them, whatever columns hold."""
        rng = np.random.default_rng(seed)
        kinds = "numbers", "missing", "categories", "mixed"
        table = table_of(random_columns(rng, 60, 3, kinds))
        y = rng.normal(size=60)
        weight = rng.integers(1, 4, 60).astype(float) if weighted else None
        model = self.model(
            min_samples_leaf=2, l2_regularization=0, random_state=seed, max_bins=None
        )
        model.fit(table, y, weight)
        before, draws = np.full(60, model._initial[0]), RowDraws(60)
        checked = model.codebook_.check(table)
        leaves = leaves_by_tree(model.forest_.trees, model.codebook_, checked, serial)
        stages = model.staged_predict(table)
        for number, (after, leaf) in enumerate(zip(stages, leaves, strict=True)):
            draws.draw(model._fit_seed, number, 0.5)
            assert model.forest_[number].n_node_samples[0] == draws.n_drawn
            for each in np.unique(leaf):
                own = draws.drawn[leaf[draws.drawn] == each]
                assert len(own) == model.forest_[number].n_node_samples[each]
                of_own = None if weight is None else weight[own]
                mean = np.average(y[own] - before[own], weights=of_own)
                assert (after - before)[leaf == each] == pytest.approx(0.1 * mean, abs=1e-7)
            before = after

    @pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
    def test_threads_storage_and_rows_without_weight_change_nothing(self, loss):
        table = np.where(np.abs(self.X) < 0.7, 0.0, self.X.round(1))
        model = self.model(loss=loss).fit(table, self.Y)
        more, y = np.vstack([table, table[:50]]), np.append(self.Y, np.zeros(50))
        weight = np.append(np.ones(300), np.zeros(50))
        for other in (
            self.model(loss=loss, n_jobs=2).fit(table, self.Y),
            self.model(loss=loss).fit(sp.csr_array(table), self.Y),
            self.model(loss=loss).fit(more, y, weight),
        ):
            for tree, own in zip(other.forest_.trees, model.forest_.trees, strict=True):
                assert tree.equals(own)

    def test_a_share_of_next_to_nothing(self):
        model = self.model(subsample=1e-9, max_iter=3).fit(self.X, self.Y)
        assert [tree.node_count for tree in model.forest_.trees] == [1] * 3

    def test_classes_share_the_rows_of_an_iteration(self):
        y = np.digitize(self.Y, [-0.5, 0.5])
        model = GradientBoostingClassifier(max_iter=3, subsample=0.5, random_state=1)
        sizes = [tree.n_node_samples[0] for tree in model.fit(self.X, y).forest_.trees]
        assert sizes[0:9:3] == sizes[1:9:3] == sizes[2:9:3]
        assert len(set(sizes)) > 1


def test_a_cancelled_growth_ends():
    book, coded = CodeBook.fit_encode(np.arange(100.0)[:, None])
    growing = Growing(NUMBERS["squared_error"], np.zeros(1), BoostingRules(), 0.1, 10)
    asked = []

    def cancelled():
        asked.append(1)
        return len(asked) > 3

    rows = BoostedRows(coded, np.arange(100.0))
    assert len(boosting.boost(rows, growing, book.thresholds, serial, 1, cancelled)) == 3


N = 60
RNG = np.random.default_rng(0)
X = RNG.integers(0, 9, (N, 3)).astype(float)
Y = RNG.normal(size=N)


def made(loss="squared_error", weight=None, **rules):
    """A tree, raw predictions that it has moved, and the rows of its leaves."""
    book, coded = CodeBook.fit_encode(X, max_bins=None)
    own = BoostingRules(min_samples_leaf=4, max_leaf_nodes=6, **rules)
    growing, moved = Growing(NUMBERS[loss], np.zeros(1), own, 0.1, 1), []
    rows = BoostedRows(coded, Y, weight)
    (tree,) = boosting.boost(
        rows, growing, book.thresholds, serial, watch=lambda trees, raw: moved.append(raw[0])
    )
    leaf = CodedRows(coded).leaves(tree, np.arange(N))
    return tree, moved[0], {node: np.flatnonzero(leaf == node) for node in set(leaf.tolist())}


@pytest.mark.parametrize("weight", [None, RNG.integers(1, 5, N)])
def test_a_step_is_minus_gradient_by_hessian(weight):
    tree, raw, leaves = made(weight=weight)
    assert len(leaves) == 6
    for leaf, rows in leaves.items():
        of_rows = None if weight is None else weight[rows]
        step = 0.1 * np.average(Y[rows], weights=of_rows)
        np.testing.assert_allclose(tree.value[leaf], step, atol=1e-6)
        assert (raw[rows] == tree.value[leaf]).all()
        assert tree.statistics[leaf, 0] == (len(rows) if weight is None else of_rows.sum())


def test_medians_are_those_of_the_rows():
    _, raw, leaves = made("absolute_error")
    assert len(leaves) > 1
    for rows in leaves.values():
        np.testing.assert_allclose(raw[rows], 0.1 * np.median(Y[rows]), atol=1e-9)


def test_monotonic_steps_rise():
    tree, raw, _ = made(monotonic=(1, 0, 0))
    assert tree.node_count > 1
    for others in np.unique(X[:, 1:], axis=0):
        own = np.flatnonzero((X[:, 1:] == others).all(axis=1))
        assert (np.diff(raw[own[np.argsort(X[own, 0])]]) >= 0).all()


def piece_of(children, columns):
    """A tree; children : {node: (left, right)}, columns: {node: column}."""
    n = 1 + 2 * len(children)
    nodes = np.zeros(n, dtype=RECORD)
    nodes["left"] = nodes["right"] = -1
    for node, (left, right) in children.items():
        nodes["left"][node], nodes["right"][node] = left, right
        nodes["column"][node] = columns[node]
    return PartialTree(nodes, np.zeros((n, 2), dtype=np.int64), np.zeros(0, dtype=np.uint64))


TREE = piece_of({0: (1, 2), 2: (3, 4), 4: (5, 6)}, {0: 0, 2: 1, 4: 2})
VALUES = np.array([0.0, 1.0, 3.0, 1.0, 7.0, 9.0, 5.0])


def test_bounds():
    lower, upper = bounds_of_nodes(TREE, VALUES, (1, 0, -1))
    # 2 between 1 and 3; column 1 has no direction; 4 is split at 7, where its left child is above
    assert lower.tolist() == [-np.inf, -np.inf, 2, 2, 2, 7, 2]
    assert upper.tolist() == [np.inf, 2, np.inf, np.inf, np.inf, np.inf, 7]


def test_values_beyond_bounds_count_as_the_bounds():
    values = np.array([0.0, 1.0, 3.0, 1.0, 7.0, 1.5, 1.0])
    lower, upper = bounds_of_nodes(TREE, values, (1, 0, -1))
    assert lower[5] == upper[6] == 2


def test_stretches():
    leaves = np.array([[1, 6, 4], [3, 0, 2], [5, 5, 1], [6, 2, 3]])
    first, n = stretches(TREE, leaves)
    assert first.tolist() == [0, 6, 0, 0, 2, 5, 2]
    assert n.tolist() == [10, 4, 6, 2, 4, 1, 3]


def test_levels():
    by_depth = [[each.tolist() for each in level] for level in levels(TREE)]
    assert by_depth == [[[0], [1], [2]], [[2], [3], [4]], [[4], [5], [6]]]
    assert levels(piece_of({}, {})) == []


@given(st.lists(st.integers(1, 2**56), min_size=1, max_size=8))
def test_few_bits(weights):
    weights = np.array(weights, dtype=np.int64)
    rounded = few_bits(weights)
    assert (rounded > 0).all()
    unit = 2 ** max(0, int(weights.sum()).bit_length() - 29)
    assert (rounded % unit == 0).all()
    assert (np.abs(rounded - weights) <= unit).all()


def stored(steps, weights):
    """Steps as a tree has them: quotients of integers."""
    exponent = 61 - np.frexp(np.abs(steps).max() * weights.sum())[1]
    weighted = np.rint(np.ldexp(steps * weights, exponent)).astype(np.int64)
    return weighted * 2.0**-exponent / weights


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.integers(1, 2**50)), min_size=2, max_size=20),
    st.floats(-9, 9),
)
def test_leaves_on_both_sides_of_a_bound(leaves, bound):
    steps, weights = map(np.array, zip(*leaves, strict=True))
    is_low = np.arange(len(steps)) % 2 == 0
    lower, upper = np.where(is_low, -np.inf, bound), np.where(is_low, bound, np.inf)
    found = stored(within(steps, lower, upper), few_bits(weights))
    assert found[is_low].max() <= found[~is_low].min()


@pytest.mark.parametrize("bound", [0.1, -3.7, 12345.678])
def test_all_leaves_at_a_bound_have_one_step(bound):
    rng = np.random.default_rng(0)
    weights = few_bits(rng.integers(1, 2**40, 50))
    steps = within(np.full(50, bound + 1), np.full(50, -np.inf), np.full(50, bound))
    assert set(stored(steps, weights).tolist()) == {steps[0]}
    assert steps[0] == pytest.approx(bound, rel=1e-6)


LOSSES = {
    "log_loss": {},
    "three classes": {},
    "squared_error": {},
    "absolute_error": {},
    "quantile": {"quantile": 0.8},
    "huber": {},
    "poisson": {},
    "tweedie": {},
}
OF_MEMBERS = {
    "plain": {},
    "draws": {"subsample": 0.6, "max_features": 0.5},
    "hardly a row": {"subsample": 1e-9},
    "smooth": {"path_smooth": 3.0, "l1_regularization": 0.1},
    "monotonic": {"monotonic_cst": "the first column"},
    "by depth": {"max_leaf_nodes": None, "max_depth": 4, "min_samples_leaf": 1}
    | {"min_samples_split": 15},
    "all thresholds": {"max_bins": None},
}


@given(
    seed=st.integers(0, 1000),
    n_members=st.integers(1, 4),
    loss=st.sampled_from(sorted(LOSSES)),
    rules=st.sampled_from(sorted(OF_MEMBERS)),
    weight=st.sampled_from([None, "counts", "fractions", "zeros", "of one"]),
    kind=st.sampled_from(["columns", "many categories", "sparse", "indicators"]),
    most_codes=st.sampled_from([0, boosting.WHOLE_CODES]),
)
@settings(max_examples=50)
def test_rows_may_be_in_several_places(seed, n_members, loss, rules, weight, kind, most_codes):
    """The trees of all members are those of one who has all rows, bit for bit."""
    rng = np.random.default_rng(seed)
    n = 300
    X = table_of(random_columns(rng, n, 3, ("numbers", "missing", "mixed")))
    X.insert(0, "x", rng.normal(size=n).round(1))
    if kind == "many categories":
        names = np.array([f"c{k:02d}" for k in range(30)])
        X["many"] = pd.Categorical(names[rng.integers(0, 30, n)])
    elif kind != "columns":
        X = sp.random(n, 30, density=0.1, random_state=seed, format="csr")
        X = sp.hstack([rng.normal(size=(n, 1)).round(1), X]).tocsr()
        X = X.toarray() > 0 if kind == "indicators" else X
    y = rng.normal(size=n) + (X.iloc[:, 0] if hasattr(X, "iloc") else rng.normal(size=n)) * 2
    is_classes = loss in ("log_loss", "three classes")
    if is_classes:
        y = np.digitize(y, np.quantile(y, [0.4, 0.7][: 1 + (loss != "log_loss")]))
    elif loss in ("poisson", "tweedie"):
        y = np.abs(y)
    weights = {
        "counts": rng.integers(1, 4, n).astype(float),
        "fractions": rng.random(n) + 0.01,
        "zeros": rng.integers(0, 2, n).astype(float),
    }
    owner = rng.integers(0, n_members, n)
    owner[:n_members] = np.arange(n_members)
    weights["of one"] = np.where(owner == 0, weights["counts"], 0)  # the others have no row of it
    own = {"max_leaf_nodes": 8, "min_samples_leaf": 3, **LOSSES[loss], **OF_MEMBERS[rules]}
    if rules == "monotonic":
        own["monotonic_cst"] = np.arange(X.shape[1]) == 0 if loss != "three classes" else None
    name = "log_loss" if is_classes else loss
    klass = GradientBoostingClassifier if is_classes else GradientBoostingRegressor
    model = klass(name, max_iter=3, early_stopping=False, random_state=seed, **own)
    given_to = {}

    def grow(rows, growing, thresholds, *others):
        given_to["it"] = rows, growing, thresholds
        return boosting.boost(rows, growing, thresholds, *others)

    with mock.patch("dtrees.estimators.boosting.boost", grow):
        model.fit(X, y, weights.get(weight))
    expected = pickle.dumps(list(model.forest_.trees))
    with mock.patch.object(boosting, "WHOLE_CODES", most_codes):
        for found in boost_by_members(owner, *given_to["it"]):
            assert pickle.dumps(found) == expected
