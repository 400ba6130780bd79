"""What the API of API keys reads and writes."""

from datetime import datetime, timedelta
from typing import Annotated, Final, Literal
from uuid import UUID

from django.utils import timezone
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from corecube.models.access import MAX_REQUESTS_PER_MINUTE
from retrieval.api.request_body import RequestBody

Level = Literal["public", "internal", "confidential", "restricted"]
_Slug = Annotated[str, StringConstraints(max_length=50)]


#: Days after which a key ends whose end is not given.
USUAL_DAYS: Final = 90


def _usual_end() -> datetime:
    return timezone.now() + timedelta(days=USUAL_DAYS)


class KeyIn(RequestBody):
    """A key to issue. It can only see less than its user, never more."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=120)]
    user: str = Field(default="", max_length=150, description="Whose key it is; for admins. Empty: your own.")
    expires_at: datetime | None = Field(
        default_factory=_usual_end,
        description=f"UTC where no zone is given. Left out: in {USUAL_DAYS} days. Null: never.",
    )
    max_sensitivity: Level | None = Field(default=None, description="Narrows it to this level and below.")
    compartments: list[_Slug] = Field(default=[], max_length=200, description="Narrows it to these, by slug.")
    presets: list[_Slug] = Field(default=[], max_length=50, description="The presets it may use; empty: all.")
    push_connections: list[_Slug] = Field(
        default=[], max_length=200, description="Connections that it may push documents to, by slug; for admins."
    )
    requests_per_minute: int | None = Field(default=None, ge=1, le=MAX_REQUESTS_PER_MINUTE)


class KeyOut(BaseModel):
    """A key, without its secret."""

    id: UUID
    name: str
    user: str
    prefix: str
    state: str = Field(description="active, owner inactive, expired or revoked.")
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    max_sensitivity: str | None
    compartments: list[str]
    presets: list[str]
    push_connections: list[str]
    requests_per_minute: int | None


class IssuedKeyOut(KeyOut):
    """A new key with its secret, which is told only now."""

    secret: str


class KeysOut(BaseModel):
    """Keys, the newest first."""

    keys: list[KeyOut]
    total: int
