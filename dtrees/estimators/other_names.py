"""Parameters of other libraries, and what they are called here.

A constructor, `fit` or `predict` that is given one of them raises a TypeError that names the
parameter of dtrees, or says why there is none; `set_params`, and with it a search, raises a
ValueError. So does a misspelt name. The table is that of ``docs/user_guide/coming_from.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
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
        "colsample_bytree max_features": "colsample_bytree feature_fraction rsm",
        "eval_init_score": "base_margin_eval_set eval_init_score",
        "eval_metric": "custom_metric eval_metric",
        "eval_names": "eval_names valid_names",
        "eval_sample_weight": "eval_sample_weight sample_weight_eval_set",
        "eval_set": "eval_set evals valid_sets",
        "init_score": "base_margin baseline init_score",
        "interaction_cst": "interaction_constraints",
        "l1_regularization": "lambda_l1 reg_alpha",
        "l2_regularization": "l2_leaf_reg lambda_l2 reg_lambda",
        "learning_rate": "eta learning_rate shrinkage_rate",
        "loss criterion": "application criterion loss loss_function objective",
        "max_bins": "border_count max_bin tree_method",
        "max_depth": "depth",
        "max_features": "colsample_bylevel colsample_bynode feature_fraction_bynode",
        "max_iter n_estimators": (
            "iterations max_iter n_estimators num_boost_round num_iterations num_round num_trees"
        ),
        "max_leaf_nodes": "max_leaves num_leaves",
        "min_child_weight": "min_child_weight min_sum_hessian_in_leaf",
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
        "validation_fraction": "eval_fraction",
        "verbose": "logging_level silent verbose verbose_eval verbosity",
        "y_val": "eval_y",
    }.items()
    for other in others.split()
}

# Why there is no such parameter.
REASONS = {
    other: reason
    for others, reason in {
        "bagging_freq subsample_freq": "Rows are drawn anew for each tree.",
        "base_score boost_from_average init": (
            "A model starts from the best constant, or from the init_score of each row."
        ),
        "bootstrap_type data_sample_strategy sampling_method": (
            "Rows are drawn alike, each by itself."
        ),
        "booster boosting boosting_type grow_policy num_parallel_tree": (
            "There is one form of boosting: trees that follow each other, leaf by leaf."
        ),
        "check_input validate_features validate_parameters": "Tables are always checked.",
        "deterministic force_col_wise force_row_wise": (
            "Any number of threads gives the same model, bit for bit."
        ),
        "device device_type gpu_id predictor task_type": (
            "Models grow on processors, not on graphics cards."
        ),
        "feature_weights": "Columns are drawn alike.",
        "enable_categorical": "Columns of categories need no switch.",
        "estimator": "Bagging is of decision trees, which take their parameters from it.",
        "extra_trees splitter": (
            "A tree takes the best split; ExtraTrees draws thresholds at random."
        ),
        "feature_name feature_names": "Names are those of the columns of a data frame.",
        "importance_type": (
            "feature_importances_ are shares of the gain; dtrees.inspection has split_counts."
        ),
        "init_model xgb_model": "Load the model, set warm_start=True, and fit again.",
        "linear_tree": "Leaves hold constants.",
        "missing": "nan, None, NaT and pandas.NA are missing values, and nothing else is.",
        "num_class": "Classes are the labels in y.",
    }.items()
    for other in others.split()
}

# Of `predict`: what to call instead.
PREDICTIONS = {
    other: instead
    for others, instead in {
        "raw_score output_margin": "Call decision_function.",
        "pred_contrib pred_contribs": "Call predict_contributions.",
        "pred_leaf": "Call apply.",
        "iteration_range ntree_end ntree_limit num_iteration start_iteration": (
            "Predict by the first iterations: model[:n]."
        ),
    }.items()
    for other in others.split()
}


def names_others(function: F) -> F:
    """Let a method answer parameters of other libraries with their names here."""
    own = signature(function).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in own.values()):
        return function

    @wraps(function)
    def call(self: Any, *args: Any, **given: Any) -> Any:
        for name in given.keys() - own.keys() if given else ():
            hint = _hint(type(self), name, own, function.__name__ == "fit")
            if hint:
                raise TypeError(
                    f"{type(self).__name__}.{function.__name__}() got an unexpected keyword "
                    f"argument {name!r}.{hint}"
                )
        return function(self, *args, **given)

    return call  # type: ignore[return-value]


def refuse_setting(kind: Any, names: Iterable[str]) -> None:
    """Raise a ValueError if one of the names is no parameter of an estimator, and has a hint."""
    known = kind._get_param_names()
    for name in names:
        hint = "" if name in known else _hint(kind, name, known, False)
        if hint:
            raise ValueError(f"Invalid parameter {name!r} for estimator {kind.__name__}.{hint}")


def _hint(kind: Any, name: str, known: Collection[str], of_fit: bool) -> str:
    """What to write instead of an unknown name, behind a space; "" where nothing is like it."""
    elsewhere = signature(kind.__init__ if of_fit else kind.fit).parameters
    candidates = dict.fromkeys((name, *NAMES.get(name, ())))
    here = " or ".join(repr(each) for each in candidates if each in known)
    there = " or ".join(repr(each) for each in candidates if each in elsewhere)
    if name in PREDICTIONS:
        said = PREDICTIONS[name]
    elif here:
        said = f"Use {here}."
    elif there:
        said = f"Set {there} of the estimator." if of_fit else f"Give {there} to fit."
    elif name in REASONS or name in NAMES:
        said = REASONS.get(name, f"{kind.__name__} has nothing like it.")
    else:
        return did_you_mean(name, known)
    return f" {said} See {PAGE}."
