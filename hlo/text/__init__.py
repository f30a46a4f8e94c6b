"""Read and write HLO text: the parser, the printer, and a codec for each attribute."""
