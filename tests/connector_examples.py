"""An example of each kind of connection, for the tests that all kinds pass."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Example:
    """A config, and what a form needs to have filled in beside the settings that all kinds have."""

    config: dict[str, Any] = field(default_factory=dict)
    form: dict[str, str] = field(default_factory=dict)


EXAMPLES = {
    "folder": Example({"path": "/srv/nowhere"}, {"config_path": "/srv/nowhere"}),
    "upload": Example(),
    "git": Example(
        {"url": "https://git.example.invalid/r.git"},
        {
            "config_url": "https://git.example.invalid/r.git",
            "config_max_repository_bytes": "1024",
            "config_timeout_seconds": "60",
        },
    ),
    "web": Example(
        {"start": ["https://www.example.invalid/"]},
        {
            "config_start": "https://www.example.invalid/\n\n https://www.example.invalid/b \n",
            "config_max_pages": "10",
            "config_max_depth": "2",
            "config_delay_seconds": "0.5",
            "config_media_types": "text/html",
        },
    ),
    "s3": Example(
        {"bucket": "documents", "endpoint": "https://s3.example.invalid"},
        {"config_bucket": "documents", "config_region": "eu-west-1", "config_addressing": "path"},
    ),
    "confluence": Example(
        {"url": "https://wiki.example.invalid", "spaces": ["ENG"]},
        {"config_url": "https://wiki.example.invalid", "config_spaces": "ENG\nFIN", "config_edition": "auto"},
    ),
    "push": Example(),
}
