"""Application configuration."""

from django.apps import AppConfig


class ExplorerConfig(AppConfig):
    """The pages."""

    name = "explorer"
