"""The IR: SSA graphs with typed values, their text form, and the checks that a graph is well formed.

Import from here: `from tessiq_core.ir import Graph, parse_graph, print_graph`. Arithmetic on extents is the module
`tessiq_core.ir.extent`.
"""

from __future__ import annotations

from tessiq_core.ir import extent
from tessiq_core.ir.attributes import HOLE, Attribute, Hole, Label, attribute_key, holes
from tessiq_core.ir.extent import UNKNOWN, Expression, Extent, KnownExtent, Unknown, provably_equal, symbol
from tessiq_core.ir.golden import Golden, split_golden
from tessiq_core.ir.graph import DECISION_PREFIX, Graph, Node, Use, Value
from tessiq_core.ir.parser import parse_attribute, parse_extent, parse_graph, parse_type
from tessiq_core.ir.pattern import RewritePattern
from tessiq_core.ir.printer import print_attribute, print_graph, print_node, print_type
from tessiq_core.ir.types import (
    BF16,
    BOOL,
    ELEMENT_TYPES,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    ElementType,
    OpaqueType,
    ScalarType,
    TensorType,
    ValueType,
    opaque_element,
    packed_strides,
    tensor_type,
)
from tessiq_core.ir.verifier import CHECKS, Check, Problem, find_problem, verify

__all__ = [
    "BF16",
    "BOOL",
    "CHECKS",
    "DECISION_PREFIX",
    "ELEMENT_TYPES",
    "F16",
    "F32",
    "F64",
    "HOLE",
    "I8",
    "I16",
    "I32",
    "I64",
    "U8",
    "UNKNOWN",
    "Attribute",
    "Check",
    "ElementType",
    "Expression",
    "Extent",
    "Golden",
    "Graph",
    "Hole",
    "KnownExtent",
    "Label",
    "Node",
    "OpaqueType",
    "Problem",
    "RewritePattern",
    "ScalarType",
    "TensorType",
    "Unknown",
    "Use",
    "Value",
    "ValueType",
    "attribute_key",
    "extent",
    "find_problem",
    "holes",
    "opaque_element",
    "packed_strides",
    "parse_attribute",
    "parse_extent",
    "parse_graph",
    "parse_type",
    "print_attribute",
    "print_graph",
    "print_node",
    "print_type",
    "provably_equal",
    "split_golden",
    "symbol",
    "tensor_type",
    "verify",
]
