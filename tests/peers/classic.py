"""scikit-learn's classic ``GradientBoosting*``, told in the names of dtrees.

Our classes have the names of ``HistGradientBoosting*`` (decision 19). Tests of the classic classes
are asked of them in other words, and these are the words: what a parameter is called here, what its
default is, and how ``loss="exponential"``, ``monitor`` and ``train_score_`` are said. What has no
counterpart is refused, and tests that need it do not pass.
"""

import inspect

import numpy as np
import sklearn.ensemble

import dtrees
from dtrees.callbacks import Callback
from dtrees.losses import Loss

# of ours, where the classic classes have no such parameter
SETTINGS = {
    "l2_regularization": 0.0,
    "max_bins": None,
    "use_best_model": False,
}
REFUSED = ("ccp_alpha", "criterion")


class Exponential(Loss):
    """The loss of AdaBoost, of which docs/user_guide/boosting.md has the methods."""

    def check_target(self, y):
        if y.max() > 1:
            raise ValueError("loss='exponential' is only suitable for a binary classification")

    def gradient_and_hessian(self, y, raw):
        loss = self.of_rows(y, raw)
        return (1 - 2 * y) * loss, loss

    def initial(self, y, sample_weight):
        share = np.average(y, weights=sample_weight).clip(1e-10, 1 - 1e-10)
        return np.log(share / (1 - share)) / 2

    def inverse_link(self, raw):
        return 1 / (1 + np.exp(-2 * raw))

    def of_rows(self, y, raw):
        return np.exp((1 - 2 * y) * raw)


class Monitor(Callback):
    """A callback that asks a function of scikit-learn's, if there is one."""

    def __init__(self, function, model):
        self.function, self.model = function, model

    def on_iteration_end(self, fit, number):
        return self.function is not None and bool(self.function(number, self.model, vars(fit)))


class Classic:
    """The other words, in front of a class of ours."""

    def __init__(self, **given):
        super().__init__(**SETTINGS)
        self.__dict__.update(self._defaults() | given)

    @classmethod
    def _defaults(cls):
        own = inspect.signature(cls.__init__).parameters.values()
        return {each.name: each.default for each in own if each.name != "self"}

    def fit(self, X, y, sample_weight=None, monitor=None):
        own, default = self.get_params(deep=False), self._defaults()
        refused = [name for name in REFUSED if own[name] != default[name]]
        if refused:
            raise ValueError(f"There is no {refused} here.")
        self.__dict__.update(
            early_stopping=self.n_iter_no_change is not None,
            max_iter=self.n_estimators,
            min_child_weight=self.min_weight_fraction_leaf * len(y),
            min_split_gain=self.min_impurity_decrease * len(y),
            n_iter_no_change=self.n_iter_no_change or 10,
            oob_score=self.subsample < 1,
            quantile=own.get("alpha"),
            loss=Exponential() if self.loss == "exponential" else self.loss,
        )
        try:
            how = {"eval_set": [(X, y)], "callbacks": [Monitor(monitor, self)]}
            super().fit(X, y, sample_weight, **how)
        finally:
            self.__dict__.update(own)
        self.n_estimators_ = self.n_iter_
        self.train_score_ = np.array(self.evals_result_["training"]["loss"])
        return self

    def apply(self, X):
        leaves = super().apply(X)
        is_flat = not hasattr(self, "predict_proba")
        return leaves if is_flat else leaves.reshape(len(leaves), *self.estimators_.shape)


def classic(name):
    """A class of ours by the parameters of scikit-learn's class of the same name."""
    made = type(name, (Classic, getattr(dtrees, name)), {"__module__": __name__})
    made.__init__ = lambda self, **given: Classic.__init__(self, **given)
    made.__init__.__signature__ = inspect.signature(getattr(sklearn.ensemble, name).__init__)
    return made


GradientBoostingClassifier = classic("GradientBoostingClassifier")
GradientBoostingRegressor = classic("GradientBoostingRegressor")
