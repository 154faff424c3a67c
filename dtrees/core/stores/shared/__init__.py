"""Rows with their cell and their mask, for several training sets that grow together.

    row  cell  mask            a shared node has members (sets), and counts its rows once, by cell;
    17   3     0b1110111       a member's sums are those of all cells but its own

Members that choose the same column stay together; those that differ go apart ([CV] 2.2 and 3.4).

    `_shared_nodes`    nodes, and how their rows go to the children
    `_shared_entries`  sparse columns: entries that move with the rows, or are drawn
    `_shared_store`    the search of a node, column by column, by code or interval; its children
"""
