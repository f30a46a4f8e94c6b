"""More functions, written by hand as textbooks and libraries have them, by family."""
