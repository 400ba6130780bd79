"""A branch of a git repository."""

from corecube.connectors.git.connector import GitConnector

__all__ = ["GitConnector"]
