"""A crawl: follows links from the start pages and sitemaps, within limits, and fetches only changed pages."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from pydantic import Field, IPvAnyNetwork

from corecube.connectors.globs import Globs
from corecube.connectors.http import HttpClient, RequestOptions, Response, media_type_of
from corecube.connectors.setup import SourceConfig
from corecube.connectors.types import ItemError, ItemProblem
from corecube.connectors.web.links import CrawlBounds, normalised, path_of
from corecube.connectors.web.page import HTML_TYPES, MAX_BYTES, addresses, facts_of, read_sitemap
from corecube.connectors.web.robots import Robots
from corecube.connectors.web.store import CrawlStore, Page, digest_of
from corecube.errors import ConfigError, UnavailableError

_GONE: Final = frozenset({404, 410})
_REFUSED: Final = frozenset({401, 402, 403, 407, 451})
_MAX_SITEMAPS: Final = 200
#: Errors of the site rather than of the page.
_SITE_ERRORS: Final = frozenset({"unreachable", "timeout", "unavailable"})
_OFFICE: Final = "application/vnd.openxmlformats-officedocument"
_MEDIA_TYPES: Final = (
    "text/html",
    "application/xhtml+xml",
    "text/plain",
    "text/markdown",
    "application/pdf",
    f"{_OFFICE}.wordprocessingml.document",
    f"{_OFFICE}.presentationml.presentation",
    f"{_OFFICE}.spreadsheetml.sheet",
)
_MAX_FAILURES: Final = 15  #: Consecutive errors of the site after which the crawl ends.


class WebConfig(SourceConfig):
    """Start addresses and limits of a crawl."""

    start: tuple[str, ...] = Field(min_length=1, max_length=100, description="Start addresses of the crawl.")
    prefixes: tuple[str, ...] = Field(
        (), max_length=100, description="Crawl only below these addresses. Empty for all of the start pages' hosts."
    )
    sitemaps: tuple[str, ...] = Field((), max_length=100, description="Sitemaps to read in addition to robots.txt.")
    use_sitemaps: bool = Field(default=True, description="Read the sitemaps that robots.txt names.")
    follow_links: bool = Field(default=True, description="Follow the links of pages.")
    max_pages: int = Field(1000, ge=1, le=100_000, description="Maximum number of pages per crawl.")
    max_depth: int = Field(10, ge=0, le=100, description="Maximum number of links from a start page.")
    delay_seconds: float = Field(0.5, ge=0, le=60, description="Delay between two pages; robots.txt may require more.")
    media_types: tuple[str, ...] = Field(
        _MEDIA_TYPES, min_length=1, max_length=100, description="Content types to include."
    )
    private_networks: tuple[IPvAnyNetwork, ...] = Field(
        (), max_length=50, description="Allowed private networks, such as 10.20.0.0/16."
    )


@dataclass
class Crawl:
    """Visits each address once, the nearest to the start pages first."""

    config: WebConfig  #: With normal addresses and media types.
    client: HttpClient
    robots: Robots
    store: CrawlStore
    bounds: CrawlBounds
    globs: Globs
    #: Addresses to visit with their distance from the start.
    _waiting: deque[tuple[str, int]] = field(default_factory=deque)
    _seen: set[str] = field(default_factory=set)
    _settled: set[str] = field(default_factory=set)
    #: Pages with a canonical address elsewhere, which may not exist.
    _noncanonical: list[Page] = field(default_factory=list)
    _visits: int = 0
    _failures: int = 0
    _has_failed: bool = False
    _started: bool = False
    _first_problem: str = ""

    def run(self) -> Iterator[Page | ItemProblem]:
        """Yield pages and problems; raise UnavailableError for a silent site, ConfigError without start page."""
        self._waiting.extend((url, 0) for url in self.config.start)
        yield from self._seed_by_sitemaps()
        yield from self._visit_queued()
        if not self._started:
            problem = self._first_problem or "The start pages have no content of the included types."
            is_temporary = self._has_failed or self.robots.unreadable
            raise UnavailableError(problem) if is_temporary else ConfigError(problem)
        if self._has_failed:
            # The links of a failed page are unknown, so the pages of the last crawl are visited directly.
            self._waiting.extend((url, self.config.max_depth) for url in self.store.unvisited())
            yield from self._visit_queued()
        yield from (page for page in self._noncanonical if page.canonical not in self._settled)
        yield from self._unvisited()
        self.store.forget_unvisited()

    def _unvisited(self) -> Iterator[ItemProblem]:
        """Yield a problem for everything that was not visited and therefore must not count as deleted."""
        for host in self.robots.unreadable:
            message = "The host's robots.txt cannot be read, so its pages were not visited."
            yield ItemProblem(host, "unavailable", message, covers_subtree=True)
        if not self._waiting:
            return
        message = f"The crawl reached its limit of {self.config.max_pages} pages; more addresses were found."
        yield ItemProblem("crawl", "page_limit", message)
        if self._has_failed:
            missed = (url for url in self.store.unvisited() if url not in self._seen and self.bounds.contains(url))
            yield from (ItemProblem(url, "page_limit", "The crawl ended before this page.") for url in missed)

    def _visit_queued(self) -> Iterator[Page | ItemProblem]:
        while self._waiting and self._visits < self.config.max_pages:
            url, depth = self._waiting.popleft()
            if url in self._seen or not self._may_visit(url):
                continue
            self._seen.add(url)
            self._visits += 1
            yield from self._visit(url, depth)

    def _visit(self, url: str, depth: int) -> Iterator[Page | ItemProblem]:
        known = self.store.page(url)
        try:
            self.client.sleep(max(self.config.delay_seconds, self.robots.delay_seconds(url)) if self._visits > 1 else 0)
            validators = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified} if known else {}
            headers = {name: it for name, it in validators.items() if it}
            response = self.client.get(url, RequestOptions(headers=headers, follow=False, wants_body=self._wants_body))
        except ItemError as error:
            yield self._failed(url, error.reason, str(error), known)
            return
        status = response.status
        if status < HTTPStatus.INTERNAL_SERVER_ERROR:
            self._failures = 0
        if response.is_redirect:
            yield from self._redirected(url, response, depth)
        elif status == HTTPStatus.NOT_MODIFIED and known:
            self.store.touch(known)
            yield from self._accept(known, depth)
        elif status == HTTPStatus.OK:
            if response.media_type in self.config.media_types:
                yield from self._accept(self._store_page(response, known), depth)
        elif status in _GONE:
            self._first_problem = self._first_problem or f"{url} does not exist (status {status})."
        else:
            reason = "refused" if status in _REFUSED else "unavailable"
            yield self._failed(url, reason, f"The server answers with status {status}.", known)

    def _wants_body(self, status: int, headers: Mapping[str, str]) -> bool:
        return status == HTTPStatus.OK and media_type_of(headers) in self.config.media_types

    def _store_page(self, response: Response, known: Page | None) -> Page:
        is_html = response.media_type in HTML_TYPES
        facts = facts_of(response.url, response.body, response.headers, is_html=is_html)
        page = Page(
            url=response.url,
            etag=response.headers.get("etag", ""),
            last_modified=response.headers.get("last-modified", ""),
            digest=digest_of(response.body),
            media_type=response.headers.get("content-type", ""),
            modified_at=response.modified_at(),
            index=facts.index,
            canonical=facts.canonical,
            links=tuple(link for link in facts.links if self.bounds.contains(link)),
        )
        if known and known.digest == page.digest:
            self.store.touch(page)
        else:
            self.store.add(page, response.body)
        return page

    def _accept(self, page: Page, depth: int) -> Iterator[Page]:
        self._started = True
        if self.config.follow_links and depth < self.config.max_depth:
            self._waiting.extend((link, depth + 1) for link in page.links if link not in self._seen)
        if not page.index or not self.globs.includes(path_of(page.url)):
            return
        if page.canonical not in {"", page.url} and self.bounds.contains(page.canonical):
            self._waiting.appendleft((page.canonical, depth))
            self._noncanonical.append(page)
            return
        self._settled.add(page.url)
        yield page

    def _redirected(self, url: str, response: Response, depth: int) -> Iterator[ItemProblem]:
        """Queue the target as the next visit, so that the limits and checks of visits apply to redirects."""
        try:
            target = normalised(response.target())
        except ItemError as error:
            yield ItemProblem(url, error.reason, str(error))
            return
        if self.bounds.contains(target):
            self._waiting.appendleft((target, depth))
        else:
            self._first_problem = self._first_problem or f"{url} redirects to another site: {target}."

    def _may_visit(self, url: str) -> bool:
        is_excluded = not self.bounds.contains(url) or self.globs.excludes(path_of(url))
        if is_excluded or not self.bounds.may_be_document(url):
            return False
        if self.robots.allows(url):
            return True
        self._first_problem = self._first_problem or f"The site's robots.txt does not allow {url}, or cannot be read."
        return False

    def _failed(self, url: str, reason: str, message: str, known: Page | None) -> ItemProblem:
        """Return the problem of a page that could not be fetched; too many in a row end the crawl."""
        self._settled.add(url)
        self._first_problem = self._first_problem or f"{url}: {message}"
        if reason in _SITE_ERRORS:
            self._has_failed = True
            self._failures += 1
        if self._failures >= _MAX_FAILURES:
            raise UnavailableError(f"The site no longer answers. {message}")
        if known:
            self.store.touch(known)
        return ItemProblem(url, reason, message)

    def _seed_by_sitemaps(self) -> Iterator[ItemProblem]:
        waiting = deque(self.config.sitemaps)
        if self.config.use_sitemaps:
            waiting.extend(addresses(it for url in self.config.start for it in self.robots.sitemaps(url)))
        read: set[str] = set()
        while waiting and len(read) < _MAX_SITEMAPS:
            url = waiting.popleft()
            is_allowed = url in self.config.sitemaps or self.bounds.contains_host(url)
            if url in read or not is_allowed:
                continue
            read.add(url)
            try:
                found = read_sitemap(self._sitemap(url), url)
            except ItemError as error:
                self._has_failed = self._has_failed or error.reason in _SITE_ERRORS
                yield ItemProblem(url, error.reason, f"The sitemap cannot be read. {error}")
                continue
            waiting.extend(found.sitemaps)
            self._waiting.extend((page, 0) for page in found.pages)

    def _sitemap(self, url: str) -> bytes:
        response = self.client.get(url, RequestOptions(max_bytes=MAX_BYTES))
        if response.status != HTTPStatus.OK:
            reason = "gone" if response.status in _GONE else "unavailable"
            raise ItemError(reason, f"The server answers with status {response.status}.")
        return response.body
