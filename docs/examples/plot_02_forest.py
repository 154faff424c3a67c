"""
A forest, and the rows that its trees have not seen
===================================================

Each tree of a random forest leaves out about a third of the rows. Predicting these is a test
without a test set: the out-of-bag score. ``oob_tol`` ends the forest when that score is flat.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from dtrees import RandomForestClassifier

X, y = load_digits(return_X_y=True)
forest = RandomForestClassifier(500, oob_score=True, oob_tol=0.002, random_state=0, n_jobs=-1).fit(
    X, y
)
print(f"{forest.n_estimators_} of 500 trees, out-of-bag accuracy {forest.oob_score_:.3f}")

# %%
# The score after each tree that was asked about it.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(forest.oob_scores_)
left.set(xlabel="trees", ylabel="out-of-bag accuracy")
right.imshow(forest.feature_importances_.reshape(8, 8), cmap="Blues")
right.set(title="importance of each pixel", xticks=[], yticks=[])
plt.show()
