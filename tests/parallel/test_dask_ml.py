"""Which parts of dask-ml work with dtrees: each row of the table in the user guide."""

import warnings

import dask
import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from dtrees import DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier
from dtrees.model_selection import (
    GridSearchCV,
    cost_complexity_cv,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    validation_surface,
)

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of others, about others
    from dask_ml import ensemble, impute, metrics, preprocessing, wrappers
    from dask_ml import model_selection as theirs

pytestmark = pytest.mark.filterwarnings("ignore")

N_ROWS = 200
X = np.random.default_rng(0).integers(0, 9, (N_ROWS, 3)).astype(float)
Y = (X[:, 0] + X[:, 1] > 8).astype(int)
FRAME = pd.DataFrame(X.copy(), columns=list("abc")).assign(k=pd.Categorical(list("wxyz") * 50))


def array(blocks=(60, 60, 60, 20)):
    return da.from_array(X.copy(), chunks=(blocks, 3))


def unknown():
    """Of unknown block sizes, one of which is 0."""
    return dd.from_pandas(FRAME[list("abc")], npartitions=4).query("a >= 0").to_dask_array()


def frame(columns="abc"):
    return dd.from_pandas(FRAME[list(columns)], npartitions=3)


LAZY_Y = da.from_array(Y, chunks=60)
SERIES_Y = dd.from_pandas(pd.Series(Y, name="y"), npartitions=3)


def tree(**parameters):
    return DecisionTreeClassifier(**{"max_depth": 3, "random_state": 0, **parameters})


@pytest.fixture(autouse=True)
def threads():
    with dask.config.set(scheduler="threads"):
        yield


def row_numbers(splitter, table):
    return [dask.compute(*split) for split in splitter.split(table)]


SPLITTERS = {
    "KFold": lambda: theirs.KFold(3, shuffle=True, random_state=0),
    "ShuffleSplit": lambda: theirs.ShuffleSplit(3, test_size=0.3, random_state=0),
}


@pytest.mark.parametrize("name", SPLITTERS)
class TestSplitters:
    @pytest.mark.one_of(2)
    @pytest.mark.parametrize("make", [array, unknown, frame])
    def test_of_a_collection(self, name, make):
        blocks = tuple(len(part) for part in dask.compute(*np.ravel(make().to_delayed())))
        splits = row_numbers(SPLITTERS[name](), array(blocks))
        expected = cross_validate(tree(), X, Y, cv=splits)
        for y in LAZY_Y, Y:
            found = cross_validate(tree(), make(), y, cv=SPLITTERS[name](), return_indices=True)
            assert_array_equal(found["test_score"], expected["test_score"])
            for number, (train, test) in enumerate(splits):
                assert_array_equal(found["indices"]["train"][number], train)
                assert_array_equal(found["indices"]["test"][number], test)

    def test_of_other_functions(self, name):
        splits = row_numbers(SPLITTERS[name](), array())
        cv = SPLITTERS[name]()
        search = GridSearchCV(tree(), {"max_depth": [1, 2]}, cv=cv).fit(array(), LAZY_Y)
        expected = GridSearchCV(tree(), {"max_depth": [1, 2]}, cv=splits).fit(X, Y)
        assert search.best_score_ == expected.best_score_
        assert search.cv is cv
        assert_array_equal(
            cross_val_score(tree(), array(), LAZY_Y, cv=cv),
            cross_val_score(tree(), X, Y, cv=splits),
        )
        assert repr(cost_complexity_cv(tree(), array(), LAZY_Y, cv=cv)) == repr(
            cost_complexity_cv(tree(), X, Y, cv=splits)
        )
        assert_array_equal(
            validation_surface(tree(), array(), LAZY_Y, max_depth=[1, 3], cv=cv).scores,
            validation_surface(tree(), X, Y, max_depth=[1, 3], cv=splits).scores,
        )

    def test_of_a_table_in_memory(self, name):
        splits = row_numbers(SPLITTERS[name](), array((N_ROWS,)))
        piped = make_pipeline(preprocessing.MinMaxScaler(), tree())
        for model in tree(), piped:
            found = cross_validate(model, X, Y, cv=SPLITTERS[name]())
            expected = cross_validate(model, X, Y, cv=splits)
            assert_array_equal(found["test_score"], expected["test_score"])


class Seeing(theirs.KFold):
    """One that is made of dask-ml's, and looks at all that it is given."""

    def split(self, X, y=None, groups=None):
        self.seen = X, y, groups
        return super().split(X, y, groups)


class TestOwnSplitters:
    """Of the user, made of those of dask-ml: they get what the user gave."""

    ASK = {  # noqa: RUF012
        "cross_validate": lambda cv, X, y, groups: cross_validate(
            tree(), X, y, cv=cv, groups=groups
        ),
        "search": lambda cv, X, y, groups: GridSearchCV(tree(), {"max_depth": [1, 2]}, cv=cv).fit(
            X, y, groups=groups
        ),
        "path": lambda cv, X, y, groups: cost_complexity_cv(tree(), X, y, cv=cv, groups=groups),
        "surface": lambda cv, X, y, groups: validation_surface(
            tree(), X, y, max_depth=[1], cv=cv, groups=groups
        ),
        "pipeline": lambda cv, X, y, groups: cross_validate(
            make_pipeline(preprocessing.MinMaxScaler(), tree()), X, y, cv=cv, groups=groups
        ),
    }

    @pytest.mark.parametrize("ask", ASK)
    def test_they_get_the_collections(self, ask):
        cv, table, groups = Seeing(3), array(), da.from_array(np.arange(N_ROWS) // 4, chunks=50)
        self.ASK[ask](cv, table, LAZY_Y, groups)
        assert cv.seen[0] is table
        assert cv.seen[1] is LAZY_Y
        assert cv.seen[2] is groups

    def test_numbers_of_frames_and_of_unknown_blocks_are_arrays(self):
        for table, y in ((frame(), SERIES_Y), (unknown(), LAZY_Y), (X, Y)):
            cv = Seeing(3)
            cross_validate(tree(), table, y, cv=cv)
            assert_array_equal(cv.seen[0].compute(), X)
            assert cv.seen[1] is y

    def test_codes_of_words_are_none_of_its_business(self):
        cv = Seeing(3)
        cross_validate(tree(), frame(FRAME.columns), SERIES_Y, cv=cv)
        assert cv.seen[0].shape == (N_ROWS, 4)


class TestPipelines:
    """Steps of dask-ml, a tree of ours; rows of a data frame cannot be taken."""

    def test_of_arrays(self):
        piped = make_pipeline(preprocessing.MinMaxScaler(), tree())
        cv = KFold(3)
        found = cross_validate(piped, array(), LAZY_Y, cv=cv)["test_score"]
        assert_array_equal(found, cross_validate(piped, X.copy(), Y, cv=cv)["test_score"])
        lazy_cv = theirs.KFold(3, shuffle=True, random_state=0)
        found = cross_validate(piped, array(), LAZY_Y, cv=lazy_cv)["test_score"]
        splits = row_numbers(lazy_cv, array())
        assert_array_equal(found, cross_validate(piped, X.copy(), Y, cv=splits)["test_score"])

    @pytest.mark.parametrize("make", [frame, unknown])
    def test_of_rows_without_numbers_are_refused_before_anything_is_computed(self, make):
        def fail(_):
            raise AssertionError("it was computed")

        table, y = make(), LAZY_Y.map_blocks(fail, dtype=int)
        table = table.map_partitions(fail, meta=table) if make is frame else table
        piped = make_pipeline(preprocessing.MinMaxScaler(), tree())
        search = GridSearchCV(piped, {"decisiontreeclassifier__max_depth": [1, 2]})
        said = "of a Dask collection: Pipeline is not an estimator of dtrees.*its last step"
        for ask in (cross_validate, cross_val_score, cross_val_predict):
            with pytest.raises(TypeError, match=f"^{ask.__name__} {said}"):
                ask(piped, table, y)
        with pytest.raises(TypeError, match=f"^GridSearchCV.fit {said}"):
            search.fit(table, y)
        with pytest.raises(TypeError, match=r"'method' .* of cross_val_predict .* Got 'apply'"):
            cross_val_predict(tree(), table, y, method="apply")
        with pytest.raises(TypeError, match=r"^validation_surface needs models that grow together"):
            validation_surface(piped, table, y, max_depth=[1])


# -------------------------------------------------------------------------------------------------
# parts that work, as the user guide says


def train_test_split():
    for given in (array(), LAZY_Y), (frame(), SERIES_Y):
        parts = theirs.train_test_split(*given, random_state=0, shuffle=True)
        train, test, y_train, y_test = (part.compute() for part in parts)
        model = tree().fit(parts[0], parts[2])
        assert model.score(parts[1], parts[3]) == tree().fit(train, y_train).score(test, y_test)


def searches():
    grid = {"max_depth": [2, None], "min_samples_leaf": [1, 9]}
    cv = KFold(3)  # of an array, dask-ml's own are not stratified
    ours = GridSearchCV(tree(), grid, cv=cv).fit(X, Y)
    for given in (X, Y), (array(), LAZY_Y):
        for search in (
            theirs.GridSearchCV(tree(), grid, cv=cv, iid=False),
            theirs.RandomizedSearchCV(tree(), grid, n_iter=4, cv=cv, iid=False, random_state=0),
        ):
            found = search.fit(*given)
            order = [found.cv_results_["params"].index(each) for each in ours.cv_results_["params"]]
            scores = found.cv_results_["mean_test_score"][order]
            assert_allclose(scores, ours.cv_results_["mean_test_score"])
    piped = make_pipeline(preprocessing.MinMaxScaler(), tree())
    grid = {"decisiontreeclassifier__max_depth": [1, 3]}
    assert theirs.GridSearchCV(piped, grid, cv=3).fit(frame(), SERIES_Y).best_score_ > 0.8


def parallel_post_fit():
    for make in (array, frame):
        given = make(), LAZY_Y if make is array else SERIES_Y
        table = X if make is array else FRAME[list("abc")]
        alone, wrapped = tree().fit(table, Y), wrappers.ParallelPostFit(tree()).fit(table, Y)
        for method in ("predict", "predict_proba"):
            found = getattr(wrapped, method)(given[0])
            assert_array_equal(found.compute(), getattr(alone, method)(table))
        assert wrapped.score(*given) == alone.score(table, Y)


def voting():
    model = ensemble.BlockwiseVotingClassifier(tree(), classes=[0, 1])
    model.fit(array(), LAZY_Y)
    assert model.score(array(), LAZY_Y) > 0.9


def incremental():
    model = wrappers.Incremental(RandomForestClassifier(5, random_state=0), shuffle_blocks=False)
    model.fit(array(), da.from_array(Y, chunks=((60, 60, 60, 20),)), classes=[0, 1])
    alone = RandomForestClassifier(5, random_state=0)
    for first in range(0, N_ROWS, 60):
        alone.partial_fit(X[first : first + 60], Y[first : first + 60], classes=[0, 1])
    assert len(model.estimator_) == 20
    assert_array_equal(model.predict(array()).compute(), alone.predict(X))
    assert model.score(array(), LAZY_Y) > 0.9


def preprocessed():
    numbers = [
        preprocessing.StandardScaler(),
        preprocessing.MinMaxScaler(),
        preprocessing.QuantileTransformer(n_quantiles=N_ROWS),
        impute.SimpleImputer(),
    ]
    for step in numbers:
        piped = make_pipeline(step, tree())
        assert piped.fit(array(), LAZY_Y).score(array(), LAZY_Y) > 0.9
    for step in preprocessing.OrdinalEncoder(), preprocessing.DummyEncoder():
        piped = make_pipeline(preprocessing.Categorizer(), step, tree())
        table = frame(FRAME.columns)
        assert piped.fit(table, SERIES_Y).score(table, SERIES_Y) > 0.9


def good_metrics():
    model = tree().fit(array(), LAZY_Y)
    assert metrics.accuracy_score(LAZY_Y, model.predict(array())) == model.score(X, Y)
    numbers = DecisionTreeRegressor(max_depth=3).fit(array(), LAZY_Y)
    predicted = numbers.predict(array())
    errors = Y - numbers.predict(X)
    assert_allclose(metrics.mean_squared_error(LAZY_Y, predicted), np.mean(errors**2))
    assert_allclose(metrics.mean_absolute_error(LAZY_Y, predicted), np.mean(np.abs(errors)))


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    "part",
    [
        train_test_split,
        searches,
        parallel_post_fit,
        voting,
        incremental,
        preprocessed,
        good_metrics,
    ],
    ids=lambda part: part.__name__,
)
def test_a_part_that_works(part):
    part()
