"""Documents go with their connection, files with their conversation, memories with their user; models are checked."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004 -- Django's name
from django.db import DatabaseError
from django.db.models import QuerySet
from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from corecube.errors import DatabaseUnavailableError
from corecube.health import serving, stopping
from corecube.models import Connection, User
from retrieval.encoders.manifest import CrossEncoderManifest, read_manifest
from retrieval.errors import EncoderError
from retrieval.index.distribution import shards_have_settings
from retrieval.index.reranking import model_directory
from retrieval.index.writer import delete_all_documents
from retrieval.models import Conversation, Memory


@receiver(serving)
def warm_up_beside(**_: Any) -> None:  # noqa: ANN401 -- Django's signature
    """Open what the first search would open, while the web server starts; have records written behind answers."""
    # Commands need no engine, and it takes half a second to load.
    from retrieval.search import warm_up  # noqa: PLC0415
    from retrieval.search.record_writer import record_writer  # noqa: PLC0415

    warm_up.begin()
    record_writer.begin()


@receiver(stopping)
def write_records(**_: Any) -> None:  # noqa: ANN401 -- Django's signature
    """Have the pending records of searches written."""
    from retrieval.search.record_writer import record_writer  # noqa: PLC0415 -- as above

    record_writer.end()


@receiver(pre_delete, sender=Connection)
def delete_documents_first(instance: Connection, **_: Any) -> None:  # noqa: ANN401 -- Django's signature
    """Delete the connection's documents in the same transaction, after whatever a sync is storing just now."""
    Connection.objects.select_for_update().filter(pk=instance.pk).first()
    delete_all_documents(instance)


@receiver(post_delete, sender=Memory)
def delete_memory_with_user(instance: Memory, origin: object, **_: Any) -> None:  # noqa: ANN401 -- Django's signature
    """Delete what was remembered for a user who is deleted, unless its connection was deleted itself."""
    is_of_user = isinstance(origin, User) or (isinstance(origin, QuerySet) and origin.model is User)
    if is_of_user:
        delete_private(Connection.objects.filter(pk=instance.connection_id).first())


@receiver(post_delete, sender=Conversation)
def delete_files_with_conversation(instance: Conversation, **_: Any) -> None:  # noqa: ANN401 -- Django's signature
    """Delete the files that are attached to a conversation that is deleted."""
    if instance.files_id is not None:
        delete_private(Connection.objects.filter(pk=instance.files_id).first())


def delete_private(connection: Connection | None) -> None:
    """Delete a user's private connection, and its compartment if that was the last one in it."""
    if connection is None:
        return
    compartment = connection.compartment
    connection.delete()
    if not compartment.connections.exists():
        compartment.delete()


@register(Tags.database)
def check_shards(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:  # noqa: ANN401 -- Django's signature
    """Refuse shards that do not get the settings of searches: these would find less, without a time limit."""
    try:
        if not databases or shards_have_settings():
            return []
    except (DatabaseUnavailableError, DatabaseError):
        return []  # Another check says so, or there are no tables yet.
    return [Error("Settings of searches do not reach the shards of the cluster.", id="retrieval.E001")]


@register("corecube")
def check_reranker(**_: Any) -> list[CheckMessage]:  # noqa: ANN401 -- Django's signature
    """Warn about a configured reranking model that is missing; searches work without it."""
    directory = model_directory()
    if directory is None:
        return []
    try:
        read_manifest(directory, CrossEncoderManifest)
    except EncoderError as error:
        return [Warning(f"Searches are not reranked: {error}", id="retrieval.W001")]
    return []
