"""A connection's documents go with it, whoever deletes it."""

from typing import Any

from django.db.models.signals import pre_delete
from django.dispatch import receiver

from corecube.models import Connection
from retrieval.ingest.services import delete_all_documents


@receiver(pre_delete, sender=Connection)
def delete_documents_first(instance: Connection, **_: Any) -> None:  # noqa: ANN401 -- Django's signature
    """Delete the connection's documents in the same transaction, after whatever a sync is storing just now."""
    Connection.objects.select_for_update().filter(pk=instance.pk).first()
    delete_all_documents(instance)
