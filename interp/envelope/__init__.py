"""The error envelope: enclose every result that a legal compiler may give, by intervals."""
