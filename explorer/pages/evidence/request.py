"""The parameters of the evidence page's address."""

from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from django.http import QueryDict

from corecube.sanitise import storable
from retrieval.models.document import id_in

#: The total timeout for all sections: default and bounds.
DEFAULT_SECONDS: Final = 30
MIN_SECONDS: Final = 1
MAX_SECONDS: Final = 120
#: The maximum number of digits of the seconds.
_MAX_DIGITS: Final = 3
#: The maximum number of documents that limit a run.
_MAX_DOCUMENTS: Final = 50


@dataclass(frozen=True, slots=True)
class EvidenceParameters:
    """The parameters of an address."""

    #: Empty for the first set.
    section_set: str
    #: Empty for all.
    section: str
    subject: str
    #: Slugs; none for all.
    compartments: tuple[str, ...]
    documents: tuple[UUID, ...]
    seconds: int
    run_as: str
    #: Finds documents to limit the run.
    find: str
    #: Whether to search.
    runs: bool
    #: Whether the page includes the results instead of loading them later.
    whole: bool

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """Return the parameters of a query string; invalid ones get their default."""
        ids = (id_in(text) for text in query.getlist("document"))
        seconds = query.get("seconds", "")
        is_number = seconds.isascii() and seconds.isdecimal() and len(seconds) <= _MAX_DIGITS
        return cls(
            section_set=query.get("set", ""),
            section=query.get("part", ""),
            subject=query.get("about", ""),
            compartments=tuple(dict.fromkeys(filter(None, query.getlist("in")))),
            documents=tuple(dict.fromkeys(it for it in ids if it))[:_MAX_DOCUMENTS],
            seconds=max(MIN_SECONDS, min(MAX_SECONDS, int(seconds))) if is_number else DEFAULT_SECONDS,
            run_as=query.get("as", ""),
            find=storable(query.get("find", "")).strip(),
            runs=query.get("run") == "1",
            whole=query.get("whole") == "1",
        )
