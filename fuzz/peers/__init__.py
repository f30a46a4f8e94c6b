"""Run peers, other implementations of HLO, on a program's text."""
