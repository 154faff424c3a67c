"""Draw the pictures of the user guide again: ``python docs/pictures.py``, in the root.

The head of a report is drawn by Chromium; where there is none, the picture stays as it is.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import pandas as pd
from PIL import Image
from sklearn.datasets import load_breast_cancer

from dtrees import (
    DecisionTreeClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    cross_validate,
    plot_shared_forest,
    validation_surface,
)
from dtrees.inspection import oob_importances, plot_beeswarm, plot_importance, shap_values
from dtrees.model_selection import boosting_curve, cost_complexity_cv

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "user_guide" / "pictures"


def save(axes, name, size=(7, 4.2)):
    """Write a figure into the folder of pictures."""
    if size is not None:
        axes.figure.set_size_inches(size)
    axes.figure.savefig(PICTURES / name, dpi=100 if size else 70)
    shrink(PICTURES / name)


def shrink(picture):
    """Keep 64 colours: a third of the bytes."""
    Image.open(picture).convert("RGB").quantize(64).save(picture, optimize=True)


def report():
    """The upper part of the page that `dtrees cv --report` writes."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        return
    page = ROOT / "build" / "report.html"
    page.parent.mkdir(exist_ok=True)
    command = ["cv", "examples/adult.csv.gz", "--target", "target", "--tune", "--report", str(page)]
    subprocess.run([sys.executable, "-m", "dtrees", *command], cwd=ROOT, check=True)
    options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1115,870"]
    shot = f"--screenshot={PICTURES / 'report.png'}"
    subprocess.run([chromium, *options, shot, page.as_uri()], check=True, stderr=subprocess.DEVNULL)
    shrink(PICTURES / "report.png")


people = pd.read_csv(ROOT / "examples" / "adult.csv.gz")
X, y = people.drop(columns="target"), people["target"]
tree = DecisionTreeClassifier(random_state=0)
save(validation_surface(tree, X, y, cv=10).plot(), "surface.png")
report()
forest = RandomForestClassifier(50, min_samples_leaf=20, random_state=0).fit(X, y)
save(plot_importance(forest, oob_importances(forest, X, y)), "importance.png")
model = GradientBoostingClassifier(max_leaf_nodes=8, random_state=0).fit(X, y)
save(plot_beeswarm(shap_values(model, X.head(1000))), "beeswarm.png")

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
save(cost_complexity_cv(tree, X, y, cv=10).plot(), "cost_complexity.png")
curve = boosting_curve(GradientBoostingClassifier(max_iter=150), X, y, cv=10)
save(curve.plot(), "boosting_curve.png")
four = DecisionTreeClassifier(max_depth=4)
result = cross_validate(four, X, y, cv=10, return_estimator=True)
names = ["malignant", "benign"]
axes = plot_shared_forest(result["estimator"], max_depth=2, class_names=names)
save(axes, "shared_forest.png", size=None)
