"""Application configuration."""

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured

from corecube.errors import ConfigError


class RetrievalConfig(AppConfig):
    """The engine's app."""

    name = "retrieval"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the system checks, connect the receivers, and refuse settings that do not fit together."""
        from retrieval import receivers  # noqa: F401, PLC0415 -- models must be loaded first
        from retrieval.index.reranking import configured_service  # noqa: PLC0415 -- reads the settings

        try:
            configured_service()
        except ConfigError as error:
            raise ImproperlyConfigured(f"{error} Set CORECUBE_RERANKER_KIND, _URL and _MODEL.") from error
