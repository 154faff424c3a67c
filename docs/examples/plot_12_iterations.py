"""
How many iterations
===================

Each tree of a boosted model corrects those before it. Too few trees leave something to be learned,
too many learn the noise. One fit shows where that begins, and a fit can find it by itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from dtrees import GradientBoostingClassifier

rng = np.random.default_rng(0)


def drawn(n_rows):
    X = rng.normal(size=(n_rows, 10))
    log_odds = 2 * np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, rng.random(n_rows) < 1 / (1 + np.exp(-log_odds))


X, y = drawn(2000)
new, y_new = drawn(20_000)

# %%
# ``staged_predict_proba`` gives the predictions after 1, 2, ... iterations. Large steps are soon at
# their best, and soon learn the noise. Small steps need more iterations, and more do less harm.

curves = {}
for rate in (0.3, 0.1, 0.03):
    model = GradientBoostingClassifier(learning_rate=rate, max_iter=300, max_leaf_nodes=8)
    stages = model.fit(X, y).staged_predict_proba(new)
    curves[rate] = [log_loss(y_new, shares) for shares in stages]
    best = int(np.argmin(curves[rate]))
    print(f"learning rate {rate}: {curves[rate][best]:.4f} after {best + 1} iterations")

# %%
# With ``early_stopping=True`` a fit holds out a tenth of its rows, and ends when ten iterations in
# a row have not lowered their loss.

early = GradientBoostingClassifier(
    learning_rate=0.1, max_iter=300, max_leaf_nodes=8, early_stopping=True, random_state=0
).fit(X, y)
loss = log_loss(y_new, early.predict_proba(new))
print(f"early stopping: {loss:.4f} after {early.n_iter_} of 300 iterations")
assert early.n_iter_ < 300

# %%
# The loss of new rows. The dots are the best iterations, the cross is the fit that ended early.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for rate, curve in curves.items():
    (line,) = ax.plot(range(1, 301), curve, label=f"learning rate {rate}")
    best = int(np.argmin(curve))
    ax.plot(best + 1, curve[best], "o", color=line.get_color())
ax.plot(early.n_iter_, loss, "kx", markersize=9, label="early stopping, rate 0.1")
ax.set(xlabel="iterations", ylabel="log-loss of new rows", xlim=(0, 300))
ax.legend()
plt.show()
