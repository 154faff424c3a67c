"""Parameters of other libraries are errors that say their names here."""

import inspect
import re
from functools import partial
from pathlib import Path

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

import dtrees
from dtrees import (
    AdaBoostClassifier,
    BaggingClassifier,
    DecisionTreeClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.estimators.other_names import NAMES, PREDICTIONS, REASONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "user_guide" / "coming_from.md"
ESTIMATORS = (
    *(AdaBoostClassifier, BaggingClassifier, DecisionTreeClassifier),
    *(GradientBoostingClassifier, RandomForestClassifier),
)
ENDS = ("Classifier", "Regressor")
EVERY = dict.fromkeys(getattr(dtrees, each) for each in dtrees.__all__ if each.endswith(ENDS))
X, Y = [[1.0], [2.0]], [0, 1]


def parameters(kind, *methods):
    return {each for method in methods for each in inspect.signature(method or kind).parameters}


def refused(call, name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'") as caught:
        call(**{name: 1})
    return str(caught.value).partition(f"'{name}'")[2]


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (GradientBoostingClassifier, "n_estimators", ". Use 'max_iter'."),
        (GradientBoostingClassifier, "num_leaves", ". Use 'max_leaf_nodes'."),
        (GradientBoostingClassifier, "eval_set", ". Give 'eval_set' to fit."),
        (RandomForestClassifier, "subsample", ". Use 'max_samples'."),
        (RandomForestClassifier, "colsample_bynode", ". Use 'max_features'."),
        (BaggingClassifier, "max_features", ". Use 'colsample_bytree'."),
        (GradientBoostingClassifier, "min_split_loss", ". Use 'min_split_gain'."),
        (RandomForestClassifier, "eval_set", ". RandomForestClassifier has nothing like it."),
        (RandomForestClassifier, "splitter", ". Splits are the best ones"),
        (DecisionTreeClassifier, "device", ". Models grow on processors"),
        (GradientBoostingClassifier, "criterion", ". Splits are scored by the derivatives"),
        (GradientBoostingClassifier, "min_weight_fraction_leaf", ". Use 'min_child_weight'."),
        (GradientBoostingClassifier, "min_impurity_decrease", ". Use 'min_split_gain'."),
        (GradientBoostingClassifier, "ccp_alpha", ". Trees are not pruned"),
        (GradientBoostingClassifier, "client", ". The cluster is that of the current"),
        (RandomForestClassifier, "early_stopping", ". Use 'oob_tol'."),
        (GradientBoostingClassifier, "callbacks", ". Give 'callbacks' to fit."),
        (DecisionTreeClassifier, "verbose", ". DecisionTreeClassifier has nothing like it."),
        (GradientBoostingClassifier, "max_dept", ". Did you mean 'max_depth'?"),
        (GradientBoostingClassifier, "alpha", ". Use 'l1_regularization'."),
        (GradientBoostingClassifier, "num_iteration", ". Use 'max_iter'."),
        (GradientBoostingClassifier, "feval", ". Give 'eval_metric' to fit."),
        (GradientBoostingClassifier, "use_label_encoder", ". Classes are the labels in y."),
        (
            RandomForestRegressor,
            "use_label_encoder",
            ". RandomForestRegressor has nothing like it.",
        ),
        (RandomForestClassifier, "booster", ". RandomForestClassifier has nothing like it."),
        (DecisionTreeClassifier, "xgb_model", ". DecisionTreeClassifier has nothing like it."),
    ],
)
def test_a_constructor_says_the_name(kind, name, said):
    assert refused(kind, name).startswith(said)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (GradientBoostingClassifier, "base_margin", ". Use 'init_score'."),
        (GradientBoostingClassifier, "early_stopping_rounds", ". Set 'n_iter_no_change' of the"),
        (GradientBoostingClassifier, "verbose", ". Set 'verbose' of the estimator."),
        (RandomForestClassifier, "groups", ". Use 'bootstrap_groups'."),
        (DecisionTreeClassifier, "check_input", ". Tables are always checked."),
        (GradientBoostingClassifier, "min_split_gain", ". Set 'min_split_gain' of the estimator."),
        (GradientBoostingClassifier, "sample_weights", ". Did you mean 'sample_weight'?"),
        (GradientBoostingClassifier, "evals_result", ". After fit, evals_result_ has the curves."),
        (RandomForestClassifier, "qid", ". There is no ranking."),
        (RandomForestClassifier, "params", ". Give each parameter by its name: **params."),
    ],
)
def test_fit_says_the_name(kind, name, said):
    model = kind()
    assert refused(lambda **given: model.fit(X, Y, **given), name).startswith(said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raw_score", ". Call decision_function."),
        ("pred_contrib", ". Call predict_contributions."),
        ("num_iteration", ". Predict by the first iterations: model[:n]."),
        ("base_margin", ". Use 'init_score'."),
    ],
)
def test_predictions_say_what_to_call(name, said):
    model = GradientBoostingClassifier(max_iter=1, min_samples_leaf=1).fit(X, Y)
    for method in model.predict, model.predict_proba:
        assert refused(lambda method=method, **given: method(X, **given), name).startswith(said)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        (GradientBoostingRegressor, "raw_score", ". Call predict_raw."),
        (RandomForestClassifier, "raw_score", ". Rows of predict_contributions sum to raw"),
        (RandomForestRegressor, "num_iteration", ". RandomForestRegressor has nothing like it."),
        (DecisionTreeClassifier, "pred_interactions", ". Call dtrees.inspection.shap_values with"),
        (GradientBoostingRegressor, "n_jobs", ". Set 'n_jobs' of the estimator."),
    ],
)
def test_predictions_say_what_the_class_has(kind, name, said):
    assert refused(lambda **given: kind().predict(X, **given), name).startswith(said)


@pytest.mark.parametrize(
    ("library", "names"),
    [
        ("sklearn.ensemble", ("GradientBoosting{}", "HistGradientBoosting{}")),
        ("xgboost", ("XGB{}",)),
        ("lightgbm", ("LGBM{}",)),
    ],
)
def test_parameters_of_other_boosting_are_here_or_have_an_answer(library, names):
    module = pytest.importorskip(library)
    for kind in (GradientBoostingClassifier, GradientBoostingRegressor):
        for name in names:
            other = getattr(module, name.format(kind.__name__.removeprefix("GradientBoosting")))
            for each in {*other().get_params()} - parameters(kind, None):
                assert refused(kind, each).endswith(" See docs/user_guide/coming_from.md."), each
            if name.startswith("Hist"):
                assert {*other().get_params()} <= parameters(kind, None)
                public = {each for each in dir(other) if not each.startswith("_")}
                assert public <= set(dir(kind))


@pytest.mark.one_of(4)
@pytest.mark.parametrize("kind", EVERY)
def test_hints_name_what_the_class_has(kind):
    methods = [
        method
        for name in ("fit", "predict", "predict_proba", "decision_function")
        if (method := getattr(kind, name, None))
    ]
    here = {*dir(kind), *dir(dtrees.inspection), *parameters(kind, None, kind.fit), "dtrees"}
    for method in (None, *methods):
        own, elsewhere = parameters(kind, method), parameters(kind, None if method else kind.fit)
        for name in {*NAMES, *REASONS, *PREDICTIONS} - own:
            call = partial(method, kind()) if method else kind
            hint = refused(call, name).removesuffix(" See docs/user_guide/coming_from.md.")
            quoted = set(re.findall(r"'(\w+)'", hint))
            assert quoted <= (own if hint.startswith((". Use", ". Did")) else elsewhere), hint
            named = {*re.findall(r"\w+_\w*", hint), *re.findall(r"Call (\w+)", hint)}
            assert named <= here, hint
            if "model[:n]" in hint:
                assert hasattr(kind, "first_iterations")


def test_all_wrong_names_come_in_one_error():
    with pytest.raises(TypeError) as caught:
        GradientBoostingClassifier(num_leaves=7, max_depth=2, colour="red", eta=0.1)
    assert str(caught.value) == (
        "GradientBoostingClassifier.__init__() got an unexpected keyword argument 'num_leaves'. "
        "Use 'max_leaf_nodes'. And 'colour'. And 'eta'. Use 'learning_rate'. "
        "See docs/user_guide/coming_from.md."
    )
    with pytest.raises(ValueError, match=r"'num_leaves' for estimator Gr.*And 'eta'\. Use 'learn"):
        GradientBoostingClassifier().set_params(num_leaves=7, max_depth=2, eta=0.1)


@pytest.mark.parametrize("kind", EVERY)
def test_errors_name_the_class_of_the_user(kind):
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.fit\(\) got .* 'colour'\.$"):
        kind().fit(X, Y, colour="red")
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.predict\(\) got .* 'colour'\.$"):
        kind().predict(X, colour="red")


@pytest.mark.parametrize("search_class", [dtrees.GridSearchCV, GridSearchCV])
@pytest.mark.parametrize("prefix", ["", "model__"])
def test_grids_say_the_name(search_class, prefix):
    estimator = GradientBoostingClassifier()
    if prefix:
        estimator = Pipeline([("none", "passthrough"), ("model", estimator)])
    search = search_class(estimator, {f"{prefix}num_leaves": [4]}, cv=2)
    with pytest.raises(ValueError, match=r"'num_leaves' for estimator Grad.*Use 'max_leaf_nodes'"):
        search.fit(X * 20, Y * 20)


def test_parameters_of_fit_are_given_to_fit():
    with pytest.raises(ValueError, match=r"Give 'eval_set' to fit\. See"):
        GradientBoostingClassifier().set_params(max_depth=2, eval_set=[(X, Y)])


def test_setting_what_is_like_nothing_is_scikit_learns_error():
    with pytest.raises(ValueError, match="Valid parameters are"):
        DecisionTreeClassifier().set_params(colour="red")
    with pytest.raises(ValueError, match=r"'max_dept' for estimator Dec.*mean 'max_depth'\?$"):
        DecisionTreeClassifier().set_params(max_dept=1)
    tree = DecisionTreeClassifier()
    assert tree.set_params(max_depth=1, n_jobs=2) is tree
    assert (tree.max_depth, tree.n_jobs) == (1, 2)


def test_a_name_that_is_like_nothing_has_no_hint():
    for kind in ESTIMATORS:
        assert refused(kind, "colour") == "."


@pytest.mark.parametrize("name", [*NAMES, *REASONS])
def test_every_name_of_the_table_is_known_and_on_the_page(name):
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
    kinds = [kind for kind in ESTIMATORS if name not in inspect.signature(kind).parameters]
    assert kinds
    for kind in kinds:
        assert refused(kind, name).endswith(" See docs/user_guide/coming_from.md.")
        with pytest.raises(ValueError, match=f"^Invalid parameter '{name}' for .*coming_from.md.$"):
            kind().set_params(**{name: 1})


def test_names_here_are_parameters_of_some_estimator():
    known = set().union(*(parameters(kind, None, kind.fit) for kind in EVERY))
    assert {each for here in NAMES.values() for each in here} <= known
    assert not set(NAMES) & set(REASONS)


def test_signatures_and_clones_are_those_of_the_class():
    assert "max_depth" in inspect.signature(DecisionTreeClassifier).parameters
    assert clone(DecisionTreeClassifier(max_depth=3)).max_depth == 3

    class Mine(DecisionTreeClassifier):
        def __init__(self, max_depth=2):
            super().__init__(max_depth=max_depth)

    assert list(Mine().get_params()) == ["max_depth"]
    assert re.search("Use 'random_state'", refused(DecisionTreeClassifier, "seed"))
