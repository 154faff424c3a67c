"""Files of scikit-learn's models that hold ours: pipelines, calibrated models, ensembles.

skops writes and reads them. It makes objects of types that are trusted: those that it trusts
itself, which are scikit-learn's and NumPy's, and the few of `TRUSTED`. An estimator of dtrees is
in the file as the bytes of its own model file, which `dtrees.export.models` checks::

    pipeline ──▶ its copy, with a SavedEstimator for each estimator of dtrees ──▶ skops

skops asks which types a file names, but not what making them costs. `_Audit` asks that before.
"""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.fixes import parse_version
from sklearn.utils.validation import check_is_fitted

import dtrees
from dtrees._extras import extra
from dtrees.exceptions import ModelFileError
from dtrees.export.archive import DOCUMENT, LONGEST_REASON
from dtrees.export.models import ESTIMATORS, INSTEAD, complete_parameters, load_model, save

SCHEMA = "schema.json"  # a member that all files of skops have
OLDEST_SKOPS = "0.16"  # older ones trust scikit-learn's trees, which nothing checks
PROTOCOL = 2  # of skops 0.16; files of others are read by loaders that `_Audit` does not know
# What skops does not trust, of what fitted models hold, and the one loader that may make it.
TRUSTED = {
    "dtrees.export.skops_files.SavedEstimator": "ConstructorFromReduceNode",
    "numpy.dtype": "DTypeNode",
    **dict.fromkeys(  # of `make_column_selector(dtype_include=...)`
        (
            "builtins.object",
            *("numpy.generic", "numpy.number", "numpy.inexact", "numpy.floating"),
            *("numpy.integer", "numpy.signedinteger", "numpy.unsignedinteger"),
        ),
        "TypeNode",
    ),
    **dict.fromkeys(  # as newer pandas names it, and older
        ("pandas.CategoricalDtype", "pandas.core.dtypes.dtypes.CategoricalDtype"), "ObjectNode"
    ),
    "sklearn.calibration._CalibratedClassifier": "ObjectNode",
    "sklearn.calibration._SigmoidCalibration": "ObjectNode",
    "sklearn.calibration._TemperatureScaling": "ObjectNode",
    "sklearn.compose._column_transformer.make_column_selector": "ObjectNode",
    "sklearn.compose._column_transformer._RemainderColsList": "ObjectNode",
    "sklearn.feature_selection._mutual_info.mutual_info_classif": "FunctionNode",
    "sklearn.feature_selection._mutual_info.mutual_info_regression": "FunctionNode",
    "sklearn.feature_selection._univariate_selection.chi2": "FunctionNode",
    "sklearn.feature_selection._univariate_selection.f_classif": "FunctionNode",
    "sklearn.feature_selection._univariate_selection.f_regression": "FunctionNode",
    "sklearn.utils._bunch.Bunch": "DictNode",
}
# Loaders of all other types. None of them calls what a file names, or makes much of little.
LOADERS = frozenset(
    f"{kind}Node"
    for kind in (
        *("Bytes", "Dict", "DType", "Function", "Json", "List", "Loss", "NdArray", "Object"),
        *("RandomState", "Set", "Slice", "Tuple", "Type"),
    )
)


NULL = {"__loader__": "JsonNode", "content": "null"}  # None in a schema


class UnsafeFileError(ModelFileError):
    """A file holds what is not safe to load; `what` names it."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(name, what)
        self.what = what

    def __str__(self) -> str:
        return f"The model file {self.args[0]!r} holds {self.what}, which is not safe to load."


class SavedEstimator:
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
        return kind(**complete_parameters(kind, parameters))

    def __reduce__(self) -> tuple[Any, ...]:
        return SavedEstimator, (self.name, self.parameters, self.content)


class _Copier(pickle.Pickler):
    """Copies a model, with a SavedEstimator for each estimator of dtrees, and without caches."""

    def __init__(self, layout: str) -> None:
        self._memory, self._layout = io.BytesIO(), layout
        self.held: dict[int, SavedEstimator] = {}  # by the id of the estimator
        self._alive: list[Any] = []  # whose ids are no others'
        super().__init__(self._memory, 5)

    def persistent_id(self, value: Any) -> int | None:
        name, key = type(value).__name__, id(value)
        if name not in ESTIMATORS or type(value) is not getattr(dtrees, name):
            return None
        if key not in self.held:
            self._alive.append(value)
            parameters, content = value.get_params(deep=False), None
            if hasattr(value, "n_features_in_"):
                file = io.BytesIO()
                save(value, file, layout=self._layout)
                parameters, content = {}, file.getvalue()
            self.held[key] = object.__new__(SavedEstimator)
            vars(self.held[key]).update(name=name, parameters=parameters, content=content)
        return key

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, BaseEstimator) and getattr(value, "memory", None) is not None:
            value = copy.copy(value)
            value.memory = None  # pickles of a folder, which `fit` would open
            return value.__reduce_ex__(5)
        return NotImplemented

    def copied(self) -> Any:
        """The copy."""
        self._memory.seek(0)
        reader: Any = pickle.Unpickler(self._memory)
        reader.persistent_load = self.held.__getitem__
        return reader.load()


def writer(model: Any, layout: str) -> Callable[[BinaryIO], object] | None:
    """What writes the file of a model of scikit-learn; None if there is none of ours in it.

    Raises
    ------
    ImportError
        skops is not installed, or too old.
    TypeError
        The model holds something that no safe file can hold.
    sklearn.exceptions.NotFittedError
    """
    check_is_fitted(model)
    kind, copier = type(model).__name__, _Copier(layout)
    try:
        copier.dump(model)
    except (pickle.PicklingError, AttributeError) as error:
        what = str(error).removeprefix("Can't pickle ")
        raise TypeError(
            f"{kind} cannot be saved: it holds a lambda, or another function or class that cannot "
            f"be imported by its name ({what}){place_of_fault(model)}. {INSTEAD}"
        ) from error
    if all(each.content is None for each in copier.held.values()):
        return None
    return partial(_skops(f"Saving {kind}").dump, copier.copied())


def place_of_fault(model: BaseEstimator) -> str:
    """Where a model has what no file can hold, in words; empty if it is in no parameter."""
    wrong = [name for name, value in model.get_params().items() if not _can_be_saved(value)]
    place = max(reversed(wrong), key=lambda name: name.count("__"), default=None)
    return "" if place is None else f" in its parameter {place!r}"


def _can_be_saved(value: Any) -> bool:
    copier, skops = _Copier("compact"), _skops("Saving")
    try:
        copier.dump(value)
        unsafe = skops.get_untrusted_types(data=skops.dumps(copier.copied()))
    except Exception:  # whatever pickle and skops make of it
        return False
    return TRUSTED.keys() >= set(unsafe)


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
        The file is damaged, holds what is not safe to load, or skops is not installed.
    """
    try:
        skops = _skops(f"The model file {name!r}")
        with ZipFile(io.BytesIO(content)) as archive:
            unsafe = _Audit(name, archive, len(content)).unsafe
        try:
            model = None if unsafe else skops.loads(content, trusted=list(TRUSTED))
        except import_module("skops.io.exceptions").UntrustedTypesFoundException:
            unsafe = set(skops.get_untrusted_types(data=content)) - set(TRUSTED)
        if unsafe:
            raise UnsafeFileError(name, ", ".join(sorted(unsafe))[:LONGEST_REASON])
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


class _Audit:
    """What a file of skops would cost, and do, beyond its types.

    skops writes an object in full wherever it stands, with its id. It reads the first one, and
    takes that for all others of the id: so they have to be equal, but for ids and names of
    members. Then a file makes no more objects than it writes out, and each reads its member once.

    Attributes
    ----------
    unsafe : set of str
        What is not safe to load.
    """

    def __init__(self, name: str, archive: ZipFile, size: int) -> None:
        members = archive.infolist()
        self._sizes = {member.filename: member.file_size for member in members}
        if sum(member.file_size for member in members) > size:
            raise ValueError("its members are larger than the file")
        if any(member.compress_type != ZIP_STORED for member in members):
            raise ValueError("its members are compressed")
        self.unsafe: set[str] = set()
        self._numbers: dict[tuple[Any, ...], int] = {}  # of equal values
        self._ids: dict[Any, int] = {}
        self._scalars: set[tuple[str, str]] = set()
        self._n_bytes = 0
        schema = json.loads(archive.read(SCHEMA))
        protocol = schema["protocol"]
        if protocol != PROTOCOL:
            raise ModelFileError(
                f"The model file {name!r} has protocol {str(protocol)[:40]} of skops; this dtrees "
                f"reads protocol {PROTOCOL}, that of skops {OLDEST_SKOPS}."
            )
        self._number(schema)
        if self._n_bytes > size:
            raise ValueError("what its members make is larger than the file")
        for member, kind in self._scalars:
            scalar = np.load(io.BytesIO(archive.read(member)))
            if scalar.ndim or scalar.dtype.type.__name__ != kind:
                raise ValueError(f"{member} is no {kind}")

    def _number(self, value: Any, is_node: bool = True, is_own: bool = False) -> int:
        """The number of a value, the same for equal ones; `is_own`: of a new estimator of ours."""
        own = None
        if isinstance(value, list):
            key: tuple[Any, ...] = ("list", *[self._number(each, True, is_own) for each in value])
        elif not isinstance(value, dict):
            key = (type(value).__name__, value)
        elif not is_node or not value.keys() & {"__loader__", "__id__"}:
            key = tuple((name, self._number(each, True, is_own)) for name, each in value.items())
        else:
            self._check_node(value)
            own, loader = value.get("__id__"), value["__loader__"]
            size = self._sizes[value["file"]] if "file" in value else 0
            if is_own or own not in self._ids:
                self._n_bytes += size
                is_own = is_own or loader == "ConstructorFromReduceNode"
            words = "content" if loader == "DictNode" else None  # of a user, whatever they are
            names = sorted(value.keys() - {"__id__", "file"})
            numbers = [self._number(value[name], name != words, is_own) for name in names]
            key = (size, *zip(names, numbers, strict=True))
        number = self._numbers.setdefault(key, len(self._numbers))
        if own and self._ids.setdefault(own, number) != number:
            raise ValueError(f"two objects have the id {own!r}")
        return number

    def _check_node(self, node: dict[str, Any]) -> None:
        """Note what is not safe in a node; not in those that it holds."""
        name, loader = f"{node['__module__']}.{node['__class__']}", node["__loader__"]
        content = node.get("content")
        if loader != TRUSTED[name] if name in TRUSTED else loader not in LOADERS:
            self.unsafe.add(name)
        elif loader == "ObjectNode" and content is not None and not _is_null(content):
            if content["__loader__"] != "DictNode":
                self.unsafe.add(name)
            elif not _is_null(content["content"].get("memory", NULL)):
                self.unsafe.add(f"{name}(memory=...)")
        elif loader == "NdArrayNode" and node["type"] == "json":
            # one of more dimensions would copy the arrays in it
            if node["shape"]["__loader__"] != "TupleNode" or len(node["shape"]["content"]) != 1:
                self.unsafe.add("a table of objects")
        elif loader == "NdArrayNode" and name != "numpy.ndarray":
            self._scalars.add((node["file"], node["__class__"]))


def _is_null(node: dict[str, Any]) -> bool:
    return all(node.get(key) == value for key, value in NULL.items())


def _skops(what: str) -> Any:
    """The module, or an error that says how to get it."""
    skops = extra("skops.io", of="skops", for_=what)
    if parse_version(import_module("skops").__version__) < parse_version(OLDEST_SKOPS):
        raise ImportError(
            f"{what} needs skops {OLDEST_SKOPS} or newer: pip install 'dask-dtrees[skops]'"
        )
    return skops
