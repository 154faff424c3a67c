"""Declarations of open nodes; see _nodes.pyx."""
from libc.stdint cimport int64_t, uint32_t

from dtrees.core._columns cimport Column
from dtrees.core._plan cimport Plan
from dtrees.core._reader cimport Reader
from dtrees.core._route cimport Route
from dtrees.core._structs cimport Payload, Totals
from dtrees.core._workspace cimport OpenNode, Workspace

cdef void free_node(OpenNode* node) noexcept nogil
cdef void clear_totals(Totals* totals) noexcept nogil
cdef void add_to_totals(const Payload* payload, const Plan* plan, int64_t row, Totals* totals,
                        int64_t* class_totals) noexcept nogil
cdef void sum_rows(const Payload* payload, const Plan* plan, const uint32_t* rows, int64_t n,
                   Totals* totals, int64_t* class_totals) noexcept nogil
cdef void describe(OpenNode* node, const Plan* plan) noexcept nogil
cdef void open_children(const Plan* plan, Workspace* w, const OpenNode* node, int64_t record,
                        OpenNode* left, OpenNode* right) noexcept nogil
cdef void open_items(const Plan* plan, Reader* reader, const OpenNode* node, int64_t record,
                     const Route* route, const Column* column, OpenNode* left,
                     OpenNode* right) noexcept nogil
