"""Random forests against scikit-learn, oneDAL (scikit-learn-intelex) and YDF.

All sides have the same parameters and two threads; whole calls of ``fit`` and ``predict_proba`` are
timed, coding included. The last two are measured when they are installed (`pip install
scikit-learn-intelex ydf`), and skipped otherwise.

fits, predictions    seconds, side by side; opponents has the other libraries
first                first predictions, sparse rows, rows one by one
memory               bytes per row and thread
sizes                pickles and model files
cluster              a fit on two processes against two threads
scale                seconds over rows and columns, with a picture
waves                bags in one wave of rounds against tree by tree
"""

from benchmarks.forests import cluster, first, fits, memory, predictions, scale, sizes, waves

CASES = [
    *fits.CASES,
    *predictions.CASES,
    *first.CASES,
    *memory.CASES,
    *sizes.CASES,
    *cluster.CASES,
    *scale.CASES,
    *waves.CASES,
]
