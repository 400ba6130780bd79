"""What a user may open, found by its name. Each finder reads only what its page would show the same user."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse

from corecube.access import Principal, scope_for
from corecube.env import readings
from corecube.models import Connection, User
from explorer import wording
from explorer.navigation import visible_entries
from retrieval.models import Document, QuestionSet
from retrieval.presets.catalog import PRESETS, TUNED

_LIMIT: Final = 6  #: Results of a kind.
#: Shorter texts are in the title of almost every document.
_MIN_CHARACTERS: Final = 2


@dataclass(frozen=True, slots=True)
class Found:
    """A page, or what has one."""

    title: str
    detail: str
    address: str


@dataclass(frozen=True, slots=True)
class Kind:
    """Results of one kind, under its heading."""

    heading: str
    icon: str  #: The template of its icon.
    rows: tuple[Found, ...]


def find(viewer: User, text: str) -> tuple[Kind, ...]:
    """Return what a user may open and whose name contains all words of a text; without a text the first pages."""
    words = text.lower().split()
    found = ((heading, icon, _best(finder(viewer, words), words)) for heading, icon, finder in _KINDS)
    return tuple(Kind(heading, f"icons/{icon}.svg", rows) for heading, icon, rows in found if rows)


def asking(text: str) -> tuple[Kind, ...]:
    """Return where a text can be asked about the documents themselves; nothing for a short one."""
    if len(text) < _MIN_CHARACTERS:
        return ()
    places = (("Ask in chat", "explorer:chat"), ("Search in Explorer", "explorer:search"))
    rows = (Found(title, "", f"{reverse(name)}?{urlencode({'q': text})}") for title, name in places)
    return (Kind("In the text of documents", "icons/explorer.svg", tuple(rows)),)


def _best(found: Iterable[Found], words: Sequence[str]) -> tuple[Found, ...]:
    """Return the first of these, those that begin with the first word before others."""
    beginning = words[0] if words else ""
    return tuple(sorted(found, key=lambda it: not it.title.lower().startswith(beginning))[:_LIMIT])


def _contains(name: str, words: Sequence[str]) -> bool:
    return all(word in name.lower() for word in words)


def _pages(viewer: User, words: Sequence[str]) -> Iterator[Found]:
    for place in visible_entries(is_admin=viewer.is_admin):
        if _contains(f"{place.entry.label} {place.entry.also}", words):
            yield Found(place.entry.label, place.group.heading, place.entry.address)


def _documents(viewer: User, words: Sequence[str]) -> Iterator[Found]:
    if len(" ".join(words)) < _MIN_CHARACTERS:
        return
    scope = scope_for(Principal(viewer))
    found = Document.objects.in_scope(scope)
    for word in words:
        found = found.filter(title__icontains=word)
    for row in found.order_by("title", "pk").only("title", "connection_id")[:_LIMIT]:
        source = scope.inclusion(row.connection_id).connection.name
        yield Found(row.title, source, reverse("explorer:document", args=[row.pk]))


def _connections(viewer: User, words: Sequence[str]) -> Iterator[Found]:
    """Yield connections: for an admin all of them, for anyone else those in scope, by their documents."""
    if not words:
        return
    if viewer.is_admin:
        for row in Connection.objects.listed().select_related("compartment").order_by("name"):
            if _contains(row.name, words):
                yield Found(row.name, row.compartment.name, reverse("explorer:connection", args=[row.slug]))
        return
    for connection in (it.connection for it in scope_for(Principal(viewer)).included):
        if _contains(connection.name, words):
            address = f"{reverse('explorer:documents')}?{urlencode({'connection': connection.slug})}"
            yield Found(connection.name, connection.compartment, address)


def _users(viewer: User, words: Sequence[str]) -> Iterator[Found]:
    if not (viewer.is_admin and words):
        return
    found = User.objects.order_by("username")
    for word in words:
        found = found.filter(username__icontains=word) | found.filter(email__icontains=word)
    for row in found[:_LIMIT]:
        detail = "Admin" if row.is_admin else "" if row.is_active else "Inactive"
        yield Found(row.username, detail, reverse("explorer:user", args=[row.pk]))


def _question_sets(viewer: User, words: Sequence[str]) -> Iterator[Found]:
    for row in QuestionSet.objects.all() if viewer.is_admin and words else ():
        if _contains(row.name, words):
            yield Found(row.name, "", reverse("explorer:question_set", args=[row.slug]))


def _presets(viewer: User, words: Sequence[str]) -> Iterator[Found]:
    """Yield presets: for an admin the page of each, for anyone else the Explorer with it."""
    for preset in PRESETS.values() if words else ():
        title = wording.preset_title(preset.name)
        if _contains(f"{title} {preset.name}", words):
            address = f"{reverse('explorer:search')}?{urlencode({'preset': preset.name})}"
            own = reverse("explorer:preset", args=[preset.name])
            yield Found(title, preset.description, own if viewer.is_admin else address)


def _settings(viewer: User, words: Sequence[str]) -> Iterator[Found]:
    """Yield the settings of presets, and those of the environment."""
    if not (viewer.is_admin and words):
        return
    for preset in TUNED.values():
        for facts in preset.defaults.declared_below():
            if _contains(facts.name, words) and facts.name not in preset.defaults.unused:
                address = reverse("explorer:preset", args=[preset.name])
                yield Found(facts.name, wording.preset_title(preset.name), f"{address}#id_{facts.name}")
    for reading in readings():
        if _contains(reading.name, words):
            yield Found(reading.name, "Environment", f"{reverse('explorer:health')}#setting-{reading.name}")


#: Heading, icon and finder of each kind, in the order of the results.
_KINDS: Final[tuple[tuple[str, str, Callable[[User, Sequence[str]], Iterator[Found]]], ...]] = (
    ("Pages", "overview", _pages),
    ("Documents", "documents", _documents),
    ("Connections", "connections", _connections),
    ("Users", "users", _users),
    ("Question sets", "judgments", _question_sets),
    ("Presets", "presets", _presets),
    ("Settings", "presets", _settings),
)
