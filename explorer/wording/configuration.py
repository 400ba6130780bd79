"""Labels of connector settings, connection tests and jobs. Pure: no Django, no request."""

from collections.abc import Mapping
from typing import Final

CONFIG_LABELS: Final[Mapping[str, str]] = {
    "url": "URL",
    "start": "Start pages",
    "prefixes": "URL prefixes",
    "use_sitemaps": "Use the site's sitemaps",
    "max_pages": "Maximum pages",
    "max_depth": "Maximum link depth",
    "delay_seconds": "Delay between pages (seconds)",
    "media_types": "Content types",
    "user": "User",
    "link": "File URL",
    "history": "Use commit dates",
    "max_repository_bytes": "Maximum fetch size (MB)",
    "timeout_seconds": "Fetch timeout (seconds)",
    "include": "Include",
    "exclude": "Exclude",
    "max_bytes": "Maximum file size (MB)",
    "include_restricted": "Include restricted pages",
}

CAPABILITY_LABELS: Final[Mapping[str, str]] = {
    "reach": "Reach the source",
    "authenticate": "Sign in",
    "list": "List contents",
    "read": "Read a document",
}

STAGE_LABELS: Final[Mapping[str, str]] = {
    "queued": "queued",
    "parsing": "parsing",
    "embedding": "embedding",
    "storing": "storing",
    "failed": "failed",
    "gone": "to delete",
}


def config_label(name: str) -> str:
    """Return the label of a config field."""
    return CONFIG_LABELS.get(name, name.replace("_", " ").capitalize())


def capability_label(name: str) -> str:
    """Return the label of a step of a connection test."""
    return CAPABILITY_LABELS.get(name, name.capitalize())


def duration(seconds: float) -> str:
    """Return "8.2 s", "3 min 5 s" or "2 h 10 min"."""
    minutes, rest = divmod(int(seconds), 60)
    hours, past = divmod(minutes, 60)
    if hours:
        return f"{hours} h {past} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def time_left(seconds: float) -> str:
    """Return the estimated time left: "under a minute left", "about 4 min left"."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return "under a minute left"
    hours, past = divmod(minutes, 60)
    return f"about {hours} h {past} min left" if hours else f"about {minutes} min left"
