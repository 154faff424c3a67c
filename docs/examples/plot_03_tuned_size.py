"""
Thousands of tree sizes from one growth
=======================================

A fully grown tree contains every smaller one. So ten folds are grown once, and every depth and
every ``min_samples_split`` is scored on them, each exactly as if it had been fitted.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from dtrees import DecisionTreeClassifier, cross_val_score, validation_surface

here = Path.cwd()
places = [folder / "examples" / "adult.csv.gz" for folder in (here, *here.parents)]
people = pd.read_csv(next(filter(Path.is_file, places)))
X, y = people.drop(columns="target"), people["target"]

folds = StratifiedKFold(10)
surface = validation_surface(DecisionTreeClassifier(random_state=0), X, y, cv=folds)
print(f"{surface.mean.size:,} sizes; the best: {surface.best}, {surface.mean.max():.4f}")
print("the simplest within one standard error:", surface.one_standard_error)

# %%
# One of the sizes, fitted by itself: the same score.

alone = DecisionTreeClassifier(random_state=0, **surface.best)
score = cross_val_score(alone, X, y, cv=folds).mean()
print(f"{score:.4f}")
assert score == surface.mean.max()

# %%
# Trees that are too large stand in the upper left, and trees that are too small at the bottom.

surface.plot()
plt.show()
