"""Programs in processes of their own, which are forked from one that has the package loaded.

A new Python takes more than a second of processor time to load what `dtrees` needs; a fork takes a
twentieth. Whoever asks what is loaded, and when, starts a new Python.
"""

import os
import runpy
import signal
import sys
import tempfile
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import CompletedProcess

from tests.fuzz.children import LOADED

ROOT = Path(__file__).resolve().parent.parent


def run_forked(*words, **environment):
    """What ``python WORDS`` has written, and how it ended.

    The words are ``-m module ...`` or ``-c code ...``.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code = start_forked(out.fileno(), err.fileno(), *words, **environment).wait()
        written = []
        for file in (out, err):
            file.seek(0)
            written.append(file.read().decode("utf-8"))
    return CompletedProcess(words, code, *written)


def start_forked(out, err, *words, **environment):
    """Begin a program whose streams are these file descriptors.

    Returns
    -------
    Running
    """
    context = get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    with _connection(out) as out_there, _connection(err) as err_there:
        arguments = (out_there, err_there, words, dict(os.environ | environment))
        process = context.Process(target=_become, args=arguments)
        process.start()
    return Running(process)


class Running:
    """A program that runs; a part of what `subprocess.Popen` can do."""

    def __init__(self, process):
        self._process = process

    def wait(self, timeout=None):
        """The code of its end, once it has ended."""
        self._process.join(timeout)
        assert self._process.exitcode is not None, f"it has not ended after {timeout} s"
        return self._process.exitcode

    def interrupt(self):
        """Send what Ctrl-C sends."""
        os.kill(self._process.pid, signal.SIGINT)

    def end(self):
        """End it, if it has not ended."""
        self._process.kill()
        self._process.join()


def _connection(descriptor):
    """A copy of a file descriptor that goes to another process with its arguments."""
    return Connection(os.dup(descriptor), readable=False)


def _become(out, err, words, environment):
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    for number, connection in ((1, out), (2, err)):
        os.dup2(connection.fileno(), number)
        connection.close()
    sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding=encoding, errors="backslashreplace", buffering=1, closefd=False
    )
    kind, program, *arguments = map(str, words)
    sys.argv = ["-c", *arguments]
    if kind == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
