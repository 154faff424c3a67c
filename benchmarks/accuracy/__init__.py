"""How well ensembles predict, on held-out rows of real data sets.

seeds       parts of the rows, scores, and what a difference over seeds says
against     dtrees and scikit-learn, at equal trees
categories  columns of many categories: native, ordinal, one-hot
boosting    boosted models beside those of LightGBM, XGBoost and CatBoost
bags        keyed Poisson bags and a multinomial bootstrap
"""

from benchmarks.accuracy import against, bags, boosting, categories

CASES = [*against.CASES, *categories.CASES, *boosting.CASES, *bags.CASES]
