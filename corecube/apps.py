"""Application configuration."""

from django.apps import AppConfig

from corecube.metadata_addresses import refuse_connections
from corecube.shared_state.opening import open_store
from corecube.shared_state.store import provide


class CoreCubeConfig(AppConfig):
    """The governance app."""

    name = "corecube"

    def ready(self) -> None:
        """Guard outgoing connections, load the Celery application, and register checks, receivers and shared store."""
        from corecube import (  # noqa: PLC0415 -- models must be loaded first
            celery,  # noqa: F401
            checks,  # noqa: F401
            database,  # noqa: F401
            receivers,  # noqa: F401
            sign_ins,  # noqa: F401
        )

        refuse_connections()
        provide(open_store)
