"""Functions as users of PyTorch write them every day, all written before any was judged."""
