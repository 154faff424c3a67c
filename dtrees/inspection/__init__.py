"""What grown trees have to say: importances, rules as text, and what several trees agree on."""

from dtrees.inspection.importance import impurity_importances
from dtrees.inspection.overlay import shared_forest
from dtrees.inspection.plots import plot_shared_forest
from dtrees.inspection.stability import stability_report
from dtrees.inspection.text import export_text

__all__ = [
    "export_text",
    "impurity_importances",
    "plot_shared_forest",
    "shared_forest",
    "stability_report",
]
