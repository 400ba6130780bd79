"""Spaces of a Confluence site, Cloud or Data Center."""

from corecube.connectors.confluence.connector import ConfluenceConnector

__all__ = ["ConfluenceConnector"]
