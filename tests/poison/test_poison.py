"""Memory that is full of a byte shows what is read before it is written."""

import subprocess
import sys

from tests.poison.run import ROOT, environment

FILLED = """
import ctypes, mmap, numpy as np, sitecustomize
C = ctypes.CDLL(None)
C.malloc.restype = C.realloc.restype = ctypes.c_void_p
for byte in (0xFF, 0x01):
    sitecustomize.poison_with(byte)
    block = C.malloc(100)
    large = C.realloc(ctypes.c_void_p(C.malloc(8)), 100_000)
    cells = np.concatenate([
        np.frombuffer(ctypes.string_at(block, 100), np.uint8),
        np.frombuffer(ctypes.string_at(large, 100_000), np.uint8),
        np.frombuffer(mmap.mmap(-1, 5000), np.uint8),
        np.empty(3, np.uint8),
        np.empty((3, 700), np.uint8, order="F").ravel(),
        np.empty_like(np.ones((5, 2), np.uint8)[:, ::-1]).ravel(),
    ])
    assert (cells == byte).all(), (byte, cells)
    assert not np.zeros(9).any() and not np.zeros(10**6).any()
"""


def run(*command):
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment("FF"),
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()


def test_memory_is_filled():
    assert run("-c", FILLED) == []


def test_a_planted_bug_is_told():
    right, same, wrong, other = run("-m", "tests.poison.planted")
    assert right == same
    assert len({right, wrong, other}) == 3
