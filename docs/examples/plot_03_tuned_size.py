"""
Thousands of tree sizes from one growth
=======================================

A fully grown tree contains every smaller one. So ten folds are grown once, and every depth and
every ``min_samples_split`` is scored on them, each exactly as if it had been fitted.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV as TheirSearch

from dtrees import DecisionTreeClassifier
from dtrees.model_selection import validation_surface

X, y = load_breast_cancer(return_X_y=True)
tree = DecisionTreeClassifier(random_state=0)
surface = validation_surface(tree, X, y, cv=10)
print(surface.mean.size, "sizes; the best:", surface.best, f"{surface.mean.max():.4f}")
print("the simplest within one standard error:", surface.one_standard_error)

# %%
# One cell, by scikit-learn's own search and fits.

limits = {name: [value] for name, value in surface.best.items()}
alone = TheirSearch(tree, limits, cv=10).fit(X, y)
print(f"{alone.best_score_:.4f}")
assert alone.best_score_ == surface.mean.max()

# %%
# The surface: too small on the left, too large on the right and at the bottom.

surface.plot()
plt.show()
