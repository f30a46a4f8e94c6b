"""One function per opcode: ``generator(builder, shape) -> name`` adds an instruction whose result
has ``shape`` and returns its name. Each family's ``GENERATORS`` says for which shapes it can."""
