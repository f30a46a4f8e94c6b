"""Array algorithms that several ops need: sorting, folds, scattered updates, Fourier transforms."""
