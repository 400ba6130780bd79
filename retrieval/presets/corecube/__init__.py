"""The preset `corecube`: governed hybrid search."""
