"""Write source files for people who compile them elsewhere."""
