"""Application configuration."""

from django.apps import AppConfig


class RetrievalConfig(AppConfig):
    """The engine's app."""

    name = "retrieval"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connect the receivers."""
        from retrieval import receivers  # noqa: F401, PLC0415 -- models must be loaded first
