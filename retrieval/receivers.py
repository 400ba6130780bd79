"""A connection's documents go with it, whoever deletes it."""

from typing import Any

from django.db.models.signals import pre_delete
from django.dispatch import receiver

from corecube.models import Connection
from retrieval.ingest.services import delete_all_documents


@receiver(pre_delete, sender=Connection)
def delete_documents_first(instance: Connection, **_: Any) -> None:  # noqa: ANN401 -- Django's signature
    """Delete the connection's documents in the same transaction."""
    delete_all_documents(instance)
