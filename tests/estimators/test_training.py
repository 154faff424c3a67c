"""Codes are walked where they are."""

import numpy as np

from dtrees.coding import CodeBook
from dtrees.core.predict.binned import CodedRows
from dtrees.estimators.training import rows_of


def test_a_coded_matrix_is_walked_here():
    _, coded = CodeBook.fit_encode(np.arange(6.0).reshape(3, 2))
    rows = rows_of(coded)
    assert isinstance(rows, CodedRows)
    assert rows.is_here
