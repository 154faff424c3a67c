"""Losses by name: where a model begins, what raw predictions mean, quantiles with weights."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_tweedie_deviance

from dtrees.core.grow._boosted_rows import RowDerivatives
from dtrees.core.grow._team import Team
from dtrees.core.losses.losses import (
    CLASSES,
    NUMBERS,
    OwnLoss,
    initial_of_classes,
    less_one,
    quantiles,
    shares_of_classes,
)
from dtrees.losses import Loss
from tests.members import together


def quantile_of(values, weight, level):
    """The quantile of one group."""
    return quantiles([values], [weight], level)[0]


@given(
    st.lists(
        st.tuples(
            st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
            | st.integers(-3, 3).map(float),
            st.integers(1, 3),
            st.integers(0, 2),
            st.integers(0, 1),
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([0.0, 0.1, 0.5, 0.77, 1.0]),
    st.booleans(),
)
def test_quantiles_are_the_same_wherever_the_rows_are(rows, level, weighted):
    values, weight, owner, group = (np.array(each) for each in zip(*rows, strict=True))

    def parts(own):
        values_of = [values[own & (group == g)] for g in range(2)]
        weights = [weight[own & (group == g)] if weighted else None for g in range(2)]
        return values_of, weights, level

    works = [lambda m, k=k: quantiles(*parts(owner == k), members=m) for k in range(3)]
    expected = quantiles(*parts(owner >= 0))
    for found in together(works):
        np.testing.assert_array_equal(found, expected)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.sampled_from([0.5, 0.1, 0.77]))
def test_a_quantile_is_that_of_numpy(values, level):
    values = np.array(values, dtype=float)
    wanted = np.quantile(values, level, method="averaged_inverted_cdf")
    assert quantile_of(values, None, level) == wanted


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 3)), min_size=1, max_size=20))
def test_a_row_of_weight_two_is_a_row_given_twice(rows):
    values, weight = np.array(rows).T
    values = values.astype(float)
    repeated = np.repeat(values, weight)
    for level in (0.0, 0.3, 0.5, 1.0):
        found = quantile_of(values, weight, level)
        assert found == quantile_of(repeated, None, level)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 1, 0, 3], [3, 1, 2, 0]])
def test_a_quantile_does_not_depend_on_the_order_of_rows(order):
    values, weight = np.array([0.0, 0.0, 0.0, 1.0]), np.array([1, 2, 3, 6])
    assert quantile_of(values[order], weight[order], 0.5) == 0.5


@pytest.mark.parametrize("n_classes", [1, 2, 3, 5])
def test_a_model_begins_with_the_shares_of_the_classes(n_classes):
    shares = np.arange(1.0, n_classes + 1)
    shares /= shares.sum()
    found = shares_of_classes(initial_of_classes(shares)[None, :])[0, :n_classes]
    np.testing.assert_allclose(found, shares, rtol=1e-14)


def test_a_class_of_next_to_no_weight_begins_with_a_finite_number():
    assert np.isfinite(initial_of_classes(np.array([1.0, 0.0, 0.0]))).all()
    assert np.isfinite(initial_of_classes(np.array([1.0, 0.0]))).all()


@pytest.mark.parametrize(
    ("name", "begins", "predicts"),
    [
        ("squared_error", 3.0, 3.0),
        ("absolute_error", 2.0, 2.0),
        ("quantile", 2.0, 2.0),
        ("huber", 2.0, 2.0),
        ("poisson", np.log(3.0), 3.0),
        ("gamma", np.log(3.0), 3.0),
        ("tweedie", np.log(3.0), 3.0),
    ],
)
def test_numbers_begin_with_what_they_predict_best(name, begins, predicts):
    y = np.array([1.0, 2.0, 6.0])
    initial = NUMBERS[name].initial(y, None, 3.0)
    assert initial == pytest.approx(begins)
    assert NUMBERS[name].predictions(np.array([initial])) == pytest.approx(predicts)


class TestHuber:
    LOSS = NUMBERS["huber"]

    @pytest.mark.parametrize("weight", [None, np.ones(101, dtype=np.int64)])
    def test_rows_that_are_predicted_have_no_part_in_a_width_of_zero(self, weight):
        y = np.r_[np.zeros(91), np.arange(1.0, 11)]
        assert self.LOSS.with_width(y, 0.0, weight).width == 9.5
        assert self.LOSS.with_width(np.zeros(101), 0.0, weight).width == 0

    def test_its_width_is_a_quantile_of_absolute_residuals(self):
        y, raw = np.arange(10.0), np.full(10, 4.0)
        assert self.LOSS.with_width(y, raw, None).width == np.quantile(
            np.abs(y - 4), 0.9, method="averaged_inverted_cdf"
        )

    def test_a_step_is_friedmans(self):
        """Algorithm 4: the median, and the mean of what is beyond it, cut at the width."""
        residuals = np.array([-1.0, 0.0, 1.0, 2.0, 50.0])
        loss = replace(self.LOSS, width=3.0)
        assert loss.steps([residuals], [None]) == pytest.approx(1 + (-2 - 1 + 0 + 1 + 3) / 5)
        weight = np.array([1, 1, 3, 1, 1])
        repeated = np.repeat(residuals, weight)
        assert loss.steps([residuals], [weight]) == loss.steps([repeated], [None])

    @given(st.permutations(range(9)))
    def test_a_step_does_not_depend_on_the_order(self, order):
        residuals = np.array([0.1, 0.2, 0.3, 1e9, -1e-9, 7.7, -1e5, 3.3, 0.7])
        loss = replace(self.LOSS, width=1e6)
        assert loss.steps([residuals[list(order)]], [None]) == loss.steps([residuals], [None])

    def test_of_a_row(self):
        loss = replace(self.LOSS, width=2.0)
        raw = np.array([[0.0], [0.0], [0.0]])
        for y, wanted in ((1.0, 0.5), (2.0, 2.0), (-5.0, 8.0)):
            assert loss.mean(np.full(3, y), raw, None) == pytest.approx(wanted)


@given(st.floats(1.01, 1.99), st.lists(st.floats(-3, 3), min_size=1, max_size=5))
def test_the_loss_of_tweedie_is_half_a_deviance_but_for_a_constant(power, raw):
    y, loss = np.array([0.0, 0.5, 3.0]), replace(NUMBERS["tweedie"], power=power)
    rest = [
        mean_tweedie_deviance(y, np.full(3, np.exp(one)), power=power) / 2
        - loss.mean(y, np.full((3, 1), one), None)
        for one in raw
    ]
    assert np.ptp(rest) <= 1e-9 * np.abs(rest).max()


@pytest.mark.parametrize("gap", [2.0**-52, 1e-9])
@given(st.lists(st.floats(-30, 30), min_size=1, max_size=5))
def test_near_1_and_2_it_is_that_of_poisson_and_gamma_but_for_a_constant(gap, raw):
    raw, y = np.array(raw)[:, None], np.linspace(0, 7, len(raw))
    of_1, of_2 = (replace(NUMBERS["tweedie"], power=power) for power in (1 + gap, 2 - gap))
    poisson, gamma = (NUMBERS[name].mean(y, raw, None) for name in ("poisson", "gamma"))
    assert of_1.mean(y, raw, None) == pytest.approx(poisson - 1, rel=1e-5, abs=1e-6)
    assert of_2.mean(y, raw, None) == pytest.approx(gamma - y.mean(), rel=1e-5, abs=1e-6)


@given(st.lists(st.floats(-1e4, 700) | st.floats(-1, 1), min_size=1))
def test_exponentials_less_one(x):
    np.testing.assert_allclose(less_one(np.array(x)), np.expm1(x), rtol=2e-15)


def test_another_quantile():
    loss = replace(NUMBERS["quantile"], level=0.9)
    assert loss.level == 0.9
    assert loss.initial(np.arange(10.0), None, 0.0) == 8.5


@pytest.mark.parametrize(
    ("name", "y"),
    [
        *((name, y) for name in ("poisson", "tweedie") for y in ([-1.0, 2.0], [0.0, 0.0])),
        ("gamma", [0.0, 1.0]),
    ],
)
def test_targets_that_a_loss_has_no_use_for(name, y):
    with pytest.raises(ValueError, match=f"out of the valid range of the loss '{name}'"):
        begin(NUMBERS[name], np.array(y))


def begin(loss, y):
    loss.check(y)
    return loss.initial(y, None, y.mean())


ALLOWED = {
    **dict.fromkeys(("poisson", "tweedie"), lambda y: y.min() >= 0 and y.any()),
    "gamma": lambda y: y.min() > 0,
}


@pytest.mark.parametrize("name", [*CLASSES, *NUMBERS])
@given(y=st.lists(st.sampled_from([-1.0, -0.0, 0.0, 1e-300, 2.0]), min_size=1, max_size=4))
def test_no_other_targets_are_refused(name, y):
    y = np.array(y)
    refused = False
    try:
        begin((CLASSES | NUMBERS)[name], y)
    except ValueError:
        refused = True
    assert refused == (name in ALLOWED and not ALLOWED[name](y))


@pytest.mark.parametrize("name", NUMBERS)
def test_the_slope_of_the_mean_loss_is_the_mean_gradient(name):
    """Beside derivatives that are packed: they stand in another file."""
    rng = np.random.default_rng(0)
    y, raw, weight = rng.random(50) + 0.1, rng.normal(size=50), rng.random(50)
    loss, step = replace(NUMBERS[name], width=NUMBERS[name].level or 1.0), 1e-6
    means = [loss.mean(y, (raw + d)[:, None], weight) for d in (-step, step)]
    rows = RowDerivatives(loss, np.zeros(1), y, weight, Team())
    rows.raw[0] = raw
    ((gradient, _),) = rows.derive(2.0**26, 2.0**20).tolist()
    assert (means[1] - means[0]) / (2 * step) == pytest.approx(
        gradient / 2**26 / weight.sum(), rel=1e-5
    )


@given(st.integers(0, 30), st.sampled_from([1, 3]))
def test_log_loss_is_that_of_the_shares(seed, n_values):
    rng = np.random.default_rng(seed)
    raw = rng.normal(size=(40, n_values)) * rng.choice([1, 30])
    y = rng.integers(0, max(2, n_values), 40)
    weight = rng.integers(1, 4, 40).astype(float)
    own = CLASSES["log_loss"].mean(y.astype(float), raw, weight)
    shares = shares_of_classes(raw)[np.arange(40), y]
    wanted = -np.average(np.log(np.maximum(shares, 1e-300)), weights=weight)
    assert own == pytest.approx(wanted, rel=1e-9, abs=1e-12) or shares.min() < 1e-13
    order = rng.permutation(40)
    assert CLASSES["log_loss"].mean(y[order].astype(float), raw[order], weight[order]) == own


@pytest.mark.parametrize("name", sorted(NUMBERS))
@pytest.mark.parametrize("weight", [None, np.arange(1.0, 8.0)])
def test_mean_losses_of_several_predictions_are_those_of_each(name, weight):
    rng = np.random.default_rng(0)
    y, raw = rng.integers(1, 9, 7).astype(float), rng.normal(size=(4, 1, 7))
    loss = replace(NUMBERS[name], width=0.7)
    expected = [loss.mean(y, one.T, weight) for one in raw]
    assert loss.means(y, raw, weight).tolist() == expected


@pytest.mark.parametrize("n_values", [1, 9])
def test_mean_log_losses_of_several_predictions(n_values):
    rng = np.random.default_rng(0)
    y, raw = rng.integers(0, max(2, n_values), 40).astype(float), rng.normal(size=(4, n_values, 40))
    loss = CLASSES["log_loss"]
    expected = [loss.mean(y, np.ascontiguousarray(one.T), None) for one in raw]
    assert loss.means(y, raw, None).tolist() == expected


# --------------------------------------------------------------------------------------------
# a loss of the user's own is asked for the right shapes, and what it returns is judged

Y = np.array([0.0, 1.0, 2.0])


class Square(Loss):
    """Writes down what it is asked."""

    def __init__(self, found=None):
        self.found, self.asked = found, []

    def gradient_and_hessian(self, y, raw):
        self.asked.append((y, raw))
        return (raw - (y if raw.ndim == 1 else y[:, None]), np.ones_like(raw))

    def of_rows(self, y, raw):
        return (y - raw) ** 2 / 2


class Answers(Square):
    """Returns what it was made with."""

    def gradient_and_hessian(self, y, raw):
        return self.found

    def initial(self, y, sample_weight):
        return self.found

    def inverse_link(self, raw):
        return self.found


def test_one_value_is_no_column_and_arguments_are_read_only():
    own = Square()
    gradient, hessian = OwnLoss(own).derivatives(Y, np.full((1, 3), 5.0))
    assert (gradient.tolist(), hessian.tolist()) == ([[5, 4, 3]], [[1, 1, 1]])
    for argument in own.asked[0]:
        assert argument.shape == (3,)
        with pytest.raises(ValueError, match="read-only"):
            argument[0] = 1


def test_several_values_are_columns():
    own = Square()
    gradient, _ = OwnLoss(own).derivatives(Y, np.arange(6.0).reshape(2, 3))
    assert own.asked[0][1].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert gradient.tolist() == [[0, 0, 0], [3, 3, 3]]


ONES = np.ones(3)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (ONES, "must return two arrays"),
        ((ONES,), "must return two arrays"),
        ((ONES[:2], ONES), r"gradients as numbers of shape \(3,\)"),
        ((ONES, np.ones((3, 1))), r"hessians as numbers of shape \(3,\)"),
        ((ONES, np.array(["a", "b", "c"])), "hessians as numbers"),
        ((np.array([1, np.nan, 1]), ONES), "finite gradients"),
        ((ONES, np.array([1, np.inf, 1])), "finite hessians"),
        ((ONES, np.array([1.0, -1e-9, 1.0])), "not negative"),
    ],
)
def test_derivatives_that_are_none(found, message):
    with pytest.raises(ValueError, match=message):
        OwnLoss(Answers(found)).derivatives(Y, np.zeros((1, 3)))


def test_the_largest_derivatives():
    loss = OwnLoss(Square()).measured(np.array([[1.0, -7.0]]), np.array([[0.5, 2.0]]), 3.0)
    assert (loss.largest_gradient, loss.largest_hessian) == (7, 2)
    with pytest.raises(ValueError, match="times the weights are infinite"):
        loss.measured(np.array([[1e300]]), np.array([[1.0]]), 1e10)


def test_beginnings_of_own_losses():
    assert OwnLoss(Square()).initial(Y, None, 2).tolist() == [0, 0]
    assert OwnLoss(Answers(3)).initial(Y, None, 2).tolist() == [3, 3]
    assert OwnLoss(Answers([1, 2])).initial(Y, None, 2).tolist() == [1, 2]
    for found, n_values in ((np.nan, 1), ([1.0, 2.0], 1), ([1.0], 2)):
        with pytest.raises(ValueError, match=r"Answers.initial must return a finite number"):
            OwnLoss(Answers(found)).initial(Y, None, n_values)


def test_links_of_own_losses():
    raw = np.array([[0.0], [2.0], [-1.0]])
    assert OwnLoss(Square()).predictions(raw[:, 0]).tolist() == [0, 2, -1]
    np.testing.assert_array_equal(OwnLoss(Square()).shares(raw), shares_of_classes(raw))
    assert OwnLoss(Answers(ONES / 4)).shares(raw).tolist() == [[0.75, 0.25]] * 3
    with pytest.raises(ValueError, match="shares as numbers of shape"):
        OwnLoss(Answers(ONES[:2])).shares(raw)
    with pytest.raises(ValueError, match="predictions as numbers of shape"):
        OwnLoss(Answers(ONES[:2])).predictions(raw[:, 0])


def test_means_of_own_losses():
    raw = np.array([[1.0], [1.0], [0.0]])
    assert OwnLoss(Square()).mean(Y, raw, None) == pytest.approx(2.5 / 3)
    assert OwnLoss(Square()).mean(Y, raw, np.array([1.0, 1, 2])) == pytest.approx(4.5 / 4)


class Refuses(Loss):
    """Cannot do anything with no rows."""

    def _refuse(self, *arguments):
        assert 0 not in arguments[-1].shape
        return arguments[-1]

    gradient_and_hessian = of_rows = inverse_link = check_target = _refuse


@pytest.mark.parametrize("n_values", [1, 3])
def test_own_losses_are_not_asked_of_no_rows(n_values):
    loss, none = OwnLoss(Refuses()), np.empty(0)
    loss.check(none)
    for part in loss.derivatives(none, np.empty((n_values, 0))):
        assert part.shape == (n_values, 0)
    assert loss.predictions(none).shape == (0,)
    assert loss.shares(np.empty((0, n_values))).shape == (0, max(2, n_values))


def test_means_where_others_have_the_rows():
    raw = np.array([[1.0], [1.0], [0.0]])

    def mean(members):
        rows = slice(3 * members.rank)  # none, and all
        loss = OwnLoss(Square() if members.rank else Refuses())
        return loss.mean(Y[rows], raw[rows], None, members)

    assert together([mean] * 2) == [pytest.approx(2.5 / 3)] * 2


def test_two_of_a_class_are_equal():
    assert OwnLoss(Square()) == OwnLoss(Square(3))
    assert OwnLoss(Square()) != OwnLoss(Answers())
