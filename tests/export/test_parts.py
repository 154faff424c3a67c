"""A fitted estimator in pieces: every attribute of every fit, and nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dtrees.export import load, models, save
from tests.export.test_hostile_files import small_model


def test_what_users_add_is_not_saved(tmp_path):
    model, _ = small_model()
    model.note_ = "mine"
    save(model, tmp_path / "model")
    assert not hasattr(load(tmp_path / "model"), "note_")


def test_every_attribute_of_every_fit_is_saved(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80) % 2
    X = pd.DataFrame(X, columns=list("abc"))
    for name in models.ESTIMATORS:
        kind = getattr(models.dtrees, name)
        forest = {} if name.startswith("Decision") else {"n_estimators": 30, "oob_tol": 0.0}
        if name.startswith("Extra"):
            forest["bootstrap"] = True
        if name.startswith("Gradient"):
            forest = {"max_iter": 3, "early_stopping": True}
        model = kind(random_state=0, **forest).fit(X, y)
        save(model, tmp_path / "model")
        left_out = {"_fit_report"}
        assert vars(load(tmp_path / "model")).keys() == vars(model).keys() - left_out
