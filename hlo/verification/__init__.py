"""Verify modules: constraints on single ops, and on what spans instructions (callees, async chains,
replica groups, the entry layout)."""
