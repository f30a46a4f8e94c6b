"""What is legal, and the shape of the result: the column of shapes.

One function per opcode (``hlo.walk.function_name``): operands are shapes, attributes are keywords,
the result is the shape of the result, without a layout. The signatures are those that every other
column has; an operand annotated ``ArrayShape`` is an array that holds data, one annotated
``Shape`` may be anything. Operands arrive without layouts. Constraints are labelled C1, C2, … in
the order in which they are checked. Source: XLA's ``shape_inference.cc`` and ``hlo_verifier.cc``.
"""
