"""Comparing two searches."""
