"""Results kept for later evaluations, trips and calls, and facts of texts that all of them need."""
