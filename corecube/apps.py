"""Application configuration."""

from django.apps import AppConfig

from corecube.metadata_addresses import refuse_connections


class CoreCubeConfig(AppConfig):
    """The governance app."""

    name = "corecube"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Guard outgoing connections, register the system checks and connect the receivers."""
        from corecube import checks, database, receivers, sign_ins  # noqa: F401, PLC0415 -- models must be loaded first

        refuse_connections()
