"""
A Dask data frame
=================

A lazy table in partitions, and a cluster: the same call of ``fit``, and the same model, bit for
bit, as on the table in memory.
"""

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from distributed import Client

from dtrees import RandomForestRegressor

rng = np.random.default_rng(0)
n = 20_000
table = pd.DataFrame(
    {
        "hour": rng.integers(0, 24, n),
        "day": rng.choice(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], n),
        "rain": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(1.0, 2.0, n)),
    }
)
busy = np.exp(-((table["hour"] - 8) ** 2) / 6) + np.exp(-((table["hour"] - 17) ** 2) / 8)
rides = 100 * busy * np.where(table["day"].isin(["Sat", "Sun"]), 0.4, 1.0) + rng.normal(0, 5, n)
forest = RandomForestRegressor(20, min_samples_leaf=20, random_state=0)

with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
    lazy = dd.from_pandas(table, npartitions=7)
    on_workers = forest.fit(lazy, dd.from_pandas(rides, npartitions=7))
    answers = on_workers.predict(lazy)  # lazy, too: a block for each partition
    print(answers)
    predicted = answers.compute()

# %%
# In memory, on one thread.

alone = RandomForestRegressor(20, min_samples_leaf=20, random_state=0).fit(table, rides)
assert (alone.predict(table) == predicted).all()

# %%
# What it has learned.

hours = pd.DataFrame({"hour": range(24), "day": "Tue", "rain": 0.0})
plt.figure(figsize=(7, 4), layout="constrained")
plt.plot(hours["hour"], alone.predict(hours), drawstyle="steps-mid", label="Tuesday")
plt.plot(
    hours["hour"], alone.predict(hours.assign(day="Sun")), drawstyle="steps-mid", label="Sunday"
)
plt.xlabel("hour")
plt.ylabel("rides")
plt.legend()
plt.show()
