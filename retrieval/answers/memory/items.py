"""Memory items, stored in a push connection in a separate compartment that is granted only to its user."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from corecube.access import Principal, scope_for
from corecube.compartments import create_private_compartment
from corecube.connections import create_connection
from corecube.connectors.push import Pushed
from corecube.errors import InvalidRequestError, NotPermittedError
from corecube.models import Connection, User
from corecube.sanitise import storable
from corecube.scope import AccessScope, FreshnessBasis, Sensitivity, TrustLevel
from retrieval.engine.types import MemoryType
from retrieval.ingest.push import PushState, push_document
from retrieval.models import Memory

#: Items may come from any document of the user, so the memory has the highest level.
SENSITIVITY: Final = Sensitivity.RESTRICTED
_DESCRIPTION: Final = "Memory of agents for this user. Other users have no access."
KIND: Final = "memory_kind"  #: Metadata fields of an item's document.
PROJECT: Final = "memory_project"
CONFIRMED: Final = "memory_confirmed"
MAX_CHARACTERS: Final = 50_000
_MAX_TITLE: Final = 80


class MemoryClosedError(NotPermittedError):
    """The memory is not accessible: outside the limits of this API key, disabled, or no longer granted."""

    code: ClassVar[str] = "memory_closed"


def memory_in(scope: AccessScope, user: User) -> Connection | None:
    """Return the user's memory; None if it is outside the scope or does not exist yet."""
    found = Memory.objects.filter(user=user).select_related("connection__compartment").first()
    return found.connection if found is not None and scope.allows(found.connection_id) else None


def own_memory(principal: Principal) -> Connection:
    """Return the memory of the principal's user, created on first use; raise MemoryClosedError."""
    with transaction.atomic():
        if not Memory.objects.filter(user=principal.user).exists():
            key = principal.key
            is_capped = key is not None and key.max_sensitivity is not None and key.max_sensitivity < SENSITIVITY
            # Such a key could not access the new memory.
            if key is not None and (principal.is_forwarded or is_capped or key.compartments.all()):
                raise MemoryClosedError
            _create(principal.user)
    memory = memory_in(scope_for(principal), principal.user)
    if memory is None:
        raise MemoryClosedError
    return memory


def _create(user: User) -> None:
    User.objects.select_for_update().get(pk=user.pk)
    if Memory.objects.filter(user=user).exists():
        return
    slug = f"memory-{user.pk}"
    while Connection.objects.filter(slug=slug).exists():
        slug = f"memory-{user.pk}-{secrets.token_hex(3)}"
    compartment = create_private_compartment(
        user, slug=slug, name=f"Memory of {user.username}", description=_DESCRIPTION
    )
    connection = Connection(
        slug=slug,
        name=compartment.name,
        kind="push",
        compartment=compartment,
        sensitivity=SENSITIVITY,
        trust=TrustLevel.VOLATILE,
        freshness_basis=FreshnessBasis.MODIFIED,
    )
    Memory.objects.create(user=user, connection=create_connection(connection, {}, actor=user))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something to remember."""

    text: str
    title: str = ""  #: Empty for the text's first line.
    kind: MemoryType = MemoryType.SEMANTIC
    project: str = ""
    at: datetime | None = None
    is_confirmed: bool = False  #: Whether the user stated it; else it is inferred.


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A stored item."""

    document_id: UUID
    state: PushState
    title: str
    at: datetime


def remember(item: Item, *, principal: Principal) -> Remembered:
    """Store an item in the memory of the principal's user; it replaces the same text in the same project.

    The item is searchable at once unless `state` is queued. Raises MemoryClosedError, and InvalidRequestError for an
    empty text or one with more than 50,000 characters.
    """
    text, project = storable(item.text).strip(), storable(item.project).strip()
    if not text:
        raise InvalidRequestError("There is no text to remember.")
    if len(text) > MAX_CHARACTERS:
        raise InvalidRequestError(f"The maximum length of a text is {MAX_CHARACTERS:,} characters.")
    title = " ".join(storable(item.title).split())
    if not title:
        line = " ".join(text.splitlines()[0].split())
        title = line if len(line) <= _MAX_TITLE else f"{line[: _MAX_TITLE - 1].rstrip()}…"
    at = item.at or timezone.now()
    name = hashlib.sha256(f"{project}\n{text}".encode()).hexdigest()
    pushed = Pushed(
        external_id=name,
        name=f"{name}.txt",
        content=text.encode(),
        media_type="text/plain; charset=utf-8",
        modified_at=at,
        facts={
            "title": title,
            KIND: item.kind.value,
            PROJECT: project,
            **({CONFIRMED: "yes"} if item.is_confirmed else {}),
        },
    )
    outcome = push_document(own_memory(principal), pushed, actor=principal.user)
    return Remembered(document_id=outcome.document_id, state=outcome.state, title=title, at=at)
