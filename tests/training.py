"""Models of training sets, without a splitter."""

from dtrees.core.membership.resampling import of_sets
from dtrees.estimators.training_sets import fit_table
from dtrees.estimators.training_table import TrainingTable


def fit_sets(estimator, X, y, sample_weight, rows, *, bar=None):
    """Fit a clone to each training set, bool (n_sets, n_rows), of a table used only here."""
    return fit_table(estimator, TrainingTable(X, y, sample_weight), of_sets(rows), bar=bar)
