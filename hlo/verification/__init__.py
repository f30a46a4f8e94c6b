"""Verify what holds between instructions: callees, async chains, replica groups, entry layout."""
