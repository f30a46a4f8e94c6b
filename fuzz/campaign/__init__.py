"""Campaigns: very many drawn programs asked of oracles, by processes that share a directory."""
