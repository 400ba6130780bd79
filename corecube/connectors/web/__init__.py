"""Pages of a web site."""

from corecube.connectors.web.connector import WebConnector

__all__ = ["WebConnector"]
