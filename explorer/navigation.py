"""The rail: every part of the console, in groups, for those who may open it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class Entry:
    """A link of the rail."""

    label: str
    #: Name of the address, and of the icon under templates/icons.
    view: str
    icon: str
    #: The section name in a page's context.
    section: str
    admins_only: bool = True

    @property
    def address(self) -> str:
        """The page's address."""
        return reverse(self.view)

    @property
    def icon_template(self) -> str:
        """The icon's template."""
        return f"icons/{self.icon}.svg"


@dataclass(frozen=True, slots=True)
class Group:
    """Links under one heading; the first group has none."""

    heading: str
    entries: tuple[Entry, ...]


#: A new page of the console needs an entry here only.
GROUPS: Final = (
    Group(
        "",
        (
            Entry("Chat", "explorer:chat", "chat", "chat", admins_only=False),
            Entry("Overview", "explorer:overview", "overview", "overview"),
            Entry("Explorer", "explorer:search", "explorer", "explorer", admins_only=False),
            Entry("Evidence", "explorer:evidence", "evidence", "evidence", admins_only=False),
            Entry("Compare", "explorer:compare", "compare", "compare", admins_only=False),
            Entry("Side by side", "explorer:side_by_side", "side-by-side", "side_by_side", admins_only=False),
            Entry("Query log", "explorer:log", "log", "log", admins_only=False),
            Entry("Judgments", "explorer:judgments", "judgments", "judgments"),
        ),
    ),
    Group(
        "Sources",
        (
            Entry("Connections", "explorer:connections", "connections", "connections"),
            Entry("Documents", "explorer:documents", "documents", "documents", admins_only=False),
            Entry("Jobs", "explorer:jobs", "jobs", "jobs"),
        ),
    ),
    Group(
        "Access",
        (
            Entry("Compartments", "explorer:compartments", "compartments", "compartments"),
            Entry("Clearances", "explorer:clearances", "admin", "clearances"),
            Entry("Users", "explorer:users", "users", "users"),
            Entry("Groups", "explorer:groups", "groups", "groups"),
            Entry("API keys", "explorer:keys", "keys", "keys"),
            Entry("Audit log", "explorer:audit", "audit", "audit"),
        ),
    ),
    Group(
        "Engine",
        (
            Entry("Presets", "explorer:presets", "presets", "presets"),
            Entry("Section sets", "explorer:section_sets", "section-sets", "section_sets"),
            Entry("Routes", "explorer:routes", "routes", "routes"),
            Entry("Models", "explorer:models", "models", "models"),
            Entry("Language models", "explorer:language_models", "language-models", "language_models"),
            Entry("Health", "explorer:health", "health", "health"),
        ),
    ),
)


def navigation(request: HttpRequest) -> dict[str, object]:
    """Return the rail's groups for templates; they are computed only for pages with a rail."""

    def groups() -> tuple[Group, ...]:
        user = getattr(request, "user", None)
        return tuple(_visible(is_admin=bool(getattr(user, "is_admin", False))))

    return {"navigation": groups}


def _visible(*, is_admin: bool) -> Iterator[Group]:
    for group in GROUPS:
        if entries := tuple(entry for entry in group.entries if is_admin or not entry.admins_only):
            yield Group(group.heading, entries)
