"""Raw rows to leaves, by how the rows are stored."""

from functools import partial

import numpy as np
import pandas as pd
import scipy.sparse

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from dtrees import DecisionTreeClassifier
from dtrees.core.predict.raw import apply
from dtrees.parallel import threaded

STORAGE = {
    "C float32": np.ascontiguousarray,
    "Fortran float32": np.asfortranarray,
    "C float64": lambda X: X.astype(np.float64),
    "columns of two types": lambda X: pd.DataFrame(
        {j: X[:, j].astype(np.float64 if j % 2 else np.float32) for j in range(X.shape[1])}
    ),
    "CSR": scipy.sparse.csr_array,
}


def _apply(storage: str, n_threads: int, scale: Scale) -> Contest:
    X, y = data.classification(scale.rows(100_000))
    tree = DecisionTreeClassifier(random_state=0, n_jobs=2).fit(X, y).tree_
    rng = np.random.default_rng(1)
    rows = X[rng.integers(0, len(X), scale.rows(1_000_000))]
    rows += rng.normal(0, 0.3, rows.shape).astype(np.float32)
    table = STORAGE[storage](rows)
    return Contest(lambda: apply(tree.model, tree.codebook, table, threaded(n_threads)))


CASES = [
    Case(
        f"apply-{storage.replace(' ', '-')}-{n_threads}",
        "kernels",
        f"apply 1,000,000 × 30, {storage}, {n_threads} threads",
        partial(_apply, storage, n_threads),
    )
    for storage in STORAGE
    for n_threads in (1, 2)
]
