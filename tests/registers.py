"""Kernels that use registers of 256 bits, or none of them."""

from contextlib import contextmanager

from dtrees.core.data import _cpu


@contextmanager
def wide_registers(wide):
    """Let kernels of a block use registers of 256 bits, where there are any, or not."""
    before = _cpu.use_wide(wide)
    try:
        yield
    finally:
        _cpu.use_wide(before)
