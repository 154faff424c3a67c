"""
How much of a tree would another sample have grown?
===================================================

The trees of ten folds share most of their rows. Where they ask different questions, the data do not
say which one is right.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from dtrees import DecisionTreeClassifier, cross_validate, plot_shared_forest, stability_report

here = Path.cwd()
places = [folder / "examples" / "adult.csv.gz" for folder in (here, *here.parents)]
people = pd.read_csv(next(filter(Path.is_file, places)), nrows=3000)
X, y = people.drop(columns="target"), people["target"]
tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=20, random_state=0)
result = cross_validate(tree, X, y, cv=10, return_estimator=True)
print(f"accuracy {result['test_score'].mean():.3f} ± {result['test_score'].std():.3f}")

# %%
# By level: how many of the ten trees test the column that the final tree tests.

report = stability_report(result["estimator"], result.final_estimator)
for level in report.levels:
    print(f"depth {level.depth}: {level.same_column:.1f} of 10 test the same column")

# %%
# All ten trees in one picture: the darker a box, the more trees are there.

plot_shared_forest(result["estimator"], max_depth=2, min_share=0.2)
plt.show()
