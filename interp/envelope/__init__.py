"""All results that a legal compiler may give, as enclosures of every element: see ``verdict``."""
