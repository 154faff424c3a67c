"""SHAP values beside LightGBM's ``pred_contrib`` and shap's C code, and models elsewhere.

A boosted model is explained by all sides as it is: LightGBM and shap read its text. For a forest,
shap explains scikit-learn's, which has as many nodes. shap takes seconds for a row of such a
forest, so it gets few rows, and its time is scaled.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import dtrees
from benchmarks import data
from benchmarks.cases import THREADS, Case, Contest, Scale
from benchmarks.forests import opponents
from benchmarks.forests.opponents import wanted
from dtrees.export import to_lightgbm, to_onnx
from dtrees.inspection import shap_values

BACKGROUND = 100  # rows
OF_FOREST = 4  # rows that shap explains
AT_MOST_THRICE = 0.33  # times as fast as `predict_proba`


def _apart(first: Any, second: Any) -> str:
    """How far values are apart, where both sides have them."""
    if second is None or first.shape != second.shape:
        return ""
    return f"at most {np.abs(first - second).max():.0e} apart"


def _boosted(scale: Scale) -> tuple[Any, Any, np.ndarray]:
    """A model, the same one of LightGBM, and 10,000 rows."""
    library = wanted("lightgbm", "lightgbm")
    X, y = data.classification(scale.rows(100_000))
    model = dtrees.GradientBoostingClassifier(early_stopping=False, n_jobs=THREADS).fit(X, y)
    return model, library.Booster(model_str=to_lightgbm(model)), X[: scale.rows(10_000)]


def _contributions(scale: Scale) -> Contest:
    model, booster, X = _boosted(scale)
    return Contest(
        lambda: model.predict_contributions(X),
        {"LightGBM": lambda: booster.predict(X, pred_contrib=True, num_threads=THREADS)},
        _apart,
    )


def _interactions(scale: Scale) -> Contest:
    model, booster, X = _boosted(scale)
    explainer, X = wanted("shap", "shap").TreeExplainer(booster), X[: scale.rows(500)]
    return Contest(
        lambda: shap_values(model, X, interactions=True).interactions,
        {"shap": lambda: explainer.shap_interaction_values(X)},
        _apart,
    )


def _background(scale: Scale) -> Contest:
    model, booster, X = _boosted(scale)
    X, background = X[: scale.rows(500)], X[-BACKGROUND:]
    explainer = wanted("shap", "shap").TreeExplainer(booster, background)
    return Contest(
        lambda: shap_values(model, X, background=background).values,
        {"shap": lambda: explainer.shap_values(X)},
        _apart,
    )


def _forest(scale: Scale) -> Contest:
    library, n_rows = wanted("shap", "shap"), scale.rows(1000)
    X, y = data.classification(scale.rows(100_000))
    own = opponents.ours(X, y, n_estimators=100)
    other = library.TreeExplainer(opponents.scikit_learn(X, y, n_estimators=100))
    return Contest(
        lambda: shap_values(own, X[:n_rows]).values,
        {"shap": lambda: other.shap_values(X[:OF_FOREST])},
        parts={"shap": n_rows / OF_FOREST},
    )


def _onnx(scale: Scale, model: Any) -> Contest:
    """Our file in onnxruntime, against our `predict_proba` of the same model."""
    runtime = wanted("onnxruntime", "onnxruntime")
    X, y = data.classification(scale.rows(200_000))
    half = len(X) // 2
    model.fit(X[:half], y[:half])
    options = runtime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), options)
    return Contest(
        lambda: session.run(["probabilities"], {"X": X[half:]})[0],
        {"predict_proba": lambda: model.predict_proba(X[half:])},
        _apart,
    )


def _written(scale: Scale) -> Contest:
    X, y = data.classification(scale.rows(100_000))
    model = opponents.ours(X, y, n_estimators=100)
    return Contest(lambda: to_lightgbm(model), {"to_onnx": lambda: to_onnx(model)})


BOOSTED = partial(dtrees.GradientBoostingClassifier, early_stopping=False, n_jobs=THREADS)
FOREST = partial(dtrees.RandomForestClassifier, 100, n_jobs=THREADS, random_state=0)

CASES = [
    Case(
        "export-onnx-boosted",
        "explain",
        "our file in onnxruntime, boosted 100 × 31 leaves, 100,000 rows × 30",
        lambda scale: _onnx(scale, BOOSTED()),
        reach=AT_MOST_THRICE,
    ),
    Case(
        "export-onnx-forest",
        "explain",
        "our file in onnxruntime, forest of 100 trees of depth 8, 100,000 rows × 30",
        lambda scale: _onnx(scale, FOREST(max_depth=8)),
        reach=AT_MOST_THRICE,
    ),
    Case(
        "export-onnx-full",
        "explain",
        "our file in onnxruntime, forest of 100 full trees, 100,000 rows × 30",
        lambda scale: _onnx(scale, FOREST()),
        reach=AT_MOST_THRICE,
        repeats=1,
    ),
    Case(
        "export-written",
        "explain",
        "to_lightgbm, forest of 100 full trees, 100,000 rows × 30",
        _written,
        repeats=1,
    ),
    Case(
        "explain-boosted",
        "explain",
        "SHAP values, boosted 100 × 31 leaves, 10,000 rows × 30",
        _contributions,
        reach=2,
    ),
    Case(
        "explain-interactions",
        "explain",
        "interactions, boosted 100 × 31 leaves, 500 rows × 30",
        _interactions,
        reach=3,
    ),
    Case(
        "explain-background",
        "explain",
        f"interventional SHAP values, the same model, 500 rows × {BACKGROUND}",
        _background,
    ),
    Case(
        "explain-forest",
        "explain",
        "SHAP values, forest of 100 full trees, 1,000 rows × 30",
        _forest,
        reach=10,
        repeats=1,
    ),
]
