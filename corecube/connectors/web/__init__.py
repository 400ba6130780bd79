"""Pages of a web site."""
