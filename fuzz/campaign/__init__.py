"""Run campaigns: examples are drawn and tested in chunks, by processes that share a directory."""
