"""Name how tightly a rendered text binds, from tightest to loosest: as an operand it keeps its
parentheses where the operator around it binds tighter."""

ATOM, UNARY, PRODUCT, SUM, OTHER = range(5)
