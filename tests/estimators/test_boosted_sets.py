"""Boosted models that grow side by side are those of fits with zero weights, bit for bit."""

import inspect

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.estimators import boosted_sets
from dtrees.estimators.base import BaseModel
from dtrees.estimators.training_sets import fit_sets
from dtrees.parallel import threaded
from dtrees.typing import serial
from tests.core.grow.boosted_cases import Squares, random_columns, table_of

pytest.importorskip("pandas")

LOSSES = (
    "log_loss",
    "squared_error",
    "absolute_error",
    "huber",
    "poisson",
    "gamma",
    "tweedie",
    "own",
)
RULES = {
    "none": {},
    "some rows": {"subsample": 0.6, "oob_score": True},
    "drawn columns": {"max_features": 0.5, "category_penalty": 0.1},
    "apart": {"interaction_cst": "no_interactions", "l2_regularization": 0.5},
    "regularized": {"l1_regularization": 0.2, "max_delta_step": 0.4, "path_smooth": 2.0},
    "columns of a tree": {"colsample_bytree": 0.5, "min_split_gain": 0.05},
}
STOPPING = {
    "none": {"early_stopping": False},
    "loss": {"early_stopping": True, "n_iter_no_change": 2, "validation_fraction": 0.3},
    "rows of the fit": {"early_stopping": True, "validation_fraction": None, "n_iter_no_change": 1},
    "score": {"early_stopping": True, "n_iter_no_change": 2, "scoring": None},
    "own": {"early_stopping": True, "n_iter_no_change": 2, "scoring": "own"},
}


def own_score(model, X, y):
    """A scorer that looks at the model, and at rows of the table."""
    return float(model.predict(X)[:2].astype(float).sum()) + len(model.forest_) / 1024


def target_of(rng, n, loss, n_classes):
    if loss == "log_loss":
        y = rng.integers(0, n_classes, n)
        y[: 2 * n_classes] = np.tile(np.arange(n_classes), 2)
        return y
    return rng.integers(1, 9, n).astype(float) / 4


def fault_of(one, other):
    """What differs between two fits; "" if nothing does."""
    if isinstance(other, Exception):
        return "" if (type(one), str(one)) == (type(other), str(other)) else f"{one!r}, {other!r}"
    if isinstance(one, Exception):
        return repr(one)
    mine, theirs = (vars(each) | {"_curves": str(each.evals_result_)} for each in (one, other))
    names = (mine.keys() | theirs.keys()) - {"forest_", "codebook_", "_fit_report"}
    for name in sorted(names):
        a, b = (
            np.asarray(str(of[name]) if name == "_curves" else of[name]) for of in (mine, theirs)
        )
        is_float = a.dtype.kind == b.dtype.kind == "f"
        if name not in one._constraints and not np.array_equal(a, b, equal_nan=is_float):
            return name
    for a, b in zip(one.forest_.trees, other.forest_.trees, strict=True):
        for name in ("statistics", "feature", "threshold", "code", "subset_words", "left_child"):
            if hasattr(a, name) and getattr(a, name).tobytes() != getattr(b, name).tobytes():
                return name
        if (a.unit, a.weight_unit) != (b.unit, b.weight_unit):
            return "units"
    return ""


def fitted(estimator, X, y, weight):
    try:
        return clone(estimator).fit(X, y, weight)
    except ValueError as error:
        return error


@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
@given(
    seed=st.integers(0, 10_000),
    loss=st.sampled_from(LOSSES),
    n_classes=st.sampled_from([2, 3]),
    storage=st.sampled_from(["frame", "sparse"]),
    weights=st.sampled_from(["none", "counts", "fractions"]),
    stopping=st.sampled_from(sorted(STOPPING)),
    balanced=st.booleans(),
    rules=st.sampled_from(sorted(RULES)),
    n_jobs=st.sampled_from([1, 2]),
)
def test_models_are_those_of_fits_with_zero_weights(
    seed, loss, n_classes, storage, weights, stopping, balanced, rules, n_jobs
):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 60))
    X = table_of(random_columns(rng, n, 3))
    if storage == "sparse":
        X = scipy.sparse.csr_array(rng.integers(0, 3, (n, 4)) * (rng.random((n, 4)) < 0.5))
    y = target_of(rng, n, loss, n_classes)
    weight = {
        "none": None,
        "counts": rng.integers(0, 4, n).astype(float),
        "fractions": rng.random(n) * 100,
    }[weights]
    how = dict(STOPPING[stopping])
    if how.get("scoring") == "own":
        how["scoring"] = own_score
    how |= {"max_iter": 5, "min_samples_leaf": 2, "random_state": seed, "n_jobs": n_jobs}
    common = {**how, **RULES[rules]}
    if loss == "log_loss":
        class_weight = "balanced" if balanced else None
        estimator = GradientBoostingClassifier(class_weight=class_weight, **common)
    else:
        estimator = GradientBoostingRegressor(Squares() if loss == "own" else loss, **common)
    sets = rng.random((4, n)) < rng.random((4, 1))  # overlap in any way, and may be empty
    sets[3] = True
    found = fit_sets(estimator, X, y, weight, sets)
    ones = np.ones(n) if weight is None else weight
    rows = np.arange(n)
    for number, model in enumerate(found.models):
        own = weight if sets[number].all() else ones * sets[number]
        alone = fitted(estimator, X, y, own)
        assert fault_of(model, alone) == ""
        if isinstance(model, Exception):
            continue
        name = "predict_proba" if loss == "log_loss" else "predict"
        expected = getattr(model, name)(X)
        values = found.values(number, rows)
        np.testing.assert_array_equal(values if values.shape[1] > 1 else values[:, 0], expected)
        if loss == "log_loss":
            np.testing.assert_array_equal(found.scores_of(model, rows), model.decision_function(X))
            stages = [raw.copy() for raw in found.stages_of(model, rows)]
            for raw, staged in zip(stages, model.staged_decision_function(X), strict=True):
                np.testing.assert_array_equal(raw[:, 0] if raw.shape[1] == 1 else raw, staged)


@pytest.mark.parametrize("most", [1, 3, 32])
@pytest.mark.parametrize("run", [serial, threaded(2)], ids=["one thread", "two"])
def test_blocks_of_stages_do_not_depend_on_their_size(monkeypatch, run, most):
    """Nor on the threads: steps are added in the order of the trees."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    model = GradientBoostingClassifier(max_iter=7, min_samples_leaf=3)
    found = fit_sets(model, X, y, None, np.ones((1, 300), dtype=bool))
    for name in ("MOST_AT_ONCE", "LEAST_AT_ONCE"):
        monkeypatch.setattr(boosted_sets, name, most)
    for rows in (np.arange(300), np.arange(3), np.arange(0)):
        blocks = list(found.blocks_of_stages(found.models[0], rows, run))
        assert [len(block) for block in blocks] == [most] * (7 // most) + [7 % most] * (most > 1)
        expected = found.models[0].staged_decision_function(X[rows]) if len(rows) else []
        for stage, staged in zip(np.concatenate(blocks), expected, strict=len(rows) > 0):
            np.testing.assert_array_equal(stage.T, staged)


class TestTheReport:
    def test_it_counts_the_models_that_grew_together(self):
        X = np.arange(40.0)[:, None]
        sets = np.ones((3, 40), dtype=bool)
        sets[0, ::2] = False
        sets[1] = False  # no fit
        found = fit_sets(GradientBoostingRegressor(max_iter=2), X, X[:, 0], None, sets)
        assert isinstance(found.models[1], ValueError)
        for number in (0, 2):
            report = found.models[number].fit_report_
            assert report["models_together"] == 2
            assert (report["regime"], report["reason"]) == ("local", "no client")
            assert set(report["seconds"]) == {"coding", "growth"}
            said = inspect.getdoc(BaseModel.fit_report_)
            assert all(f"``{name}``" in said for name in report)

    def test_a_model_that_grew_alone_says_nothing_of_others(self):
        model = GradientBoostingRegressor(max_iter=2).fit(np.arange(40.0)[:, None], np.arange(40.0))
        assert "models_together" not in model.fit_report_


@pytest.mark.parametrize(
    ("make_table", "rules", "n_blocks"),
    [
        (np.asarray, {}, 5),
        (np.asarray, {"subsample": 0.5}, 1),
        (scipy.sparse.csr_array, {}, 1),
    ],
    ids=["rows of models lie side by side", "rows are drawn", "sparse"],
)
def test_the_table_is_coded_once(monkeypatch, make_table, rules, n_blocks):
    from dtrees.coding import CodeBook
    from dtrees.core.stores.boosted import _column_blocks

    coded, code = [], CodeBook.fit_encode
    monkeypatch.setattr(
        CodeBook, "fit_encode", lambda *args, **kwargs: coded.append(1) or code(*args, **kwargs)
    )
    blocks, make = [], _column_blocks.ColumnBlocks
    monkeypatch.setattr(
        "dtrees.core.grow.lockstep.ColumnBlocks",
        lambda *args, **named: blocks.append(1) or make(*args, **named),
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * (rng.random((60, 2)) < 0.5)
    sets = np.arange(60) % 5 != np.arange(5)[:, None]
    model = GradientBoostingRegressor(max_iter=3, **rules)
    found = fit_sets(model, make_table(X), X[:, 0], None, sets)
    found.values(0, np.arange(60))
    assert (len(coded), len(blocks)) == (1, n_blocks)


def test_one_class_is_said_with_certainty():
    X = np.arange(20.0)[:, None]
    found = fit_sets(
        GradientBoostingClassifier(max_iter=2), X, np.zeros(20), None, np.ones((1, 20), bool)
    )
    assert accuracy_score(np.zeros(20), found.values(0, np.arange(20)).argmax(axis=1)) == 1.0


def test_a_wrong_number_of_rows_is_refused():
    with pytest.raises(ValueError, match="X has 4 rows, but the sets are of 3"):
        fit_sets(
            GradientBoostingRegressor(), np.eye(4), np.arange(4.0), None, np.ones((1, 3), bool)
        )
