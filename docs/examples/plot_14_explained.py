"""
Why this prediction
===================

SHAP values divide the prediction of a row among its columns. They sum to the prediction, so nothing
is left unexplained. Here a boosted model predicts who earns more than 50,000 dollars.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from dtrees import GradientBoostingClassifier
from dtrees.inspection import (
    plot_beeswarm,
    plot_shap_dependence,
    plot_waterfall,
    shap_values,
)

here = Path.cwd()
places = [folder / "examples" / "adult.csv.gz" for folder in (here, *here.parents)]
people = pd.read_csv(next(filter(Path.is_file, places)))
X, y = people.drop(columns="target"), people["target"]
model = GradientBoostingClassifier(max_leaf_nodes=8, random_state=0).fit(X, y)

# %%
# Values are in log odds of the second class. Categories are explained as they are.

rows = X.head(1000)
found = shap_values(model, rows, interactions=True)
total = found.base_values + found.values.sum(axis=1)
print(f"{found.values.shape[0]} rows, {found.values.shape[1]} columns")
print(
    f"largest difference to the predictions: {abs(total - model.decision_function(rows)).max():.1e}"
)
assert np.allclose(total, model.decision_function(rows))

# %%
# One row: begin at the base value, and follow the columns up to the prediction.

surest = int(total.argmax())
plot_waterfall(found, surest)
plt.show()

# %%
# All rows: the column with the largest values stands on top. Red points are high cells, grey ones
# are categories. A high capital gain adds a lot, in few rows.

plot_beeswarm(found)
plt.show()

# %%
# One column: its cells across, what they add upwards. Colours are of the column that acts together
# with it most.

plot_shap_dependence(found, "age")
plt.show()

# %%
# Which two columns act together most? Interactions tell it for all pairs. A pair has two places,
# with half of what it adds in each.

strength = abs(found.interactions).mean(axis=0)
np.fill_diagonal(strength, 0)
one, other = np.unravel_index(strength.argmax(), strength.shape)
print(f"{X.columns[one]} and {X.columns[other]}: {2 * strength[one, other]:.2f}")
