"""The navigation of the console, in groups, for the signed-in user."""

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse


@dataclass(frozen=True, slots=True)
class Entry:
    """A link of the navigation."""

    label: str
    view: str
    icon: str
    section: str
    admins_only: bool = True

    @property
    def address(self) -> str:
        """The URL of the page."""
        return reverse(self.view)

    @property
    def icon_template(self) -> str:
        """The template of the icon."""
        return f"icons/{self.icon}.svg"


@dataclass(frozen=True, slots=True)
class Group:
    """Links under a heading, which is empty for the first group."""

    heading: str
    entries: tuple[Entry, ...]


#: All entries of the navigation.
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
    """Return the navigation for templates, lazily, so that pages without it do not load the user."""

    def groups() -> tuple[Group, ...]:
        is_admin = bool(getattr(getattr(request, "user", None), "is_admin", False))
        visible = (Group(it.heading, tuple(e for e in it.entries if is_admin or not e.admins_only)) for it in GROUPS)
        return tuple(group for group in visible if group.entries)

    return {"navigation": groups}
