"""The known services of language models, with the settings that each needs."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from corecube.data import read_toml
from retrieval.llm.service import Api

_TABLES: Final = read_toml("retrieval.llm", "service_presets.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePreset:
    """A known service."""

    slug: str
    name: str
    base_url: str
    api: Api
    context_tokens: int = 8192
    max_answer_tokens: int = 1024
    note: str = ""  #: What to know before it is added.

    @property
    def is_local(self) -> bool:
        """Whether it usually runs on the machine of CoreCube, and needs no key."""
        return urlsplit(self.base_url).hostname == "127.0.0.1"

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a language model of this service."""
        return {
            "api": self.api.value,
            "base_url": self.base_url,
            "context_tokens": self.context_tokens,
            "max_answer_tokens": self.max_answer_tokens,
        }


PRESETS: Final = {
    slug: ServicePreset(slug=slug, **{**row, "api": Api(row.get("api", Api.OPENAI))}) for slug, row in _TABLES.items()
}
