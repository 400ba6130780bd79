"""What a program pushes, and what it is told."""

import base64
import binascii
from datetime import datetime
from typing import Annotated, Final, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from retrieval.api.request_body import RequestBody

_MAX_FACTS: Final = 50
_MAX_FACT_NAME_CHARACTERS: Final = 60
_FactName = Annotated[str, StringConstraints(min_length=1, max_length=_MAX_FACT_NAME_CHARACTERS)]
_Fact = Annotated[str, StringConstraints(max_length=1000)]
ExternalId = Annotated[
    str, Field(min_length=1, max_length=500, description="What the program calls the document; unique and stable.")
]


class PushIn(RequestBody):
    """A document. The same `external_id` again replaces it."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    connection: str = Field(max_length=50, description="Slug of a connection of the kind push.")
    external_id: ExternalId
    title: str = Field(default="", max_length=500, description="Stands above the document's own title.")
    text: str | None = Field(default=None, description="The document as text; either this or `content_base64`.")
    content_base64: str | None = Field(default=None, description="The document's bytes in base64.")
    media_type: str = Field(
        default="", max_length=120, description="Chooses the parser; without it the suffix of the id, or the bytes."
    )
    uri: str = Field(default="", max_length=2000, description="Where a person can open it: http or https.")
    modified_at: datetime | None = Field(default=None, description="When it last changed; UTC where no zone is given.")
    wait: bool = Field(default=True, description="False leaves also a small one to the next sync: faster for many.")
    metadata: dict[_FactName, _Fact] = Field(default={}, max_length=_MAX_FACTS)

    @field_validator("uri")
    @classmethod
    def _is_web_address(cls, uri: str) -> str:
        if uri and not uri.lower().startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return uri

    @field_validator("external_id")
    @classmethod
    def _is_printable(cls, external_id: str) -> str:
        if not external_id.isprintable() or not external_id.strip():
            raise ValueError("must be of printable characters")
        return external_id

    @model_validator(mode="after")
    def _has_one_content(self) -> Self:
        if (self.text is None) == (self.content_base64 is None):
            raise ValueError("needs either text or content_base64")
        return self

    @field_validator("content_base64")
    @classmethod
    def _is_base64(cls, content: str | None) -> str | None:
        if content is not None:
            _decoded(content)
        return content

    @property
    def content(self) -> bytes:
        """The document's bytes."""
        if self.content_base64 is not None:
            return _decoded(self.content_base64)
        return (self.text or "").encode("utf-8", "replace")


class PushOut(BaseModel):
    """What became of a pushed document."""

    document_id: UUID
    state: str = Field(description="indexed: it can be found; queued: after the next sync; unchanged: it was the same.")


class PushDeletedOut(BaseModel):
    """What became of a document that was to be deleted."""

    document_id: UUID
    deleted: bool = Field(description="False where there was none.")


def _decoded(content: str) -> bytes:
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error as error:
        raise ValueError("is not base64") from error
