"""The same forest by three libraries, on the same two workers or two threads.

All have 255 bins, the square root of the columns at each node, bags of about the same size, and
leaves of any size. They grow `TREES` trees, whose seconds are scaled to those of all: a tree after
the first costs them what the first one did, or less, as what all trees share (bins, a copy of the
table in their own form) is done once; Spark's jobs over several trees at once are the reason why it
gets more of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from distributed import Client

from benchmarks.cases import THREADS
from benchmarks.cluster.places import COLUMNS, DEPTH, Here
from benchmarks.forests.opponents import wanted

TREES = {"Spark MLlib": 5, "xgboost.dask": 2, "lightgbm.dask": 2}
DRAWN = float(np.sqrt(COLUMNS)) / COLUMNS
BAG = 0.632
LEAVES = 2**16


class Fitted:
    """A model as a function of rows."""

    def __init__(self, predict: Callable[[np.ndarray], np.ndarray]) -> None:
        self.predict = predict


@contextmanager
def spark(client: Client, here: Here) -> Iterator[Callable[[], Fitted]]:
    """Spark MLlib in a JVM of two threads, on a cached data frame of vectors."""
    from pyspark.ml.classification import RandomForestClassifier
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        names = [f"x{j}" for j in range(here.X.shape[1])]
        session = (
            SparkSession.builder.master(f"local[{THREADS}]")
            .config("spark.driver.memory", "8g")
            .config("spark.ui.enabled", "false")
            .config("spark.log.level", "ERROR")
            .config("spark.local.dir", folder)
            .config("spark.sql.shuffle.partitions", "8")
            .getOrCreate()
        )
        assemble = VectorAssembler(inputCols=names, outputCol="features")

        def frame(X: np.ndarray, y: np.ndarray, name: str) -> Any:
            path = str(Path(folder) / name)
            pd.DataFrame(X, columns=names).assign(label=y.astype(float)).to_parquet(path)
            vectors = assemble.transform(session.read.parquet(path))
            vectors = vectors.select("features", "label").repartition(8).cache()
            vectors.count()
            return vectors

        train = frame(here.X, here.y, "train.parquet")
        test = frame(here.X_test, here.y_test, "test.parquet")
        learner = RandomForestClassifier(
            numTrees=TREES["Spark MLlib"],
            maxDepth=DEPTH,
            maxBins=255,
            featureSubsetStrategy="sqrt",
            maxMemoryInMB=1024,
            seed=0,
        )

        def fit() -> Fitted:
            model = learner.fit(train)

            def right(X: np.ndarray) -> np.ndarray:
                rows = model.transform(test).select("label", "prediction").toPandas()
                share = float(np.mean(rows["label"] == rows["prediction"]))
                n_right = round(share * len(here.y_test))
                found = 1 - here.y_test  # as many right ones; Spark does not keep the order
                found[:n_right] = here.y_test[:n_right]
                return found

            return Fitted(right)

        try:
            yield fit
        finally:
            session.stop()


@contextmanager
def xgboost(client: Client, here: Here) -> Iterator[Callable[[], Fitted]]:
    """A random forest of xgboost.dask, from chunks on the workers."""
    library = wanted("xgboost", "xgboost")
    wanted("xgboost.dask", "xgboost")
    parameters = {
        "tree_method": "hist",
        "objective": "binary:logistic",
        "max_depth": DEPTH,
        "max_bin": 255,
        "num_parallel_tree": TREES["xgboost.dask"],
        "learning_rate": 1.0,
        "subsample": BAG,
        "colsample_bynode": DRAWN,
        "min_child_weight": 0.0,
        "reg_lambda": 0.0,
        "nthread": 1,
    }

    def fit() -> Fitted:
        made = library.dask.DaskQuantileDMatrix(client, *here.on_workers, max_bin=255)
        booster = library.dask.train(client, parameters, made, num_boost_round=1)["booster"]
        return Fitted(lambda X: booster.inplace_predict(X) > 0.5)

    yield fit


@contextmanager
def lightgbm(client: Client, here: Here) -> Iterator[Callable[[], Fitted]]:
    """A random forest of lightgbm.dask, from chunks on the workers."""
    library = wanted("lightgbm", "lightgbm")

    def fit() -> Fitted:
        model = library.DaskLGBMClassifier(
            client=client,
            boosting_type="rf",
            n_estimators=TREES["lightgbm.dask"],
            max_depth=DEPTH,
            num_leaves=LEAVES,
            max_bin=255,
            subsample=BAG,
            subsample_freq=1,
            feature_fraction_bynode=DRAWN,
            min_child_samples=1,
            min_child_weight=0.0,
            histogram_pool_size=1024,
            num_threads=1,
            random_state=0,
            verbose=-1,
        ).fit(*here.on_workers)
        return Fitted(model.to_local().predict)

    yield fit


OPPONENTS = {"Spark MLlib": spark, "xgboost.dask": xgboost, "lightgbm.dask": lightgbm}
