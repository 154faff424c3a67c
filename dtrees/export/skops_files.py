"""Files of scikit-learn's models that hold ours: pipelines, calibrated models, ensembles.

skops writes and reads them. It makes nothing but objects of types that are trusted: those that it
trusts itself, which are scikit-learn's and NumPy's, and the few of `TRUSTED`. An estimator of
dtrees is in the file as the bytes of its own model file, which `dtrees.export.models` checks::

    pipeline ──▶ its copy, with a Saved for each estimator of dtrees ──▶ skops
"""

from __future__ import annotations

import copyreg
import io
import os
import pickle
from importlib import import_module
from typing import Any
from zipfile import ZipFile

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import dtrees
from dtrees.exceptions import ModelFileError
from dtrees.export.archive import DOCUMENT, LONGEST_REASON
from dtrees.export.models import ESTIMATORS, load_model, save, with_later

SCHEMA = "schema.json"  # a member that all files of skops have
# What skops does not trust, of what fitted models hold. None of them runs code or opens files that
# a file names.
TRUSTED = (
    "dtrees.export.skops_files.Saved",
    "numpy.dtype",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.calibration._TemperatureScaling",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.compose._column_transformer._RemainderColsList",
    "sklearn.feature_selection._mutual_info.mutual_info_classif",
    "sklearn.feature_selection._mutual_info.mutual_info_regression",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.feature_selection._univariate_selection.f_regression",
    "sklearn.utils._bunch.Bunch",
)


class Saved:
    """What stands in a file for an estimator of dtrees: making one gives the estimator.

    Parameters
    ----------
    name : str
        Of the class.
    parameters : dict
        Of an estimator that is not fitted; otherwise the model file has them.
    content : bytes or None
        Of the model file; None of an estimator that is not fitted.
    """

    name: str
    parameters: dict[str, Any]
    content: bytes | None

    def __new__(cls, name: str, parameters: dict[str, Any], content: bytes | None) -> Any:
        """Make the estimator."""
        if content is not None:
            return load_model(name, False, content)
        if name not in ESTIMATORS:
            raise ModelFileError(f"There is no estimator {str(name)[:40]!r}.")
        kind = getattr(dtrees, name)
        return kind(**with_later(kind, parameters))

    def __reduce__(self) -> tuple[Any, ...]:
        return Saved, (self.name, self.parameters, self.content)


def _saved(name: str, parameters: dict[str, Any], content: bytes | None) -> Saved:
    """One that is not made into the estimator yet."""
    found: Saved = object.__new__(Saved)
    found.name, found.parameters, found.content = name, parameters, content
    return found


def encoded(model: Any, layout: str) -> bytes | None:
    """The content of the file of a model of scikit-learn; None if there is none of ours in it.

    Raises
    ------
    ImportError
        skops is not installed.
    TypeError
        The model holds something that no safe file can hold.
    sklearn.exceptions.NotFittedError
    """
    check_is_fitted(model)
    kind, memory, fitted = type(model).__name__, io.BytesIO(), []

    def reduced(estimator: Any) -> tuple[Any, ...]:
        name = type(estimator).__name__
        if not hasattr(estimator, "n_features_in_"):
            return _saved, (name, estimator.get_params(deep=False), None)
        fitted.append(io.BytesIO())
        save(estimator, fitted[-1], layout=layout)
        return _saved, (name, {}, fitted[-1].getvalue())

    copier = pickle.Pickler(memory, pickle.HIGHEST_PROTOCOL)
    copier.dispatch_table = copyreg.dispatch_table | {
        getattr(dtrees, name): reduced for name in ESTIMATORS
    }
    try:
        copier.dump(model)
    except (pickle.PicklingError, AttributeError) as error:  # a function without a name, say
        raise TypeError(f"{kind} cannot be saved: {error}.") from error
    if not fitted:
        return None
    skops = _skops(f"Saving {kind}")
    content: bytes = skops.dumps(pickle.loads(memory.getvalue()))
    strange = sorted(set(skops.get_untrusted_types(data=content)) - set(TRUSTED))
    if strange:
        raise TypeError(
            f"{kind} holds {', '.join(strange)}, which a safe file cannot hold. Save the estimator "
            "of dtrees in it, and the other steps by other means."
        )
    return content


def is_skops(content: str | os.PathLike | bytes) -> bool:
    """Whether a file, or what is in one, looks like one of skops."""
    try:
        with ZipFile(io.BytesIO(content) if isinstance(content, bytes) else content) as archive:
            names = archive.namelist()
    except Exception:  # whatever zipfile makes of a file that is none, or damaged
        return False
    return SCHEMA in names and DOCUMENT not in names


def decoded(name: str, content: bytes) -> Any:
    """The model of a file of skops.

    Raises
    ------
    ModelFileError
        The file is damaged, holds types that are not trusted, or skops is not installed.
    """
    try:
        skops = _skops(f"The model file {name!r}")
        with ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > len(content):
                raise ValueError("its members are larger than the file")
        strange = sorted(set(skops.get_untrusted_types(data=content)) - set(TRUSTED))
        if strange:
            raise ModelFileError(
                f"The model file {name!r} holds {', '.join(strange)[:LONGEST_REASON]}, which is "
                "none of the types that are safe to load."
            )
        model = skops.loads(content, trusted=list(TRUSTED))
        if not isinstance(model, BaseEstimator):
            raise ValueError(f"it holds no model, but {type(model).__name__}")
        return model
    except ImportError as error:
        raise ModelFileError(str(error)) from error
    except ModelFileError:
        raise
    except Exception as error:  # what is in the file may be anything
        why = f"{type(error).__name__}: {error}"[:LONGEST_REASON]
        raise ModelFileError(f"The model file {name!r} is damaged: {why}.") from error


def _skops(what: str) -> Any:
    """The module, or an error that says how to get it."""
    try:
        return import_module("skops.io")
    except ImportError as error:
        raise ImportError(
            f"{what} needs skops, which is not installed: pip install 'dask-dtrees[skops]'"
        ) from error
