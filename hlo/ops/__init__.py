"""What is legal, and the shape of the result: the column of shapes.

One function per opcode (``hlo.walk.function_name``): operands are shapes, attributes are keywords,
the result is the shape of the result; its layout means nothing. The signatures are those that
every other column has. Each docstring lists the op's constraints, C1, C2, …: the labels of the
violations that ``hlo.verify`` reports.
"""
