"""Run programs as legal compilers might: every perturbation stays within a budget."""
