"""Emit files for use without Python: C sources, headers, a manifest, a test of recorded bits."""
