"""What the papers report, as numbers with their places.

[CV]  H. Blockeel, J. Struyf: Efficient Algorithms for Decision Tree Cross-validation, JMLR 3 (2002)
[SF]  H. Wang, G. Gupta: Superfast Selection for Decision Tree Algorithms (2024)
[SP]  F. Hedayati, A. Joly, P. Papadimitriou: Scalable Learning of Tree-Based Models on Sparsely
      Representable Data (2016)

Figures 9 to 13 and 15 to 20 of [CV], and 3 to 6 of [SP], are bars and curves without numbers. Of
them only what the text says is here.
"""

from __future__ import annotations

from typing import NamedTuple

INF = float("inf")


class Described(NamedTuple):
    """A line of [CV] table 1; no classes: a regression."""

    n_rows: int
    n_nominal: int
    n_numeric: int
    n_classes: int | None


CV_TABLE_1 = {  # [CV] 4.1.1
    "Connect-4": Described(66617, 42, 0, 3),
    "Adult": Described(30162, 8, 6, 2),
    "Letter": Described(20000, 0, 16, 26),
    "Nursery": Described(12960, 8, 0, 5),
    "LED": Described(10000, 7, 0, 10),
    "Pen Digits": Described(7494, 0, 16, 10),
    "Mushroom": Described(5644, 22, 0, 2),
    "Spam": Described(4601, 0, 57, 2),
    "Abalone": Described(4177, 1, 7, None),
    "Internet Ads": Described(2359, 1555, 3, 2),
    "Car": Described(1728, 6, 0, 4),
    "Yeast": Described(1484, 0, 8, 10),
}
CV_LEAF = 10  # [CV] 4.1.3: no leaves of fewer examples
CV_BAGS = 25  # [CV] 4.3
CV_MOST_OF_BAGGING = 3.0  # [CV] 4.3: "speedups are limited to a factor of about 3"


class Predicted(NamedTuple):
    """What the tree of [CV] figure 14 says: times the serial algorithm's speed."""

    overlapping_sets: float
    cross_validation: float


def figure_14(described: Described, tree_size: int) -> Predicted:
    """Speedups of ten folds that [CV] figure 14 predicts, from a tree that was grown on them."""
    if described.n_rows > 4601:
        if tree_size <= 48:
            return Predicted(2.06, 6.30)
        return Predicted(2.57, 2.74) if described.n_numeric > 0 else Predicted(1.90, 4.09)
    many = described.n_classes is not None and described.n_classes > 2
    return Predicted(1.31, 1.51) if many else Predicted(1.64, 2.00)


SF_TABLE_5 = {  # rows: ms of the generic selection on one column, and of the superfast one
    10_000: (1_800, 4),
    20_000: (6_800, 10),
    30_000: (15_000, 15),
    40_000: (27_000, 23),
    50_000: (42_000, 28),
    60_000: (61_000, 32),
    70_000: (83_000, 38),
    80_000: (110_000, 44),
    90_000: (142_000, 51),
    100_000: (178_000, 58),
}


class Classified(NamedTuple):
    """A line of [SF] table 6; milliseconds."""

    n_rows: int
    n_columns: int
    n_classes: int
    nodes: float
    depth: float
    train: float
    tune: float
    accuracy: float
    tuned_nodes: float
    tuned_depth: float
    tuned_train: float


class Regressed(NamedTuple):
    """A line of [SF] table 7; milliseconds."""

    n_rows: int
    n_columns: int
    nodes: float
    depth: float
    train: float
    tune: float
    mae: float
    rmse: float
    tuned_nodes: float
    tuned_depth: float
    tuned_train: float


SF_TABLE_6 = {
    "adult": Classified(32561, 14, 2, 7238.6, 61.4, 586, 50, 0.86, 427.6, 27.1, 180),
    "credit card": Classified(30000, 23, 2, 6933, 50.4, 1340, 52, 0.82, 138.4, 13.5, 299),
    "rain in australia": Classified(145460, 23, 3, 26180.4, 56.2, 4229, 288, 0.83, 701, 17.3, 627),
    "parkinson": Classified(765, 753, 2, 66.8, 10.5, 611, 2, 0.80, 30.2, 6.0, 363),
    "intention": Classified(12330, 17, 2, 1496.8, 31.6, 170, 6, 0.90, 105.6, 11.5, 50),
    "shuttle": Classified(58000, 9, 7, 54.8, 7.3, 36, 21, 1.0, 49.4, 7.1, 36),
    "wall robot": Classified(5456, 24, 4, 51.2, 10.6, 70, 2, 0.99, 40.2, 9.3, 66),
    "nursery": Classified(12960, 8, 5, 436.6, 16.0, 18, 5, 1.0, 425, 15.9, 18),
    "page blocks": Classified(5473, 10, 5, 250.6, 16.4, 40, 2, 0.96, 119, 11.5, 30),
    "weight lifting": Classified(4024, 154, 5, 33.2, 7.7, 75, 1, 1.0, 31.6, 7.3, 74),
    "letter": Classified(20000, 16, 26, 3663, 21.3, 276, 20, 0.87, 2563.6, 19.4, 272),
    "nearest earth objects": Classified(90836, 7, 2, 11538, 59.7, 943, 73, 0.91, 183.6, 23.5, 355),
    "optdigits": Classified(3823, 64, 10, 398.4, 12.6, 121, 2, 0.89, 309.6, 11.4, 99),
    "heart disease indicators": Classified(
        253680, 21, 2, 54644, 46.5, 5802, 453, 0.91, 658.8, 18.0, 717
    ),
    "credit card fraud": Classified(1000000, 7, 2, 66.2, 8.0, 5832, 285, 1.0, 64.2, 8.0, 5836),
    "churn modeling": Classified(10000, 10, 2, 2165.6, 27.5, 155, 10, 0.85, 224.4, 13.8, 58),
    "covertype": Classified(581012, 54, 7, 42756.4, 41.3, 16573, 1023, 0.94, 42741, 38.6, 16740),
    "kdd99-10%": Classified(494020, 41, 23, 312.6, 14.8, 977, 245, 1.0, 286.6, 12.4, 957),
    "kdd99-full": Classified(4898431, 41, 23, 588.8, 20.8, 24926, 3140, 1.0, 541.6, 16.5, 29625),
}
SF_TABLE_7 = {
    "bike_sharing_hour": Regressed(
        17379, 12, 26433.8, 44.6, 1216, 26, 39.1, 64.2, 3540.8, 37.7, 250
    ),
    "california_housing": Regressed(
        20640, 9, 31704.8, 33.4, 1439, 40, 37773, 57633.3, 2110, 24.2, 349
    ),
    "wine_quality": Regressed(6497, 11, 2792.2, 27.3, 180, 6, 0.48, 0.83, 2739, 24.9, 169),
    "wave_energy_farm": Regressed(
        36043, 148, 17887.6, 34.4, 18630, 147, 2842.4, 7979.9, 16401.4, 24.9, 17035
    ),
    "applicances_energy": Regressed(
        19735, 27, 17787.4, 45.2, 2576, 40, 41.5, 94.6, 11123.8, 24.8, 1803
    ),
}
SF_LARGEST_SPLIT, SF_SPLITS = 0.04, 200  # [SF] 4: min_split from 0 to 4 % in steps of 0.02 %

SP_FIGURE_2 = {"1": 188.0, "full": 58.0}  # [SP] 4.2: 20 newsgroups, dense / sparse, by depth
SP_FIGURE_3 = (800.0, 900.0)  # [SP] 4.2: "a factor between"; a regression, KDD cup, density .014
SP_FIGURE_4 = {"shallow": 2.0, "full": 1.0}  # "approximately twice"; "for fully grown trees it is
#                                              the opposite": less than 1
SP_CROSSING = 0.2  # [SP] 4.3, figure 6: above this density the array is the better one
