"""Digests of models that no change of the house may change: see `models.py`."""
