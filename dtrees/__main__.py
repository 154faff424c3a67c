"""``python -m dtrees``, and the command ``dtrees``."""

import atexit
import gc
import sys

OBJECTS_BETWEEN_COLLECTIONS = 100_000  # instead of 700


def run(name: str = "dtrees") -> None:
    """Ask the command line, or say how to get it.

    What is imported stays to the end. The garbage collector would look at it again and again, and
    once more when the process ends, which took a fifth of the processor time of a short command.
    """
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    atexit.register(gc.freeze)
    try:
        from dtrees.cli import main
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit(
            "Error: the command line needs click, which is not installed: "
            "pip install 'dask-dtrees[cli]'"
        )
    main(prog_name=name)


if __name__ == "__main__":
    run("python -m dtrees")
