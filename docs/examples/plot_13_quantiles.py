"""
An interval from two boosted models
===================================

A boosted model can predict a quantile instead of the mean. Two of them, of 5 % and of 95 %, enclose
nine of ten targets. The interval is wide where the target is noisy, and narrow where it is not.
"""

import matplotlib.pyplot as plt
import numpy as np

from dtrees import GradientBoostingRegressor

rng = np.random.default_rng(0)


def drawn(n_rows):
    X = rng.uniform(0, 10, (n_rows, 1))
    noise = rng.normal(size=n_rows) * (0.3 + 0.25 * X[:, 0])
    return X, np.sin(X[:, 0]) * 2 + noise


X, y = drawn(4000)
new, y_new = drawn(4000)

# %%
# One fit for each end, and one for the median.

models = {
    level: GradientBoostingRegressor(
        "quantile", quantile=level, max_iter=60, max_leaf_nodes=8, min_samples_leaf=100
    ).fit(X, y)
    for level in (0.05, 0.5, 0.95)
}
lower, upper = models[0.05].predict(new), models[0.95].predict(new)
inside = np.mean((lower <= y_new) & (y_new <= upper))
print(f"{inside:.1%} of new rows inside")
for left, right in ((0, 2), (8, 10)):
    here = (new[:, 0] >= left) & (new[:, 0] < right)
    print(f"x from {left} to {right}: mean width {np.mean(upper[here] - lower[here]):.2f}")
assert 0.86 < inside < 0.94

# %%
# The interval on a grid, beside new rows. Boosted trees are steps, so its ends are, too.

grid = np.linspace(0, 10, 600)[:, None]
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(new[:600, 0], y_new[:600], ".", color="grey", markersize=3, label="new rows")
ends = models[0.05].predict(grid), models[0.95].predict(grid)
ax.fill_between(grid[:, 0], *ends, alpha=0.3, label="from 5 % to 95 %")
ax.plot(grid[:, 0], models[0.5].predict(grid), label="median")
ax.set(xlabel="x", ylabel="y")
ax.legend(loc="upper left")
plt.show()
