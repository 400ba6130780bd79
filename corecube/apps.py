"""Application configuration."""

from django.apps import AppConfig


class CoreCubeConfig(AppConfig):
    """The governance app."""

    name = "corecube"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from corecube import checks  # noqa: F401, PLC0415 -- importing registers them
