"""One side of `compare`: does the work of cases of the tree that it stands in, when it is asked.

It is run as a file, so that an earlier tree, which may not have it, can be measured by it. A line
of JSON comes in, and one goes out:

    {"prepare": "letter"}     "" or why it cannot be done
    {"work": 3}               seconds of so many times, and what is compared: seconds of one, or MB
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

from benchmarks.__main__ import CASES
from benchmarks.cases import Contest, Fit, Scale, Skipped
from benchmarks.measure import memory, timed


def main() -> None:
    """Answer until nothing more is asked."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what cases print is no answer
    cases = {case.name: case for case in CASES}
    prepared: Any = None
    for line in sys.stdin:
        question = json.loads(line)
        answer: Any
        if "prepare" in question:
            name = question["prepare"]
            try:
                if name not in cases:
                    raise Skipped("there is no such case")
                prepared, answer = cases[name].prepare(Scale()), ""
                if not isinstance(prepared, (Contest, Fit)):
                    raise Skipped("its lines are no work of ours alone")
            except Skipped as why:
                answer = str(why)
        elif isinstance(prepared, Fit):
            found = memory(prepared)
            answer = found.seconds, found.peak_mb
        else:
            seconds = sum(timed(prepared.ours)[0] for _ in range(question["work"]))
            answer = seconds, seconds / question["work"]
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
