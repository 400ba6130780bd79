"""Connections, their jobs and what they could not take in."""
