"""Campaigns: drawn examples asked of oracles, by processes that share a directory."""
