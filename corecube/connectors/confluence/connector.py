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

from corecube.connectors.confluence.answers import Content, ContentWithBody
from corecube.connectors.confluence.api import ConfluenceApi, credentials
from corecube.connectors.globs import Globs
from corecube.connectors.setup import FieldError, SourceConfig, SourceSetup, too_large
from corecube.connectors.types import Capability, ItemError, ItemGone, ItemProblem, SourceItem, require
from corecube.connectors.urls import checked_url
from corecube.errors import ConfigError, UnavailableError

#: CQL compares whole minutes in the time zone of the user, which the site does not tell: up to 12 hours behind UTC.
#: The rest is for clocks that differ and for a search index that lags.
_TIME_ZONES: Final = timedelta(days=1)
_TEXTS: Final = frozenset({"page", "blogpost"})
_IDS_AT_ONCE: Final = 50
_CLOUD_HOSTS: Final = (".atlassian.net", ".jira.com")
_SPACE_KEY: Final = r"^~?[A-Za-z0-9._-]{1,255}$"


class ConfluenceConfig(SourceConfig):
    """Which spaces of which site."""

    url: str = Field(description="The site's base address, such as https://example.atlassian.net/wiki.")
    spaces: tuple[str, ...] = Field(min_length=1, max_length=500, description="Keys of the spaces.")
    user: str = Field("", max_length=320, description="Whose API token it is (Cloud); empty for an access token.")
    edition: Literal["auto", "cloud", "data_center"] = Field("auto", description="auto goes by the address.")
    blog_posts: bool = Field(default=True, description="Take in blog posts too.")
    attachments: bool = Field(default=True, description="Take in the files that hang on pages too.")
    include_restricted: bool = Field(
        default=False,
        description="Take in what the site shows to some only; everybody with access to the connection will see it.",
    )


@dataclass(frozen=True)
class ConfluenceConnector:
    """Reads spaces through the REST API, with the eyes of one user of the site.

    Pages are told apart by their ids, so that a renamed or moved page stays the same document. A page that is
    restricted, itself or by an ancestor, is left out with its attachments: a connection's readers are not the site's.
    """

    config: ConfluenceConfig
    api: ConfluenceApi
    max_bytes: int
    globs: Globs
    #: Whether a content is restricted, by id, as far as it is known.
    _restricted: dict[str, bool] = field(default_factory=dict, repr=False)

    @classmethod
    def from_setup(cls, setup: SourceSetup) -> Self:
        """Return the connector of a connection with the secret `token`; raise ConfigError."""
        config = setup.read(ConfluenceConfig)
        try:
            base = checked_url(config.url)
        except ItemError as error:
            raise FieldError("url", f"The url is not right. {error}") from error
        if wrong := [key for key in config.spaces if not _is_key(key)]:
            raise FieldError("spaces", f"This is no space key: {wrong[0]!r}.")
        host = urlsplit(base).hostname or ""
        is_cloud = config.edition == "cloud" or (config.edition == "auto" and host.endswith(_CLOUD_HOSTS))
        limit = setup.limit(config.max_bytes)
        signed = credentials(config.user, setup.secret("token"))
        api = ConfluenceApi.open(base, is_cloud=is_cloud, credentials=signed, max_bytes=limit)
        return cls(config, api, limit, config.globs())

    def preflight(self) -> Iterator[Capability]:
        """Yield reach, authenticate, list and read."""
        with self.api.client.impatient() as client:
            yield from self._probed(replace(self.api, client=client))

    def _probed(self, api: ConfluenceApi) -> Iterator[Capability]:
        step = "reach"
        try:
            user = api.user()
            yield Capability.passed("reach", "The site answers.")
            step = "authenticate"
            yield (known := self._is_known(user.type))
            if not known.ok:
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

    def check(self) -> None:
        """Raise ConfigError when the site or a space cannot be read as configured."""
        require(self.preflight())

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Yield the contents space by space: pages, blog posts, attachments, then how many were left out."""
        with _as_source_error():
            self._require_spaces(self.api)
        for key in self.config.spaces:
            yield from self._found(key)[0]

    def changed_since(self, moment: datetime) -> Iterator[SourceItem | ItemProblem | ItemGone]:
        """Yield what was edited since a moment, to the site's knowledge; an attachment counts by itself."""
        since = f'lastmodified >= "{(moment.astimezone(UTC) - _TIME_ZONES):%Y-%m-%d %H:%M}"'
        with _as_source_error():
            self._require_spaces(self.api)
        for key in self.config.spaces:
            yield from self._changed(key, f" and {since}")

    def read(self, item: SourceItem) -> bytes:
        """Return a page as HTML, or an attachment's bytes; raise ItemError."""
        kind, _, place = item.locator.partition(":")
        content = self.api.file(place) if kind == "file" else _as_page(self.api.text(kind, place))
        if len(content) > self.max_bytes:
            raise too_large(len(content), self.max_bytes)
        return content

    def _is_known(self, kind: str) -> Capability:
        if not self.api.client.credentials:
            return Capability.passed("authenticate", "No token: only what everybody may see.")
        if kind == "anonymous":
            return Capability.failed("authenticate", "The site does not know the token.")
        return Capability.passed("authenticate", "The token is known.")

    def _changed(self, key: str, since: str) -> Iterator[SourceItem | ItemProblem | ItemGone]:
        """Yield a space's changes; how many contents are left out of all is not to be told from them."""
        entries, ids = self._found(key, since)
        shown = {it.external_id for it in entries}
        yield from (it for it in entries if it.external_id != _left_out(key))
        yield from (ItemGone(number) for number in ids if number not in shown)

    def _found(self, key: str, only: str = "") -> tuple[list[SourceItem | ItemProblem], list[str]]:
        """Return what a space shows, narrowed by CQL, and all ids found; raise ConfigError, UnavailableError."""
        with _as_source_error():
            texts = [text for text in self.api.search(f"{self._texts(key)}{only}") if text.type in _TEXTS]
            files = list(self.api.search(f"{_files(key)}{only}")) if self.config.attachments else []
            holders = self._holders(files, texts)
            self._restricted.update({text.id: text.is_restricted for text in (*texts, *holders)})
            return list(self._space(key, texts, files, holders)), [it.id for it in (*texts, *files)]

    def _require_spaces(self, api: ConfluenceApi) -> None:
        """Raise ConfigError for a space that is not visible: an empty listing of it would look like deletions."""
        for key in self.config.spaces:
            if not api.has_space(key):
                raise ConfigError(f"The space {key} is not there, or the site's user may not see it.")

    def _texts(self, key: str) -> str:
        kinds = 'type in ("page", "blogpost")' if self.config.blog_posts else 'type = "page"'
        return f'space = "{key}" and {kinds}'

    def _holders(self, files: Sequence[Content], texts: Sequence[Content]) -> list[Content]:
        """Return the pages of attachments that are not among the pages listed."""
        listed = {text.id for text in texts}
        ids = sorted({file.container.id for file in files if file.container} - listed)
        found: list[Content] = []
        for start in range(0, len(ids), _IDS_AT_ONCE):
            wanted = ", ".join(number for number in ids[start : start + _IDS_AT_ONCE] if number.isdigit())
            found += self.api.search(f"id in ({wanted})") if wanted else ()
        return found

    def _space(
        self, key: str, texts: Sequence[Content], files: Sequence[Content], holders: Sequence[Content]
    ) -> Iterator[SourceItem | ItemProblem]:
        open_ones = {text.id: text for text in (*texts, *holders) if self._is_open(text)}
        for text in texts:
            if text.id in open_ones and self.globs.want(f"{key}/{_path(text)}"):
                yield self._text(key, text)
        hidden = sum(text.id not in open_ones for text in texts)
        for file in files:
            holder = open_ones.get(file.container.id) if file.container else None
            if holder is None or (self._hides_restricted and file.restrictions.read and file.is_restricted):
                hidden += 1
            elif self.globs.want(f"{key}/{_path(holder)}/{_part(file.title)}"):
                yield self._file(key, file, holder)
        if hidden:
            message = f"{hidden} pages and attachments are left out: the site shows them to some people only."
            yield ItemProblem(_left_out(key), "restricted", message)

    @property
    def _hides_restricted(self) -> bool:
        return not self.config.include_restricted

    def _is_open(self, text: Content) -> bool:
        """Return whether everybody who sees the space sees a page: neither it nor an ancestor is restricted."""
        if not self._hides_restricted:
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
            modified_at=text.version.when,
            media_type="text/html",
            version=_version(text, text.title, *_titles(text), *text.labels),
            facts=_facts(key, _titles(text), text.labels),
        )

    def _file(self, key: str, file: Content, holder: Content) -> SourceItem | ItemProblem:
        if file.extensions.file_size > self.max_bytes:
            error = too_large(file.extensions.file_size, self.max_bytes)
            return ItemProblem(file.id, error.reason, str(error))
        above = (*_titles(holder), holder.title)
        return SourceItem(
            external_id=file.id,
            name=file.title,
            uri=self._link(file),
            locator=f"file:{file.links.download}",
            modified_at=file.version.when,
            media_type=file.extensions.media_type,
            version=_version(file, file.title, *above, *file.labels),
            facts=_facts(key, above, file.labels),
        )

    def _link(self, content: Content) -> str:
        """Return where a person opens a content; empty when the site does not say."""
        return f"{self.api.base}/{content.links.webui.lstrip('/')}" if content.links.webui else ""


def _is_key(key: str) -> bool:
    return re.fullmatch(_SPACE_KEY, key) is not None


def _files(key: str) -> str:
    return f'space = "{key}" and type = "attachment"'


def _left_out(key: str) -> str:
    """Return what a space's problem of restricted contents is called."""
    return f"restricted/{key}"


def _titles(content: Content) -> tuple[str, ...]:
    return tuple(above.title for above in content.ancestors if above.title)


def _path(text: Content) -> str:
    """Return a page as patterns see it: its ancestors' titles and its own."""
    return "/".join(_part(title) for title in (*_titles(text), text.title))


def _part(title: str) -> str:
    return title.replace("/", "-") or "-"


def _facts(key: str, above: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    facts = {"space": key, "ancestors": " > ".join(above), "labels": ", ".join(labels)}
    return {name: value for name, value in facts.items() if value}


def _version(content: Content, *parts: str) -> str:
    """Return the site's number of the content's state and a digest of what it does not count."""
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    return f"{content.version.number}-{digest[:16]}"


def _as_page(text: ContentWithBody) -> bytes:
    title = html.escape(text.title)
    frame = (
        '<!DOCTYPE html><html><head><meta charset="utf-8"><title>{}</title></head><body><main>{}</main></body></html>'
    )
    return frame.format(title, text.body.export_view.value).encode()


@contextmanager
def _as_source_error() -> Iterator[None]:
    """Let an error of one request speak for the whole listing, which cannot do without any."""
    try:
        yield
    except ItemError as error:
        if error.reason in {"refused", "gone", "bad_address", "private_address", "redirect"}:
            raise ConfigError(str(error)) from error
        raise UnavailableError(str(error)) from error
