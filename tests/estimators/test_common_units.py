"""Sets share sums where their own fits have the same integers, up to what is multiplied."""

import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dtrees
from dtrees.coding import target as coding_target
from dtrees.coding.target import Target
from dtrees.core.data.scale import units_of
from dtrees.core.membership.resampling import of_sets
from dtrees.estimators.common_units import Companies
from dtrees.estimators.fit_plan import FitPlan
from tests.estimators.test_training_sets import N_ROWS, check, estimator_of, sets, table
from tests.laws.together import staying_together

TREE = FitPlan.of(dtrees.DecisionTreeClassifier())
HALVES = np.array([0.5, 1.5, 2.25, 3.0])


@pytest.fixture
def grown():
    """Training sets that have grown, and stayed together however small their nodes were."""
    with staying_together() as found:
        yield found


@pytest.fixture
def few_rows_share(monkeypatch):
    """Balanced fractions share as those of 1,024 rows do."""
    monkeypatch.setattr(coding_target, "LEAST_BALANCED", 1)


def folds():
    rows = np.arange(N_ROWS) % 4 != np.arange(5)[:, None]
    return of_sets(rows), rows


def companies_of(weight, plan=TREE, **how):
    """The companies of four folds and of all rows, as targets make them of their weights."""
    resampling, rows = folds()
    y = np.arange(N_ROWS) % 3
    whole = Target.classification(y, weight, **how)
    companies = Companies(whole, resampling, plan)
    alone = []
    for number, mine in enumerate(rows):
        own = Target.classification(y, weight * mine, **how)
        if own.w_exponent == whole.w_exponent and own.class_multiplier is None:
            companies.add(number)
        elif not companies.join(number, own):
            alone.append(number)
    found = companies.settled()
    for company in found:
        of_company = company.of(resampling)
        for place, number in enumerate(company.numbers):
            own = Target.classification(y, weight * rows[number], **how)
            mine = of_company.target_of(place, company.target)
            assert mine.weight_unit == own.weight_unit
            np.testing.assert_array_equal(units_of(mine), units_of(own))
    return [sorted(company.numbers) for company in found], alone


def test_the_same_units():
    fractions = np.random.default_rng(0).random(N_ROWS)
    assert companies_of(fractions) == ([[0, 1, 2, 3, 4]], [])


def test_units_of_other_powers_of_two():
    """A weight of 1,000 is in all sets but one; halves are exact in any unit, tenths are not."""
    large = np.where(np.arange(N_ROWS) == 0, 1000.0, 1.0)
    halves = HALVES[np.arange(N_ROWS) % 4]
    assert companies_of(large * halves) == ([[0, 1, 2, 3, 4]], [])
    tenths = np.random.default_rng(0).random(N_ROWS)
    assert companies_of(large * tenths) == ([[1, 2, 3, 4], [0]], [])


def test_sums_that_would_overflow_are_apart():
    """Ten sets of other rows, each with as much weight as a fit can have."""
    y = np.arange(N_ROWS) % 3
    rows = np.arange(N_ROWS) % 10 == np.arange(10)[:, None]
    weight = np.random.default_rng(0).random(N_ROWS)
    resampling = of_sets(rows)
    companies = Companies(Target.classification(y, weight), resampling, TREE)
    heavy = [
        Target(kind="classification", y=y, n_classes=3, classes=np.arange(3), w_exponent=51, w=w)
        for w in np.where(rows, np.int64(2**55), 0)
    ]
    assert all(companies.join(number, own) for number, own in enumerate(heavy))
    found = companies.settled()
    assert [company.numbers for company in found] == [[number] for number in range(10)]
    for company, own in zip(found, heavy, strict=True):
        np.testing.assert_array_equal(company.target.w, own.w)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("class_weight", ["balanced", {0: 3.0, 1: 0.5}, {0: 0.0, 1: 0.7, 2: 1.0}])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("kind", ["DecisionTree", "ExtraTrees"])
@pytest.mark.parametrize("weights", ["none", "whole"])
def test_class_weights_share(kind, criterion, class_weight, weights, grown):
    X, y, rng = table(2)
    y = np.digitize(y, [0, 2])
    class_weight = class_weight if isinstance(class_weight, str) else {2: 1.0, **class_weight}
    estimator = estimator_of(kind, "Classifier", class_weight=class_weight, criterion=criterion)
    weight = None if weights == "none" else rng.integers(0, 3, N_ROWS).astype(float)
    check(estimator, X, y, weight, sets(rng))
    assert len(grown) == (1 if kind == "DecisionTree" else 3)
    assert all(own.n_shared_nodes > 0 for own in grown)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("large", [1.0, 1000.0])
@pytest.mark.parametrize("of", ["halves", "fractions"])
@pytest.mark.parametrize("task", ["Classifier", "Regressor"])
@pytest.mark.parametrize("kind", ["DecisionTree", "ExtraTrees"])
def test_fractions_share(kind, task, of, large, grown):
    """A large weight of one row: sets that lack it have another unit."""
    X, y, rng = table(3)
    y = np.digitize(y, [0, 2]) if task == "Classifier" else y
    weight = rng.random(N_ROWS) if of == "fractions" else rng.choice(HALVES, N_ROWS)
    weight[0] = large * 0.75
    check(estimator_of(kind, task), X, y, weight, sets(rng))
    assert all(own.n_shared_nodes > 0 for own in grown)
    assert len(grown) > 0


def test_a_dictionary_and_fractions_share(grown):
    X, y, rng = table(4)
    tree = estimator_of("DecisionTree", "Classifier", class_weight={0: 3.0, 1: 0.5, 2: 1.0})
    check(tree, X, np.digitize(y, [0, 2]), rng.random(N_ROWS), sets(rng))
    assert sum(own.n_shared_nodes for own in grown) > 0


@pytest.mark.parametrize("large", [1.0, 1000.0])
@pytest.mark.parametrize("of", ["halves", "fractions"])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("kind", ["DecisionTree", "ExtraTrees"])
@pytest.mark.usefixtures("few_rows_share")
def test_balanced_fractions_share(kind, criterion, of, large, grown):
    """Classes weigh what they do in each set; units are those of the rows."""
    X, y, rng = table(4)
    weight = rng.random(N_ROWS) if of == "fractions" else rng.choice(HALVES, N_ROWS)
    weight[0] = large * 0.75
    model = estimator_of(kind, "Classifier", class_weight="balanced", criterion=criterion)
    check(model, X, np.digitize(y, [0, 2]), weight, sets(rng))
    assert len(grown) > 0
    assert all(own.n_shared_nodes > 0 for own in grown)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 3),
    st.sampled_from(["uniform", "wide", "exact"]),
    st.sampled_from([1, 120]),
)
def test_law_of_balanced_fractions(seed, n_classes, of, least):
    """Also where some sets lack a class or have few rows, and where few have the same unit."""
    X, y, _ = table(4)
    rng = np.random.default_rng(seed)
    weight = {
        "uniform": rng.random(N_ROWS),
        "wide": np.exp(4 * rng.normal(size=N_ROWS)),
        "exact": rng.integers(0, 9, N_ROWS) / 8,
    }[of]
    rows = rng.random((4, N_ROWS)) < rng.uniform(0.1, 1, (4, 1))
    classes = rng.permutation(np.digitize(y, np.linspace(-2, 3, n_classes - 1)))
    tree = estimator_of("DecisionTree", "Classifier", class_weight="balanced", max_depth=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coding_target, "LEAST_BALANCED", least)
        check(tree, X, classes, weight, rows)


def test_balanced_fractions_of_few_rows_grow_alone(grown):
    """Products are rounded row by row there, in each set on its own."""
    X, y, rng = table(4)
    tree = estimator_of("DecisionTree", "Classifier", class_weight="balanced")
    check(tree, X, np.digitize(y, [0, 2]), rng.random(N_ROWS), sets(rng))
    assert grown == []


def test_balanced_fractions_of_more_and_of_fewer_rows(grown, caplog):
    """Four folds of 1,080 rows and all of them share; a half of the rows is 720."""
    tables = [table(seed) for seed in range(6)]
    X, y = (np.concatenate(parts) for parts in list(zip(*tables, strict=True))[:2])
    rows = np.hstack([sets(rng) for *_, rng in tables])
    tree = estimator_of("DecisionTree", "Classifier", class_weight="balanced", max_depth=4)
    with caplog.at_level(logging.INFO, "dtrees"):
        check(tree, X, np.digitize(y, [0, 2]), tables[0][2].random(len(y)), rows)
    assert "1 of 6 models are fitted one by one: class_weight" in caplog.text
    assert grown[0].n_shared_nodes > 0


@pytest.mark.usefixtures("few_rows_share")
def test_balanced_units_of_other_powers_of_two():
    """As above, and the class weights of each set are in units of its own."""
    plan = FitPlan.of(dtrees.DecisionTreeClassifier(class_weight="balanced"))
    how = {"class_weight": "balanced"}
    large = np.where(np.arange(N_ROWS) == 0, 1000.0, 1.0)
    halves = HALVES[np.arange(N_ROWS) % 4]
    assert companies_of(large * halves, plan, **how) == ([[0, 1, 2, 3, 4]], [])
    tenths = np.random.default_rng(0).random(N_ROWS)
    assert companies_of(large * tenths, plan, **how) == ([[1, 2, 3, 4], [0]], [])


def test_sets_without_rows_of_weight():
    X, y, rng = table(5)
    y = np.digitize(y, [0, 2])
    rows = np.vstack([y == 0, np.zeros((1, N_ROWS), dtype=bool), sets(rng)])
    weights = {0: 0.0, 1: 2.0, 2: 1.0}
    tree = estimator_of("DecisionTree", "Classifier", class_weight=weights)
    found = dtrees.estimators.training_sets.fit_sets(tree, X, y, None, rows)
    assert "nothing is left to learn from" in str(found.models[0])
    assert isinstance(found.models[1], ValueError)
    check(tree, X, y, None, rows[2:])
