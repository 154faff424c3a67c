"""Model files: fitted estimators that outlive the process, without pickle.

    save(model, path)           a fitted estimator of dtrees
    load(path, mmap=False)      the same estimator

A file is a zip archive of uncompressed members, written by the standard library::

    model.json              what the model is, and every value that is not an array
    codebook/<name>.npy     arrays of the codebook
    trees/<name>.npy        arrays of the trees
    values/<number>.npy     arrays among parameters and attributes

Any program that reads zip, JSON and NumPy's ``.npy`` can read it. Data of members start at
multiples of 64 bytes of the file, so that arrays can be used where they are, in memory or in a
memory map. The bytes are a function of the model: no times, no names of machines.

model.json
----------
``format``
    "dtrees model".
``version``
    `dtrees.export.models.VERSION`, an integer. A reader refuses what is newer than itself.
``written_by``
    Version of dtrees, for people.
``estimator``
    Name of the class, one of `dtrees.export.models.ESTIMATORS`.
``parameters``, ``attributes``
    By name, encoded as `dtrees.export.values` says.
``codebook``
    ``n_columns``, ``handle_unknown``, ``exact`` (``high`` is ``low``), ``feature_names``,
    ``categories``: pairs of column and categories, encoded. Arrays: ``n_codes``, ``n_ordered``,
    ``n_values`` (how many of ``low`` and ``high`` are a column's), ``low``, ``high``, ``exact``,
    ``units``, as in `dtrees.coding.codebook.CodeBook`, integers in the narrowest type; and
    ``saw_missing``, which columns had missing values at fit.
``trees``
    ``layout``, ``n_columns``, ``criterion``, and for "compact" also ``n_statistics``, and
    ``has_impurity`` where no node has one (boosted models). Of several targets of classes,
    ``n_classes`` of each.

    "compact": the arrays of `dtrees.core.model.packing`. A few bytes per node; trees are computed
    from them when the file is opened.

    "flat": the arrays of `dtrees.core.model.tree.Tree`, all trees one behind the other, with
    ``n_nodes``, ``n_words``, ``weight_unit``, ``unit`` and ``offset`` of each. Ten times as large;
    with ``mmap=True`` nothing is copied, and processes that open the same file share its memory.

Pipelines and other models of scikit-learn with ours inside are files of skops, in which such an
archive stands for each of our estimators (`dtrees.export.skops_files`).

What is checked
---------------
A file may come from anywhere. Nothing in it is executed or unpickled, classes are looked up in a
list. Every member has a checksum (CRC-32), which finds every changed byte and nearly every other
damage; beyond that, every number that a reader relies on (types, shapes, children, columns,
codes, offsets) is checked, so a file that was made to deceive gives an error too, or predicts what
it says, and nothing worse. Members are those above and no others, stand one behind the other, and
are stored as they are, so no file takes more than its size times a constant. Numbers among the
values are bounded (`dtrees.export.values`); parameters and attributes are of the types and in the
ranges that the estimator has. All errors are `dtrees.exceptions.ModelFileError`.
"""

from dtrees.export.dataframe import trees_to_dataframe
from dtrees.export.lightgbm_text import to_lightgbm
from dtrees.export.model_nodes import Node, nodes
from dtrees.export.models import load, save
from dtrees.export.onnx_graph import to_onnx
from dtrees.export.sklearn_trees import to_sklearn

__all__ = [
    "Node",
    "load",
    "nodes",
    "save",
    "to_lightgbm",
    "to_onnx",
    "to_sklearn",
    "trees_to_dataframe",
]
