"""All types of numbers in all ways to lie in memory: the same values are the same model."""

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier

N_ROWS = 60
RNG = np.random.default_rng(0)
X = RNG.integers(0, 7, (N_ROWS, 3))
Y = (X[:, 0] > 3).astype(int) + (X[:, 1] > 2)
WEIGHTS = X[:, 2] + 1
NUMBERS = [
    np.dtype(name).newbyteorder(order).str
    for name in ("f2", "f4", "f8", "g", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
    for order in "<>"
]
NUMBERS = list(dict.fromkeys(NUMBERS))  # a byte has no order


def unaligned(values):
    room = np.empty(values.nbytes + 1, dtype=np.uint8)[1:].view(values.dtype)
    room = room.reshape(values.shape)
    room[...] = values
    assert not room.flags.aligned or values.itemsize == 1
    return room


def frozen(values):
    values = values.copy()
    values.flags.writeable = False
    return values


LAYOUTS = {
    "plain": lambda values: values,
    "unaligned": unaligned,
    "read-only": frozen,
    "backwards": lambda values: values[::-1].copy()[::-1],
    "every other": lambda values: np.repeat(values, 2, axis=0)[::2],
}
layouts = pytest.mark.parametrize("layout", LAYOUTS)


def nodes(model):
    tree = model.tree_ if hasattr(model, "tree_") else model.forest_.trees[0]
    tree = getattr(tree, "model", tree)
    return {name: array.tobytes() for name, array in tree.arrays().items()}


def tree(X, y=Y, *, kind=DecisionTreeClassifier, max_bins=None, **more):
    return nodes(kind(max_bins=max_bins, random_state=0).fit(X, y, **more))


FITTED = DecisionTreeClassifier().fit(X.astype(float), Y)
SHARES = FITTED.predict_proba(X.astype(float))


@pytest.mark.one_of(3)
@layouts
@pytest.mark.parametrize("dtype", NUMBERS)
class TestNumbers:
    @pytest.mark.one_of(4)
    def test_of_a_table(self, dtype, layout):
        table = LAYOUTS[layout](X.astype(dtype))
        for given in table, np.asfortranarray(table), table[:, ::-1].copy()[:, ::-1]:
            for max_bins in None, 4:
                assert tree(given, max_bins=max_bins) == tree(X.astype(float), max_bins=max_bins)
            assert_array_equal(FITTED.predict_proba(given), SHARES)

    @pytest.mark.one_of(4)
    def test_of_what_belongs_to_rows(self, dtype, layout):
        table, form = X.astype(float), LAYOUTS[layout]
        assert tree(table, form(Y.astype(dtype))) == tree(table)
        regressor = DecisionTreeRegressor
        assert tree(table, form(Y.astype(dtype)), kind=regressor) == tree(table, kind=regressor)
        weights = form(WEIGHTS.astype(dtype))
        assert tree(table, sample_weight=weights) == tree(table, sample_weight=WEIGHTS)
        bags = [
            RandomForestClassifier(1, random_state=0).fit(table, Y, bootstrap_groups=groups)
            for groups in (form(X[:, 2].astype(dtype)), X[:, 2])
        ]
        assert nodes(bags[0]) == nodes(bags[1])

    @pytest.mark.one_of(4)
    def test_of_blocks(self, dtype, layout):
        table = da.from_array(LAYOUTS[layout](X.astype(dtype)), chunks=(25, 3))
        y = da.from_array(LAYOUTS[layout](Y.astype(dtype)), chunks=40)
        assert tree(table, y) == tree(X.astype(float))
        assert_array_equal(FITTED.predict_proba(table).compute(scheduler="sync"), SHARES)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("layout", ["plain", "unaligned", "backwards"])
@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_tables(kind, layout):
    form = LAYOUTS[layout]
    dense = np.eye(N_ROWS, 3) * 3 if kind == "dia" else X.astype(float)
    expected = tree(sp.csr_array(dense)), FITTED.predict_proba(dense)
    for place, dtype in enumerate(NUMBERS):
        given = sp.csr_array(dense).tocoo()
        if kind == "dia":
            given = sp.dia_array((np.full((1, 3), 3.0), [0]), shape=X.shape)
        given = given.asformat(kind)
        given.data = values = form(given.data.astype(dtype))
        if kind in ("csr", "csc", "bsr"):
            places = ("<i4", ">i4", "<i8", ">i8")[place % 4]
            given.indices = form(given.indices.astype(places))
            given.indptr = form(given.indptr.astype(places))
        assert tree(given) == expected[0], dtype
        assert_array_equal(FITTED.predict_proba(given), expected[1])
        assert given.data is values  # the user's object is left as it is


@layouts
@pytest.mark.parametrize("order", "<>")
class TestOthers:
    def test_dates_and_time_spans(self, order, layout):
        for kind in "Mm":
            times = X.astype(f"{kind}8[s]")
            other = LAYOUTS[layout](times.astype(f"{order}{kind}8[us]"))
            assert tree(other) == tree(times)

    def test_words(self, order, layout):
        words = X.astype("U3")
        form = LAYOUTS[layout]
        assert tree(form(words.astype(f"{order}U3"))) == tree(words)
        labels = Y.astype("U5")
        assert tree(X, form(labels.astype(f"{order}U5"))) == tree(X, labels)
        groups = [
            RandomForestClassifier(1, random_state=0).fit(X, Y, bootstrap_groups=given)
            for given in (form(words[:, 2].astype(f"{order}U3")), words[:, 2])
        ]
        assert nodes(groups[0]) == nodes(groups[1])

    def test_two_values(self, order, layout):
        form = LAYOUTS[layout]
        table, y = X > 3, X[:, 0] > 2
        assert tree(form(table), form(y), sample_weight=form(WEIGHTS > 2)) == tree(
            table, y, sample_weight=(WEIGHTS > 2).astype(float)
        )


def test_bytes_are_refused_in_words():
    with pytest.raises(TypeError, match=r"has dtype \|S3, which is neither numbers nor labels"):
        tree(X.astype("S3"))


def test_a_value_for_all_rows():
    """Strides of no bytes."""
    table = np.broadcast_to(np.array([[1.0, 2.0, 3.0]]), X.shape)
    assert tree(table) == tree(table.copy())
    weights = np.broadcast_to(2.0, N_ROWS)
    assert tree(X, sample_weight=weights) == tree(X, sample_weight=weights.copy())
    y = np.broadcast_to(1, N_ROWS)
    assert tree(X, y) == tree(X, y.copy())
