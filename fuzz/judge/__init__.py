"""Judge what a compiler did with a program: what failed, and what the language leaves open."""
