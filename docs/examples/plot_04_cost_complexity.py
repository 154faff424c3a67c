"""
Cost-complexity pruning, every step of it
=========================================

The price of a leaf, alpha, decides how much of a fully grown tree stays. All its values that make
a difference are scored by cross-validation at once.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_diabetes

from dtrees import DecisionTreeRegressor, export_text
from dtrees.model_selection import cost_complexity_cv

data = load_diabetes(as_frame=True, scaled=False)
path = cost_complexity_cv(DecisionTreeRegressor(random_state=0), data.data, data.target, cv=10)
print(len(path.ccp_alphas), "trees inside one another")

# %%
# The tree that is best, and the smallest one that is as good within one standard error.

for alpha in (path.best_alpha, path.one_standard_error_alpha):
    print(f"alpha {alpha:.1f}: {path.model(alpha).get_n_leaves()} leaves")
print(export_text(path.model(path.one_standard_error_alpha)))

# %%
# The error over alpha.

path.plot()
plt.show()
