"""Which of several columns comes first where their splits gain the same."""

from __future__ import annotations

from collections.abc import Callable

WORD = 2**64
TIES = 2  # what a node's key is mixed with for its ties


def mixed(a: int, b: int) -> int:
    """Two words of 64 bits as one (splitmix64)."""
    x = (a + 0x9E3779B97F4A7C15 * (b + 1)) % WORD
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


ROOT = 0


def child(path: int, is_left: bool) -> int:
    """The name of a child, from that of its parent."""
    return mixed(path, 1 if is_left else 2)


def order_of_columns(rules, path: int) -> Callable[[int], tuple[int, int]]:
    """A key to sort the columns of a node by: the first of them wins a tie.

    rules : with ``random_ties``, ``seed`` and ``tree``.
    """
    if not rules.random_ties:
        return lambda column: (0, column)
    of_node = mixed(mixed(mixed(rules.seed, rules.tree), path), TIES)
    return lambda column: (-mixed(of_node, column), column)
