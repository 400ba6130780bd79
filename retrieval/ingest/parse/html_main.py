"""Extraction of a web page's main content, without its navigation."""

import re
from typing import Final

from lxml.html import HtmlElement

_INVISIBLE: Final = (
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "embed", "canvas", "audio",
    "video", "map", "input", "select", "button", "textarea", "dialog",
)  # fmt: skip
_NAVIGATION_ROLES: Final = frozenset({"navigation", "banner", "contentinfo", "search", "complementary", "doc-toc"})
_NAVIGATION_NAMES: Final = re.compile(
    r"""(?: nav | navbar | navigation | navheader | navfooter | nav-.* | .*-nav | .*-navigation | navbox.*
    | sidebar | .*-sidebar | sidebar-.* | sphinxsidebar.* | breadcrumbs? | .*-breadcrumbs? | menu | .*-menu
    | footer | (?:site|page|global|main)-?(?:footer|header) | masthead | cookie.* | consent.* | advert.* | ads?
    | promo | newsletter.* | share | sharing | social.* | related | pagination | pager | skip-?(?:link|nav|to).*
    | toc | table-?of-?contents | toctree.* | popup | modal | headerlink | anchorjs-link | mw-editsection
    | noprint | catlinks | printfooter | edit-?(?:page|link|section|this-page) )""",
    re.VERBOSE | re.IGNORECASE,
)
_HIDDEN_STYLE: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_CONTENT_PATHS: Final = (
    "//main | //*[@role='main']",
    "//article",
    "//*[@id='content' or @id='main' or @id='main-content' or @id='mw-content-text']",
)
_CONTENT_SHARE: Final = 0.5  #: A part with a larger share of the page's text is content, independent of its class.
_LANDMARK_SHARE: Final = 0.3
_MAX_LINK_CHARACTERS: Final = 40
_MIN_LINKS: Final = 5
_LINK_SHARE: Final = 0.8


def main_content(page: HtmlElement) -> HtmlElement:
    """Return the element with the content, without navigation and invisible parts.

    `page` is changed. If all of a page's text is navigation by these rules, the entire page is returned, because a list
    of links is better than nothing.
    """
    drop_invisible(page)
    everything = _text_length(page)
    for element in [element for element in page.iter("*") if _is_navigation(element)]:
        if element is not page and _text_length(element) <= _CONTENT_SHARE * everything:
            _drop(element)
    content = _landmark(page)
    if content is page:
        _drop_link_lists(page)
    return content


def drop_invisible(page: HtmlElement) -> None:
    """Remove the invisible elements from `page`."""
    for element in list(page.iter(*_INVISIBLE)):
        _drop(element)
    for element in page.xpath("//*[@hidden or @aria-hidden='true' or @style]"):
        if element.get("style") is None or _HIDDEN_STYLE.search(element.get("style")):
            _drop(element)


def _is_navigation(element: HtmlElement) -> bool:
    if element.tag in ("body", "html", "main", "article"):
        return False
    if element.tag in ("nav", "footer") or element.get("role") in _NAVIGATION_ROLES:
        return True
    if element.tag == "header":
        return element.find(".//h1") is None
    if element.tag == "aside":
        return not any(ancestor.tag in ("main", "article") for ancestor in element.iterancestors())
    if element.tag in ("ul", "ol") and any(ancestor.tag == "header" for ancestor in element.iterancestors()):
        return True
    names = element.get("class", "").split()
    is_section = element.tag == "section" or "section" in element.get("class", "").split()
    if not (is_section and any(child.tag in _HEADINGS for child in element)):
        names += element.get("id", "").split()
    return any(map(_NAVIGATION_NAMES.fullmatch, names))


def _landmark(page: HtmlElement) -> HtmlElement:
    everything = _text_length(page)
    for path in _CONTENT_PATHS:
        largest = max(page.xpath(path), key=_text_length, default=None)
        if largest is not None and _text_length(largest) > _LANDMARK_SHARE * everything:
            return largest
    return page


def _drop_link_lists(page: HtmlElement) -> None:
    """Remove lists of short links, unless they are most of the page."""
    everything = _text_length(page)
    lists = [element for element in page.iter("ul", "ol", "td", "p") if _is_link_list(element)]
    if sum(map(_text_length, lists)) <= _CONTENT_SHARE * everything:
        for element in lists:
            _drop(element)


def _is_link_list(element: HtmlElement) -> bool:
    lengths = [_text_length(link) for link in element.iter("a")]
    return (
        len(lengths) >= _MIN_LINKS
        and sum(lengths) <= _MAX_LINK_CHARACTERS * len(lengths)
        and sum(lengths) >= _LINK_SHARE * _text_length(element)
    )


def _text_length(element: HtmlElement) -> int:
    return sum(len(text.strip()) for text in element.itertext())


def _drop(element: HtmlElement) -> None:
    """Remove an element and keep the text that follows it."""
    if element.getparent() is not None:
        element.drop_tree()
