"""20 newsgroups, the train part: 11,314 rows, 130,107 sparse columns, 20 classes."""

from benchmarks import data
from benchmarks.cases import Case, Contest, Scale
from benchmarks.fits.pairs import same_fit


def _counts(scale: Scale) -> Contest:
    X, y = data.real("newsgroups20")
    n = data.loader().train_rows("newsgroups20")
    return same_fit(X[: scale.rows(n)], y[: scale.rows(n)])


def _tfidf(scale: Scale) -> Contest:
    X, y = data.real("newsgroups20")
    n = data.loader().train_rows("newsgroups20")
    return same_fit(data.loader().tfidf(X, n)[: scale.rows(n)], y[: scale.rows(n)])


CASES = [
    Case("text-counts", "fits", "20 newsgroups, counts, fully grown", _counts, 15, 25),
    Case("text-tfidf", "fits", "20 newsgroups, tf-idf, fully grown", _tfidf, 15, 25),
]
