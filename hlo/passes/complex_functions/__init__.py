"""Functions of complex numbers by functions of real ones, for numerics that allow it."""
