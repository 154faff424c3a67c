"""Codes to trees, in one process: statistics, splits, growth, pruning and prediction.

`grower.grow` is the driver; `source` is where rows are; `model` is what has grown. The kernels
(`_*.pyx`) are called by these alone.
"""
