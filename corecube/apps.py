"""Application configuration."""

from django.apps import AppConfig
from django.conf import settings

from corecube import tracing
from corecube.metadata_addresses import refuse_connections
from corecube.shared_state.opening import open_store
from corecube.shared_state.store import provide


class CoreCubeConfig(AppConfig):
    """The governance app."""

    name = "corecube"

    def ready(self) -> None:
        """Guard outgoing connections, load Celery, register checks, receivers and shared store, and begin to trace."""
        from corecube import (  # noqa: PLC0415 -- models must be loaded first
            celery,  # noqa: F401
            checks,  # noqa: F401
            database,  # noqa: F401
            receivers,  # noqa: F401
            sign_ins,  # noqa: F401
        )

        refuse_connections()
        provide(open_store)
        if settings.OTEL_EXPORTER_OTLP_ENDPOINT:
            tracing.begin()
