"""What is remembered: typed items, and taking one in."""

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

#: Names of an item's facts among its document's metadata.
KIND: Final = "memory_kind"
PROJECT: Final = "memory_project"
CONFIRMED: Final = "memory_confirmed"
MAX_CHARACTERS: Final = 50_000
_TITLE_CHARACTERS: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something to remember."""

    text: str
    #: Without one, the text's first line.
    title: str = ""
    kind: MemoryType = MemoryType.SEMANTIC
    #: Empty for what concerns no single project.
    project: str = ""
    #: When it happened or was decided; None for now.
    at: datetime | None = None
    #: Whether the user said that it is so, and it is not only inferred.
    is_confirmed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of an item."""

    document_id: UUID
    state: PushState
    title: str
    at: datetime


def remember(item: Item, *, principal: Principal) -> Remembered:
    """Keep an item in the memory of the principal's user; the same text in the same project again takes its place.

    It can be found when this returns, unless `state` says that it waits for a sync. Raises MemoryClosedError, and
    InvalidRequestError for a text without words or a longer one than 50,000 characters.
    """
    text, project = storable(item.text).strip(), storable(item.project).strip()
    if not text:
        raise InvalidRequestError("There is no text to remember.")
    if len(text) > MAX_CHARACTERS:
        raise InvalidRequestError(f"A text has at most {MAX_CHARACTERS:,} characters.")
    title = one_line(storable(item.title)) or _first_line(text)
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


def one_line(text: str) -> str:
    """Return the text with every run of white space as one blank."""
    return " ".join(text.split())


def _first_line(text: str) -> str:
    line = one_line(text.splitlines()[0])
    return line if len(line) <= _TITLE_CHARACTERS else f"{line[: _TITLE_CHARACTERS - 1].rstrip()}…"
