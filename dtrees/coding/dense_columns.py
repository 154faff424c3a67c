"""Dense tables to codes: learned from the table (`code_dense`), or by a book (`encode_dense`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from dtrees.coding._cuts import cut_column
from dtrees.coding._rank_columns import STATUS_INFINITE
from dtrees.coding.code_store import CodeStore
from dtrees.coding.coded import CodedMatrix
from dtrees.coding.column_types import Categories, Columns, category_array
from dtrees.coding.input_validation import refuse_columns
from dtrees.coding.ordered import OrderedValues, code_numbers
from dtrees.coding.sampling import CutRules
from dtrees.coding.tables import Numbers, Table
from dtrees.coding.tiles import load, run_pieces, tiles
from dtrees.typing import Runner

if TYPE_CHECKING:
    from dtrees.coding.codebook import CodeBook

MANY_CUTS = 16  # per row, from which on rows are sorted instead of looking at every cut


def code_dense(
    table: Table,
    columns: Columns,
    rules: CutRules,
    run: Runner,
    weights: np.ndarray | None = None,
) -> tuple[CodedMatrix, list[OrderedValues], dict[int, np.ndarray]]:
    """Codes of a dense table: numbers first, then the categories above them."""
    n_rows = table.n_rows
    plain = rules.max_bins is not None and not columns.numeric_categories and not columns.categories
    largest = min(n_rows, rules.max_bins) if plain and rules.max_bins is not None else n_rows
    store = CodeStore(n_rows, table.n_columns, largest)
    parts = code_numbers(columns.ordered, store, rules, run, weights)
    named = code_numbers(columns.numeric_categories, store, CutRules(), run)
    refuse_columns(table, store.status == STATUS_INFINITE)
    categories: dict[int, np.ndarray] = {}
    for block, part in zip(columns.numeric_categories, named, strict=True):
        bounds = np.cumsum(part.n_codes)[:-1]
        for column, values in zip(part.columns.tolist(), np.split(part.low, bounds), strict=True):
            store.n_ordered[column] = 0
            if len(values):
                categories[column] = category_array(values, block.values.dtype)
    pieces = [partial(_code_categories, found, store) for found in columns.categories]
    run_pieces(pieces, [n_rows] * len(pieces), run)
    dtypes = _types(table) if columns.categories else {}
    for found in columns.categories:
        j = found.labels.column
        categories[j] = category_array(found.values, dtypes.get(j))
    return store.finish(), parts, categories


def _types(table: Table) -> dict[int, np.dtype]:
    """Types of the columns of numbers."""
    return {j: block.values.dtype for block in table.numbers for j in block.columns.tolist()}


def _code_categories(found: Categories, store: CodeStore) -> None:
    """Codes of the categories of one column, above those of its numbers."""
    j = found.labels.column
    n_ordered = int(store.n_ordered[j])
    n_codes = n_ordered + len(found.values)
    ordered = store.codes_of(j, n_ordered).copy() if n_ordered else None
    table = np.where(found.rank > 0, found.rank + n_ordered, 0)
    codes = store.codes_of(j, n_codes)
    found.labels.write_codes(table, codes)
    if ordered is not None:
        np.copyto(codes, ordered, where=codes == 0)
    store.n_codes[j] = n_codes
    store.order_rows(j, n_codes)


def encode_dense(book: CodeBook, table: Table, wanted: np.ndarray, run: Runner) -> CodedMatrix:
    """Codes of the wanted columns, bool (n_columns,), by a book."""
    largest = book.n_codes.copy()
    if book.handle_unknown == "majority":
        largest[list(book.categories)] += 1
    store = CodeStore(table.n_rows, book.n_columns, int(largest.max(initial=0)), False)
    pieces, sizes = [], []
    for block in table.numbers:
        for is_wanted, part in block.split(wanted):
            for some in tiles(part) if is_wanted else ():
                tile = Numbers(part.columns[some], part.values[:, some])
                pieces.append(partial(_encode_tile, book, tile, store, largest))
                sizes.append(tile.values.size)
    run_pieces(pieces, sizes, run)
    for column in table.labels:
        j = column.column
        if wanted[j]:
            codes, _ = book.read_labels(column, table.name(j))
            column.write_codes(codes, store.codes_of(j, largest[j]))
    store.n_codes[wanted] = book.n_codes[wanted]
    store.n_ordered[wanted] = book.n_ordered[wanted]
    return store.finish(largest, wanted)


def _encode_tile(book: CodeBook, tile: Numbers, store: CodeStore, largest: np.ndarray) -> None:
    values = load(tile.values)
    for k, j in enumerate(tile.columns):
        codes = store.codes_of(j, largest[j])
        if book.n_ordered[j] == 0:
            codes[:] = 0
            continue
        cuts = _lowered(book.cuts(j), values.dtype)
        if len(cuts) > MANY_CUTS * len(codes):
            _cut_few_rows(values[k], cuts, codes)
        else:
            cut_column(values[k], cuts, codes)


def _cut_few_rows(values: np.ndarray, cuts: np.ndarray, codes: np.ndarray) -> None:
    """`cut_column` in O(rows log cuts)."""
    order = np.argsort(values)
    codes[order] = np.searchsorted(cuts, values[order]) + 1
    codes[np.isnan(values)] = 0


def _lowered(cuts: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Cuts in a narrower type that no value of that type tells from the given ones."""
    if cuts.dtype == dtype:
        return cuts
    narrow = cuts.astype(dtype)
    return np.where(narrow > cuts, np.nextafter(narrow, dtype.type(-np.inf)), narrow)
