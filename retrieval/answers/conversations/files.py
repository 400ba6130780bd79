"""Files attached to a conversation: private to its user, searched only in it, and deleted with it."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from django.db import transaction
from django.utils import timezone

from corecube.compartments import create_private_compartment
from corecube.connections import create_connection
from corecube.connectors.push import Pushed
from corecube.errors import InvalidRequestError
from corecube.models import Compartment, Connection, PushedItem, User
from corecube.sanitise import storable
from corecube.scope import FreshnessBasis, Sensitivity, TrustLevel
from retrieval.errors import IngestError
from retrieval.ingest.parse.containers import COMPOUND_START, ZIP_START
from retrieval.ingest.parse.formats import format_of
from retrieval.ingest.push import delete_pushed, push_document
from retrieval.models import Conversation, Document, SyncProblem
from retrieval.text.document import RawDocument

MAX_FILES: Final = 10
MAX_BYTES: Final = 20 * 2**20
_MAX_NAME: Final = 200
_NAME: Final = "Attached files"
_DESCRIPTION: Final = "Files attached to conversations of this user. Other users have no access."


@dataclass(frozen=True, slots=True)
class AttachedFile:
    """A file of a conversation."""

    name: str
    is_ready: bool  #: Whether it can be searched; until then a worker reads it.
    problem: str  #: Why it cannot be read; empty for none.

    @property
    def is_reading(self) -> bool:
        """Whether a worker has not read it yet."""
        return not self.is_ready and not self.problem


def attach(conversation: Conversation, name: str, content: bytes) -> None:
    """Attach a file in place of an earlier one with this name; small texts can be searched at once.

    Raises InvalidRequestError for an empty or too large file, one of an unsupported type, too many files, or a name
    without text; ItemError for a file that cannot be read.
    """
    name = PurePosixPath(storable(name).replace("\\", "/")).name.strip()[:_MAX_NAME]
    if not name.isprintable() or not name:
        raise InvalidRequestError("The file has no valid name.")
    if not content:
        raise InvalidRequestError(f"{name} is empty.")
    if len(content) > MAX_BYTES:
        raise InvalidRequestError(f"{name} is larger than {MAX_BYTES // 2**20} MB.")
    _require_supported(RawDocument(name, content))
    connection = _connection_of(conversation)
    others = PushedItem.objects.filter(connection=connection).exclude(external_id=name)
    if others.count() >= MAX_FILES:
        raise InvalidRequestError(f"A conversation has at most {MAX_FILES} files.")
    pushed = Pushed(external_id=name, name=name, content=content, modified_at=timezone.now(), facts={"title": name})
    push_document(connection, pushed, actor=conversation.user)


def _require_supported(raw: RawDocument) -> None:
    """Raise InvalidRequestError for an unsupported type; the parts of archives are only looked at by the parser."""
    if raw.content.startswith((ZIP_START, COMPOUND_START)):
        return
    try:
        format_of(raw)
    except IngestError as error:
        raise InvalidRequestError(f"{raw.name}: {error}") from error


def detach(conversation: Conversation, name: str) -> bool:
    """Delete a file of a conversation; return whether it had one with this name."""
    if conversation.files is None:
        return False
    return delete_pushed(conversation.files, storable(name), actor=conversation.user)


def files_of(conversation: Conversation) -> tuple[AttachedFile, ...]:
    """Return the files of a conversation by name."""
    own = conversation.files_id
    if own is None:
        return ()
    names = PushedItem.objects.filter(connection_id=own).order_by("external_id").values_list("external_id", flat=True)
    read = set(Document.objects.filter(connection_id=own).values_list("external_id", flat=True))
    problems = dict(SyncProblem.objects.filter(connection_id=own).values_list("external_id", "message"))
    return tuple(AttachedFile(it, it in read and it not in problems, problems.get(it, "")) for it in names)


@transaction.atomic
def _connection_of(conversation: Conversation) -> Connection:
    """Return the connection of a conversation's files, created for the first one."""
    locked = Conversation.objects.select_for_update(of=("self",)).select_related("user").get(pk=conversation.pk)
    if locked.files is None:
        connection = Connection(
            slug=f"attached-{conversation.pk.hex[:24]}",
            name=_NAME,
            kind="push",
            compartment=_compartment_of(locked.user),
            sensitivity=Sensitivity.RESTRICTED,
            trust=TrustLevel.REFERENCE,
            freshness_basis=FreshnessBasis.MODIFIED,
            is_attached=True,
        )
        locked.files = create_connection(connection, {}, actor=locked.user)
        locked.save(update_fields=["files"])
    conversation.files = locked.files
    return locked.files


def _compartment_of(user: User) -> Compartment:
    """Return the compartment of all of a user's attached files."""
    own = Compartment.objects.filter(connections__is_attached=True, connections__conversation__user=user).first()
    return own or create_private_compartment(
        user, slug=f"attached-{user.pk}", name=f"Files attached by {user.username}", description=_DESCRIPTION
    )
