"""
From the fit to the server
==========================

A model file holds the whole model, and opening it runs no code. Which of the forms of a file is the
right one depends on who reads it, and how many rows come at once. The page *Deploy* has ONNX,
memory maps, Dask and C, too.
"""

import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from dtrees import GradientBoostingClassifier
from dtrees.export import load, save, to_lightgbm

here, folder = Path.cwd(), Path(tempfile.mkdtemp())
places = [parent / "examples" / "adult.csv.gz" for parent in (here, *here.parents)]
people = pd.read_csv(next(filter(Path.is_file, places)))
X, y = people.drop(columns="target"), people["target"]
model = GradientBoostingClassifier(random_state=0).fit(X, y)

# %%
# Our own file, in its two layouts, and LightGBM's text for servers without dtrees. Loaded models
# predict the same bits.

save(model, folder / "compact")
save(model, folder / "flat", layout="flat")
to_lightgbm(model, folder / "LightGBM's text")
sizes = pd.Series({path.name: path.stat().st_size / 1000 for path in folder.iterdir()})
sizes = sizes.sort_values()
print(sizes.round().to_string())

compact, flat = load(folder / "compact"), load(folder / "flat", mmap=True)
expected = model.predict_proba(X)
assert (compact.predict_proba(X) == expected).all()
assert (flat.predict_proba(X) == expected).all()

# %%
# A request of one row pays for a data frame. Requests that come together share this price.

compact.set_params(n_jobs=1)
costs = {}
for n_rows in (1, 3, 10, 30, 100, 300, 1000):
    rows = X.head(n_rows)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        compact.predict_proba(rows)
        times.append(time.perf_counter() - start)
    costs[n_rows] = min(times) / n_rows * 1e6

# %%
# Sizes of the files, and microseconds per row.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
left.barh(sizes.index, sizes)
left.set_xlabel("kB, 100 trees")
right.loglog(list(costs), list(costs.values()), "o-")
right.set(xlabel="rows at once", ylabel="microseconds per row")
plt.show()
