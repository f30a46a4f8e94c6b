"""Rank how tightly C text binds (operator precedence), from tightest to loosest.

An operand gets parentheses where the operator around it binds more tightly than it does.
"""

ATOM, UNARY, PRODUCT, SUM, OTHER = range(5)
