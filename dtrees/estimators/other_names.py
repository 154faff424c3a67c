"""Parameters of other libraries, and what they are called here.

A constructor, `fit` or `predict` that is given one of them raises a TypeError that names the
parameter of dtrees, or says why there is none; `set_params`, and with it a search, raises a
ValueError. The table is that of the page ``docs/user_guide/coming_from.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

PAGE = "docs/user_guide/coming_from.md"

# What another library's parameter is called here; of several names, those that the estimator has.
NAMES: dict[str, tuple[str, ...]] = {
    "auto_class_weights": ("class_weight",),
    "base_margin": ("init_score",),
    "base_margin_eval_set": ("eval_init_score",),
    "baseline": ("init_score",),
    "bagging_fraction": ("subsample", "max_samples"),
    "border_count": ("max_bins",),
    "cat_features": ("categorical_features",),
    "categorical_feature": ("categorical_features",),
    "colsample_bylevel": ("max_features",),
    "colsample_bynode": ("max_features",),
    "colsample_bytree": ("max_features",),
    "early_stopping_rounds": ("n_iter_no_change", "oob_tol"),
    "eta": ("learning_rate",),
    "eval_X": ("X_val",),
    "eval_init_score": (),
    "eval_metric": (),
    "eval_names": (),
    "eval_sample_weight": (),
    "eval_set": (),
    "eval_y": ("y_val",),
    "feature_fraction": ("colsample_bytree", "max_features"),
    "feature_fraction_bynode": ("max_features",),
    "gamma": ("min_split_gain", "min_impurity_decrease"),
    "groups": ("bootstrap_groups",),
    "init_score": (),
    "interaction_constraints": ("interaction_cst",),
    "is_unbalance": ("class_weight",),
    "iterations": ("max_iter", "n_estimators"),
    "l2_leaf_reg": ("l2_regularization",),
    "lambda_l1": ("l1_regularization",),
    "lambda_l2": ("l2_regularization",),
    "max_bin": ("max_bins",),
    "max_iter": ("n_estimators",),
    "max_leaves": ("max_leaf_nodes",),
    "max_samples": ("subsample",),
    "metric": ("scoring",),
    "min_child_samples": ("min_samples_leaf",),
    "min_data_in_leaf": ("min_samples_leaf",),
    "min_gain_to_split": ("min_split_gain", "min_impurity_decrease"),
    "min_split_gain": ("min_impurity_decrease",),
    "min_split_loss": ("min_split_gain", "min_impurity_decrease"),
    "min_sum_hessian_in_leaf": ("min_child_weight",),
    "monitor": ("callbacks",),
    "monotone_constraints": ("monotonic_cst",),
    "n_estimators": ("max_iter",),
    "nthread": ("n_jobs",),
    "num_boost_round": ("max_iter",),
    "num_iterations": ("max_iter",),
    "num_leaves": ("max_leaf_nodes",),
    "num_threads": ("n_jobs",),
    "objective": ("loss", "criterion"),
    "od_wait": ("n_iter_no_change",),
    "random_seed": ("random_state",),
    "reg_alpha": ("l1_regularization",),
    "reg_lambda": ("l2_regularization",),
    "sample_weight_eval_set": ("eval_sample_weight",),
    "scale_pos_weight": ("class_weight",),
    "seed": ("random_state",),
    "subsample": ("max_samples",),
    "thread_count": ("n_jobs",),
    "tree_method": ("max_bins",),
    "tweedie_variance_power": ("power",),
    "verbosity": ("verbose",),
}

# Why there is no such parameter.
PROCESSORS = "Models grow on processors, not on graphics cards."
NO_FORMS = "There is one form of boosting: trees that follow each other, leaf by leaf."
REASONS: dict[str, str] = {
    "booster": NO_FORMS,
    "boosting_type": NO_FORMS,
    "check_input": "Tables are always checked.",
    "device": PROCESSORS,
    "device_type": PROCESSORS,
    "enable_categorical": "Columns of categories need no switch.",
    "estimator": "Bagging is of decision trees, which take their parameters from it.",
    "feature_name": "Names are those of the columns of a data frame.",
    "grow_policy": NO_FORMS,
    "init": "A model starts from the best constant, or from the init_score of each row.",
    "init_model": "Load the model, set warm_start=True, and fit again.",
    "linear_tree": "Leaves hold constants.",
    "missing": "nan, None, NaT and pandas.NA are missing values, and nothing else is.",
    "splitter": "A tree takes the best split; ExtraTrees draws thresholds at random.",
    "task_type": PROCESSORS,
    "xgb_model": "Load the model, set warm_start=True, and fit again.",
}

# Of `predict`: what to call instead.
PREDICTIONS: dict[str, str] = {
    **dict.fromkeys(("raw_score", "output_margin"), "Call decision_function."),
    **dict.fromkeys(("pred_contrib", "pred_contribs"), "Call predict_contributions."),
    **dict.fromkeys(
        ("num_iteration", "iteration_range", "ntree_limit", "ntree_end"),
        "Predict by the first iterations: model[:n].",
    ),
    "pred_leaf": "Call apply.",
}


def names_others(function: F) -> F:
    """Let a method answer parameters of other libraries with their names here."""
    own = signature(function).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in own.values()):
        return function
    known = frozenset(own)

    @wraps(function)
    def call(self: Any, *args: Any, **given: Any) -> Any:
        if given and not known.issuperset(given):
            for name in given:
                _refuse(type(self), function.__name__, name, known)
        return function(self, *args, **given)

    return call  # type: ignore[return-value]


def _refuse(kind: Any, function: str, name: str, known: frozenset[str]) -> None:
    """Raise a TypeError if a parameter is unknown here, and known elsewhere."""
    hint = "" if name in known else _hint(kind, name, known, function == "fit")
    if hint:
        raise TypeError(
            f"{kind.__name__}.{function}() got an unexpected keyword argument {name!r}. {hint}"
        )


def refuse_setting(kind: Any, names: Iterable[str]) -> None:
    """Raise a ValueError if one of the names is no parameter of an estimator, and is elsewhere."""
    known = frozenset(kind._get_param_names())
    for name in names:
        hint = "" if name in known else _hint(kind, name, known, False)
        if hint:
            raise ValueError(f"Invalid parameter {name!r} for estimator {kind.__name__}. {hint}")


def _hint(kind: Any, name: str, known: frozenset[str], of_fit: bool) -> str:
    """What to write instead of an unknown name; empty where it is known nowhere."""
    if name in PREDICTIONS:
        return f"{PREDICTIONS[name]} See {PAGE}."
    elsewhere = signature(kind.__init__ if of_fit else kind.fit).parameters
    candidates = (name, *NAMES.get(name, ()))
    here = " and ".join(repr(each) for each in candidates if each in known)
    there = " and ".join(repr(each) for each in candidates if each in elsewhere)
    if here:
        said = f"Use {here}."
    elif there:
        said = f"Set {there} of the estimator." if of_fit else f"Give {there} to fit."
    elif name in REASONS or name in NAMES:
        said = REASONS.get(name, f"{kind.__name__} has nothing like it.")
    else:
        return ""
    return f"{said} See {PAGE}."
