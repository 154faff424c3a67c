"""
Without Python: the command line
================================

``cv`` validates, ``fit`` keeps a model, ``predict`` uses it.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

here, folder = Path.cwd(), Path(tempfile.mkdtemp())
places = [parent / "examples" / "adult.csv.gz" for parent in (here, *here.parents)]
table = pd.read_csv(next(filter(Path.is_file, places)), nrows=5000)
table.to_csv(folder / "people.csv", index=False)


def dtrees(*arguments):
    """Run the command in the folder, and show what it prints."""
    print("$ dtrees", *arguments)
    command = [sys.executable, "-m", "dtrees", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    print(done.stdout + done.stderr)
    assert done.returncode == 0


dtrees("cv", "people.csv", "--target", "target", "--folds", "5", "--tune-simplest")

# %%
# A forest of all rows, in a file without pickle; and what it says of each row.

dtrees("fit", "people.csv", "--target", "target", "--model", "forest", "--out", "people.dtrees")
dtrees("predict", "people.dtrees", "people.csv", "--proba", "--out", "said.csv")
said = pd.read_csv(folder / "said.csv")
print(said.head())

# %%
# The shares by what is true.

plt.figure(figsize=(6, 4), layout="constrained")
for name, shares in said.iloc[:, -1].groupby(table["target"]):
    plt.hist(shares, bins=20, alpha=0.6, label=name)
plt.xlabel(said.columns[-1])
plt.ylabel("rows")
plt.legend()
plt.show()
