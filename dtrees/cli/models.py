"""The model of a command: which kind, and its parameters.

An option that is not given leaves a parameter at the estimator's default. Which options a kind of
model takes is read off the estimators. They are imported after the file was read, unless an option
is given that only some kinds take. Rules for columns are given by name::

    --rising age --falling price          monotonic_cst={"age": 1, "price": -1}
    --interaction age,price               interaction_cst=[["age", "price"]]
    --interaction 'town,"street, no"'     a name with a comma stands in quotation marks

A set is a line of a CSV file. What rules mean is the business of the estimators. Their refusals are
told by the names of the options.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

import dtrees
from dtrees.cli.terminal import RequestError

WORDS = ("pairwise", "no_interactions")  # of ``interaction_cst``; each stands alone
DIRECTIONS = ("rising", "falling")
RULES = (
    click.option(
        "--rising",
        multiple=True,
        metavar="COLUMN",
        help="Predictions never fall along this column of numbers; repeatable. Of two classes, "
        "the share of the second one.",
    ),
    click.option(
        "--falling",
        multiple=True,
        metavar="COLUMN",
        help="Predictions never rise along this column of numbers; repeatable.",
    ),
    click.option(
        "--interaction",
        multiple=True,
        metavar="COLUMN,...",
        help="Columns that may be tested together on the way to a leaf, between commas; "
        "repeatable, and all other columns are one more set. Or pairwise, or no_interactions: at "
        "most two columns, or one.",
    ),
)
CRITERIA = {
    "classification": ("gini", "entropy", "log_loss", "chi_square", "gain_ratio"),
    "regression": ("squared_error", "absolute_error", "poisson"),
}
LOSSES = {
    "classification": ("log_loss",),
    "regression": (
        *("squared_error", "absolute_error", "quantile", "huber", "poisson", "gamma", "tweedie"),
    ),
}
OF_TASKS = {"criterion": CRITERIA, "loss": LOSSES}
NAMED_ALIKE = (  # options and parameters
    *("criterion", "max_depth", "max_leaf_nodes", "min_samples_leaf", "min_samples_split"),
    *("ccp_alpha", "max_bins", "max_features", "max_iter", "learning_rate", "loss", "quantile"),
    *("alpha", "power", "min_child_weight", "l2_regularization", "subsample", "early_stopping"),
    *("max_samples", "bootstrap"),
)
PARAMETER_OF = dict(zip(NAMED_ALIKE, NAMED_ALIKE, strict=True)) | {
    "trees": "n_estimators",
    "oob": "oob_score",
    "seed": "random_state",
    "jobs": "n_jobs",
    "rising": "monotonic_cst",
    "falling": "monotonic_cst",
    "interaction": "interaction_cst",
}
OF_RULES = (*DIRECTIONS, "interaction")
OF_ALL_KINDS = (
    *("max_depth", "max_leaf_nodes", "min_samples_leaf", "max_bins", "seed", "jobs"),
    *OF_RULES,
)
NO_LIMIT = ("all", "exact")  # words for None


def rules_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator for the rules that are given, by their names.

    RequestError: a column is to rise and to fall, or a set has no columns.
    """
    rising, falling = given.get("rising") or (), given.get("falling") or ()
    sets = given.get("interaction") or ()
    found: dict[str, Any] = {}
    both = sorted({*rising} & {*falling})
    if both:
        raise RequestError(f"--rising {both[0]!r} and --falling {both[0]!r}: give either")
    if rising or falling:
        found["monotonic_cst"] = dict.fromkeys(rising, 1) | dict.fromkeys(falling, -1)
    if sets:
        is_word = len(sets) == 1 and sets[0] in WORDS
        found["interaction_cst"] = sets[0] if is_word else [*map(names_in, sets)]
    return found


def names_in(text: str) -> list[str]:
    """The names in a set of columns."""
    (names,) = csv.reader([text], skipinitialspace=True) if text else ([],)
    if not all(names) or not names:
        raise RequestError(f"--interaction {text!r}: give names of columns between commas")
    return names


def check_columns(given: Mapping[str, Any], names: Collection[str]) -> None:
    """Refuse (RequestError) rules for columns that a table does not have."""
    from dtrees.io.problem import near

    rules = rules_of(given)
    sets = rules.get("interaction_cst", [])
    asked = [(name, "interaction") for each in sets if isinstance(each, list) for name in each]
    for option in DIRECTIONS:
        asked += [(name, option) for name in given.get(option) or ()]
    for name, option in asked:
        if name not in names:
            raise RequestError(f"--{option}: no column {name!r} in the table{near(name, names)}")


@contextmanager
def rules_as_options(given: Mapping[str, Any]) -> Iterator[None]:
    """Tell (RequestError) by options what estimators say of the parameters that stand for them."""
    try:
        yield
    except ValueError as error:
        reason = _reason_of(str(error), given)
        if reason is None:
            raise
        raise RequestError(reason) from error


def _reason_of(said: str, given: Mapping[str, Any]) -> str | None:
    """An error in words of options; None: it is not about them."""
    from dtrees.estimators.column_rules import NO_ORDER, TWO_CLASSES_ONLY

    asked = [(f"--{option}", name) for option in DIRECTIONS for name in given.get(option) or ()]
    if said.startswith(TWO_CLASSES_ONLY):
        option, name = asked[0]
        return f"{option} {name!r}: the target has to be numbers or two classes, and there are more"
    for option, name in asked if said.startswith(NO_ORDER) else ():
        if f"column {name!r} has" in said:
            return (
                f"{option} {name!r}: the column holds words, which are in no order. Give a column "
                "of numbers or dates, or leave the option out"
            )
    return None


@dataclass(frozen=True)
class Kind:
    """A kind of model.

    Attributes
    ----------
    stem : str
        The beginning of its classes' names.
    noun, field : str
        What people and JSON call it.
    """

    stem: str
    noun: str
    field: str


KINDS = {
    "tree": Kind("DecisionTree", "tree", "tree"),
    "forest": Kind("RandomForest", "forest", "forest"),
    "extra-trees": Kind("ExtraTrees", "forest", "forest"),
    "bagging": Kind("Bagging", "forest", "forest"),
    "boosting": Kind("GradientBoosting", "boosted model", "boosting"),
}


class Amount(click.ParamType):
    """A whole number, perhaps a share of all (0.3), or a word."""

    name = "amount"

    def __init__(self, least: int, *words: str, shares: bool = False):
        self.least, self.words, self.shares = least, words, shares

    def get_metavar(self, param: Any, ctx: Any = None) -> str:
        """Words behind the option in a help text."""
        return "|".join(["N", *(["SHARE"] if self.shares else []), *self.words])

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The amount that a text says."""
        if value in self.words or not isinstance(value, str):
            return value
        try:
            number: float = int(value)
            good = number >= self.least
        except ValueError:
            try:
                number = float(value)
            except ValueError:
                number = 0.0
            good = self.shares and 0 < number <= 1
        if not good:
            share = ", a share of all above 0 and up to 1.0" if self.shares else ""
            words = "".join(f", {word!r}" for word in self.words)
            amounts = f"a whole number from {self.least}{share}{words}"
            self.fail(f"{value!r} is none of: {amounts}", param, ctx)
        return number


def check_jobs(context: Any, parameter: Any, jobs: int) -> int:
    """Refuse no threads at all."""
    if jobs == 0:
        raise click.BadParameter("0 threads do no work: give 1 or more, or -1 for all cores")
    return jobs


def jobs_option(what: str) -> Any:
    """The number of threads of what is named."""
    return click.option(
        "--jobs",
        type=int,
        default=-1,
        show_default=True,
        metavar="N",
        callback=check_jobs,
        help=f"Threads of {what}; -1 means all cores.",
    )


MODEL = (
    click.option(
        "--model",
        type=click.Choice(list(KINDS)),
        default="tree",
        show_default=True,
        help="A decision tree, a random forest, extra trees, bagged trees or gradient boosting.",
    ),
    click.option("--max-depth", type=click.IntRange(min=1), help="No limit by default."),
    click.option(
        "--max-leaf-nodes",
        type=Amount(2, "all"),
        help="Most leaves of a tree; all: no limit. By default 31 for boosting, all otherwise.",
    ),
    click.option(
        "--min-samples-leaf", type=click.IntRange(min=1), help="1 by default, and 20 for boosting."
    ),
    click.option("--min-samples-split", type=click.IntRange(min=2), help="2 by default."),
    click.option(
        "--ccp-alpha",
        type=float,
        metavar="ALPHA",
        help="Price of a leaf in cost-complexity pruning; not for boosting. 0 by default.",
    ),
    click.option(
        "--max-bins",
        type=Amount(2, "exact"),
        help="Most codes of an ordered column; exact: one for each distinct value. By default "
        "exact for a tree, 255 otherwise.",
    ),
    click.option(
        "--criterion",
        type=click.Choice([name for names in CRITERIA.values() for name in names]),
        help="Not for boosting. By default gini or squared_error.",
    ),
    click.option(
        "--max-features",
        type=Amount(1, "sqrt", "log2", "all", shares=True),
        help="Columns that are drawn at each node; not for bagging, and of boosting a share or "
        "all. By default all of them, and sqrt for the classes of a forest or of extra trees.",
    ),
    click.option(
        "--trees", type=click.IntRange(min=1), help="Of a forest. 100 by default, bagging 10."
    ),
    click.option(
        "--bootstrap/--no-bootstrap",
        default=None,
        help="Whether each tree sees a bag of rows. By default it does, but for extra trees.",
    ),
    click.option(
        "--max-samples",
        type=Amount(1, shares=True),
        help="Size of a bag, on average; all by default.",
    ),
    click.option(
        "--oob",
        is_flag=True,
        default=None,
        help="Score the model on all rows by the rows that its trees' bags lack.",
    ),
    click.option(
        "--max-iter", type=click.IntRange(min=1), help="Iterations of boosting. 100 by default."
    ),
    click.option(
        "--learning-rate",
        type=click.FloatRange(min=0, min_open=True),
        metavar="RATE",
        help="What boosting multiplies the steps of its trees by. 0.1 by default.",
    ),
    click.option(
        "--loss",
        type=click.Choice([name for names in LOSSES.values() for name in names]),
        help="Of boosting. By default log_loss or squared_error.",
    ),
    click.option(
        "--quantile",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="The quantile that --loss quantile predicts.",
    ),
    click.option(
        "--alpha",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        metavar="SHARE",
        help="The quantile of residuals up to which --loss huber takes squares. 0.9 by default.",
    ),
    click.option(
        "--power",
        type=click.FloatRange(1, 2, min_open=True, max_open=True),
        metavar="NUMBER",
        help="That of the mean which is the variance of --loss tweedie. 1.5 by default.",
    ),
    click.option(
        "--min-child-weight",
        type=click.FloatRange(min=0),
        metavar="NUMBER",
        help="Least sum of second derivatives of a leaf of boosting. 0.001 by default.",
    ),
    click.option(
        "--l2-regularization",
        type=click.FloatRange(min=0),
        metavar="NUMBER",
        help="Makes the steps of boosting smaller. 1 by default.",
    ),
    click.option(
        "--subsample",
        type=click.FloatRange(0, 1, min_open=True),
        metavar="SHARE",
        help="Of the rows that each iteration of boosting draws. 1 by default.",
    ),
    click.option(
        "--early-stopping/--no-early-stopping",
        default=None,
        help="Whether boosting ends when a tenth of the rows, which it holds out, is predicted no "
        "better. By default with more than 10,000 rows.",
    ),
    *RULES,
    click.option(
        "--seed",
        type=click.IntRange(min=0, max=2**32 - 1),
        default=0,
        show_default=True,
        help="The model's random_state; cv also shuffles the folds by it.",
    ),
    jobs_option("one model"),
)


def check_options(model: str, **given: Any) -> None:
    """Refuse options that the kind of model does not take, or not together; None: not given."""
    for name, value in given.items():
        if value is None or name in OF_ALL_KINDS:
            continue
        takers = [kind for kind in KINDS if PARAMETER_OF[name] in parameters_of(kind)]
        if model not in takers:
            raise RequestError(
                f"{option_of(name)} is not for --model {model}, only for {', '.join(takers)}"
            )
    if (given.get("loss") == "quantile") != (given.get("quantile") is not None):
        raise RequestError("--loss quantile and --quantile SHARE: give both")
    if given.get("alpha") is not None and given.get("loss") != "huber":
        raise RequestError("--alpha is a width of --loss huber: add it")
    if given.get("power") is not None and given.get("loss") != "tweedie":
        raise RequestError("--power is of --loss tweedie: add it")
    rules_of(given)


def estimator_of(task: str, model: str, **given: Any) -> Any:
    """The estimator that the options ask for (None: not given).

    RequestError: the options do not go together, or not with the task.
    """
    check_options(model, **given)
    check_task(task, given)
    parameters = {
        PARAMETER_OF[name]: None if value in NO_LIMIT else value
        for name, value in given.items()
        if value is not None and name not in OF_RULES
    }
    estimator = estimator_class(model, task)(**parameters, **rules_of(given))
    draws = given.get("max_samples") is not None or (given.get("subsample") or 1) < 1
    if given.get("oob") and not estimator.bootstrap and not draws:
        add = "--subsample SHARE" if "subsample" in parameters_of(model) else "--bootstrap"
        raise RequestError(f"--oob is about bags, and there are none: add {add}")
    return estimator


def check_task(task: str, given: Mapping[str, Any]) -> None:
    """Refuse a criterion or a loss that is not one of the task's."""
    for name, names in OF_TASKS.items():
        value = given.get(name)
        if value is not None and value not in names[task]:
            raise RequestError(
                f"{option_of(name)} {value} is not for {task}: choose one of "
                f"{', '.join(names[task])}"
            )


def option_of(name: str) -> str:
    """An option as it is written."""
    return "--" + name.replace("_", "-")


def parameters_of(model: str) -> set[str]:
    """The parameters of a kind of model, of either task."""
    classes = (estimator_class(model, task) for task in CRITERIA)
    return {name for made in classes for name in made().get_params()}


def estimator_class(model: str, task: str) -> type:
    """The class of a kind of model."""
    suffix = "Classifier" if task == "classification" else "Regressor"
    return getattr(dtrees, KINDS[model].stem + suffix)


def chosen_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters that options stand for, by name, as they are."""
    parameters = estimator.get_params()
    return {name: parameters[name] for name in PARAMETER_OF.values() if name in parameters}
