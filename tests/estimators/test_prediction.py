"""What a fitted estimator predicts with: answers of a kind that is known before there are any."""

import dask.array as da
import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.metrics import accuracy_score, r2_score

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor
from tests.estimators.forest_cases import FORESTS, mixed_table

X, Y = mixed_table(150)
LABELS = np.array(["none", "one", "two"])[Y]
KINDS = [DecisionTreeClassifier, DecisionTreeRegressor, *FORESTS]
all_kinds = pytest.mark.parametrize("kind", KINDS)


def fitted(kind):
    """A small model; of labels, where it knows any."""
    model = kind(max_depth=3, random_state=0)
    if kind in FORESTS:
        model.set_params(n_estimators=3)
    return model.fit(X, LABELS if hasattr(model, "predict_proba") else Y)


@all_kinds
def test_the_kind_of_an_answer_is_known_before(kind):
    model = fitted(kind)
    predictor = model._predictor()
    methods = ["apply", "decision_path", "predict", "predict_proba", "predict_log_proba"]
    for method in [name for name in methods if hasattr(model, name)]:
        promised, found = predictor.answer(method), getattr(predictor, method)(X)
        assert promised.empty.dtype == found.dtype
        assert promised.empty.shape[1:] == found.shape[1:]
        assert issparse(promised.empty) == issparse(found)
        if promised.columns is not None:
            assert len(promised.columns) == found.shape[1]


@all_kinds
def test_answers_follow_from_leaves(kind):
    """Means of the values of the leaves, and the first of the most likely labels."""
    model = fitted(kind)
    predictor = model._predictor()
    leaves = np.atleast_2d(predictor.apply(X).T)
    values = np.mean(
        [tree.value_of(leaf) for tree, leaf in zip(predictor._trees, leaves, strict=True)], axis=0
    )
    if predictor.classes is None:
        np.testing.assert_allclose(predictor.predict(X), values[:, 0], rtol=1e-12)
        return
    np.testing.assert_allclose(predictor.predict_proba(X), values, rtol=1e-12)
    shares = predictor.predict_proba(X)
    assert predictor.predict(X).tolist() == [model.classes_[row.argmax()] for row in shares]
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(predictor.predict_log_proba(X), np.log(shares))


@pytest.mark.parametrize("kind", KINDS[:2])
def test_labels_of_few_rows_and_of_many(kind):
    """Labels are made by row, or by node where nodes are fewer."""
    model = fitted(kind)
    n_nodes = model.tree_.node_count
    assert 2 < n_nodes < len(X)
    whole = model._predictor().predict(X)
    for start in range(0, len(X), n_nodes - 1):
        part = slice(start, start + n_nodes - 1)
        np.testing.assert_array_equal(model._predictor().predict(X[part]), whole[part])


def test_a_block_of_checked_columns_needs_no_names():
    model = fitted(DecisionTreeClassifier)
    nameless = X.to_numpy(dtype=object)
    np.testing.assert_array_equal(
        model._predictor().of_block("predict", nameless), model.predict(X)
    )


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_collections_are_those_of_scikit_learn(kind, weighted):
    rng = np.random.default_rng(0)
    table, weight = rng.normal(size=(90, 2)), rng.random(90) if weighted else None
    y = (table[:, 0] + rng.normal(size=90) > 0).astype(int)
    model = kind(max_depth=2).fit(table, y)
    metric = r2_score if kind is DecisionTreeRegressor else accuracy_score
    expected = metric(y, model.predict(table), sample_weight=weight)
    lazy = da.from_array(table, chunks=(40, 2))
    assert model.score(table, y, weight) == pytest.approx(expected)
    assert model.score(lazy, y, weight) == pytest.approx(expected)
