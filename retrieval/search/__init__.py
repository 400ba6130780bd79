"""The one way to search: the request, its preparation, the run, and its record."""
