"""``python -m dtrees``."""

from dtrees.cli import main

if __name__ == "__main__":
    main(prog_name="python -m dtrees")
