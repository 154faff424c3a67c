"""A boosted model is the sum of its trees, and a file of it holds what it knows."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor, losses
from dtrees.core.losses.losses import CLASSES, NUMBERS, Loss
from dtrees.estimators.boosted_parts import loss_of, said_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3)).round(1)
F = X[:, 0] + X[:, 1] ** 2
MODELS = {
    "two classes": (GradientBoostingClassifier(max_iter=4), F > 1),
    "three classes": (GradientBoostingClassifier(max_iter=4), np.digitize(F, [0, 1])),
    "one class": (GradientBoostingClassifier(max_iter=2), np.full(200, "a")),
    "numbers": (GradientBoostingRegressor(max_iter=4, early_stopping=True), F),
    "quantile": (GradientBoostingRegressor("quantile", quantile=0.3, max_iter=4), F),
    "gamma": (GradientBoostingRegressor("gamma", max_iter=4), np.exp(F)),
}


class Half(losses.Loss):
    """A loss of one's own."""

    def gradient_and_hessian(self, y, raw):
        return (raw - y) / 2, np.full(len(y), 0.5)


def fitted(name):
    model, y = MODELS[name]
    return model.fit(X, y)


@pytest.mark.parametrize("name", MODELS)
def test_raw_predictions_are_the_sum_of_the_estimators(name):
    model = fitted(name)
    assert model.estimators_.shape == (model.n_iter_, model.n_trees_per_iteration_)
    raw = model._predictor().raw(model.codebook_.check(X))
    total = np.repeat(model._initial[None, :], len(X), axis=0)
    for iteration in model.estimators_:
        for k, tree in enumerate(iteration):
            total[:, k] += tree.predict(X)
    np.testing.assert_array_equal(total, raw)


def test_the_trees_know_which_columns_had_missing_values():
    table = pd.DataFrame(X, columns=list("abc"))
    assert not GradientBoostingRegressor(max_iter=3).fit(table, F)._saw_missing.any()
    table.loc[::5, "a"] = np.nan
    table["c"] = np.nan
    model = GradientBoostingRegressor(max_iter=3).fit(table, F)
    assert model._saw_missing.tolist() == [True, False, False]  # c is not tested


@pytest.mark.parametrize("name", MODELS)
def test_parts_that_do_not_fit_each_other_are_refused(name):
    model = fitted(name)
    parts = model._parts()
    n_values = model.n_trees_per_iteration_

    def refused(match, trees=parts.trees, **attributes):
        changed = replace(parts, trees=trees, attributes={**parts.attributes, **attributes})
        with pytest.raises(ValueError, match=match):
            model._check_parts(changed)

    model._check_parts(parts)
    refused("_initial is not finite", _initial=model._initial * np.nan)
    refused(f"are not {n_values} of each", _initial=np.zeros(n_values + 1))
    refused(f"are not {n_values} of each", n_trees_per_iteration_=n_values + 1)
    few = np.zeros(model.n_iter_)  # there is one of no iteration, too
    refused("train_score_ has no score for some", train_score_=few)
    refused("validation_score_ has no score for some", validation_score_=few)
    if n_values > 1:
        refused("not all of its trees", trees=parts.trees[:-1])
    poisson = tuple(replace(tree, criterion="poisson") for tree in parts.trees)
    refused("not those of a boosted model", trees=poisson)
    refused("_fit_loss is", _fit_loss={"name": "hinge", "level": None})


@pytest.mark.parametrize("losses", [CLASSES, NUMBERS])
def test_a_loss_is_said_and_found_again(losses):
    for name, loss in losses.items():
        said = said_of(loss, "Model")
        assert loss_of(said, losses) == loss
        for wrong in (
            {**said, "level": 2.0 if name in ("quantile", "huber") else 0.123456},
            {**said, "level": float("nan")},
            {**said, "name": [name]},
            {**said, "more": 1},
            {"name": name},
            {},
        ):
            with pytest.raises(ValueError, match="_fit_loss"):
                loss_of(wrong, losses)
    quantile = NUMBERS["quantile"].with_level(0.9)
    assert loss_of(said_of(quantile, "Model"), NUMBERS) == quantile
    with pytest.raises(ValueError, match="_fit_loss"):
        loss_of(said_of(quantile, "Model"), CLASSES)


def test_a_loss_of_ones_own_is_in_no_file():
    class Own(Loss):
        pass

    with pytest.raises(TypeError, match=r"The loss of this Model .* class log_loss, which is code"):
        said_of(Own("log_loss"), "Model")
    with pytest.raises(
        TypeError, match="GradientBoostingRegressor is an object of the class Half,"
    ):
        GradientBoostingRegressor(Half(), max_iter=2).fit(X, F)._parts()


def test_a_fitted_model_does_not_keep_the_values_of_its_table():
    """Trees have their thresholds; a book of all values would be as large as the table."""
    wide = RNG.normal(size=(3000, 20))
    model = GradientBoostingRegressor(max_iter=2, max_bins=None).fit(wide, wide[:, 0])
    assert model.codebook_.low.nbytes == 0
    assert len(pickle.dumps(model)) < 20_000
    assert model.score(wide, wide[:, 0]) > 0.2
