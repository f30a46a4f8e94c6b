"""Score PyTorch's operations on this backend beside eager, compared as PyTorch's tests compare."""
