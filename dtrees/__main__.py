"""``python -m dtrees``, and the command ``dtrees``."""

import sys


def run(name: str = "dtrees") -> None:
    """Ask the command line, or say how to get it."""
    try:
        from dtrees.cli import main
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.exit(
            "Error: the command line needs click, which is not installed: pip install 'dtrees[cli]'"
        )
    main(prog_name=name)


if __name__ == "__main__":
    run("python -m dtrees")
