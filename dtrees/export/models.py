"""Saving and loading fitted estimators; the format stands in `dtrees.export`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import dtrees
from dtrees._warnings import warn
from dtrees.constraints import Boolean, Constraint, InstanceOf, OneOf, checked
from dtrees.exceptions import ModelFileError
from dtrees.export.archive import (
    Archive,
    Readable,
    Taken,
    Writable,
    write,
    write_file,
)
from dtrees.export.books import decode_book, encode_book, expect
from dtrees.export.parts import Parts, check_attributes, is_name_of_bags
from dtrees.export.trees import LAYOUTS, check_trees, decode_trees, encode_trees, little
from dtrees.export.values import Encoder, decode

FORMAT = "dtrees model"
VERSION = 1
# parameters that older files lack: what fitted them then
ADDED_LATER = {
    "category_penalty": 0.0,
    "min_child_weight": 1e-3,
    "use_best_model": False,
    "min_split_gain": 0.0,
    "l1_regularization": 0.0,
    "max_delta_step": 0.0,
    "path_smooth": 0.0,
    "multi_strategy": "one_output_per_tree",
    "colsample_bytree": 1.0,
    "power": 1.5,
    "keep_rows": False,
    "oob_score": False,
    "init": None,
    "min_samples_split": 2,
    "feature_weights": None,
}
INSTEAD = (  # of a model that no file can hold
    "Take steps of scikit-learn, functions of NumPy such as numpy.log1p, and types by name, as "
    "'category'. Or save the estimator of dtrees in it alone, such as pipeline[-1], and make the "
    "other steps by code."
)
ESTIMATORS = (
    *(
        f"{kind}{task}"
        for kind in (
            *("AdaBoost", "Bagging", "DecisionTree", "ExtraTrees"),
            *("GradientBoosting", "RandomForest"),
        )
        for task in ("Classifier", "Regressor")
    ),
    "IsolationForest",
)


def _path_or_file(method: str) -> tuple[Constraint, ...]:
    """What `path` may be: a file object has a method, and is no text."""
    return (
        InstanceOf(str | os.PathLike, "str or path"),
        Constraint(
            f"a file of bytes with the method {method!r}",
            but=(io.TextIOBase, type),
            test=lambda value: hasattr(value, method),
        ),
    )


@checked(path=_path_or_file("write"), layout=(OneOf(LAYOUTS),))
def save(model: Any, path: str | os.PathLike | Writable, *, layout: str = "compact") -> None:
    """Write a fitted estimator to a file.

    Parameters
    ----------
    model : object
        A fitted tree, forest or boosted model of dtrees; or a fitted model of scikit-learn with
        such a one inside, as a pipeline or a `CalibratedClassifierCV`, which skops writes.
    path : str, path or file object
        By custom with the suffix ``.dtrees``. A file that is there is replaced when the new one is
        complete and has been read back. To a file object, which is open for writing bytes, nothing
        is written before that.
    layout : {"compact", "flat"}, default="compact"
        "compact" takes a few bytes per node, and `load` computes the rest. "flat" holds the
        arrays as they are in memory and is about ten times as large; it is for
        ``load(path, mmap=True)`` by many processes.

    Raises
    ------
    TypeError
        The model is no estimator of dtrees and holds none, or a class label, category, step or
        function is of a type that a file cannot hold.
    ImportError
        The model is one of scikit-learn, and skops is not installed, or too old.
    ValueError
        `layout` is neither of the two, or a parameter was set to what the estimator does not take.
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    dtrees.exceptions.ModelFileError
        What was written does not load again. A file that was there stays as it was.
    OSError
        The file cannot be written: there is no such folder, say.

    Warns
    -----
    UserWarning
        A parameter is a function, a random state or another object that a file cannot hold. It is
        left out, and the loaded estimator has the default in its place: that matters when it is
        fitted again.

    See Also
    --------
    load : The other way.

    Examples
    --------
    >>> import os, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from dtrees import RandomForestClassifier
    >>> from dtrees.export import load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    >>> path = os.path.join(tempfile.mkdtemp(), "iris.dtrees")
    >>> save(forest, path)
    >>> bool((load(path).predict(X) == forest.predict(X)).all())
    True
    """
    name = type(model).__name__
    if name not in ESTIMATORS or type(model) is not getattr(dtrees, name):
        from dtrees.export.skops_files import writer  # which imports this module

        instead = _instead(model)
        is_theirs = isinstance(model, BaseEstimator) and type(model).__module__[:8] == "sklearn."
        put = writer(model, layout) if is_theirs and not instead else None
        if put is not None:
            write_file(path, put, partial(_check_loads, model=model))
            return
        raise TypeError(
            f"The 'model' parameter of save must be one of {', '.join(ESTIMATORS)}, or a model of "
            "scikit-learn with a fitted one of them inside. Got "
            f"{type(model).__module__}.{type(model).__qualname__} instead.{instead}"
        )
    parts = model._parts()
    model._check_parts(parts)
    encoder = Encoder()
    parameters = {}
    for key, value in parts.parameters.items():
        so_far = dict(encoder.arrays)
        try:
            parameters[key] = encoder.encode(value, f"The parameter {key!r} of {name}")
        except TypeError:
            encoder.arrays = so_far
            warn(
                f"The parameter {key!r} of {name} ({str(value)[:60]}) is left out: a model file "
                "holds values only. The loaded estimator has the default in its place."
            )
    attributes = {
        key: encoder.encode(value, f"The attribute {key!r} of {name}")
        for key, value in parts.attributes.items()
    }
    book, book_arrays = encode_book(parts.book, encoder)
    trees, tree_arrays = encode_trees(parts.trees, layout)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": dtrees.__version__,
        "estimator": name,
        "parameters": parameters,
        "attributes": attributes,
        "codebook": book,
        "trees": trees,
    }
    arrays = {f"trees/{key}": little(array) for key, array in tree_arrays.items()}
    arrays |= {f"codebook/{key}": little(array) for key, array in book_arrays.items()}
    arrays["codebook/saw_missing"] = parts.saw_missing
    write(path, document, arrays | encoder.arrays, _check_loads)


def _check_loads(path: os.PathLike | Readable, model: Any = None) -> None:
    """Raise when a file that was just written, of a `model` of skops, is none that `load` reads."""
    from dtrees.export.skops_files import UnsafeFileError, place_of_fault  # which import this one

    try:
        load(path)
    except UnsafeFileError as error:
        raise TypeError(
            f"The model holds {error.what}{place_of_fault(model)}, which a safe file cannot hold. "
            f"{INSTEAD}"
        ) from error
    except ModelFileError as error:
        raise ModelFileError(
            "The model is not saved, because the file would not load again "
            f"({error.__cause__ or error}). Nothing was written or replaced. This is a fault of "
            "dtrees, or the model was changed after its fit."
        ) from error


def _instead(model: Any) -> str:
    """What to save in the place of an object that found a model of ours; empty of any other."""
    if getattr(model, "best_estimator_", None) is not None:
        return " Save its best_estimator_."
    if hasattr(type(model), "final_estimator"):  # of a cross-validation, which would grow it
        return " Save its final_estimator."
    return ""


@checked(path=_path_or_file("read"), mmap=(Boolean(),))
def load(path: str | os.PathLike | Readable, *, mmap: bool = False) -> Any:
    """Read a fitted estimator from a file that `save` wrote.

    Parameters
    ----------
    path : str, path or file object
        A file object is open for reading bytes, and is read to its end.
    mmap : bool, default=False
        Map the file into memory instead of reading it; arrays are then views of the map. Of
        trees in the "compact" layout only what is stored is mapped: their arrays are computed,
        and take memory.

    Returns
    -------
    model : object
        The estimator, bit for bit; all of its arrays of trees are read-only.

    Raises
    ------
    ModelFileError
        The file is damaged, of a newer version, no model file, or names types that are neither of
        dtrees nor of scikit-learn. To load a pipeline, skops is not installed, or too old.
    ValueError
        `mmap`, and a file object or a model of scikit-learn.
    OSError
        The file cannot be read.

    Notes
    -----
    Nothing in the file is executed; the whole file is read once, to check it. It is safe to load
    files of unknown origin; whether to believe their predictions is another question. Models of
    scikit-learn are read by skops: only objects of trusted types of scikit-learn, NumPy and dtrees
    are made. At `predict` and `fit` they do what scikit-learn's do, with the parameters of the
    file: a `CountVectorizer` may read files that the table names.
    """
    from dtrees.export.skops_files import decoded, is_skops  # which imports this module

    data = None
    if not isinstance(path, str | os.PathLike):
        if mmap:
            raise ValueError("mmap=True needs the path of a file; a file object was given.")
        data = path.read()
        if not isinstance(data, bytes):
            raise TypeError("A model file is read from a file of bytes, opened with 'rb'.")
        path = str(getattr(path, "name", None) or type(path).__name__)
    name = os.fspath(path)
    if is_skops(path if data is None else data):
        if mmap:
            raise ValueError(f"mmap=True: {name!r} holds a model of scikit-learn, not ours alone.")
        return decoded(name, Path(path).read_bytes() if data is None else data)
    return load_model(name, mmap, data)


def load_model(name: str, mmap: bool, data: bytes | None) -> Any:
    """Read an estimator of dtrees; `name` is the path, or what messages call the data."""
    archive = Archive(name, mmap, data)
    archive.expect_format(FORMAT, VERSION)
    document = archive.document
    with archive.reading():
        unknown = _unknown(document)
        if unknown:
            raise ModelFileError(
                f"The model file {name!r} has {unknown}, which dtrees {dtrees.__version__} does "
                f"not know; it was written by dtrees {str(document.get('written_by'))[:40]}. "
                "Install that version."
            )
        return _decode(document, archive.arrays())


def _unknown(document: Mapping[str, Any]) -> str:
    """The first name that this version does not know, in words; empty when it knows all."""
    name = document["estimator"]
    if name not in ESTIMATORS:
        return f"the estimator {str(name)[:40]!r}"
    kind = getattr(dtrees, name)
    for what, names in (("parameter", kind._get_param_names()), ("attribute", kind._learns)):
        strange = document[f"{what}s"].keys() - set(names)
        if strange:
            return f"the {what} {min(strange)[:40]!r} of {name}"
    return ""


def _decode(document: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Any:
    """The estimator behind a document and its arrays."""
    kind = getattr(dtrees, document["estimator"])
    named: dict[str, dict[str, np.ndarray]] = {"trees": {}, "codebook": {}, "values": {}}
    for key, array in arrays.items():
        group, _, rest = key.partition("/")
        expect(group in named, f"a member {key + '.npy'!r}")
        own = array.dtype.newbyteorder("=") if group != "values" else array.dtype
        named[group][rest if group != "values" else key] = array.astype(own, copy=False)
    groups = {group: Taken(each) for group, each in named.items()}
    values = groups["values"]
    book = decode_book(document["codebook"], groups["codebook"], values)
    saw_missing = groups["codebook"]["saw_missing"]
    expect(saw_missing.dtype == np.bool_ and saw_missing.shape == (book.n_columns,),
           "where missing values were seen")  # fmt: skip
    trees = decode_trees(document["trees"], groups["trees"])
    check_trees(trees, book)
    given = {key: decode(value, values) for key, value in document["parameters"].items()}
    parameters = complete_parameters(kind, given)
    attributes = {key: decode(value, values) for key, value in document["attributes"].items()}
    for group, each in groups.items():
        for name in sorted(each.left()):
            member = name if group == "values" else f"{group}/{name}"
            expect(False, f"a member {member + '.npy'!r}")
    check_attributes(attributes, kind, trees, book)
    parts = Parts(parameters, attributes, trees, book, saw_missing)
    kind._check_parts(parts)
    bags = attributes.get("_fit_bags")  # None where the fit had none
    expect(bags is None or is_name_of_bags(bags, attributes["_fit_seed"]), "_fit_bags")
    return kind._of_parts(parts)


def complete_parameters(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a file, and those that came later."""
    later = ADDED_LATER.keys() & kind._get_param_names()
    return {key: ADDED_LATER[key] for key in later} | dict(given)
