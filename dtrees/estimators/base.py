"""What every estimator of trees does: parameters and tables in, codes and rules out.

A fit is a pipe through the floors, and nothing of it is kept on the way::

    parameters --constraints--> checked
    X --------------codebook--> CodeBook, CodedMatrix --+
    y, weights --------target--> Target ----------------+--grow--> Tree --pruning--> tree_
    limits -------------rules--> GrowthRules -----------+

The left half is `BaseTrees._encode`, for trees and forests alike. The right half, `_fit_coded`, is
that of single trees here, and that of forests in `dtrees.estimators.ensemble`. Between the two
stands a `Training`: who has one fits many models to one coded table (`dtrees.estimators.sets`).

Attributes are set in one go when the tree stands. A fit that fails leaves the estimator as it was:
unfitted if it was unfitted, and otherwise with the whole of its former fit.

What tells a classifier from a regressor is data: the criteria, the constraints and how `y` becomes
a `Target`. Limits that a grown tree can answer (``max_leaf_nodes``, ``ccp_alpha``) are applied to
it afterwards [SF 3]; the others stop the growth.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import Bunch, check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted

from dtrees.coding.advice import nearly_ids
from dtrees.coding.codebook import CodeBook
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.tables import Table, read_table
from dtrees.coding.target import Target
from dtrees.core import pruning
from dtrees.core.coded_walk import CodedRows, WalkedRows
from dtrees.core.forest import ForestGrowth
from dtrees.core.model import Tree
from dtrees.core.resampling import Resampling, plain
from dtrees.core.rules import GrowthRules
from dtrees.core.shared import n_alone
from dtrees.core.shares import Shares
from dtrees.estimators.constraints import (
    ArrayLike,
    ArrayOf,
    Constraint,
    InstanceOf,
    IntegerIn,
    Nothing,
    NumberOf,
    OneOf,
    RandomState,
    RealIn,
    check_parameters,
    check_values,
)
from dtrees.estimators.limits import (
    columns_per_split,
    depth_of,
    least_rows,
    shares_of,
)
from dtrees.estimators.prediction import Predictor, TreePredictor
from dtrees.estimators.view import TreeView, missing_by_model
from dtrees.export.parts import Parts
from dtrees.parallel import (
    CodedPartitions,
    Ledger,
    LocalRunner,
    PartitionedRows,
    PartitionedTable,
    admitted,
    asked_for,
    encode_partitions,
    grow_sets,
    is_lazy,
    map_rows,
    threaded,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

logger = logging.getLogger(__name__)

LARGEST_SEED = MOST = np.iinfo(np.int32).max


# What classifiers learn, beside what all do.
LEARNS_CLASSES: Mapping[str, tuple[Constraint, ...]] = {
    "classes_": (ArrayOf(1),),
    "n_classes_": (NumberOf(1, MOST),),
}


@dataclass(frozen=True)
class Encoded:
    """A training table as codes, and the rules of the growth."""

    book: CodeBook
    coded: CodedMatrix | CodedPartitions
    target: Target
    rules: GrowthRules
    max_features: int
    seed: int


def _nobody(n_trees: int) -> None:
    """Hear of trees, and do nothing."""


@dataclass(frozen=True, eq=False)
class Training:
    """A coded table, and who fits models to it.

    Attributes
    ----------
    encoded : Encoded
    coded_rows : WalkedRows
        The same table, ready to be walked.
    y : array-like (n_rows,)
        The target as it was given; out-of-bag scores are of it.
    run : LocalRunner
    advance : callable (int) -> object
        Hears how many trees have come, as often as some have.
    ledger : Ledger
        Where a fit writes down what it did.
    """

    encoded: Encoded
    coded_rows: WalkedRows
    y: Any
    run: LocalRunner
    advance: Callable[[int], object] = _nobody
    ledger: Ledger = field(default_factory=Ledger)


def rows_of(coded: CodedMatrix | CodedPartitions, ledger: Ledger | None = None) -> WalkedRows:
    """Codes, ready to be walked, wherever they are; what is lost then is counted."""
    return CodedRows(coded) if isinstance(coded, CodedMatrix) else PartitionedRows(coded, ledger)


class BaseTrees(BaseEstimator, ABC):
    """What trees and forests share; not meant to be used itself."""

    _random_cuts: ClassVar[bool] = False
    _criteria: ClassVar[Mapping[str, str]]
    _constraints: ClassVar[Mapping[str, tuple[Constraint, ...]]] = {
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
        "random_state": (RandomState(),),
        "max_leaf_nodes": (IntegerIn(2), Nothing()),
        "min_impurity_decrease": (RealIn(0, math.inf, "[)"),),
        "ccp_alpha": (RealIn(0, math.inf, "[)"),),
        "monotonic_cst": (ArrayLike(), Nothing()),
        "max_codes": (IntegerIn(2), Nothing()),
        "categorical_features": (OneOf(("from_dtype",)), ArrayLike(), Nothing()),
        "unseen": (OneOf(("missing", "majority", "error")),),
        "category_penalty": (RealIn(0, math.inf, "[)"),),
        "n_jobs": (InstanceOf(Integral, "int"), Nothing()),
    }

    # What a fit learns, beside trees and codebook; model files hold nothing else.
    _learns: ClassVar[Mapping[str, tuple[Constraint, ...]]] = {
        "n_features_in_": (NumberOf(1, MOST),),
        "n_outputs_": (NumberOf(1, 1),),
        "max_features_": (NumberOf(1, MOST),),
        "feature_names_in_": (ArrayOf(1, np.dtype(object)),),
    }
    _learns_at_times: ClassVar[frozenset[str]] = frozenset({"feature_names_in_"})

    # The parameters of every tree; the classes set them in __init__.
    criterion: str
    max_depth: int | None
    min_samples_split: int | float
    min_samples_leaf: int | float
    min_weight_fraction_leaf: float
    max_features: int | float | str | None
    random_state: Any
    max_leaf_nodes: int | None
    min_impurity_decrease: float
    ccp_alpha: float
    monotonic_cst: Any
    max_codes: int | None
    categorical_features: Any
    unseen: str
    category_penalty: float = 0.0  # of those that draw their splits: they choose no subset
    n_jobs: int | None

    @abstractmethod
    def _encode_target(self, y: np.ndarray, sample_weight: Any) -> Target:
        """`y` and the weights as integers."""

    @abstractmethod
    def _learned(self, target: Target) -> dict[str, Any]:
        """Attributes that only classifiers or only regressors have."""

    @abstractmethod
    def _predictor(self) -> Predictor:
        """What a fitted estimator predicts with."""

    def _fits_apart(self) -> str | None:
        """Why several training sets are fitted one by one; None: they grow together."""
        return None

    def _n_alone(self, encoded: Encoded, resampling: Resampling) -> tuple[int, str]:
        """How many of several training sets share nothing of their growth, and why they do not."""
        if not isinstance(encoded.coded, CodedMatrix):  # in rounds, which are those of all sets
            return 0, ""
        return n_alone(encoded.coded, encoded.target, encoded.rules, resampling)

    @property
    @abstractmethod
    def _n_trees(self) -> int:
        """Number of trees of a fit."""

    @abstractmethod
    def _fit_coded(self, training: Training) -> Any:
        """Fit this estimator to a coded table; as `fit` with the same integers, bit for bit."""

    @abstractmethod
    def _grow_sets(self, training: Training, resampling: Resampling) -> Sequence[Any]:
        """What is grown from each training set; a tree, or the trees of a forest."""

    @abstractmethod
    def _models_of(self, encoded: Encoded, grown: Sequence[Any]) -> list[Any]:
        """Fitted estimators with these parameters, from what `_grow_sets` has grown."""

    def _fit_sets(self, training: Training, resampling: Resampling) -> list[Any]:
        """An estimator with these parameters, fitted to each training set; or the error of it."""
        return self._models_of(training.encoded, self._grow_sets(training, resampling))

    def _unfitted(self) -> Any:
        """What `clone` makes, which asks for the signature each time."""
        if not isinstance(self.random_state, Integral | None):
            return clone(self)
        made = type(self).__new__(type(self))
        made.__dict__.update({name: getattr(self, name) for name in self._get_param_names()})
        return made

    def _answer(self, method: str, X: Any) -> Any:
        """The predictor's answer for a table; for a Dask collection a lazy one."""
        check_is_fitted(self)
        predictor = self._predictor()
        if is_lazy(X):
            return map_rows(predictor, method, X)
        return getattr(predictor, method)(X, threaded(self.n_jobs))

    @abstractmethod
    def _parts(self) -> Parts:
        """What a fitted estimator is made of, for model files."""

    @classmethod
    @abstractmethod
    def _of_parts(cls, parts: Parts) -> Any:
        """The estimator that is made of these parts."""

    @classmethod
    def _check_parts(cls, parts: Parts) -> None:
        """Refuse parameters and attributes that no fit of this class has.

        Raises
        ------
        InvalidParameterError
            One is of the wrong type or outside its range.
        ValueError
            One is missing, or does not fit the others.
        """
        check_values(cls._constraints, parts.parameters, "parameter", cls.__name__)
        check_values(cls._learns, parts.attributes, "attribute", cls.__name__)
        missing = cls._learns.keys() - cls._learns_at_times - parts.attributes.keys()
        if missing:
            raise ValueError(f"there is no attribute {min(missing)!r}")

    @property
    def fit_report_(self) -> dict[str, Any]:
        """What the fit did, and what it took; plain numbers and strings.

        Models that were grown together, those of a cross-validation and the ``best_estimator_`` of
        a search, tell of the growth that all models share, each the same; its coding may be shared
        with other growths. Scores are not part of it. Nor is the report part of the model: it is
        not pickled or saved.

        - ``regime``, ``reason``: where trees were grown, and why there.
        - ``seconds``: dict of the phases: ``coding``, ``growth``, ``reading`` of what else a Dask
          collection has to tell, and, within growth on a cluster, what was waited for.
        - On a cluster, ``lost_workers``, and where it happened ``retries`` of tasks and
          ``restarts``: everything had to be sent or made again.
        - In the replicated regime: ``tasks``, and ``bytes_moved``: the table, once for every worker
          that it was sent to, and trees on their way back.
        - In the partitioned regime: ``rounds``, ``passes`` over the codes, ``bytes_moved``: counts,
          rows and blocks, ``cache_hits`` and ``rebuilds`` of the places of rows.
        """
        check_is_fitted(self)
        if "_fit_report" not in self.__dict__:
            raise AttributeError("This model has no fit_report_: it was not made by fit.")
        report: dict[str, Any] = deepcopy(self._fit_report)
        return report

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_fit_report", None)
        return state

    def _learned_attributes(self) -> dict[str, Any]:
        """What `fit` learned, beside trees and codebook."""
        check_is_fitted(self)
        return {name: value for name, value in vars(self).items() if name in self._learns}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def _check_parameters(self) -> None:
        # not get_params, which reads the signature anew each time
        check_parameters(
            self._constraints,
            {name: getattr(self, name) for name in self._constraints},
            type(self).__name__,
        )

    def _seed(self) -> int:
        """A seed from the random state; a state that is given draws once."""
        return int(check_random_state(self.random_state).randint(LARGEST_SEED))

    def _draws_ties(self) -> bool:
        """Whether a draw decides between columns whose splits gain the same."""
        return True

    def _shares(self) -> Shares:
        """Limits that depend on which rows a training set has."""
        return shares_of(
            self.min_samples_split, self.min_samples_leaf, self.min_weight_fraction_leaf
        )

    def _encode(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        seed: int,
        run: LocalRunner,
        ledger: Ledger | None = None,
    ) -> Encoded:
        """Check the parameters, code the table and the target, resolve the rules."""
        self._check_supported()
        table, values = self._read(X, y)
        target = self._encode_target(values, sample_weight)
        return self._resolve(*self._code(table, seed, run, ledger), target, seed)

    def _check_supported(self) -> None:
        if self.monotonic_cst is not None:
            raise NotImplementedError(
                f"The 'monotonic_cst' parameter of {type(self).__name__} is not supported yet: it "
                f"must be None. Got {self.monotonic_cst!r} instead."
            )

    def _read(self, X: Any, y: Any) -> tuple[Table | PartitionedTable, np.ndarray]:
        """A table, and a target of as many rows."""
        owner = type(self).__name__
        table = X if isinstance(X, PartitionedTable) else read_table(X)
        values = one_target(y, owner)
        if len(values) != table.n_rows:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {table.n_rows} "
                f"rows, y has {len(values)} values. Give one value of y per row of X."
            )
        return table, values

    def _code(
        self,
        table: Table | PartitionedTable,
        seed: int,
        run: LocalRunner,
        ledger: Ledger | None = None,
    ) -> tuple[CodeBook, CodedMatrix | CodedPartitions]:
        """The table as codes."""
        how: dict[str, Any] = {
            "categorical_features": self.categorical_features,
            "max_codes": self.max_codes,
            "unseen": self.unseen,
            "seed": seed,
        }
        if isinstance(table, PartitionedTable):
            regime = asked_for(getattr(self, "regime", None))
            book, coded = encode_partitions(table, **how, regime=regime, ledger=ledger)
        else:
            book, coded = CodeBook.fit_encode(table, **how, run=run)
        for column, count in nearly_ids(book, coded.n_rows).items():
            logger.info(
                "column %s of X has %d categories in %d rows: an id tells nothing of other rows",
                book.name(column),
                count,
                coded.n_rows,
            )
        return book, coded

    def _resolve(
        self, book: CodeBook, coded: CodedMatrix | CodedPartitions, target: Target, seed: int
    ) -> Encoded:
        """Codes and target, with the rules that the parameters are for them."""
        max_features = columns_per_split(self.max_features, book.n_columns)
        numbers = GrowthRules(
            criterion=self._criteria[self.criterion],
            max_depth=depth_of(self.max_depth, self.max_leaf_nodes),
            min_samples_split=max(2, least_rows(self.min_samples_split)),
            min_samples_leaf=least_rows(self.min_samples_leaf),
            min_impurity_decrease=float(self.min_impurity_decrease),
            max_features=max_features if max_features < book.n_columns else None,
            random_cuts=self._random_cuts,
            random_ties=self._draws_ties(),
            category_penalty=float(self.category_penalty),
            seed=seed,
            unseen="majority" if self.unseen == "majority" else "missing",
        )
        rules = self._shares().rules(numbers, target)
        return Encoded(book, coded, target, rules, max_features, seed)


class BaseDecisionTree(BaseTrees):
    """What the two decision trees share; not meant to be used itself."""

    def _draws_ties(self) -> bool:
        return self.random_state is not None

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow the tree.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            A NumPy array, a SciPy sparse matrix or array, a pandas or polars data frame, an Arrow
            table or a list of rows; or a Dask array (of dense or sparse blocks) or data frame,
            which is coded where its partitions are. Numbers, booleans, dates, strings and
            categories; missing values are welcome. It is read only, and not kept.
        y : array-like of shape (n_rows,)
            The target; a Dask collection, if you like, cut in any way.
        sample_weight : array-like of shape (n_rows,), default=None
            Not negative, not all zero. A row of weight 2 is as good as two rows, except for
            ``min_samples_split`` and ``min_samples_leaf``, which count rows of positive weight.

        Returns
        -------
        self : object
            The fitted tree.

        Raises
        ------
        ValueError
            A parameter, `X`, `y` or `sample_weight` is not what it should be; the estimator is
            then as it was before.

        Notes
        -----
        Costs O(n_rows x n_columns x depth), and one sort of every ordered column.
        """
        return self._fit_coded(self._training(X, y, sample_weight))

    def _fit_coded(self, training: Training) -> Any:
        tree = pruning.ccp(self._grow(training), self.ccp_alpha)
        (learned,) = self._learned_of(training.encoded, [tree])
        learned["_fit_report"] = training.ledger.report()
        self.__dict__.pop("feature_names_in_", None)
        self.__dict__.update(learned)
        training.advance(1)
        return self

    def _learned_of(self, encoded: Encoded, trees: Sequence[Tree]) -> list[dict[str, Any]]:
        """The attributes of a fit for each of the trees that were grown with these parameters."""
        book = encoded.book.without_values()  # as large as the table; the tree has its thresholds
        facts = {
            "n_features_in_": book.n_columns,
            "n_outputs_": 1,
            "max_features_": encoded.max_features,
            **self._learned(encoded.target),
        }
        if book.feature_names is not None:
            facts["feature_names_in_"] = book.feature_names
        missing = missing_by_model([[tree] for tree in trees], encoded.coded)
        return [
            {**facts, "tree_": TreeView(tree, book, mine)}
            for tree, mine in zip(trees, missing, strict=True)
        ]

    _n_trees = 1

    def _grow_sets(self, training: Training, resampling: Resampling) -> list[Tree]:
        growth = self._growth_of(training.encoded)
        advance, ledger = training.advance, training.ledger
        grown = grow_sets(growth, 1, resampling, training.run, advance=advance, ledger=ledger)
        return [tree for (tree,) in grown]

    def _growth_of(self, encoded: Encoded) -> ForestGrowth:
        """What the tree is grown from."""
        return ForestGrowth(
            encoded.coded,
            encoded.target,
            encoded.rules,
            None,
            encoded.book.thresholds,
            shares=self._shares(),
            max_leaf_nodes=self.max_leaf_nodes,
            ccp_alpha=self.ccp_alpha,
        )

    def _models_of(self, encoded: Encoded, grown: Sequence[Tree]) -> list[Any]:
        models = [self._unfitted() for _ in grown]
        for model, learned in zip(models, self._learned_of(encoded, grown), strict=True):
            model.__dict__.update(learned)
        return models

    def apply(self, X: Any) -> np.ndarray:
        """Return the leaf of every row.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        leaves : intp array of shape (n_rows,)
            Node numbers in ``[0, tree_.node_count)``. O(n_rows x depth).

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `fit`.
        ValueError
            Columns are not those of the fit.
        """
        return self._answer("apply", X)

    def decision_path(self, X: Any) -> csr_matrix:
        """Return the nodes that every row passes on its way to its leaf.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            Columns as at fit. A Dask array or data frame is answered lazily, block by block.

        Returns
        -------
        indicator : csr matrix of shape (n_rows, tree_.node_count)
            1 where the row passes the node, the leaf included.
        """
        return self._answer("decision_path", X)

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Return every step of minimal cost-complexity pruning; fits nothing.

        Parameters
        ----------
        X : table of shape (n_rows, n_columns)
            As for `fit`.
        y : array-like of shape (n_rows,)
            The target.
        sample_weight : array-like of shape (n_rows,), default=None
            As for `fit`.

        Returns
        -------
        path : Bunch
            ``ccp_alphas``, ascending from 0, float64 of shape (n_steps,), and ``impurities``, the
            weighted impurity of the leaves from that alpha on, of the same shape.

        Notes
        -----
        Costs one fit; ``ccp_alpha`` is not looked at.
        """
        alphas, impurities = pruning.cost_complexity_path(
            self._grow(self._training(X, y, sample_weight))
        )
        return Bunch(ccp_alphas=alphas, impurities=impurities)

    def get_depth(self) -> int:
        """Return the depth of the deepest leaf; a tree of one leaf has depth 0."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of every column in the impurity decrease, float64 of shape (n_features_in_,).

        Measured on the training rows, so columns with many values get more than their due; see
        :func:`sklearn.inspection.permutation_importance` for an importance without that bias.
        """
        check_is_fitted(self)
        return self.tree_.compute_feature_importances()

    def _predictor(self) -> Predictor:
        view, classes = self.tree_, getattr(self, "classes_", None)
        return TreePredictor(view.codebook, classes, type(self).__name__, view.model)

    def _parts(self) -> Parts:
        learned, parameters = self._learned_attributes(), self.get_params(deep=False)
        view = self.tree_
        return Parts(parameters, learned, (view.model,), view.codebook, view.saw_missing)

    @classmethod
    def _of_parts(cls, parts: Parts) -> Any:
        made = cls(**parts.parameters)
        (tree,) = parts.trees
        made.__dict__.update(parts.attributes, tree_=TreeView(tree, parts.book, parts.saw_missing))
        return made

    def _training(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """Check the parameters and code the table."""
        self._check_parameters()
        run = threaded(self.n_jobs)
        ledger = Ledger()
        X, y, sample_weight = admitted(X, {"y": y, "sample_weight": sample_weight}, ledger)
        with ledger.phase("coding"):
            encoded = self._encode(X, y, sample_weight, self._seed(), run, ledger)
        return Training(encoded, rows_of(encoded.coded, ledger), y, run, ledger=ledger)

    def _grow(self, training: Training) -> Tree:
        """The tree before cost-complexity pruning."""
        growth = replace(self._growth_of(training.encoded), ccp_alpha=0.0)
        with training.ledger.phase("growth"):
            ((tree,),) = grow_sets(growth, 1, plain(), training.run, ledger=training.ledger)
        return tree


def one_target(y: Any, owner: str) -> np.ndarray:
    """`y` as a 1-d array.

    Raises
    ------
    ValueError
        There is no y, or it has several columns.
    """
    if y is None:
        raise ValueError(
            f"This {owner} estimator requires y to be passed, but the target y is None."
        )
    if type(y) is np.ndarray and y.ndim == 1:
        return y
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, got an array of shape {shape} instead: {owner} does not "
            "support several targets yet. Fit a tree per column of y, for example with "
            "sklearn.multioutput.MultiOutputClassifier or MultiOutputRegressor."
        )
    return column_or_1d(y, warn=True)
