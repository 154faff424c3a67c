"""Estimators for several training sets of one table, from one coding and one growth.

`dtrees.model_selection` asks for such models. They are those of separate fits in which the rows
outside of a set weigh nothing. What they say of rows of the table is read from its codes::

    TrainingTable(X, y, weights) --once--> codes, target
    sets of rows ----------------------------+--> _grow_sets --> trees by set --> models
                                             |                                      |
                                             +---------- codes of any rows ------> answers

Weights of a set are integers in the unit that its own fit would choose. Sets share sums where units
agree, or can be made to (`dtrees.estimators.common_units`). The others grow one by one from the
same codes. So do sets where the growth of a table cannot be shared (`dtrees.core.grow.shared`). The
log says so, and why, once for a table.
Out-of-bag results come from the same codes, too, when the trees have grown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dtrees.callbacks import Bar
from dtrees.coding.target import Target
from dtrees.core.membership.resampling import Resampling, of_sets
from dtrees.estimators.base import BaseTrees
from dtrees.estimators.boosted_sets import fit_boosted
from dtrees.estimators.boosting_base import BaseBoosting
from dtrees.estimators.common_units import Companies, Company
from dtrees.estimators.fit_plan import FitPlan
from dtrees.estimators.fitted_sets import FittedSets
from dtrees.estimators.training import Encoded, Training, rows_of
from dtrees.estimators.training_table import TrainingTable
from dtrees.parallel import FitStatistics, tables_kept, threaded


def fit_sets(
    estimator: BaseTrees,
    X: Any,
    y: Any,
    sample_weight: Any,
    rows: np.ndarray,
    *,
    bar: Bar | None = None,
) -> FittedSets:
    """Fit a clone to each training set, bool (n_sets, n_rows), of a table used only here."""
    return fit_table(estimator, TrainingTable(X, y, sample_weight), of_sets(rows), bar=bar)


@tables_kept()
def fit_table(
    estimator: BaseTrees | BaseBoosting,
    table: TrainingTable,
    sets: Resampling,
    *,
    bar: Bar | None = None,
) -> FittedSets:
    """Fit a clone of an estimator to each training set; `bar` counts the trees of all sets.

    Boosted models grow side by side (`boosted_sets`), and are not
    counted.

    Raises ClusterError where a Dask cluster is in force, or asked for, and cannot be used.
    ValueError: a parameter or the table is not what it should be.
    """
    if isinstance(estimator, BaseBoosting):
        return fit_boosted(estimator, table, sets)
    plan = FitPlan.of(estimator)
    run = threaded(plan.estimator.n_jobs)
    seed = table.seed_of(plan)  # the same draws for all sets, and all growths of a search
    encoded = table.encoded(plan, seed, run)
    n_rows = encoded.coded.n_rows
    assert sets.cells is not None
    if len(sets.cells) != n_rows:
        raise ValueError(f"X has {n_rows} rows, but the sets are of {len(sets.cells)}.")
    if encoded.target.kind == "classification":
        values = encoded.target.y.astype(np.int64)
    else:
        values = table.values_of_y().astype(np.float64)
    coded_rows = table.coded_rows(plan, seed)
    advance = _counting(bar, plan.n_trees * sets.n_sets)
    stats = table.stats(plan, seed)
    if sets.n_sets > 1:
        stats.expect_sets()
    # rows out of bags walk within the growth, those that are scored do not
    own_rows = coded_rows if coded_rows.is_here else rows_of(encoded.coded, stats)
    training = Training(encoded, own_rows, table.y, run, advance, stats)
    models, alone, companies = _fitted_alone(plan, training, table, sets)
    together = [(company, company.of(sets)) for company in companies]
    for company, own in together:
        if own.n_sets > 1 and table.is_heard:
            common = replace(encoded, target=company.target)
            n_alone, reason = plan.n_alone(common, own)
            alone[reason] += n_alone
        elif own.n_sets == 1 and len(together) > 1:
            alone[_reason_of_own_units(plan, table.sample_weight)] += 1
    table.tell(alone, sets.n_sets)
    for company, own in together:
        if len(together) > 1 and own.n_sets == 1:
            found = [_fitted(plan, training, own.target_of(0, company.target))]
        else:
            common = replace(encoded, target=company.target)
            with stats.phase("growth"):
                found = plan.fit_sets(replace(training, encoded=common), own)
        for number, model in zip(company.numbers, found, strict=True):
            models[number] = model
    n_live = sets.totals(encoded.target.has_weight)
    _report(models, stats)
    return FittedSets(models, encoded, coded_rows, values, n_live)


def _fitted_alone(
    plan: FitPlan, training: Training, table: TrainingTable, sets: Resampling
) -> tuple[list[Any], Counter[str], list[Company]]:
    """Models of sets that are fitted one by one, None for the others; and how many, by reason.

    The others, too, put together where they can share sums.
    """
    models: list[Any] = [None] * sets.n_sets
    alone: Counter[str] = Counter()
    encoded = training.encoded
    companies = Companies(encoded.target, sets, plan)
    for number, target in enumerate(_targets(plan, encoded, table, sets)):
        if isinstance(target, Target):
            if companies.join(number, target):
                continue
            models[number] = _fitted(plan, training, target)
            alone[_reason_of_own_units(plan, table.sample_weight)] += 1
        elif target is not None:
            models[number] = target
            training.advance(plan.n_trees)
        else:
            companies.add(number)
    return models, alone, companies.settled()


def _reason_of_own_units(plan: FitPlan, sample_weight: Any) -> str:
    """Why the integers of a set are not those of all rows."""
    name = "y" if sample_weight is None else "sample_weight"
    if getattr(plan.estimator, "class_weight", None) is not None:
        name = "class_weight"
    if name != "y" and plan.draws_weights:
        return f"bags are drawn by {name}, which adds up to something else in each training side"
    return f"{name} is counted in other units for each training side"


def _counting(bar: Bar | None, n_trees: int) -> Callable[[int], object]:
    """What hears of trees that have come, where so many are expected."""
    if bar is None:
        return lambda n_trees: None
    bar.expect(n_trees)
    return bar.advance


def _report(models: list[Any], stats: FitStatistics) -> None:
    """Give the models the report of all that was done."""
    report = stats.report()
    for model in models:
        if not isinstance(model, Exception):
            model._fit_report = report


def _fitted(plan: FitPlan, training: Training, target: Target) -> Any:
    """An estimator, fitted to the same codes with another target; or the error of its fit."""
    encoded = training.encoded
    own = replace(
        training,
        encoded=replace(encoded, target=target, rules=plan.rules(encoded.rules, target)),
        run=threaded(plan.estimator.n_jobs),  # which a forest that ends early cancels
    )
    try:
        return plan.fit(own)
    except ValueError as error:
        return error


def _targets(
    plan: FitPlan, encoded: Encoded, table: TrainingTable, sets: Resampling
) -> Iterator[Target | Exception | None]:
    """For each set None where its target is that of all rows, less the rows outside; else its own.

    Where classes weigh what they do in each set, None says so of the target without class weights.
    The target of a set is what `fit` makes of the weights times 0 and 1.
    """
    whole, sample_weight = encoded.target, table.sample_weight
    weight = np.ones(whole.n_rows) if sample_weight is None else np.asarray(sample_weight, float)
    counts = sets.totals(whole.has_weight) > 0
    weighs_classes = plan.class_weight is not None
    if weighs_classes:
        weighs_classes = whole.w_exponent != 0  # else classes weigh what they do in each set
    is_balanced = weighs_classes and whole.class_multiplier is not None
    weighs = sample_weight is not None or plan.class_weight is not None
    same_units = not (weighs_classes or (weighs and plan.draws_weights)) and (
        whole.w is None or (whole.kind == "classification" and whole.w_exponent == 0)
    )
    if same_units and encoded.rules.criterion == "poisson":
        counts &= sets.totals(whole.y) > 0  # else `fit` raises
    for number, has_rows in enumerate(counts.tolist()):
        if same_units and has_rows:
            yield None
            continue
        mine = sets.rows(number)
        try:
            own = plan.target(table.values_of_y(), weight * mine)
        except ValueError as error:
            yield error
            continue
        yield None if not is_balanced and _is_part(own, whole, mine) else own


def _is_part(own: Target, whole: Target, rows: np.ndarray) -> bool:
    """Whether a target is another one whose other rows weigh nothing, in the same units."""
    units = ("offset", "y_exponent", "w_exponent", "wy_exponent", "class_exponent")
    if any(getattr(own, unit) != getattr(whole, unit) for unit in units):
        return False
    if own.means is not None and not rows.all():  # other rows are drawn as if they weighed 1
        return False
    expected = whole if rows.all() else whole.only(rows)
    if expected.wy is None and own.wy is not None and expected.w is not None:
        expected = replace(expected, wy=expected.w.astype(np.int64) * expected.y)
    names = ("y", "w", "wy", "class_multiplier", "means")
    return all(_same(getattr(own, name), getattr(expected, name)) for name in names)


def _same(a: np.ndarray | None, b: np.ndarray | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)
