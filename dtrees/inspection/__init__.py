"""Grown trees explained: importances, rules as text, and what several trees agree on."""

from dtrees.inspection.alignment import NodeTest
from dtrees.inspection.dependence import JointDependence, PartialDependence, partial_dependence
from dtrees.inspection.graphviz import export_graphviz
from dtrees.inspection.importance import (
    held_out_importances,
    impurity_importances,
    oob_importances,
    split_counts,
)
from dtrees.inspection.importance_plot import plot_importance
from dtrees.inspection.metric_plot import plot_metric
from dtrees.inspection.overlay import SharedForest, SharedNode, shared_forest
from dtrees.inspection.plots import plot_shared_forest
from dtrees.inspection.proximity import outlier_scores, proximities
from dtrees.inspection.shap import Explanation, shap_values
from dtrees.inspection.shap_plots import plot_beeswarm, plot_shap_dependence, plot_waterfall
from dtrees.inspection.stability import (
    ImportanceStability,
    LevelStability,
    StabilityReport,
    stability_report,
)
from dtrees.inspection.text import export_text
from dtrees.inspection.tree_plot import plot_tree

__all__ = [
    "Explanation",
    "ImportanceStability",
    "JointDependence",
    "LevelStability",
    "NodeTest",
    "PartialDependence",
    "SharedForest",
    "SharedNode",
    "StabilityReport",
    "export_graphviz",
    "export_text",
    "held_out_importances",
    "impurity_importances",
    "oob_importances",
    "outlier_scores",
    "partial_dependence",
    "plot_beeswarm",
    "plot_importance",
    "plot_metric",
    "plot_shap_dependence",
    "plot_shared_forest",
    "plot_tree",
    "plot_waterfall",
    "proximities",
    "shap_values",
    "shared_forest",
    "split_counts",
    "stability_report",
]
