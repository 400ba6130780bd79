"""The navigation of the console, in groups, for the signed-in user."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from django.http import HttpRequest
from django.urls import reverse

from corecube.data import read_toml


@dataclass(frozen=True, slots=True)
class Entry:
    """A link of the navigation."""

    label: str
    section: str
    view: str = ""  #: The name of its page's URL; empty if that is the section.
    icon: str = ""  #: The name of the icon's file; empty if that is the section.
    admins_only: bool = True
    also: str = ""  #: Other words that it is found by.

    @property
    def address(self) -> str:
        """The URL of the page."""
        return reverse(f"explorer:{self.view or self.section}")

    @property
    def icon_template(self) -> str:
        """The template of the icon."""
        return f"icons/{self.icon or self.section.replace('_', '-')}.svg"


@dataclass(frozen=True, slots=True)
class Group:
    """Links under a heading."""

    name: str
    heading: str
    entries: tuple[Entry, ...]

    def holds(self, section: str) -> bool:
        """Return whether one of its links is that of a section."""
        return any(it.section == section for it in self.entries)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page is in the navigation."""

    group: Group
    entry: Entry


def _groups(table: str) -> tuple[Group, ...]:
    return tuple(
        Group(it["name"], it["heading"], tuple(Entry(**row) for row in it["entries"])) for it in _TABLES[table]
    )


_TABLES: Final = read_toml("explorer", "navigation.toml")
GROUPS: Final = _groups("group")
MORE: Final = _groups("more")  #: Pages that are not in the navigation.


def visible_entries(*, is_admin: bool) -> Iterator[Place]:
    """Yield all pages that a user may open by name, those of the navigation first."""
    for group in (*GROUPS, *MORE):
        yield from (Place(group, entry) for entry in group.entries if is_admin or not entry.admins_only)


def place_of(section: object) -> Place | None:
    """Return where the page of a section is; None for a page of no section."""
    places = visible_entries(is_admin=True)
    return next((place for place in places if place.entry.section == section), None)


def navigation(request: HttpRequest) -> dict[str, object]:
    """Return the navigation and the section of the page, lazily, so that pages without it do not load the user.

    The section is that of the longest address at which the page's begins; views name it where that is another.
    """

    def groups() -> tuple[Group, ...]:
        is_admin = bool(getattr(getattr(request, "user", None), "is_admin", False))
        visible = (
            Group(it.name, it.heading, tuple(e for e in it.entries if is_admin or not e.admins_only)) for it in GROUPS
        )
        return tuple(group for group in visible if group.entries)

    @cache
    def section() -> str:
        found = {it.address: it.section for group in GROUPS for it in group.entries}
        return found.get(max(filter(request.path.startswith, found), key=len, default=""), "")

    return {"navigation": groups, "section": section}
