"""A fuzzer of model files: ``python -m tests.fuzz model_files --seed 1 --cases 2000``.

A case is a good file and a few changes of it, both drawn by seed and number of the case, so each
can be seen again by itself (``--case 17``). What is changed is what a file is made of:

    bits, bytes     anywhere: flipped, overwritten, moved, cut off
    document        values of the JSON, by others of any kind; with right checksums
    arrays          values, types, shapes; with right checksums
    archive         headers and directory of the zip: sizes, places, names, order

What has to happen: `load` refuses the file as a `ModelFileError`, or the model can be used: it
predicts, explains, tells its leaves and its text, is saved and loaded; a ValueError is an answer,
too (an unknown category, say), unless it says that a tree is broken, or that the copy is: `load`
was to see that. Everything else is a finding: another error, a crash, more than `SECONDS` of the
processor, more than `MEGABYTES`. Cases run in children, which can do no harm.

``--plant`` takes a check away first, to see that the fuzzer finds what it is there for.
"""

from __future__ import annotations

import argparse
import datetime
import io
import json
import os
import struct
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dtrees import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.exceptions import ModelFileError
from dtrees.export import books, load, models, parts, save, trees, values
from dtrees.export.archive import Archive, write_to
from dtrees.inspection import export_text
from tests.fuzz.children import outcomes

SECONDS = 20  # of the processor, for a case
MEGABYTES = 600
ENDINGS = ("refused", "used")  # of a case without a finding
TEXTS = 20_000  # nodes of which no text is asked for

# ---------------------------------------------------------------------------------------------
# good files


def table(n_rows: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    both = [*rng.normal(size=n_rows // 2).round(1).tolist(), *rng.choice(list("uv"), n_rows // 2)]
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n_rows),
            "word": pd.Categorical(rng.choice(list("abc"), n_rows)),
            "many": pd.Categorical(rng.integers(0, 70, n_rows).astype(str)),
            "both": np.array(both, dtype=object),
        }
    )
    frame.loc[::7, "number"] = np.nan
    return frame


def good_files() -> list[tuple[bytes, Any]]:
    """Files of models of every kind, each with a table that it can predict."""
    X = table()
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, len(X)) + 3 * (X["word"] == "a").to_numpy() % 3
    labels = np.array(["no", "yes", "perhaps", "x", "y", "z"])[y]
    numbers = X[["number"]].to_numpy()
    odd = np.empty(4, dtype=object)
    odd[:] = [Decimal("1.5"), Fraction(1, 3), datetime.date(2024, 1, 2), ("a", b"b")]
    codes = rng.integers(0, 4, len(X))
    strange = pd.DataFrame(
        {"c": pd.Categorical.from_codes(codes, categories=pd.Index(odd, dtype=object))}
    )
    made: list[tuple[Any, Any]] = [
        (RandomForestClassifier(3, random_state=0, class_weight={"no": 2.0}), (X, labels)),
        (RandomForestClassifier(30, max_depth=2, random_state=0, oob_tol=0.0), (X, y > 1)),
        (RandomForestRegressor(2, random_state=0), (X, rng.normal(size=len(X)))),
        (RandomForestRegressor(2, criterion="poisson", random_state=0), (X, y)),
        (RandomForestRegressor(2, max_depth=3, keep_rows=True, random_state=0), (X, y)),
        (DecisionTreeRegressor(min_samples_leaf=3, keep_rows=True), (X, y)),
        (IsolationForest(n_estimators=3, random_state=0), (X, None)),
        (ExtraTreesClassifier(2, random_state=0, handle_unknown="majority"), (X, y)),
        (AdaBoostClassifier(3, max_depth=2, random_state=0), (X, labels)),
        (AdaBoostRegressor(3, random_state=0), (X, y)),
        (DecisionTreeRegressor(max_bins=None), (numbers, y)),
        (DecisionTreeClassifier(handle_unknown="error", criterion="entropy"), (X, labels)),
        (DecisionTreeClassifier(), (strange, codes > 1)),
        (
            GradientBoostingClassifier(max_iter=2, class_weight={"no": 2.0}, random_state=0),
            (X, labels),
        ),
        (
            GradientBoostingRegressor(
                "quantile", quantile=0.2, max_iter=2, early_stopping=True, random_state=0
            ),
            (X, y),
        ),
        (GradientBoostingClassifier(max_iter=1, random_state=0), (X, np.c_[y, y > 1])),
        (
            GradientBoostingRegressor(
                max_iter=2, multi_strategy="multi_output_tree", random_state=0
            ),
            (numbers, np.c_[y, -y]),
        ),
    ]
    files = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "model"
        for model, (rows, target) in made:
            model.fit(rows, target)
            for layout in ("compact", "flat"):
                save(model, path, layout=layout)
                files.append((path.read_bytes(), rows))
    return files


# ---------------------------------------------------------------------------------------------
# changes

NUMBERS = [0, 1, -1, 2, 7, 63, 64, 127, 255, 256, 65_535, 2**31 - 1, -(2**31), 2**32, 2**53]
NUMBERS += [2**63 - 1, -(2**63), 2**64, 10**400]
VALUES: list[Any] = [
    *NUMBERS,
    *(None, True, False, 0.5, 1e308, "", "gini", "missing", "x" * 3000, [], {}, [[]]),
    *({"float": "nan"}, {"float": "-inf"}, {"float": "1"}, {"tuple": []}, {"dict": [[1, 2]]}),
    *({"fraction": ["1e999999999"]}, {"fraction": [1, 3]}, {"fraction": [10**400, 1]}),
    *({"decimal": "1e999999"}, {"decimal": "NaN"}, {"decimal": "9" * 3000}, {"bytes": "00ff"}),
    *({"member": "values/0"}, {"member": 3}, {"objects": [[-1], [1]]}, {"objects": [[2], [3, 1]]}),
    *({"array": ["<i8", [1], "00" * 8]}, {"array": ["|b1", [1], "07"]}),
    *({"array": ["<U1", [1], "ff" * 4]}, {"array": ["<f8", [2, 0], ""]}),
    *({"scalar": ["<f8", "00" * 8]}, {"scalar": ["|O", "00" * 8]}, {"scalar": ["V99999999", ""]}),
    *({"datetime": ["2024-01-01", 0, "Europe/Berlin"]}, {"date": "2024-99-01"}, {"time": "25:00"}),
    *({"timedelta": [10**9, 0, 0]}, {"timedelta": [0, 0, 10**400]}, {"Period": [1, "9999999999D"]}),
    *({"Timestamp": [2**63, "ns", None]}, {"Timedelta": [1, "Y"]}, {"Interval": [2, 1, "left"]}),
]  # fmt: skip
TYPES = [
    "u1",
    "i1",
    "<u2",
    "<i4",
    ">i4",
    "<i8",
    "<u8",
    "<f4",
    "<f8",
    ">f8",
    "<f2",
    "?",
    "S1",
    "<U1",
]
TYPES += ["<c16", "<M8[ns]", "V4"]

Rng = np.random.Generator


def pick(rng: Rng, options: Any) -> Any:
    return options[int(rng.integers(len(options)))]


def with_bits(rng: Rng, data: bytes) -> bytes:
    changed = bytearray(data)
    for at in rng.integers(0, len(data), int(rng.integers(1, 9))).tolist():
        changed[at] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def with_bytes(rng: Rng, data: bytes) -> bytes:
    at, other = (int(rng.integers(len(data))) for _ in range(2))
    length = int(rng.integers(1, 300))
    new = pick(rng, [b"", bytes(length), b"\xff" * length, data[other : other + length]])
    kept = pick(rng, [at, at + length, at + len(new)])  # inserted, replaced, or in place
    return data[:at] + new + data[kept:] if rng.random() < 0.8 else data[:at]


def places(value: Any, path: tuple = ()) -> Iterator[tuple]:
    """Where the values of a document are."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in inside:
        yield (*path, key)
        if isinstance(each, dict | list):
            yield from places(each, (*path, key))


def with_document(rng: Rng, data: bytes) -> bytes:
    document, arrays = parts_of(data)
    for _ in range(pick(rng, [1, 1, 2, 3])):
        *way, last = pick(rng, list(places(document)))
        holder = document
        for key in way:
            holder = holder[key]
        kind = int(rng.integers(10))
        if kind == 0:
            del holder[last]
        elif kind == 1 and isinstance(holder, dict):
            holder[pick(rng, ["x_", "fit", "__class__", "n_jobs", str(last)])] = holder.pop(last)
        elif kind == 2 and isinstance(holder, list):
            holder.insert(last, holder[last])
        elif kind == 3 and isinstance(holder[last], int):
            holder[last] += int(rng.integers(-3, 4))
        else:
            holder[last] = pick(rng, VALUES)
        if not document:
            break
    return archive_of(document, arrays)


def with_arrays(rng: Rng, data: bytes) -> bytes:
    document, arrays = parts_of(data)
    for _ in range(pick(rng, [1, 1, 2, 3])):
        name = pick(rng, sorted(arrays))
        array = arrays[name].copy()
        kind = int(rng.integers(15))
        if kind == 0:
            array = array[: int(rng.integers(len(array) + 1))]
        elif kind == 1:
            array = np.concatenate([array, array[-1:]])
        elif kind == 2:
            array = array.reshape(pick(rng, [(1, *array.shape), (*array.shape, 1)]))
        elif kind == 3:
            with np.errstate(all="ignore"):
                array = array.astype(pick(rng, TYPES))
        elif kind == 4 and array.dtype.itemsize in (1, 2, 4, 8):
            array = array.view(f"u{array.dtype.itemsize}")
        elif kind == 5:
            arrays[pick(rng, [f"{name}.escapes", f"{name}.divisor", "trees/more"])] = array[:1]
        elif array.size:
            change_values(rng, array)
        arrays[name] = array
    return archive_of(document, arrays)


def change_values(rng: Rng, array: np.ndarray) -> None:
    """Some values of an array become other ones, of its type or bytes that are none."""
    flat = array.reshape(-1)
    at = rng.integers(0, len(flat), int(rng.integers(1, 4)))
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        options = [*(n for n in NUMBERS if info.min <= n <= info.max), int(flat[at[0]]) + 1]
        flat[at] = np.array([pick(rng, options) for _ in at]).astype(array.dtype)
    elif array.dtype.kind == "f" and rng.random() < 0.5:
        flat[at] = pick(rng, [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e30, 5e-324])
    else:
        noise = flat.view(np.uint8)
        noise[rng.integers(0, len(noise), 3)] = rng.integers(0, 256, 3)


def with_archive(rng: Rng, data: bytes) -> bytes:
    """Headers and directory say something else; the data are as they were."""
    changed = bytearray(data)
    end = data.rindex(b"PK\5\6")
    for _ in range(int(rng.integers(1, 4))):
        mark, fields = pick(
            rng,
            [
                (
                    b"PK\1\2",
                    [(8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (42, 4)],
                ),
                (b"PK\3\4", [(6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)]),
                (b"PK\5\6", [(8, 2), (10, 2), (12, 4), (16, 4), (20, 2)]),
            ],
        )
        found = [at for at in range(end + 1) if data.startswith(mark, at)]
        at = pick(rng, found)
        offset, width = pick(rng, fields)
        here = slice(at + offset, at + offset + width)
        old = int.from_bytes(changed[here], "little")
        bound = 2 ** (8 * width)
        new = pick(rng, [0, 1, old + 1, old - 1, old * 2, bound - 1, int(rng.integers(len(data)))])
        changed[here] = (new % bound).to_bytes(width, "little")
    if rng.random() < 0.2:  # the directory once more, behind the end
        start = struct.unpack("<I", data[end + 16 : end + 20])[0]
        changed += data[start:]
    return bytes(changed)


def parts_of(data: bytes) -> tuple[Any, dict[str, np.ndarray]]:
    archive = Archive("good", False, data)
    return archive.document, archive.arrays()


def archive_of(document: Any, arrays: dict[str, np.ndarray]) -> bytes:
    """A file with right checksums, of whatever NumPy can write."""
    file = io.BytesIO()
    try:
        write_to(file, document, arrays)
    except Exception:  # a type that has no bytes, a number that JSON has not: something like it
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("model.json", json.dumps(document, default=str))
    return file.getvalue()


CHANGES: list[Callable[[Rng, bytes], bytes]] = [with_bits, with_bytes, with_archive]
CHANGES += [with_document, with_arrays] * 3  # behind the checksums is where the checks are


# ---------------------------------------------------------------------------------------------
# cases


def case_of(seed: int, number: int, files: list[tuple[bytes, Any]]) -> tuple[str, bytes, Any]:
    """What is changed, the file, and a table that the good one predicts."""
    rng = np.random.default_rng([seed, number])
    data, X = pick(rng, files)
    change = pick(rng, CHANGES)
    return change.__name__, change(rng, data), X


def outcome_of(path: str, X: Any) -> str:
    """What becomes of a file: "refused", "used", or a finding."""
    try:
        model = load(path, mmap=os.path.getsize(path) % 2 == 0)
    except ModelFileError:
        return "refused"
    except Exception:
        return f"load: {traceback.format_exc(limit=-3)}"
    try:
        use(model, X, path)
    except MemoryError:
        raise
    except Exception as error:
        late = isinstance(error, ModelFileError) or "broken" in str(error)
        if not isinstance(error, ValueError) or late:
            return f"use: {traceback.format_exc(limit=-4)}"
    return "used"


def use(model: Any, X: Any, path: str) -> None:
    """All that one does with a model that one has loaded."""
    model.predict(X)
    if hasattr(model, "predict_proba"):
        model.predict_proba(X)
    model.apply(X)
    model.decision_path(X)
    adds_up = not isinstance(model, AdaBoostRegressor)  # whose predictions are medians
    if adds_up:
        model.predict_contributions(X)
    if not isinstance(model, IsolationForest):
        _ = model.feature_importances_
    if "_row_ranks" in vars(model):
        model.predict_quantiles(X, [0.1, 0.5])
        model.predict_cdf(X, 1.0)
    trees = model.forest_.trees if hasattr(model, "forest_") else (model.tree_.model,)
    if sum(tree.node_count for tree in trees) < TEXTS:
        export_text(np.ravel(model.estimators_)[0] if hasattr(model, "forest_") else model)
        if adds_up and hasattr(model, "staged_predict"):
            export_text(model)
    repr(model)
    save(model, f"{path}.again")
    load(f"{path}.again").predict(X)


def outcomes_of(
    numbers: Sequence[int], seed: int, files: list[tuple[bytes, Any]], path: str, plant: str | None
) -> Iterator[str]:
    """What becomes of each case."""
    if plant is not None:
        PLANTS[plant]()
    for number in numbers:
        _, data, X = case_of(seed, number, files)
        Path(path).write_bytes(data)
        yield outcome_of(path, X)


def run(
    seed: int,
    numbers: Sequence[int],
    folder: Path,
    plant: str | None = None,
    seconds: float = SECONDS,
) -> Iterator[tuple[int, str]]:
    """Cases and what becomes of them, in children."""
    arguments = seed, good_files(), str(folder / "case"), plant
    return outcomes(outcomes_of, numbers, *arguments, seconds=seconds, megabytes=MEGABYTES)


def unchecked_trees() -> None:
    """Planted: trees may ask for columns, codes and subsets that are not there."""
    models.expect = books.expect = parts.expect = trees.expect = lambda condition, what: None


def unchecked_numbers() -> None:
    """Planted: numbers of any size, from strings."""
    values.is_bounded = lambda value: True
    values._READ["fraction"] = lambda parts: Fraction(*parts)


PLANTS = {"trees": unchecked_trees, "numbers": unchecked_numbers}


def main(arguments: list[str] | None = None) -> int:
    """Run cases and print what was found; returns 0 where that is nothing."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--case", type=int, help="this one alone")
    parser.add_argument("--keep", type=Path, help="a folder for files that were found")
    parser.add_argument("--plant", choices=PLANTS, help="take a check away")
    given = parser.parse_args(arguments)
    counts = Counter[str]()
    numbers = range(given.cases) if given.case is None else [given.case]
    with tempfile.TemporaryDirectory() as folder:
        for number, outcome in run(given.seed, numbers, Path(folder), given.plant):
            is_finding = outcome not in ENDINGS
            counts["found" if is_finding else outcome] += 1
            if given.case is None and not is_finding:
                continue
            change, data, _ = case_of(given.seed, number, good_files())
            print(f"--seed {given.seed} --case {number}, {change}: {outcome}", flush=True)
            if given.keep is not None:
                given.keep.mkdir(parents=True, exist_ok=True)
                (given.keep / f"{given.seed}-{number}.dtrees").write_bytes(data)
    print(f"seed {given.seed}: {len(numbers)} cases, {counts['refused']} refused, "
          f"{counts['used']} used, {counts['found']} found")  # fmt: skip
    return int(counts["found"] > 0)


if __name__ == "__main__":
    sys.exit(main())
