"""Crawls web sites and reads their pages."""

import hashlib
import mimetypes
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import PurePosixPath
from typing import Final, Self
from urllib.parse import urlsplit

from corecube.connectors.globs import Globs
from corecube.connectors.http import HttpClient, HttpLimits, RequestOptions
from corecube.connectors.network import AddressGuard
from corecube.connectors.setup import FieldError, SourceSetup
from corecube.connectors.types import Capability, Connector, ItemError, ItemProblem, SourceItem
from corecube.connectors.web.crawl import Crawl, WebConfig
from corecube.connectors.web.links import CrawlBounds, normalised, path_of, prefix_of
from corecube.connectors.web.page import HTML_TYPES
from corecube.connectors.web.robots import Robots
from corecube.connectors.web.store import CrawlStore, Page

_HEAD_ONLY: Final = RequestOptions(wants_body=lambda *_: False)


@dataclass(frozen=True)
class WebConnector(Connector):
    """Crawls web sites, obeys robots.txt, nofollow and noindex, and fetches only changed pages."""

    config: WebConfig  #: With normal addresses and media types.
    prefixes: tuple[str, ...]
    client: HttpClient
    store: CrawlStore
    globs: Globs

    @classmethod
    def from_setup(cls, setup: SourceSetup) -> Self:
        """Return the connector of a connection; raise ConfigError."""
        config = setup.read(WebConfig)
        addresses = {name: _addresses(name, getattr(config, name)) for name in ("start", "sitemaps")}
        media_types = tuple(sorted({it.strip().lower() for it in config.media_types}))
        config = config.model_copy(update={**addresses, "media_types": media_types})
        prefixes = tuple(prefix_of(it) for it in _addresses("prefixes", config.prefixes))
        prefixes = prefixes or tuple(dict.fromkeys(f"{urlsplit(it).netloc}/" for it in config.start))
        client = HttpClient(HttpLimits(max_bytes=setup.limit(config.max_bytes)), AddressGuard(config.private_networks))
        key = hashlib.sha256(repr((prefixes, list(media_types))).encode()).hexdigest()[:16]
        return cls(config, prefixes, client, CrawlStore(setup.state, key), config.globs())

    def preflight(self) -> Iterator[Capability]:
        """Yield reach, list (robots.txt) and read for the first start page."""
        with self.client.without_retries() as client:
            yield from _checks(self.config.start[0], client)

    def items(self) -> Iterator[SourceItem | ItemProblem]:
        """Crawl and yield the pages, the nearest to the start first.

        A deleted page (404, 410), a page with noindex and a page that robots.txt forbids are not yielded; a failed
        page is a problem. Raises UnavailableError and ConfigError if the site cannot be crawled.
        """
        robots, bounds = Robots(self.client.get), CrawlBounds(self.prefixes)
        with self.store:
            for found in Crawl(self.config, self.client, robots, self.store, bounds, self.globs).run():
                yield found if isinstance(found, ItemProblem) else _item(found)

    def read(self, item: SourceItem) -> bytes:
        """Return a page's bytes, from the crawl or by a new request; raise ItemError."""
        stored = self.store.body(item.version)
        if stored is not None:
            return stored
        response = self.client.get(item.locator, RequestOptions(follow=False))
        if response.status != HTTPStatus.OK:
            raise ItemError("unavailable", f"The server answers with status {response.status}.")
        return response.body


def _checks(url: str, client: HttpClient) -> Iterator[Capability]:
    robots = Robots(client.get)
    allowed = robots.allows(url)
    try:
        status = client.get(url, _HEAD_ONLY).status if allowed or robots.unreadable else HTTPStatus.OK
    except ItemError as error:
        yield Capability.failed("reach", f"{url}: {error}")
        return
    if robots.unreadable:
        yield Capability.failed("reach", f"The site's robots.txt cannot be read; the status of {url} is {status}.")
        return
    yield Capability.passed("reach", "The site answers.")
    if not allowed:
        yield Capability.failed("list", f"The site's robots.txt does not allow {url}.")
        return
    yield Capability.passed("list", "The site's robots.txt allows the start page.")
    if status == HTTPStatus.OK:
        yield Capability.passed("read", "The start page exists.")
    else:
        yield Capability.failed("read", f"The server answers with status {status} for {url}.")


def _addresses(name: str, values: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(normalised(value) for value in values)
    except ItemError as error:
        raise FieldError(name, str(error)) from error


def _item(page: Page) -> SourceItem:
    kind = page.media_type.partition(";")[0].strip().lower()
    # The last part of the path, with a suffix for the page's content type.
    name = PurePosixPath(path_of(page.url).partition("?")[0]).name or urlsplit(page.url).netloc
    known = {".html", ".htm", ".xhtml"} if kind in HTML_TYPES else mimetypes.guess_all_extensions(kind)
    if known and PurePosixPath(name).suffix.lower() not in known and kind != "text/plain":
        name += ".html" if kind in HTML_TYPES else mimetypes.guess_all_extensions(kind)[0]
    return SourceItem(
        external_id=page.url,
        name=name,
        uri=page.url,
        locator=page.url,
        modified_at=page.modified_at,
        media_type=page.media_type,
        version=page.digest,
    )
