"""Confluence's REST API. Cloud and Data Center share the search, but not the requests for a text or a space."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from pydantic import AliasPath, BaseModel, BeforeValidator, Field, ValidationError

from corecube.connectors.http import HttpClient, HttpLimits, Response, basic_authorization
from corecube.connectors.network import AddressGuard, origin
from corecube.connectors.types import ItemError

Id = Annotated[str, BeforeValidator(str)]
_GONE: Final = frozenset({404, 410})
_REFUSED: Final = frozenset({401, 403})
_PAGE_SIZE: Final = 100  #: A search with expansions returns at most 200 results.
_LISTING_BYTES: Final = 32 * 2**20  #: Maximum size of one page of a listing, in bytes.
_MAX_ESCAPED_BYTES: Final = 6  #: JSON needs up to six bytes for a character.
_EXPAND: Final = (
    "version,ancestors,container,metadata.labels,"
    "restrictions.read.restrictions.user,restrictions.read.restrictions.group"
)
_Model = TypeVar("_Model", bound=BaseModel)


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
    version: int = Field(0, validation_alias=AliasPath("version", "number"))
    modified_at: datetime | None = Field(None, validation_alias=AliasPath("version", "when"))
    ancestors: tuple[Reference, ...] = ()
    label_objects: tuple[Label, ...] = Field((), validation_alias=AliasPath("metadata", "labels", "results"))
    #: The restriction on reading; None if the site does not send it.
    read_restriction: Operation | None = Field(None, validation_alias=AliasPath("restrictions", "read"))
    media_type: str = Field("", validation_alias=AliasPath("extensions", "mediaType"))  #: Of attachments only.
    file_size: int = Field(0, validation_alias=AliasPath("extensions", "fileSize"))  #: Of attachments only, in bytes.
    container_id: Id = Field("", validation_alias=AliasPath("container", "id"))
    #: Addresses relative to the site's: of the page, and of an attachment's bytes.
    page: str = Field("", validation_alias=AliasPath("_links", "webui"))
    download: str = Field("", validation_alias=AliasPath("_links", "download"))

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
    next: str = Field("", validation_alias=AliasPath("_links", "next"))  #: Address of the next page, relative.


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


def credentials(user: str, token: str) -> Mapping[str, str]:
    """Return the Authorization header: with a user for an API token, else for a personal access token."""
    if not token:
        return {}
    if not user:
        return {"Authorization": f"Bearer {token}"}
    return basic_authorization(user, token)


@dataclass(frozen=True)
class ConfluenceApi:
    """The API of one site. Raises the ItemErrors of HttpClient, "refused", "gone", "unavailable", "unreadable"."""

    base: str
    is_cloud: bool
    client: HttpClient

    @classmethod
    def open(cls, base: str, *, is_cloud: bool, credentials: Mapping[str, str], max_bytes: int) -> "ConfluenceApi":
        """Return the API of the site at a base address; `max_bytes` is the limit for one text or file."""
        client = HttpClient(
            HttpLimits(
                max_bytes=max(_LISTING_BYTES, _MAX_ESCAPED_BYTES * max_bytes), request_seconds=120, total_seconds=300
            ),
            # An admin chose the site, often in a private network; targets of redirects are checked.
            AddressGuard(trusted_hosts=frozenset({urlsplit(base).hostname or ""})),
            headers={"Accept": "application/json, */*;q=0.5"},
            credentials=credentials,
            credentials_for=origin(base),
        )
        return cls(base.rstrip("/"), is_cloud, client)

    def user(self) -> User:
        """Return the user of the requests."""
        return self._json("/rest/api/user/current", User)

    def has_space(self, key: str) -> bool:
        """Return whether a space exists and is visible to the user."""
        if self.is_cloud:
            return bool(self._json(f"/api/v2/spaces?{urlencode({'keys': key})}", Listing).results)
        try:
            self._json(f"/rest/api/space/{quote(key, safe='')}", Anything)
        except ItemError as error:
            if error.reason in {"gone", "refused"}:
                return False
            raise
        return True

    def search(self, cql: str, *, limit: int | None = None) -> Iterator[Content]:
        """Yield the results of a CQL query, page by page; with a limit, only one page of that size."""
        query = urlencode({"cql": cql, "expand": _EXPAND, "limit": limit or _PAGE_SIZE})
        path, seen = f"/rest/api/content/search?{query}", set()
        while path and path not in seen:
            seen.add(path)
            page = self._json(path, ContentPage)
            yield from page.results
            path = "" if limit else page.next

    def is_restricted(self, content_id: str) -> bool:
        """Return whether reading a content is restricted; also true if the site does not say so."""
        path = f"/rest/api/content/{quote(content_id, safe='')}/restriction/byOperation/read"
        try:
            return self._json(f"{path}?expand=restrictions.user,restrictions.group", Operation).restricts
        except ItemError as error:
            if error.reason in {"gone", "refused", "unreadable"}:
                return True
            raise

    def text(self, kind: str, content_id: str) -> ContentWithBody:
        """Return a page or blog post with its body as HTML."""
        number = quote(content_id, safe="")
        if self.is_cloud:
            return self._json(f"/api/v2/{kind}s/{number}?body-format=export_view", ContentWithBody)
        return self._json(f"/rest/api/content/{number}?expand=body.export_view", ContentWithBody)

    def file(self, path: str) -> bytes:
        """Return the bytes of an attachment."""
        return self._get(path).body

    def _json(self, path: str, model: type[_Model]) -> _Model:
        response = self._get(path)
        try:
            return model.model_validate_json(response.body)
        except ValidationError as error:
            raise ItemError("unreadable", "The site's response is not from Confluence.") from error

    def _get(self, path: str) -> Response:
        response = self.client.get(self._address(path))
        status = response.status
        if status == HTTPStatus.OK:
            return response
        if status in _REFUSED:
            raise ItemError("refused", f"The site refuses access (status {status}).")
        if status in _GONE:
            raise ItemError("gone", f"The content was not found (status {status}).")
        # Temporary failures have a separate reason: a job retries them, and they do not mark a page as restricted.
        is_temporary = status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS
        raise ItemError("unavailable" if is_temporary else "unreadable", f"The site answers with status {status}.")

    def _address(self, path: str) -> str:
        """Return the address on this site of a path from a response.

        Some paths begin with the site's context (`/wiki/api/v2/…`), others are relative to it.
        """
        parts = urlsplit(path)
        local = parts._replace(scheme="", netloc="", fragment="", path=f"/{parts.path.lstrip('/')}").geturl()
        context = urlsplit(self.base).path
        return f"{origin(self.base)}{local}" if local.startswith(f"{context}/") and context else f"{self.base}{local}"
