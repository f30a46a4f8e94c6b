"""The loop IR: index arithmetic, scopes, and the elements that loops read and write."""
