"""Connections, their jobs and their problems."""
