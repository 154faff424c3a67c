"""``python -m tests.golden``: compare every model with its digest, or write the digests."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from tests.golden.models import CASES, FILE, digests_of, expected
from tests.golden.ways import WAYS


@click.command()
@click.option("--write", is_flag=True, help="Write the file of digests anew.")
def main(write: bool) -> None:
    """Compare the arrays of about 240 models with what they were, in every way to make them."""
    known = {} if write else expected()
    wrong: list[str] = []
    with click.progressbar(CASES, label="models", file=sys.stderr) as names:
        for name in names:
            if write:
                known[name] = digests_of(name, WAYS[0])
            for way in WAYS:
                if known.get(name) != digests_of(name, way):
                    wrong.append(f"{name}: {way}")
    told(wrong)
    if write:
        text = json.dumps(known, indent=0, ensure_ascii=True)
        FILE.write_text(text + "\n", encoding="ascii")
    elif set(known) != set(CASES):
        raise click.ClickException("the file is of other cases: write it with the commit before")


def told(wrong: Sequence[str]) -> None:
    """Say how many models differ; end with an error if any does."""
    click.echo(f"{len(CASES)} cases, {len(WAYS)} ways each: {len(wrong)} differ")
    if wrong:
        raise click.ClickException("\n".join(wrong))


if __name__ == "__main__":
    main()
