"""Rewrite windows that slide over arrays to forms whose kernels take less time."""
