"""
A tree on numbers, words and gaps
=================================

Adult: six columns of numbers, eight of words, and missing values in three of them. Nothing is
encoded or imputed first.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.model_selection import train_test_split

from dtrees import DecisionTreeClassifier, export_text, plot_tree
from dtrees.inspection import plot_importance

here = Path.cwd()
places = [folder / "examples" / "adult.csv.gz" for folder in (here, *here.parents)]
people = pd.read_csv(next(filter(Path.is_file, places)))
X, y = people.drop(columns="target"), people["target"]
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
print(X.isna().sum()[lambda gaps: gaps > 0])

tree = DecisionTreeClassifier(min_samples_leaf=50, random_state=0).fit(X_train, y_train)
print(f"accuracy {tree.score(X_test, y_test):.3f}, {tree.get_n_leaves()} leaves")

# %%
# A test of a column of words is a set of them. Missing values go to the side that gains more.

print(export_text(tree, max_depth=2, max_categories=4))

# %%
# The same as a picture. The bar of a box is the share of each class.

plot_tree(tree, max_depth=2)

# %%
# What the splits gain, by column.

plot_importance(tree)
plt.show()
