"""List where XLA (jaxlib 0.10.2) accepts what :func:`hlo.verify` rejects, and why.

An instruction that violates a constraint is keyed by ``(opcode, label)``.
"""

from __future__ import annotations

# What XLA's verifier takes all the same.
STRICTER = {
    ("add-dependency", "shape"): "the result is the operand",
    ("after-all", "shape"): "a token is no number",
    ("all-reduce", "C2"): "to_apply must take the elements",
    ("bitcast", "C1"): "bytes would be read that are not there",
    ("broadcast", "C1"): "a diagonal: StableHLO's dimensions are distinct, too",
    ("clamp", "C2"): "complex numbers have no order",
    ("collective-broadcast", "C2"): "a rank that is in one group twice",
    ("collective-broadcast", "shape"): "one result for each operand",
    ("compare", "C4"): "complex numbers have no order",
    ("concatenate", "callee"): "more bytes than 64 bits count",
    ("concatenate", "size"): "more bytes than 64 bits count",
    ("convolution", "C3"): "no groups at all",
    ("dot", "operands"): "operands of sparsity, which the language has no more",
    ("fft", "C3"): "fft_length is another than the operand's",
    ("gather", "C5"): "batching dimensions of different sizes",
    ("infeed", "C2"): "what comes last is a token",
    ("map", "C2"): "dimensions are all, in order",
    ("maximum", "C2"): "complex numbers have no order",
    ("mulhi", "C2"): "only integers have a high half",
    ("outfeed", "shape"): "the result is a token",
    ("pad", "size"): "more bytes than 64 bits count",
    ("ragged-all-to-all", "C1"): "rows of different sizes",
    ("ragged-all-to-all", "C2"): "offsets that are no integers",
    ("ragged-dot", "C8"): "sizes that are no integers",
    ("reduce-scatter", "C4"): "to_apply must take the elements",
    ("remainder", "C2"): "complex numbers have no remainder",
    ("rng-bit-generator", "C2"): "a state of other words than the algorithm's",
    ("rng-bit-generator", "C3"): "random bits are of whole bytes, and not of pairs",
    ("rng-bit-generator", "operands"): "one state",
    ("scaled-dot", "C6"): "scales are floats",
    ("scatter", "C4"): "to_apply must take the elements, of their precision",
    ("select-and-scatter", "C3"): "select must take the elements, of their precision",
    ("shift-left", "C2"): "only integers have bits to shift",
    ("sort", "C2"): "a negative dimension",
    ("sort", "callee"): "complex numbers have no order",
    ("stochastic-convert", "C3"): "to an integer",
    ("topk", "C1"): "complex numbers have no order, scalars no last dimension",
}
# What is gone before XLA's verifier looks: a text becomes StableHLO first.
CONVERTED = {
    ("call", "C1"): "tuples are opened: one of nothing is no operand",
    ("conditional", "C3"): "operands that a branch makes nothing of are not compared",
    ("convolution", "C2"): "the window has the kernel's sizes",
    ("fusion", "shape"): "the result is that of the computation",
    ("ragged-all-to-all", "shape"): "on one rank it has the output's shape",
    ("reduce-scatter", "C3"): "on one rank it has the operand's type",
    ("rng", "C2"): "the first two operands count",
    ("set-dimension-size", "C3"): "the bound is the operand's size",
}
# What XLA's parser says of valid programs.
UNREAD = {
    'unexpected attribute "is_stable"': "an attribute of topk that is newer",
    "is out of range for literal's primitive type C": "the largest number, as XLA prints it",
}
