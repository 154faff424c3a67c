import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import CancelledError

import joblib
import pytest

from dtrees.parallel import LocalRunner, effective_n_jobs, threaded


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 9])
def test_results_come_in_order(n_threads, n_tasks):
    run = LocalRunner(n_threads)
    tasks = [lambda i=i: (time.sleep(0.001 * (n_tasks - i)), i)[1] for i in range(n_tasks)]
    assert run(tasks) == list(range(n_tasks))
    assert not run.cancelled.is_set()


@pytest.mark.parametrize("value", [None, (1, 2), [3], {"a": 1}, "dtrees-0", ("dtrees-0",)])
def test_a_result_may_be_anything(value):
    assert LocalRunner(2)([lambda: value] * 3) == [value] * 3


def test_one_thread_or_one_task_stays_in_the_calling_thread():
    here = threading.get_ident()
    assert LocalRunner(1)([threading.get_ident] * 3) == [here] * 3
    assert LocalRunner(4)([threading.get_ident]) == [here]


def test_two_threads_work_at_the_same_time():
    meet = threading.Barrier(2, timeout=20)
    assert sorted(LocalRunner(2)([meet.wait, meet.wait])) == [0, 1]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_is_passed_on_and_cancels_the_rest(n_threads):
    run = LocalRunner(n_threads)
    begun = []

    def fail():
        raise ZeroDivisionError("told so")

    def wait():
        begun.append(1)
        run.cancelled.wait(20)

    with pytest.raises(ZeroDivisionError, match="told so"):
        run([fail] + [wait] * 20)
    assert run.cancelled.is_set()
    assert len(begun) <= 2
    with pytest.raises(CancelledError):
        run([wait])


def test_a_runner_runs_inside_threads_and_tasks():
    def inner():
        return LocalRunner(2)([lambda: 1, lambda: 2])

    assert LocalRunner(2)([inner, inner, inner]) == [[1, 2]] * 3
    assert (
        joblib.Parallel(n_jobs=2, prefer="threads")(joblib.delayed(inner)() for _ in range(3))
        == [[1, 2]] * 3
    )


def test_effective_n_jobs():
    cores = joblib.cpu_count()
    assert effective_n_jobs(None) == 1
    assert effective_n_jobs(3) == 3
    assert effective_n_jobs(-1) == cores
    assert effective_n_jobs(-10_000) == 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert effective_n_jobs(None) == min(2, cores)
    with pytest.raises(ValueError, match="n_jobs"):
        effective_n_jobs(0)
    assert threaded(3).n_threads == 3
    assert threaded(None).n_threads == 1
    assert repr(threaded(2)) == "LocalRunner(n_threads=2)"


def interrupted(program: str) -> tuple[float, float]:
    """Seconds between Ctrl-C and its exception in `run`, and until all threads are idle again.

    The program defines ``run`` and ``n_threads``; Ctrl-C is sent a moment after ``run`` begins.
    """
    program = textwrap.dedent(program) + textwrap.dedent("""
        import time
        from dtrees.parallel import LocalRunner

        print("ready", flush=True)
        try:
            run()
        except KeyboardInterrupt:
            print(time.time())
            LocalRunner(n_threads)([lambda: time.sleep(0.01)] * n_threads)  # on the same threads
            print(time.time())
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n", process.communicate()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        sent = time.time()
        output, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 0, errors
    raised, idle = (float(line) - sent for line in output.split())
    return raised, idle


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent in another way")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_ends_the_work_within_a_second(n_threads):
    raised, idle = interrupted(f"""
        import time
        from dtrees.parallel import LocalRunner

        n_threads = {n_threads}
        runner = LocalRunner(n_threads)

        def slices():
            for _ in range(6000):
                if runner.cancelled.is_set():
                    break
                time.sleep(0.005)

        def run():
            runner([slices] * 8)
    """)
    assert raised < 0.5
    assert idle < 1
