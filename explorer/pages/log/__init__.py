"""The query log."""
