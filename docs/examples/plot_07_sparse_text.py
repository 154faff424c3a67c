"""
Text: a sparse table, never made dense
======================================

Which of two libraries does a docstring come from? Its words are a sparse matrix. It is coded, and
trees grow and predict, from its stored cells only.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.stats
from sklearn.feature_extraction.text import CountVectorizer

from dtrees import DecisionTreeClassifier, RandomForestClassifier, cross_validate


def docstrings(*owners):
    found = [getattr(owner, name) for owner in owners for name in dir(owner) if name[0] != "_"]
    texts = {inspect.getdoc(each) for each in found if callable(each)}
    return sorted(text for text in texts if text and len(text) > 200)


texts = [docstrings(pd, pd.DataFrame, pd.Series), docstrings(np, scipy.stats)]
words = CountVectorizer(min_df=3, token_pattern=r"[a-z]{3,}", stop_words=["pandas", "numpy"])
X = words.fit_transform(texts[0] + texts[1])
y = np.repeat(["pandas", "numpy or scipy"], [len(texts[0]), len(texts[1])])
print(f"{X.shape[0]} docstrings, {X.shape[1]} words, {X.nnz / np.prod(X.shape):.1%} stored")

# %%
# A tree and a forest, in five folds.

models = {
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(200, random_state=0, n_jobs=-1),
}
results = {name: cross_validate(model, X, y, cv=5) for name, model in models.items()}
for name, result in results.items():
    print(f"{name}: {result['test_score'].mean():.3f}")

# %%
# The words that tell most, by the forest of all rows, and where they stand.

forest = results["forest"].final_estimator
top = np.argsort(forest.feature_importances_)[-15:]
in_pandas = np.asarray((X[y == "pandas"] > 0).mean(axis=0)).ravel()[top]
elsewhere = np.asarray((X[y != "pandas"] > 0).mean(axis=0)).ravel()[top]
places = np.arange(len(top))
figure, axes = plt.subplots(figsize=(6, 5), layout="constrained")
axes.barh(places + 0.2, in_pandas, 0.4, label="pandas")
axes.barh(places - 0.2, elsewhere, 0.4, label="numpy or scipy")
axes.set_yticks(places, words.get_feature_names_out()[top])
axes.set_xlabel("share of the docstrings with the word")
axes.legend(frameon=False)
plt.show()
