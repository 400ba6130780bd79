"""How likely the packed passages answer the question: signals, fits, verdicts."""
