"""Application configuration."""

from django.apps import AppConfig


class ExplorerConfig(AppConfig):
    """The console app."""

    name = "explorer"
