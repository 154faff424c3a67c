"""The numpy twin of the kernels' record of a grown node (`_node_buffer.Record`)."""

from __future__ import annotations

import numpy as np

RECORD = np.dtype(
    [
        ("n", np.int64),
        ("subset", np.int64),
        ("impurity", np.float64),
        ("gain", np.float64),
        ("left", np.int64),
        ("right", np.int64),
        ("column", np.int32),
        ("boundary", np.uint32),
        ("beyond", np.uint32),
        ("test", np.uint8),
        ("missing_left", np.uint8),
    ],
    align=True,
)
