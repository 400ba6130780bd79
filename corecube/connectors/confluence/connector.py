"""Lists the pages, blog posts and attachments of Confluence spaces, and reads them."""

import hashlib
import html
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field

from corecube.connectors.confluence.api import ConfluenceApi, Content, credentials
from corecube.connectors.globs import Globs
from corecube.connectors.network import checked_field
from corecube.connectors.setup import FieldError, SourceConfig, SourceSetup, too_large
from corecube.connectors.types import Capability, Connector, ItemError, ItemGone, ItemProblem, SourceItem
from corecube.errors import ConfigError, UnavailableError

#: CQL compares minutes in the user's time zone, which the API does not return: up to 12 hours behind UTC.
#: The rest allows for different clocks and a delayed search index.
_TIME_MARGIN: Final = timedelta(days=1)
_TEXTS: Final = frozenset({"page", "blogpost"})
_IDS_PER_QUERY: Final = 50
_CLOUD_HOSTS: Final = (".atlassian.net", ".jira.com")
_SPACE_KEY: Final = r"^~?[A-Za-z0-9._-]{1,255}$"


class ConfluenceConfig(SourceConfig):
    """The site and the spaces of a connection."""

    url: str = Field(description="The site's base address, such as https://example.atlassian.net/wiki.")
    spaces: tuple[str, ...] = Field(min_length=1, max_length=500, description="Keys of the spaces.")
    user: str = Field("", max_length=320, description="User of the API token (Cloud); empty for an access token.")
    edition: Literal["auto", "cloud", "data_center"] = Field("auto", description="auto detects it from the URL.")
    blog_posts: bool = Field(default=True, description="Include blog posts.")
    attachments: bool = Field(default=True, description="Include attachments of pages.")
    include_restricted: bool = Field(
        default=False, description="Include restricted content. Everyone with access to the connection can see it."
    )


@dataclass(frozen=True)
class ConfluenceConnector(Connector):
    """Reads spaces through the REST API with one user's permissions.

    The id of a page identifies its document, so that a renamed or moved page stays the same document. A page that is
    restricted, itself or by an ancestor, is excluded with its attachments: other users read the connection.
    """

    config: ConfluenceConfig
    api: ConfluenceApi
    max_bytes: int
    globs: Globs
    _restricted: dict[str, bool] = field(default_factory=dict, repr=False)  #: Known restrictions by content id.

    @classmethod
    def from_setup(cls, setup: SourceSetup) -> Self:
        """Return the connector of a connection with the secret `token`; raise ConfigError."""
        config = setup.read(ConfluenceConfig)
        base = checked_field("url", config.url, "The URL is invalid.")
        if invalid := [key for key in config.spaces if not re.fullmatch(_SPACE_KEY, key)]:
            raise FieldError("spaces", f"This is not a space key: {invalid[0]!r}.")
        host = urlsplit(base).hostname or ""
        is_cloud = config.edition == "cloud" or (config.edition == "auto" and host.endswith(_CLOUD_HOSTS))
        limit = setup.limit(config.max_bytes)
        headers = credentials(config.user, setup.secret("token"))
        api = ConfluenceApi.open(base, is_cloud=is_cloud, credentials=headers, max_bytes=limit)
        return cls(config, api, limit, config.globs())

    def preflight(self) -> Iterator[Capability]:
        """Yield reach, authenticate, list and read."""
        with self.api.client.without_retries() as client:
            yield from self._checks(replace(self.api, client=client))

    def _checks(self, api: ConfluenceApi) -> Iterator[Capability]:
        step = "reach"
        try:
            user = api.user()
            yield Capability.passed("reach", "The site answers.")
            step = "authenticate"
            yield (authenticated := self._authenticated(user.type))
            if not authenticated.ok:
                return
            step = "list"
            self._require_spaces(api)
            first = [page for key in self.config.spaces for page in api.search(self._texts(key), limit=1)]
            yield Capability.passed("list", "Every space can be listed.")
            step = "read"
            for page in first[:1]:
                api.text(page.type, page.id)
                yield Capability.passed("read", "Pages can be read.")
        except ConfigError as error:
            yield Capability.failed(step, str(error))
        except ItemError as error:
            if step == "reach" and error.reason == "refused":
                yield Capability.passed("reach", "The site answers.")
                step = "authenticate"
            yield Capability.failed(step, str(error))

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the contents space by space: pages, blog posts, attachments, then the number of excluded ones."""
        with _as_source_error():
            self._require_spaces(self.api)
        for key in self.config.spaces:
            yield from self._found(key)[0]

    def changed_since(self, moment: datetime) -> Iterator[SourceItem | ItemProblem | ItemGone]:
        """Yield the contents that were edited since then; an edited attachment does not yield its page."""
        since = f'lastmodified >= "{(moment.astimezone(UTC) - _TIME_MARGIN):%Y-%m-%d %H:%M}"'
        with _as_source_error():
            self._require_spaces(self.api)
        for key in self.config.spaces:
            entries, ids = self._found(key, f" and {since}")
            shown = {it.external_id for it in entries}
            # Without the problem that counts all excluded contents.
            yield from (it for it in entries if it.external_id != _excluded_id(key))
            yield from (ItemGone(number) for number in ids if number not in shown)

    def read(self, item: SourceItem) -> bytes:
        """Return a page as HTML, or an attachment's bytes; raise ItemError."""
        kind, _, place = item.locator.partition(":")
        if kind == "file":
            content = self.api.file(place)
        else:
            text = self.api.text(kind, place)
            head = f'<head><meta charset="utf-8"><title>{html.escape(text.title)}</title></head>'
            content = f"<!DOCTYPE html><html>{head}<body><main>{text.html}</main></body></html>".encode()
        if len(content) > self.max_bytes:
            raise too_large(len(content), self.max_bytes)
        return content

    def _authenticated(self, kind: str) -> Capability:
        if not self.api.client.credentials:
            return Capability.passed("authenticate", "No token: only public content is visible.")
        if kind == "anonymous":
            return Capability.failed("authenticate", "The site does not accept the token.")
        return Capability.passed("authenticate", "The token is valid.")

    def _found(self, key: str, only: str = "") -> tuple[list[SourceItem | ItemProblem], list[str]]:
        """Return a space's items, filtered by CQL, and all ids found; raise ConfigError, UnavailableError."""
        with _as_source_error():
            texts = [text for text in self.api.search(f"{self._texts(key)}{only}") if text.type in _TEXTS]
            query = f'space = "{key}" and type = "attachment"{only}'
            files = list(self.api.search(query)) if self.config.attachments else []
            listed = {text.id for text in texts}
            ids = sorted({file.container_id for file in files if file.container_id} - listed)
            parents: list[Content] = []
            for start in range(0, len(ids), _IDS_PER_QUERY):
                numbers = ", ".join(number for number in ids[start : start + _IDS_PER_QUERY] if number.isdigit())
                parents += self.api.search(f"id in ({numbers})") if numbers else ()
            self._restricted.update({text.id: text.is_restricted for text in (*texts, *parents)})
            return list(self._space(key, texts, files, parents)), [it.id for it in (*texts, *files)]

    def _require_spaces(self, api: ConfluenceApi) -> None:
        """Raise ConfigError for an invisible space: its empty listing would count as deletions."""
        for key in self.config.spaces:
            if not api.has_space(key):
                raise ConfigError(f"The space {key} does not exist, or the user has no access to it.")

    def _texts(self, key: str) -> str:
        kinds = 'type in ("page", "blogpost")' if self.config.blog_posts else 'type = "page"'
        return f'space = "{key}" and {kinds}'

    def _space(
        self, key: str, texts: Sequence[Content], files: Sequence[Content], parents: Sequence[Content]
    ) -> Iterator[SourceItem | ItemProblem]:
        included = {text.id: text for text in (*texts, *parents) if self._is_included(text)}
        for text in texts:
            if text.id in included and self.globs.includes(f"{key}/{_path(text)}"):
                yield self._text(key, text)
        excluded = sum(text.id not in included for text in texts)
        for file in files:
            parent = included.get(file.container_id)
            is_excluded = not self.config.include_restricted and file.read_restriction and file.is_restricted
            if parent is None or is_excluded:
                excluded += 1
            elif self.globs.includes(f"{key}/{_path(parent)}/{_part(file.title)}"):
                yield self._file(key, file, parent)
        if excluded:
            message = f"{excluded} restricted pages and attachments are excluded."
            yield ItemProblem(_excluded_id(key), "restricted", message)

    def _is_included(self, text: Content) -> bool:
        """Return whether a page is included: neither it nor an ancestor is restricted, or the config allows it."""
        if self.config.include_restricted:
            return True
        return not any(self._is_restricted(it) for it in (text.id, *(above.id for above in text.ancestors)))

    def _is_restricted(self, content_id: str) -> bool:
        if content_id not in self._restricted:
            self._restricted[content_id] = self.api.is_restricted(content_id)
        return self._restricted[content_id]

    def _text(self, key: str, text: Content) -> SourceItem:
        return SourceItem(
            external_id=text.id,
            name=f"{text.title}.html",
            uri=self._link(text),
            locator=f"{text.type}:{text.id}",
            modified_at=text.modified_at,
            media_type="text/html",
            version=_version(text, text.title, *_titles(text), *text.labels),
            facts=_facts(key, _titles(text), text.labels),
        )

    def _file(self, key: str, file: Content, parent: Content) -> SourceItem | ItemProblem:
        if file.file_size > self.max_bytes:
            error = too_large(file.file_size, self.max_bytes)
            return ItemProblem(file.id, error.reason, str(error))
        above = (*_titles(parent), parent.title)
        return SourceItem(
            external_id=file.id,
            name=file.title,
            uri=self._link(file),
            locator=f"file:{file.download}",
            modified_at=file.modified_at,
            media_type=file.media_type,
            version=_version(file, file.title, *above, *file.labels),
            facts=_facts(key, above, file.labels),
        )

    def _link(self, content: Content) -> str:
        return f"{self.api.base}/{content.page.lstrip('/')}" if content.page else ""


def _excluded_id(key: str) -> str:
    return f"restricted/{key}"


def _titles(content: Content) -> tuple[str, ...]:
    return tuple(above.title for above in content.ancestors if above.title)


def _path(text: Content) -> str:
    """Return the path that patterns match: the titles of a page's ancestors and of the page."""
    return "/".join(_part(title) for title in (*_titles(text), text.title))


def _part(title: str) -> str:
    return title.replace("/", "-") or "-"


def _facts(key: str, above: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    facts = {"space": key, "ancestors": " > ".join(above), "labels": ", ".join(labels)}
    return {name: value for name, value in facts.items() if value}


def _version(content: Content, *parts: str) -> str:
    """Return the content's version number and a digest of the parts that do not change it."""
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f"{content.version}-{digest[:16]}"


@contextmanager
def _as_source_error() -> Iterator[None]:
    """Turn an error of one request into an error of the complete listing, which needs every request."""
    try:
        yield
    except ItemError as error:
        if error.reason in {"refused", "gone", "bad_address", "private_address", "redirect"}:
            raise ConfigError(str(error)) from error
        raise UnavailableError(str(error)) from error
