"""Trees alone, in the form of model files: what a long fit leaves behind on its way.

The same archive as that of `dtrees.export`, with the trees and nothing else::

    model.json              "format": "dtrees trees", "version", "trees"
    trees/<name>.npy        arrays of the trees

What the trees are of, the codebook among it, is known to whoever reads them.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from dtrees.coding.codebook import CodeBook
from dtrees.core.model.tree import Tree
from dtrees.exceptions import ModelFileError
from dtrees.export.archive import Archive, Taken, write_to
from dtrees.export.books import expect
from dtrees.export.checks import check_trees
from dtrees.export.models import decode_trees, encode_trees, little

FORMAT = "dtrees trees"
VERSION = 1


def trees_to_bytes(trees: Sequence[Tree]) -> bytes:
    """Trees of one codebook as the bytes of a file.

    Parameters
    ----------
    trees : sequence of Tree
        At least one.
    """
    facts, arrays = encode_trees(tuple(trees), "compact")
    document = {"format": FORMAT, "version": VERSION, "trees": facts}
    file = io.BytesIO()
    write_to(file, document, {f"trees/{name}": little(each) for name, each in arrays.items()})
    return file.getvalue()


def trees_of_bytes(data: bytes, name: str, book: CodeBook) -> tuple[Tree, ...]:
    """The trees that were written, bit for bit.

    Parameters
    ----------
    data : bytes
    name : str
        Of the file, for messages.
    book : CodeBook
        Whose columns the trees ask.

    Raises
    ------
    ModelFileError
        The bytes are damaged, of a newer version, or no trees.
    """
    archive = Archive(name, False, data)
    document = archive.document
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name!r} is not a file of trees of dtrees.")
    if document.get("version") != VERSION:
        raise ModelFileError(
            f"The file of trees {name!r} has version {str(document.get('version'))[:20]}; this is "
            f"a dtrees that reads version {VERSION}."
        )
    try:
        arrays = Taken(
            {
                key.removeprefix("trees/"): each.astype(each.dtype.newbyteorder("="), copy=False)
                for key, each in archive.arrays().items()
            }
        )
        trees = decode_trees(document["trees"], arrays)
        expect(not arrays.left(), "a member that is part of no tree")
        check_trees(trees, book)
    except ModelFileError:
        raise
    except Exception as error:  # what is in the file may be anything
        raise archive.damaged(f"{type(error).__name__}: {error}") from error
    return trees
