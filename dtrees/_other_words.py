"""Words of other libraries for losses, criteria and scorers, and what they are called here."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

LEAST_LIKENESS = 0.75  # of a misspelt word, by difflib

# A word here, and others for it in small letters; of several here, the first that is an option.
WORDS = {
    other: tuple(here.split())
    for here, others in {
        "accuracy": "acc error binary_error merror multi_error misclassification",
        "average_precision": "aucpr pr_auc prauc",
        "entropy": "information_gain",
        "gini": "gini_index",
        "log_loss loss neg_log_loss": (
            "binary binary:logistic binary_logloss binomial_deviance cross_entropy crossentropy "
            "deviance log_loss logistic logloss mlogloss multi:softmax multi:softprob "
            "multi_logloss multiclass multinomial"
        ),
        "roc_auc": "auc auc_mu",
        "absolute_error neg_mean_absolute_error": (
            "l1 lad mae mean_absolute_error reg:absoluteerror regression_l1"
        ),
        "squared_error neg_mean_squared_error": (
            "friedman_mse l2 ls mean_squared_error mse reg:linear reg:squarederror regression "
            "regression_l2 variance"
        ),
        "squared_error neg_root_mean_squared_error": "l2_root rmse root_mean_squared_error",
        "matthews_corrcoef": "mcc",
        "neg_brier_score": "brier brier_score_loss",
        "neg_mean_absolute_percentage_error": "mape",
        "neg_mean_squared_log_error": "msle",
        "neg_root_mean_squared_log_error": "rmsle",
        "r2": "r_squared rsquared",
        "gamma loss neg_mean_gamma_deviance": "gamma gamma-deviance reg:gamma",
        "huber loss": "huber mphe reg:pseudohubererror",
        "poisson loss neg_mean_poisson_deviance": "count:poisson poisson poisson-nloglik",
        "quantile loss": "pinball quantile reg:quantileerror",
        "tweedie loss": "reg:tweedie tweedie tweedie-nloglik",
    }.items()
    for other in others.split()
}

OF_CLASSES = {"entropy", "gini", "log_loss"}
OF_NUMBERS = {"absolute_error", "gamma", "huber", "poisson", "quantile", "squared_error", "tweedie"}
NOT_HERE = {
    "AdaBoost makes it smaller, and so does a dtrees.losses.Loss of your own": {"exponential"},
    "There is no ranking": {"lambdarank", "rank_xendcg", "rank:map", "rank:ndcg", "rank:pairwise"},
    "There is no survival analysis": {"survival:aft", "survival:cox"},
}


def did_you_mean(word: object, options: Iterable[str], loss: object = None) -> str:
    """A question with the option that a word is another library's for, or a slip; "" of neither.

    The option "loss" is meant by words for `loss`, that of the model.
    """
    if not isinstance(word, str):
        return ""
    known, said = list(options), word.lower()
    meant = WORDS.get(said, ())
    meant = meant if meant[:1] == (loss,) else tuple(name for name in meant if name != "loss")
    named = (said, *meant, f"neg_{said}", said.removesuffix("_score"))
    found = [name for name in named if name in known]
    found = found or get_close_matches(said, known, 1, LEAST_LIKENESS)
    return f" Did you mean {found[0]!r}?" if found else ""


def elsewhere(word: object, options: Iterable[str]) -> str:
    """Where a loss, criterion or estimator is that no option is like; "" of other words."""
    if hasattr(word, "fit"):
        return " Ensembles of any estimator are scikit-learn's, in sklearn.ensemble."
    known, said = set(options), str(word).lower()
    meant = {said, *WORDS.get(said, ())}
    for instead, words in NOT_HERE.items():
        if said in words:
            return f" {instead}. See docs/user_guide/not_here.md."
    if "squared_error" in known and meant & OF_CLASSES:
        return " It is for classifiers."
    return " It is for regressors." if known & OF_CLASSES and meant & OF_NUMBERS else ""


def refuse_other_scorers(scoring: object) -> None:
    """Raise a ValueError for a name that is none of a scorer, and may be meant for one.

    `scoring` is as for ``cross_validate``. Other names are left to scikit-learn.
    """
    words = list(scoring.values()) if isinstance(scoring, Mapping) else scoring
    for word in words if isinstance(words, list | tuple | set) else [words]:
        if isinstance(word, str):
            from sklearn.metrics import get_scorer_names

            known = get_scorer_names()
            hint = "" if word in known else did_you_mean(word, known)
            if hint:
                raise ValueError(f"{word!r} is not a valid scoring value.{hint}")
