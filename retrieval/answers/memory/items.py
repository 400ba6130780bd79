"""Memory items and how they are stored."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.utils import timezone

from corecube.access import Principal
from corecube.connectors.push import Pushed
from corecube.errors import InvalidRequestError
from corecube.sanitise import storable
from retrieval.answers.memory.place import own_memory
from retrieval.engine.types import MemoryType
from retrieval.ingest.push import PushState, push_document

#: Metadata fields of an item's document.
KIND: Final = "memory_kind"
PROJECT: Final = "memory_project"
CONFIRMED: Final = "memory_confirmed"
MAX_CHARACTERS: Final = 50_000
_MAX_TITLE: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something to remember."""

    text: str
    #: Empty for the text's first line.
    title: str = ""
    kind: MemoryType = MemoryType.SEMANTIC
    #: Empty for no project.
    project: str = ""
    at: datetime | None = None
    #: Whether the user stated it; else it is inferred.
    is_confirmed: bool = False


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
