"""What connectors and jobs say, in the console's words. Pure: no Django, no request."""

from collections.abc import Mapping
from typing import Final

CONFIG_LABELS: Final[Mapping[str, str]] = {
    "url": "Address",
    "start": "Start pages",
    "prefixes": "Stay below",
    "use_sitemaps": "Use the site's sitemaps",
    "max_pages": "Most pages",
    "max_depth": "Most links from a start page",
    "delay_seconds": "Wait between pages, seconds",
    "media_types": "Content types",
    "user": "User",
    "link": "Link of a file",
    "history": "Dates from the history",
    "max_repository_bytes": "Most that one fetch brings, MB",
    "timeout_seconds": "Longest fetch, seconds",
    "include": "Only these paths",
    "exclude": "Not these paths",
    "max_bytes": "Largest item, MB",
    "include_restricted": "Take in restricted pages",
}

CAPABILITY_LABELS: Final[Mapping[str, str]] = {
    "reach": "Reach it",
    "authenticate": "Sign in",
    "list": "List what it holds",
    "read": "Read an item",
}

STAGE_LABELS: Final[Mapping[str, str]] = {
    "queued": "waiting",
    "parsing": "being read and parsed",
    "embedding": "being embedded",
    "storing": "being stored",
    "failed": "failed",
    "gone": "to be deleted",
}


def config_label(name: str) -> str:
    """Return a config's field as a form heads it."""
    return CONFIG_LABELS.get(name, name.replace("_", " ").capitalize())


def capability_label(name: str) -> str:
    """Return what a source must allow, as a check lists it."""
    return CAPABILITY_LABELS.get(name, name.capitalize())


def duration(seconds: float) -> str:
    """Return "8.2 s", "3 min 5 s" or "2 h 10 min"."""
    minutes, rest = divmod(int(seconds), 60)
    hours, past = divmod(minutes, 60)
    if hours:
        return f"{hours} h {past} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def time_left(seconds: float) -> str:
    """Return about how long something still takes: "under a minute left", "about 4 min left"."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "under a minute left"
    hours, past = divmod(minutes, 60)
    return f"about {hours} h {past} min left" if hours else f"about {minutes} min left"
