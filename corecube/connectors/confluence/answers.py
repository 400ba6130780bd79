"""What Confluence's REST API answers with, as far as it is read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

Id = Annotated[str, BeforeValidator(str)]


class Links(BaseModel):
    """Where things are; the addresses are relative to the site's."""

    base: str = ""
    next: str = ""
    webui: str = ""
    download: str = ""


class Version(BaseModel):
    """Which state of a content this is."""

    number: int = 0
    when: datetime | None = None


class Reference(BaseModel):
    """Another content that is named."""

    id: Id
    title: str = ""


class Label(BaseModel):
    """A label."""

    name: str


class Labels(BaseModel):
    """The labels of a content."""

    results: tuple[Label, ...] = ()


class Metadata(BaseModel):
    """What is kept beside a content."""

    labels: Labels = Labels()


class Holders(BaseModel):
    """Users or groups that a restriction names."""

    results: tuple[Any, ...]


class Restriction(BaseModel):
    """Who alone may do something; nobody named is everybody."""

    user: Holders
    group: Holders


class Operation(BaseModel):
    """The restriction of one operation."""

    restrictions: Restriction

    @property
    def restricts(self) -> bool:
        """Whether the operation is kept for some."""
        return bool(self.restrictions.user.results or self.restrictions.group.results)


class Restrictions(BaseModel):
    """The restrictions of a content."""

    read: Operation | None = None


class Extensions(BaseModel):
    """What only attachments have."""

    media_type: str = Field(default="", alias="mediaType")
    #: In bytes.
    file_size: int = Field(default=0, alias="fileSize")


class Content(BaseModel):
    """A page, blog post or attachment."""

    id: Id
    type: str
    title: str = ""
    version: Version = Version()
    ancestors: tuple[Reference, ...] = ()
    metadata: Metadata = Metadata()
    restrictions: Restrictions = Restrictions()
    extensions: Extensions = Extensions()
    container: Reference | None = None
    links: Links = Field(Links(), alias="_links")

    @property
    def is_restricted(self) -> bool:
        """Whether only some may read it; also where the site does not say."""
        return self.restrictions.read is None or self.restrictions.read.restricts

    @property
    def labels(self) -> Sequence[str]:
        """The labels, sorted."""
        return sorted(label.name for label in self.metadata.labels.results)


class ContentPage(BaseModel):
    """One page of a listing."""

    results: tuple[Content, ...]
    links: Links = Field(Links(), alias="_links")


class Rendered(BaseModel):
    """A body as HTML."""

    value: str


class Body(BaseModel):
    """The bodies of a content, by form."""

    export_view: Rendered


class ContentWithBody(BaseModel):
    """A page or blog post with its text."""

    title: str
    body: Body


class Listing(BaseModel):
    """Any listing of which only matters whether it holds something."""

    results: tuple[Any, ...]


class User(BaseModel):
    """Who the requests act for."""

    type: str = ""


class Anything(BaseModel):
    """An answer of which nothing is read."""
