"""
Intervals around predictions
============================

A forest knows how far off it is: each row has trees that have not seen it. So have the models of a
cross-validation. Both say how wide an interval has to be, and fit nothing for it.
"""

import matplotlib.pyplot as plt
import numpy as np

from dtrees import DecisionTreeRegressor, RandomForestRegressor
from dtrees.model_selection import cross_validate

rng = np.random.default_rng(0)


def drawn(n_rows):
    X = rng.uniform(0, 10, (n_rows, 1))
    return X, np.sin(X[:, 0]) * X[:, 0] + rng.normal(size=n_rows)


X, y = drawn(300)
new, y_new = drawn(2000)

# %%
# Of a forest with ``oob_score=True``, and of ten folds of a single tree. Nine of ten new rows are
# to be inside.

forest = RandomForestRegressor(200, min_samples_leaf=3, oob_score=True, random_state=0).fit(X, y)
tree = DecisionTreeRegressor(min_samples_leaf=5, random_state=0)
folds = cross_validate(tree, X, y, cv=10, return_estimator=True)
models = {"out of the forest's bags": forest, "ten folds of a tree": folds}
for name, model in models.items():
    lower, upper = model.prediction_interval(new, confidence=0.9).T
    inside = np.mean((lower <= y_new) & (y_new <= upper))
    print(f"{name}: {inside:.1%} inside, mean width {np.mean(upper - lower):.2f}")
    assert 0.85 < inside < 0.98

# %%
# The noise alone needs a width of 3.3. The rest is what the models do not know.

grid = np.linspace(0, 10, 400)[:, None]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    lower, upper = model.prediction_interval(grid, confidence=0.9).T
    ax.fill_between(grid[:, 0], lower, upper, alpha=0.3, label="90 % interval")
    ax.plot(new[:300, 0], y_new[:300], ".", color="grey", markersize=3, label="new rows")
    ax.set_title(name)
    ax.set_xlabel("x")
axes[0].set_ylabel("y")
axes[0].legend(loc="upper left")
plt.show()
