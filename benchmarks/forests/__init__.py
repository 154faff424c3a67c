"""Random forests against scikit-learn, oneDAL (scikit-learn-intelex) and YDF.

All sides have the same parameters and two threads; whole calls of ``fit`` and ``predict_proba`` are
timed, coding included. The last two are measured when they are installed (`pip install
scikit-learn-intelex ydf`), and skipped otherwise.
"""

from benchmarks.forests import fits, predictions

CASES = [*fits.CASES, *predictions.CASES]
