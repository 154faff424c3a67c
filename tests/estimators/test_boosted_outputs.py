"""Boosted models of several targets: each target has the trees of a model of it alone."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import KFold

import dtrees
from dtrees import GradientBoostingClassifier, GradientBoostingRegressor
from dtrees.callbacks import Callback
from dtrees.export import nodes, to_lightgbm, to_onnx, to_sklearn, trees_to_dataframe
from dtrees.inspection import export_text, shap_values
from dtrees.model_selection import GridSearchCV, boosting_curve, cross_validate
from tests.core.grow.boosted_cases import Squares

RNG = np.random.default_rng(3)
N_ROWS = 240
X = RNG.normal(size=(N_ROWS, 5))
NUMBERS = np.c_[
    np.exp(X[:, 0] + 0.3 * RNG.normal(size=N_ROWS)),
    1e4 * np.exp(X[:, 2] / 2),
    RNG.poisson(3, N_ROWS) + 1.0,
]
CLASSES = np.c_[X[:, 0] > 0, np.digitize(X[:, 1], [-1, 0, 1]), np.full(N_ROWS, 7)].astype(int)
COUNTS = RNG.integers(0, 4, N_ROWS).astype(float)
WEIGHTS = {"none": None, "counts": COUNTS, "fractions": 0.37 * COUNTS + 0.01}
HOW = {"max_iter": 4, "min_samples_leaf": 5, "random_state": 1, "early_stopping": False}
DRAWS = {"subsample": 0.6, "max_features": 0.5, "colsample_bytree": 0.7}
RULES = (
    {},
    DRAWS,
    {"path_smooth": 2.0, "l1_regularization": 0.1, "max_delta_step": 1.0},
    {"max_depth": 3, "max_leaf_nodes": None, "max_bins": 20},
)
NO_PATH = {"l1_regularization": 0.1, "max_delta_step": 1.0}
LOSSES = (
    *("squared_error", "absolute_error", "quantile", "huber", "poisson", "gamma", "tweedie"),
    Squares(),
)


def regressor(**given):
    if given.get("loss") == "quantile":
        given["quantile"] = 0.7
    return GradientBoostingRegressor(**{**HOW, **given})


def classifier(**given):
    return GradientBoostingClassifier(**{**HOW, **given})


def joint(**given):
    return regressor(multi_strategy="multi_output_tree", **given)


def joint_classes(**given):
    return classifier(multi_strategy="multi_output_tree", **given)


def answers(model, rows):
    """What a model says of each target: a list of arrays."""
    if not hasattr(model, "classes_"):
        return list(np.atleast_2d(model.predict(rows).T))
    found = model.predict_proba(rows)
    return found if isinstance(found, list) else [found]


def assert_trees_are(model, alone, output, n_values=1):
    """The trees of an output are those of a model of it alone, bit for bit."""
    first = sum(max(n, 1) for n in n_values[:output]) if isinstance(n_values, list) else output
    own = n_values[output] if isinstance(n_values, list) else 1
    mine = model.estimators_[:, first : first + own].ravel()
    for tree, other in zip(mine, alone.estimators_.ravel(), strict=True):
        tree, other = tree.tree_.model, other.tree_.model
        assert tree.unit == other.unit
        for name in ("feature", "threshold", "statistics", "n_node_samples", "gain"):
            np.testing.assert_array_equal(getattr(tree, name), getattr(other, name))


@pytest.mark.one_of(12)
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("rules", RULES, ids=["plain", "draws", "steps", "depth"])
@pytest.mark.parametrize("loss", LOSSES, ids=[*map(str, LOSSES[:-1]), "own"])
def test_numbers_are_those_of_a_model_each(loss, rules, weight):
    model = regressor(loss=loss, **rules).fit(X, NUMBERS, WEIGHTS[weight])
    assert (model.n_outputs_, model.n_trees_per_iteration_, model.n_iter_) == (3, 3, 4)
    predicted = model.predict(X)
    for output in range(3):
        alone = clone(model).fit(X, NUMBERS[:, output], WEIGHTS[weight])
        assert_trees_are(model, alone, output)
        np.testing.assert_array_equal(predicted[:, output], alone.predict(X))


@pytest.mark.one_of(3)
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("rules", RULES, ids=["plain", "draws", "steps", "depth"])
def test_classes_are_those_of_a_model_each(rules, weight):
    model = classifier(**rules).fit(X, CLASSES, WEIGHTS[weight])
    assert model.n_classes_ == [2, 4, 1]
    assert model.n_trees_per_iteration_ == 6
    for output in range(3):
        alone = clone(model).fit(X, CLASSES[:, output], WEIGHTS[weight])
        assert_trees_are(model, alone, output, [1, 4, 1])
        for name in ("predict_proba", "predict_log_proba"):
            mine, other = getattr(model, name)(X)[output], getattr(alone, name)(X)
            np.testing.assert_array_equal(mine, other, strict=True)
        np.testing.assert_array_equal(model.predict(X)[:, output], alone.predict(X))
        np.testing.assert_array_equal(model.classes_[output], alone.classes_)
    assert hasattr(alone, "decision_function")
    assert not hasattr(model, "decision_function")  # an array of scikit-learn's is of two classes


def test_monotonic_columns_are_so_for_each_target():
    rules = {"monotonic_cst": [1, 0, -1, 0, 0]}
    model = regressor(**rules).fit(X, NUMBERS)
    for output in range(3):
        alone = regressor(**rules).fit(X, NUMBERS[:, output])
        np.testing.assert_array_equal(model.predict(X)[:, output], alone.predict(X))
    of_two = classifier(**rules).fit(X, CLASSES[:, [0, 0]])
    alone = classifier(**rules).fit(X, CLASSES[:, 0])
    np.testing.assert_array_equal(of_two.predict_proba(X)[1], alone.predict_proba(X))
    with pytest.raises(ValueError, match="Monotonicity constraints are not supported"):
        classifier(**rules).fit(X, CLASSES)


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(3)), st.booleans(), st.sampled_from(["counts", "none"]))
def test_targets_may_be_permuted_and_repeated(order, of_classes, weight):
    model, y = (classifier, CLASSES) if of_classes else (regressor, NUMBERS)
    order = [*order, order[0]]
    given = {**DRAWS, "early_stopping": True, "validation_fraction": 0.3, "max_iter": 3}
    given["n_iter_no_change"] = 3
    one = model(**given).fit(X, y, WEIGHTS[weight])
    other = model(**given).fit(X, y[:, order], WEIGHTS[weight])
    np.testing.assert_array_equal(one.predict(X)[:, order], other.predict(X))
    same = model(**given).fit(X, y[:, order[:3]], WEIGHTS[weight])
    np.testing.assert_array_equal(one.validation_score_, same.validation_score_)


@pytest.mark.parametrize("kind", [regressor, classifier])
def test_weights_are_repeats(kind):
    y = NUMBERS if kind is regressor else CLASSES
    how = {"min_samples_leaf": 1, "max_bins": None}
    rows = np.repeat(np.arange(N_ROWS), COUNTS.astype(int))
    weighed, repeated = kind(**how).fit(X, y, COUNTS), kind(**how).fit(X[rows], y[rows])
    np.testing.assert_array_equal(weighed.predict(X), repeated.predict(X))


def test_class_weights_of_a_row_are_multiplied():
    own = [{0: 1, 1: 3}, {0: 1, 1: 2, 2: 1, 3: 2}, None]
    weight = np.where(CLASSES[:, 0] == 1, 3, 1) * np.where(CLASSES[:, 1] % 2 == 1, 2, 1)
    by_class = classifier(class_weight=own).fit(X, CLASSES)
    by_row = classifier().fit(X, CLASSES, weight)
    np.testing.assert_array_equal(by_class.predict(X), by_row.predict(X))
    classifier(class_weight="balanced").fit(X, CLASSES)
    with pytest.raises(ValueError, match="list of dicts"):
        classifier(class_weight={0: 2}).fit(X, CLASSES)


@pytest.mark.parametrize("kind", [regressor, joint, classifier, joint_classes])
def test_storage_and_threads_do_not_matter(kind):
    y = CLASSES if "class" in kind.__name__ else NUMBERS / NUMBERS.std(axis=0)
    thin = X * (np.abs(X) > 0.7)
    thin[::7, 1] = np.nan
    one = kind(n_jobs=1).fit(thin, y)
    for other in (kind(n_jobs=3).fit(thin, y), kind().fit(sp.csr_array(thin), pd.DataFrame(y))):
        np.testing.assert_array_equal(other.predict(thin), one.predict(thin))
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.predict(thin), one.predict(thin))
    frame = pd.DataFrame(thin, columns=list("vwxyz"))
    frame["letters"] = pd.Categorical(np.array(list("abcde"))[np.arange(N_ROWS) % 5])
    model = kind(n_jobs=2).fit(frame, y)
    alone = kind().fit(frame, y if "joint" in kind.__name__ else y[:, 0])
    np.testing.assert_array_equal(
        model.predict(frame)[:, 0], alone.predict(frame).T.reshape(-1, N_ROWS)[0]
    )


def test_scores_are_means_over_targets():
    given = {"loss": "huber", "max_iter": 6}
    sets = {"eval_set": [(X, NUMBERS), (X[:50], NUMBERS[:50])], "sample_weight": COUNTS}
    model = regressor(**given).fit(X, NUMBERS, **sets)
    curves = [
        regressor(**given)
        .fit(X, y, eval_set=[(X, y), (X[:50], y[:50])], sample_weight=COUNTS)
        .evals_result_
        for y in NUMBERS.T
    ]
    for name, of_set in model.evals_result_.items():
        means = np.mean([own[name]["loss"] for own in curves], axis=0)
        np.testing.assert_allclose(of_set["loss"], means, rtol=1e-14)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("kind", [regressor, classifier])
@pytest.mark.parametrize("scoring", ["loss", None])
def test_early_stopping(kind, scoring):
    y = NUMBERS / NUMBERS.std(axis=0) if kind is regressor else CLASSES[:, [0, 0, 0]]
    given = {"max_iter": 60, "early_stopping": True, "n_iter_no_change": 3, "scoring": scoring}
    model = kind(**given, learning_rate=0.5).fit(X, y)
    assert model.n_iter_ == model.best_iteration_
    shown = kind(**given).fit(X, y, X_val=X[:90], y_val=y[:90], sample_weight_val=COUNTS[:90])
    assert len(shown.validation_score_) > 1
    with pytest.raises(ValueError, match="y has 3 columns, y_val has 1"):
        kind(**given).fit(X, y, X_val=X[:90], y_val=y[:90, 0])
    with pytest.raises(ValueError, match="y has 1 columns, y_val has"):
        kind(**given).fit(X, y[:, 0], X_val=X[:90], y_val=y[:90])


class Heard(Callback):
    def __init__(self):
        self.scores = []

    def on_iteration_end(self, fit, number):
        self.scores.append((number, fit.n_grown, fit.training_score()))
        return number == 2


def test_stages_warm_starts_and_callbacks():
    whole = regressor(**DRAWS).fit(X, NUMBERS)
    stages = list(whole.staged_predict(X))
    for n, stage in enumerate(stages, start=1):
        np.testing.assert_array_equal(stage, whole[:n].predict(X))
    begun = regressor(**DRAWS, warm_start=True).set_params(max_iter=2).fit(X, NUMBERS)
    begun.set_params(max_iter=4).fit(X, NUMBERS)
    np.testing.assert_array_equal(begun.predict(X), whole.predict(X))
    with pytest.raises(ValueError, match="y had 3 targets and has 2"):
        begun.set_params(max_iter=5).fit(X, NUMBERS[:, :2])
    with pytest.raises(ValueError, match="multi_strategy must be that of the first fit"):
        begun.set_params(multi_strategy="multi_output_tree").fit(X, NUMBERS)
    np.testing.assert_array_equal(begun.predict(X), whole.predict(X))
    heard = Heard()
    stopped = regressor(**DRAWS).fit(X, NUMBERS, callbacks=[heard])
    np.testing.assert_array_equal(stopped.predict(X), stages[2])
    assert [own[:2] for own in heard.scores] == [(0, 1), (1, 2), (2, 3)]
    shares = list(classifier().fit(X, CLASSES).staged_predict_proba(X))
    assert [own.shape for own in shares[-1]] == [(N_ROWS, 2), (N_ROWS, 4), (N_ROWS, 1)]


def test_rows_begin_with_scores_of_all_targets():
    start = RNG.normal(size=(N_ROWS, 3))
    model = regressor().fit(X, NUMBERS, init_score=start)
    for output in range(3):
        alone = regressor().fit(X, NUMBERS[:, output], init_score=start[:, output])
        own = alone.predict(X, start[:, output])
        np.testing.assert_array_equal(model.predict(X, start)[:, output], own)
    with pytest.raises(ValueError, match=r"init_score must have the shape \(240, 3\)"):
        regressor().fit(X, NUMBERS, init_score=start[:, 0])
    of_classes = RNG.normal(size=(N_ROWS, 6))
    shares = classifier().fit(X, CLASSES, init_score=of_classes).predict_proba(X, of_classes)
    alone = classifier().fit(X, CLASSES[:, 1], init_score=of_classes[:, 1:5])
    np.testing.assert_array_equal(shares[1], alone.predict_proba(X, of_classes[:, 1:5]))


def test_what_does_not_take_them_says_so():
    model = regressor().fit(X, NUMBERS)
    for refused in (to_lightgbm, to_sklearn):
        with pytest.raises(ValueError, match=r"one target, and this one has 3.*of_target\(0\)"):
            refused(model)
    with pytest.raises(ValueError, match=r"Output 1: .* must be positive"):
        regressor(loss="gamma").fit(X, NUMBERS * [1, -1, 1])
    missing = NUMBERS.copy()
    missing[17, 1] = np.nan
    with pytest.raises(ValueError, match=r"Input y contains NaN.*row 17"):
        regressor().fit(X, missing)


@pytest.mark.parametrize("score", ["neg_log_loss", "accuracy"])
def test_scores_of_more_classes_say_what_works(score):
    indicators = (CLASSES[:, :2] > 0).astype(int)
    classifier(early_stopping=True, scoring="accuracy").fit(X, indicators)
    with pytest.raises(ValueError, match=f'scoring=.{score}.* labels are 0 and 1.* scoring="loss"'):
        classifier(early_stopping=True, scoring=score).fit(X, CLASSES)
    with pytest.raises(ValueError, match="losses of shares take one target"):
        classifier(early_stopping=True, scoring="neg_log_loss").fit(X, indicators)
    with pytest.raises(ValueError, match=f'eval_metric=.{score}.*eval_metric="loss"'):
        classifier().fit(X, CLASSES, eval_set=[(X, CLASSES)], eval_metric=score)


def test_a_checkpoint_goes_on(tmp_path):
    whole = regressor(**DRAWS).fit(X, NUMBERS)
    regressor(**DRAWS, max_iter=2).fit(X, NUMBERS, checkpoint=tmp_path)
    again = regressor(**DRAWS).fit(X, NUMBERS, checkpoint=tmp_path)
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))
    with pytest.raises(ValueError, match="y"):
        regressor(**DRAWS).fit(X, NUMBERS[:, ::-1], checkpoint=tmp_path)


def explained(model, rows):
    """SHAP values and base values by raw prediction: float64 (n_rows, n_values, n_columns + 1)."""
    return model.predict_contributions(rows).reshape(len(rows), -1, rows.shape[1] + 1)


@pytest.mark.parametrize("kind", [regressor, joint, classifier, joint_classes])
def test_models_and_those_of_a_target_have_files_and_shap_values(kind, tmp_path):
    of_classes = "class" in kind.__name__
    y = CLASSES if of_classes else NUMBERS / NUMBERS.std(axis=0)
    given = {"class_weight": [None, {0: 1, 1: 2, 2: 1, 3: 1}, None]} if of_classes else {}
    model = kind(**given).fit(X, y, eval_set=[(X, y)])
    found, first = explained(model, X[:4]), 0
    assert shap_values(model, X[:4]).values.shape == (4, 5, found.shape[1])
    against = shap_values(model, X[:4], background=X[:9])
    total = against.base_values + against.values.sum(axis=1)
    np.testing.assert_allclose(total, found.sum(axis=2), atol=1e-12)
    for layout in ("compact", "flat"):
        dtrees.save(model, tmp_path / "model.dtrees", layout=layout)
        whole = dtrees.load(tmp_path / "model.dtrees")
        np.testing.assert_array_equal(whole.predict(X), model.predict(X))
        assert whole.evals_result_ == model.evals_result_
    for output in range(3):
        own = whole.of_target(output)
        alone = explained(own, X[:4])
        np.testing.assert_allclose(alone, found[:, first : first + alone.shape[1]], atol=1e-12)
        first += alone.shape[1]
        np.testing.assert_array_equal(own.predict(X), model.predict(X)[:, output])
        if of_classes:
            np.testing.assert_array_equal(own.predict_proba(X), model.predict_proba(X)[output])
        dtrees.save(own, tmp_path / "model.dtrees")
        again = dtrees.load(tmp_path / "model.dtrees")
        np.testing.assert_array_equal(again.predict(X), own.predict(X))
        assert own.of_target(0) is own
        assert own.best_iteration_ is None
    own = model.of_target(1)
    if kind is regressor:
        mine = regressor(loss=Squares()).fit(X, y)
        np.testing.assert_allclose(explained(mine, X[:4]).sum(axis=2), mine.predict(X[:4]))
    raw = own.decision_function(X[:4]) if of_classes else own.predict(X[:4])[:, None]
    np.testing.assert_allclose(explained(own, X[:4]).sum(axis=2), raw, atol=1e-12)
    if kind is regressor:
        assert_trees_are(model, own, 1)
    with pytest.raises(ValueError, match="number must be below 3"):
        model.of_target(3)


STARTS = {
    "each": ("[0.00] (logarithm of target: 0)", "[2.30] (logarithm of target: 1)"),
    "joint": ("[0.00] (target: 0)", "[1.00] (target: 1)"),
    "classes": (
        "[0.00] (log odds of class: a: 1)",
        *(f"[{x}] (class: b: {k})" for x, k in (("-0.23", 2), ("0.46", 3), ("-0.23", 4))),
        "[1.00] (share of class: c: x)",
    ),
}
JOINT_TREE = """
iteration 1
|--- feature_0 <= 119.50
|   |--- value: [-0.100, 0.200]
|--- feature_0 >  119.50
|   |--- value: [0.100, -0.200]
"""


def test_texts_and_data_frames():
    rows = np.arange(N_ROWS)[:, None]
    given = {"max_iter": 1, "min_samples_leaf": N_ROWS // 2, "l2_regularization": 0.0}
    each = regressor(loss="poisson", **given | {"min_samples_leaf": N_ROWS})
    texts = {"each": export_text(each.fit(rows, np.full((N_ROWS, 2), [1.0, 10.0])))}
    y = np.where(rows < N_ROWS // 2, [-1.0, 3.0], [1.0, -1.0])
    model = joint(**given).fit(rows, y)
    texts["joint"] = export_text(model)
    assert [node.output for node in nodes(model)] == [None] * 3
    frame = trees_to_dataframe(model)
    np.testing.assert_allclose(frame[["value_0", "value_1"]].to_numpy()[1], [-0.1, 0.2])
    four = rows[:, 0] % 4
    labels = pd.DataFrame({"a": four % 2, "b": 2 + four - (four > 1), "c": "x"})
    model = classifier(max_iter=1, min_samples_leaf=N_ROWS).fit(rows, labels)
    texts["classes"] = export_text(model, max_iter=0)
    assert [node.output for node in nodes(model)] == [0, 1, 2, 3, 4]
    for name, starts in STARTS.items():
        start, _, trees = texts[name].partition("\n\n")
        assert start.replace("start: ", "").split("\n") == list(starts)
        assert ("target: 1\n" in trees) == (name == "each")
    assert trees == "1 iteration more\n"
    assert texts["joint"].endswith(JOINT_TREE)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("weight", ["none", "fractions"])
@pytest.mark.parametrize("kind", [regressor, joint, classifier, joint_classes])
def test_folds_grow_from_one_coding(kind, weight):
    of_classes = "class" in kind.__name__
    y = (CLASSES[:, :2] > 0).astype(int) if of_classes else NUMBERS / NUMBERS.std(axis=0)
    splits = list(KFold(3, shuffle=True, random_state=1).split(X))
    weights = np.ones(N_ROWS) if weight == "none" else WEIGHTS[weight]
    how = {"cv": splits, "params": {} if weight == "none" else {"sample_weight": weights}}
    found = cross_validate(kind(), X, y, return_estimator=True, **how)
    curve = boosting_curve(kind(), X, y, **how)
    scores = boosting_curve(kind(), X, y, scoring=None, **how).scores
    search = GridSearchCV(kind(), {"max_iter": [4, 2]}, cv=splits).fit(X, y, **how["params"])
    for number, (train, test) in enumerate(splits):
        mask = np.zeros(N_ROWS)
        mask[train] = weights[train]
        alone = kind().fit(X, y, mask, eval_set=[(X[test], y[test])])
        model = found["estimator"][number]
        assert model.fit_report_["models_together"] >= 3
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))
        assert found["test_score"][number] == scores[-1, number] == alone.score(X[test], y[test])
        losses = alone.evals_result_["valid_0"]["loss"]
        np.testing.assert_array_equal(curve.scores[:, number], -np.array(losses))
        of_two = search.cv_results_[f"split{number}_test_score"][1]
        weighs = None if weight == "none" else weights[test]  # as scikit-learn's searches
        assert of_two == alone[:2].score(X[test], y[test], weighs)
    whole = kind().fit(X, y, None if weight == "none" else weights)
    np.testing.assert_array_equal(curve.model(3).predict(X), whole[:3].predict(X))
    if kind is joint:
        half = curve.shrunken(0.5).model(3).predict(X) - whole._initial
        np.testing.assert_allclose(2 * half, whole[:3].predict(X) - whole._initial, atol=1e-12)


def test_labels_of_several_types():
    both = pd.DataFrame({"word": np.array(["no", "yes"])[CLASSES[:, 0]], "number": CLASSES[:, 1]})
    predicted = classifier().fit(X, both).predict(X)
    assert predicted.dtype == object
    np.testing.assert_array_equal(
        predicted[:, 1].astype(int), classifier().fit(X, CLASSES[:, 1]).predict(X)
    )
    sparse = classifier().fit(X, sp.csr_array(CLASSES[:, [0, 0]]))
    assert sparse.score(X, CLASSES[:, [0, 0]]) > 0.9


# -------------------------------------------------------------------------------------------------
# a tree of all targets

GRID = np.round(64 * NUMBERS / NUMBERS.std(axis=0)) / 64  # whose sums are exact
HOLES = np.where(RNG.random(X.shape) < 0.1, np.nan, X)


MIXED = pd.DataFrame(HOLES, columns=list("vwxyz"))
MIXED["few"] = pd.Categorical(
    np.where(X[:, 0] > 1, "z", np.array(list("abcde"))[COUNTS.astype(int)])
)
MIXED["many"] = pd.Categorical(RNG.integers(0, 30, N_ROWS))
MIXED["few"] = MIXED["few"].where(np.arange(N_ROWS) % 11 > 0)


RULES_OF_STEPS = "l2_regularization", "l1_regularization", "max_delta_step"


def slow_sides(values, of_rows, is_category):
    """Which rows may go left, by the values of a column: prefixes, with missing values or not."""
    is_missing = np.isnan(values)
    known = np.unique(values[~is_missing])
    if is_category and len(known) > 0:  # by the first component of the smoothed steps
        sums = np.array([of_rows[values == each].sum(axis=0) for each in known])
        n = np.array([(values == each).sum() for each in known])[:, np.newaxis]
        off = sums / (n + 10) - sums.sum(axis=0) / n.sum()
        _, axes = np.linalg.eigh((n * off).T @ off)
        known = known[np.argsort(off @ axes[:, -1])]
    for end in range(1, len(known) + 1):
        left = np.isin(values, known[:end])
        for side in (left, left | is_missing)[: 1 + is_missing.any()]:
            if not side.all():
                yield side


def slow_tree(table, derivatives, n_leaves, rules, least, categories=()):
    """The steps of rows by a tree grown leaf by leaf, of the sums over targets ([XG] 2.2)."""
    l2, l1, most = (rules.get(name, 0.0) for name in RULES_OF_STEPS)
    gradients, hessians = derivatives

    def drawn(rows):
        sums = -gradients[rows].sum(axis=0)
        return np.sign(sums) * np.maximum(np.abs(sums) - l1, 0), hessians[rows].sum(axis=0) + l2

    def step(rows):
        sums, below = drawn(rows)
        return np.clip(sums / below, -most, most) if most else sums / below

    def score(rows):
        (sums, below), own = drawn(rows), step(rows)
        return (2 * sums * own - below * own**2).sum()

    def best_split(rows):
        found = (0.0, None, None)
        for column, values in enumerate(table[rows].T):
            for side in slow_sides(values, -gradients[rows], column in categories):
                left, right = rows[side], rows[~side]
                weights = [hessians[own].mean(axis=1).sum() for own in (left, right)]
                if min(len(left), len(right)) >= least and min(weights) >= 1e-3:
                    gain = score(left) + score(right) - score(rows)
                    found = max(found, (gain, left, right), key=lambda each: each[0])
        return found

    leaves = [np.arange(len(table))]
    splits = [best_split(leaves[0])]
    while len(leaves) < n_leaves and max(gain for gain, *_ in splits) > 0:
        at = int(np.argmax([gain for gain, *_ in splits]))
        leaves[at : at + 1] = splits[at][1:]
        splits[at : at + 1] = [best_split(rows) for rows in leaves[at : at + 2]]
    steps = np.empty_like(gradients)
    for rows in leaves:
        steps[rows] = step(rows)
    return steps


@pytest.mark.one_of(2)
@pytest.mark.parametrize("l2", [0.0, 3.0])
@pytest.mark.parametrize("form", ["numbers", "mixed"])
def test_a_joint_tree_is_the_slow_one(form, l2):
    table, y, slow = np.round(2 * X) / 2, GRID[:, :2] * [1, 20], {}
    rows, numbers = table, table
    if form == "mixed":
        rows = MIXED[["v", "few", "w"]].round(1)
        numbers = rows.assign(few=MIXED["few"].cat.codes.where(MIXED["few"].notna())).to_numpy()
        y, slow = GRID[:, [0, 2]] + (numbers[:, [1]] == 1) * [2.0, -1.0], {"categories": (1,)}
    how = {"max_leaf_nodes": 6, "l2_regularization": l2, "max_bins": None, "learning_rate": 0.5}
    model = joint(**how, max_iter=3).fit(rows, y)
    raw = np.broadcast_to(y.mean(axis=0), y.shape)
    for stage in model.staged_predict(rows):
        steps = slow_tree(numbers, (raw - y, np.ones(y.shape)), 6, how, 5, **slow)
        raw = raw + 0.5 * steps
        np.testing.assert_allclose(stage, raw, rtol=1e-6, atol=1e-6)
    assert (model.n_trees_per_iteration_, model.n_outputs_) == (1, 2)
    (tree,) = model.estimators_[0]
    assert tree.n_outputs_ == 2
    assert tree.tree_.n_leaves == 6
    np.testing.assert_allclose(tree.predict(rows), model[:1].predict(rows) - y.mean(axis=0))


def odds(raw):
    return 1 / (1 + np.exp(-raw))


def shares(raw):
    powers = np.exp(raw - raw.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


LABELS = np.c_[X[:, 0] > 0.3, X[:, 1] * X[:, 2] > 0, COUNTS > 2].astype(int)
FOUR = np.eye(4)[CLASSES[:, 1]]
NEWTON = {  # a target, what is fitted; of raw predictions: predictions, and second derivatives
    "labels": (LABELS, LABELS, odds, lambda raw: odds(raw) * odds(-raw)),
    "classes": (CLASSES[:, 1], FOUR, shares, lambda raw: shares(raw) * (1 - shares(raw))),
    "poisson": (NUMBERS * [1, 1, 1e-9], NUMBERS * [1, 1, 1e-9], np.exp, np.exp),
}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("rules", ["plain", "no l2", "steps"])
@pytest.mark.parametrize("name", NEWTON)
def test_joint_trees_of_newton_steps_are_the_slow_ones(name, rules):
    (target, y, predicted, hessian), table = NEWTON[name], np.round(2 * X) / 2
    how = {"max_leaf_nodes": 6, "max_bins": None, "learning_rate": 0.5, "max_iter": 3}
    how["l2_regularization"] = 0.0 if rules == "no l2" else 1.0
    if rules == "steps":
        how |= {"l1_regularization": 1.0, "max_delta_step": 0.7}
    model = joint(loss=name, **how) if name == "poisson" else joint_classes(**how)
    model.fit(table, target)
    assert (model.n_trees_per_iteration_, model.n_iter_) == (1, 3)
    raw = np.broadcast_to(np.log(y.mean(axis=0)), y.shape)
    if name != "poisson":
        raw = raw - (np.log(1 - y.mean(axis=0)) if name == "labels" else raw.mean())
    for n in range(1, 4):
        slow = slow_tree(table, (predicted(raw) - y, hessian(raw)), 6, how, 5)
        raw = raw + 0.5 * np.clip(slow, -8, 8)
        found = np.stack(answers(model[:n], table))
        found = found[0] if name == "classes" else found[..., 1].T if name == "labels" else found.T
        np.testing.assert_allclose(found, predicted(raw), rtol=1e-6)


OF_JOINT = (*LOSSES, "log_loss")


@settings(max_examples=20, deadline=None)
@given(
    st.permutations(range(3)),
    st.sampled_from(OF_JOINT),
    st.sampled_from([*RULES[:2], NO_PATH, RULES[3]]),
    st.sampled_from([*WEIGHTS]),
)
def test_targets_of_a_joint_tree_may_be_permuted(order, loss, rules, weight):
    y = CLASSES if loss == "log_loss" else NUMBERS / NUMBERS.std(axis=0)
    kind = joint_classes if loss == "log_loss" else partial(joint, loss=loss)
    one = answers(kind(**rules).fit(MIXED, y, WEIGHTS[weight]), MIXED)
    other = answers(kind(**rules).fit(MIXED, y[:, order], WEIGHTS[weight]), MIXED)
    for place, own in zip(order, other, strict=True):
        np.testing.assert_array_equal(one[place], own)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("rules", [DRAWS, NO_PATH], ids=["draws", "steps"])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("loss", OF_JOINT)
def test_a_target_twice_is_the_target(loss, weight, rules):
    y = CLASSES[:, 0] if loss == "log_loss" else NUMBERS[:, 0]
    kind = classifier if loss == "log_loss" else partial(regressor, loss=loss)
    (once,) = answers(kind(**rules).fit(MIXED, y, WEIGHTS[weight]), MIXED)
    for n in (1, 2, 3):
        several = kind(multi_strategy="multi_output_tree", **rules)
        several.fit(MIXED, np.tile(y, (n, 1)).T if n > 1 else y, WEIGHTS[weight])
        for own in answers(several, MIXED):
            np.testing.assert_array_equal(own, once)


def test_joint_trees_without_splits_have_importances():
    model = joint(min_samples_leaf=N_ROWS).fit(HOLES, NUMBERS)
    np.testing.assert_array_equal(model.feature_importances_, np.zeros(HOLES.shape[1]))


@pytest.mark.parametrize("name", ["squared_error", *NEWTON])
def test_weights_of_joint_trees_are_repeats(name):
    how = {"min_samples_leaf": 1, "max_bins": None}
    rows = np.repeat(np.arange(N_ROWS), COUNTS.astype(int))
    y = GRID if name in ("squared_error", "poisson") else NEWTON[name][0]
    kind = joint_classes if name in ("labels", "classes") else partial(joint, loss=name)
    weighed, repeated = kind(**how).fit(HOLES, y, COUNTS), kind(**how).fit(HOLES[rows], y[rows])
    for own, other in zip(answers(weighed, X), answers(repeated, X), strict=True):
        np.testing.assert_array_equal(own, other)


def test_joint_trees_go_on_and_end():
    y = NUMBERS / NUMBERS.std(axis=0)
    whole = joint(max_iter=8, **DRAWS).fit(HOLES, y)
    stages = list(whole.staged_predict(HOLES))
    for n in (1, 8):
        np.testing.assert_array_equal(stages[n - 1], whole[:n].predict(HOLES))
    begun = joint(max_iter=3, warm_start=True, **DRAWS).fit(HOLES, y).set_params(max_iter=8)
    np.testing.assert_array_equal(begun.fit(HOLES, y).predict(HOLES), whole.predict(HOLES))
    np.testing.assert_array_equal(
        joint(max_iter=8, n_jobs=3, **DRAWS).fit(HOLES, y).predict(HOLES), whole.predict(HOLES)
    )
    again = pickle.loads(pickle.dumps(whole))
    np.testing.assert_array_equal(again.predict(HOLES[:1]), whole.predict(HOLES)[:1])
    given = {"max_iter": 60, "learning_rate": 0.5, "n_iter_no_change": 3, "early_stopping": True}
    stopped = joint(**given).fit(HOLES, y, X_val=HOLES[:80], y_val=y[:80], eval_set=[(HOLES, y)])
    assert set(stopped.evals_result_) == {"validation", "training"}
    loss = 0.5 * ((joint(**given).fit(HOLES, y).predict(HOLES) - y) ** 2).mean()
    assert loss < 0.5
    heard = Heard()
    joint(**DRAWS).fit(HOLES, y, callbacks=[heard])
    assert [own[:2] for own in heard.scores] == [(0, 1), (1, 2), (2, 3)]
    start = RNG.normal(size=y.shape)
    begun = joint().fit(HOLES, y, init_score=start)
    assert (
        list(begun.staged_predict(HOLES, start))[-1].tolist()
        == begun.predict(HOLES, start).tolist()
    )


@pytest.mark.parametrize("name", ["path_smooth", "monotonic_cst"])
def test_what_joint_trees_do_not_do(name):
    refused = {"path_smooth": 1.0} if name == "path_smooth" else {"monotonic_cst": [1, 0, 0, 0, 0]}
    with pytest.raises(ValueError, match=f"does not support {name}.*one_output_per_tree"):
        joint(**refused).fit(X, NUMBERS)
    joint(**refused).fit(X, NUMBERS[:, 0])  # which has trees of one output anyway
    with pytest.raises(ValueError, match=f"does not support {name}|Monotonicity constraints"):
        joint_classes(**refused).fit(X, CLASSES[:, 1])


def test_exports_of_joint_trees_of_classes_have_a_tree_for_each():
    model, target = (
        joint_classes().fit(X, CLASSES[:, 1]),
        joint_classes().fit(X, CLASSES).of_target(1),
    )
    for own in (model, target):
        shares = own.predict_proba(X)
        session = pytest.importorskip("onnxruntime").InferenceSession(
            to_onnx(own).SerializeToString()
        )
        np.testing.assert_allclose(session.run(None, {"X": X})[1], shares, atol=1e-14)
        booster = pytest.importorskip("lightgbm").Booster(model_str=to_lightgbm(own))
        np.testing.assert_allclose(booster.predict(X), shares, atol=1e-14)
    step = model.estimators_[0, 0].predict(X)[:, 1]
    np.testing.assert_allclose(to_sklearn(model, tree=1).predict(X), step, atol=1e-14)
