"""Parameters of other libraries, and what they are called here.

A constructor, `fit` or `predict` that is given one of them raises a TypeError that names the
parameter of dtrees, or says why there is none; `set_params`, and with it a search, raises a
ValueError. So does a misspelt name. The table is that of ``docs/user_guide/coming_from.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

from dtrees._other_words import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])

PAGE = "docs/user_guide/coming_from.md"

# Parameters here, and what other libraries call them; of several here, those that there are.
NAMES = {
    other: tuple(here.split())
    for here, others in {
        "X_val": "eval_X",
        "callbacks": "callbacks monitor",
        "bootstrap_groups": "groups",
        "categorical_features": "cat_feature cat_features categorical_feature feature_types",
        "category_penalty": (
            "cat_l2 cat_smooth max_cat_threshold max_cat_to_onehot min_data_per_group "
            "one_hot_max_size"
        ),
        "class_weight": "auto_class_weights class_weights is_unbalance scale_pos_weight",
        "colsample_bytree max_features": "colsample_bytree feature_fraction max_features rsm",
        "eval_init_score": "base_margin_eval_set eval_init_score",
        "eval_metric": "custom_metric eval_metric feval",
        "eval_names": "eval_names valid_names",
        "eval_sample_weight": "eval_class_weight eval_sample_weight sample_weight_eval_set",
        "eval_set": "eval_set evals valid_sets",
        "init_score": "base_margin baseline init_score",
        "interaction_cst": "interaction_constraints",
        "l1_regularization": "alpha lambda_l1 reg_alpha",
        "l2_regularization": "l2_leaf_reg lambda lambda_l2 reg_lambda",
        "learning_rate": "eta learning_rate shrinkage_rate",
        "loss criterion": "application loss loss_function obj objective",
        "max_bins": "border_count max_bin tree_method",
        "max_depth": "depth",
        "max_features": "colsample_bylevel colsample_bynode feature_fraction_bynode",
        "max_iter n_estimators": (
            "iterations max_iter n_estimators n_iter nrounds num_boost_round num_iteration "
            "num_iterations num_round num_tree num_trees"
        ),
        "max_leaf_nodes": "max_leaves num_leaves",
        "min_child_weight": ("min_child_weight min_sum_hessian_in_leaf min_weight_fraction_leaf"),
        "min_samples_leaf": "min_child_samples min_data_in_leaf",
        "min_split_gain min_impurity_decrease": (
            "gamma min_gain_to_split min_impurity_decrease min_split_gain min_split_loss"
        ),
        "monotonic_cst": "monotone_constraints",
        "n_iter_no_change oob_tol": (
            "early_stopping early_stopping_round early_stopping_rounds n_iter_no_change od_wait"
        ),
        "n_jobs": "nthread num_threads thread_count",
        "power": "tweedie_variance_power",
        "quantile": "quantile_alpha",
        "random_state": "bagging_seed feature_fraction_seed random_seed seed",
        "sample_weight": "weight",
        "scoring": "metric",
        "subsample max_samples": "bagging_fraction max_samples subsample",
        "tol oob_tol": "early_stopping_min_delta",
        "validation_fraction": "eval_fraction",
        "verbose": "logging_level silent verbose verbose_eval verbosity",
        "y_val": "eval_y",
    }.items()
    for other in others.split()
}


def _by_name(groups: Mapping[str, Mapping[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Answers by name, each behind what a class must have: a parameter, a method, or nothing."""
    found: dict[str, list[tuple[str, str]]] = {}
    for needs, group in groups.items():
        for others, said in group.items():
            for other in others.split():
                found.setdefault(other, []).append((needs, said))
    return found


# Why a class that has the parameter or method in front has no such parameter.
REASONS = _by_name(
    {
        "": {
            "check_input validate_features validate_parameters": "Tables are always checked.",
            "deterministic force_col_wise force_row_wise": "Threads change no bit of a model.",
            "device device_type gpu_id predictor task_type": "Models grow on processors only.",
            "dtrain train_set": "Give the table and the target: fit(X, y).",
            "enable_categorical": "Columns of categories need no switch.",
            "base_estimator estimator": (
                "Ensembles of any estimator are scikit-learn's, in sklearn.ensemble. These are of "
                "decision trees, and take the parameters of trees."
            ),
            "extra_trees splitter": "Splits are the best ones; ExtraTrees draws thresholds.",
            "feature_name feature_names": "Names are those of the columns of a data frame.",
            "group qid": "There is no ranking.",
            "importance_type": "Importances are of gain; see dtrees.inspection.split_counts.",
            "linear_tree": "Leaves hold constants.",
            "min_data_in_bin subsample_for_bin": "max_bins says how many bins there are.",
            "missing": (
                "Missing values are nan, None, NaT and pandas.NA. Replace others before: "
                "X.replace(-999, nan)."
            ),
            "monotone_penalty": "Constraints of monotonic_cst hold, at no penalty.",
            "params": "Give each parameter by its name: **params.",
        },
        "max_iter": {
            "base_score boost_from_average": "Models start from init_score or a constant.",
            "ccp_alpha": "Trees are not pruned; min_split_gain stops splits that gain little.",
            "criterion": "Splits are scored by the derivatives of the loss.",
            "booster boosting boosting_type drop_rate grow_policy num_parallel_tree": (
                "There is one form of boosting: trees that follow each other, leaf by leaf."
            ),
            "evals_result": "After fit, evals_result_ has the curves.",
            "first_metric_only": "One metric ends the fit: that of scoring.",
            "maximize": "A scorer knows whether more is better.",
        },
        "staged_score": {
            "algorithm": "It is SAMME.",
            "class_weight": "Give a sample_weight to fit.",
        },
        "regime": {"client": "The cluster is that of the current distributed.Client."},
        "predict_proba": {"num_class use_label_encoder": "Classes are the labels in y."},
        "warm_start": {
            "bagging_freq subsample_freq": "Rows are drawn anew for each tree.",
            "bootstrap_type data_sample_strategy sampling_method top_rate": "Rows are drawn alike.",
            "init_model xgb_model": "Load the model, set warm_start=True, and fit again.",
        },
    }
)

# Of predictions: what to call instead.
PREDICTIONS = _by_name(
    {
        "decision_function": {"raw_score output_margin": "Call decision_function."},
        "predict_raw": {"raw_score output_margin": "Call predict_raw."},
        "first_iterations": {
            "iteration_range ntree_end ntree_limit num_iteration start_iteration": (
                "Predict by the first iterations: model[:n]."
            ),
        },
        "": {
            "raw_score output_margin": "Rows of predict_contributions sum to raw predictions.",
            "pred_contrib pred_contribs": "Call predict_contributions.",
            "approx_contribs": "Call predict_contributions, which is exact.",
            "pred_interactions": "Call dtrees.inspection.shap_values with interactions=True.",
            "pred_leaf": "Call apply.",
        },
    }
)


def names_others(function: F) -> F:
    """Let a method answer parameters of other libraries with their names here."""
    own = signature(function).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in own.values()):
        return function

    @wraps(function)
    def call(self: Any, *args: Any, **given: Any) -> Any:
        wrong = [name for name in given if name not in own] if given else []
        if wrong:
            raise TypeError(
                f"{type(self).__name__}.{function.__name__}() got an unexpected keyword argument "
                f"{wrong[0]!r}{_hints(type(self), wrong, own, function.__name__)}"
            )
        return function(self, *args, **given)

    return call  # type: ignore[return-value]


def refuse_setting(kind: Any, names: Iterable[str]) -> None:
    """Raise a ValueError if one of the names is no parameter of an estimator, and has a hint."""
    known = kind._get_param_names()
    wrong = [name for name in names if name not in known and _hint(kind, name, known, "__init__")]
    if wrong:
        hints = _hints(kind, wrong, known, "__init__")
        raise ValueError(f"Invalid parameter {wrong[0]!r} for estimator {kind.__name__}{hints}")


def _hints(kind: Any, wrong: Sequence[str], known: Collection[str], method: str) -> str:
    """The hint of the first unknown name, then the others with theirs; the page comes once."""
    first, *others = (_hint(kind, name, known, method) or "." for name in wrong)
    also = (f" And {name!r}{hint}" for name, hint in zip(wrong[1:], others, strict=True))
    said, page = first + "".join(also), f" See {PAGE}."
    return said.replace(page, "") + page if page in said else said


def _fitting(kind: Any, answers: Iterable[tuple[str, str]]) -> str:
    """The first answer for the class: what it needs is one of its parameters or methods."""
    has = {"", *dir(kind), *signature(kind.__init__).parameters, *signature(kind.fit).parameters}
    fitting = (said for needs, said in answers if needs in has)
    return next(fitting, f"{kind.__name__} has nothing like it.")


def _hint(kind: Any, name: str, known: Collection[str], method: str) -> str:
    """What to write instead of an unknown name, after a dot; "" where nothing is like it."""
    elsewhere = signature(kind.fit if method == "__init__" else kind.__init__).parameters
    candidates = dict.fromkeys((name, *NAMES.get(name, ())))
    here = " or ".join(repr(each) for each in candidates if each in known)
    there = " or ".join(repr(each) for each in candidates if each in elsewhere)
    if method not in ("__init__", "fit") and name in PREDICTIONS:
        said = _fitting(kind, PREDICTIONS[name])
    elif here:
        said = f"Use {here}."
    elif there:
        said = f"Give {there} to fit." if method == "__init__" else f"Set {there} of the estimator."
    elif name in REASONS or name in NAMES:
        said = _fitting(kind, REASONS.get(name, ()))
    else:
        found = did_you_mean(name, known)
        return found and f".{found}"
    return f". {said} See {PAGE}."
