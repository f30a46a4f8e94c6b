"""Define generators: one function per opcode, ``generator(builder, shape) -> name``.

Each adds an instruction whose result has ``shape`` and returns its name; each family's
``GENERATORS`` says for which shapes.
"""
