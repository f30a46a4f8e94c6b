"""Other implementations of the language: each answers a program's text with what it computes."""
