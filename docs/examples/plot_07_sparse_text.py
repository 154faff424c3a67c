"""
Text: a sparse table, never made dense
======================================

Which of two libraries does a docstring come from? Its words are a sparse matrix, which is coded,
grown and predicted from as it is: a tree looks at the stored cells only.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.stats
from sklearn.feature_extraction.text import CountVectorizer

from dtrees import DecisionTreeClassifier, RandomForestClassifier, export_text
from dtrees.model_selection import cross_val_score


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
# A few questions tell most of them apart.

tree = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, y)
print(export_text(tree, feature_names=words.get_feature_names_out()))

# %%
# A tree beside a forest, in five folds.

models = {
    "tree": DecisionTreeClassifier(random_state=0),
    "forest": RandomForestClassifier(50, random_state=0, n_jobs=-1),
}
scores = {name: cross_val_score(model, X, y, cv=5) for name, model in models.items()}
print({name: round(found.mean(), 3) for name, found in scores.items()})
plt.figure(figsize=(5, 4), layout="constrained")
for name, found in scores.items():
    plt.plot([name] * len(found), found, "o", alpha=0.6)
plt.margins(x=0.5)
plt.ylabel("accuracy")
plt.show()
