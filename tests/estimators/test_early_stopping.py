"""When a forest has enough trees: the rule in words, and forests that stop by it."""

from __future__ import annotations

import logging
import math
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, r2_score

from dtrees import (
    RandomForestClassifier,
    RandomForestRegressor,
)
from dtrees.callbacks import Callback
from dtrees.estimators.early_stopping import is_flat
from dtrees.export import load, save
from tests.estimators.test_out_of_bag import (
    CANCER,
    CLASSIFIERS,
    DIABETES,
    IRIS,
    REGRESSORS,
    fitted,
    reference,
)


def slowly_flat(scores, tol):
    """The rule in words: means of ten scores, none of the second half better than the first."""
    means = {t: sum(scores[t - 10 : t]) / 10 for t in range(10, len(scores) + 1)}
    for t in range(20, len(scores) + 1):
        best = max(means[k] for k in range(10, t // 2 + 1))
        if all(means[k] <= best + tol for k in range(t // 2 + 1, t + 1)):
            return t
    return None


class TestRule:
    @given(
        st.lists(st.integers(-3, 8), max_size=45),
        st.sampled_from([0.0, 0.5, 2.0]),
    )
    def test_as_in_words(self, steps, tol):
        scores = [float(score) for score in np.cumsum(steps)]
        stop = next((t for t in range(len(scores) + 1) if is_flat(scores[:t], tol)), None)
        # sums of small integers divided by ten: equal in any order of adding
        assert stop == slowly_flat(scores, tol)

    def test_a_constant_score_is_flat_at_once(self):
        assert not is_flat([1.0] * 19, 0.0)
        assert is_flat([1.0] * 20, 0.0)

    def test_rising_scores_are_not(self):
        scores = [i * 0.01 for i in range(40)]
        assert not is_flat(scores, 0.19)
        assert is_flat(scores, 0.21)

    @pytest.mark.parametrize("total", [0.05, 0.5, 5.0])
    @pytest.mark.parametrize("tol", [0.002, 0.01])
    def test_a_creeping_score_gives_away_a_tolerance(self, total, tol):
        # As scores of forests do: what is still to be won falls with the number of trees.
        scores = [1 - total / t for t in range(1, 6000)]
        n_trees = next(t for t in range(20, 6000) if is_flat(scores[:t], tol))
        assert 1 - scores[n_trees - 1] <= tol
        assert n_trees == 20 or not is_flat(scores[: n_trees - 1], tol)

    def test_a_score_that_falls_is_compared_with_the_best(self):
        scores = [0.9] * 10 + [0.5] * 10 + [0.55, 0.6, 0.65, 0.7, 0.75, 0.8]
        assert is_flat(scores, 0.0)

    def test_nan_is_not(self):
        assert not is_flat([math.nan] + [1.0] * 19, 1.0)
        assert is_flat([math.nan] + [1.0] * 21, 1.0)


class TestEarlyStopping:
    @pytest.mark.one_of(3)
    @pytest.mark.parametrize(
        ("kind", "data", "tol"), [(kind, CANCER, 0.002) for kind in CLASSIFIERS]
        + [(kind, DIABETES, 0.01) for kind in REGRESSORS]
    )  # fmt: skip
    def test_the_forest_is_the_one_of_so_many_trees(self, kind, data, tol, caplog):
        forest = kind(300, bootstrap=True, oob_tol=tol, random_state=0)
        with caplog.at_level(logging.INFO, "dtrees"):
            forest.fit(*data)
        n_trees = forest.n_estimators_
        assert 20 <= n_trees < 300
        assert f"stopped after {n_trees} of 300 trees" in caplog.text
        assert len(forest.oob_scores_) == len(forest.estimators_) == n_trees
        assert forest.oob_scores_[-1] == forest.oob_score_
        assert slowly_flat(forest.oob_scores_.tolist(), tol) == n_trees
        alone = kind(n_trees, bootstrap=True, oob_score=True, random_state=0).fit(*data)
        assert alone.oob_score_ == forest.oob_score_
        for mine, theirs in zip(forest.forest_.trees, alone.forest_.trees, strict=True):
            assert mine.equals(theirs)

    def test_scores_are_those_of_smaller_forests(self):
        X, y = DIABETES
        forest = fitted(RandomForestRegressor(25, oob_tol=0.0, random_state=0), X, y)
        for n_trees in (1, 2, 11, 25):
            mean = reference(forest, X, n_trees=n_trees)[:, 0]
            voted = ~np.isnan(mean)
            expected = r2_score(y[voted], mean[voted])
            assert forest.oob_scores_[n_trees - 1] == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("n_jobs", [2, 3])
    def test_any_number_of_threads(self, n_jobs):
        one = RandomForestClassifier(200, oob_tol=0.001, random_state=1).fit(*CANCER)
        before = threading.active_count()
        many = RandomForestClassifier(200, oob_tol=0.001, random_state=1, n_jobs=n_jobs)
        np.testing.assert_array_equal(many.fit(*CANCER).oob_scores_, one.oob_scores_)
        assert threading.active_count() <= before + n_jobs  # Dask keeps its threads

    def test_a_larger_tolerance_needs_fewer_trees(self):
        sizes = [
            RandomForestRegressor(150, oob_tol=tol, random_state=0).fit(*DIABETES).n_estimators_
            for tol in (0.0, 0.002, 0.02, math.nextafter(math.inf, 0))
        ]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] == 20

    def test_none_grows_all(self):
        forest = RandomForestClassifier(60, random_state=0, oob_score=True).fit(*IRIS)
        assert forest.n_estimators_ == 60
        assert not hasattr(forest, "oob_scores_")

    def test_a_callable(self):
        def minus_error(y, predicted):
            return -mean_absolute_error(y, predicted)

        forest = RandomForestRegressor(300, oob_score=minus_error, oob_tol=0.1, random_state=0).fit(
            *DIABETES
        )
        assert 20 <= forest.n_estimators_ < 300
        assert forest.oob_score_ == forest.oob_scores_[-1] < 0

    def test_a_callable_that_fails(self):
        def score(y, predicted):
            raise ZeroDivisionError("of the score")

        forest = RandomForestClassifier(30, oob_score=score, oob_tol=0.1, n_jobs=2)
        with pytest.raises(ZeroDivisionError, match="of the score"):
            forest.fit(*IRIS)
        assert not hasattr(forest, "forest_")

    @pytest.mark.parametrize("first", [5, 30, 150])
    def test_warm_start_gives_the_forest_that_is_grown_at_once(self, first, caplog):
        whole = RandomForestClassifier(200, oob_tol=0.002, random_state=1).fit(*CANCER)
        forest = RandomForestClassifier(first, oob_tol=0.002, random_state=1, warm_start=True)
        fitted(forest, *CANCER)
        with caplog.at_level(logging.INFO, "dtrees"):
            forest.set_params(n_estimators=200).fit(*CANCER)
        assert ("no tree is added" in caplog.text) == (first > whole.n_estimators_)
        np.testing.assert_array_equal(forest.oob_scores_, whole.oob_scores_)
        assert forest.n_estimators_ == whole.n_estimators_
        forest.set_params(oob_tol=None, n_estimators=210).fit(*CANCER)  # for all that
        assert forest.n_estimators_ == 210

    def test_callbacks_see_the_scores(self):
        seen = []

        class Score(Callback):
            def on_tree_end(self, fit, number):
                assert len(fit.oob_scores) == number + 1
                seen.append(fit.oob_scores[-1])

        forest = RandomForestClassifier(200, oob_tol=0.0, random_state=1)
        forest.fit(*CANCER, callbacks=[Score()])
        np.testing.assert_array_equal(seen, forest.oob_scores_)

    def test_few_rows(self):
        # no row may be out of the first bags
        with pytest.warns(UserWarning, match="do not have OOB"):
            forest = RandomForestRegressor(2, oob_tol=0.1, random_state=0).fit(
                [[0.0]] * 3, [1, 2, 3]
            )
        assert forest.oob_scores_.shape == (2,)
        with pytest.warns(UserWarning, match="do not have OOB"):
            forest = RandomForestClassifier(1, oob_score=True, random_state=3).fit([[0.0]], [1])
        assert math.isnan(forest.oob_score_)

    def test_model_files(self, tmp_path):
        forest = RandomForestClassifier(200, oob_tol=0.01, random_state=1).fit(*CANCER)
        save(forest, tmp_path / "forest.dtrees")
        again = load(tmp_path / "forest.dtrees")
        assert again.get_params() == forest.get_params()
        assert again.n_estimators_ == forest.n_estimators_ < 200
        np.testing.assert_array_equal(again.oob_scores_, forest.oob_scores_)

    @pytest.mark.parametrize("tol", [-0.1, math.nan, math.inf, "small"])
    def test_bad_tolerances(self, tol):
        with pytest.raises(ValueError, match="'oob_tol' parameter of RandomForestClassifier"):
            RandomForestClassifier(oob_tol=tol).fit(*IRIS)

    def test_needs_bags(self):
        message = r"only available if bootstrap=True: .* got oob_tol=0\.0, bootstrap=False"
        with pytest.raises(ValueError, match=message):
            RandomForestClassifier(oob_tol=0.0, bootstrap=False).fit(*IRIS)
