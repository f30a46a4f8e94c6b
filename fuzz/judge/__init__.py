"""Judge a compiler's results: which failures are proven, and what HLO leaves undefined."""
