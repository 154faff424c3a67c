"""Lists of rows, and columns that are read when they are drawn.

    rows of a node   [ row times label | ... ]  ──▶  codes of a drawn column  ──▶  bins or entries

A node that searches few columns of many does not keep the others in order: it reads the codes of
its rows afresh, O(rows) per drawn column. Random splits need a column's range only.
"""
