"""The responses of Confluence's REST API, as far as they are read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasPath, BaseModel, BeforeValidator, Field

Id = Annotated[str, BeforeValidator(str)]


class Links(BaseModel):
    """Addresses relative to the site's."""

    next: str = ""
    webui: str = ""
    download: str = ""


class Version(BaseModel):
    """Number and date of a content's version."""

    number: int = 0
    when: datetime | None = None


class Reference(BaseModel):
    """A reference to another content."""

    id: Id
    title: str = ""


class Label(BaseModel):
    """A label."""

    name: str


class Operation(BaseModel):
    """The users and groups that an operation is restricted to; both are empty if everybody may do it."""

    users: tuple[Any, ...] = Field(validation_alias=AliasPath("restrictions", "user", "results"))
    groups: tuple[Any, ...] = Field(validation_alias=AliasPath("restrictions", "group", "results"))

    @property
    def restricts(self) -> bool:
        """Whether the operation is restricted."""
        return bool(self.users or self.groups)


class Content(BaseModel):
    """A page, blog post or attachment."""

    id: Id
    type: str
    title: str = ""
    version: Version = Version()
    ancestors: tuple[Reference, ...] = ()
    label_objects: tuple[Label, ...] = Field((), validation_alias=AliasPath("metadata", "labels", "results"))
    #: The restriction on reading; None if the site does not send it.
    read_restriction: Operation | None = Field(None, validation_alias=AliasPath("restrictions", "read"))
    #: Of attachments only.
    media_type: str = Field("", validation_alias=AliasPath("extensions", "mediaType"))
    #: Of attachments only, in bytes.
    file_size: int = Field(0, validation_alias=AliasPath("extensions", "fileSize"))
    container: Reference | None = None
    links: Links = Field(Links(), alias="_links")

    @property
    def is_restricted(self) -> bool:
        """Whether reading is restricted; also true if the site does not send the restriction."""
        return self.read_restriction is None or self.read_restriction.restricts

    @property
    def labels(self) -> Sequence[str]:
        """The names of the labels, sorted."""
        return sorted(label.name for label in self.label_objects)


class ContentPage(BaseModel):
    """One page of a listing."""

    results: tuple[Content, ...]
    links: Links = Field(Links(), alias="_links")


class ContentWithBody(BaseModel):
    """A page or blog post with its text as HTML."""

    title: str
    html: str = Field(validation_alias=AliasPath("body", "export_view", "value"))


class Listing(BaseModel):
    """A listing that is only checked for being empty."""

    results: tuple[Any, ...]


class User(BaseModel):
    """The user of the requests."""

    type: str = ""


class Anything(BaseModel):
    """A response whose content is not read."""
