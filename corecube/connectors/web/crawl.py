"""One crawl: from the start pages and sitemaps along the links, within limits, asking only for what changed."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from corecube.connectors.globs import Globs
from corecube.connectors.http import Answer, Ask, HttpClient
from corecube.connectors.types import ItemError, ItemProblem
from corecube.connectors.web.links import Frontiers, normalised, path_of
from corecube.connectors.web.page import HTML_TYPES, facts_of
from corecube.connectors.web.robots import Robots
from corecube.connectors.web.sitemap import MAX_BYTES, read_sitemap
from corecube.connectors.web.store import CrawlStore, Page, digest_of
from corecube.errors import ConfigError, UnavailableError

_OK: Final = 200
_NOT_MODIFIED: Final = 304
_SERVER_ERROR: Final = 500
_GONE: Final = frozenset({404, 410})
_REFUSED: Final = frozenset({401, 402, 403, 407, 451})
#: Sitemaps that are read of one site.
_MAX_SITEMAPS: Final = 200
#: What speaks of the site rather than of the page.
_DOWN: Final = frozenset({"unreachable", "timeout", "unavailable"})
#: Of those in a row, how many make a site that is down.
_MAX_FAILURES: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPlan:
    """Where a crawl begins and how far it goes."""

    start: Sequence[str]
    sitemaps: Sequence[str]
    use_sitemaps: bool
    follow_links: bool
    max_pages: int
    max_depth: int
    delay_seconds: float
    media_types: frozenset[str]


@dataclass
class Crawl:
    """Visits addresses one after the other, the nearest to the start pages first; each counts once."""

    plan: CrawlPlan
    client: HttpClient
    robots: Robots
    store: CrawlStore
    frontiers: Frontiers
    globs: Globs
    #: Addresses to visit with their distance from the start.
    _waiting: deque[tuple[str, int]] = field(default_factory=deque)
    _seen: set[str] = field(default_factory=set)
    _settled: set[str] = field(default_factory=set)
    #: Pages that call another address their own, which may turn out not to be there.
    _pointing: list[Page] = field(default_factory=list)
    _visits: int = 0
    _failures: int = 0
    _has_failed: bool = False
    _started: bool = False
    _first_trouble: str = ""

    def run(self) -> Iterator[Page | ItemProblem]:
        """Yield the pages that may be taken in, and the problems.

        Raises UnavailableError for a site that does not answer, ConfigError when none of the start pages is there.
        """
        self._waiting.extend((url, 0) for url in self.plan.start)
        yield from self._seed_by_sitemaps()
        yield from self._visit_all()
        if not self._started:
            self._refuse()
        if self._has_failed:
            # A page that failed hides what it links to, so what was there the last time is asked for itself.
            self._waiting.extend((url, self.plan.max_depth) for url in self.store.unvisited())
            yield from self._visit_all()
        yield from (page for page in self._pointing if page.canonical not in self._settled)
        yield from self._left_over()
        self.store.forget_unvisited()

    def _left_over(self) -> Iterator[ItemProblem]:
        """Yield what was not come to, and what therefore is not known to be gone."""
        for place in self.robots.unreadable:
            message = "The host's robots.txt cannot be read, so that nothing there is visited."
            yield ItemProblem(place, "unavailable", message, covers_subtree=True)
        if not self._waiting:
            return
        message = f"The crawl ended at its limit of {self.plan.max_pages} pages; more addresses were found."
        yield ItemProblem("crawl", "page_limit", message)
        if self._has_failed:
            missed = (url for url in self.store.unvisited() if url not in self._seen and self.frontiers.holds(url))
            yield from (ItemProblem(url, "page_limit", "The crawl ended before it came here.") for url in missed)

    def _visit_all(self) -> Iterator[Page | ItemProblem]:
        while self._waiting and self._visits < self.plan.max_pages:
            url, depth = self._waiting.popleft()
            if url in self._seen or not self._may_visit(url):
                continue
            self._seen.add(url)
            self._visits += 1
            yield from self._visit(url, depth)

    def _visit(self, url: str, depth: int) -> Iterator[Page | ItemProblem]:
        known = self.store.page(url)
        try:
            answer = self._ask(url, known)
        except ItemError as error:
            yield self._failed(url, error.reason, str(error), known)
            return
        if answer.status < _SERVER_ERROR:
            self._failures = 0
        if answer.is_redirect:
            yield from self._redirected(url, answer, depth)
        elif answer.status == _NOT_MODIFIED and known:
            self.store.touch(known)
            yield from self._arrived(known, depth)
        elif answer.status == _OK:
            if answer.media_type in self.plan.media_types:
                yield from self._arrived(self._kept(answer, known), depth)
        elif answer.status in _GONE:
            self._first_trouble = self._first_trouble or f"{url} is not there (status {answer.status})."
        else:
            reason = "refused" if answer.status in _REFUSED else "unavailable"
            yield self._failed(url, reason, f"The server answers with status {answer.status}.", known)

    def _ask(self, url: str, known: Page | None) -> Answer:
        """Return the answer for an address, after the wait that politeness asks for."""
        self.client.sleep(max(self.plan.delay_seconds, self.robots.delay_seconds(url)) if self._visits > 1 else 0)
        validators = {"If-None-Match": known.etag, "If-Modified-Since": known.last_modified} if known else {}
        headers = {name: it for name, it in validators.items() if it}
        return self.client.get(url, Ask(headers=headers, follow=False, wants=self._wants))

    def _wants(self, status: int, headers: Mapping[str, str]) -> bool:
        """Return whether a body is one to take in, going by its head."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        return status == _OK and kind in self.plan.media_types

    def _kept(self, answer: Answer, known: Page | None) -> Page:
        """Remember what was answered and return it."""
        is_html = answer.media_type in HTML_TYPES
        facts = facts_of(answer.url, answer.body, answer.headers, is_html=is_html)
        page = Page(
            url=answer.url,
            etag=answer.headers.get("etag", ""),
            last_modified=answer.headers.get("last-modified", ""),
            digest=digest_of(answer.body),
            media_type=answer.headers.get("content-type", ""),
            modified_at=answer.modified_at(),
            index=facts.index,
            canonical=facts.canonical,
            links=tuple(link for link in facts.links if self.frontiers.holds(link)),
        )
        if known and known.digest == page.digest:
            self.store.touch(page)
        else:
            self.store.keep(page, answer.body)
        return page

    def _arrived(self, page: Page, depth: int) -> Iterator[Page]:
        """Go on from a page, and yield it if it is one to take in."""
        self._started = True
        if self.plan.follow_links and depth < self.plan.max_depth:
            self._waiting.extend((link, depth + 1) for link in page.links if link not in self._seen)
        if not page.index or not self.globs.want(path_of(page.url)):
            return
        if page.canonical not in {"", page.url} and self.frontiers.holds(page.canonical):
            self._waiting.appendleft((page.canonical, depth))
            self._pointing.append(page)
            return
        self._settled.add(page.url)
        yield page

    def _redirected(self, url: str, answer: Answer, depth: int) -> Iterator[ItemProblem]:
        """Put the target next in line; redirects are visits, so that they are limited and checked like them."""
        try:
            target = normalised(answer.target())
        except ItemError as error:
            yield ItemProblem(url, error.reason, str(error))
            return
        if self.frontiers.holds(target):
            self._waiting.appendleft((target, depth))
        else:
            self._first_trouble = self._first_trouble or f"{url} leads out of the site, to {target}."

    def _may_visit(self, url: str) -> bool:
        """Return whether an address lies within the crawl and robots.txt allows it."""
        if (
            not self.frontiers.holds(url)
            or self.globs.excludes(path_of(url))
            or not self.frontiers.is_worth_asking(url)
        ):
            return False
        if self.robots.allows(url):
            return True
        self._first_trouble = self._first_trouble or f"The site's robots.txt does not allow {url}, or cannot be read."
        return False

    def _failed(self, url: str, reason: str, message: str, known: Page | None) -> ItemProblem:
        """Return the problem of a page that is there but could not be had; too many in a row end the crawl."""
        self._settled.add(url)
        self._first_trouble = self._first_trouble or f"{url}: {message}"
        if reason in _DOWN:
            self._has_failed = True
            self._failures += 1
        if self._failures >= _MAX_FAILURES:
            raise UnavailableError(f"The site no longer answers. {message}")
        if known:
            self.store.touch(known)
        return ItemProblem(url, reason, message)

    def _refuse(self) -> None:
        """Raise what kept the crawl from its first page."""
        said = self._first_trouble or "The start pages hold nothing of the kinds that are taken in."
        raise UnavailableError(said) if self._has_failed or self.robots.unreadable else ConfigError(said)

    def _seed_by_sitemaps(self) -> Iterator[ItemProblem]:
        """Put the pages of the sitemaps in line, after the start pages."""
        waiting = deque(self.plan.sitemaps)
        if self.plan.use_sitemaps:
            waiting.extend(_readable(it for url in self.plan.start for it in self.robots.sitemaps(url)))
        read: set[str] = set()
        while waiting and len(read) < _MAX_SITEMAPS:
            url = waiting.popleft()
            if url in read or not self._may_ask_sitemap(url):
                continue
            read.add(url)
            try:
                found = read_sitemap(self._sitemap(url), url)
            except ItemError as error:
                self._has_failed = self._has_failed or error.reason in _DOWN
                yield ItemProblem(url, error.reason, f"The sitemap cannot be read. {error}")
                continue
            waiting.extend(found.sitemaps)
            self._waiting.extend((page, 0) for page in found.pages)

    def _may_ask_sitemap(self, url: str) -> bool:
        """Return whether a sitemap is one that was configured, or one of the site's own."""
        return url in self.plan.sitemaps or self.frontiers.holds_host(url)

    def _sitemap(self, url: str) -> bytes:
        answer = self.client.get(url, Ask(max_bytes=MAX_BYTES))
        if answer.status != _OK:
            reason = "gone" if answer.status in _GONE else "unavailable"
            raise ItemError(reason, f"The server answers with status {answer.status}.")
        return answer.body


def _readable(addresses: Iterator[str]) -> Iterator[str]:
    for address in addresses:
        try:
            yield normalised(address)
        except ItemError:
            continue
