"""``python -m tests.fuzz NAME ...``: the fuzzer of that name, a module of this folder."""

import sys
from importlib import import_module

sys.exit(import_module(f"tests.fuzz.{sys.argv[1]}").main(sys.argv[2:]))
