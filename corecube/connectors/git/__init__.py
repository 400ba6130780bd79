"""A branch of a git repository."""
