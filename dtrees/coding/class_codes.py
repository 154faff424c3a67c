"""Labels of classes as codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from dtrees.coding.labels import is_missing, object_array
from dtrees.coding.weights import check_finite

COUNTED_ROWS = 2**16  # at a time
FEW_ROWS = 256  # that are sorted to look for distinct strings
LOOKS = 4  # after which there are many
FEW_LETTERS = 2  # which are counted one by one
LONGEST_STRING = 16  # letters of labels that are counted; longer ones are sorted


def class_codes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct labels and the number of every row's label.

    Whole numbers of a small range are counted instead of sorted, and so are short strings, letter
    by letter; objects go through a dict, so that only the distinct ones are compared.

    Returns
    -------
    classes : (n_classes,), dtype of the labels
    codes : uint8, uint16 or uint32 (n_rows,)
    """
    kind = labels.dtype.kind
    if kind == "c":
        raise ValueError("y: Complex data not supported. Give y as real numbers or labels.")
    if kind == "f":
        check_finite(labels, "y")
    if kind in ("O", "T"):
        return _object_classes(labels)
    if kind in "Mm" and np.isnat(labels).any():
        raise _missing_label(labels[np.isnat(labels)][0])
    if kind == "b":
        labels = labels.view(np.uint8)
    if kind in "iub":
        low, high = int(labels.min()), int(labels.max())
        if high - low <= _most_counted(len(labels)):
            wide = np.dtype(np.int64 if kind == "i" else np.uint64)
            lowest = wide.type(low)

            def beyond_lowest(rows: slice) -> np.ndarray:
                return (labels[rows].astype(wide, copy=False) - lowest).astype(np.intp)

            values, codes = _count(beyond_lowest, len(labels), high - low + 1)
            classes = (values.astype(wide) + lowest).astype(labels.dtype)
            return classes.view(np.bool_) if kind == "b" else classes, codes
    if kind == "U":
        found = _string_classes(labels)
        if found is not None:
            return found
    classes, codes = np.unique(labels, return_inverse=True)
    return classes, codes.astype(_code_type(len(classes)))


def _most_counted(n_rows: int) -> int:
    """The range up to which numbers are counted; larger ones are sorted."""
    return max(1024, 4 * n_rows)


def _count(
    numbers: Callable[[slice], np.ndarray], n_rows: int, n_numbers: int
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct numbers below `n_numbers`, ascending, and the position of every row's among them.

    `numbers` says those of some rows, which are counted a few at a time: what is made on the way
    stays in the cache, and takes no memory in proportion to the rows.
    """
    stretches = [slice(start, start + COUNTED_ROWS) for start in range(0, n_rows, COUNTED_ROWS)]
    present = np.zeros(n_numbers, dtype=bool)
    for rows in stretches:
        present[numbers(rows)] = True
    values = np.flatnonzero(present)
    position: np.ndarray = (np.cumsum(present) - 1).astype(_code_type(len(values)))
    codes = np.empty(n_rows, dtype=position.dtype)
    for rows in stretches:
        codes[rows] = position[numbers(rows)]
    return values, codes


def _string_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """`class_codes` of strings of a fixed width; None where sorting is the better way.

    Strings are numbers of up to eight letters. Rows get the number of their first letters, then of
    their next ones, too; counting keeps the order. A string that ends is followed by zeros, which
    come before every letter.
    """
    width = labels.dtype.itemsize // 4
    if not 0 < width <= LONGEST_STRING or not labels.dtype.isnative:
        return None
    letters = np.ascontiguousarray(labels).view(np.uint32).reshape(len(labels), width)
    codes = np.zeros(len(labels), dtype=np.intp)
    n_classes = 1
    for numbers, n_numbers in _parts_of_strings(letters):
        if n_classes * n_numbers > _most_counted(len(labels)):
            return None
        if n_numbers == 1:
            continue
        part = partial(_with_part, codes, numbers, n_numbers)
        values, codes = _count(part, len(labels), n_classes * n_numbers)
        n_classes = len(values)
    row = np.empty(n_classes, dtype=np.intp)
    row[codes] = np.arange(len(labels))
    return labels[row], codes.astype(_code_type(n_classes), copy=False)


def _parts_of_strings(letters: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Numbers of the letters of every string, in their order, and below what they are.

    A few letters at a time, where the number of distinct ones is small; else one by one.
    """
    n_rows, width = letters.shape
    if width > FEW_LETTERS and letters.max() < 256:
        in_bytes = np.zeros((n_rows, -(-width // 8) * 8), dtype=np.uint8)
        in_bytes[:, :width] = letters
        words = in_bytes.view(">u8").astype(np.uint64)
        parts = list(filter(None, map(_few_words, words.T)))
        if len(parts) == words.shape[1]:
            yield from parts
            return
    for letter in letters.T:
        low, high = int(letter.min()), int(letter.max())
        yield letter - np.uint32(low), high - low + 1


def _few_words(words: np.ndarray) -> tuple[np.ndarray, int] | None:
    """The place of every number among the distinct ones, and how many these are; None: many.

    Distinct numbers are looked for among the first rows, then among the first that lack there.
    """
    distinct = words[:0]
    missing = words
    for _ in range(LOOKS):
        distinct = np.union1d(distinct, missing[:FEW_ROWS])
        places = np.searchsorted(distinct, words)
        places[places == len(distinct)] = 0
        missing = words[distinct[places] != words]
        if len(missing) == 0:
            return places, len(distinct)
    return None


def _with_part(codes: np.ndarray, part: np.ndarray, n_numbers: int, rows: slice) -> np.ndarray:
    """Numbers of strings up to a part, from those up to the part before, in the same order."""
    return codes[rows].astype(np.intp) * n_numbers + part[rows].astype(np.intp)


def _object_classes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`class_codes` of Python objects."""
    values = labels.tolist()
    try:
        distinct = set(values)
        missing = [v for v in distinct if is_missing(v)]
        if missing:
            raise _missing_label(missing[0])
        ordered = sorted(distinct)
    except TypeError as error:
        kinds = sorted({type(v).__name__ for v in values})
        raise TypeError(
            f"y holds objects of the types {kinds}, which cannot be compared: labels must be all "
            "numbers or all strings. Convert y to one type."
        ) from error
    number = {value: i for i, value in enumerate(ordered)}
    kind = np.dtype(_code_type(len(ordered)))
    codes = np.fromiter(map(number.__getitem__, values), kind, len(values))
    return object_array(ordered), codes


def _missing_label(label: Any) -> ValueError:
    return ValueError(f"Input y contains NaN: a missing label ({label!r}). Drop these rows first.")


def _code_type(n_classes: int) -> type:
    """The narrowest unsigned integer for so many classes."""
    if n_classes <= 256:
        return np.uint8
    return np.uint16 if n_classes <= 65_536 else np.uint32
