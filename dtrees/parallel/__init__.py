"""Where work runs: the only floor that imports Dask.

Everything below takes a `Runner` (`dtrees.typing`) as an argument and does not know what runs
its tasks.
"""

from dask.utils import format_bytes, format_time

from dtrees.parallel.boosted import boost_apart, place_of_boosting, place_of_rows
from dtrees.parallel.boosted_members import SpreadModel, boost_partitioned
from dtrees.parallel.checkpoint import Checkpoint, SavedTrees
from dtrees.parallel.clusters import (
    connected,
    read_files,
    regime_asked_for,
    write_csv,
    write_parquet,
)
from dtrees.parallel.coded_partitions import CodedPartitions, learn_rows, tables_kept
from dtrees.parallel.dask_predict import Answer, Model, map_parts, map_rows
from dtrees.parallel.distributed_apply import (
    PartitionedRows,
    RequestedRows,
    RowsOfFold,
    Side,
    Walk,
)
from dtrees.parallel.encoding import check_table, encode_partitions
from dtrees.parallel.executors import computed
from dtrees.parallel.fit_statistics import FitStatistics
from dtrees.parallel.forest_members import MemberOfSequence
from dtrees.parallel.growing import grow_sequence, grow_sets, grow_trees
from dtrees.parallel.lazy_collections import are_alike, is_lazy
from dtrees.parallel.partitions import (
    PartitionedTable,
    admitted,
    check_lengths,
    known_length,
    lazy_keys,
    rows_as_array,
    rows_here,
)
from dtrees.parallel.regimes import REGIMES, Choice, is_free
from dtrees.parallel.row_columns import (
    LazyColumn,
    RowColumns,
    admitted_where_they_are,
)
from dtrees.parallel.threads import LocalRunner, threaded

__all__ = [
    "REGIMES",
    "Answer",
    "Checkpoint",
    "Choice",
    "CodedPartitions",
    "FitStatistics",
    "LazyColumn",
    "LocalRunner",
    "MemberOfSequence",
    "Model",
    "PartitionedRows",
    "PartitionedTable",
    "RequestedRows",
    "RowColumns",
    "RowsOfFold",
    "SavedTrees",
    "Side",
    "SpreadModel",
    "Walk",
    "admitted",
    "admitted_where_they_are",
    "are_alike",
    "boost_apart",
    "boost_partitioned",
    "check_lengths",
    "check_table",
    "computed",
    "connected",
    "encode_partitions",
    "format_bytes",
    "format_time",
    "grow_sequence",
    "grow_sets",
    "grow_trees",
    "is_free",
    "is_lazy",
    "known_length",
    "lazy_keys",
    "learn_rows",
    "map_parts",
    "map_rows",
    "place_of_boosting",
    "place_of_rows",
    "read_files",
    "regime_asked_for",
    "rows_as_array",
    "rows_here",
    "tables_kept",
    "threaded",
    "write_csv",
    "write_parquet",
]
