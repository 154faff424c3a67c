"""A model in memory of two kinds, with and without a bug that was there once.

Prints four digests of it: with either byte, and the same once more with the bug, by which the rows
of columns that are cut are not put in order.
"""

from __future__ import annotations

import hashlib

import numpy as np
import sitecustomize

from dtrees.coding import CodeBook
from dtrees.coding.dense_columns import CodeStore

COLUMN = np.random.default_rng(0).permutation(70_000).astype(float)[:, None]


def digest() -> str:
    """Of the codes of a column, and of its rows in their order."""
    _, coded = CodeBook.fit_encode(COLUMN, max_bins=65_600)
    return hashlib.sha256(coded.u32.tobytes() + coded.order32.tobytes()).hexdigest()


def main() -> None:
    """Print the four digests."""
    for _ in range(2):
        for pattern in (0xFF, 0x01):
            sitecustomize.poison_with(pattern)
            print(digest())
        CodeStore.order_rows = lambda *_: None


if __name__ == "__main__":
    main()
