"""The page of feedback."""
