"""Confluence's REST API. Cloud and Data Center search alike; a page's text and a space are asked for differently."""

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from pydantic import BaseModel, ValidationError

from corecube.connectors.addresses import AddressGuard
from corecube.connectors.confluence.answers import (
    Anything,
    Content,
    ContentPage,
    ContentWithBody,
    Listing,
    Operation,
    User,
)
from corecube.connectors.http import Answer, HttpClient, HttpLimits
from corecube.connectors.types import ItemError
from corecube.connectors.urls import origin

_OK: Final = 200
_GONE: Final = frozenset({404, 410})
_REFUSED: Final = frozenset({401, 403})
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
#: A search with expansions answers with 200 results at most.
_PAGE: Final = 100
#: Bytes that one page of a listing may have.
_LISTING_BYTES: Final = 32 * 2**20
#: JSON writes a sign in up to six.
_ESCAPED: Final = 6
_EXPAND: Final = (
    "version,ancestors,container,metadata.labels,"
    "restrictions.read.restrictions.user,restrictions.read.restrictions.group"
)
_Model = TypeVar("_Model", bound=BaseModel)


def credentials(user: str, token: str) -> Mapping[str, str]:
    """Return the header that signs in: with a user their API token, else a personal access token, else nobody."""
    if not token:
        return {}
    if not user:
        return {"Authorization": f"Bearer {token}"}
    return {"Authorization": f"Basic {base64.b64encode(f'{user}:{token}'.encode()).decode()}"}


@dataclass(frozen=True)
class ConfluenceApi:
    """Asks one site.

    Its methods raise ItemError: those of HttpClient, "refused", "gone", "unavailable", "unreadable".
    """

    base: str
    is_cloud: bool
    client: HttpClient

    @classmethod
    def open(cls, base: str, *, is_cloud: bool, credentials: Mapping[str, str], max_bytes: int) -> "ConfluenceApi":
        """Return the API of the site at a base address; `max_bytes` is the limit for one text or file."""
        client = HttpClient(
            HttpLimits(max_bytes=max(_LISTING_BYTES, _ESCAPED * max_bytes), request_seconds=120, total_seconds=300),
            # The site is where an admin said it is, often inside; where it redirects to is checked.
            AddressGuard(trusted_hosts=frozenset({urlsplit(base).hostname or ""})),
            headers={"Accept": "application/json, */*;q=0.5"},
            credentials=credentials,
            credentials_for=origin(base),
        )
        return cls(base.rstrip("/"), is_cloud, client)

    def user(self) -> User:
        """Return who the requests act for."""
        return self._json("/rest/api/user/current", User)

    def has_space(self, key: str) -> bool:
        """Return whether a space is there and visible to the user."""
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
        """Yield what a CQL query finds, page by page; `most` bounds the first page and ends there."""
        asked = {"cql": cql, "expand": _EXPAND, "limit": limit or _PAGE}
        path, seen = f"/rest/api/content/search?{urlencode(asked)}", set()
        while path and path not in seen:
            seen.add(path)
            page = self._json(path, ContentPage)
            yield from page.results
            path = "" if limit else page.links.next

    def is_restricted(self, content_id: str) -> bool:
        """Return whether only some may read a content; also where the site does not say."""
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
        answer = self._get(path)
        try:
            return model.model_validate_json(answer.body)
        except ValidationError as error:
            raise ItemError("unreadable", "The site did not answer as Confluence does.") from error

    def _get(self, path: str) -> Answer:
        answer = self.client.get(self._address(path))
        if answer.status == _OK:
            return answer
        if answer.status in _REFUSED:
            raise ItemError("refused", f"The site refuses access (status {answer.status}).")
        if answer.status in _GONE:
            raise ItemError("gone", f"The site does not have it (status {answer.status}).")
        # Passing troubles have a reason of their own: a job tries again, and no page counts as restricted for them.
        is_passing = answer.status >= _SERVER_ERROR or answer.status == _TOO_MANY
        reason = "unavailable" if is_passing else "unreadable"
        raise ItemError(reason, f"The site answers with status {answer.status}.")

    def _address(self, path: str) -> str:
        """Return the address of a path that the site gave, always one of the site's own.

        Some paths begin with the site's context (`/wiki/api/v2/…`), others are meant below it.
        """
        parts = urlsplit(path)
        own = parts._replace(scheme="", netloc="", fragment="", path=f"/{parts.path.lstrip('/')}").geturl()
        context = urlsplit(self.base).path
        return f"{origin(self.base)}{own}" if own.startswith(f"{context}/") and context else f"{self.base}{own}"
