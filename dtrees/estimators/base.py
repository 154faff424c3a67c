"""What all estimators have in common: parameters and tables in, codes and rules out, answers.

A fit is a pipe through the floors, and nothing of it is kept on the way::

    parameters --constraints--> checked
    X --------------codebook--> CodeBook, CodedMatrix --+
    y, weights --------target--> Target ----------------+--grow--> Tree --pruning--> tree_
    limits -------------rules--> GrowthRules -----------+

The left half is a `dtrees.estimators.fit_plan.FitPlan`, for all estimators alike. The right half,
`_fit_coded`, is that of single trees in `dtrees.estimators.trees`, and that of forests in
`dtrees.estimators.forests`. Between the two stands a `Training`, to which many models can be fitted
(`dtrees.estimators.training_sets`).

Attributes are set in one go when the tree stands. A fit that fails leaves the estimator as it was:
unfitted if it was unfitted, and otherwise with the whole of its former fit.

What tells a classifier from a regressor is data: the criteria, the constraints and how `y` becomes
a `Target`. Limits that a grown tree can answer (``max_leaf_nodes``, ``ccp_alpha``) are applied to
it afterwards [SF 3]; the others stop the growth.

A fitted estimator is made of parts, which model files hold::

    forest_       the trees, as flat arrays      ─┐
    codebook_     what their codes mean           ├──▶ leaves, paths, estimators, parts
    _saw_missing  columns with missing values    ─┘
    estimator ──_parts──▶ parameters, attributes, trees, codebook ──_of_parts──▶ estimator
                                  └──_check_parts──▶ nothing, or an error

An estimator says what its parameters may be and what its fit learns, as constraints. Files hold
these attributes and no others, and what a file says is checked by the same constraints.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from inspect import isfunction
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.utils.validation import check_is_fitted

from dtrees._warnings import warn
from dtrees.coding.codebook import CodeBook
from dtrees.coding.outputs import Outputs
from dtrees.coding.sparse_positions import check_sparse
from dtrees.coding.tables import row_values
from dtrees.coding.target import Ask, GivenRows, Target, TargetUnits
from dtrees.constraints import (
    COLUMN_RULES,
    RANDOM_STATE,
    ArrayLike,
    ArrayOf,
    Constraint,
    InstanceOf,
    IntegerIn,
    Nothing,
    OneOf,
    RealIn,
    check_values,
    checked,
)
from dtrees.core.model.tree import Forest, Tree
from dtrees.estimators.fit_plan import LARGEST_SEED, FitPlan
from dtrees.estimators.other_names import names_others, refuse_setting
from dtrees.estimators.prediction import Predictor, answered
from dtrees.estimators.quantiles import only_of_target
from dtrees.estimators.tree_view import TreeView
from dtrees.export.parts import Parts
from dtrees.inspection.dependence import recursion
from dtrees.inspection.shap import Explainer
from dtrees.parallel import Model, computed, is_lazy

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MOST = LARGEST_SEED
ANSWERING = {"__init__", "fit", "predict", "predict_proba", "decision_function"}

# What all estimators learn, and what classifiers learn beside it.
LEARNS_COLUMNS: Mapping[str, tuple[Constraint, ...]] = {
    "n_features_in_": (IntegerIn(1, MOST),),
    "feature_names_in_": (ArrayOf(1, np.dtype(object)),),
    "_date_orders": (ArrayOf(1, np.dtype(np.uint8)),),  # of `dtrees.coding.times`, by column
}
LEARNS_CLASSES: Mapping[str, tuple[Constraint, ...]] = {
    "classes_": (ArrayOf(1), InstanceOf(list, "list")),  # of several targets, as the next one
    "n_classes_": (IntegerIn(1, MOST), InstanceOf(list, "list")),
}

# What trees and forests may be given, and what they learn.
TREE_CONSTRAINTS: Mapping[str, tuple[Constraint, ...]] = {
    "max_depth": (IntegerIn(1), Nothing()),
    "min_samples_split": (IntegerIn(2), RealIn(0, 1, "(]", integers=False)),
    "min_samples_leaf": (IntegerIn(1), RealIn(0, 1, "()", integers=False)),
    "min_weight_fraction_leaf": (RealIn(0, 0.5, "[]"),),
    "max_features": (
        IntegerIn(1),
        RealIn(0, 1, "(]", integers=False),
        OneOf(("sqrt", "log2")),
        Nothing(),
    ),
    "random_state": RANDOM_STATE,
    "max_leaf_nodes": (IntegerIn(2), Nothing()),
    "min_impurity_decrease": (RealIn(0, math.inf, "[)"),),
    "ccp_alpha": (RealIn(0, math.inf, "[)"),),
    **COLUMN_RULES,
    "max_bins": (IntegerIn(2), Nothing()),
    "categorical_features": (OneOf(("from_dtype",)), ArrayLike(), Nothing()),
    "handle_unknown": (OneOf(("missing", "majority", "error")),),
    "category_penalty": (RealIn(0, math.inf, "[)"),),
    "n_jobs": (InstanceOf(Integral, "int"), Nothing()),
}
LEARNS_TARGETS: Mapping[str, tuple[Constraint, ...]] = {
    "target_names_in_": (ArrayOf(1, np.dtype(object)),),
}
TREE_LEARNS: Mapping[str, tuple[Constraint, ...]] = {
    **LEARNS_COLUMNS,
    **LEARNS_TARGETS,
    "n_outputs_": (IntegerIn(1, MOST),),
    "max_features_": (IntegerIn(1, MOST),),
}


class BaseModel(BaseEstimator):
    """What trees, forests and boosted models have in common; not meant to be used itself."""

    _fit_report: dict[str, Any]

    # What a fit learns.
    n_features_in_: int
    feature_names_in_: np.ndarray
    target_names_in_: np.ndarray
    forest_: Forest
    codebook_: CodeBook
    _saw_missing: np.ndarray

    _constraints: ClassVar[Mapping[str, tuple[Constraint, ...]]]
    # What a fit learns, beside trees and codebook; model files hold nothing else.
    _learns: ClassVar[Mapping[str, tuple[Constraint, ...]]]
    _learns_at_times: ClassVar[frozenset[str]] = frozenset(
        {"feature_names_in_", "target_names_in_", "_date_orders"}
    )
    _tree_class: ClassVar[type[BaseModel]]  # of its trees, as estimators
    _takes_outputs: ClassVar[bool] = False  # y may have several columns
    _recursion_class: ClassVar[str | None] = None  # of scikit-learn, see `__sklearn_tags__`
    _adds_steps: ClassVar[bool] = False  # trees are of numbers, whatever the target
    _draws_ties: ClassVar[bool] = False  # between columns of equal gain, also without a seed
    _spare_bits: ClassVar[int] = 0  # of the integers of the target
    _criteria: ClassVar[Mapping[str, str]]

    # The parameters of all of them; the classes set them in __init__.
    criterion: Any  # of boosting: none
    max_depth: int | None
    max_leaf_nodes: int | None
    monotonic_cst: Any
    interaction_cst: Any
    max_bins: int | None
    categorical_features: Any
    handle_unknown: str
    category_penalty: float = 0.0  # of those that draw their splits: they choose no subset
    splitter: str = "best"  # of trees; others have one
    class_weight: Any = None  # of classifiers
    bootstrap: bool = False  # of forests: rows are drawn as weights say
    keep_rows: bool = False  # of trees and forests of numbers
    feature_weights: Any = None  # of forests and boosted models, as the next one
    oob_score: Any = False
    oob_tol: float | None = None  # of forests
    random_state: Any
    n_jobs: int | None

    def __init_subclass__(cls, **given: Any) -> None:
        """Let constructors, fits and predictions know the parameters of other libraries."""
        super().__init_subclass__(**given)
        for name in ANSWERING & vars(cls).keys():
            if isfunction(vars(cls)[name]):  # otherwise it is of some models only
                setattr(cls, name, names_others(vars(cls)[name]))

    def _set_all(self, given: Mapping[str, Any]) -> None:
        """Set an attribute for each parameter of a constructor, of which `given` are `locals()`."""
        self.__dict__.update((each, given[each]) for each in given if each in self._constraints)
        self._rename_criterion(given)

    def _rename_criterion(self, given: Mapping[str, Any]) -> None:
        """Set the criterion that we have in place of scikit-learn's other name, with a warning."""
        criterion = given.get("criterion")  # which may be an array, if the user errs
        is_other = isinstance(criterion, str) and criterion == "friedman_mse"
        if is_other and "squared_error" in self._criteria:
            warn(
                'criterion="friedman_mse" is deprecated: "squared_error" has the same splits.',
                FutureWarning,
            )
            self.criterion = "squared_error"

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, as scikit-learn does.

        Parameters
        ----------
        **params : dict
            Values by name; `fit` checks them.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            There is no such parameter. If another library has it, the error says its name here.
        """
        refuse_setting(type(self), params)
        super().set_params(**params)
        self._rename_criterion(params)
        return self

    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        """`y` and the weights as integers."""
        rows = GivenRows.of(y, sample_weight, "classes_" in self._learns)
        return self._units(rows.ask).target(rows)

    def _encode_outputs(self, columns: Sequence[Any], sample_weight: Any) -> Outputs:
        """Several targets and the weights as integers."""
        of_classes = "classes_" in self._learns
        how = FitPlan(self).class_weight, self._spare_bits, self.bootstrap, self._adds_steps
        return Outputs.of(columns, sample_weight, of_classes, *how, self._units)

    def _units(self, ask: Ask) -> TargetUnits:
        """What integers of `y` and weights have in common, of all rows that `ask` asks."""
        raise NotImplementedError

    @staticmethod
    def _learned_of(book: CodeBook, target: Target) -> dict[str, Any]:
        """What all estimators learn of a table, beside its codebook."""
        learned: dict[str, Any] = {"n_features_in_": book.n_columns}
        if book.feature_names is not None:
            learned["feature_names_in_"] = book.feature_names
        if isinstance(target, Outputs) and target.names is not None:
            learned["target_names_in_"] = target.names
        if isinstance(target, Outputs) and target.kind == "classification":
            learned["classes_"] = target.labels
            learned["n_classes_"] = [own.n_classes for own in target.of_outputs]
        elif target.kind == "classification":
            learned |= {"classes_": target.classes, "n_classes_": target.n_classes}
        return learned

    def _predictor(self) -> Predictor:
        """What a fitted estimator predicts with."""
        raise NotImplementedError

    def _unfitted(self) -> Any:
        """What `clone` makes, which asks for the signature each time."""
        if not isinstance(self.random_state, Integral | None):
            return clone(self)
        made = type(self).__new__(type(self))
        made.__dict__.update({name: getattr(self, name) for name in self._names_in_signature()})
        return made

    def _answer(self, method: str, X: Any, predictor: Model | Explainer | None = None) -> Any:
        """The predictor's answer for a table; for a Dask collection a lazy one.

        Of several targets of classes, a list of them.
        """
        if "n_features_in_" not in self.__dict__:  # which takes longer than a row
            check_is_fitted(self)
        are_lists = method in ("predict_proba", "predict_log_proba") and is_lazy(X)
        if are_lists and isinstance(self.classes_, list) and hasattr(self, "of_target"):
            return [self.of_target(k)._answer(method, X) for k in range(self.n_outputs_)]
        found = answered(predictor or self._predictor(), method, X, self.n_jobs)
        names = self.__dict__.get("target_names_in_")
        if names is not None and method == "predict" and hasattr(found, "columns"):
            found = found.rename(columns=dict(enumerate(names)))
        return found

    @names_others
    def predict(self, X: Any) -> np.ndarray:
        """Predict the class, or the number, of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        y : array of shape (n_rows,)
            The class of the largest share, of equal ones the first; dtype of the labels at fit. Or
            a number: the weighted mean of the row's leaf, the mean of the trees, or what the steps
            of boosting add up to.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            Columns are not those of the fit.
        """
        return self._answer("predict", X)

    def predict_contributions(self, X: Any) -> np.ndarray:
        """Tell what each column adds to the prediction of every row: path-dependent SHAP values.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        contributions : float64 array of shape (n_rows, n_outputs * (n_columns + 1))
            Output by output, its columns and then its base value, as LightGBM's ``pred_contrib``.
            They sum to the shares of the classes or the mean of a tree or forest, and to the raw
            predictions of a boosted model without `init_score`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        TypeError
            An `AdaBoostRegressor` predicts medians, which are no sums.
        ValueError
            Columns are not those of the fit.

        See Also
        --------
        dtrees.inspection.shap_values : Interventional values and interactions, too.
        """
        return self._answer("predict_contributions", X, Explainer.of(self))

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of every row in every tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        leaves : intp array of shape (n_rows, n_trees)
            Node numbers, in the order of ``forest_``.
        """
        return self._answer("apply", X)

    def decision_path(self, X: Any) -> tuple[csr_matrix, np.ndarray]:
        """Return the nodes that every row passes, tree behind tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        indicator : csr matrix of shape (n_rows, nodes of all trees)
            1 where the row passes the node.
        n_nodes_ptr : intp array of shape (n_trees + 1,)
            Columns ``n_nodes_ptr[i]:n_nodes_ptr[i + 1]`` are those of tree i.
        """
        paths = self._answer("decision_path", X)
        return paths, np.cumsum([0, *(tree.node_count for tree in self.forest_.trees)])

    def _trees_as_estimators(self) -> list[Any]:
        """The trees as fitted estimators, made at the first look."""
        forest, made = self.__dict__.get("_estimators", (None, []))
        if forest is not self.forest_:
            learned = vars(self)
            made = [self._estimator(tree, learned) for tree in self.forest_.trees]
            self._estimators = (self.forest_, made)
        return made

    def _unfitted_tree(self) -> Any:
        """A tree as an estimator, before it is grown."""
        names = self._tree_class._constraints
        parameters = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if parameters.get("class_weight") == "balanced_subsample":
            parameters["class_weight"] = "balanced"
        return self._tree_class(**parameters)

    def _estimator(self, tree: Tree, learned: Mapping[str, Any]) -> Any:
        """A tree as an estimator; `learned` is what the model has, or will have, learned."""
        kind, made = self._tree_class, self._unfitted_tree()
        n_columns = learned["n_features_in_"]
        made.__dict__.update(
            n_features_in_=n_columns,
            n_outputs_=tree.n_outputs,
            max_features_=learned.get("max_features_", n_columns),
            tree_=TreeView(tree, learned["codebook_"], learned["_saw_missing"]),
        )
        names = ["feature_names_in_", "classes_", "n_classes_"]
        names += ["target_names_in_"] * (tree.n_outputs > 1)
        for name in names:
            if name in learned and name in kind._learns:
                made.__dict__[name] = learned[name]
        return made

    def _summed(self) -> tuple[Any, ...]:
        """The trees, whose values have a mean; or add up: with their start and their link.

        As attributes of `dtrees.export.model_nodes.ModelNodes`. TypeError: they do neither.
        """
        return (self.forest_.trees,)

    def _parts(self) -> Parts:
        learned, parameters = self._learned_attributes(), self.get_params(deep=False)
        return Parts(parameters, learned, self.forest_.trees, self.codebook_, self._saw_missing)

    def _of_target(self, number: int) -> Any:
        """The model of one of its targets, of which there are several."""
        parts = self._parts()
        learned = only_of_target(parts.attributes, number)
        learned = {name: own for name, own in learned.items() if name[:4] != "oob_"}
        learned.pop("target_names_in_", None)
        parameters = dict(parts.parameters)
        for named, name in (
            (learned, "classes_"),
            (learned, "n_classes_"),
            (parameters, "class_weight"),
        ):
            if isinstance(named.get(name), list):
                named[name] = named[name][number]
        if "_oob_scaled_errors" in learned:
            learned["_oob_scaled_errors"] = learned["_oob_scaled_errors"][:, number].copy()
        trees = tuple(tree.of_output(number) for tree in parts.trees)
        parts = replace(
            parts, parameters=parameters, attributes=learned | {"n_outputs_": 1}, trees=trees
        )
        return self._of_parts(parts)

    @classmethod
    def _of_parts(cls, parts: Parts) -> Any:
        made = cls(**parts.parameters)
        made.__dict__.update(
            parts.attributes,
            forest_=Forest(parts.trees),
            codebook_=parts.book,
            _saw_missing=parts.saw_missing,
        )
        return made

    def _forget_at_times(self) -> None:
        """Take away what an earlier fit may have left that the next one does not."""
        for name in (*self._learns_at_times, "_estimators"):
            self.__dict__.pop(name, None)

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        """Refuse parameters and attributes that no fit of this class has.

        Raises InvalidParameterError where one is of the wrong type or outside its range, and
        ValueError where one is missing, or does not fit the others.
        """
        check_values(cls._constraints, parts.parameters, cls.__name__, always=True)
        check_values(cls._learns, parts.attributes, cls.__name__, "attribute", always=True)
        missing = cls._learns.keys() - cls._learns_at_times - parts.attributes.keys()
        if missing:
            raise ValueError(f"there is no attribute {min(missing)!r}")

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return list(cls._names_in_signature())

    @classmethod
    @cache
    def _names_in_signature(cls) -> tuple[str, ...]:
        # scikit-learn reads it each time: some fifty times in a search of ten candidates
        return tuple(super()._get_param_names())

    def _learned_attributes(self) -> dict[str, Any]:
        """What `fit` learned, beside trees and codebook."""
        check_is_fitted(self)
        return {name: value for name, value in vars(self).items() if name in self._learns}

    def _check_parameters(self) -> None:
        # not get_params, which reads the signature anew each time
        check_values(
            self._constraints,
            {name: getattr(self, name) for name in self._constraints},
            type(self).__name__,
        )

    @property
    def fit_report_(self) -> dict[str, Any]:
        """What the fit did, and what it took; plain numbers and strings.

        Models of a cross-validation, and the ``best_estimator_`` of a search, were grown together.
        Each tells the same, of the growth that they share; its coding may be shared with other
        growths. Scores are not part of it. Nor is the report part of the model: it is not pickled
        or saved.

        - ``regime``, ``reason``: where trees were grown, and why there.
        - ``seconds``: dict of the phases: ``coding``, ``growth``, ``reading`` of what else a Dask
          collection has to tell, and, within growth on a cluster, what was waited for.
        - Of several training sets, over all trees: ``shared_nodes``, which were searched for two
          sets or more at once, and ``shared_rows``, the rows of these nodes, each once (in the
          partitioned regime those of the node's largest set). ``bounded_columns`` of these nodes
          were searched by bounds of intervals, and of ``alive_columns`` some codes had to be
          looked at. All are 0 where every set grew on its own. They depend on no number of
          threads.
          In the replicated regime, fewer nodes are shared where a cluster has more threads than the
          forest has trees: the sets are divided then.
        - Of several training sets of a boosted model, ``models_together``: how many models grew
          side by side, each with sums of its own.
        - On a cluster, ``lost_workers``, and where it happened ``retries`` of tasks and
          ``restarts``: everything had to be sent or made again.
        - In the replicated regime: ``tasks``, and ``bytes_moved``: the table, once for every worker
          that it was sent to, and trees on their way back.
        - In the partitioned regime: ``rounds``, ``passes`` over the codes, ``passes_saved``: what
          trees one by one would have made more, ``bytes_moved``: counts, rows and blocks,
          ``cache_hits`` and ``rebuilds`` of the places of rows.
        """
        check_is_fitted(self)
        if "_fit_report" not in self.__dict__:
            raise AttributeError("This model has no fit_report_: it was not made by fit.")
        report: dict[str, Any] = deepcopy(self._fit_report)
        return report

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_fit_report", None)
        state.pop("_estimators", None)  # made again when asked for
        return state

    _compute_partial_dependence_recursion = recursion  # scikit-learn's name

    def __sklearn_tags__(self):
        """Tell scikit-learn what the estimator takes.

        Its `partial_dependence` asks for this, and then whether the estimator is of one of the
        classes that have ``method="recursion"``; so it is told now.
        """
        asking = sys.modules.get("sklearn.inspection._partial_dependence")
        if asking is not None and self._recursion_class is not None:
            getattr(asking, self._recursion_class).register(type(self))
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.target_tags.multi_output = self._takes_outputs
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = self._takes_outputs
        return tags


class Ensemble(BaseModel):
    """A model of trees that stand in a row; not meant to be used itself."""

    @property
    def estimator(self) -> Any:
        """A tree with the parameters of those that a fit grows, unfitted."""
        return self._unfitted_tree()

    @property
    def estimator_(self) -> Any:
        """A tree with the parameters of those that stand in ``estimators_``, unfitted."""
        check_is_fitted(self)
        return self._unfitted_tree()

    @property
    def estimators_(self) -> list:
        """The trees as fitted estimators, made at the first look."""
        check_is_fitted(self)
        return self._trees_as_estimators()

    def __len__(self) -> int:
        """Number of trees."""
        return len(self.estimators_)

    def __getitem__(self, i: int) -> Any:
        """Tree i as an estimator."""
        return self.estimators_[i]

    def __iter__(self) -> Iterator:
        """The trees as estimators."""
        return iter(self.estimators_)


# Methods that only some classes have: they name them, in front of scikit-learn's mixins.


@checked(number=(IntegerIn(0, MOST), InstanceOf(str, "str")))
def of_target(self: Any, number: int | str) -> Any:
    """Return the model of one of several targets, for functions that know one target only.

    Parameters
    ----------
    number : int or str
        Of the column of `y`, from 0; or its name, of ``target_names_in_``.

    Returns
    -------
    model : object
        A fitted estimator of the same class and parameters. It has the trees of this target, or of
        trees of all targets the values of this one; splits, gains and impurities, and so
        importances, are then those of all. Scores and predictions out of bag are left out. Of one
        target, the model itself.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before `fit`.
    ValueError
        There is no such target.
    """
    check_is_fitted(self)
    n_outputs = self.n_outputs_
    if isinstance(number, str):
        names = list(getattr(self, "target_names_in_", []))
        if number not in names:
            known = ", ".join(map(repr, names[:5])) + ", ..." * (len(names) > 5)
            have = f"Targets are {known}." if names else "They have no names: give a number."
            raise ValueError(f"There is no target {number!r}. {have}")
        number = names.index(number)
    if number >= n_outputs:
        raise ValueError(f"number must be below {n_outputs}, the number of targets. Got {number}.")
    return self if n_outputs == 1 else self._of_target(number)


def score(self: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Score predictions: accuracy for classes, R^2 for numbers.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        Columns as at fit. Of a Dask collection, only the predictions are ever in memory.
    y : array-like of shape (n_rows,)
        The true values; a Dask collection, if you like.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows; a Dask collection, if you like.

    Returns
    -------
    score : float
        Computed at once. 1 is the best.

    Raises
    ------
    ValueError
        Rows of the fit had an ``init_score``, which scores have no place for.
    """
    if getattr(self, "_has_offset", False) and "init_" not in self.__dict__:
        raise ValueError(
            "Rows of the fit began with an init_score, and score has no place for that of others. "
            f"Give predictions to {'accuracy' if is_classifier(self) else 'r2'}_score of "
            "sklearn.metrics: model.predict(X, init_score)."
        )
    check_sparse(X=X, y=y, sample_weight=sample_weight)
    if not any(map(is_lazy, (X, y, sample_weight))):
        mixin = ClassifierMixin if is_classifier(self) else RegressorMixin
        return mixin.score(self, X, row_values(y), row_values(sample_weight))
    found = computed(self.predict(X), y, sample_weight)
    predicted, y, weight = map(row_values, found)
    from sklearn.metrics import accuracy_score, r2_score

    metric = accuracy_score if is_classifier(self) else r2_score
    return float(metric(y, np.asarray(predicted), sample_weight=weight))


def predict_proba(self: Any, X: Any) -> np.ndarray:
    """Predict the share of every class.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        Columns as at fit. A Dask array or data frame is answered lazily, block by block.

    Returns
    -------
    shares : float64 array of shape (n_rows, n_classes_)
        In the order of ``classes_``; rows sum to 1. Of a tree, weight of the classes in the row's
        leaf; of a forest, the mean over the trees.
    """
    return self._answer("predict_proba", X)


def predict_log_proba(self: Any, X: Any) -> np.ndarray:
    """Predict the logarithm of the share of every class.

    Parameters
    ----------
    X : table of shape (n_rows, n_columns)
        Columns as at fit. A Dask array or data frame is answered lazily, block by block.

    Returns
    -------
    logarithms : float64 array of shape (n_rows, n_classes_)
        -inf for classes that no leaf of the row holds.
    """
    return self._answer("predict_log_proba", X)
