"""How well ensembles predict, on held-out rows of real data sets.

seeds       parts of the rows, scores, and what a difference over seeds says
against     dtrees and scikit-learn, at equal trees
categories  columns of many categories: native, ordinal, one-hot
boosting    boosted models beside those of LightGBM, XGBoost and CatBoost
boosting_categories    the same on tables with categories
boosting_defaults      l2 and least hessians of ours on many tables
boosting_peers         their models, as they come and matched to ours
boosting_switches      CatBoost's and ours, one thing switched at a time
intervals   prediction intervals: width, coverage, and how even it is
bags        keyed Poisson bags and a multinomial bootstrap
"""

from benchmarks.accuracy import (
    against,
    bags,
    boosting,
    boosting_categories,
    boosting_defaults,
    boosting_switches,
    categories,
    intervals,
)

CASES = [
    *against.CASES,
    *categories.CASES,
    *boosting.CASES,
    *boosting_categories.CASES,
    *boosting_defaults.CASES,
    *boosting_switches.CASES,
    *intervals.CASES,
    *bags.CASES,
]
