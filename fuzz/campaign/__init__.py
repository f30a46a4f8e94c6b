"""Campaigns: very many examples, drawn and tested by chunks in processes that share a directory."""
