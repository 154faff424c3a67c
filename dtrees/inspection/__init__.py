"""What a grown tree has to say: importances, and its rules as text."""

from dtrees.inspection.importance import impurity_importances
from dtrees.inspection.text import export_text

__all__ = ["export_text", "impurity_importances"]
