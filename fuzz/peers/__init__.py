"""Peers: other implementations of HLO, run on a program's text."""
