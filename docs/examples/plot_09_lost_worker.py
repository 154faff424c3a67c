"""
A worker dies
=============

Two worker processes grow a forest. One of them is killed in the middle. The other one goes on with
its trees, the cluster starts a new process, and the model is the one that it would have been.
"""

import os
import signal

import matplotlib.pyplot as plt
from distributed import Client, LocalCluster
from sklearn.datasets import load_digits

from dtrees import RandomForestClassifier
from dtrees.callbacks import Callback

X, y = load_digits(return_X_y=True)
expected = RandomForestClassifier(200, random_state=0).fit(X, y)

# %%
# A callback hears of each tree. At the tenth, this one kills a worker.


class Murder(Callback):
    def __init__(self, victim):
        self.victim = victim

    def on_tree_end(self, fit, number):
        if number == 10:
            os.kill(self.victim, signal.SIGKILL)


# %%
# Worker processes import this file, so what starts them stands behind the usual line.

if __name__ == "__main__":
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        forest = RandomForestClassifier(200, random_state=0, regime="replicated")
        victim = min(client.run(os.getpid).values())
        forest.fit(X, y, callbacks=[Murder(victim)])
        after = client.run(os.getpid).values()
    print("the worker is gone:", victim not in after)
    print("the same forest:", (forest.predict_proba(X) == expected.predict_proba(X)).all())

    plt.figure(figsize=(7, 3), layout="constrained")
    plt.plot(expected.feature_importances_, linewidth=5, alpha=0.4, label="on this machine")
    plt.plot(forest.feature_importances_, linewidth=1, label="with a worker killed")
    plt.xlabel("pixel")
    plt.ylabel("importance")
    plt.legend()
    plt.show()
