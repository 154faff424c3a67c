"""
How much of a tree would another sample have grown?
===================================================

The models of ten folds share nine tenths of their rows. Where they ask different questions, the
data do not say which is right.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from dtrees import DecisionTreeClassifier, plot_shared_forest, stability_report
from dtrees.model_selection import cross_validate

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
tree = DecisionTreeClassifier(max_depth=3, random_state=0)
found = cross_validate(tree, X, y, cv=10, return_estimator=True)
print(f"accuracy {found['test_score'].mean():.3f} ± {found['test_score'].std():.3f}")

# %%
# By level: how many of the ten models have the column of the final one, in nodes that they share.

report = stability_report(found["estimator"], found.final_estimator)
for depth, level in enumerate(report.levels):
    print(f"depth {depth}: {level.same_column:.1f} of 10 ask about the same column")

# %%
# All ten upon each other: the darker a box, the more models are there.

plot_shared_forest(found["estimator"], max_depth=2, class_names=["malignant", "benign"])
plt.show()
